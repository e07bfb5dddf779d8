"""EGRegressor: its three kinds of weights, their start, and the advantage of exponentiated gradient."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from replica import Replica
from scipy import sparse

from onlinebregman import EGRegressor

kinds = pytest.mark.parametrize("weights", ["signed", "simplex", "positive"])


def some_rows(n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.dirichlet(np.ones(d)) + 0.1 * rng.normal(size=n)


def start_of(X, y, **parameters):
    return EGRegressor(eta0=1e-300, **parameters).partial_fit(X, y).coef_


def test_init_of_each_kind():
    X, y = some_rows(1)
    assert_allclose(start_of(X, y, weights="positive", init=[1.0, 0.1, 7.0, 1e-9]), [1.0, 0.1, 7.0, 1e-9], rtol=1e-14)
    assert_allclose(start_of(X, y, weights="positive", init=0.4), np.full(4, 0.4), rtol=1e-14)
    assert_allclose(start_of(X, y, weights="simplex", init=[0.1, 0.2, 0.3, 0.4]), [0.1, 0.2, 0.3, 0.4], rtol=1e-14)
    assert_allclose(start_of(X, y, weights="simplex", init=0.5, total=2.0), np.full(4, 0.5), rtol=1e-14)
    signed = [0.3, -0.2, 0.0, 0.1]
    assert_allclose(start_of(X, y, weights="signed", init=signed), signed, rtol=1e-14, atol=1e-16)
    assert_allclose(start_of(X, y, weights="signed", init=signed, total=0.61), signed, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize(
    "weights, init, match",
    [
        ("positive", [1.0, 0.0, 1.0, 1.0], r"init must be > 0 .*; got init\[1\] = 0"),
        ("positive", [1.0, 1.0, -0.5, 1.0], r"init\[2\] = -0.5"),
        ("positive", [1.0, 1.0], "init must have one weight for each of the 4 features; got shape"),
        ("simplex", [0.5, 0.5, 0.5, 0.5], "init must sum to total=1; got a sum of 2"),
        ("simplex", 0.3, "init must sum to total=1; got a sum of 1.2"),
        ("simplex", [1.0, 0.0, 0.0, 0.0], r"init\[1\] = 0"),
        ("simplex", [np.nan, 0.5, 0.25, 0.25], r"init contains NaN \(row 0\)"),
        ("signed", [0.5, -0.5, 0.0, 0.0], "absolute values of init must sum to less than total=1, .*; got 1"),
        ("signed", [0.5, -0.9, 0.0, 0.0], "absolute values of init must sum to less than total=1, .*; got 1.4"),
        ("signed", [0.1, np.inf, 0.0, 0.0], r"init contains infinity \(row 1\)"),
    ],
)
def test_a_start_that_cannot_be_is_refused(weights, init, match, unchanged):
    X, y = some_rows()
    model = EGRegressor(weights=weights, init=init)
    with unchanged(model, match):
        model.partial_fit(X, y)
    with unchanged(model, match):
        model.fit(X, y)


def far_rows(seed, n=100, d=5):
    """Rows that move the logarithms of weights by thousands."""
    rng = np.random.default_rng(seed)
    X = 100 * rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.7)
    return X, X @ rng.normal(size=d) + rng.normal(size=n)


FAR = {"eta0": 0.1, "learning_rate": "constant"}


@pytest.mark.parametrize(
    ("weights", "update"),
    [
        ("simplex", "implicit"),
        ("simplex", "explicit"),
        ("signed", "implicit"),
        ("signed", "explicit"),
        ("positive", "implicit"),  # its explicit steps overflow
    ],
)
def test_weights_below_the_floor_come_back_as_in_the_log_domain(weights, update):
    deepest = 0.0
    for seed in range(3):
        X, y = far_rows(seed)
        divergence = "relative_entropy" if weights == "positive" else "simplex_entropy"
        start = np.zeros(5) if weights == "signed" else np.full(5, 0.2)
        replica = Replica(divergence, "squared_error", update, start, eta0=0.1, signed=weights == "signed")
        models = [EGRegressor(weights=weights, update=update, **FAR) for _ in range(2)]
        expected, found = [], ([], [])
        for i in range(len(y)):
            replica.learn(X[i], y[i])
            expected.append([*replica.coef, replica.b])
            for model, layout, values in zip(models, (np.asarray, sparse.csr_array), found, strict=True):
                model.partial_fit(layout(X[i : i + 1]), y[i : i + 1])
                values.append([*model.coef_, model.intercept_])
        w, b = np.array(expected)[:, :-1], np.array(expected)[:, -1]
        size = np.abs(w).max(axis=1, keepdims=True)
        for values in map(np.array, found):
            assert (np.abs(values[:, :-1] - w) <= 1e-8 * np.abs(w) + 1e-8 * size + 1e-300).all(), f"seed {seed}"
            assert_allclose(values[:, -1], b, rtol=1e-8, atol=1e-8)
        deepest = min(deepest, -np.ptp(replica.theta) if weights != "positive" else replica.theta.min())
    assert deepest < -1000


@pytest.mark.parametrize("share", [1e-3, 1e-9, 1e-13, 1e-40])
@pytest.mark.parametrize("update", ["implicit", "explicit"])
def test_a_sparse_row_that_holds_almost_all_the_weight_is_the_dense_row(share, update):
    """The sum of the other weights limits the fall of the row's weight; computed as a difference it would be lost."""
    start = np.array([1.0, share, 2 * share, 3 * share])
    parameters = {"weights": "simplex", "init": start / start.sum(), "update": update, "fit_intercept": False}
    x = np.array([[20.0, 0.0, 0.0, 0.0]])
    for eta0 in (1e-3, 0.1, 1.0) if update == "implicit" else (1e-3, 0.01, 0.1):
        dense = EGRegressor(eta0=eta0, **parameters).partial_fit(x, [0.0])
        from_sparse = EGRegressor(eta0=eta0, **parameters).partial_fit(sparse.csr_array(x), [0.0])
        assert_allclose(from_sparse.coef_, dense.coef_, rtol=1e-9)
        assert_allclose(from_sparse.coef_.sum(), 1.0, rtol=1e-12)
