"""The initial metric."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import make_spd_matrix

from .._online.types import RandomState
from .._online.validation import check_symmetric

# measured on rows, but for the first
PRIORS = ("identity", "variance", "covariance")
# other names of the parameter `prior`
MORE_PRIORS = ("pca", "lda", "auto", "random")

Prior = Literal["identity", "variance", "covariance", "pca", "lda", "auto", "random"] | ArrayLike

# Weight of the directions that "pca" and "lda" do not select, as a share of that of the others: W stays definite.
_FLOOR = 0.1


def prior_matrix(
    prior: str | ArrayLike,
    X: np.ndarray,
    labels: np.ndarray | None = None,
    n_components: int | None = None,
    random_state: RandomState = None,
) -> np.ndarray:
    """The matrix of the parameter `prior`, for the rows X of the first call, and their labels if they have any.

    "identity", "variance" (diagonal, 1 / variance of each feature), "covariance" (inverse of the covariance; the
    correlations are shrunk towards 0 as Ledoit and Wolf do, so that it exists), "pca" and "lda" (`n_components`
    principal components, or discriminants, weigh more than other directions), "auto" (one of these two, or the
    identity), "random", or a positive definite matrix.
    """
    n_features = X.shape[1]
    if isinstance(prior, str):
        if prior == "auto":
            prior = _chosen(X, labels, n_components or n_features)
        if prior == "identity":
            return np.eye(n_features)
        if prior == "random":
            matrix = make_spd_matrix(n_features, random_state=random_state)
            return matrix * (n_features / np.trace(matrix))
        X = X.astype(np.float64, copy=False)
        if not moving_features(X).any():
            raise ValueError(
                f"prior={prior!r} is measured on the rows of the first call, and no feature of its {len(X)} row(s) "
                'varies; give more rows, or use prior="identity".'
            )
        if prior == "variance":
            return np.diag(1 / _deviations(X) ** 2)
        if prior == "covariance":
            return _inverse(_shrunk_covariance(X))
        return _principal_directions(X, n_components) if prior == "pca" else _discriminants(X, labels, n_components)
    prior = check_symmetric(prior, "prior", n_features)
    diagonal = np.diag(prior)
    scales = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))  # columns may have any unit
    smallest = linalg.eigvalsh(prior / np.outer(scales, scales), subset_by_index=[0, 0])[0]
    if not smallest > n_features * np.finfo(float).eps:
        raise ValueError(
            f"prior is not positive definite (smallest eigenvalue {smallest:g}, with a diagonal of ones); add a "
            "multiple of the identity."
        )
    return prior


def _chosen(X: np.ndarray, labels: np.ndarray | None, n_components: int) -> str:
    """What scikit-learn's NeighborhoodComponentsAnalysis chooses: "lda" or "pca" if they select directions."""
    if labels is not None and n_components < len(np.unique(labels)) < len(X) and _within(X, labels).any():
        return "lda"
    return "pca" if n_components < min(X.shape) else "identity"


def _deviations(X: np.ndarray) -> np.ndarray:
    """Standard deviations of the features; for constant ones the mean scale."""
    deviations = X.std(axis=0)
    return np.where(moving_features(X), deviations, np.sqrt(np.mean(deviations**2)))


def _shrunk_covariance(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Correlations, shrunk so that they have an inverse, and deviations.

    Of two rows, whose products with themselves are equal, Ledoit and Wolf's estimate is that correlations are certain.
    """
    deviations = _deviations(X)
    correlations = ledoit_wolf(X / deviations)[0] if len(X) > 2 else np.eye(X.shape[1])
    correlations[np.diag_indices(len(correlations))] += 1e-10
    return correlations, deviations


def _inverse(covariance: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    correlations, deviations = covariance
    inverse = linalg.inv(correlations) / np.outer(deviations, deviations)
    return (inverse + inverse.T) / 2


def _principal_directions(X: np.ndarray, n_components: int | None) -> np.ndarray:
    """The identity on the leading principal components, `_FLOOR` of it elsewhere."""
    _, directions = linalg.eigh(np.atleast_2d(np.cov(X.T)))
    leading = directions[:, ::-1][:, :n_components]
    return _FLOOR * np.eye(X.shape[1]) + (1 - _FLOOR) * leading @ leading.T


def _discriminants(X: np.ndarray, labels: np.ndarray | None, n_components: int | None) -> np.ndarray:
    """The inverse of the covariance within classes on the leading linear discriminants, `_FLOOR` of it elsewhere."""
    if labels is None or not 2 <= len(np.unique(labels)) < len(X):
        raise ValueError(
            'prior="lda" is measured on the labelled rows of the first call, which must be of two or more classes, and '
            'more than these; give such rows, or use prior="covariance".'
        )
    classes, codes = np.unique(labels, return_inverse=True)
    within = _within(X, labels)
    if not within.any():
        raise ValueError(
            f'prior="lda" is measured on the rows of the first call, and no feature of its {len(X)} rows varies within '
            'a class; give more rows, or use prior="variance".'
        )
    means = np.array([X[codes == number].mean(axis=0) for number in range(len(classes))])[codes]
    correlations, deviations = _shrunk_covariance(within)
    between = np.where(moving_features(X), means - X.mean(axis=0), 0.0) / deviations
    _, directions = linalg.eigh(between.T @ between, correlations)  # of variance 1 within classes
    leading = directions[:, ::-1][:, : min(n_components or len(X), len(classes) - 1)] / deviations[:, None]
    return _FLOOR * _inverse((correlations, deviations)) + (1 - _FLOOR) * leading @ leading.T


def _within(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rows minus the means of their classes."""
    within = np.empty(X.shape)
    for label in np.unique(labels):
        within[labels == label] = centred(X[labels == label])
    return within


def centred(X: np.ndarray) -> np.ndarray:
    """Rows minus their mean; exactly 0 for features that only vary by rounding errors."""
    return np.where(moving_features(X), X - X.mean(axis=0), 0.0)


def moving_features(X: np.ndarray) -> np.ndarray:
    """Mask of the features that vary by more than rounding errors."""
    return X.std(axis=0) > 1e-10 * np.abs(X).max(axis=0)


def nearby_origin(X: np.ndarray) -> np.ndarray | None:
    """A row to subtract from rows that are all far from 0, so that products of them give precise distances, or None."""
    mean = X.mean(axis=0)
    return X[0] if np.einsum("ij,ij", X, X) < (1 + 1e-6) * len(X) * (mean @ mean) else None


def relative(X: np.ndarray, origin: np.ndarray | None) -> np.ndarray:
    return X if origin is None else X - origin
