"""ForwardRegressor: the algorithm against direct solutions, its regret bound, several targets, and its stability."""

import copy
import pickle

import numpy as np
import pytest
from forward_replica import Replica, papers, some_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows

seeds = st.integers(0, 2**32 - 1)


# --- the algorithm ----------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    seed=seeds,
    d=st.integers(1, 12),
    n_targets=st.sampled_from([None, 1, 3]),
    rows=st.integers(1, 30),
    alpha=st.floats(-2, 3).map(lambda power: 10.0**power),
    gamma=st.sampled_from([1.0, 0.9]),
    fit_intercept=st.booleans(),
    forward=st.booleans(),
    weighted=st.booleans(),
)
def test_it_is_the_algorithm_by_its_formulas(seed, d, n_targets, rows, alpha, gamma, fit_intercept, forward, weighted):
    rng = np.random.default_rng(seed)
    X, y = some_rows(rows, d, n_targets, seed)
    h = rng.choice([0.5, 1.0, 2.0, 7.3], size=rows) if weighted else np.ones(rows)
    rows_with_1 = np.c_[X, np.ones(rows)] if fit_intercept else X
    replica = Replica(rows_with_1.shape[1], n_targets or 1, alpha, forward, gamma)
    model = papers(alpha=alpha, forward=forward, forgetting=gamma, fit_intercept=fit_intercept)
    for i, x in enumerate(rows_with_1):
        if i:
            expected = replica.predict(x)
            assert_allclose(model.predict(X[i : i + 1]).ravel(), expected, rtol=1e-10, atol=1e-11)
        replica.learn(x, np.atleast_1d(y[i]), h[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1], h[i : i + 1] if weighted else None)
        found = np.column_stack([np.reshape(model.coef_, (-1, d)), np.reshape(model.intercept_, (-1, 1))])
        assert_allclose(found[:, : d + fit_intercept].T, replica.w, rtol=1e-10, atol=1e-11)
    assert model.cumulative_loss_ == pytest.approx(replica.loss, rel=1e-10)
    if forward:
        assert model.regret_bound_ == pytest.approx(replica.bound, rel=1e-10)
    assert model.regret_ == pytest.approx(replica.recent - replica.hindsight, rel=1e-10, abs=1e-11 * replica.loss)
    assert model.t_ == rows and (fit_intercept or not np.any(model.intercept_))


# --- the theorem ------------------------------------------------------------------------------------------------------


def test_a_bound_is_lost_with_the_first_ridge_prediction():
    X, y = some_rows(40, 3)
    model = papers().partial_fit(X[:10], y[:10])
    bound = model.regret_bound_
    model.set_params(forward=False)  # it has learned nothing
    assert model.regret_bound_ == bound
    with pytest.raises(ValueError, match="overflow"):
        model.partial_fit(np.full((1, 3), 1e200), [1.0])
    model.partial_fit(X[10:11], y[10:11], sample_weight=[0.0])
    assert model.regret_bound_ == bound
    for rows in (slice(10, 11), slice(11, 12)):  # with and without validation
        one = copy.deepcopy(model)
        one.partial_fit(X[rows].tolist() if rows.start == 10 else X[rows], y[rows]).set_params(forward=True)
        one.partial_fit(X[20:], y[20:])
        for twin in (one, pickle.loads(pickle.dumps(one))):
            with pytest.raises(AttributeError, match="1 of 31 rows were predicted with forward=False"):
                _ = twin.regret_bound_
    model.set_params(forward=True).fit(X, y)
    assert model.regret_ <= model.regret_bound_


# --- several targets --------------------------------------------------------------------------------------------------


def test_targets_keep_their_shape_in_mid_stream(unchanged):
    X, y = some_rows(20, 3)
    two = np.c_[y, y]
    for first, others, said in [
        (y, [y[:, None], two], r"y should be 1d, of shape \(n_samples,\)"),
        (y[:, None], [y, two], r"y should be 2d, of shape \(n_samples, 1\)"),
        (two, [y, y[:, None], np.c_[two, y]], r"y should be 2d, of shape \(n_samples, 2\)"),
    ]:
        model = papers(warm_start=True).partial_fit(X, first)
        for other in others:
            with unchanged(model, said):
                model.partial_fit(X, other)
            with unchanged(model, said):
                model.fit(X, other)
            assert clone(model).set_params(warm_start=False).fit(X, other).predict(X).shape == other.shape
    for bad, said in [(np.zeros((20, 2, 2)), "dim 3"), (np.zeros((20, 0)), "0 feature"), (1.0, "y|Singleton")]:
        with unchanged(model, said, (ValueError, TypeError)):
            model.partial_fit(X, bad)
    with unchanged(model, "y must be dense"):
        model.partial_fit(X, sparse.csr_array(two))
    two[7, 1] = np.nan
    with unchanged(model, r"y contains NaN \(row 7, column 1\)"):
        model.partial_fit(X, two)


# --- stability --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "badly scaled", "far from zero", "nearly collinear"])
def test_a_million_rows_leave_no_drift(kind):
    rng = np.random.default_rng(7)
    n, d = 1_000_000, 5
    X = rng.normal(size=(n, d))
    scale = np.ones(d)
    if kind == "badly scaled":
        scale = 10.0 ** np.array([-4, 4, 0, -2, 2])
    if kind == "far from zero":
        X += 100.0
    if kind == "nearly collinear":
        X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
    y = X @ [1.0, -2.0, 0.5, 3.0, 0.1] + rng.normal(size=n)
    X *= scale
    model = papers(fit_intercept=False)
    for start in range(0, n, 100_000):
        model.partial_fit(X[start : start + 100_000], y[start : start + 100_000])

    # a direct solution, with columns scaled to one size
    Z, penalty = X / scale, np.diag(1.0 / scale)
    fresh = np.linalg.lstsq(np.r_[Z, penalty], np.r_[y, np.zeros(d)], rcond=None)[0] / scale
    tolerance = {"plain": 1e-12, "badly scaled": 1e-12, "far from zero": 1e-11, "nearly collinear": 1e-10}[kind]
    assert_allclose(model.coef_, fresh, rtol=tolerance)

    # and the matrix is still positive definite: forward / ridge predictions are 1 / (1 + x'A^-1 x)
    queries = np.r_[np.eye(d), Z[:20]]
    leverage = (queries * np.linalg.solve(Z.T @ Z + penalty**2, queries.T).T).sum(axis=1)
    forward = model.predict(queries * scale)
    ridge = model.set_params(forward=False).predict(queries * scale)
    assert ((forward / ridge > 0) & (forward / ridge <= 1)).all()
    assert_allclose(ridge / forward - 1, leverage, rtol=1e-6, atol=1e-12)
