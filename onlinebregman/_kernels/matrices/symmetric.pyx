"""Symmetric matrices from their upper triangle, and their factors."""

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
