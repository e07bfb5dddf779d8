"""ForwardRegressor: noise variance, standard deviations and intervals, and an intercept without a penalty."""

import copy
import os
import pickle
import re

import numpy as np
import pytest
from forward_replica import papers
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.preprocessing import scale

from onlinebregman.datasets import load_dataset
from onlinebregman.reference import ForwardRegression

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

seeds = st.integers(0, 2**32 - 1)
DATA = os.environ.get("ONLINEBREGMAN_DATA")


def some_rows(n=40, d=4, n_targets=None, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d if n_targets is None else (d, n_targets))
    return X, y + noise * rng.normal(size=y.shape)


class Replica(ForwardRegression):
    """Normal model with a conjugate prior, by direct solutions; `free` is the factor of the intercept's penalty."""

    def __init__(self, d, n_targets, alpha, gamma, free):
        super().__init__(d, n_targets, alpha, gamma=gamma)
        self.squares, self.n, self.rows, self.free = np.zeros(n_targets), 0.0, 0, free
        if free:
            self.A[-1, -1] = 1e-13

    def spread(self, x, h=1.0):
        return 1 / h + x @ np.linalg.solve(self.gamma * self.A, x)

    def learn(self, x, y, h):
        self.squares = self.gamma * self.squares + (y - x @ self.w) ** 2 / self.spread(x, h)
        self.n = self.gamma * self.n + (0 if self.free and self.rows == 0 else 1)  # a free intercept fits the first row
        self.rows += 1
        super().learn(x, y, h)

    @property
    def variance(self):
        return self.squares / self.n if self.n > 0 else np.full(self.squares.shape, np.inf)


# --- the formulas -----------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    seed=seeds,
    d=st.integers(1, 9),
    n_targets=st.sampled_from([None, 1, 3]),
    rows=st.integers(1, 25),
    alpha=st.floats(-2, 2).map(lambda power: 10.0**power),
    gamma=st.sampled_from([1.0, 0.9]),
    intercept=st.sampled_from(["none", "penalised", "free"]),
    forward=st.booleans(),
    weighted=st.booleans(),
)
def test_deviations_and_intervals_are_those_of_the_formulas(
    seed, d, n_targets, rows, alpha, gamma, intercept, forward, weighted
):
    rng = np.random.default_rng(seed)
    X, y = some_rows(rows, d, n_targets, seed)
    h = rng.choice([0.5, 1.0, 7.3], size=rows) if weighted else np.ones(rows)
    rows_with_1 = X if intercept == "none" else np.c_[X, np.ones(rows)]
    replica = Replica(rows_with_1.shape[1], n_targets or 1, alpha, gamma, intercept == "free")
    model = papers(
        alpha=alpha,
        forward=forward,
        forgetting=gamma,
        fit_intercept=intercept != "none",
        penalize_intercept=intercept == "penalised",
    )
    for i, x in enumerate(rows_with_1):
        model.partial_fit(X[i : i + 1], y[i : i + 1], h[i : i + 1] if weighted else None)
        replica.learn(x, np.atleast_1d(y[i]), h[i])
    assert_allclose(np.atleast_1d(model.noise_variance_), replica.variance, rtol=1e-6, atol=1e-12)
    queries = rng.normal(size=(6, d))
    prediction, std = model.predict(queries, return_std=True)
    assert_array_equal(prediction, model.predict(queries))
    with_1 = queries if intercept == "none" else np.c_[queries, np.ones(6)]
    spread = np.array([replica.spread(x) for x in with_1])
    expected = np.sqrt(np.multiply.outer(spread, replica.variance)).reshape(prediction.shape)
    assert_allclose(std, expected, rtol=1e-6, atol=1e-5)
    lower, upper = model.predict_interval(queries, coverage=0.7)
    center = model.set_params(forward=False).predict(queries)
    freedom = gamma * replica.n
    if freedom > 1:
        assert_allclose(lower, center + expected * stats.t(freedom).ppf(0.15), rtol=1e-5, atol=1e-4)
        assert_allclose(upper, center + expected * stats.t(freedom).ppf(0.85), rtol=1e-5, atol=1e-4)
    elif freedom == 0:
        assert (lower == -np.inf).all() and (upper == np.inf).all()


def test_the_variance_is_twice_the_least_penalised_loss_of_a_row():
    X, y = some_rows(100, 5)
    model = papers(alpha=2.0).fit(X, y)
    assert model.noise_variance_ == pytest.approx(2 * (model.cumulative_loss_ - model.regret_) / 100, rel=1e-12)


def test_deviations_are_those_of_bayesian_ridge():
    X, y = some_rows(300, 6)
    X, y = X - X.mean(axis=0), y - y.mean()
    bayes = BayesianRidge().fit(X, y)
    model = papers(alpha=bayes.lambda_ / bayes.alpha_, fit_intercept=False).fit(X, y)
    assert model.noise_variance_ == pytest.approx(1 / bayes.alpha_, rel=0.01)
    assert_allclose(model.predict(X, return_std=True)[1], bayes.predict(X, return_std=True)[1], rtol=0.01)


@settings(max_examples=40)
@given(seed=seeds, intercept=st.booleans(), gamma=st.sampled_from([1.0, 0.9]), n_targets=st.sampled_from([None, 2]))
def test_a_row_of_weight_h_is_one_row_times_the_root_of_h(seed, intercept, gamma, n_targets):
    """Weighted least squares: y ~ N(u.x, sigma^2 / h)."""
    X, y = some_rows(30, 4, n_targets, seed)
    h = 10.0 ** np.random.default_rng(seed).uniform(-3, 3, size=30)
    roots, with_1 = np.sqrt(h).reshape(30, 1), np.c_[X, np.ones(30)] if intercept else X
    weighted = papers(fit_intercept=intercept, forgetting=gamma).fit(X, y, sample_weight=h)
    scaled = papers(fit_intercept=False, forgetting=gamma)
    scaled.fit(roots * with_1, (roots * y.reshape(30, -1)).reshape(y.shape))
    assert_allclose(weighted.noise_variance_, scaled.noise_variance_, rtol=1e-9)
    assert_allclose(weighted.predict_interval(X), scaled.predict_interval(with_1), rtol=1e-9)


@settings(max_examples=40)
@given(seed=seeds, free=st.booleans(), power=st.integers(-2, 2))
def test_the_unit_of_weights_is_that_of_the_variance(seed, free, power):
    """Rows of weight c have variance 1, so one of weight 1 has variance c; `alpha`, too, is in units of weights."""
    X, y = some_rows(30, 4, seed=seed)
    one = papers(penalize_intercept=not free).fit(X, y)
    other = papers(alpha=10.0**power, penalize_intercept=not free)
    other.fit(X, y, sample_weight=np.full(30, 10.0**power))
    assert_allclose(other.coef_, one.coef_, rtol=1e-9)
    assert_allclose(other.noise_variance_, 10.0**power * one.noise_variance_, rtol=1e-9)


def test_rows_count_as_degrees_of_freedom_whatever_they_weigh():
    """Unlike repeated rows: these have the same sum of squares, and more degrees of freedom."""
    X, y = some_rows(30, 4, 2)
    h = np.random.default_rng(2).integers(0, 5, size=30)
    for free in (False, True):
        weighted, repeated = (papers(penalize_intercept=not free) for _ in range(2))
        weighted.fit(X, y, sample_weight=h)
        repeated.fit(np.repeat(X, h, axis=0), np.repeat(y, h, axis=0))
        squares = (h.sum() - free) * repeated.noise_variance_
        assert_allclose(((h > 0).sum() - free) * weighted.noise_variance_, squares, rtol=1e-11)
        counted = papers(penalize_intercept=not free).fit(X[h > 0], y[h > 0], sample_weight=h[h > 0])
        assert_array_equal(weighted.noise_variance_, counted.noise_variance_)


# --- streams ----------------------------------------------------------------------------------------------------------

SETTINGS = [
    {},
    {"forgetting": 0.9},
    {"standardize": True},
    {"random_features": 11, "gamma": 0.3, "random_state": 0, "forward": False},
    {"penalize_intercept": False, "forgetting": 0.9, "standardize": True},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n_targets", [None, 2])
def test_a_stream_may_be_cut_and_saved_anywhere_and_be_sparse(settings, n_targets):
    X, y = some_rows(60, 5, n_targets)
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.4] = 0.0
    h = np.random.default_rng(0).choice([0.0, 1.0, 2.5], size=60)
    whole, parts = papers(**settings).fit(X, y, h), papers(**settings)
    for start, end in [(0, 1), (1, 17), (17, 18), (18, 60)]:
        parts.partial_fit(X[start:end], y[start:end], h[start:end])
        parts = copy.deepcopy(parts) if start else pickle.loads(pickle.dumps(parts))
    dense = papers(**settings | {"standardize": False}).fit(X, y, h)
    rows = papers(**settings | {"standardize": False}).fit(sparse.csr_array(X), y, h)
    to_rounding = "random_features" in settings
    for one, other, queries in [(whole, parts, X), (dense, rows, sparse.csr_array(X))]:
        tolerance = 1e-10 if to_rounding and other is rows else 0.0
        assert_allclose(one.noise_variance_, other.noise_variance_, rtol=tolerance)
        assert_allclose(other.predict(queries, return_std=True), one.predict(X, return_std=True), rtol=tolerance)
        assert_allclose(other.predict_interval(queries), one.predict_interval(X), rtol=tolerance)
    one_by_one = [whole.predict(X[i : i + 1], return_std=True)[1] for i in range(60)]
    assert_array_equal(np.concatenate(one_by_one), whole.predict(X, return_std=True)[1])


def test_several_targets_have_a_variance_each():
    X, y = some_rows(60, 9, 3)
    together = papers().fit(X, y)
    apart = [papers().fit(X, column) for column in y.T]
    assert together.noise_variance_.shape == (3,)
    assert_array_equal(together.noise_variance_, [model.noise_variance_ for model in apart])
    std = together.predict(X, return_std=True)[1]
    assert_array_equal(std, np.transpose([model.predict(X, return_std=True)[1] for model in apart]))
    assert papers().fit(X, y[:, :1]).predict_interval(X)[0].shape == (60, 1)


def test_before_the_first_row_nothing_is_known_of_the_noise():
    X, y = some_rows(5)
    for free in (False, True):
        model = papers(penalize_intercept=not free).partial_fit(X, y, sample_weight=np.zeros(5))
        assert model.noise_variance_ == np.inf
        prediction, std = model.predict(X, return_std=True)
        assert (prediction == 0).all() and (std == np.inf).all()
        lower, upper = model.predict_interval(X)
        assert (lower == -np.inf).all() and (upper == np.inf).all()


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_the_row_that_determines_a_free_intercept_leaves_intervals_infinite(gamma):
    X, y = some_rows(5)
    model = papers(penalize_intercept=False, forgetting=gamma)
    for h in (0.0, 3.0, 0.0):
        model.partial_fit(X[:1], y[:1], sample_weight=[h])
        assert model.noise_variance_ == np.inf
        lower, upper = model.predict_interval(X)
        assert (lower == -np.inf).all() and (upper == np.inf).all()
    assert np.isfinite(model.partial_fit(X[1:2], y[1:2]).predict_interval(X)).all()


def test_intervals_are_infinite_where_next_to_nothing_is_remembered():
    X, y = some_rows(5)
    lower, upper = papers(forgetting=1e-3).fit(X, y).predict_interval(X)
    assert (lower == -np.inf).all() and (upper == np.inf).all()


def test_bad_questions_are_refused(unchanged):
    X, y = some_rows()
    model = papers().fit(X, 100 * y)
    for coverage in (0.0, 1.0, -0.1, 2.0, np.nan, "90 %", None):
        with pytest.raises(
            ValueError, match=f"coverage must be a number between 0 and 1, such as 0.9, or several; got {coverage!r}"
        ):
            model.predict_interval(X, coverage=coverage)
    bad = X.copy()
    bad[3] = 1e308 * np.sign(model.coef_)
    for forward in (True, False):
        model.set_params(forward=forward)
        for ask in (lambda: model.predict(bad, return_std=True), lambda: model.predict_interval(bad)):
            with unchanged(model, re.escape("The prediction for row 3 (largest feature 1e+308) is not finite")):
                ask()
    for ask in (lambda: papers().predict(X, return_std=True), lambda: papers().predict_interval(X)):
        with pytest.raises(AttributeError, match="not fitted"):
            ask()


# --- coverage ---------------------------------------------------------------------------------------------------------


def covered(model, X, y, coverage, skip=0):
    """The fraction of targets within their intervals, each computed before the row is learned."""
    hits = []
    for i in range(len(y)):
        if i >= max(skip, 1):
            lower, upper = model.predict_interval(X[i : i + 1], coverage)
            hits.append((lower <= y[i]) & (y[i] <= upper))
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return np.mean(hits)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_cover_exactly_from_the_second_row_on_where_the_model_is_true(coverage):
    """Weights from the prior, and few rows compared with the number of weights: intervals must include both."""
    rng, rounds = np.random.default_rng(0), 150
    hits = []
    for _ in range(rounds):
        X, w = rng.normal(size=(25, 10)), rng.normal(size=10)
        y = 3.0 * (X @ w / np.sqrt(2.0) + rng.normal(size=25))
        hits.append(covered(papers(alpha=2.0, fit_intercept=False), X, y, coverage))
    assert np.mean(hits) == pytest.approx(coverage, abs=4 * np.sqrt(coverage * (1 - coverage) / (24 * rounds)))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("weights", [[0.01], [1.0], [100.0], [0.01, 0.1, 1.0, 10.0, 100.0]], ids=str)
def test_intervals_are_for_rows_of_weight_1_whatever_the_weights_of_those_learned(free, weights):
    """y ~ N(u.x, 1 / h), u from the prior, which says nothing of a free intercept."""
    rng, rounds, hits, variances = np.random.default_rng(0), 300, [], []
    for _ in range(rounds):
        X, w, h = rng.normal(size=(40, 4)), rng.normal(size=4), rng.choice(weights, size=40)
        y = X @ w + 7.0 * free + rng.normal(size=40) / np.sqrt(h)
        model = papers(fit_intercept=free, penalize_intercept=False).fit(X, y, sample_weight=h)
        queries = rng.normal(size=(20, 4))
        lower, upper = model.predict_interval(queries, coverage=0.9)
        outcome = queries @ w + 7.0 * free + rng.normal(size=20)
        hits.append(((lower <= outcome) & (outcome <= upper)).mean())
        variances.append(model.noise_variance_)
    assert np.mean(hits) == pytest.approx(0.9, abs=4 * np.std(hits) / np.sqrt(rounds))
    assert np.mean(variances) == pytest.approx(1.0, abs=0.06)


def test_intervals_cover_where_a_series_drifts_and_where_targets_are_far_from_zero():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 3))
    w = np.cumsum(0.02 * rng.normal(size=(3000, 3)), axis=0)
    y = (X * w).sum(axis=1) + 0.5 * rng.normal(size=3000)
    assert covered(papers(forgetting=0.98), X, y, 0.9) == pytest.approx(0.9, abs=0.025)
    far = papers(penalize_intercept=False)
    assert covered(far, X + 50, 1000 + X @ [1, 2, 3] + rng.normal(size=3000), 0.9) == pytest.approx(0.9, abs=0.025)


@pytest.mark.skipif(DATA is None, reason="the data sets are not here")
@pytest.mark.parametrize(("name", "found"), [("abalone", 0.91), ("winequality_white", 0.90)])
def test_intervals_cover_on_real_sets(name, found):
    X, y = load_dataset(name, return_X_y=True)
    X = np.array([[float(v) if not isinstance(v, str) else float(v == "M") for v in row] for row in X])
    order = np.random.default_rng(0).permutation(len(y))
    share = covered(papers(standardize=True), X[order], scale(y.astype(float))[order], 0.9, skip=100)
    assert share == pytest.approx(found, abs=0.02)


# --- an intercept without a penalty -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_targets", [None, 3])
def test_with_a_free_intercept_the_weights_are_those_of_ridge_regression(n_targets):
    X, y = some_rows(200, 6, n_targets)
    X, y = X + 3.0, y + 100.0
    model = papers(alpha=5.0, penalize_intercept=False).fit(X, y)
    ridge = Ridge(alpha=5.0, solver="svd").fit(X, y)
    assert_allclose(model.coef_, ridge.coef_, rtol=1e-9)
    assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-9)


@settings(max_examples=40)
@given(seed=seeds, rows=st.integers(1, 20), d=st.integers(1, 4), weighted=st.booleans())
def test_a_free_intercept_is_the_limit_of_a_small_penalty(seed, rows, d, weighted):
    """In all numbers, including the first row, the regret and its bound."""
    rng = np.random.default_rng(seed)
    X, y = some_rows(rows, d, seed=seed)
    h = rng.choice([0.5, 1.0, 3.0], size=rows) if weighted else np.ones(rows)
    A, b = np.diag(np.r_[np.ones(d), 1e-9]), np.zeros(d + 1)
    loss = bound = 0.0
    model = papers(penalize_intercept=False)
    for i, x in enumerate(np.c_[X, np.ones(rows)]):
        A = A + h[i] * np.outer(x, x)
        expected = x @ np.linalg.solve(A, b)
        if i:
            found = model.predict(X[i : i + 1]) if h[i] == 1 else [expected]
            assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        loss += h[i] * (expected - y[i]) ** 2 / 2
        bound += h[i] ** 2 * y[i] ** 2 * (x @ np.linalg.solve(A, x)) / 2
        b = b + h[i] * y[i] * x
        model.partial_fit(X[i : i + 1], y[i : i + 1], h[i : i + 1])
    u = np.linalg.solve(A, b)
    best = (h * (np.c_[X, np.ones(rows)] @ u - y) ** 2).sum() / 2 + (u[:-1] ** 2).sum() / 2
    assert model.cumulative_loss_ == pytest.approx(loss, rel=1e-5, abs=1e-6)
    assert model.regret_ == pytest.approx(loss - best, rel=1e-5, abs=1e-6)
    assert model.regret_bound_ == pytest.approx(bound, rel=1e-5, abs=1e-6)
    assert model.regret_ <= model.regret_bound_ + 1e-9


def test_with_a_free_intercept_ridge_predictions_follow_shifts_of_the_targets():
    X, y = some_rows(50, 3)
    one = papers(forward=False, penalize_intercept=False).fit(X, y)
    two = papers(forward=False, penalize_intercept=False).fit(X, y + 1e6)
    assert_allclose(two.predict(X) - 1e6, one.predict(X), atol=1e-8)
    assert two.noise_variance_ == pytest.approx(one.noise_variance_, rel=1e-6)


def test_rows_that_overflow_are_refused_with_a_free_intercept_too(unchanged):
    X, y = some_rows(10)
    bad = X.copy()
    bad[0, 1] = 1e200
    fresh = papers(penalize_intercept=False)
    with unchanged(fresh, "Row 0 "):
        fresh.partial_fit(bad, y)
    fresh.partial_fit(X, y)
    with unchanged(fresh, "Row 0 "):
        fresh.partial_fit(bad, y)
