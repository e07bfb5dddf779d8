"""Laws of all divergences, of vectors and matrices: duality, identities, steps, projections on half spaces."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from potentials import BUILT_IN, MATRICES, HyperbolicEntropy, inside_range, into_domain, matrices, vectors

from onlinebregman.divergences import (
    BinaryEntropy,
    Burg,
    Conjugate,
    Divergence,
    LogDet,
    PNorm,
    RelativeEntropy,
    Scaled,
    SimplexEntropy,
    SquaredEuclidean,
    SquaredFrobenius,
    Stacked,
    TwoDivergences,
    WeightedSquaredEuclidean,
)

every = pytest.mark.parametrize("div", [*BUILT_IN, HyperbolicEntropy(0.5), *MATRICES], ids=repr)
laws = settings(max_examples=40, deadline=None)
drawn = st.data()


def points(div, data, count, others=0):
    """Points of the domain, then any vectors or symmetric matrices."""
    raw = data.draw((matrices if div in MATRICES else vectors)(count + others))
    return [into_domain(div, each) for each in raw[:count]] + raw[count:]


def either(div, of_vectors, of_matrices):
    """What holds for vectors, or for matrices, whose eigenvalues have fewer digits."""
    return of_matrices if div in MATRICES else of_vectors


def tangent(div, x):
    """Without the part that leaves the set of a given sum or trace."""
    if isinstance(div, SimplexEntropy):
        return x - x.mean()
    return x if getattr(div, "trace", None) is None else x - np.eye(len(x)) * np.trace(x) / len(x)


def distance_to_the_end(div, w):
    """Of a point from the boundary of its domain, at most 1."""
    if div in MATRICES:
        return 1.0 if isinstance(div, SquaredFrobenius) else np.linalg.eigvalsh(w)[0]
    return min(1.0, (w - div.lower).min(), (div.upper - w).min())


@every
@laws
@given(drawn)
def test_mirror_and_inverse_are_inverse(div, data):
    (w,) = points(div, data, 1)
    theta = div.mirror(w)
    assert_allclose(div.inverse_mirror(theta), w, rtol=either(div, 1e-10, 1e-8), atol=either(div, 1e-12, 1e-10))
    again = div.mirror(div.inverse_mirror(theta))
    assert_allclose(again, theta, rtol=either(div, 1e-9, 1e-8), atol=either(div, 1e-10, 1e-8))


@every
@laws
@given(drawn)
def test_mirror_is_the_gradient_of_the_potential(div, data):
    w, d = points(div, data, 1, 1)
    d, h = tangent(div, d), 1e-5 * distance_to_the_end(div, w)
    slope = (div.potential(w + h * d) - div.potential(w - h * d)) / (2 * h)
    assert_allclose(slope, np.vdot(div.mirror(w), d), rtol=1e-5, atol=1e-14 * (1 + abs(div.potential(w))) / h + 1e-6)


@every
@laws
@given(drawn)
def test_divergence_is_positive_vanishes_at_equality_and_equals_its_definition(div, data):
    u, w = points(div, data, 2)
    assert div.divergence(w, w) == pytest.approx(0, abs=1e-15)
    d = div.divergence(u, w)
    assert d > 0 or (d == 0 and np.abs(u - w).max() < 1e-3)
    definition = Divergence.divergence(div, u, w)
    assert_allclose(d, definition, rtol=either(div, 1e-9, 1e-8), atol=either(div, 1e-11, 1e-9))


@pytest.mark.parametrize("div", [*BUILT_IN, *MATRICES], ids=repr)
@laws
@given(drawn, st.sampled_from([1e-5, 1e-7, 1e-9]))
def test_divergence_keeps_its_digits_near_equality(div, data, eps):
    # D(w + eps S x, w) = eps^2 x'S x / 2 + O(eps^3); computed from the definition it has no correct digit at eps = 1e-9
    assume(eps >= either(div, 1e-9, 1e-7))
    w, x = points(div, data, 1, 1)
    assume(div in MATRICES or np.all(np.abs(w) > 1e-2))
    move = eps * div.hessian_inverse(w, x)
    expected = eps * np.vdot(x, move) / 2
    assume(expected > either(div, 1e-5, 1e-4) * eps**2)
    rtol, atol = either(div, (max(1e-4, 2e3 * eps), 1e-4 * eps**2), (max(1e-2, 1e3 * eps), 0.0))
    assert_allclose(div.divergence(w + move, w), expected, rtol=rtol, atol=atol)


@every
@laws
@given(drawn)
def test_three_point_identity(div, data):
    u, v, w = points(div, data, 3)
    right = div.divergence(u, v) + div.divergence(v, w) + np.vdot(u - v, div.mirror(v) - div.mirror(w))
    assert_allclose(div.divergence(u, w), right, rtol=either(div, 1e-9, 1e-8), atol=either(div, 1e-10, 1e-8))


@every
@laws
@given(drawn)
def test_hessian_inverse_is_minus_the_derivative_of_the_step(div, data):
    w, x = points(div, data, 1, 1)
    # where a coordinate of a p-norm is zero, S is not continuous in c
    assume(not isinstance(div, PNorm) or np.all(np.abs(w) > 1e-2) or not w.any())
    low, high = div.step_range(w, x)
    h = either(div, 1e-6, 1e-5) * min(1.0, high, -low)
    slope = (div.step(w, x, -h) - div.step(w, x, h)) / (2 * h)
    sx = div.hessian_inverse(w, x)
    assert_allclose(sx, slope, rtol=1e-5, atol=either(div, 1e-6, 1e-5 * (1 + np.abs(w).max())))
    if div in MATRICES:
        assert_allclose(sx, Divergence.hessian_inverse(div, w, x), rtol=1e-5, atol=1e-6 * (1 + np.abs(sx).max()))
    assert sx.shape == w.shape and div.dot(sx, x) >= -1e-12


@every
@laws
@given(drawn, st.floats(-0.95, 0.95))
def test_step_is_a_move_in_the_dual(div, data, fraction):
    w, x = points(div, data, 1, 1)
    c = inside_range(div, w, x, fraction)
    moved = div.step(w, x, c)
    rtol, atol = either(div, (1e-9, 1e-12), (1e-7, 1e-8 * (1 + np.abs(moved).max())))
    assert_allclose(moved, div.inverse_mirror(div.mirror(w) - c * x), rtol=rtol, atol=atol)
    assert_allclose(div.step(w, x, 0.0), w, rtol=either(div, 1e-12, 1e-9), atol=either(div, 1e-14, 1e-11))
    div.check_domain(moved)


def fits_float64(div, w):
    """False where w is so near the end of the domain that its distance from it underflows, or has no digits (rare)."""
    if isinstance(div, SquaredFrobenius):
        return True
    if div in MATRICES:
        values = np.linalg.eigvalsh(w)
        return values[0] > 1e-7 * values[-1]
    return div.lower == -np.inf or (w.min() > 1e-290 and (not isinstance(div, BinaryEntropy) or w.max() < 1 - 1e-6))


@every
@laws
@given(drawn)
def test_hyperplane_projection(div, data):
    w, u, x = points(div, data, 2, 1)
    b = div.dot(u, x)
    projected = div.project_hyperplane(w, x, b)
    div.check_domain(projected)
    assert_allclose(div.dot(projected, x), b, rtol=either(div, 1e-9, 1e-8), atol=either(div, 1e-10, 1e-8))
    assume(fits_float64(div, projected))
    split, total = div.divergence(u, projected) + div.divergence(projected, w), div.divergence(u, w)
    assert_allclose(split, total, rtol=either(div, 1e-7, 1e-6), atol=either(div, 1e-8, 1e-7))


@every
@laws
@given(drawn)
def test_halfspace_projection(div, data):
    w, u, v, x = points(div, data, 3, 1)
    b = div.dot(v, x)
    projected = div.project_halfspace(w, x, b)
    if div.dot(w, x) <= b:
        assert_array_equal(projected, w)
        assert projected is not w
    else:
        assert_array_equal(projected, div.project_hyperplane(w, x, b))
    assume(fits_float64(div, projected))
    if div.dot(u, x) <= b:
        bound = div.divergence(u, projected) + div.divergence(projected, w)
        assert div.divergence(u, w) >= bound - 1e-7 * (1 + bound)


@every
def test_arguments_are_not_changed(div):
    z = np.array([1.0, -0.5])
    w = into_domain(div, np.array(either(div, [0.2, -0.1], [[0.2, -0.1], [-0.1, 0.4]])))
    for x in (z, np.outer(z, z))[: either(div, 1, 2)]:
        for argument in (w, x):
            argument.flags.writeable = False
        for out in (div.mirror(w), div.step(w, x, 0.1), div.hessian_inverse(w, x), div.project_halfspace(w, x, 100.0)):
            assert out.flags.writeable and not np.shares_memory(out, w) and not np.shares_memory(out, x)


# --- conjugates and multiples -----------------------------------------------------------------------------------------


PRIMALS = [
    SquaredEuclidean(),
    RelativeEntropy(),
    Burg(),
    BinaryEntropy(),
    Scaled(Burg(), 2.5),
    WeightedSquaredEuclidean([0.5, 1.0, 4.0]),
]
inner_points = arrays(np.float64, 3, elements=st.floats(0.05, 0.95))


@pytest.mark.parametrize("primal", PRIMALS, ids=repr)
@given(mu=inner_points, nu=inner_points)
def test_the_conjugate_divergence_is_the_same_with_exchanged_arguments(primal, mu, nu):
    dual = Conjugate(primal)
    theta, tau = primal.mirror(mu), primal.mirror(nu)
    assert_allclose(dual.divergence(tau, theta), primal.divergence(mu, nu), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("primal", PRIMALS, ids=repr)
@given(mu=inner_points)
def test_mirror_maps_are_inverse_and_youngs_inequality_is_tight(primal, mu):
    dual = Conjugate(primal)
    theta = primal.mirror(mu)
    assert_allclose(dual.mirror(theta), mu, rtol=1e-12)
    assert_allclose(dual.inverse_mirror(mu), theta)
    assert_allclose(primal.potential(mu) + dual.potential(theta), theta @ mu, rtol=1e-10, atol=1e-12)


def test_conjugates_are_the_cumulants_of_the_slides():
    theta = np.array([-1.5, -0.2])
    assert_allclose(Conjugate(SquaredEuclidean()).potential(theta), (theta**2 / 2).sum())
    assert_allclose(Conjugate(BinaryEntropy()).potential(theta), np.log1p(np.exp(theta)).sum())
    assert_allclose(Conjugate(RelativeEntropy()).potential(theta), np.exp(theta).sum())


def test_conjugates_of_large_images_are_infinite():
    dual, theta = Conjugate(PNorm(3.0)), np.array([1.0, -2.0, 3.0])
    assert dual.potential(1e160 * theta) == dual.divergence(1e160 * theta, theta) == np.inf


@given(w=inner_points, u=inner_points, scale=st.floats(0.1, 10))
def test_a_multiple_scales_everything(w, u, scale):
    scaled, x = Scaled(Burg(), scale), np.array([1.0, -1.0, 0.5])
    assert_allclose(scaled.divergence(u, w), scale * Burg().divergence(u, w))
    assert_allclose(scaled.inverse_mirror(scaled.mirror(w)), w, rtol=1e-12)
    assert_allclose(scaled.mirror(scaled.step(w, x, 0.1 * scale)), scaled.mirror(w) - 0.1 * scale * x, rtol=1e-9)
    low, high = scaled.step_range(w, x)
    assert_allclose([low, high], scale * np.array(Burg().step_range(w, x)))
    slope = (scaled.step(w, x, -1e-6 * scale) - w) / (1e-6 * scale)
    assert_allclose(scaled.hessian_inverse(w, x), slope, rtol=1e-4, atol=1e-9)


def test_a_multiple_keeps_the_domain():
    with pytest.raises(ValueError, match=r"w\[0\] = -1 is outside the domain w > 0"):
        Scaled(Burg(), 2.0).potential([-1.0])
    assert Scaled(Burg(), 2.0) == Scaled(Burg(), 2.0) != Scaled(Burg(), 3.0)
    assert "w > 0" in Conjugate(Burg()).domain


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_a_multiple_is_positive(scale):
    with pytest.raises(ValueError, match="scale must be a positive finite number"):
        Scaled(Burg(), scale)


@given(w=inner_points, u=inner_points, seed=st.integers(0, 1000))
def test_weighted_squares_are_squares_of_rescaled_coordinates(w, u, seed):
    rng = np.random.default_rng(seed)
    a, x = rng.uniform(0.1, 10.0, size=3), rng.normal(size=3)
    weighted, root = WeightedSquaredEuclidean(a), np.sqrt(a)
    assert_allclose(weighted.divergence(u, w), SquaredEuclidean().divergence(root * u, root * w), rtol=1e-9, atol=1e-15)
    assert_allclose(
        root * weighted.step(w, x, 0.3), SquaredEuclidean().step(root * w, x / root, 0.3), rtol=1e-9, atol=1e-12
    )
    assert_allclose(weighted.hessian_inverse(w, x), w - weighted.step(w, x, 1.0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weights", [[1.0, 0.0], [-1.0], [np.nan], [np.inf], 2.0])
def test_weights_of_squares_are_positive(weights):
    with pytest.raises(ValueError, match="one positive finite number"):
        WeightedSquaredEuclidean(weights)


def test_a_stack_adds_up():
    W, V = np.array([[[2.0, 0.5], [0.5, 1.0]], np.eye(2)]), np.array([np.diag([1.0, 3.0]), 2 * np.eye(2)])
    stacked = Stacked(LogDet())
    assert_allclose(stacked.divergence(W, V), sum(LogDet().divergence(w, v) for w, v in zip(W, V, strict=True)))
    assert_allclose(stacked.inverse_mirror(stacked.mirror(W)), W, rtol=1e-12)
    dual = Conjugate(stacked)
    assert_allclose(dual.divergence(stacked.mirror(V), stacked.mirror(W)), stacked.divergence(W, V), rtol=1e-12)
    with pytest.raises(ValueError, match=r"eigenvalue|positive definite"):
        stacked.check_domain(-W)


# --- the duality of two divergences -----------------------------------------------------------------------------------

LOSSES = [SquaredEuclidean(), Conjugate(BinaryEntropy())]  # of scores: the squared and the logistic one


def two_divergences(primal, loss, rng, eta=0.5):
    """A problem with shifts, and its weights w_t."""
    X, y, nu = rng.normal(size=(2, 3)), rng.uniform(0.1, 0.9, 2), rng.normal(size=2)
    w, mu = rng.uniform(0.1, 0.9, (2, 3))
    weights = Scaled(primal, 1 / eta)
    return TwoDivergences(weights, loss, X, y, weights.mirror(w), mu, nu)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("primal", PRIMALS[:5], ids=repr)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.0, 0.01, 0.1]))
def test_neither_problem_is_below_the_other(primal, loss, seed, scale):
    rng = np.random.default_rng(seed)
    problem = two_divergences(primal, loss, rng)
    w, alpha = scale * rng.uniform(-1, 1, 3) * problem.mu, scale * rng.uniform(-1, 1, 2)
    y = problem.y + alpha
    if isinstance(loss, SquaredEuclidean) or ((y > 0) & (y < 1)).all():
        assert problem.gap(w, alpha) >= -1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("primal", PRIMALS[:5], ids=repr)
def test_the_two_optima_give_each_other_and_close_the_gap(primal, loss):
    """The optimum of one row is the implicit step: alpha is its scalar c, found here by bisection."""
    problem = two_divergences(primal, loss, np.random.default_rng(3))
    problem = TwoDivergences(
        problem.weights, loss, problem.X[:1], problem.y[:1], problem.phi, problem.mu, problem.nu[:1]
    )

    def excess(alpha):  # increasing
        try:
            return alpha - problem.alpha_of(problem.weights_of([alpha]))[0]
        except ValueError:  # beyond the domain, where the score is infinite
            return np.copysign(np.inf, alpha)

    low, high = -50.0, 50.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    alpha = [(low + high) / 2]
    w = problem.weights_of(alpha)
    assert_allclose(problem.alpha_of(w), alpha, atol=1e-9)
    assert abs(problem.gap(w, alpha)) < 1e-9
    for step in 1e-3 * np.random.default_rng(0).uniform(-1, 1, (10, 3)):
        assert problem.primal(w + step) >= problem.primal(w) - 1e-12
    assert problem.primal(np.zeros(3)) - problem.primal(w) == pytest.approx(problem.dual(alpha), abs=1e-9)


def test_shapes_have_to_agree():
    with pytest.raises(ValueError, match="1 rows and phi 3 features"):
        TwoDivergences(SquaredEuclidean(), SquaredEuclidean(), np.ones((1, 2)), [1.0], np.ones(3))
