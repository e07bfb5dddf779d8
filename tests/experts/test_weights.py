"""The compiled weights of experts against their formulas in NumPy: priors, rates, shares, losses, gradients, bounds."""

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
from onlinebregman.reference import AdaHedge

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
