"""Weights of experts against their formulas in NumPy: compiled, ML-Poly and Bernstein, the Aggregating Algorithm."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.learners.hedge import Hedge
from onlinebregman._kernels.learners.mean_mixer import MeanMixer
from sklearn.utils import get_tags

from onlinebregman import (
    BayesMixture,
    DensityMixture,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
)
from onlinebregman._online.compiled import make_loss
from onlinebregman.losses import AbsoluteLoss
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


def filled(logs, p):
    """Forecasts, of experts that sleep those of the mixture of the others, which may have no weight."""
    logs = np.where(np.isnan(p).reshape(len(p), -1).all(axis=1), -np.inf, np.maximum(logs, -1e300))
    v = np.exp(logs - logs.max())
    return np.where(np.isnan(p), v / v.sum() @ np.nan_to_num(p), p)


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
    some_sleep=st.booleans(),
)
def test_weights_and_bounds_are_those_of_the_formulas(
    loss, strategy, seed, n_experts, n_classes, prior, rate, share, weighted, some_sleep
):
    rng = np.random.default_rng(seed)
    n_rows, history = 25, 12
    some_sleep &= not prior or rate != "adaptive"  # equal costs but for rounding would have the largest rates
    prior = rng.dirichlet(np.ones(n_experts)) + 1e-3 if prior else np.ones(n_experts)
    share = 0.0 if rate == "adaptive" else share
    common = {"strategy": strategy, "loss": loss, "learning_rate": rate, "share": share, "history": history}
    asleep = rng.uniform(size=(n_rows, n_experts)) < 0.3 * some_sleep
    asleep[:, 0] &= ~asleep.all(axis=1)
    if LOSSES[loss] in (squared, absolute):
        model, X, y = (
            ExpertMixtureRegressor(prior=prior, **common),
            rng.normal(size=(n_rows, n_experts)),
            rng.permutation(np.linspace(-2.0, 2.0, n_rows)),  # no two so close that others count as absurd
        )
        X[asleep] = np.nan
        rows, more = X, {}
    else:
        rows = rng.dirichlet(np.ones(n_classes), size=(n_rows, n_experts))
        rows[asleep] = np.nan
        X, y = rows.reshape(n_rows, -1) if n_classes > 2 else rows[..., 1], rng.integers(n_classes, size=n_rows)
        model, more = ExpertMixtureClassifier(prior=prior, **common), {"classes": range(n_classes)}
    weights = rng.choice([0.0, 0.5, 2.0], size=n_rows) if weighted else np.ones(n_rows)
    expected = Weights(prior / prior.sum(), None if rate == "adaptive" else rate, share)
    kept = []
    for t in np.flatnonzero(weights):
        kept.append(np.exp(expected.logs))
        value, losses, gradient = LOSSES[loss](expected.logs, filled(expected.logs, rows[t]), y[t])
        expected.count(weights[t], value, losses, losses if strategy == "average" else gradient)
    cut = rng.integers(1, n_rows)
    model.partial_fit(X[:cut], y[:cut], sample_weight=weights[:cut], **more)
    model.partial_fit(X[cut:], y[cut:], sample_weight=weights[cut:])
    near = {"rtol": 1e-7, "atol": 1e-10} if rate == "adaptive" else {"rtol": 1e-10, "atol": 1e-13}
    assert_allclose(model.weights_, np.exp(expected.logs), **near)
    assert_allclose(model.weights_history_, np.reshape(kept[-history:], (-1, n_experts)), **near)
    said = model.predict_proba(X) if more else model.predict(X)
    mixed = [np.exp(expected.logs) @ filled(expected.logs, row) for row in rows]
    assert_allclose(said, mixed, rtol=1e-7, atol=1e-10)
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


# --- numbers ----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.03, 0.1, 0.5]), n_switches=st.integers(0, 5))
def test_a_rate_that_follows_from_larger_losses_is_raised(seed, share, n_switches):
    rng = np.random.default_rng(seed)
    losses = rng.uniform(size=(200, 3)) * 10.0 ** np.repeat(rng.integers(-3, 4, size=4), 50)[:, np.newaxis]
    losses[np.arange(200), np.repeat(rng.integers(3, size=4), 50)] *= 0.1
    compiled = MeanMixer(Hedge(3, None, share), make_loss(AbsoluteLoss()), False, None, None)
    plain, y = AdaHedge(3, share), np.zeros(1)
    # the losses of the best sequences of experts that end with one of them, by the number of switches
    best = np.concatenate([np.zeros((1, 3)), np.full((n_switches, 3), np.inf)])
    for each in losses:
        assert_allclose(compiled.hedge.weights, plain.v, rtol=1e-6, atol=1e-9)
        best[1:] = np.minimum(best[1:], best[:-1].min(axis=1, keepdims=True))
        best += each
        plain.learn(each, compiled.hedge.weights @ each)
        compiled.learn(each[np.newaxis], y)
    assert compiled.cumulative_loss - best.min() <= compiled.hedge.regret_bound(n_switches) * (1 + 1e-9)


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
        self.regrets, self.squares, self.spent, self.largest = np.zeros((4, len(prior)))


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
    X[np.random.default_rng(seed).uniform(size=X.shape) < 0.1 * seed] = np.nan
    expected, lost = replica([0.25] * 4 if prior is None else prior), 0.0
    model = ExpertMixtureRegressor(strategy=strategy, prior=prior, history=300, shuffle=False)
    model.fit(X, y, sample_weight=np.tile([1.0, 2.5, 0.2], 100))
    for p, target, weight, v in zip(X, y, np.tile([1.0, 2.5, 0.2], 100), model.weights_history_, strict=True):
        assert_allclose(v, expected.weights(), rtol=1e-9, atol=1e-12)
        p[:] = filled(np.log(np.maximum(v, 1e-300)), p)
        a = v @ p
        lost += weight * (a - target) ** 2 / 2
        expected.count(weight * (a - target) * np.where(np.isclose(a, p, rtol=1e-14), 0.0, a - p))
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


def test_experts_without_weight_count_where_all_others_sleep():
    p = np.array([[1.0, 0.0, 1.0], [np.nan, 0.75, np.nan]])
    model = ExpertMixtureClassifier(learning_rate="adaptive").partial_fit(p[:1], [1], classes=[0, 1])
    assert model.weights_[1] == 0
    assert_allclose(model.predict_proba(p[1:]), [[0.25, 0.75]])
    assert_allclose(model.partial_fit(p[1:], [1]).cumulative_loss_, -np.log(2 / 3) - np.log(0.75))


def test_who_may_sleep(unchanged):
    X, y = stream(50)
    model = ExpertMixtureRegressor().partial_fit(X, y)
    assert get_tags(model).input_tags.allow_nan
    X[7] = np.nan
    with unchanged(model, "Row 7 must have a forecast"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="Row 7 must have a forecast"):
        model.predict(X)
    other = ExpertMixtureRegressor([("gd", ImplicitGDRegressor())])
    assert not get_tags(other).input_tags.allow_nan
    with pytest.raises(ValueError, match="contains NaN"):
        other.fit(X, y)
    p, y = np.full((9, 6), 1 / 3), [0, 1, 2] * 3
    classes, densities = BayesMixture().fit(p, y), DensityMixture().fit(p)
    p[7] = np.nan
    for call in (partial(classes.partial_fit, y=y), classes.predict, densities.partial_fit, densities.score_samples):
        with unchanged(classes, "Row 7 must have a forecast"):
            call(p)
    p[7, 3:], p[7, 1] = 1 / 3, 0.0
    with unchanged(classes, "expert 0 at row 7 must sum to 1; got nan"):
        classes.partial_fit(p, y)


# --- the Aggregating Algorithm ----------------------------------------------------------------------------------------


def aggregating(lo=0.0, hi=1.0, **parameters):
    parameters = {"learning_rate": "theory", **parameters}
    return ExpertMixtureRegressor(strategy="aggregating", data_bounds={"y": (lo, hi)}, **parameters)


def replica(X, y, lo, hi, weights, prior, share, rate):
    """Forecasts, losses and final weights by the formulas."""
    v, forecasts, own, experts = np.array(prior), [], 0.0, np.zeros(X.shape[1])
    for p, target, weight in zip(np.clip(X, lo, hi), y, weights, strict=True):
        awake = ~np.isnan(p)
        a = aggregate(v[awake] / v[awake].sum(), p[awake], lo, hi)
        losses = weight * (np.where(awake, p, a) - target) ** 2 / 2
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
    if draw(st.booleans()):  # some sleep
        X[:, 1:][rng.uniform(size=(n_rows, n_experts - 1)) < 0.2] = np.nan
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
