"""Conjugates and multiples: D_G(theta~, theta) = D_F(mu, mu~), and the two potentials are dual."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from onlinebregman.divergences import (
    BinaryEntropy,
    Burg,
    Conjugate,
    LogDet,
    PNorm,
    RelativeEntropy,
    Scaled,
    SquaredEuclidean,
    Stacked,
    TwoDivergences,
    WeightedSquaredEuclidean,
)

PRIMALS = [
    SquaredEuclidean(),
    RelativeEntropy(),
    Burg(),
    BinaryEntropy(),
    Scaled(Burg(), 2.5),
    WeightedSquaredEuclidean([0.5, 1.0, 4.0]),
]
points = arrays(np.float64, 3, elements=st.floats(0.05, 0.95))


@pytest.mark.parametrize("primal", PRIMALS, ids=repr)
@given(mu=points, nu=points)
def test_the_conjugate_divergence_is_the_same_with_exchanged_arguments(primal, mu, nu):
    dual = Conjugate(primal)
    theta, tau = primal.mirror(mu), primal.mirror(nu)
    assert_allclose(dual.divergence(tau, theta), primal.divergence(mu, nu), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("primal", PRIMALS, ids=repr)
@given(mu=points)
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


@given(w=points, u=points, scale=st.floats(0.1, 10))
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


@given(w=points, u=points, seed=st.integers(0, 1000))
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
