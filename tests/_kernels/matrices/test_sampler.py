"""Instances of matrix learners: their targets and rates."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onlinebregman._kernels.matrices.sampler import targets_and_rates


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_targets_and_rates_of_pairs_and_triplets(width, one_sided, scaled):
    rows = np.ones((5, width))
    rows[[1, 4], :2] = 0  # the second half of a triplet is not used
    targets, senses = np.arange(5.0), np.array([1.0, -1.0, 0.0, -1.0, 1.0])
    weights, scales = np.array([1.0, 2.0, 0.0, 4.0, 5.0]), np.array([2.0, 1.0, 1.0, 0.0, 1.0])
    aims, rates, collapsed = targets_and_rates(rows, targets, senses, weights, scales, 2, one_sided, scaled)
    assert_array_equal(aims, targets * senses if one_sided else targets)
    assert_array_equal(rates, [0.25 if scaled else 1.0, 0, 0, 4, 0])
    assert_array_equal(collapsed, [1, 4])


@pytest.mark.parametrize("short", range(5))
def test_instances_that_lack_something_are_refused(short):
    parts = [np.ones((5, 2)), *(np.ones(5) for _ in range(4))]
    parts[short] = parts[short][:4]
    with pytest.raises(ValueError, match="for each of"):
        targets_and_rates(*parts, 2, False, True)
    with pytest.raises(ValueError, match="of 3 or more values"):
        targets_and_rates(np.ones((5, 2)), *(np.ones(5) for _ in range(4)), 3, False, True)
