"""Learned matrices stay positive definite (LogDet) or semidefinite (Frobenius) in float64, or a step is refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.matrices.logdet_blocked import BlockedLogDetGeometry
from onlinebregman._kernels.matrices.matrix import LogDetGeometry
from scipy.linalg import cholesky

from onlinebregman import FrobeniusMetricLearner, LogDetMetricLearner

EPS = np.finfo(float).eps
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=12)


def raw(learner=LogDetMetricLearner, **parameters):
    return learner(**{"scale_eta": False, "learning_rate": "constant", **parameters})


def assert_definite(W):
    """No eigenvalue of the balanced matrix is below 10 d eps, up to the errors of computing them."""
    assert np.isfinite(W).all()
    scale = np.sqrt(W.diagonal())
    balanced = W / scale / scale[:, None]
    cholesky(W)
    assert np.linalg.eigvalsh(balanced)[0] > 5 * len(W) * EPS


def assert_semidefinite(W):
    assert np.isfinite(W).all()
    assert (W.diagonal() >= 0).all()
    values = np.linalg.eigvalsh(W)
    assert values[0] >= -1e-12 * values[-1]


def assert_usable(learner, X):
    """No direction of the metric is lost in its factor."""
    W, L = learner.get_mahalanobis_matrix(), learner.components_
    assert (L != 0).any(axis=1).all()
    assert np.isfinite(learner.transform(X)).all()
    scale = np.sqrt(W.diagonal())
    assert_allclose(L.T @ L / scale / scale[:, None], W / scale / scale[:, None], rtol=0, atol=1e-9)


def hard_stream(rng, d, n, spread):
    """Rows whose columns differ by `spread`, including zeros and near copies; targets from 0 to very large."""
    X = rng.standard_t(2, size=(100, d)) * 10.0 ** rng.uniform(-spread, spread, size=d)
    X[rng.random(X.shape) < 0.2] = 0.0
    X[50:60] = X[:10] * (1 + 1e-9)
    size = np.median(np.einsum("ij,ij->i", X, X))
    targets = size * rng.choice([0.0, 1e-12, 1e-3, 1.0, 1e3, 1e8], size=n, p=[0.1, 0.05, 0.2, 0.4, 0.2, 0.05])
    return X, rng.integers(0, 100, size=(n, 3)), targets


def state_of(learner):
    if not learner.__sklearn_is_fitted__():
        return []
    return [*learner._learner.geometry._arguments(), learner.t_, learner.n_collapsed_, learner.cumulative_loss_]


def learn_hard(learner, rng, d, n, spread, call=50):
    """Pairs and triplets in calls; refused ones must leave the model unchanged. Returns the number of refusals."""
    X, rows, targets = hard_stream(rng, d, n, spread)
    refused = 0
    for start in range(0, n, call):
        part = slice(start, start + call)
        before = state_of(learner)
        try:
            if start // call % 3 == 2:
                learner.partial_fit_triplets(X, rows[part])
            else:
                learner.partial_fit_pairs(X, rows[part, :2], targets[part])
        except ValueError as error:
            assert "row" in str(error) and "scale features" in str(error)
            for then, now in zip(before, state_of(learner), strict=True):
                assert_array_equal(now, then)
            refused += 1
    return refused, X


@few
@given(seeds, st.sampled_from([1, 2, 5, 20]), st.sampled_from([0, 2, 6, 70]), st.booleans())
def test_logdet_stays_definite(seed, d, spread, scale_eta):
    rng = np.random.default_rng(seed)
    learner = LogDetMetricLearner(scale_eta=scale_eta, eta0=10.0 ** rng.integers(-3, 4), learning_rate="constant")
    _, X = learn_hard(learner, rng, d, 1000, spread)
    if learner.__sklearn_is_fitted__():
        assert_definite(learner.get_mahalanobis_matrix())
        assert_usable(learner, X)


def exact_matrix(Z, steps):
    """(I + sum c z z')^-1 in exact arithmetic."""
    d = len(Z[0])
    rows = [[Fraction(int(i == j)) for j in range(d)] + [Fraction(int(i == j)) for j in range(d)] for i in range(d)]
    for z, c in zip(Z, steps, strict=True):
        for i in range(d):
            for j in range(d):
                rows[i][j] += Fraction(c) * Fraction(z[i]) * Fraction(z[j])
    for i in range(d):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(d):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return np.array([[float(value) for value in row[d:]] for row in rows])


@pytest.mark.parametrize("d", [2, 100])
def test_digits_survive_steps_that_shrink_everything(d):
    """Squared distances fall from 1e18 to 1, by rows that differ in large columns: the diagonal stays accurate."""
    P = np.zeros((4, d))
    P[1:, :2] = [[1e9, 1.0], [1.0, 1e9], [1e9, -1.0]]
    learner = raw(eta0=1.0)
    steps = []
    for k in (1, 2, 3):
        learner.partial_fit_pairs(P, [[0, k]], [1.0])
        steps.append(learner.predict(P[k : k + 1])[0] - 1.0)
    W = learner.get_mahalanobis_matrix()
    assert_definite(W)
    expected = exact_matrix(P[1:, :2].tolist(), steps)
    assert_allclose(W[:2, :2].diagonal(), expected.diagonal(), rtol=1e-8)
    at_once = raw(eta0=1.0).partial_fit_pairs(P, [[0, 1], [0, 2], [0, 3]], [1.0, 1.0, 1.0])
    assert_array_equal(at_once.get_mahalanobis_matrix(), W)
    assert (at_once.components_ != 0).any(axis=1).all()


@pytest.mark.parametrize("geometry", [LogDetGeometry, BlockedLogDetGeometry])
def test_a_start_that_is_singular_in_float64_is_refused(geometry):
    almost = np.array([[1.0, 1 - 1e-16], [1 - 1e-16, 1.0]])
    with pytest.raises(ValueError, match="not positive definite to float64"):
        geometry(almost)
    badly_scaled = np.diag([1e-200, 1.0, 1e200])
    assert_array_equal(geometry(badly_scaled).state_weights, badly_scaled)


@pytest.mark.parametrize("d", [2, 104])
def test_a_singular_step_is_refused_and_changes_nothing(d):
    """One distance, not along an axis, grows 1e15 times: in float64 the others are lost."""
    X = np.zeros((2, d))
    X[1] = 1.0
    learner = raw(eta0=1e-30).partial_fit_pairs(X, [[0, 1]], [1.0])
    before = state_of(learner)
    learner.set_params(eta0=1.0)
    with pytest.raises(ValueError, match=r"row 1 .*not positive definite to float64.*lower eta0"):
        learner.partial_fit_pairs(X, [[0, 1], [0, 1]], [float(d), 1e15 * d])
    for then, now in zip(before, state_of(learner), strict=True):
        assert_array_equal(now, then)


# --- Frobenius --------------------------------------------------------------------------------------------------------


@few
@given(seeds, st.sampled_from([1, 2, 5, 20]), st.sampled_from([0, 2, 6]), st.sampled_from(["implicit", "explicit"]))
def test_frobenius_stays_semidefinite(seed, d, spread, update):
    rng = np.random.default_rng(seed)
    learner = raw(FrobeniusMetricLearner, scale_eta=bool(rng.integers(2)), eta0=10.0 ** rng.integers(-12, 3))
    learn_hard(learner.set_params(update=update), rng, d, 1000, spread)
    if learner.__sklearn_is_fitted__():
        assert_semidefinite(learner.get_mahalanobis_matrix())


def test_matrices_of_any_size_are_projected():
    """Products of four entries over- or underflow; beyond that losses do."""
    for size in (1e-150, 1.0, 1e150):
        prior = size * (np.eye(3) + 0.1)
        learner = raw(FrobeniusMetricLearner, prior=prior, eta0=1e6, update="explicit")
        learner.partial_fit_pairs(np.eye(3), [[0, 1]], [0.0])
        W = learner.get_mahalanobis_matrix()
        assert_semidefinite(W)
        assert_allclose(W / size, [[0.6, 0.6, 0.1], [0.6, 0.6, 0.1], [0.1, 0.1, 1.1]], atol=1e-9)


def test_what_is_left_of_a_metric_is_semidefinite():
    """After two projections only rounding errors of the former matrix remain."""
    learner = raw(FrobeniusMetricLearner, eta0=1e12, prior=np.eye(3) + 0.3)
    X = np.vstack([np.zeros(3), np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]])
    for k in (1, 2, 3):
        learner.partial_fit_pairs(X, [[0, k]], [0.0])
        assert_semidefinite(learner.get_mahalanobis_matrix())


@pytest.mark.parametrize(
    ("pairs", "shuffle", "odd", "named"),
    [
        ("random", False, 37, "a pair of row 37 "),
        ("random", True, 37, "a pair of row 37 "),
        ("neighbors", False, 1, "a triplet of row 2 "),  # whose only impostor it is
    ],
)
def test_refusals_name_the_row_that_a_pair_was_drawn_for(pairs, shuffle, odd, named):
    """Not the pair's number among those drawn, nor the row's position in a shuffled epoch."""
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[odd] *= 1e60
    learner = raw(sampling=pairs, prior=1e100 * np.eye(3), eta0=1e-250, shuffle=shuffle, random_state=0)
    with pytest.raises(ValueError, match=named):
        learner.fit(X, y)
    first = max(odd - 17, 0)
    rows = np.array([[i, i + 1] for i in range(first, 59)])
    with pytest.raises(ValueError, match=f" row ({odd - 1 - first}|{odd - first}) "):
        learner.fit_pairs(X, rows, np.ones(len(rows)))


@pytest.mark.parametrize("learner", [LogDetMetricLearner, FrobeniusMetricLearner])
def test_answers_that_overflow_are_errors_that_name_the_row(learner):
    learner = learner(prior=1e10 * np.eye(2)).partial_fit_pairs(np.eye(2), [[0, 1]], [1e10])
    rows = np.array([[1.0, 2.0], [1e308, 1.0], [1.0, 1e308]])
    for answer in (learner.predict, learner.transform, learner.pairwise_distances):
        with pytest.raises(ValueError, match=r"of row [01] is not finite"):
            answer(rows)
        assert np.isfinite(answer(rows[:1])).all()
    with pytest.raises(ValueError, match="distance of row 1 is not finite"):
        learner.pair_distance(rows, -rows)


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


def test_a_rate_that_overflows_is_an_error_that_leaves_the_metric(unchanged):
    learner = FrobeniusMetricLearner(eta0=1e200, scale_eta=False, update="explicit")
    learner.partial_fit_pairs(np.eye(3), [[0, 1]], [2.0])
    with unchanged(learner, r"overflowed at row 0.*Lower eta0"):
        learner.partial_fit_pairs(np.eye(3), [[0, 1]], [1e300])


def test_a_metric_of_zero_learns_again():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 1))
    y = (rows[:, 0] + rng.normal(size=300) > 0).astype(int)
    learner = FrobeniusMetricLearner(random_state=0).fit(rows, y)
    n = learner.n_updates_
    assert learner.partial_fit(rows, y).n_updates_ > n
