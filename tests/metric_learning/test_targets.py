"""How often targets are measured again on a stream."""

from itertools import pairwise

import numpy as np
import pytest

from onlinebregman.metric_learning._targets import Percentiles


@pytest.mark.parametrize("least", [1, 2, 30])
def test_percentiles_are_measured_again_when_the_stream_has_grown_by_a_tenth(least):
    """Distances grow, so that each look changes the values."""
    percentiles, rng = Percentiles(None, [50], least), np.random.RandomState(0)
    looks, values = [], None
    for seen in range(1, 600):
        percentiles.add(np.array([float(seen)]), rng)
        if percentiles.values != values:
            looks.append(seen)
            values = percentiles.values
    assert looks[0] == least
    for last, look in pairwise(looks):
        assert look == max(np.ceil(1.1 * last), last + 1)
    assert looks[-1] > 500
