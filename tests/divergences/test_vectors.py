"""What vector divergences have by themselves, and their errors: see test_laws.py for the laws of all."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from potentials import BUILT_IN, HyperbolicEntropy, into_domain, vectors
from scipy.special import kl_div

from onlinebregman.divergences import (
    BinaryEntropy,
    Burg,
    PNorm,
    RelativeEntropy,
    SimplexEntropy,
    SquaredEuclidean,
)

ALL = [*BUILT_IN, HyperbolicEntropy(0.5)]
POSITIVE = (RelativeEntropy, SimplexEntropy, Burg)
laws = settings(max_examples=40, deadline=None)
every = pytest.mark.parametrize("div", ALL, ids=repr)


@every
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


@every
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


@every
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


@every
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
