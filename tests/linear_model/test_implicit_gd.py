"""ImplicitGDRegressor: where it starts. Its step: `test_reference.py`."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from onlinebregman import ImplicitGDRegressor
from onlinebregman.divergences import SquaredEuclidean


def some_rows(n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.linspace(0.1, 0.4, d) + 0.01 * rng.normal(size=n)


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
