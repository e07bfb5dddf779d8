"""The mixtures against plain NumPy: members that learn alone, Bayes' rule, AdaHedge, shares, calibration, bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit, logsumexp

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)

CLASSIFIERS = [
    MirrorDescentClassifier(eta0=0.3),
    MirrorDescentClassifier(loss="hinge"),
    ForwardClassifier(alpha=2.0, forgetting=0.99),
    MirrorDescentClassifier(eta0=0.01, loss="squared_hinge", learning_rate="constant"),
]
REGRESSORS = [
    ImplicitGDRegressor(eta0=0.1),
    ForwardRegressor(forgetting=0.95),
    MirrorDescentRegressor(divergence="relative_entropy", signed=True),
]
seeds = st.integers(0, 2**32 - 1)


def rows(n_classes=2, n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, n_classes)) + 0.3 * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


def targets(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 5.0 + X @ np.arange(1.0, d + 1) + 0.2 * rng.normal(size=n)


class Calibration:
    """p_c ~ sigmoid(slope * score_c + offset), one Newton step a row on the sum of the classes' log losses."""

    def __init__(self):
        self.theta, self.precision = np.array([1.0, 0.0]), np.eye(2)

    def log_proba(self, scores):
        scores = np.column_stack([scores, np.ones(len(scores))]) @ self.theta
        logs = log_expit([-scores[0], scores[0]]) if len(scores) == 1 else log_expit(scores)
        return logs - logsumexp(logs)

    def learn(self, scores, y, weight):
        z = np.column_stack([scores, np.ones(len(scores))])
        p = expit(z @ self.theta)
        hits = np.array([y == 1]) if len(scores) == 1 else np.arange(len(scores)) == y
        self.precision = self.precision + weight * (z * (p * (1 - p))[:, np.newaxis]).T @ z
        self.theta = self.theta - np.linalg.solve(self.precision, weight * z.T @ (p - hits))


def logarithms(model, calibration, x):
    if isinstance(model, MirrorDescentClassifier) and model.loss != "log_loss":
        return calibration.log_proba(np.ravel(model.decision_function(x)))
    return model.predict_log_proba(x)[0]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("share", [0.0, 0.05])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_classifier_is_bayes_rule_over_members_that_learn_alone(n_classes, share, weighted):
    X, y = rows(n_classes)
    classes = np.arange(n_classes)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=60) if weighted else np.ones(60)
    weights[0] = 1.0
    mixture = ParameterFreeClassifier(members=CLASSIFIERS, share=share)
    alone = [type(model)(**model.get_params()) for model in CLASSIFIERS]
    scales = [Calibration() for _ in alone]
    losses, v, total = np.zeros(4), np.full(4, 0.25), 0.0
    for i in range(60):
        x, label = X[i : i + 1], y[i : i + 1]
        if i == 0:  # members have scores of 0 before the first row
            logs = np.full((4, n_classes), -np.log(n_classes))
        else:
            logs = np.array([logarithms(*pair, x) for pair in zip(alone, scales, strict=True)])
            assert_allclose(mixture.predict_proba(x)[0], v @ np.exp(logs), rtol=1e-9, atol=1e-12)
            assert_allclose(mixture.weights_, v, rtol=1e-8, atol=1e-14)
        if weights[i] > 0:
            cost = -logs[:, y[i]]
            losses += weights[i] * cost
            total -= weights[i] * np.log(v @ np.exp(-cost))
            v = v * np.exp(-weights[i] * (cost - cost.min()))
            v = (1 - share) * v / v.sum() + share / 4
            for k, model in enumerate(alone):
                scores = np.ravel(model.decision_function(x)) if i else np.zeros(1 if n_classes == 2 else n_classes)
                scales[k].learn(scores, y[i], weights[i])
        for model in alone:
            model.partial_fit(x, label, classes=classes, sample_weight=weights[i : i + 1])
        mixture.partial_fit(x, label, classes=classes, sample_weight=weights[i : i + 1])
    assert_allclose(mixture.cumulative_losses_, losses, rtol=1e-9)
    if not weighted:  # a heavy row is one row, whose mix loss is below weight times the loss
        assert_allclose(mixture.cumulative_loss_, total, rtol=1e-9)
        assert mixture.cumulative_loss_ - losses.min() <= mixture.regret_bound_
    for model, estimator in zip(alone, mixture.estimators_, strict=True):
        assert_array_equal(model.coef_, estimator.coef_)
        assert model.t_ == estimator.t_


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_the_regressor_is_adahedge_over_members_that_learn_alone(loss, share):
    X, y = targets()
    members = REGRESSORS if loss == "squared_error" else [MirrorDescentRegressor(loss=loss), *REGRESSORS]
    mixture = ParameterFreeRegressor(members=members, loss=loss, share=share)
    alone = [type(model)(**model.get_params()) for model in members]
    n = len(alone)
    costs, losses, gap, total = np.zeros(n), np.zeros(n), 0.0, 0.0
    value = MirrorDescentRegressor(loss=loss)._loss().value

    def weights(rate):
        v = np.exp(-rate * (costs - costs.min())) if rate < np.inf else (costs == costs.min()) * 1.0
        return v / v.sum()

    def potential(costs, rate):
        least = costs.min()
        return least if rate == np.inf else least - np.log(np.exp(-rate * (costs - least)).mean()) / rate

    for i in range(60):
        x, before = X[i : i + 1], y[:i]
        rate, known = np.log(n) / gap if gap > 0 else np.inf, gap > 1e-12 * total
        v = weights(rate)
        a = np.zeros(n)
        if i:
            a = np.array([model.predict(x)[0] for model in alone]) + before.mean()
            a = np.clip(a, before.min(), before.max())
            assert_allclose(mixture.predict(x)[0], v @ a, rtol=1e-9)
        cost, lost = value(a, y[i]), float(value(v @ a, y[i]))
        gap += max(lost - (potential(costs + cost, rate) - potential(costs, rate)), 0.0)
        costs, losses, total = costs + cost, losses + cost, total + lost
        if share and rate < np.inf and known:
            costs = -np.log((1 - share) * weights(rate) + share / n) / rate + potential(costs, rate) - np.log(n) / rate
        for model in alone:
            model.partial_fit(x, y[i : i + 1] - (before.mean() if i else 0.0))
        mixture.partial_fit(x, y[i : i + 1])
    assert_allclose(mixture.cumulative_losses_, losses, rtol=1e-9)
    assert_allclose(mixture.cumulative_loss_, total, rtol=1e-9)
    assert total - losses.min() <= mixture.regret_bound_


@settings(max_examples=40, deadline=None)
@given(seed=seeds, n_classes=st.integers(2, 4), share=st.sampled_from([0.0, 1e-3, 0.3]), noise=st.booleans())
def test_the_loss_of_a_classifier_is_within_its_bound(seed, n_classes, share, noise):
    X, y = rows(n_classes, n=80, seed=seed)
    if noise:
        y = np.random.default_rng(seed).integers(n_classes, size=80)
    model = ParameterFreeClassifier(members=CLASSIFIERS, share=share)
    model.partial_fit(X, y, classes=range(n_classes))
    assert model.cumulative_loss_ - model.cumulative_losses_.min() <= model.regret_bound_ + 1e-9
    if share == 0:
        assert model.regret_bound_ == pytest.approx(np.log(4))


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds,
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    share=st.sampled_from([0.0, 1e-3, 0.3]),
    loss=st.sampled_from(["squared_error", "absolute_error", "huber"]),
    jumps=st.booleans(),
)
def test_the_loss_of_a_regressor_is_within_its_bound(seed, scale, share, loss, jumps):
    X, y = targets(n=80, seed=seed)
    if jumps:
        y *= np.random.default_rng(seed).choice([-5.0, 1.0], size=80)
    model = ParameterFreeRegressor(members=REGRESSORS, loss=loss, share=share).partial_fit(X, scale * y)
    regret = model.cumulative_loss_ - model.cumulative_losses_.min()
    assert regret <= model.regret_bound_ + 1e-9 * model.cumulative_loss_


def test_a_share_follows_a_lead_that_changes():
    X, y = rows(n=4000, d=4, seed=3)
    y[2000:] = 1 - y[2000:]
    members = [ForwardClassifier(forgetting=forgetting) for forgetting in (1.0, 0.9)]
    losses = {}
    for share in (0.0, 0.001):
        model = ParameterFreeClassifier(members=members, share=share).partial_fit(X, y, classes=[0, 1])
        losses[share] = model.cumulative_loss_
    assert losses[0.001] < 0.95 * losses[0.0]
    history, t = model.weights_history_, model.weights_history_t_
    assert history[t < 2000][-1].argmax() == 0
    assert history[t > 2100][0].argmax() == 1


def test_the_history_does_not_grow_with_the_stream():
    X, y = rows(n=5000, d=2)
    model = ParameterFreeClassifier(members=CLASSIFIERS[:2])
    model.partial_fit(X[:50], y[:50], classes=[0, 1])
    assert_array_equal(model.weights_history_t_, np.arange(1, 51))
    for start in range(50, 5000, 99):
        model.partial_fit(X[start : start + 99], y[start : start + 99])
    t = model.weights_history_t_
    assert 64 <= len(t) <= 128
    assert len(np.unique(np.diff(t))) == 1
    whole = ParameterFreeClassifier(members=CLASSIFIERS[:2]).partial_fit(X, y, classes=[0, 1])
    assert_array_equal(whole.weights_history_, model.weights_history_)
    assert_allclose(model.weights_history_.sum(axis=1), 1.0)
