"""What matrix divergences have by themselves, and their relations to the vector divergences of their spectra."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from potentials import MATRICES, exponential, inside_range, into_domain, matrices
from scipy.linalg import expm, logm

from onlinebregman.divergences import (
    Burg,
    LogDet,
    RelativeEntropy,
    SimplexEntropy,
    SquaredFrobenius,
    VonNeumann,
)

laws = settings(max_examples=30, deadline=None)
every = pytest.mark.parametrize("div", MATRICES, ids=repr)


@every
@laws
@given(matrices(1, 1), st.floats(-0.9, 0.9))
def test_a_vector_stands_for_its_outer_product(div, drawn, fraction):
    w, z = into_domain(div, drawn[0]), drawn[1]
    x = np.outer(z, z)
    assert_allclose(div.dot(w, z), div.dot(w, x), rtol=1e-12, atol=1e-12)
    assert_allclose(div.hessian_inverse(w, z), div.hessian_inverse(w, x), rtol=1e-9, atol=1e-11)
    assert_allclose(div.step_range(w, z), div.step_range(w, x), rtol=1e-9)
    c = inside_range(div, w, z, fraction)
    moved = div.step(w, x, c)
    assert_allclose(div.step(w, z, c), moved, rtol=1e-9, atol=1e-10 * (1 + np.abs(moved).max()))
    b = div.dot(moved, z)
    assert_allclose(div.project_hyperplane(w, z, b), moved, rtol=1e-5, atol=1e-6 * (1 + np.abs(moved).max()))


@laws
@given(matrices(2))
def test_projection_on_the_psd_cone(drawn):
    div, w, u = SquaredFrobenius(), drawn[0], drawn[1] @ drawn[1]
    projected = div.project_psd(w)
    assert np.linalg.eigvalsh(projected)[0] >= -1e-12
    bound = div.divergence(u, projected) + div.divergence(projected, w)
    assert div.divergence(u, w) >= bound - 1e-10 * (1 + bound)
    assert_array_equal(div.project_psd(u + np.eye(len(u))), u + np.eye(len(u)))


@laws
@given(matrices(2), st.sampled_from([0.3, 1.0, 4.0]))
def test_projection_of_logdet_below_a_bound(drawn, upper):
    """Pythagoras: every U below the bound is nearer to the projection, by its divergence from W at least."""
    div, w = LogDet(), exponential(drawn[0])
    values, vectors = np.linalg.eigh(drawn[1])
    u = (vectors * (upper * np.exp(np.minimum(values, 0)))) @ vectors.T
    u = (u + u.T) / 2
    projected = div.project_upper(w, upper)
    assert np.linalg.eigvalsh(projected)[-1] <= upper * (1 + 1e-12)
    bound = div.divergence(u, projected) + div.divergence(projected, w)
    assert div.divergence(u, w) >= bound - 1e-8 * (1 + bound)
    inside = w * (0.9 * upper / np.linalg.eigvalsh(w)[-1])
    assert_array_equal(div.project_upper(inside, upper), inside)
    with pytest.raises(ValueError, match=r"upper must be .*; got 0"):
        div.project_upper(w, 0)


@pytest.mark.parametrize(
    ("matrix", "vector"),
    [(VonNeumann(), RelativeEntropy()), (VonNeumann(2.0), SimplexEntropy(2.0)), (LogDet(), Burg())],
)
@laws
@given(matrices(0, 3), st.floats(-0.4, 0.4))
def test_diagonal_matrices_are_vectors(matrix, vector, drawn, fraction):
    u, w = np.exp(drawn[0]), np.exp(drawn[1])
    if isinstance(vector, SimplexEntropy):
        u, w = 2 * u / u.sum(), 2 * w / w.sum()
    x = drawn[2]
    U, W, X = np.diag(u), np.diag(w), np.diag(x)
    assert_allclose(matrix.potential(W), vector.potential(w), rtol=1e-10, atol=1e-12)
    assert_allclose(matrix.divergence(U, W), vector.divergence(u, w), rtol=1e-9, atol=1e-14)
    assert_allclose(matrix.hessian_inverse(W, X), np.diag(vector.hessian_inverse(w, x)), rtol=1e-9, atol=1e-12)
    c = inside_range(vector, w, x, fraction)
    assert_allclose(matrix.step_range(W, X), vector.step_range(w, x), rtol=1e-9)
    assert_allclose(matrix.step(W, X, c), np.diag(vector.step(w, x, c)), rtol=1e-9, atol=1e-12)


@laws
@given(matrices(2), st.integers(0, 1000))
def test_logdet_is_invariant_under_congruence(drawn, seed):
    U, W = (exponential(raw) for raw in drawn)
    d = len(U)
    A = np.random.default_rng(seed).normal(size=(d, d)) + 3 * np.eye(d)
    assume(np.linalg.cond(A) < 100)
    moved = [(A @ M @ A.T + (A @ M @ A.T).T) / 2 for M in (U, W)]
    assert_allclose(LogDet().divergence(*moved), LogDet().divergence(U, W), rtol=1e-7, atol=1e-9)


@laws
@given(matrices(2))
def test_definitions_with_matrix_functions(drawn):
    U, W = (exponential(raw) for raw in drawn)
    log_u, log_w = logm(U), logm(W)
    assert_allclose(VonNeumann().mirror(W), log_w, atol=1e-9)
    assert_allclose(VonNeumann().inverse_mirror(log_w), expm(log_w), rtol=1e-9, atol=1e-11)
    assert_allclose(VonNeumann().divergence(U, W), np.trace(U @ (log_u - log_w) - U + W), rtol=1e-8, atol=1e-9)
    ratio = U @ np.linalg.inv(W)
    expected = np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(U)
    assert_allclose(LogDet().divergence(U, W), expected, rtol=1e-8, atol=1e-9)


def test_von_neumann_admits_singular_comparators():
    z = np.array([0.6, 0.8])
    U = np.outer(z, z)
    assert VonNeumann(1.0).divergence(U, np.eye(2) / 2) == pytest.approx(np.log(2))
    assert VonNeumann().potential(U) == pytest.approx(-1.0)
    assert VonNeumann().divergence(np.eye(2), np.diag([1.0, 0.0])) == np.inf
    assert VonNeumann().divergence(np.diag([1.0, 0.0]), np.diag([1.0, 0.0])) == 0


def test_hard_steps_of_von_neumann_have_no_nan():
    W, z = np.array([[1.0, 0.3], [0.3, 2.0]]), np.array([1.0, -2.0])
    for div in (VonNeumann(), VonNeumann(1.0)):
        start = into_domain(div, np.array([[0.1, 0.3], [0.3, 0.2]]))
        for c in (1e3, -1e3, 1e6, -1e6):
            moved = div.step(start, z, c)
            div.check_domain(moved)
            div.check_domain(div.step(moved, np.array([1.0, 0.5]), -c))
    assert VonNeumann().project_hyperplane(W, z, 1e6) @ z @ z == pytest.approx(1e6)


def test_logarithms_of_nearly_singular_matrices_are_finite_or_refused():
    rng = np.random.default_rng(0)
    for _ in range(300):  # in some of them, rounding errors make the sign of the smallest eigenvalue
        A = rng.normal(size=(3, 3)) * 10.0 ** rng.integers(-12, 12, size=3)
        try:
            assert np.isfinite(VonNeumann().mirror(A.T @ A)).all()
        except ValueError as error:
            assert "W has the eigenvalue" in str(error)


@pytest.mark.parametrize("b", [1e-16, 1e-12, 1e-8, 1e-3, 1e3, 1e8, 1e12, 1e16, 1e100])
def test_logdet_projections_far_away_are_where_they_should_be(b):
    """Near the pole, and where W nearly vanishes along x: W^-1 changes by a multiple of X only."""
    for W, x in (([[1.0]], [1.0]), ([[1.75]], [1.5]), (np.diag([0.5, 1.75]), [0.0, 1.5])):
        projected = LogDet().project_hyperplane(W, x, b)
        assert_allclose(LogDet().dot(projected, x), b, rtol=1e-15)
        assert_allclose(projected[:-1, :-1], np.asarray(W)[:-1, :-1], rtol=1e-15)
    W, X = np.diag([1.75, 0.5]), np.diag([1.5, -0.75])
    for sign in (1.0, -1.0) if b > 1 else ():
        projected = LogDet().project_hyperplane(W, X, sign * b)
        assert_allclose(LogDet().dot(projected, X), sign * b, rtol=1e-15)
        c = (1 / projected.diagonal() - 1 / W.diagonal()) / X.diagonal()
        assert_allclose(c, c[0], rtol=1e-14)


@pytest.mark.parametrize("b", [1e-18, 1e18])
def test_logdet_projections_that_float64_cannot_hold_are_refused(b):
    W, z = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 0.3])
    with pytest.raises(ValueError, match=r"within the domain|not positive definite in float64"):
        LogDet().project_hyperplane(W, z, b)


def test_logdet_steps_of_any_size_keep_the_digits_of_a_direction_of_its_own():
    W = LogDet().step(np.eye(2), np.array([1.0, 0.0]), 1e20)
    assert_allclose(W, np.diag([1e-20, 1.0]), rtol=1e-15)


def test_logdet_step_range_is_exactly_the_domain():
    W, z = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0])
    for x in (z, np.outer(z, z), np.diag([1.0, -1.0])):
        for end in LogDet().step_range(W, x):
            if np.isfinite(end):
                LogDet().check_domain(LogDet().step(W, x, end * (1 - 1e-6)))
                with pytest.raises(ValueError, match="leaves the domain W positive definite of LogDet"):
                    LogDet().step(W, x, end * (1 + 1e-6))
    assert LogDet().step_range(W, z) == (-1 / (z @ W @ z), np.inf)


@pytest.mark.parametrize(
    ("div", "w", "message"),
    [
        (
            SquaredFrobenius(),
            [[1.0, 2.0], [3.0, 1.0]],
            r"W\[0, 1\] = 2 is outside the domain W symmetric .*\(W \+ W.T\)",
        ),
        (SquaredFrobenius(), [[np.nan]], r"W\[0, 0\] = nan is outside"),
        (SquaredFrobenius(), [1.0, 2.0], r"symmetric matrix of shape \(d, d\); got shape \(2,\)"),
        (
            VonNeumann(),
            [[1.0, 0.0], [0.0, -0.5]],
            r"eigenvalue -0.5, outside the domain W positive definite of VonNeumann",
        ),
        (VonNeumann(1.0), [[1.0, 0.0], [0.0, 0.5]], r"tr W = 1.5 is outside the domain W positive definite, tr W = 1"),
        (
            LogDet(),
            [[1.0, 1.0], [1.0, 1.0]],
            r"outside the domain W positive definite of LogDet.*multiple of the identity",
        ),
    ],
)
def test_domain_errors_name_the_value_and_the_remedy(div, w, message):
    w = np.array(w) - (1e-9 * np.eye(2) if isinstance(div, LogDet) else 0)
    with pytest.raises(ValueError, match=message):
        div.check_domain(w)
    with pytest.raises(ValueError, match=message):
        div.divergence(w, w)


def test_other_errors():
    with pytest.raises(ValueError, match="dual domain"):
        LogDet().inverse_mirror(np.diag([-1.0, 0.5]))
    with pytest.raises(ValueError, match="No step along x"):
        LogDet().project_hyperplane(np.eye(2), np.array([1.0, 0.0]), -1.0)
    with pytest.raises(ValueError, match="positive finite number"):
        VonNeumann(trace=0.0)


@every
@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_default_start_and_what_is_farthest_from_it(div, d):
    start, trace = div.default_start(d), getattr(div, "trace", None)
    div.check_domain(start)
    assert_allclose(start, np.eye(d) * (1.0 if trace is None else trace / d))
    if trace is None:
        with pytest.raises(ValueError, match="has no bound on D"):
            div.largest_divergence(d, 1.0)
    elif d > 1:
        z = np.linspace(1, 2, d) / np.linalg.norm(np.linspace(1, 2, d))
        assert_allclose(div.divergence(trace * np.outer(z, z), start), div.largest_divergence(d))
