"""Tables of rows: their permutations are those of `RandomState`, bit for bit."""

import numpy as np
import pytest
from onlinebregman._kernels.rows.table import permutation


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 16383, 16384, 16385, 65535, 65536, 65537, 100_003])
def test_it_is_numpys(n):
    ours, theirs = np.random.RandomState(n), np.random.RandomState(n)
    rows = 3 * np.arange(n)
    for _ in range(3):
        np.testing.assert_array_equal(permutation(ours, n), theirs.permutation(n))
        np.testing.assert_array_equal(permutation(ours, rows), theirs.permutation(rows))
        assert ours.normal() == theirs.normal()
    np.testing.assert_array_equal(rows, 3 * np.arange(n))


def test_other_generators_are_numpys():
    ours, theirs = (np.random.RandomState(np.random.PCG64(3)) for _ in range(2))
    np.testing.assert_array_equal(permutation(ours, 20_000), theirs.permutation(20_000))
    assert ours.uniform() == theirs.uniform()
