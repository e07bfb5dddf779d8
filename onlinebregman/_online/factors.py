"""Factors L of a learned matrix W = L'L."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgejsv
from sklearn.utils.extmath import svd_flip

from .._kernels.matrices.symmetric import eigen_factor

# Below this part of the largest eigenvalue the others of a badly scaled matrix have lost digits.
_GRADED = 1e-8


def factor(matrix: np.ndarray) -> np.ndarray:
    """L with W = L'L; rows are the principal directions, longest first.

    Of a multiple of the identity every direction is a principal one: its rows are the features, in their order.
    """
    if np.array_equal(matrix, matrix[0, 0] * np.eye(len(matrix))):
        return np.sqrt(matrix)
    L = eigen_factor(matrix)
    if (L[-1] @ L[-1] < _GRADED * (L[0] @ L[0])) and (matrix.diagonal() > 0).all():
        return _graded_factor(matrix)
    return L


def _graded_factor(matrix: np.ndarray) -> np.ndarray:
    """`factor` where features of very different sizes, not directions that are missing, make eigenvalues small.

    W = D R D with ones on the diagonal of R: the singular values of the factor of R times D are found by one-sided
    Jacobi rotations, each to its own digits.
    """
    scale = np.sqrt(matrix.diagonal())
    L = eigen_factor(matrix / scale / scale[:, None])
    order = np.argsort(-scale, kind="stable")
    largest = scale.max()
    # of the transposed factor, rows from the largest to the smallest: what the rotations like best
    values, vectors, _, work, _, info = dgejsv(
        (L * (scale / largest))[:, order].T.copy(order="F"), joba=2, jobu=0, jobv=3
    )
    if info != 0:
        return L * scale
    directions = np.empty_like(vectors)
    directions[order] = vectors
    directions, _ = svd_flip(directions, None)
    return (directions * (largest * values * (work[0] / work[1]))).T
