"""Projections on the balls of the 1-norm and the 2-norm, and the smoothness of a step, for every vector divergence."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from potentials import BUILT_IN, HyperbolicEntropy, into_domain, vectors

from onlinebregman.divergences import (
    BinaryEntropy,
    Burg,
    LogDet,
    PNorm,
    RelativeEntropy,
    SeparableDivergence,
    SimplexEntropy,
    SquaredEuclidean,
    WeightedSquaredEuclidean,
)


class PseudoHuber(SeparableDivergence):
    """Another one, whose mirror images are bounded: f = w / sqrt(1 + w^2), between -1 and 1."""

    def potential(self, w):
        return float(np.hypot(w, 1.0).sum())

    def mirror(self, w):
        return w / np.hypot(w, 1.0)

    def inverse_mirror(self, theta):
        assert (np.abs(theta) < 1).all()
        return theta / np.sqrt((1 - theta) * (1 + theta))


ALL = [*BUILT_IN, HyperbolicEntropy(), PseudoHuber()]
every = pytest.mark.parametrize("div", ALL, ids=repr)
balls = pytest.mark.parametrize("ball", ["l1", "l2"])
# on a simplex the 1-norm is the same everywhere
moving = pytest.mark.parametrize(
    ("div", "ball"), [(div, ball) for div in ALL for ball in ("l1", "l2") if ball == "l2" or not hasattr(div, "total")]
)
laws = settings(max_examples=25, deadline=None)
fractions = st.floats(0.05, 0.99)


def norm_of(ball, w):
    return np.abs(w).sum() if ball == "l1" else float(np.linalg.norm(w))


def project(div, ball, w, radius):
    return getattr(div, f"project_{ball}_ball")(w, radius)


def radius_for(div, ball, w, fraction):
    """A radius so that w lies outside, and a point of the domain inside the ball."""
    norm = norm_of(ball, w)
    if isinstance(div, SimplexEntropy):
        least = div.total / np.sqrt(len(w))
        assume(norm > least * (1 + 1e-6))
        return least + fraction * (norm - least)
    assume(norm > 0)
    return fraction * norm


def into_ball(div, ball, u, radius):
    """A point of the domain inside the ball, from a point of the domain."""
    if not isinstance(div, SimplexEntropy):
        return u * min(1.0, radius / max(norm_of(ball, u), 1e-300))
    centre = np.full_like(u, div.total / len(u))
    while norm_of(ball, u) > radius:
        u = (u + centre) / 2
    return u


@moving
@laws
@given(vectors(2), fractions)
def test_pythagorean_inequality(div, ball, drawn, fraction):
    w = into_domain(div, drawn[0])
    radius = radius_for(div, ball, w, fraction)
    u = into_ball(div, ball, into_domain(div, drawn[1]), radius)
    projected = project(div, ball, w, radius)
    div.check_domain(projected)
    assert_allclose(norm_of(ball, projected), radius, rtol=1e-13)
    bound = div.divergence(u, projected) + div.divergence(projected, w)
    assert div.divergence(u, w) >= bound - 1e-9 * (1 + bound)


@moving
@laws
@given(vectors(1), fractions)
def test_no_point_of_the_ball_is_nearer(div, ball, drawn, fraction):
    # u is the minimum iff g.v >= g.u, g = f(u) - f(w), for all v of the ball, where g.v is at least -radius times the
    # dual norm of g; on the simplex g is free to move by a constant
    w = into_domain(div, drawn[0])
    radius = radius_for(div, ball, w, fraction)
    u = project(div, ball, w, radius)
    gradient = div.mirror(u) - div.mirror(w)
    if isinstance(div, SimplexEntropy):
        ones = np.ones_like(u)
        gradient = gradient - np.linalg.lstsq(np.column_stack([u, ones]), gradient)[0][1] * ones
    dual = np.abs(gradient).max() if ball == "l1" else np.linalg.norm(gradient)
    assert_allclose(gradient @ u, -radius * dual, rtol=1e-10, atol=1e-11)


@every
@balls
@laws
@given(vectors(1), st.floats(0.05, 2.0))
def test_points_inside_stay_where_they_are(div, ball, drawn, fraction):
    w = into_domain(div, drawn[0])
    norm = norm_of(ball, w)
    radius = max(norm * fraction, 0.01)
    if isinstance(div, SimplexEntropy):
        radius = max(radius, div.total if ball == "l1" else div.total / np.sqrt(len(w)))
    projected = project(div, ball, w, radius)
    if norm <= radius:
        assert_array_equal(projected, w)
    assert not np.shares_memory(projected, w)
    assert_array_equal(project(div, ball, projected, radius), projected)  # exactly, whatever the rounding


def test_weights_that_reach_zero_stop_there():
    w = np.array([2.0, -0.1, 0.0, 1.5])
    for div in (SquaredEuclidean(), HyperbolicEntropy(), PseudoHuber(), PNorm(3.0)):
        projected = div.project_l1_ball(w, 0.4)
        assert projected[1] == projected[2] == 0 and projected[0] > 0
        assert not np.signbit(projected).any()
        assert_array_equal(div.project_l2_ball(w, 0.4)[2], 0)


def test_weights_of_very_different_sizes():
    w = np.array([1e12, 1.0, 1e-12])
    for div in (SquaredEuclidean(), RelativeEntropy(), Burg(), PNorm(2.0), PNorm(4.0), HyperbolicEntropy()):
        for ball in ("l1", "l2"):
            for radius in (1e6, 1.0, 1e-9):
                assert_allclose(norm_of(ball, project(div, ball, w, radius)), radius, rtol=1e-11)
    near_one = np.array([1 - 1e-15, 1 - 1e-9, 0.5, 1e-12])
    for ball in ("l1", "l2"):
        for radius in (1.0, 1e-6):
            assert_allclose(norm_of(ball, project(BinaryEntropy(), ball, near_one, radius)), radius, rtol=1e-11)


def test_simplex_of_large_weights_and_a_tiny_total():
    for div in (SquaredEuclidean(), WeightedSquaredEuclidean([2.0, 2.0, 1.0]), PNorm(2.0), PNorm(3.0)):
        assert_allclose(div.project_simplex(np.array([1e12, 1e12, -5.0]), 1e-9), [5e-10, 5e-10, 0.0], rtol=1e-12)


def test_smallest_ball_that_meets_the_simplex():
    w = np.array([0.7, 0.2, 0.1])
    assert_allclose(SimplexEntropy().project_l2_ball(w, 1 / np.sqrt(3)), np.full(3, 1 / 3), rtol=1e-6)
    assert_allclose(SimplexEntropy().project_l2_ball(w, 0.5774), np.full(3, 1 / 3), atol=0.02)
    assert_array_equal(SimplexEntropy().project_l1_ball(w, 1.0), w)


def test_errors():
    with pytest.raises(ValueError, match=r"norm_2\(w\) is at least 0.5773502692, .* with 3 weights, .* larger radius"):
        SimplexEntropy().project_l2_ball([0.7, 0.2, 0.1], 0.5)
    with pytest.raises(ValueError, match=r"sum abs\(w\) is 2 in the whole domain .* use a radius of at least 2"):
        SimplexEntropy(2.0).project_l1_ball([1.0, 1.0], 1.0)

    class AboveOne(SeparableDivergence):
        lower, domain = 1.0, "w > 1"

        def potential(self, w):
            return -float(np.log(w - 1).sum())

        def mirror(self, w):
            return -1 / (w - 1)

        def inverse_mirror(self, theta):
            return 1 - 1 / theta

    for ball in ("l1", "l2"):
        with pytest.raises(ValueError, match=r"No point of the domain w > 1 has norm 1\.2; choose"):
            project(AboveOne(), ball, np.array([2.0, 3.0]), 1.2)
        assert_allclose(norm_of(ball, project(AboveOne(), ball, np.array([2.0, 3.0]), 2.5)), 2.5)
        for div in BUILT_IN:
            w = into_domain(div, np.zeros(2))
            for radius in (0.0, -1.0, np.nan, np.inf):
                with pytest.raises(ValueError, match="radius must be a positive finite number"):
                    project(div, ball, w, radius)
        with pytest.raises(ValueError, match=r"w\[1\] = 0 is outside the domain w > 0 of Burg"):
            project(Burg(), ball, [1.0, 0.0], 0.5)


# ---- smoothness: what a step costs


SMOOTH = [*BUILT_IN[:1], *BUILT_IN[2:4], *BUILT_IN[5:]]


@pytest.mark.parametrize("div", SMOOTH, ids=repr)
@laws
@given(vectors(2), st.floats(-1, 1), st.sampled_from([1e-3, 1.0, 30.0, 1e4]))
def test_a_step_costs_at_most_its_smoothness(div, drawn, fraction, scale):
    w, x, c = into_domain(div, drawn[0]), drawn[1], fraction * scale
    bound = div.smoothness(div.row_size(x))
    assert div.divergence(w, div.step(w, x, c)) <= bound * c**2 / 2 * (1 + 1e-9) + 1e-12
    assert div.dot(div.hessian_inverse(w, x), x) <= bound * (1 + 1e-12)
    assert div.smoothness(2 * div.row_size(x)) == pytest.approx(4 * bound)


@pytest.mark.parametrize("div", [RelativeEntropy(), Burg(), HyperbolicEntropy(), LogDet()], ids=repr)
def test_geometries_without_smoothness_say_so(div):
    below = div in (RelativeEntropy(), Burg())  # they have one for bounded weights
    calls = [lambda: div.smoothness(1.0), lambda: div.smoothness_below(1.0, np.inf)]
    for call in calls if below else [*calls, lambda: div.row_size([1.0])]:
        with pytest.raises(ValueError, match=r"has no bound .* SquaredEuclidean, SimplexEntropy, PNorm, Binary"):
            call()


@pytest.mark.parametrize("div", [RelativeEntropy(), Burg()], ids=repr)
@laws
@given(vectors(2), st.floats(0.1, 10.0), st.floats(0.0, 0.99), st.floats(-1.0, 1.0))
def test_smoothness_of_bounded_weights(div, drawn, upper, part, fraction):
    """Along a step that moves theta by at most `move`, x'Sx is at most M; it is attained at the bound."""
    w, x = np.minimum(into_domain(div, drawn[0]), upper), drawn[1]
    size, move = div.row_size(x), part / upper
    bound = div.smoothness_below(size, upper, move)
    c = fraction * move / size if size > 0 else 0.0
    assert div.dot(div.hessian_inverse(div.step(w, x, c), x), x) <= bound * (1 + 1e-9)
    top = np.array([upper])
    end = div.step(top, [1.0], -move)
    assert_allclose(div.hessian_inverse(end, [1.0]) * 4, div.smoothness_below(2.0, upper, move), rtol=1e-9)
    assert div.smoothness_below(2.0, upper) <= div.smoothness_below(2.0, upper, move)
    assert SquaredEuclidean().smoothness_below(2.0, upper, move) == SquaredEuclidean().smoothness(2.0)
    assert Burg().smoothness_below(2.0, upper, 1.1 / upper) == np.inf


def test_bounds_of_rows_are_checked():
    for div in SMOOTH:
        assert div.smoothness(0.0) == 0
        for bound in (-1.0, np.nan, np.inf):
            with pytest.raises(ValueError, match=r"x_bound must be a finite number >= 0, the largest row_size\(x\)"):
                div.smoothness(bound)
