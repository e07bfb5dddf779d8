"""BurgRegressor: the implicit step, the papers' Algorithm 1 with its adaptive rate, and the bound on the weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from onlinebregman import BurgRegressor
from onlinebregman.reference import BurgGradient


class AlgorithmOne(BurgGradient):
    """With a schedule, and the history of the rate."""

    def __init__(self, w, eta0, *, power=0.0, upper=1.0, sum_bound=0.0, fit_intercept=False):
        super().__init__(w, upper, sum_bound, fit_intercept)
        self.eta0, self.power, self.noted, self.history, self.t = eta0, power, np.inf, [], 0

    def learn(self, x, y):
        self.t += 1
        eta, before = self.eta0 / self.t**self.power, self.rate
        super().learn(x, y, eta)
        if self.cap < min(before, eta) and self.cap <= 0.9 * self.noted:
            self.noted = self.cap
            self.history.append((self.t, self.cap))


def positive_rows(rng, n, d, size=1.0):
    X = rng.uniform(size=(n, d)) * size
    return X, X @ rng.uniform(0.0, 0.9, size=d)


def gradient(**parameters):
    defaults = {"update": "gradient", "eta0": 1e6, "learning_rate": "constant", "fit_intercept": False}
    return BurgRegressor(**{**defaults, **parameters})


# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 30),
    size=st.sampled_from([0.01, 1.0, 300.0]),
    eta0=st.sampled_from([1e6, 0.05]),
    power=st.sampled_from([0.0, 0.5]),
    upper=st.sampled_from([1.0, 3.0, 0.2]),
    sum_bound=st.sampled_from([None, 2.0]),
    intercept=st.booleans(),
    density=st.sampled_from([None, 0.4]),
    at_bound=st.booleans(),
)
def test_it_is_the_papers_algorithm(seed, d, size, eta0, power, upper, sum_bound, intercept, density, at_bound):
    """Also from weights at their bound, which must still be able to change."""
    rng = np.random.default_rng(seed)
    X, y = positive_rows(rng, 200, d, size)
    if density:
        X *= rng.uniform(size=X.shape) < density
    y *= rng.uniform(0.5, 1.5, size=200)
    eta0 /= size**2
    start = np.full(d, upper if at_bound else min(1.0 / d, upper))
    replica = AlgorithmOne(start, eta0, power=power, upper=upper, sum_bound=sum_bound or 0.0, fit_intercept=intercept)
    model = gradient(
        eta0=eta0,
        learning_rate="sqrt" if power else "constant",
        upper_bound=None if upper == 1.0 else upper,
        init=upper if at_bound else None,
        sum_bound=sum_bound,
        fit_intercept=intercept,
    )
    rows = X if density is None else sparse.csr_array(X)
    for i in range(200):
        replica.learn(X[i], y[i])
        model.partial_fit(rows[i : i + 1], y[i : i + 1])
        assert_allclose(model.coef_, replica.w, rtol=1e-9)
        assert_allclose(model.intercept_, replica.b, rtol=1e-9, atol=1e-9 * y.max())
        assert_allclose(model.eta_, min(replica.rate, eta0 / (i + 2) ** power), rtol=1e-9)
        assert model.coef_.min() > 0 and model.coef_.max() <= upper
    assert_allclose(model.eta_history_, np.reshape(replica.history, (-1, 2)), rtol=1e-9)
    assert model.eta_ > 0
    whole = clone(model).partial_fit(rows, y)  # the same in one call as carried over from call to call
    assert_array_equal(whole.eta_history_, model.eta_history_)
    assert_array_equal(whole.coef_, model.coef_)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_target_near_the_largest_possible_does_not_freeze_it(layout):
    """As published, the rate stays 0 once a weight is at its bound; a target near w = 1 causes that in 100 rows."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(3000, 4))
    u = np.array([0.999, 0.999, 0.2, 0.1])
    model = gradient().partial_fit(layout(X), X @ u)
    assert model.eta_ > 1e-3 and (model.coef_ <= 1).all()
    before = np.abs(model.coef_ - u).max()
    assert before < 0.25
    for _ in range(20):
        model.partial_fit(layout(X), X @ u)
    assert np.abs(model.coef_ - u).max() < before / 2


@pytest.mark.parametrize("weight", [0.1, 3.0, 100.0])
def test_a_weighted_row_stays_inside_the_bound_and_does_not_freeze_it(weight):
    X, _ = positive_rows(np.random.default_rng(7), 2000, 4)
    u = np.array([0.9, 0.1, 0.5, 0.7])
    model = gradient()
    for start in range(0, 2000, 50):
        rows = slice(start, start + 50)
        model.partial_fit(X[rows], X[rows] @ u, sample_weight=np.full(50, weight))
        assert (model.coef_ > 0).all() and (model.coef_ <= 1).all() and model.eta_ > 0
    assert np.abs(model.coef_ - u).max() < np.abs(0.25 - u).max() / 2


def test_negative_rows_and_targets_are_refused_by_name(unchanged):
    X = np.full((3, 2), 0.5)
    model = gradient().partial_fit(X, X.sum(axis=1))
    bad = X.copy()
    bad[1, 0] = -1e-9
    for rows in (bad, sparse.csr_array(bad), bad.tolist()):
        with unchanged(model, r"Negative values in data.*row 1"):
            model.partial_fit(rows, np.ones(3))
    with unchanged(model, r"Negative values in data.*row 2"):
        model.partial_fit(X, [1.0, 1.0, -1e-9])
    model.partial_fit(X, [0.0, 0.0, -0.0])
    assert model.set_params(update="implicit").partial_fit(bad, -np.ones(3)).coef_.min() > 0


# --- the implicit step ------------------------------------------------------------------------------------------------


def test_the_explicit_step_is_refused_where_it_leaves_the_positive_weights(unchanged):
    model = BurgRegressor(update="explicit", eta0=1.0, learning_rate="constant", fit_intercept=False, init=1.0)
    model.partial_fit([[1.0, 1.0]], [2.0])
    with unchanged(model, r"At row 1 \(target 4\).*leaves the domain 'w > 0'.*update='implicit'"):
        model.partial_fit([[1.0, 1.0], [1.0, 1.0]], [2.0, 4.0])  # 1 + c x w = 1 - 2
    with unchanged(model, "leaves the domain"):
        model.partial_fit([[1.0, 1.0]], [3.0])  # 1 + c x w = 0 exactly
    assert_allclose(model.partial_fit([[1.0, 1.0]], [2.9]).coef_, [10.0, 10.0], rtol=1e-12)


# --- the bound --------------------------------------------------------------------------------------------------------


def test_the_bound_holds_and_is_read_at_each_call():
    rng = np.random.default_rng(9)
    X = rng.uniform(size=(500, 3))
    y = X @ [2.0, 0.5, 0.1]
    model = BurgRegressor(upper_bound=1.0, eta0=10.0, fit_intercept=False)
    for bound, reached in ((1.0, 0.7), (1.5, 1.0), (None, 1.9), (0.25, 0.2)):
        model.set_params(upper_bound=bound)
        largest = [model.partial_fit(X[i : i + 1], y[i : i + 1]).coef_.max() for i in range(500)]
        assert max(largest) == (bound or pytest.approx(2.0, abs=0.2))
        assert largest[-1] > reached
