"""Symmetric matrices: their factors, their upper triangles, and those of rows about their mean."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.matrices.symmetric import eigen_factor, mirrored


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_a_factor_has_the_principal_directions_as_rows_longest_first(d):
    Z = np.random.default_rng(d).normal(size=(d, d))
    W = Z @ Z.T
    L = eigen_factor(W)
    values, vectors = np.linalg.eigh(W)
    assert_allclose(L.T @ L, W, rtol=0, atol=1e-12 * values[-1])
    assert_allclose((L**2).sum(axis=1), values[::-1], rtol=0, atol=1e-12 * values[-1])
    assert_allclose(np.abs(L), np.abs(vectors[:, ::-1] * np.sqrt(values[::-1])).T, rtol=0, atol=1e-6 * values[-1])
    assert (L[np.arange(d), np.abs(L).argmax(axis=1)] > 0).all()


def test_eigenvalues_below_zero_count_as_zero():
    assert_allclose(eigen_factor(np.diag([4.0, -1.0, 1.0])), [[2, 0, 0], [0, 0, 1], [0, 0, 0]], atol=1e-15)


def test_a_matrix_that_is_not_finite_has_no_factor():
    with pytest.raises(ValueError, match="must be finite"):
        eigen_factor(np.diag([1.0, np.nan]))


def test_a_matrix_is_mirrored_from_its_upper_triangle_alone():
    matrix = np.arange(9.0).reshape(3, 3)
    matrix[2, 0] = np.nan
    for upper in (matrix, np.asfortranarray(matrix), np.kron(matrix, np.ones((2, 2)))[::2, ::2]):
        assert_array_equal(mirrored(upper), [[0, 1, 2], [1, 4, 5], [2, 5, 8]])
