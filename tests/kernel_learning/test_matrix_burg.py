"""MatrixBurgRegressor: the algorithm against NumPy, its invariant 0 < W < I, its rate, drift, and its targets."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.matrices.matrix_burg import projected_step

from onlinebregman import BurgRegressor, MatrixBurgRegressor
from onlinebregman.divergences import LogDet
from onlinebregman.reference import matrix_burg_step


def algorithm(W, rows, targets):
    """The last W, and the rates."""
    rates, radius = [np.inf], np.maximum.accumulate(np.linalg.norm(rows, axis=1))
    for z, y, R in zip(rows, targets, radius, strict=True):
        W, rate = matrix_burg_step(W, z, y, rates[-1], R)
        rates.append(rate)
    return W, np.array(rates[1:])


def stream(rng, n, d, reach=1.0):
    rows = rng.normal(size=(n, d))
    return rows, reach * rng.uniform(size=n) * (rows**2).sum(axis=1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.floats(0.1, 1.5))
def test_the_algorithm_with_matrix_inverses(seed, d, reach):
    rows, targets = stream(np.random.default_rng(seed), 40, d, reach)
    model = MatrixBurgRegressor().partial_fit(rows, targets)
    W, rates = algorithm(np.eye(d) * min(1 / d, 0.9), rows, targets)
    assert_allclose(model.kernel_, W, rtol=1e-7, atol=1e-9)
    noted = [0]  # the rate is recorded where it has fallen by a tenth
    for t in range(1, len(rates)):
        if rates[t] <= 0.9 * rates[noted[-1]]:
            noted.append(t)
    assert_array_equal(model.eta_history_[:, 0], np.add(noted, 1))
    assert_allclose(model.eta_history_[:, 1], rates[noted], rtol=1e-6)
    assert_allclose(model.eta_, rates[-1], rtol=1e-6)


def test_diagonal_matrices_are_the_vector_algorithm():
    """Rows along the axes: z'Wz = z_i^2 W_ii, so that W_ii are the weights of features z^2 of BurgRegressor."""
    rng = np.random.default_rng(0)
    d = 4
    rows = np.eye(d)[rng.integers(0, d, size=300)]
    targets = rng.uniform(0, 0.9, size=300)
    model = MatrixBurgRegressor(eta0=0.02).partial_fit(rows, targets)
    vector = BurgRegressor(update="gradient", eta0=0.02, learning_rate="constant", fit_intercept=False)
    vector.partial_fit(rows, targets)
    assert_allclose(model.kernel_, np.diag(vector.coef_), rtol=1e-12)


def test_hard_streams_stay_between_zero_and_identity():
    """Rows of very different sizes, targets of 0 or unattainable: the rate falls, W stays in its domain."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(2000, 5)) * 10.0 ** rng.uniform(-3, 0, size=(2000, 1))
    targets = rng.choice([0.0, 1.0, 1e3], size=2000)
    model = MatrixBurgRegressor()
    for part in np.split(np.arange(2000), 20):
        model.partial_fit(rows[part], targets[part])
        values = np.linalg.eigvalsh(model.kernel_)
        assert values[0] > 0 and values[-1] < 1
    assert (np.diff(model.eta_history_[:, 1]) < 0).all()


def test_the_same_row_out_of_reach_for_ever():
    model = MatrixBurgRegressor().partial_fit(np.tile([1.0, 1.0], (2000, 1)), np.full(2000, 5.0))
    values = np.linalg.eigvalsh(model.kernel_)
    assert_allclose(values, [0.5, 1.0], rtol=1e-6)
    assert values[1] < 1
    assert model.partial_fit([[1.0, 1.0]], [0.0]).predict([[1.0, 1.0]])[0] < 2.0


def dual_of(model):
    """N as stored by the learner, and as computed from W."""
    W = model.kernel_
    d = len(W)
    return np.triu(model._learner.geometry._arguments()[0][d : 2 * d]), np.triu(np.linalg.inv(np.eye(d) - W) @ W)


def test_the_dual_does_not_drift():
    """It is recomputed every 1000 rows; the errors of rank-one updates alone would be ten times as large."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(60_000, 6))
    model = MatrixBurgRegressor().partial_fit(rows, rng.choice([0.0, 0.9], size=60_000) * (rows**2).sum(axis=1))
    kept, expected = dual_of(model)
    assert np.abs(kept - expected).max() < 5e-15 * expected.max()


def test_near_the_bound_there_is_room_left():
    """Rows in the direction at its bound, small or large, do not change it further."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3500, 6))
    model = MatrixBurgRegressor().partial_fit(rows, 0.999 * (rows**2).sum(axis=1))
    assert 1e-10 < 1 - np.linalg.eigvalsh(model.kernel_)[-1] < 1e-6
    kept, expected = dual_of(model)
    assert_allclose(kept, expected, atol=1e-3 * expected.max())


def test_the_certificate_is_the_sum_of_what_the_steps_were():
    rows, targets = stream(np.random.default_rng(5), 30, 3, 0.8)
    model, W, expected = MatrixBurgRegressor(track_regret=True), np.eye(3) / 3, 0.0
    for t in range(30):
        model.partial_fit(rows[t : t + 1], targets[t : t + 1])
        expected += model.divergence_.divergence(W, model.kernel_)
        W = model.kernel_
    U = np.diag([0.9, 0.3, 0.5])
    distance = model.divergence_.divergence
    assert_allclose(
        model.regret_bound(U, weighted=True), distance(U, np.eye(3) / 3) - distance(U, W) + expected, rtol=1e-8
    )
    first, last = 1 / (2 * (rows[0] @ rows[0]) ** 2), model.eta_
    assert model.loss_bound(U, 2.0) <= 2 * first / last * 2.0 + distance(U, np.eye(3) / 3) / last * (1 + 1e-9)
    untracked = MatrixBurgRegressor().partial_fit(rows, targets)
    assert_array_equal(untracked.kernel_, model.kernel_)
    with pytest.raises(ValueError, match="track_regret=True"):
        untracked.regret_bound(U, weighted=True)
    with pytest.raises(ValueError, match="eigenvalues from"):
        model.loss_bound(2 * U)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 6),
    power=st.floats(-3, 9),
    at_bound=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_the_projected_step_is_the_constrained_minimum(seed, d, power, at_bound):
    """V^-1 has the eigenvalues of W^-1 + c z z', raised to those of the bound; and the gain that the theorem needs."""
    rng, upper, c = np.random.default_rng(seed), 1 - 1e-8, -(10.0**power)
    vectors = np.linalg.qr(rng.normal(size=(d, d)))[0]
    W = (vectors * np.where(rng.random(d) < at_bound, upper, upper * 10 ** rng.uniform(-3, 0, d))) @ vectors.T
    W, z = (W + W.T) / 2, rng.normal(size=d)
    upper = max(upper, np.linalg.eigvalsh(W)[-1])
    Y, S = projected_step(W, z, c, upper)
    V = W - Y @ S @ Y.T
    values = np.linalg.eigvalsh(V)
    assert values[0] > 0 and values[-1] <= upper + 1e-9
    inverses, axes = np.linalg.eigh(np.linalg.inv(W) + c * np.outer(z, z))
    expected = (axes / np.maximum(inverses, 1 / upper)) @ axes.T
    # of the expectation, as inverses as large as c z'z have errors of that size
    assert_allclose(V, expected, atol=1e-9 + 1e-14 * abs(c) * (z @ z))
    vectors = np.linalg.qr(rng.normal(size=(d, d)))[0]
    U = (vectors * 10 ** rng.uniform(-2, -1e-6, d)) @ vectors.T
    divergence = LogDet().divergence
    gain, least = divergence(U, W) - divergence(U, (V + V.T) / 2), c * (z @ (W - U) @ z) - c * c * (z @ z) ** 2 / 2
    assert gain >= least - 1e-8 * (1 + abs(c) * (z @ z))


def test_steps_at_the_bound_are_projected():
    """A row with a small share of a direction at its bound still moves W elsewhere; it was skipped before."""
    model = MatrixBurgRegressor(eta0=0.1, init=np.diag([1 - 1e-9, 0.1])).partial_fit([[0.05, 1.0]], [0.9])
    assert model.n_projected_ == 1
    assert model.kernel_[1, 1] > 0.1005 and 1 - np.linalg.eigvalsh(model.kernel_)[-1] >= 0.99e-9
    with pytest.raises(ValueError, match=r"must be above 0 and at most 0.99999999"):
        model.loss_bound(np.eye(2))
    model.partial_fit(np.tile([1.0, 1.0], (200, 1)), np.full(200, 5.0))
    before = pickle.dumps(model)
    with pytest.raises(ValueError):
        model.partial_fit([[1.0, 1.0], [1e200, 1.0]], [5.0, 1.0])
    assert pickle.dumps(model) == before


def test_negative_targets_are_refused(unchanged):
    with unchanged(model := MatrixBurgRegressor().partial_fit([[1.0, 0.5]], [0.3]), "y = -1 at row 1"):
        model.partial_fit([[1.0, 2.0], [0.0, 1.0]], [1.0, -1.0])


@pytest.mark.parametrize(
    ("init", "message"),
    [(np.eye(3) / 3, "init has 3 rows"), (np.eye(2), "from 1 to 1"), (np.diag([0.5, 0.0]), "from 0 to 0.5")],
)
def test_bad_starts(init, message):
    with pytest.raises(ValueError, match=message):
        MatrixBurgRegressor(init=init).fit([[1.0, 0.0]], [0.5])


def test_rows_of_zeros_change_nothing():
    model = MatrixBurgRegressor().partial_fit([[0.0, 0.0], [0.0, 0.0]], [0.0, 2.0])
    assert_array_equal(model.kernel_, np.eye(2) / 2)
    assert model.cumulative_loss_ == 2.0
    learned = model.partial_fit([[1.0, 0.0]], [0.9]).kernel_
    assert_array_equal(learned, MatrixBurgRegressor().partial_fit([[1.0, 0.0]], [0.9]).kernel_)
