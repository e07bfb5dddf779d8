"""Symmetric matrices from their upper triangle, their factors, and those of rows about their mean."""

import numpy as np
from scipy.linalg import eigh


def mirrored(upper):
    """The symmetric matrix with this upper triangle; the lower one is ignored."""
    return np.triu(upper) + np.triu(upper, 1).T  # no negative zeros


def eigen_factor(matrix):
    """L with W = L'L; rows are the principal directions, longest first, their largest entries positive.

    Negative eigenvalues are treated as rounding errors, and set to 0.
    """
    if not np.isfinite(matrix).all():
        raise ValueError("the matrix must be finite to have a factor; got infinity or NaN")
    values, vectors = eigh(matrix, driver="evr", check_finite=False)
    directions = vectors.T[::-1]
    largest = directions[np.arange(len(matrix)), np.abs(directions).argmax(axis=1)]
    return directions * np.copysign(np.sqrt(np.maximum(values[::-1], 0.0)), largest)[:, None]


def balanced_factor(matrix):
    """L with W = L'L, computed with features scaled to W_ii = 1, so that distances are accurate in any units."""
    diagonal = matrix.diagonal()
    scales = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    return eigen_factor(matrix / (scales[:, None] * scales)) * scales


def add_deviations(const double[:, ::1] X, Py_ssize_t count, double[::1] mean, double[:, ::1] scatter):
    """Add rows, one after the other, to the mean of `count` rows and their scatter matrix (Welford 1962)."""
    cdef Py_ssize_t i, j, k, d = X.shape[1]
    if not d == mean.shape[0] == scatter.shape[0] == scatter.shape[1]:
        raise ValueError(f"rows must have {mean.shape[0]} features, the number in the rows before; got {d}")
    cdef double[::1] deviation = np.empty(d)
    with nogil:
        for i in range(X.shape[0]):
            count += 1
            for j in range(d):
                deviation[j] = X[i, j] - mean[j]
                mean[j] = mean[j] + deviation[j] / count
            for j in range(d):
                for k in range(d):
                    scatter[j, k] += deviation[j] * (X[i, k] - mean[k])
