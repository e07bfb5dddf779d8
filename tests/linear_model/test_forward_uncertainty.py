"""ForwardRegressor: noise variance, standard deviations and intervals, and an intercept without a penalty."""

import re
from functools import partial
from itertools import product

import numpy as np
import pytest
from forward_replica import Replica as WithBound
from forward_replica import papers, some_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.sparse import csr_array

from onlinebregman.reference import ForwardRegression

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

seeds = st.integers(0, 2**32 - 1)


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


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("free", [False, True])
def test_before_there_are_errors_nothing_is_known_of_the_noise(free, gamma):
    """A free intercept is determined by the first row, which leaves no error."""
    X, y = some_rows(5)
    model = papers(penalize_intercept=not free, forgetting=gamma)
    for h in (0.0, 3.0, 0.0)[: 3 if free else 1]:
        model.partial_fit(X[:1], y[:1], sample_weight=[h])
        prediction, std = model.predict(X, return_std=True)
        assert model.noise_variance_ == np.inf and (std == np.inf).all()
        assert model.t_ or (prediction == 0).all()
        lower, upper = model.predict_interval(X)
        assert (lower == -np.inf).all() and (upper == np.inf).all()
    assert not free or np.isfinite(model.partial_fit(X[1:2], y[1:2]).predict_interval(X)).all()


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
    questions = (model.predict, partial(model.predict, return_std=True), model.predict_interval)
    for forward, ask, form in product((True, False), questions, (np.asarray, np.ndarray.tolist, csr_array)):
        model.set_params(forward=forward)
        with unchanged(model, re.escape("The prediction for row 3 (largest feature 1e+308) is not finite")):
            ask(form(bad))
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


# --- an intercept without a penalty -----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(seed=seeds, rows=st.integers(1, 20), d=st.integers(1, 4), weighted=st.booleans())
def test_a_free_intercept_is_the_limit_of_a_small_penalty(seed, rows, d, weighted):
    """In all numbers, including the first row, the regret and its bound."""
    rng = np.random.default_rng(seed)
    X, y = some_rows(rows, d, seed=seed)
    h = rng.choice([0.5, 1.0, 3.0], size=rows) if weighted else np.ones(rows)
    limit, model = WithBound(d + 1, 1, 1.0, free=1e-9), papers(penalize_intercept=False)
    for i, x in enumerate(np.c_[X, np.ones(rows)]):
        if i and h[i] == 1:
            assert_allclose(model.predict(X[i : i + 1]), limit.predict(x), rtol=1e-5, atol=1e-6)
        limit.learn(x, y[i : i + 1], h[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], h[i : i + 1])
    assert model.cumulative_loss_ == pytest.approx(limit.loss, rel=1e-5, abs=1e-6)
    assert model.regret_ == pytest.approx(limit.loss - limit.hindsight, rel=1e-5, abs=1e-6)
    assert model.regret_bound_ == pytest.approx(limit.bound, rel=1e-5, abs=1e-6)
    assert model.regret_ <= model.regret_bound_ + 1e-9
