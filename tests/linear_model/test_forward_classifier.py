"""ForwardClassifier: the algorithm against its formulas, hard rows, and its errors in one pass."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, softmax
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from softmax_replica import Replica, some_rows, weights_of

from onlinebregman import ForwardClassifier, ForwardRegressor, ParameterFreeClassifier
from onlinebregman.datasets import load_dataset

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


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("size", [0.1, 3.0, 1e3, 1e6])
def test_a_step_ends_where_its_objective_is_least(k, size):
    X, y = some_rows(30, 5, k)
    model = ForwardClassifier(alpha=0.1, fit_intercept=False).fit(X, y)
    rng = np.random.default_rng(1)
    for label in range(k):
        x = size * rng.normal(size=(1, 5))
        before, metric = weights_of(model)[:, :-1], np.linalg.inv(model._learner.covariance)
        model.partial_fit(x, [label])
        after = weights_of(model)[:, :-1]
        slopes = softmax(after @ x[0]) - np.eye(k)[label]
        pull = (after - before) @ metric
        assert_allclose(pull, -np.outer(slopes, x[0]), rtol=1e-6, atol=1e-9 * np.abs(pull).max() + 1e-100)


def test_many_classes_fill_registers_or_not():
    for k in (8, 9, 16, 26):
        X, y = some_rows(80, 6, k)
        replica = Replica(7, k, 1.0, 1.0)
        for x, label in zip(np.c_[X, np.ones(len(y))], y, strict=True):
            replica.learn(x, label)
        assert_allclose(
            weights_of(ForwardClassifier(standardize=False).fit(X, y)), replica.weights, rtol=1e-9, atol=1e-11
        )


def test_two_classes_have_one_row_of_weights():
    X, y = some_rows(50, 3, 2)
    model = ForwardClassifier().fit(X, np.array(["ham", "spam"])[y])
    assert model.coef_.shape == (1, 3) and model.intercept_.shape == (1,)
    scores = X @ model.coef_[0] + model.intercept_[0]
    assert_allclose(model.decision_function(X), scores, rtol=1e-12)
    assert_array_equal(model.predict(X), np.where(scores > 0, "spam", "ham"))
    assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-12)
    assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-12)


def test_scores_and_probabilities_of_several_classes():
    X, y = some_rows(50, 3, 5)
    model = ForwardClassifier(standardize=False).fit(X, y)
    assert model.coef_.shape == (5, 3) and model.intercept_.shape == (5,)
    scores = X @ model.coef_.T + model.intercept_
    assert_allclose(model.decision_function(X), scores, rtol=1e-11, atol=1e-13)
    assert_allclose(model.predict_proba(X), softmax(scores, axis=1), rtol=1e-11)
    assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1), rtol=1e-11)
    far = model.predict_log_proba(1e4 * X)
    assert np.isfinite(far).all() and far.min() < -1000
    model.fit(X, y)
    assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12 * np.abs(model.coef_).max())  # slopes sum to 0


def test_a_class_that_has_not_come_is_given_what_the_others_leave():
    X, y = some_rows(200, 3, 2)
    model = ForwardClassifier().partial_fit(X, y, classes=[0, 1, 2])
    p = model.predict_proba(X)[:, 2]
    assert (p > 0).all() and p.mean() < 0.1


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("d", [3, 30])
def test_sparse_rows_are_learned_as_dense_ones(k, d):
    X, y = some_rows(100, d, k)
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.7] = 0.0
    dense, thin = ForwardClassifier().fit(X, y), ForwardClassifier().fit(sparse.csr_array(X), y)
    assert_allclose(thin.coef_, dense.coef_, rtol=1e-11, atol=1e-12)
    assert_allclose(thin.intercept_, dense.intercept_, rtol=1e-11, atol=1e-12)
    assert_allclose(thin.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), rtol=1e-11)
    assert thin.cumulative_loss_ == pytest.approx(dense.cumulative_loss_, rel=1e-12)


def test_a_row_of_weight_zero_changes_nothing_and_is_not_forgotten_for(state):
    X, y = some_rows()
    model = ForwardClassifier(forgetting=0.9).fit(X, y)
    before = state(model._learner)
    model.partial_fit(X, y, sample_weight=np.zeros(len(y)))
    assert state(model._learner) == before


def test_a_weight_multiplies_the_loss_of_its_row():
    X, y = some_rows()
    one = ForwardClassifier(fit_intercept=False).fit(X, y, np.full(len(y), 3.0))
    two = ForwardClassifier(fit_intercept=False, alpha=1 / 3).fit(X, y)
    assert_allclose(one.coef_, two.coef_, rtol=1e-10)  # the objective is three times the other
    assert one.cumulative_loss_ == pytest.approx(3 * two.cumulative_loss_)


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


def test_forgetting_follows_a_drift():
    X, y = some_rows(4000, 4, 2)
    y = np.where(np.arange(4000) < 2000, y, 1 - y)
    keeps, forgets = (ForwardClassifier(forgetting=gamma).fit(X, y).cumulative_loss_ for gamma in (1.0, 0.99))
    assert forgets < 0.7 * keeps


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"], [0.5, 1.5, 2.5], [False, True]])
def test_one_row_a_call_is_the_same_whether_it_is_validated_or_not(labels, state):
    X, y = some_rows(40, 3, len(labels))
    y = np.array(labels)[y]
    fast = ForwardClassifier().partial_fit(X[:1], y[:1], classes=labels)
    slow = ForwardClassifier().partial_fit(X[:1], y[:1], classes=labels)
    for i in range(1, 40):
        fast.partial_fit(X[i : i + 1], y[i : i + 1])
        slow.partial_fit(X[i : i + 1].tolist(), y[i : i + 1].tolist())
    assert state(fast._learner) == state(slow._learner)
    assert_array_equal(fast.predict(X), slow.predict(X.tolist()))


def test_labels_that_are_no_classes_are_named(unchanged):
    X, y = some_rows()
    model = ForwardClassifier().fit(X, y)
    for labels in ([7], np.array([7]), np.array([0.5]), np.array(["1"])):
        with unchanged(model, "is not one of the classes"):
            model.partial_fit(X[:1], labels)


# --- hard rows --------------------------------------------------------------------------------------------------------


def scales(model):
    """D of A^-1 = U D U', behind the weights."""
    memory = np.asarray(model._learner.__reduce__()[1][-1]["fields"]["memory"])
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


def test_forgetting_leaves_directions_without_rows_alone_in_the_end():
    X, y = some_rows(3000, 3, 2)
    X[:, 1] = 0.0
    model = ForwardClassifier(forgetting=0.5).fit(X, y)
    assert scales(model)[1] == pytest.approx(1e100, rel=1.1) and model.coef_[0, 1] == 0
    model.partial_fit([[0.0, 1.0, 0.0]], [1])
    assert np.abs(model.coef_).max() < 300


def test_the_unit_of_the_features_goes_with_alpha():
    X, y = some_rows(200, 4, 3)
    one = ForwardClassifier(alpha=0.5, fit_intercept=False).fit(X, y)
    two = ForwardClassifier(alpha=0.5 * 2.0**80, fit_intercept=False).fit(2.0**40 * X, y)
    assert_array_equal(2.0**40 * two.coef_, one.coef_)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("row", "weight"), [([1e200, 1.0], 1.0), ([1e154, 1e154], 1e10), ([1e-5, -1e160], 1.0), ([1.0, 1.0], 1e308)]
)
def test_rows_that_overflow_are_refused(k, row, weight, unchanged):
    X, y = some_rows(20, 2, k)
    model = ForwardClassifier(standardize=False, alpha=1e-3).fit(X, y)
    for form in (np.array, sparse.csr_array):
        rows = form(np.vstack([X[:3], [row], X[:2]]))
        message = "Row 3 .* cannot be learned: the squares of its numbers, times its weight, overflow; scale features"
        with unchanged(model, message):
            model.partial_fit(rows, y[:6], sample_weight=[1.0, 1.0, 1.0, weight, 1.0, 1.0])


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_a_refused_call_of_one_row_does_not_undo_the_step_before(k, form, unchanged, state):
    """The step of the metric for a row is applied with the next row, which may be refused before or after that."""
    X, y = some_rows(20, 9, k)
    model, other = (
        ForwardClassifier(standardize=False, forgetting=0.99).partial_fit(form(X[:2]), y[:2], classes=range(k))
        for _ in "ab"
    )
    for i in range(2, 20):
        for bad in ([1e200] * 9, [1e308] * 9):
            with unchanged(model, "overflow"):
                model.partial_fit(form([bad]), y[i : i + 1])
        for learning in (model, other):
            learning.partial_fit(form(X[i : i + 1]), y[i : i + 1])
    assert state(model._learner) == state(other._learner)


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
    assert np.abs(whole._learner.__reduce__()[1][-1]["fields"]["memory"][-60:]).max() > 1e150
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


@pytest.mark.parametrize(
    ("load", "most_errors", "most_loss"), [(load_digits, 6.0, 0.245), (load_breast_cancer, 3.0, 0.125)]
)
def test_errors_of_one_pass(load, most_errors, most_loss):
    """Each row predicted before it is learned, scaled by the rows before; see benchmarks/peers/streams.py."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    scaler, model, wrong = StandardScaler(), ForwardClassifier(standardize=False), []
    for i in range(len(y)):
        row = X[i : i + 1] - X[:1]
        scaled = np.clip(scaler.transform(row), -10, 10) if i else row
        wrong.append(i == 0 or model.predict(scaled)[0] != y[i])
        model.partial_fit(scaled, y[i : i + 1], classes=None if i else np.unique(y))
        scaler.partial_fit(row)
    assert 100 * np.mean(wrong[len(y) // 50 :]) <= most_errors
    assert model.cumulative_loss_ / model.t_ <= most_loss


@pytest.mark.skipif("ONLINEBREGMAN_DATA" not in os.environ, reason="needs the folder of data sets")
@pytest.mark.parametrize("name", ["spambase", "phishing"])
def test_one_pass_comes_near_logistic_regression_on_all_rows(name):
    X, y = load_dataset(name, return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    half = len(y) // 2
    X, y = X[order], y[order]
    X = StandardScaler().fit(X[:half]).transform(X)
    losses = [
        log_loss(y[half:], model.fit(X[:half], y[:half]).predict_proba(X[half:]))
        for model in (ForwardClassifier(alpha=1.0), LogisticRegression(C=1.0, max_iter=10_000))
    ]
    assert losses[0] <= 1.05 * losses[1]
