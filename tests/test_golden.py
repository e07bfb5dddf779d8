"""Predictions and learned attributes of every configuration equal those in `golden.npz`, up to the machine."""

import warnings

import golden
import numpy as np
from numpy.testing import assert_allclose


def test_the_numbers_are_those_of_the_golden_file():
    expected = golden.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few epochs, few classes
        found = {name: np.ravel(array) for name, array in golden.trajectories()}
    assert sorted(set(expected) - set(found)) == []
    assert sorted(set(found) - set(expected)) == [], "write them down: python tests/golden.py write"
    for name, numbers in expected.items():
        scale = np.abs(numbers[np.isfinite(numbers)]).max(initial=1.0)
        assert_allclose(found[name], numbers, rtol=1e-7, atol=1e-9 * scale, err_msg=name)
