"""The initial metric."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.covariance import ledoit_wolf

from .._online.validation import check_symmetric

PRIORS = ("identity", "variance", "covariance")


def prior_matrix(prior: str | ArrayLike, X: np.ndarray) -> np.ndarray:
    """The matrix of the parameter `prior`, for the rows X of the first call.

    "identity", "variance" (diagonal, 1 / variance of each feature), "covariance" (inverse of the covariance; the
    correlations are shrunk towards 0 as Ledoit and Wolf do, so that it exists), or a positive definite matrix itself.
    """
    n_features = X.shape[1]
    if isinstance(prior, str):
        if prior == "identity":
            return np.eye(n_features)
        X = X.astype(np.float64, copy=False)
        deviations, moves = X.std(axis=0), moving_features(X)
        if not moves.any():
            raise ValueError(
                f"prior={prior!r} is measured on the rows of the first call, and no feature of its {len(X)} row(s) "
                'varies; give more rows, or use prior="identity".'
            )
        deviations = np.where(moves, deviations, np.sqrt(np.mean(deviations**2)))  # others: the mean scale
        if prior == "variance":
            return np.diag(1 / deviations**2)
        correlations, _ = ledoit_wolf(X / deviations)
        correlations[np.diag_indices(n_features)] += 1e-10
        inverse = linalg.inv(correlations) / np.outer(deviations, deviations)
        return (inverse + inverse.T) / 2
    prior = check_symmetric(prior, "prior", n_features)
    smallest = linalg.eigvalsh(prior, subset_by_index=[0, 0])[0]
    if not smallest > 0:
        raise ValueError(
            f"prior is not positive definite (smallest eigenvalue {smallest:g}); add a multiple of the identity."
        )
    return prior


def moving_features(X: np.ndarray) -> np.ndarray:
    """Mask of the features that vary by more than rounding errors."""
    return X.std(axis=0) > 1e-10 * np.abs(X).max(axis=0)
