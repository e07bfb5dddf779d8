"""Percentiles of distances on a stream, by which targets are set, and how often they are measured again."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onlinebregman._kernels.matrices.reservoir import Percentiles
from onlinebregman._kernels.matrices.sampler import NeighborTriplets

from onlinebregman.metric_learning._memory import known_numbers, numbers_of, random_numbers


def test_percentiles_are_those_of_numpy():
    """Bit for bit, at each update."""
    rng, n = np.random.default_rng(3), 0
    for _ in range(40):
        z = rng.choice(rng.normal(size=30), size=(rng.integers(1, 900), 1))
        for triplets, percents in ((True, [50]), (False, [5, 95])):
            known = Percentiles(None, percents, len(z))
            percentiles = (Percentiles(None, [5, 95], 2), known) if triplets else (known, Percentiles(None, [50], 1))
            drawn = NeighborTriplets(1, 5, random_numbers(0), 1, None, *percentiles)
            found = drawn.measured(z, np.ones(len(z)), triplets, False)
            assert_array_equal(found[-1], np.percentile(z * z, percents))
            n += 1
    assert n == 80


@pytest.mark.parametrize("least", [1, 2, 30])
def test_percentiles_are_measured_again_when_the_stream_has_grown_by_a_tenth(least):
    """Distances grow, so that each update changes the values."""
    percentiles = Percentiles(None, [5, 95], 2), Percentiles(None, [50], least)
    drawn = NeighborTriplets(1, 5, random_numbers(0), 1, None, *percentiles)
    margins = drawn.measured(np.sqrt(np.arange(1.0, 600.0))[:, None], np.ones(599), True, False)[:, 0]
    looks = np.flatnonzero(np.diff(margins, prepend=0.0)) + 1
    assert looks[0] == least
    for last, look in pairwise(looks.tolist()):
        assert look == max(np.ceil(1.1 * last), last + 1)
    assert looks[-1] > 500


@pytest.mark.parametrize("numbers", [{"n": 2.0, "n_distances": 1.0}, {"n": 2000.0, "n_distances": 5000.0}])
def test_more_distances_than_came_or_are_kept_are_refused(numbers):
    with pytest.raises(ValueError, match="the sample must have at most"):
        Percentiles(None, [50], 1, Percentiles(None, [50], 1).get_state() | numbers)


@pytest.mark.parametrize("n", [1, 49, 50, 200])
@pytest.mark.parametrize("labels", [{5: 0, -3: 1, 7: 2}, {}, {2**62: 0, 1: 1}, {True: 0, 2: 1}, {"a": 0}, {2**70: 0}])
def test_numbers_of_classes_by_arrays_are_those_of_a_dict(n, labels):
    rng = np.random.default_rng(0)
    values = (
        [5, -3, 7],
        [5, -3, 9],
        [1, 2**62],
        np.array([1, 2], dtype=np.int8),
        np.array(["a"]),
        np.array([5, 7], "u8"),
    )
    for y in (rng.choice(some, n) for some in values):
        expected = [labels.get(label, -1) for label in y.tolist()]
        found = known_numbers(y, labels)
        assert (found is None) == (-1 in expected)
        assert found is None or found.tolist() == expected
        numbers, known = numbers_of(y, labels)
        assert [known[label] for label in y.tolist()] == numbers.tolist()
        assert list(known)[: len(labels)] == list(labels) and (found is None) == (known is not labels)
