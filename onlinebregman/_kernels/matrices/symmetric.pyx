"""Symmetric matrices from their upper triangle, and their factors."""

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dsyevr, dsyevr_lwork


def mirrored(upper):
    """The symmetric matrix with this upper triangle; the lower one is ignored."""
    matrix = upper + 0.0  # no negative zeros
    cdef double[:, :] out = matrix
    cdef Py_ssize_t i, j
    for i in range(out.shape[0]):
        for j in range(i):
            out[i, j] = out[j, i]
    return matrix


def eigen_factor(matrix):
    """L with W = L'L; rows are the principal directions, longest first, their largest entries positive.

    Negative eigenvalues are treated as rounding errors, and set to 0.
    """
    if not np.isfinite(matrix).all():
        raise ValueError("the matrix must be finite to have a factor; got infinity or NaN")
    n_work, n_integers, _ = dsyevr_lwork(len(matrix), lower=1)
    values, vectors, *_, info = dsyevr(matrix, lower=1, lwork=int(n_work), liwork=n_integers)
    if info != 0:
        raise LinAlgError(f"dsyevr found no eigenvalues of a symmetric matrix of size {len(matrix)} (info = {info})")
    directions = vectors.T[::-1]
    largest = directions[np.arange(len(matrix)), np.abs(directions).argmax(axis=1)]
    return directions * np.copysign(np.sqrt(np.maximum(values[::-1], 0.0)), largest)[:, None]


def balanced_factor(matrix):
    """L with W = L'L, computed with features scaled to W_ii = 1, so that distances are accurate in any units."""
    diagonal = matrix.diagonal()
    scales = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    return eigen_factor(matrix / (scales[:, None] * scales)) * scales
