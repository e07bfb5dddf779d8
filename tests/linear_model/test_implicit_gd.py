"""ImplicitGDRegressor: what it finds, and the fast path of every linear model. Its step: `test_reference.py`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor
from onlinebregman.divergences import SquaredEuclidean

REGRESSORS = [ImplicitGDRegressor(), BurgRegressor(), EGRegressor()]
every = pytest.mark.parametrize("model", REGRESSORS, ids=repr)


def some_rows(n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.linspace(0.1, 0.4, d) + 0.01 * rng.normal(size=n)


# --- learning -------------------------------------------------------------------------------------------------------


def test_init_is_where_it_starts(unchanged):
    X, y = some_rows()
    start = np.array([1.0, -1.0, 2.0, 0.0])
    model = ImplicitGDRegressor(init=start, eta0=1e-300).partial_fit(X, y)
    assert_allclose(model.coef_, start, atol=1e-200)
    assert_allclose(ImplicitGDRegressor(init=0.5, eta0=1e-300).partial_fit(X, y).coef_, np.full(4, 0.5))
    assert_allclose(ImplicitGDRegressor(init=start.tolist(), eta0=1e-300).partial_fit(X, y).coef_, start, atol=1e-200)
    model.partial_fit(X, y)
    assert_array_equal(start, [1.0, -1.0, 2.0, 0.0])  # the caller's array is unchanged
    for bad, match in [
        ([1.0, 2.0], "init must have one weight for each of the . features; got shape"),
        (np.ones((2, 4)), "init must have one weight for each of the . features; got shape"),
        ([1.0, np.nan, 1.0, 1.0], r"init contains NaN \(row 1\)"),
        (np.inf, "init"),
    ]:
        with unchanged(wrong := ImplicitGDRegressor(init=bad), match):
            wrong.partial_fit(X, y)
    assert SquaredEuclidean() == model.divergence_


# --- the fast path ----------------------------------------------------------------------------------------------------


@every
def test_plain_arrays_go_straight_to_the_kernel(model, no_validation, learned):
    X, y = some_rows()
    reference = clone(model).partial_fit(X.tolist(), y.tolist()).partial_fit(X.tolist(), y.tolist())
    predictions = reference.predict(X.tolist())
    fast = clone(model).partial_fit(X, y)
    no_validation()
    for i in range(len(y)):
        fast.partial_fit(X[i : i + 1], y[i : i + 1])
    assert learned(fast) == learned(reference)
    assert_array_equal(fast.predict(X), predictions)
    fast.predict(X.astype(np.float32))
    fast.partial_fit(X.astype(np.float32), y)
    fast.partial_fit(np.asfortranarray(X), y.tolist()).partial_fit(X.astype(int), y.astype(np.float32))
    fast.partial_fit(X, y, np.ones(len(y)))


@every
@pytest.mark.parametrize(
    "change",
    [
        {"eta0": 0.01},
        {"learning_rate": "strongly_convex"},
        {"update": "explicit"},
        {"fit_intercept": False},
        {"average": 3},
    ],
    ids=str,
)
def test_a_changed_parameter_is_taken_up_by_the_very_next_row(model, change, learned, no_validation):
    X, y = some_rows()
    X, y = 0.1 * X, 0.1 * y
    fast, slow, same = (clone(model).partial_fit(X, y).partial_fit(X, y) for _ in range(3))
    fast.set_params(**change).partial_fit(X[:1], y[:1]).partial_fit(X[1:], y[1:])
    slow.set_params(**change).partial_fit(X.tolist(), y.tolist())
    assert learned(fast) == learned(slow)
    assert learned(same.partial_fit(X, y)) != learned(fast)
    no_validation()
    fast.partial_fit(X, y)  # and the fast path is used again


@every
def test_rows_that_overflow_are_refused_though_every_value_is_finite(model, unchanged):
    X, y = some_rows()
    model = clone(model).set_params(init=1.0, eta0=1e-6)
    if isinstance(model, EGRegressor):
        model.set_params(total=10.0)
    model.partial_fit(X, y)
    for rows in (np.full((2, 4), 1e308), np.full((2, 4), 1e308).tolist()):
        with unchanged(model, "row 0"):
            model.partial_fit(rows, np.zeros(2))
