"""Constraints: the nearest point of each set, membership, values, errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from onlinebregman.constraints import Box, L1Ball, L2Ball, Simplex, UpperBound
from onlinebregman.divergences import (
    BinaryEntropy,
    Burg,
    Divergence,
    LogDet,
    PNorm,
    RelativeEntropy,
    SimplexEntropy,
    SquaredEuclidean,
)

ALL = [
    UpperBound(0.5),
    UpperBound([0.5, 0.75, np.inf]),
    Box(0.125, 0.75),
    Box([0.0, 0.25, -np.inf], 0.5),
    Simplex(),
    Simplex(total=0.75),
    L1Ball(),
    L1Ball(radius=0.5),
    L2Ball(),
    L2Ball(radius=0.5),
]
every = pytest.mark.parametrize("constraint", ALL, ids=repr)
DIVERGENCES = [SquaredEuclidean(), RelativeEntropy(), Burg(), PNorm(p=3.0), BinaryEntropy()]
laws = settings(max_examples=25, deadline=None)
weights = st.lists(st.integers(1, 99).map(lambda k: k / 100), min_size=3, max_size=3).map(np.array)


@pytest.mark.parametrize("div", DIVERGENCES, ids=repr)
@every
@laws
@given(weights, weights)
def test_the_projection_is_the_nearest_point(div, constraint, w, u):
    projected = constraint.project(div, w)
    assert constraint.contains(projected) and not np.shares_memory(projected, w)
    if constraint.contains(w, tol=0):
        np.testing.assert_allclose(projected, w, rtol=1e-12)
    u = constraint.project(SquaredEuclidean(), u)  # any point of the set
    if np.all((u > 0) & (u < 1)):
        bound = div.divergence(u, projected) + div.divergence(projected, w)
        assert div.divergence(u, w) >= bound - 1e-9 * (1 + bound)


def test_weights_of_any_sign():
    w = np.array([-2.0, 1.0, 0.25])
    assert_array_equal(UpperBound(0.5).project(SquaredEuclidean(), w), [-2, 0.5, 0.25])
    assert_array_equal(Box(-1.0, [2.0, 0.5, 0.5]).project(PNorm(p=2.0), w), [-1, 0.5, 0.25])
    assert_array_equal(L1Ball(1.5).project(SquaredEuclidean(), w), [-1.25, 0.25, 0])
    assert not np.signbit(L1Ball(0.5).project(SquaredEuclidean(), np.array([1.0, -0.1]))).any()


def test_on_the_simplex_geometry():
    div, w = SimplexEntropy(), np.array([0.7, 0.2, 0.1])
    for constraint in (UpperBound(0.4), Box(0.15, 0.6), Simplex(1.0), L1Ball(1.0), L2Ball(0.6)):
        projected = constraint.project(div, w)
        div.check_domain(projected)
        assert constraint.contains(projected)
    with pytest.raises(ValueError, match=r"Use SimplexEntropy\(total=2\)"):
        Simplex(2.0).project(div, w)


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        (UpperBound(0.5), [0.5, -3.0], [0.5, 0.6]),
        (UpperBound([0.5, np.inf]), [0.5, 1e300], [0.51, 0.0]),
        (Box(-1.0, [0.0, 1.0]), [-1.0, 1.0], [0.1, 0.5]),
        (Box(-1.0, [0.0, 1.0]), [0.0, 0.0], [-1.1, 0.5]),
        (Simplex(2.0), [2.0, 0.0], [2.1, -0.1]),
        (Simplex(2.0), [0.7, 1.3], [1.0, 0.9]),
        (L1Ball(2.0), [1.5, -0.5], [1.5, -0.6]),
        (L2Ball(5.0), [3.0, -4.0], [3.1, -4.0]),
        (L2Ball(5.0), [0.0, 0.0], [np.inf, 0.0]),
        (Box(-1.0, 1.0), [0.0, 0.0], [np.nan, 0.0]),
        (L1Ball(2.0), [0.0, 0.0], [np.nan, 0.0]),
    ],
    ids=repr,
)
def test_membership(constraint, inside, outside):
    assert constraint.contains(inside) is True and constraint.contains(outside) is False
    assert constraint.contains(np.array(outside), tol=10.0) is bool(np.isfinite(outside).all())
    rounded = np.array(inside) * (1 + 1e-13)  # rounding errors are forgiven
    assert constraint.contains(rounded)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UpperBound(np.nan), "bound is NaN; use numbers, or infinity"),
        (lambda: UpperBound([1.0, np.nan]), r"bound\[1\] is NaN"),
        (lambda: UpperBound(-np.inf), "bound must be numbers, or infinity for no bound; got -inf"),
        (lambda: UpperBound(np.ones((2, 2))), r"bound has shape \(2, 2\); give a number, or one for each weight"),
        (lambda: Box([0.0, 2.0], 1.0), "The box is empty at index 1: lower = 2, upper = 1"),
        (lambda: Box(2.0, 1.0), "The box is empty at index 0: lower = 2, upper = 1; use lower <= upper"),
        (lambda: Box(np.inf, np.inf), r"got Box\(lower=inf, upper=inf\), which is empty"),
        (lambda: Box([0.0, np.nan], 1.0), r"lower\[1\] is NaN"),
        (
            lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]),
            r"upper end of the box has shape \(3,\), the weights have shape \(2,\)",
        ),
        (lambda: Simplex(0.0), "total must be a positive finite number"),
        (lambda: L1Ball(-1.0), "radius must be a positive finite number; got -1"),
        (lambda: L2Ball(np.inf), "radius must be a positive finite number; got inf"),
    ],
)
def test_parameters_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_errors_of_projections():
    with pytest.raises(ValueError, match=r"upper end of the box has shape \(2,\), the weights have shape \(3,\)"):
        UpperBound([1.0, 2.0]).project(SquaredEuclidean(), np.ones(3))
    with pytest.raises(ValueError, match=r"w\[0\] = -1 is outside the domain w > 0 of Burg"):
        L2Ball().project(Burg(), [-1.0, 1.0])
    with pytest.raises(ValueError, match="has no point in the domain w > 0"):
        UpperBound(0.0).project(Burg(), [1.0])


def test_divergences_that_cannot_project_say_what_is_missing():
    class Quartic(Divergence):
        def potential(self, w):
            return float((w**4).sum() / 4)

        def mirror(self, w):
            return w**3

        def inverse_mirror(self, theta):
            return np.cbrt(theta)

    for constraint, method in [
        (L1Ball(), "project_l1_ball"),
        (Simplex(), "project_simplex"),
        (Box(0, 1), "project_box"),
    ]:
        for div in (Quartic(), LogDet()):
            with pytest.raises(
                ValueError, match=rf"{type(div).__name__}\(\) cannot project .* define {method}, as subclasses"
            ):
                constraint.project(div, np.ones(2))
