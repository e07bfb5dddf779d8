"""ForwardClassifier: the algorithm, hard rows, rare and late classes, columns that move; AIOLI, its improper update."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from raw import MirrorDescentClassifier
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from softmax_replica import Replica, some_rows, weights_of

from onlinebregman import (
    ExpertMixtureClassifier,
    ForwardClassifier,
    ForwardRegressor,
    ParameterFreeClassifier,
    merge,
    reference,
)

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


seeds = st.integers(0, 2**32 - 1)


# --- the algorithm ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 7, 8, 9, 16, 26])  # that fill registers, or not
@settings(max_examples=7)
@given(
    seed=seeds,
    d=st.integers(1, 12),
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


# --- classes that come later ------------------------------------------------------------------------------------------


def late_rows(n=80, d=4, k=5, seed=0):
    """A stream in which classes 2, 3, ... appear one by one, the last of them in neighbouring rows."""
    X, y = some_rows(n, d, k, seed)
    y[:10] = np.arange(10) % 2
    for label, first in zip(range(2, k), (10, 31, 32, 50), strict=False):
        y[:first] = np.where(y[:first] >= label, y[:first] % 2, y[:first])
        y[first] = label
    return X, y


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("first", [[0, 1], [1, 3, 4]])
def test_a_late_class_starts_at_its_prior(gamma, first):
    """The replica has all classes, but its formulas only include those that have been observed."""
    X, y = some_rows(60, 3, 5)
    y = np.where(np.arange(60) < 15, np.array(first)[np.arange(60) % len(first)], y)
    replica, begun = Replica(4, 5, 1.0, gamma), set(first)
    model = ForwardClassifier(standardize=False, forgetting=gamma, handle_unknown="add")
    for i, x in enumerate(np.c_[X, np.ones(60)]):
        begun.add(int(y[i]))
        classes = sorted(begun)
        part = Replica(4, len(classes), 1.0, gamma)
        part.W, part.A, part.loss = replica.W[classes], replica.A, replica.loss
        part.o, part.n = replica.o[classes], replica.n[classes]
        part.learn(x, classes.index(y[i]))
        replica.W[classes], replica.A, replica.loss = part.W, part.A, part.loss
        replica.o[classes], replica.n[classes] = part.o - part.o.mean(), part.n  # a new one starts in the middle
        model.partial_fit(X[i : i + 1], y[i : i + 1], first)
        assert model.classes_.tolist() == classes
        assert_allclose(weights_of(model), part.weights, rtol=1e-9, atol=1e-10)
    assert begun == set(range(5))
    assert model.cumulative_loss_ == pytest.approx(replica.loss, rel=1e-10) and model.t_ == 60


def test_a_class_may_be_announced_later():
    X, y = some_rows(60, 4, 2)
    model = ForwardClassifier(handle_unknown="add").partial_fit(X[:30], y[:30], [0, 1])
    scores = model.decision_function(X)
    model.partial_fit(X[30:31], y[30:31], [0, 1, 7], sample_weight=[0.0])
    assert model.classes_.tolist() == [0, 1, 7] and model.coef_.shape == (3, 4)
    assert_allclose(model.decision_function(X), np.c_[-scores / 2, scores / 2, 0 * scores], rtol=1e-12, atol=1e-13)
    model.partial_fit(X[30:], y[30:], [0, 1])  # existing classes are unchanged
    assert model.classes_.tolist() == [0, 1, 7]
    assert (model.predict_proba(X)[:, 2] < 0.5).all()
    assert model.partial_fit(X[:1], [7]).predict_proba(X[:1])[0, 2] > 0.05


@pytest.mark.parametrize("standardize", [False, True])
def test_a_call_with_a_new_class_learns_all_or_nothing(standardize, unchanged):
    X, y = late_rows()
    bad, weights = X.copy(), np.ones(len(y))
    if standardize:  # which limits values
        weights[[30, 60]] = 8e307  # whose losses add up to infinity
    else:
        bad[60] = 1e200
    model = ForwardClassifier(handle_unknown="add", standardize=standardize).partial_fit(X[:9], y[:9], [0, 1])
    for form in (bad, bad.tolist(), sparse.csr_array(bad)):
        for labels in (y, y + 0.0):
            with unchanged(model, "[Rr]ow"):
                model.partial_fit(form, labels, [0, 1, 9], weights)
    model.set_params(forgetting=0.9)  # also for the rows before the new class
    expected = copy.deepcopy(model).partial_fit(X[:10], y[:10]).partial_fit(X[10:], y[10:])
    assert_array_equal(model.partial_fit(X, y).coef_, expected.coef_)


def test_labels_that_cannot_be_classes_are_refused(unchanged):
    X, y = some_rows(20, 3, 2)
    model = ForwardClassifier(handle_unknown="add").partial_fit(X, y, [0, 1])
    with unchanged(model, "strings and numbers"):
        model.partial_fit(X[:1], ["x"])
    with unchanged(model, "NaN|nan"):
        model.partial_fit(X[:1], [np.nan])
    with unchanged(model, "strings and numbers"):
        model.partial_fit(X[:1], y[:1], ["x"])
    with unchanged(model.set_params(handle_unknown="error"), "The label 3 at row 0 is not one of the classes"):
        model.partial_fit(X[:1], [3])
    with unchanged(model.set_params(handle_unknown="ignore"), "'handle_unknown' parameter of ForwardClassifier"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        ForwardClassifier().partial_fit(X, y)


# --- an intercept without a penalty -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_free_intercept_has_a_tiny_penalty(k):
    X, y = some_rows(60, 4, k)
    replica = Replica(5, k, 2.0, 1.0)
    replica.A[-1, -1] = 1e-4
    for x, label in zip(np.c_[X, np.ones(60)], y, strict=True):
        replica.learn(x, label)
    model = ForwardClassifier(standardize=False, alpha=2.0, penalize_intercept=False).fit(X, y)
    assert_allclose(weights_of(model), replica.weights, rtol=1e-8, atol=1e-9)
    tiny = ForwardClassifier(standardize=False, alpha=1e-6, penalize_intercept=False).fit(X, y)
    assert_array_equal(tiny.coef_, ForwardClassifier(standardize=False, alpha=1e-6).fit(X, y).coef_)


def test_models_of_a_mixture_do_not_add_classes(unchanged):
    X, y = late_rows()
    mixture = ParameterFreeClassifier(members=[ForwardClassifier(handle_unknown="add"), ForwardClassifier(alpha=0.1)])
    mixture.partial_fit(X[:10], y[:10], classes=[0, 1])
    with unchanged(mixture, "The label 2 at row 0 is not one of the classes"):
        mixture.partial_fit(X[10:], y[10:])


# --- columns that move, or stand far from 0 ---------------------------------------------------------------------------


N = 2000


def stream(kind, seed=0):
    """Rows and labels; the first column moves by itself, apart from the labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    y = (X @ [3.0, -6.0, 1.5] + rng.logistic(size=N) > 0).astype(int)
    before = np.arange(N) < N // 2
    moves = {
        "stays": 0.0,
        "mean 100": 100.0,
        "unix times": 1.7e9,
        "level": np.where(before, 20.0, 70.0),
        "first value": np.where(np.arange(N) == 0, 9999.0, 0.0),
        "one value": np.where(np.arange(N) == 1200, 9999.0, 0.0),
    }
    units = {"scale": np.where(before, 1.0, 10.0), "larger unit": np.where(before, 1.0, 1e-3), "tiny": 1e-6}
    X[:, 0] = X[:, 0] * units.get(kind, 1.0) + moves.get(kind, 0.0)
    return X, y


def errors(model, X, y):
    """Of the last 500 rows, each predicted before it was learned."""
    model.partial_fit(X[:-500], y[:-500])
    wrong = 0
    for i in range(N - 500, N):
        wrong += (model.predict(X[i : i + 1])[0] > 0.5) != y[i]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return wrong / 5


class Classifier(ForwardClassifier):
    def partial_fit(self, X, y, sample_weight=None):
        return super().partial_fit(X, y, classes=[0, 1], sample_weight=sample_weight)


MODELS = {"classes": Classifier, "log loss": lambda: ForwardRegressor(loss="log_loss")}


@pytest.mark.parametrize(
    "kind", ["mean 100", "unix times", "level", "scale", "larger unit", "tiny", "first value", "one value"]
)
@pytest.mark.parametrize("model", MODELS)
def test_columns_that_move_are_followed(model, kind):
    seeds = range(4 if kind == "larger unit" else 1)
    best = np.mean([errors(Classifier().set_params(standardize=False), *stream("stays", seed)) for seed in seeds])
    assert np.mean([errors(MODELS[model](), *stream(kind, seed)) for seed in seeds]) <= best + 1.0


def test_of_a_column_in_tiny_units_the_variance_of_the_weight_grows():
    """As soon as its values are known; not for a learner that has seen large ones."""
    X, y = stream("tiny")
    X[:, 1] *= 0.01
    learner = Classifier().partial_fit(X[:7], y[:7])._learner
    kind, (*arguments, values) = learner.__reduce__()
    values["columns"][:-3].reshape(-1, 3)[-2] = 1.0  # the largest differences from the mean
    larger = kind(*arguments, values)
    for each in (learner, larger):
        each.learn(X[7:8], y[7:8].astype(float))
    added, means = learner.covariance - larger.covariance, np.cumsum(X[:8], axis=0) / np.arange(1, 9)[:, np.newaxis]
    expected = np.diag(np.r_[0.0, 1 / (2 * abs(X[:8] - means)[1:].max(axis=0)[:2]) ** 2 - 1, 0.0])
    assert_allclose(added, expected, rtol=1e-9, atol=1e-9 * expected.max())


@pytest.mark.parametrize("kind", ["classes", "log loss", "poisson"])
def test_no_prediction_depends_on_the_origin(kind):
    X, y = stream("stays")
    X, y, origin = X[:200], y[:200] + (np.arange(200) % 3 == 0) * (kind == "classes"), np.array([2.0**20, -3.0, 0.0])
    loss = kind.replace(" ", "_")
    make = ForwardClassifier if kind == "classes" else lambda **more: ForwardRegressor(loss=loss, **more)
    here, there = (make(shuffle=False) for _ in range(2))
    here, there = here.fit(X, y), there.fit(X + origin, y)
    assert_allclose(there.coef_, here.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(there.intercept_, here.intercept_ - here.coef_ @ origin, rtol=1e-6)
    assert_allclose(there.mean_, here.mean_ + origin)
    assert there.n_samples_seen_ == 200


@pytest.mark.parametrize("kind", ["stays", "level", "unix times", "larger unit", "tiny"])
def test_rows_may_come_one_by_one_sparse_or_with_others(kind, state):
    X, y = stream(kind)
    X, y = X[900:1100], y[900:1100]
    X[::3, 2] = 0.0
    whole, rows, thin = Classifier().partial_fit(X, y), Classifier(), Classifier().partial_fit(sparse.csr_array(X), y)
    for i in range(len(y)):
        rows.partial_fit(X[i : i + 1], y[i : i + 1])
        with pytest.raises(ValueError):  # also where the centre moves
            rows.partial_fit(X[[i] * 3], y[[i] * 3], sample_weight=[1.0, 1.7e308, 1.7e308])
    assert state(rows._learner) == state(whole._learner) == state(thin._learner)
    assert_array_equal(thin.predict_proba(sparse.csr_array(X)), whole.predict_proba(X))


@pytest.mark.parametrize("kind", ["unix times", "tiny"])
def test_shards_are_joined_about_one_centre(kind):
    X, y = stream(kind)
    start = Classifier().partial_fit(X[:10], y[:10])
    parts = [Classifier().partial_fit(X[:10], y[:10]).partial_fit(X[k::4][3:], y[k::4][3:]) for k in range(4)]
    joined, whole = merge(parts, start=start), Classifier().partial_fit(X, y)
    assert_allclose(joined.coef_, whole.coef_, rtol=0.2)
    assert np.mean(joined.predict(X) == whole.predict(X)) > 0.99
    assert joined.n_samples_seen_ == sum(part.n_samples_seen_ - 10 for part in parts) + 10


@pytest.mark.parametrize("make", [ForwardRegressor, Classifier])
@pytest.mark.parametrize("factor, shift", [(1e-3, 0.0), (1.0, 1e4), (1e-3, 20.0)])
def test_shards_that_have_lost_a_part_of_the_start_are_joined(make, factor, shift):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = (X @ [1.0, 1.0, -2.0] + 0.1 * rng.normal(size=4000) > 0) * 1.0
    X[1000:, 0] = factor * X[1000:, 0] + shift
    start = make().partial_fit(X[:1000], y[:1000])
    parts = [copy.deepcopy(start).partial_fit(X[k:3001:3], y[k:3001:3]) for k in range(1001, 1004)]
    joined = merge(parts, start=start)
    assert joined.score(X[3001:], y[3001:]) > np.mean([part.score(X[3001:], y[3001:]) for part in parts]) - 0.01


# --- AIOLI ------------------------------------------------------------------------------------------------------------


def aioli(**parameters):
    return ForwardClassifier(update="aioli", **parameters)


class AioliReplica(reference.Aioli):
    """The algorithm, with its loss and F(0), the sum of the surrogates at 0."""

    def __init__(self, d, alpha, radius, gamma=1.0):
        super().__init__(alpha / 2 * np.eye(d), reference.LOSSES["log_loss"], gamma)
        self.radius, self.losses, self.constant = radius, 0.0, 0.0

    def learn(self, x, y, s=1.0):
        z, A = self.predict(x), self.A
        super().learn(x, y, s, self.radius)
        k = x @ (self.A - self.gamma * A) @ x / (x @ x) ** 2
        slope = float(self.loss.derivative(z, y))
        self.losses += s * float(self.loss.value(z, y))
        self.constant += s * (float(self.loss.value(z, y)) - slope * z) + k * z * z / 2


@settings(max_examples=60)
@given(
    seed=seeds,
    d=st.integers(1, 12),
    alpha=st.floats(-2, 2).map(lambda power: 10.0**power),
    radius=st.sampled_from([0.1, 1.0, 20.0]),
    gamma=st.sampled_from([1.0, 0.9]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_aioli_is_the_algorithm_by_its_formulas(seed, d, alpha, radius, gamma, fit_intercept, weighted):
    X, y = some_rows(40, d, 2, seed)
    weights = np.random.default_rng(seed).choice([0.1, 1.0, 7.3], size=len(y)) if weighted else np.ones(len(y))
    rows = np.c_[X, np.ones(len(y))] if fit_intercept else X
    replica = AioliReplica(rows.shape[1], alpha, radius, gamma)
    model = aioli(alpha=alpha, radius=radius, forgetting=gamma, fit_intercept=fit_intercept)
    for i, x in enumerate(rows):
        if i:
            z = replica.predict(x)
            assert_allclose(model.decision_function(X[i : i + 1]), z, rtol=1e-8, atol=1e-10)
            assert_allclose(model.predict_proba(X[i : i + 1])[0], [expit(-z), expit(z)], rtol=1e-8)
        replica.learn(x, y[i], weights[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], [0, 1], weights[i : i + 1])
        w = replica.w
        got = np.r_[model.coef_[0], model.intercept_] if fit_intercept else model.coef_[0]
        assert_allclose(got, w, rtol=1e-8, atol=1e-9 * np.abs(w).max())
    assert_allclose(model._learner.covariance, np.linalg.inv(replica.A), rtol=1e-8, atol=1e-9 / alpha)
    assert model.cumulative_loss_ == pytest.approx(replica.losses, rel=1e-10)
    if gamma == 1:  # what the losses exceed the minimum of the surrogates by
        least = replica.constant - w @ replica.A @ w / 2
        assert model.regret_bound(np.zeros(d)) == pytest.approx(replica.losses - least, rel=1e-7, abs=1e-8)


def test_comparators_must_be_within_the_radius():
    X, y = some_rows(30, 3, 2)
    model = aioli(radius=2.0).fit(X, y)
    assert model.regret_bound([0.0, 2.0, 0.0]) - model.regret_bound([0.0, 0.0, 0.0]) == pytest.approx(1.0)
    assert model.regret_bound([0.0, 0.0, 0.0], 2.0) - model.regret_bound([0.0, 0.0, 0.0]) == pytest.approx(1.0)
    u = np.ones(3) / np.sqrt(3.0) * (2.0 * (1 + 1e-15))  # of the norm 2 up to rounding
    assert np.linalg.norm(u) > 2 and model.regret_bound(u) == pytest.approx(model.regret_bound([0.0, 2.0, 0.0]))
    model.set_params(radius=9.0)  # read when learning starts
    with pytest.raises(ValueError, match=r"norm of coef and intercept must be at most radius = 2; got 2\.8"):
        model.regret_bound([0.0, 2.0, 0.0], 2.0)
    with pytest.raises(ValueError, match=r"coef must have shape \(3,\)"):
        model.regret_bound([0.0, 2.0])
    with pytest.raises(ValueError, match=r"intercept must be a number or have shape \(1,\); got shape \(2,\)"):
        model.regret_bound(np.zeros(3), [0.0, 1.0])
    with pytest.raises(ValueError, match="must be at most radius = 2; got nan"):
        model.regret_bound([0.0, np.nan, 0.0])
    free = aioli(penalize_intercept=False, fit_intercept=True).fit(X, y)
    rise = free.regret_bound(np.zeros(3), 1.0) - free.regret_bound(np.zeros(3))
    assert rise == pytest.approx(1e-4 / 4)
    with pytest.raises(ValueError, match="intercept must be 0"):
        aioli(fit_intercept=False).fit(X, y).regret_bound(np.zeros(3), 1.0)


def test_where_there_is_no_bound():
    X, y = some_rows(30, 3, 2)
    with pytest.raises(ValueError, match="update='aioli'"):
        ForwardClassifier().fit(X, y).regret_bound(np.zeros(3))
    assert aioli(forgetting=0.99).fit(X, y).regret_bound(np.zeros(3)) == np.inf
    forgot = aioli(forgetting=0.99).partial_fit(X[:1], y[:1], [0, 1]).set_params(forgetting=1.0).partial_fit(X, y)
    assert forgot.regret_bound(np.zeros(3)) == np.inf


def test_the_functions_of_parallel_runs_add_up():
    X, y = some_rows(90, 4, 2)
    start = aioli(radius=5.0).partial_fit(X[:30], y[:30], [0, 1])
    parts = [copy.copy(start).partial_fit(X[i : i + 30], y[i : i + 30]) for i in (30, 60)]
    mixed = merge(parts, start=start)
    A0, A1, A2, A = (np.linalg.inv(model._learner.covariance) for model in (start, *parts, mixed))
    w0, w1, w2, w = (np.r_[model.coef_[0], model.intercept_] for model in (start, *parts, mixed))
    assert_allclose(A, A1 + A2 - A0, rtol=1e-10)
    assert_allclose(A @ w, A1 @ w1 + A2 @ w2 - A0 @ w0, rtol=1e-10)
    mixed.partial_fit(X, y)
    with pytest.raises(ValueError, match="must be for one run over all rows"):  # with one penalty for all of them
        mixed.regret_bound(np.zeros(4))


def test_two_classes_are_needed(unchanged):
    X, y = some_rows(30, 3, 3)
    model = aioli()
    words = "Only binary classification is supported. The type of the target is multiclass: update='aioli'"
    with unchanged(model, rf"^{words} is for two classes; got 3\. Use update='implicit'"):
        model.fit(X, y)
    assert get_tags(ForwardClassifier()).classifier_tags.multi_class
    for binary in (model, ExpertMixtureClassifier([("one", model)]), ParameterFreeClassifier(members=[model])):
        assert not get_tags(binary).classifier_tags.multi_class
        with pytest.raises(ValueError, match=words):
            clone(binary).fit(X, y)
    model = aioli().fit(X, y > 0)
    for each, labels in ((model, np.full(30, 2)), (aioli(), y > 0)):
        with unchanged(each.set_params(handle_unknown="add"), "handle_unknown must be 'error' with update='aioli'"):
            each.partial_fit(X, labels, classes=[0, 1])


def test_it_passes_scikit_learn_s_checks():
    reason = "compares shuffled rows: what a learner keeps of a stream depends on its order"
    failing = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    check_estimator(aioli(), expected_failed_checks=dict.fromkeys(failing, reason), on_skip=None)
