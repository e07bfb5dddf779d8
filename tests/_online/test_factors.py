"""Factors of learned matrices: L'L = W, the rank of W, features of any size."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from onlinebregman._online.factors import factor


@pytest.mark.parametrize("scale", [1.0, np.array([1.0, 1e6, 1e-6, 10.0, 1e3])], ids=["level", "graded"])
@pytest.mark.parametrize("n_used", [4, 5])
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_directions_that_rounding_leaves_are_none(rank, n_used, scale):
    rng = np.random.default_rng(rank)
    for _ in range(20):
        root = rng.normal(size=(rank, 5)) * scale
        root[:, n_used:] = 0.0
        L = factor(root.T @ root)
        sizes = np.abs(root).max(axis=0) + (np.arange(5) >= n_used)
        assert_allclose(L.T @ L / np.outer(sizes, sizes), root.T @ root / np.outer(sizes, sizes), atol=1e-13)
        lengths = np.linalg.norm(L, axis=1)
        assert (lengths[:rank] > 0).all() and (lengths[rank:] <= 1e-15 * lengths[0]).all()
