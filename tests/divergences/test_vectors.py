"""What vector divergences have by themselves, projections, smoothness, errors: see test_laws.py for the laws of all."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from potentials import BUILT_IN, HyperbolicEntropy, into_domain, vectors
from scipy.special import kl_div

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


ALL = [*BUILT_IN, HyperbolicEntropy(0.5), PseudoHuber()]
every = pytest.mark.parametrize("div", ALL, ids=repr)
unbounded = pytest.mark.parametrize("div", ALL[:-1], ids=repr)  # their mirror images
balls = pytest.mark.parametrize("ball", ["l1", "l2"])
# on a simplex the 1-norm is the same everywhere
moving = pytest.mark.parametrize(
    ("div", "ball"), [(div, ball) for div in ALL for ball in ("l1", "l2") if ball == "l2" or not hasattr(div, "total")]
)
laws = settings(max_examples=40, deadline=None)
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


# --- what they have by themselves -------------------------------------------------------------------------------------


POSITIVE = (RelativeEntropy, SimplexEntropy, Burg)


@unbounded
@laws
@given(vectors(4))
def test_box_projection(div, drawn):
    w, u, lower, upper = (into_domain(div, raw) for raw in drawn)
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    if isinstance(div, SimplexEntropy):  # widened around a point of the simplex
        lower, upper = np.minimum(lower, u), np.maximum(upper, u)
    else:
        u = np.clip(u, lower, upper)
    projected = div.project_box(w, lower, upper)
    assert np.all(projected >= lower) and np.all(projected <= upper)
    div.check_domain(projected)
    bound = div.divergence(u, projected) + div.divergence(projected, w)
    assert div.divergence(u, w) >= bound - 1e-8 * (1 + bound)


@unbounded
@laws
@given(vectors(2), st.sampled_from([0.3, 1.0, 4.0]))
def test_simplex_projection(div, drawn, total):
    w, u = into_domain(div, drawn[0]), np.exp(drawn[1])
    if isinstance(div, BinaryEntropy):
        assume(total < 0.9 * len(w))
        u = div.project_hyperplane(into_domain(div, drawn[1]), np.ones(len(w)), total)
    elif isinstance(div, SimplexEntropy):
        total = div.total
    u = u * (total / u.sum())
    projected = div.project_simplex(w, total)
    assert np.all(projected >= 0)
    assert_allclose(projected.sum(), total, rtol=1e-10)
    bound = div.divergence(u, projected) + div.divergence(projected, w)
    assert div.divergence(u, w) >= bound - 1e-8 * (1 + bound)


def test_relative_entropy_admits_zeros_of_the_comparator():
    u, w = np.array([0.0, 1.0]), np.array([0.25, 0.75])
    assert RelativeEntropy().divergence(u, w) == pytest.approx(kl_div(u, w).sum())
    assert SimplexEntropy().divergence(u, w) == pytest.approx(-np.log(0.75))
    assert BinaryEntropy().divergence(u, w) == pytest.approx(-2 * np.log(0.75))
    assert RelativeEntropy().divergence(w, u) == np.inf
    assert RelativeEntropy().divergence([1e-300], [1e300]) == pytest.approx(1e300)
    assert RelativeEntropy().divergence([1e300], [1e-300]) == pytest.approx(1e300 * (600 * np.log(10) - 1))


def test_hard_steps_stay_in_the_domain():
    x = np.array([1.0, -1.0, 0.0])
    for div in (RelativeEntropy(), SimplexEntropy(), BinaryEntropy()):
        w = into_domain(div, np.array([0.1, -0.2, 0.3]))
        for c in (30.0, -700.0, 1e4, -1e5):
            moved = div.step(w, x, c)
            assert np.all(moved > 0) and not np.isnan(moved).any()
            if not isinstance(div, RelativeEntropy):
                div.check_domain(moved)
    assert RelativeEntropy().step([1e-300], [1.0], -720.0)[0] == pytest.approx(np.exp(720 - 300 * np.log(10)))


@laws
@given(vectors(2))
def test_burg_step_range_is_exactly_the_domain(drawn):
    div, w, x = Burg(), np.exp(drawn[0]), drawn[1]
    for end in div.step_range(w, x):
        if np.isfinite(end):
            assert np.all(div.step(w, x, end * (1 - 1e-9)) > 0)
            with pytest.raises(ValueError, match=r"leaves the domain w > 0 of Burg\(\) at index \d"):
                div.step(w, x, end * (1 + 1e-9))
    assert div.step_range(w, np.zeros_like(w)) == (-np.inf, np.inf)


@pytest.mark.parametrize("ratio", [1e-300, 1e-9, 0.3, 0.49, 0.51, 1 - 1e-9, 1 + 1e-9, 1.49, 1.51, 1e9])
def test_burg_keeps_its_digits_at_any_ratio(ratio):
    with localcontext(prec=60):
        exact = Decimal(ratio) - Decimal(ratio).ln() - 1
    assert_allclose(Burg().divergence([ratio], [1.0]), float(exact), rtol=1e-14)


@pytest.mark.parametrize("p", [2.0, 3.0, 20.0])
@pytest.mark.parametrize("small", [1e-300, -1e-300, 1e-160])
def test_pnorm_of_weights_that_are_far_smaller_than_the_comparators(p, small):
    """The power of their ratio is more than a float can hold."""
    div, u = PNorm(p), [0.2, 0.3, 0.5]
    near_zero = div.potential(u) - div.potential([small, 0.5, 0.5]) - div.mirror([small, 0.5, 0.5]) @ [0.2, -0.2, 0.0]
    assert_allclose(div.divergence(u, [small, 0.5, 0.5]), near_zero, rtol=1e-12)
    assert div.divergence([1e200, 0.3], [1e200, 0.3]) == 0.0 < div.divergence([1e200, 0.3], [1e200, 1e199]) == np.inf


# --- facts that estimators ask for ------------------------------------------------------------------------------------


@unbounded
@laws
@given(st.data())
def test_the_default_start_prefers_no_feature(div, data):
    n = data.draw(st.integers(1, 9))
    start = div.default_start(n)
    div.check_domain(start)
    assert start.shape == (n,) and (start == start[0]).all()
    if div.total is not None:
        assert_allclose(start.sum(), div.total)
    elif isinstance(div, BinaryEntropy):
        assert start[0] == 0.5
    else:
        assert start[0] == (1 / n if isinstance(div, POSITIVE) else 0.0)


@pytest.mark.parametrize("div", [SquaredEuclidean(), PNorm(3.0), SimplexEntropy(), SimplexEntropy(total=2.5)], ids=repr)
@laws
@given(st.data())
def test_no_comparator_is_farther_from_the_start_than_the_largest_divergence(div, data):
    [raw] = data.draw(vectors(1))
    u, n, bound = into_domain(div, raw), len(raw), data.draw(st.floats(0.1, 10.0))
    start, largest = div.default_start(n), div.largest_divergence(max(n, 2), bound)
    if div.total is None:  # one coordinate of the largest norm attains it
        norm = np.sqrt(2 * div.divergence(u, start)) or 1.0
        u, corner = u * (bound / norm), np.eye(1, n)[0] * bound
        assert div.largest_divergence(n) == np.inf
    else:
        corner = np.eye(1, n)[0] * div.total
    assert div.divergence(u, start) <= largest * (1 + 1e-12)
    if n > 1:
        assert_allclose(div.divergence(corner, start), largest)


def test_unknown_properties_raise_an_error_on_access():
    with pytest.raises(ValueError, match=r"Burg\(\) has no bound on D\(u, w_1\)"):
        Burg().largest_divergence(3, 1.0)

    class FarAway(SquaredEuclidean):
        lower, domain = 7.0, "w > 7"

    with pytest.raises(ValueError, match=r"Neither 0 nor 1/4 nor 1/2 is in the domain w > 7 of FarAway\(\); set init"):
        FarAway().default_start(4)


@unbounded
@laws
@given(vectors(2), st.floats(-3.0, 3.0))
def test_homogeneous_potentials_have_homogeneous_divergences(div, pair, s):
    assert div.homogeneous == isinstance(div, SquaredEuclidean | PNorm)
    if div.homogeneous:
        u, w = pair
        assert_allclose(div.divergence(s * u, s * w), s**2 * div.divergence(u, w), rtol=1e-9, atol=1e-12)
        assert (div.default_start(3) == 0).all()


@pytest.mark.parametrize("p", [2.0, 3.0, 7.5])
def test_a_p_norm_divergence_is_finite_where_the_square_of_the_norm_is_not(p):
    w = np.array([1.0, -2.0, 3.0])
    u = w + np.array([1e-6, 0.0, 2e-6])
    expected = PNorm(p).divergence(u, w)
    assert PNorm(p).divergence(2.0**515 * u, 2.0**515 * w) == pytest.approx(2.0**1000 * expected * 2.0**30, rel=1e-12)
    assert PNorm(p).divergence(1e155 * w, 1e155 * w) == 0.0


@pytest.mark.parametrize(
    ("div", "w", "message"),
    [
        (SquaredEuclidean(), [1.0, np.nan], r"w\[1\] = nan is outside the domain all finite w"),
        (RelativeEntropy(), [1.0, 0.0], r"w\[1\] = 0 is outside the domain w > 0 of RelativeEntropy\(\); use positive"),
        (SimplexEntropy(), [0.5, 0.6], r"sum w = 1.1 is outside .* rescale w with project_simplex"),
        (SimplexEntropy(2.0), [2.5, -0.5], r"w\[1\] = -0.5 is outside the domain w > 0, sum w = 2"),
        (Burg(), [-1.0, 1.0], r"w\[0\] = -1 is outside the domain w > 0 of Burg\(\); use positive weights"),
        (PNorm(3.0), [np.inf], r"w\[0\] = inf is outside"),
        (BinaryEntropy(), [0.5, 1.0], r"w\[1\] = 1 is outside the domain 0 < w < 1 .* strictly between"),
        (Burg(), [[1.0]], r"w must be a vector of shape \(n,\) for .*; got shape \(1, 1\)"),
    ],
)
def test_domain_errors_name_index_value_and_remedy(div, w, message):
    with pytest.raises(ValueError, match=message):
        div.check_domain(w)
    with pytest.raises(ValueError, match=message):
        div.project_hyperplane(w, np.ones(np.shape(w)), 100.0)


def test_boundary_is_closed_only_where_the_potential_is_finite():
    RelativeEntropy().check_domain([0.0, 1.0], closed=True)
    BinaryEntropy().check_domain([0.0, 1.0], closed=True)
    with pytest.raises(ValueError, match="w > 0"):
        Burg().check_domain([0.0, 1.0], closed=True)
    with pytest.raises(ValueError, match="w > 0"):
        Burg().divergence([0.0, 1.0], [1.0, 1.0])


def test_errors_of_projections_and_parameters():
    with pytest.raises(ValueError, match=r"No step along x takes <w, x> from 2 to b = -1 within the domain w > 0"):
        RelativeEntropy().project_hyperplane([1.0, 1.0], [1.0, 1.0], -1.0)
    with pytest.raises(ValueError, match="No step along x"):
        Burg().project_hyperplane([1.0, 1.0], [1.0, 1.0], 0.0)
    with pytest.raises(ValueError, match="No step along x"):
        SimplexEntropy().project_hyperplane([0.5, 0.5], [1.0, 2.0], 3.0)
    with pytest.raises(ValueError, match="No step along x"):
        SquaredEuclidean().project_hyperplane([0.5, 0.5], [0.0, 0.0], 3.0)
    with pytest.raises(ValueError, match="not finite"):
        SquaredEuclidean().project_hyperplane([0.5, 0.5], [1.0, 0.0], np.nan)
    with pytest.raises(ValueError, match="box is empty at index 1: lower = 2, upper = 1"):
        SquaredEuclidean().project_box([0.0, 0.0], [0.0, 2.0], 1.0)
    with pytest.raises(ValueError, match=r"The box \[-2, -1\] at index 0 has no point in the domain w > 0"):
        Burg().project_box([1.0], -2.0, -1.0)
    with pytest.raises(ValueError, match=r"sums run from 0 to 0.6; widen"):
        SimplexEntropy().project_box([0.5, 0.5], 0.0, 0.3)
    for upper in (-1.0, 0.0):  # also where the other weights could make up the sum
        message = rf"box \[-inf, {upper:g}\] at index 1 has no point in the domain w > 0, sum w = 1"
        with pytest.raises(ValueError, match=message):
            SimplexEntropy().project_box([0.2, 0.3, 0.5], -np.inf, [5.0, upper, 5.0])
    with pytest.raises(ValueError, match="lower ends sum to 1, so that the weight at index 0 cannot be"):
        SimplexEntropy().project_box([0.2, 0.3, 0.5], [-1.0, 0.0, 1.0], 5.0)
    with pytest.raises(ValueError, match="positive finite number"):
        RelativeEntropy().project_simplex([1.0], 0.0)
    with pytest.raises(ValueError, match="No point of the domain 0 < w < 1 has sum 3"):
        BinaryEntropy().project_simplex([0.5, 0.5], 3.0)
    with pytest.raises(ValueError, match=r"Use SimplexEntropy\(total=2\)"):
        SimplexEntropy().project_simplex([0.5, 0.5], 2.0)
    with pytest.raises(ValueError, match=r"p must be a finite number >= 2; got 1.5"):
        PNorm(p=1.5)
    with pytest.raises(ValueError, match="positive finite number"):
        SimplexEntropy(total=-1.0)
    with pytest.raises(ValueError, match=r"theta\[1\] = 1 is outside the dual domain"):
        Burg().inverse_mirror([-1.0, 1.0])
    with pytest.raises(ValueError, match="u and w must have the same shape"):
        SquaredEuclidean().divergence([1.0], [1.0, 2.0])
