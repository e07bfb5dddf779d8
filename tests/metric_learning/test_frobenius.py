"""FrobeniusMetricLearner: its steps, the projection, properties in common with LogDet, and k-NN."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from onlinebregman import FrobeniusMetricLearner
from onlinebregman.divergences import SquaredFrobenius
from onlinebregman.reference import frobenius_step


def projected(W):
    values, vectors = np.linalg.eigh(W)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


@pytest.mark.parametrize("update", ["implicit", "explicit"])
def test_trajectory(update):
    rng = np.random.default_rng(0)
    X, eta = rng.normal(size=(40, 7)), 0.002 if update == "explicit" else 0.05
    pairs = rng.integers(0, 40, size=(300, 2))
    targets = rng.choice([0.0, 3.0, 20.0], size=300)
    learner = FrobeniusMetricLearner(scale_eta=False, eta0=eta, update=update, learning_rate="constant")
    learner.partial_fit_pairs(X, pairs, targets)
    W, n_cut = np.eye(7), 0
    for (i, j), y in zip(pairs, targets, strict=True):
        z = X[i] - X[j]
        c = eta * (z @ W @ z - y) / (1 + eta * (z @ z) ** 2 if update == "implicit" else 1)
        n_cut += np.linalg.eigvalsh(W - c * np.outer(z, z))[0] < -1e-12
        W = frobenius_step(W, z, y, eta, update)
    assert n_cut > 20
    assert_allclose(learner.get_mahalanobis_matrix(), W, rtol=1e-9, atol=1e-11 * np.abs(W).max())
    assert learner.divergence_ == SquaredFrobenius()


def test_dimensionless_rate():
    rng = np.random.default_rng(1)
    X, pairs, targets = rng.normal(size=(30, 3)), rng.integers(0, 30, size=(50, 2)), rng.uniform(1, 5, size=50)
    small = FrobeniusMetricLearner().partial_fit_pairs(X, pairs, targets)
    large = FrobeniusMetricLearner().partial_fit_pairs(10 * X, pairs, 100 * targets)
    assert_allclose(large.get_mahalanobis_matrix(), small.get_mahalanobis_matrix(), rtol=1e-9, atol=1e-12)


def test_distances_are_never_negative():
    """A singular metric: differences along what it has lost have the distance 0, and no rounding error makes it NaN."""
    X = np.eye(5)
    learner = FrobeniusMetricLearner(eta0=1e6, scale_eta=False)
    for _ in range(3):
        learner.partial_fit_pairs(X, [[0, 1], [1, 2], [2, 3]], [0.0, 0.0, 0.0])
    rng = np.random.default_rng(3)
    z = np.array([[1.0, -1, 0, 0, 0], [0, 1, -1, 0, 0], [0, 0, 1, -1, 0]])
    a = np.vstack([z, rng.normal(size=(200, 3)) @ z])
    assert (learner.predict(a) >= 0).all()
    assert np.isfinite(learner.pair_distance(a, np.zeros_like(a))).all()
    assert np.linalg.eigvalsh(learner.get_mahalanobis_matrix())[0] > -1e-15


def test_explicit_steps_at_any_rate_stay_in_the_cone():
    """They overshoot their targets, but the projection keeps W in the cone: distances that are too large become 0."""
    rng = np.random.default_rng(4)
    X, pairs = rng.normal(size=(30, 4)), rng.integers(0, 30, size=(5000, 2))
    learner = FrobeniusMetricLearner(eta0=100.0, scale_eta=False, update="explicit")
    learner.partial_fit_pairs(X, pairs, np.full(5000, 9.0))
    values = np.linalg.eigvalsh(learner.get_mahalanobis_matrix())
    assert values[0] >= -1e-13 * values[-1] and np.isfinite(values).all()


def test_a_rate_that_overflows_is_an_error_that_leaves_the_metric():
    learner = FrobeniusMetricLearner(eta0=1e200, scale_eta=False, update="explicit")
    learner.partial_fit_pairs(np.eye(3), [[0, 1]], [2.0])
    before = pickle.dumps(learner)
    with pytest.raises(ValueError, match=r"overflowed at row 0.*Lower eta0"):
        learner.partial_fit_pairs(np.eye(3), [[0, 1]], [1e300])
    assert pickle.dumps(learner) == before


def test_update_is_read_at_each_call():
    X = np.diag([1.0, 2.0])
    learner = FrobeniusMetricLearner(eta0=0.01, scale_eta=False, learning_rate="constant")
    learner.partial_fit_pairs(X, [[0, 1]], [1.0])
    a = learner.predict([[1.0, -2.0]])[0]
    learner.set_params(update="explicit").partial_fit_pairs(X, [[0, 1]], [1.0])
    assert_allclose(learner.predict([[1.0, -2.0]])[0], a - 0.01 * (a - 1) * 25)
    with pytest.raises(ValueError, match="update"):
        learner.set_params(update="importance").partial_fit_pairs(X, [[0, 1]], [1.0])


@pytest.mark.parametrize("update", ["implicit", "explicit"])
def test_weighted_regret_bound(update):
    """Projections only strengthen it."""
    rng = np.random.default_rng(5)
    X, pairs = rng.normal(size=(60, 4)), rng.integers(0, 60, size=(800, 2))
    U = np.diag([2.0, 1.0, 0.1, 0.0])
    z = X[pairs[:, 0]] - X[pairs[:, 1]]
    targets = np.einsum("ij,jk,ik->i", z, U, z)
    run = FrobeniusMetricLearner(scale_eta=False, eta0=3e-3, update=update, track_regret=True)
    run.partial_fit_pairs(X, pairs, targets)
    assert 0 < run.weighted_loss_ <= run.regret_bound(U, weighted=True)  # U makes no error
    assert run.regret_bound(U, weighted=True) < 10 * run.weighted_loss_


def test_a_metric_of_zero_learns_again():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 1))
    y = (rows[:, 0] + rng.normal(size=300) > 0).astype(int)
    learner = FrobeniusMetricLearner(random_state=0).fit(rows, y)
    n = learner.n_updates_
    assert learner.partial_fit(rows, y).n_updates_ > n


def test_triplets_move_along_their_matrix():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3, 4))
    p, q = X[0] - X[2], X[0] - X[1]
    matrix = np.outer(p, p) - np.outer(q, q)
    margin = abs(p @ p - q @ q) + 1.0
    learner = FrobeniusMetricLearner(scale_eta=False, eta0=0.02, learning_rate="constant", margin=margin)
    learner.partial_fit_triplets(X, [[0, 1, 2]])
    c = 0.02 * (np.trace(matrix) - margin) / (1 + 0.02 * (matrix**2).sum())
    expected = projected(np.eye(4) - c * matrix)
    assert_allclose(learner.get_mahalanobis_matrix(), expected, rtol=1e-10, atol=1e-12)
