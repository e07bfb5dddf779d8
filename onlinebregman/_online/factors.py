"""Factors L of a learned matrix W = L'L."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgejsv
from sklearn.utils.extmath import svd_flip

from .._kernels.matrices.symmetric import eigen_factor

# Eigenvalues of a badly scaled matrix below this fraction of the largest are inaccurate.
_GRADED = 1e-8
EPS = np.finfo(np.float64).eps


def factor(matrix: np.ndarray) -> np.ndarray:
    """L with W = L'L; rows are the principal directions, longest first.

    For a multiple of the identity, of which every direction is a principal one, the rows are the features in order.
    """
    if np.array_equal(matrix, matrix[0, 0] * np.eye(len(matrix))):
        return np.sqrt(matrix)
    L = eigen_factor(matrix)
    return _graded_factor(matrix) if L[-1] @ L[-1] < _GRADED * (L[0] @ L[0]) else L


def _graded_factor(matrix: np.ndarray) -> np.ndarray:
    """`factor` for small eigenvalues, caused by features of very different sizes or by a low rank.

    W = D R D with ones on the diagonal of R: one-sided Jacobi rotations compute the singular values of the factor of R
    times D, each with a small relative error. Eigenvalues of R that rounding cannot tell from zero are zero: they come
    out as zero on one processor and as 1e-16, whose root is 1e-8, on another.
    """
    diagonal = matrix.diagonal()
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    L = eigen_factor(matrix / scale / scale[:, None])
    L[np.einsum("ij,ij->i", L, L) < 10 * len(L) * EPS] = 0.0
    order = np.argsort(-scale, kind="stable")
    largest = scale.max()
    # the transposed factor, rows from the largest to the smallest, for which the rotations converge fastest
    values, vectors, _, work, _, info = dgejsv(
        (L * (scale / largest))[:, order].T.copy(order="F"), joba=2, jobu=0, jobv=3
    )
    if info != 0:
        return L * scale
    directions = np.empty_like(vectors)
    directions[order] = vectors
    directions, _ = svd_flip(directions, None)
    return (directions * (largest * values * (work[0] / work[1]))).T
