"""Mixtures of experts: against replicas in plain NumPy, and every bound on random and on adversarial streams."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from onlinebregman._kernels.learners.hedge import Hedge
from onlinebregman._kernels.learners.mean_mixer import MeanMixer
from sklearn.utils import get_tags

from onlinebregman import (
    BayesMixture,
    ExpertMixtureClassifier,
    ExpertMixtureRegressor,
    ForwardRegressor,
    LearningRateMixture,
    MirrorDescentRegressor,
)
from onlinebregman._online.compiled import make_loss
from onlinebregman.losses import resolve_loss
from onlinebregman.reference import AdaHedge, share_update

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


@st.composite
def forecasts(draw):
    """(X, y) in [0, 1]: noise, experts that are sometimes right, or an adversary of the leading expert."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_rows, n_experts = draw(st.integers(1, 80)), draw(st.integers(1, 6))
    X = rng.uniform(size=(n_rows, n_experts))
    kind = draw(st.sampled_from(["random", "turns", "adversary", "extremes"]))
    if kind == "extremes":
        X = np.rint(X)
    y = rng.uniform(size=n_rows)
    if kind == "turns":
        y = X[np.arange(n_rows), (np.arange(n_rows) * 3 // n_rows) % n_experts]
    if kind == "adversary":
        losses = np.zeros(n_experts)
        for t in range(n_rows):
            y[t] = float(X[t, losses.argmin()] < 0.5)
            losses += (X[t] - y[t]) ** 2
    return X, y


@st.composite
def probabilities(draw):
    """(X, y) for two or three classes: probabilities in the columns of each expert, and the observed labels."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_rows, n_experts, n_classes = draw(st.integers(3, 60)), draw(st.integers(1, 5)), draw(st.integers(2, 3))
    p = rng.dirichlet(np.full(n_classes, draw(st.sampled_from([0.3, 1.0]))), size=(n_rows, n_experts))
    p = 0.99 * p + 0.01 / n_classes
    if draw(st.booleans()):  # an adversary: the label that the best expert so far considers least likely
        y, losses = np.empty(n_rows, dtype=int), np.zeros(n_experts)
        for t in range(n_rows):
            y[t] = p[t, losses.argmin()].argmin()
            losses -= np.log(p[t, :, y[t]])
    else:
        y = rng.integers(n_classes, size=n_rows)
    return (p[:, :, 1] if n_classes == 2 else p.reshape(n_rows, -1)), y, p


def replica(costs_of, X, rate, share):
    """Weights before each row by the published updates, and after the last."""
    prior = v = np.full(X.shape[1], 1 / X.shape[1])
    history = []
    for t in range(len(X)):
        history.append(v)
        v = share_update(v, costs_of(t, v), rate, prior, share)
    return np.array(history), v


# --- numbers ----------------------------------------------------------------------------------------------------------

LOSSES = {"squared_error": lambda a, y: (a - y) ** 2 / 2, "absolute_error": lambda a, y: np.abs(a - y)}
SLOPES = {"squared_error": lambda a, y: a - y, "absolute_error": lambda a, y: np.sign(a - y)}


@settings(max_examples=60)
@given(
    forecasts(),
    st.sampled_from(["average", "eg"]),
    st.sampled_from(sorted(LOSSES)),
    st.sampled_from([0.1, 3.0]),
    st.sampled_from([0.0, 0.01, 0.5]),
)
def test_the_regressor_is_the_printed_update(data, strategy, loss, rate, share):
    X, y = data
    y[:3] = [0.1, 0.5, 0.9][: len(y)]  # whose differences are no reason to take other rows for absurd

    def costs_of(t, v):
        return LOSSES[loss](X[t], y[t]) if strategy == "average" else SLOPES[loss](v @ X[t], y[t]) * X[t]

    model = ExpertMixtureRegressor(strategy=strategy, loss=loss, learning_rate=rate, share=share, history=len(y))
    model.partial_fit(X, y)
    history, last = replica(costs_of, X, rate, share)
    assert_allclose(model.weights_history_, history, rtol=1e-8, atol=1e-12)
    assert_allclose(model.weights_, last, rtol=1e-8, atol=1e-12)
    assert_allclose(model.cumulative_loss_, LOSSES[loss]((history * X).sum(axis=1), y).sum(), rtol=1e-9, atol=1e-12)
    assert_allclose(model.expert_losses_, LOSSES[loss](X, y[:, np.newaxis]).sum(axis=0), rtol=1e-10)
    assert_allclose(model.predict(X), X @ last, rtol=1e-8)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n_rates=st.integers(2, 6), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_the_adaptive_rate_is_that_of_the_compiled_mixture(loss, weighted, seed, n_rates, scale):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = scale * (X @ [1.0, -2.0, 0.5] + rng.normal(size=60))
    weights = rng.choice([0.0, 0.5, 2.0], size=60) if weighted else np.ones(60)
    compiled = LearningRateMixture(MirrorDescentRegressor(divergence="squared_euclidean", loss=loss), eta0s=n_rates)
    forecasts = np.zeros((60, n_rates))  # 0 before the first row
    for t in range(60):
        if t:
            forecasts[t] = [model.predict(X[t : t + 1])[0] for model in compiled.estimators_]
        compiled.partial_fit(X[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1])
    mixer = MeanMixer(Hedge(n_rates), make_loss(resolve_loss(loss)), False, None, None)
    mixer.learn(forecasts, y, weights)
    assert_allclose(mixer.expert_losses, compiled.cumulative_losses_, rtol=1e-12)
    assert_allclose(mixer.cumulative_loss, compiled.cumulative_loss_, rtol=1e-9)
    assert_allclose(mixer.hedge.weights, compiled.weights_, rtol=1e-7, atol=1e-12)
    assert_allclose(mixer.regret_bound(), compiled.regret_bound_, rtol=1e-9)


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


def learn(model, X, y, p):
    return model.partial_fit(X, y, classes=range(p.shape[2]))


@settings(max_examples=60)
@given(probabilities(), st.sampled_from([0.0, 0.05]))
def test_bayes_rule(data, share):
    X, y, p = data
    came = p[np.arange(len(y)), :, y]
    model = learn(BayesMixture(share=share, history=len(y)), X, y, p)
    history, last = replica(lambda t, v: -np.log(came[t]), came, 1.0, share)
    assert_allclose(model.weights_history_, history, rtol=1e-8, atol=1e-12)
    assert_allclose(model.cumulative_loss_, -np.log((history * came).sum(axis=1)).sum(), rtol=1e-9)
    assert_allclose(model.predict_proba(X), np.einsum("tkc,k->tc", p, last), rtol=1e-8)
    if not share:  # the loss of the mixture of all products
        assert_allclose(model.cumulative_loss_, -np.log(np.prod(came, axis=0).mean()), rtol=1e-9)


@settings(max_examples=40)
@given(
    probabilities(),
    st.sampled_from(["average", "eg"]),
    st.sampled_from(["brier", "log_loss"]),
    st.sampled_from([0.1, 2.0]),
    st.sampled_from([0.0, 0.05]),
)
def test_the_classifier_is_the_printed_update(data, strategy, loss, rate, share):
    X, y, p = data
    came = np.eye(p.shape[2])[y]

    def costs_of(t, v):
        own, seen = v @ p[t], p[t] @ came[t]
        if loss == "brier":
            return ((p[t] - came[t]) ** 2).sum(axis=1) / 2 if strategy == "average" else p[t] @ (own - came[t])
        return -np.log(seen) if strategy == "average" else -seen / (v @ seen)

    model = ExpertMixtureClassifier(strategy=strategy, loss=loss, learning_rate=rate, share=share, history=len(y))
    learn(model, X, y, p)
    history, last = replica(costs_of, p[:, :, 0], rate, share)
    assert_allclose(model.weights_history_, history, rtol=1e-8, atol=1e-12)
    assert_allclose(model.predict_proba(X), np.einsum("tkc,k->tc", p, last), rtol=1e-8)


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
