"""ForwardClassifier: the algorithm against its formulas, hard rows, and its errors in one pass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from raw import MirrorDescentClassifier
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.metrics import log_loss
from softmax_replica import Replica, some_rows, weights_of

from onlinebregman import ForwardClassifier, ForwardRegressor, ParameterFreeClassifier

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

seeds = st.integers(0, 2**32 - 1)


# --- the algorithm ----------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    seed=seeds,
    d=st.integers(1, 12),
    k=st.sampled_from([2, 3, 7]),
    alpha=st.floats(-2, 2).map(lambda power: 10.0**power),
    gamma=st.sampled_from([1.0, 0.999, 0.8]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_it_is_the_algorithm_by_its_formulas(seed, d, k, alpha, gamma, fit_intercept, weighted):
    X, y = some_rows(40, d, k, seed)
    weights = np.random.default_rng(seed).choice([0.1, 1.0, 7.3], size=len(y)) if weighted else np.ones(len(y))
    rows = np.c_[X, np.full(len(y), float(fit_intercept))]
    replica = Replica(d + 1, k, alpha, gamma, odds=fit_intercept)
    model = ForwardClassifier(standardize=False, alpha=alpha, forgetting=gamma, fit_intercept=fit_intercept)
    for i, x in enumerate(rows):
        if i:
            assert_allclose(model.predict_proba(X[i : i + 1])[0], softmax(replica.scores(x)), rtol=1e-10, atol=1e-12)
        replica.learn(x, y[i], weights[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], range(k), weights[i : i + 1] if weighted else None)
        assert_allclose(weights_of(model), replica.weights, rtol=1e-10, atol=1e-10 * np.abs(replica.weights).max())
    n = d + fit_intercept
    expected = np.linalg.inv(replica.A[:n, :n])
    assert_allclose(model._learner.covariance, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    assert model.cumulative_loss_ == pytest.approx(replica.loss, rel=1e-10)
    assert model.t_ == len(y)


def test_many_classes_fill_registers_or_not():
    for k in (8, 9, 16, 26):
        X, y = some_rows(80, 6, k)
        replica = Replica(7, k, 1.0, 1.0)
        for x, label in zip(np.c_[X, np.ones(len(y))], y, strict=True):
            replica.learn(x, label)
        assert_allclose(
            weights_of(ForwardClassifier(standardize=False).fit(X, y)), replica.weights, rtol=1e-9, atol=1e-11
        )


# --- streams ----------------------------------------------------------------------------------------------------------


def test_forgetting_may_change_in_mid_stream():
    X, y = some_rows()
    model, replica = ForwardClassifier(standardize=False), Replica(5, 3, 1.0, 1.0)
    for i, (x, label) in enumerate(zip(np.c_[X, np.ones(len(y))], y, strict=True)):
        model.forgetting = replica.gamma = 1.0 if i < 30 else 0.9
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=None if i else range(3))
        replica.learn(x, label)
    assert_allclose(weights_of(model), replica.weights, rtol=1e-10, atol=1e-12)
    model.forgetting = 1.5
    with pytest.raises(ValueError, match="'forgetting' parameter of ForwardClassifier must be"):
        model.partial_fit(X, y)


# --- hard rows --------------------------------------------------------------------------------------------------------


def scales(model):
    """D of A^-1 = U D U', behind the weights."""
    memory = np.asarray(model._learner.get_state()["memory"])
    d, m = model.n_features_in_ + model.fit_intercept, len(model.coef_)
    return memory[d * m : d * m + d]


@settings(max_examples=60)
@given(
    seed=seeds,
    d=st.integers(1, 9),
    k=st.sampled_from([2, 3, 7]),
    spread=st.sampled_from([0.0, 3.0, 30.0, 60.0]),
    gamma=st.sampled_from([1.0, 0.5, 1e-3]),
    alpha=st.sampled_from([1e-100, 1e-6, 1.0, 1e100]),
)
def test_the_metric_stays_positive_definite(seed, d, k, spread, gamma, alpha):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, d)) * 10.0 ** rng.uniform(-spread, spread, size=d) * 10.0 ** rng.integers(-3, 4, (60, 1))
    X[:, rng.uniform(size=d) < 0.2] = 0.0
    X[30:] = X[rng.integers(30, size=30)]
    y = rng.integers(k, size=60)
    model = ForwardClassifier(alpha=alpha, forgetting=gamma).partial_fit(X[:1], y[:1], classes=range(k))
    for i in range(1, 60):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        assert (scales(model) > 0).all() and np.isfinite(scales(model)).all()
    assert np.isfinite(model.predict_log_proba(X)).all() and np.isfinite(model.cumulative_loss_)


def test_a_row_that_a_member_refuses_is_learned_by_none(unchanged, state):
    X, y = some_rows(20, 3, 2)
    members = [
        ForwardClassifier(standardize=False),
        MirrorDescentClassifier(),
        ForwardClassifier(standardize=False, alpha=1e-3),
    ]
    model, other = (ParameterFreeClassifier(members=members).partial_fit(X[:1], y[:1], classes=[0, 1]) for _ in "ab")
    for i in range(1, 20):
        with unchanged(model, "overflow"):
            model.partial_fit([[1e160, 1.0, 1.0]], y[i : i + 1])
        for learning in (model, other):
            learning.partial_fit(X[i : i + 1], y[i : i + 1])
    assert state(model._learner) == state(other._learner)


@pytest.mark.parametrize("k", [2, 3])
def test_a_metric_that_may_overflow_is_looked_at(k, state):
    """Columns in units 1e150 apart: no bound shows that U stays finite, so a call with one row checks all of it."""
    X, y = some_rows(30, 4, k)
    X = X * [1e-149, 1e-149, 1.0, 1e2]
    whole = ForwardClassifier(alpha=1e-300).partial_fit(X, y, classes=range(k))
    cut = ForwardClassifier(alpha=1e-300)
    for i in range(30):
        cut.partial_fit(X[i : i + 1], y[i : i + 1], classes=range(k) if i == 0 else None)
    assert np.abs(whole._learner.get_state()["memory"][-60:]).max() > 1e150
    assert state(cut._learner) == state(whole._learner)


def test_scores_that_overflow_are_refused():
    X, y = some_rows(50, 2, 3)
    model = ForwardClassifier(standardize=False, alpha=1e-4).fit(X, y)
    for method in (model.predict, model.predict_proba, model.predict_log_proba, model.decision_function):
        with pytest.raises(ValueError, match=r"The score of row 1 \(largest feature 1.5e\+308\) is not finite; scale"):
            method([[1.0, 1.0], [1.5e308, -1.5e308]])


# --- what it reaches --------------------------------------------------------------------------------------------------


def rare_rows(share, seed, n=6000):
    """Rows of a logistic model in which the second class has this share, and its probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    scores = X @ [1.0, -0.5, 0.5]
    bias = brentq(lambda bias: expit(scores + bias).mean() - share, -30, 0)
    return X, (rng.uniform(size=n) < expit(scores + bias)).astype(int), expit(scores + bias)


@pytest.mark.parametrize("share", [1 / 300, 1 / 30])
@pytest.mark.parametrize(
    "make",
    [
        ForwardClassifier,
        lambda: ForwardClassifier(forgetting=0.9999),
        lambda: ForwardRegressor(loss="log_loss"),
        lambda: MirrorDescentClassifier(divergence="diagonal_newton"),
    ],
)
def test_a_rare_class_is_predicted_at_its_share(make, share):
    """The mean probability is the true share; the log loss is below that of the share itself, which is not known."""
    predicted = true = excess = 0.0
    for seed in range(4):
        X, y, p = rare_rows(share, seed)
        model, half = make(), len(y) // 2
        classes = {"classes": [0, 1]} if hasattr(model, "predict_proba") else {}
        predict = model.predict_proba if classes else model.predict
        model.partial_fit(X[:half], y[:half], **classes)
        ends = np.zeros(half)
        for i in range(0, half, 100):
            rows = slice(half + i, half + i + 100)
            ends[i : i + 100] = predict(X[rows]).reshape(100, -1)[:, -1]
            model.partial_fit(X[rows], y[rows])
        predicted, true = predicted + ends.mean(), true + p[half:].mean()
        excess += log_loss(y[half:], ends) - log_loss(y[half:], np.full(half, y.mean()))
    assert abs(predicted / true - 1) < 0.15 and excess < 0


def test_three_classes_two_of_them_rare_are_predicted_at_their_shares():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 3)), rng.choice(3, size=6000, p=[0.985, 0.01, 0.005])
    model = ForwardClassifier().partial_fit(X[:3000], y[:3000], classes=range(3))
    assert_allclose(model.predict_proba(X[3000:]).mean(axis=0)[1:], [0.01, 0.005], rtol=0.35)
    intercepts = np.log(np.bincount(y[:3000]))
    assert_allclose(np.diff(model.intercept_), np.diff(intercepts), atol=0.3)
