"""Weights of experts against their formulas in NumPy: compiled, ML-Poly and Bernstein, the Aggregating Algorithm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.learners.hedge import Hedge
from sklearn.utils import get_tags

from onlinebregman import (
    BayesMixture,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
)
from onlinebregman.reference import AdaHedge, aggregate, share_update

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


class Weights:
    """Weights of experts, in logarithms: v ~ prior exp(-rate costs), and fixed share."""

    def __init__(self, prior, rate, share):
        self.log_prior, self.fixed, self.share = np.log(prior), rate, share
        self.costs, self.losses = np.zeros(len(prior)), np.zeros(len(prior))
        self.loss = self.gap = 0.0

    @property
    def rate(self):
        if self.fixed is not None:
            return self.fixed
        return -self.log_prior.min() / self.gap if self.gap > 0 and len(self.costs) > 1 else np.inf

    @property
    def logs(self):
        best = self.costs.min()
        logs = np.where(self.costs == best, self.log_prior, -np.inf)
        if self.rate < np.inf:
            logs = self.log_prior - self.rate * (self.costs - best)
        return logs - np.logaddexp.reduce(logs)

    def count(self, weight, loss, losses, costs):
        logs, rate = self.logs, self.rate
        if rate == np.inf:
            mixed = (self.costs + weight * costs).min() - self.costs.min()
        else:
            mixed = -np.logaddexp.reduce(logs - rate * weight * costs) / rate
        linear = weight * (loss if costs is losses else np.exp(logs) @ costs)
        self.gap += max(linear - mixed, 0.0)
        self.costs = self.costs + weight * costs
        if self.share:
            logs = np.logaddexp(self.logs + np.log1p(-self.share), self.log_prior + np.log(self.share))
            self.costs = (self.log_prior - logs) / rate
        self.losses, self.loss = self.losses + weight * losses, self.loss + weight * loss


def squared(logs, p, y):
    mean = np.exp(logs) @ p
    return (mean - y) ** 2 / 2, (p - y) ** 2 / 2, (mean - y) * p


def absolute(logs, p, y):
    mean = np.exp(logs) @ p
    return abs(mean - y), np.abs(p - y), np.sign(mean - y) * p


def log_loss(logs, p, y):
    mean = np.exp(logs) @ p[:, y]
    return -np.log(mean), -np.log(p[:, y]), -p[:, y] / mean


def brier(logs, p, y):
    came = np.eye(p.shape[1])[y]
    mixed = np.exp(logs) @ p - came
    return (mixed**2).sum() / 2, ((p - came) ** 2).sum(axis=1) / 2, p @ mixed


LOSSES = {"squared_error": squared, "absolute_error": absolute, "log_loss": log_loss, "brier": brier}


@pytest.mark.parametrize("strategy", ["average", "eg"])
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n_experts=st.integers(1, 9),
    n_classes=st.integers(2, 3),
    prior=st.booleans(),
    rate=st.sampled_from([0.05, 1.0, 4.0, "adaptive"]),
    share=st.sampled_from([0.0, 0.01, 0.5]),
    weighted=st.booleans(),
)
def test_weights_and_bounds_are_those_of_the_formulas(
    loss, strategy, seed, n_experts, n_classes, prior, rate, share, weighted
):
    rng = np.random.default_rng(seed)
    n_rows, history = 25, 12
    prior = rng.dirichlet(np.ones(n_experts)) + 1e-3 if prior else np.ones(n_experts)
    share = 0.0 if rate == "adaptive" else share
    common = {"strategy": strategy, "loss": loss, "learning_rate": rate, "share": share, "history": history}
    if LOSSES[loss] in (squared, absolute):
        model, X, y = (
            ExpertMixtureRegressor(prior=prior, **common),
            rng.normal(size=(n_rows, n_experts)),
            rng.permutation(np.linspace(-2.0, 2.0, n_rows)),  # no two so close that others count as absurd
        )
        rows, more = X, {}
    else:
        rows = rng.dirichlet(np.ones(n_classes), size=(n_rows, n_experts))
        X, y = rows.reshape(n_rows, -1) if n_classes > 2 else rows[..., 1], rng.integers(n_classes, size=n_rows)
        model, more = ExpertMixtureClassifier(prior=prior, **common), {"classes": range(n_classes)}
    weights = rng.choice([0.0, 0.5, 2.0], size=n_rows) if weighted else np.ones(n_rows)
    expected = Weights(prior / prior.sum(), None if rate == "adaptive" else rate, share)
    kept = []
    for t in np.flatnonzero(weights):
        kept.append(np.exp(expected.logs))
        value, losses, gradient = LOSSES[loss](expected.logs, rows[t], y[t])
        expected.count(weights[t], value, losses, losses if strategy == "average" else gradient)
    cut = rng.integers(1, n_rows)
    model.partial_fit(X[:cut], y[:cut], sample_weight=weights[:cut], **more)
    model.partial_fit(X[cut:], y[cut:], sample_weight=weights[cut:])
    near = {"rtol": 1e-7, "atol": 1e-10} if rate == "adaptive" else {"rtol": 1e-10, "atol": 1e-13}
    assert_allclose(model.weights_, np.exp(expected.logs), **near)
    assert_allclose(model.weights_history_, np.reshape(kept[-history:], (-1, n_experts)), **near)
    said = model.predict_proba(X) if more else model.predict(X)
    assert_allclose(said, np.einsum("tk...,k->t...", rows, np.exp(expected.logs)), rtol=1e-7, atol=1e-10)
    assert_allclose(model.cumulative_loss_, expected.loss, **near)
    assert_allclose(model.expert_losses_, expected.losses, rtol=1e-12)
    bound = -expected.log_prior.min()
    if share:
        bound -= max(model.t_ - 1, 0) * np.log(1 - share + share * np.exp(expected.log_prior.min()))
    assert_allclose(model.regret_bound_, bound / expected.rate + expected.gap, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("strategy", ["average", "eg"])
def test_a_loss_that_overflows_is_only_that_of_its_expert_if_it_has_no_weight(strategy):
    """As in a mixture of learning rates; its weight is 2e-183, so that the mean is 1 still."""
    rows = np.column_stack([np.ones(500), np.full(500, 30.0)])
    model = ExpertMixtureRegressor(strategy=strategy, learning_rate=1.0).fit(rows, np.ones(500))
    loss = model.cumulative_loss_
    model.partial_fit([[1.0, 1e170]], [1.0])
    assert model.expert_losses_.tolist() == [0.0, np.inf]
    assert model.cumulative_loss_ == loss and model.regret_bound_ < np.inf
    assert_array_equal(model.weights_, [1.0, 0.0])


def test_an_expert_that_broke_down_is_named_before_what_it_could_not_learn():
    """The infinite forecast is reported, not the step that follows from it."""

    class Diverges(ImplicitGDRegressor):
        def predict(self, X):
            return np.full(len(X), np.inf) if self.t_ > 5 else super().predict(X)

        def partial_fit(self, X, y, sample_weight=None):
            if hasattr(self, "t_") and self.t_ > 6:
                raise ValueError("no more")
            return super().partial_fit(X, y, sample_weight)

    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="expert 'b' must be finite; got inf at row 6"):
        ExpertMixtureRegressor([("a", ImplicitGDRegressor()), ("b", Diverges())]).partial_fit(X, X[:, 0])


# --- numbers ----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.03, 0.1, 0.5]), n_switches=st.integers(0, 5))
def test_a_rate_that_follows_from_larger_losses_is_raised(seed, share, n_switches):
    rng = np.random.default_rng(seed)
    losses = rng.uniform(size=(200, 3)) * 10.0 ** np.repeat(rng.integers(-3, 4, size=4), 50)[:, np.newaxis]
    losses[np.arange(200), np.repeat(rng.integers(3, size=4), 50)] *= 0.1
    compiled, plain = Hedge(3, None, share), AdaHedge(3, share)
    # the losses of the best sequences of experts that end with one of them, by the number of switches
    best = np.concatenate([np.zeros((1, 3)), np.full((n_switches, 3), np.inf)])
    for each in losses:
        assert_allclose(compiled.weights, plain.v, rtol=1e-6, atol=1e-9)
        best[1:] = np.minimum(best[1:], best[:-1].min(axis=1, keepdims=True))
        best += each
        loss = compiled.weights @ each
        compiled.learn(each, loss)
        plain.learn(each, loss)
    assert compiled.loss - best.min() <= compiled.regret_bound(n_switches) * (1 + 1e-9)


def test_without_share_a_sequence_has_no_bound():
    model = ExpertMixtureRegressor(strategy="average", learning_rate=1.0).fit([[0.0, 1.0]], [0.0])
    assert model.tracking_bound(1) == np.inf and model.tracking_bound(0) == model.regret_bound_


# --- probabilities ----------------------------------------------------------------------------------------------------


def test_the_classifier_at_rate_1_is_the_bayes_mixture():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(50, 4)), rng.integers(2, size=50)
    bayes, general = BayesMixture(share=0.1).fit(X, y), ExpertMixtureClassifier(share=0.1).fit(X, y)
    assert bayes.weights_.tobytes() == general.weights_.tobytes()


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_an_expert_who_was_certain_and_wrong_is_out_for_good_unless_weight_is_shared(share):
    X = np.array([[0.0, 0.5], [1.0, 0.5], [1.0, 0.5]])
    model = BayesMixture(share=share, history=3).fit(X, [1, 0, 1])
    assert model.expert_losses_[0] == np.inf and np.isfinite(model.cumulative_loss_)
    assert (model.weights_[0] > 0) == (share > 0)
    assert np.isfinite(model.weights_history_).all()


def test_targets_are_those_that_all_experts_accept():
    experts = [("any", ForwardRegressor()), ("counts", ForwardRegressor(loss="poisson"))]
    assert get_tags(ExpertMixtureRegressor(experts)).target_tags.positive_only
    assert not get_tags(ExpertMixtureRegressor(experts[:1])).target_tags.positive_only
    assert not get_tags(ExpertMixtureRegressor()).target_tags.positive_only


# --- rates of their own, and experts that sleep -----------------------------------------------------------------------


OWN = ["ml_poly", "boa"]


class Own:
    """Weights and bounds by the formulas."""

    def __init__(self, prior):
        self.prior, self.gap = np.array(prior), 0.0
        self.regrets, self.squares, self.spent = (np.zeros(len(prior)) for _ in range(3))
        self.largest = np.zeros(len(prior))


class MLPoly(Own):
    def eta(self):
        return 1.0 / (self.squares + self.largest.max() ** 2)

    def potential(self, r):
        return (self.prior * self.eta() * np.maximum(r, 0.0) ** 2).sum()

    def weights(self):
        if self.regrets.max() <= 0:
            return self.prior
        v = self.prior * self.eta() * np.maximum(self.regrets, 0.0)
        return v / v.sum()

    def count(self, r):
        growth = self.potential(abs(r)) if self.largest.any() else 0.0
        self.regrets, self.squares = self.regrets + r, self.squares + r**2
        grows = abs(r).max() > self.largest.max()
        self.largest = np.maximum(self.largest, abs(r))
        self.gap = self.potential(self.regrets) if grows else self.gap + growth

    def bound(self):
        return np.sqrt(self.gap / (self.prior * self.eta())).max()


class BOA(Own):
    def inverse(self):
        rates = np.maximum(2 * self.largest, np.sqrt(self.squares / -np.log(self.prior)))
        return np.where(self.largest > 0, rates, rates[self.largest > 0].min(initial=1e300))

    def exponents(self):
        return (self.regrets - self.spent) / self.inverse()

    def weights(self):
        v = self.prior * np.exp(self.exponents()) / self.inverse()
        return v / v.sum()

    def count(self, r):
        before = (self.prior * np.exp(self.exponents())).sum()
        self.regrets, self.squares = self.regrets + r, self.squares + r**2
        self.largest = np.maximum(self.largest, abs(r))
        self.spent = self.spent + r**2 / self.inverse()
        self.gap += max((self.prior * np.exp(self.exponents())).sum() - before, 0.0)

    def bound(self):
        inverse = np.where(self.largest > 0, self.inverse(), 0.0)
        return ((np.log1p(self.gap) - np.log(self.prior)) * inverse + self.spent).max()


def stream(n=300, n_experts=4, seed=0):
    rng = np.random.default_rng(seed)
    y = 5.0 + 3.0 * rng.normal(size=n)  # no error is absurd
    return y[:, np.newaxis] + rng.normal(size=(n, n_experts)) * [0.5, 0.6, 1.0, 1.5][:n_experts], y


@pytest.mark.parametrize("strategy, replica", [("ml_poly", MLPoly), ("boa", BOA)])
@pytest.mark.parametrize("prior", [None, [0.1, 0.2, 0.3, 0.4]])
@pytest.mark.parametrize("seed", range(3))
def test_weights_and_bounds_at_rates_of_their_own(strategy, replica, prior, seed):
    X, y = stream(seed=seed)
    expected, lost = replica([0.25] * 4 if prior is None else prior), 0.0
    model = ExpertMixtureRegressor(strategy=strategy, prior=prior, history=300, shuffle=False)
    model.fit(X, y, sample_weight=np.tile([1.0, 2.5, 0.2], 100))
    for p, target, weight, v in zip(X, y, np.tile([1.0, 2.5, 0.2], 100), model.weights_history_, strict=True):
        assert_allclose(v, expected.weights(), rtol=1e-9, atol=1e-12)
        a = v @ p
        lost += weight * (a - target) ** 2 / 2
        expected.count(weight * (a - target) * (a - p))
    assert_allclose(model.cumulative_loss_, lost)
    assert_allclose(model.regret_bound_, expected.bound(), rtol=1e-9)
    assert model.tracking_bound(0) == model.regret_bound_ and model.tracking_bound(1) == np.inf
    for v in np.random.default_rng(seed).dirichlet(np.ones(4), size=20):  # every mixture of the experts
        fixed = (np.tile([1.0, 2.5, 0.2], 100) * (X @ v - y) ** 2).sum() / 2
        assert model.cumulative_loss_ - fixed <= model.regret_bound_


@pytest.mark.parametrize("strategy", OWN)
def test_weights_do_not_depend_on_units(strategy):
    X, y = stream()
    model = ExpertMixtureRegressor(strategy=strategy).partial_fit(X, y)
    for unit in (1e-60, 1e60):
        scaled = ExpertMixtureRegressor(strategy=strategy).partial_fit(unit * X, unit * y)
        assert_allclose(scaled.weights_, model.weights_, rtol=1e-6)


@pytest.mark.parametrize("strategy", OWN)
def test_one_expert_equal_experts_and_classes(strategy):
    X, y = stream()
    alone = ExpertMixtureRegressor(strategy=strategy).partial_fit(X[:, :1], y)
    assert_array_equal(alone.weights_, [1.0])
    assert alone.regret_bound_ == 0
    same = ExpertMixtureRegressor(strategy=strategy).partial_fit(X[:, [0, 0]], y)
    assert_array_equal(same.weights_, [0.5, 0.5])
    p = np.clip(np.column_stack([0.1 + 0.8 * (y > 5), np.full(300, 0.5)]), 0.01, 0.99)
    for loss in ("log_loss", "brier"):
        model = ExpertMixtureClassifier(strategy=strategy, loss=loss, learning_rate="adaptive").partial_fit(
            p, y > 5, classes=[False, True]
        )
        assert model.weights_[0] > 0.9
        assert model.cumulative_loss_ <= model.expert_losses_.min() + model.regret_bound_


@pytest.mark.parametrize("parameters", [{"share": 0.1}, {"learning_rate": 0.1}, {"learning_rate": "theory"}])
def test_what_rates_of_their_own_are_not_for(parameters):
    with pytest.raises(ValueError, match="strategy='ml_poly' has rates of its own"):
        ExpertMixtureRegressor(**parameters).fit(*stream())


@pytest.mark.parametrize("strategy", ["average", "eg", *OWN])
def test_an_expert_sleeps_where_its_forecast_is_missing(strategy):
    """Its weight relative to the others stays, and what it loses in the row is what the mixture of them does."""
    X, y = stream()
    rng = np.random.default_rng(1)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 5.0
    rows, total = slice(50, 300), 0.0
    model = ExpertMixtureRegressor(strategy=strategy).partial_fit(X[:50], y[:50])
    losses, before = model.expert_losses_, model.cumulative_loss_
    for p, target in zip(X[rows], y[rows], strict=True):
        v, awake = model.weights_, ~np.isnan(p)
        a = v[awake] @ p[awake] / v[awake].sum()
        assert_allclose(model.predict([p]), [a])
        lost = (a - target) ** 2 / 2
        losses, total = losses + np.where(awake, (p - target) ** 2 / 2, lost), total + lost
        model = model.partial_fit([p], [target])
    assert_allclose(model.expert_losses_, losses)
    assert_allclose(model.cumulative_loss_ - before, total)
    assert model.cumulative_loss_ - losses.min() <= model.regret_bound_
    whole = ExpertMixtureRegressor(strategy=strategy).partial_fit(X, y)
    assert_array_equal(whole.weights_, model.weights_)


def test_who_may_sleep(unchanged):
    X, y = stream(50)
    model = ExpertMixtureRegressor().partial_fit(X, y)
    assert get_tags(model).input_tags.allow_nan
    X[7] = np.nan
    with unchanged(model, "Row 7 must have a forecast"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="Row 7 must have a forecast"):
        model.predict(X)
    for other in (
        ExpertMixtureRegressor([("gd", ImplicitGDRegressor())]),
        ExpertMixtureRegressor(strategy="aggregating", data_bounds={"y": (0, 10)}),
    ):
        assert not get_tags(other).input_tags.allow_nan
        with pytest.raises(ValueError, match="contains NaN"):
            other.fit(X, y)


# --- the Aggregating Algorithm ----------------------------------------------------------------------------------------


def aggregating(lo=0.0, hi=1.0, **parameters):
    parameters = {"learning_rate": "theory", **parameters}
    return ExpertMixtureRegressor(strategy="aggregating", data_bounds={"y": (lo, hi)}, **parameters)


def replica(X, y, lo, hi, weights, prior, share, rate):
    """Forecasts, losses and final weights by the formulas."""
    v, forecasts, own, experts = np.array(prior), [], 0.0, np.zeros(X.shape[1])
    for p, target, weight in zip(np.clip(X, lo, hi), y, weights, strict=True):
        a = aggregate(v, p, lo, hi)
        losses = weight * (p - target) ** 2 / 2
        forecasts.append(a)
        if weight == 0:  # the row is ignored, and no weight is shared
            continue
        own, experts = own + weight * (a - target) ** 2 / 2, experts + losses
        v = share_update(v, losses, rate, prior, share)
    return np.array(forecasts), own, experts, v


@st.composite
def streams(draw):
    """(X, y) within a range [lo, hi], or forecasts beyond it: noise, extremes, or an adversary of the mixture."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_rows, n_experts = draw(st.integers(1, 60)), draw(st.integers(1, 6))
    lo, length = draw(st.sampled_from([-3.0, 0.0, 100.0])), draw(st.sampled_from([0.01, 1.0, 50.0]))
    X, y = rng.uniform(size=(n_rows, n_experts)), rng.uniform(size=n_rows)
    if draw(st.booleans()):
        X, y = np.rint(X), np.rint(y)
    if draw(st.booleans()):
        X = 2 * X - 0.5
    if draw(st.booleans()):  # the end at which the mixture loses most, beyond what the weights say it may
        v = np.full(n_experts, 1 / n_experts)
        for t, p in enumerate(np.clip(X, 0, 1)):
            both = [np.exp(-2 * (p - end) ** 2) for end in (0, 1)]
            a = 0.5 + np.log((v @ both[1]) / (v @ both[0])) / 4
            y[t] = float(a < 0.5) if v.max() < 0.9 else float(p[v.argmax()] < 0.5)
            v = v * np.exp(-2 * (p - y[t]) ** 2)
            v = v / v.sum()
    hi = lo + length
    return lo + length * X, np.clip(lo + length * y, lo, hi), lo, hi


@settings(max_examples=60)
@given(streams(), st.integers(0, 10**6), st.sampled_from([0.0, 0.05]), st.sampled_from(["theory", 0.3, 30.0]))
def test_the_numbers_are_those_of_the_formulas(data, seed, share, rate):
    X, y, lo, hi = data
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(X.shape[1])) + 1e-3
    prior, weights = prior / prior.sum(), rng.choice([0.0, 0.3, 1.0, 2.0], size=len(y))
    rate = rate if rate == "theory" else rate / (hi - lo) ** 2
    number = 4 / (hi - lo) ** 2 if rate == "theory" else rate
    model = aggregating(lo, hi, learning_rate=rate, share=share, prior=prior)
    forecasts, own, experts, v = replica(X, y, lo, hi, weights, prior, share, number)
    near = {"rtol": 1e-8, "atol": 1e-10 * (hi - lo) ** 2}
    for t in range(len(y)):
        if model.__sklearn_is_fitted__():
            assert_allclose(model.predict(X[t : t + 1]), forecasts[t : t + 1], rtol=0, atol=1e-9 * (hi - lo))
        model.partial_fit(X[t : t + 1], y[t : t + 1], weights[t : t + 1])
    assert_allclose(model.cumulative_loss_, own, **near)
    assert_allclose(model.expert_losses_, experts, **near)
    assert_allclose(model.weights_, v, rtol=1e-8, atol=1e-12)
    whole = aggregating(lo, hi, learning_rate=rate, share=share, prior=prior).partial_fit(X, y, weights)
    assert whole.cumulative_loss_ == model.cumulative_loss_
    assert_array_equal(whole.weights_, model.weights_)


def test_a_single_expert_is_followed_and_forecasts_beyond_the_range_are_clipped():
    X, y = np.array([[0.2], [0.9], [-5.0], [7.0]]), np.array([0.0, 1.0, 0.5, 1.0])
    model = aggregating().partial_fit(X, y)
    clipped = np.clip(X[:, 0], 0, 1)
    assert_allclose(model.predict(X), clipped, atol=1e-15)
    assert_allclose(model.cumulative_loss_, ((clipped - y) ** 2).sum() / 2)
    assert_allclose(model.expert_losses_, model.cumulative_loss_)
    assert model.regret_bound_ == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("history", [0, 5])
@pytest.mark.parametrize("target, said", [(1.5, "1.5"), (-1e300, "-1e\\+300"), (np.nextafter(1, 2), r"1\.0{14}\d+")])
def test_targets_beyond_the_range_are_refused(history, target, said, unchanged):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(30, 3)), rng.uniform(size=30)
    model = aggregating(history=history).partial_fit(X, y)
    wrong = y.copy()
    wrong[7] = target
    with unchanged(model, rf"row 7 must be within data_bounds\['y'\] = \(0\.0, 1\.0\); got {said}\. .*data_bounds"):
        model.partial_fit(X, wrong)


@pytest.mark.parametrize(
    "parameters, match",
    [
        ({"data_bounds": None}, "strategy='aggregating' needs data_bounds with y"),
        ({"data_bounds": None, "learning_rate": 1.0}, "strategy='aggregating' needs data_bounds with y"),
        ({"data_bounds": {"y": (1, 1)}}, "needs data_bounds with y"),
        ({"data_bounds": {"y": (0, np.inf)}, "learning_rate": "adaptive"}, "needs data_bounds with y"),
        ({"data_bounds": {"y": np.float32([0, np.inf])}}, "needs data_bounds with y"),
        ({"loss": "absolute_error"}, "loss must be 'squared_error' with strategy='aggregating'"),
        ({"share": 0.1, "learning_rate": "adaptive"}, "must be a number or 'theory' with share = 0.1"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(parameters, match, unchanged):
    model = aggregating().set_params(**parameters)
    for method in (model.fit, model.partial_fit):
        with unchanged(model, match):
            method([[0.0, 1.0]], [0.5])
