"""Errors of the vector divergences: they name the index, the value and the remedy."""

import numpy as np
import pytest

from onlinebregman.divergences import BinaryEntropy, Burg, PNorm, RelativeEntropy, SimplexEntropy, SquaredEuclidean


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
