"""Covariances of a Gaussian times a weight: full matrices, or diagonals.

Both classes have the same functions, and a learner that sums squares of rows. The square of a row u is u u', or its
diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky

from .._kernels.learners.density import DiagonalGaussianLearner, FullGaussianLearner
from .._online.validation import check_symmetric
from ..divergences import Divergence, LogDet, Scaled, Stacked


class FullScatter:
    """Scatter matrices."""

    learner = FullGaussianLearner

    @staticmethod
    def check(covariance: float | ArrayLike, n: int) -> tuple[np.ndarray, float]:
        """A positive definite matrix (a number: that multiple of the identity), and ln det of it."""
        if isinstance(covariance, Real):
            covariance = float(covariance) * np.eye(n)
        covariance = check_symmetric(covariance, "prior_covariance", n)
        try:
            return covariance, _invert(covariance)[1]
        except np.linalg.LinAlgError:
            raise ValueError("prior_covariance must be positive definite; add a multiple of the identity.") from None

    @staticmethod
    def predicting(whole: np.ndarray) -> tuple[np.ndarray, float]:
        """The form of the scatter with the prior that a learner predicts from, and the log-determinant."""
        return _invert(whole)

    @staticmethod
    def square(u: np.ndarray) -> np.ndarray:
        return np.multiply.outer(u, u)

    @staticmethod
    def precision(covariance: np.ndarray) -> np.ndarray:
        with _in_float64():
            return _invert(covariance)[0]

    @staticmethod
    def log_determinant(covariance: np.ndarray, rows: int) -> float:
        """ln det; -inf if the covariance of that number of rows is singular up to rounding errors."""
        scale = np.sqrt(np.diag(covariance))
        if not scale.all():
            return -np.inf
        # independent of the units of the features
        values = np.linalg.eigvalsh(covariance / np.multiply.outer(scale, scale))
        if values[0] <= 4 * len(values) * np.sqrt(rows) * np.finfo(np.float64).eps:
            return -np.inf
        return float(2 * np.log(scale).sum() + np.log(values).sum())

    @staticmethod
    def colour(white: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Rows with this covariance from rows whose covariance is the identity."""
        with _in_float64():
            return white @ cholesky(covariance, lower=True).T

    @staticmethod
    def moments(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """E[z z'], z = (x, 1)."""
        W = FullScatter.square(np.append(mean, 1.0))
        W[:-1, :-1] += covariance
        return W

    @staticmethod
    def natural(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """-W^-1 / 2 of those moments, by blocks: the inverse of W itself is inaccurate for a mean far from zero."""
        precision = FullScatter.precision(covariance)
        tilt = -precision @ mean
        return np.block([[precision, tilt[:, None]], [tilt, 1 - mean @ tilt]]) / -2

    @staticmethod
    def conjugate() -> Divergence:
        return Scaled(LogDet(), 0.5)


class DiagonalScatter:
    """Scatters of the separate coordinates: sums of squares."""

    learner = DiagonalGaussianLearner

    @staticmethod
    def check(covariance: float | ArrayLike, n: int) -> tuple[np.ndarray, float]:
        variances = np.asarray(covariance, dtype=np.float64)
        if variances.shape not in ((), (n,)) or not ((variances > 0) & (variances < np.inf)).all():
            raise ValueError(
                f"prior_covariance = {covariance}; covariance_type='diag' needs a positive number, or one for each of "
                f"{n} features."
            )
        variances = np.broadcast_to(variances, n).copy()
        return variances, float(np.log(variances).sum())

    @staticmethod
    def predicting(whole: np.ndarray) -> tuple[np.ndarray, float]:
        return whole, 0.0

    @staticmethod
    def square(u: np.ndarray) -> np.ndarray:
        return u * u

    @staticmethod
    def precision(covariance: np.ndarray) -> np.ndarray:
        return 1 / covariance

    @staticmethod
    def log_determinant(covariance: np.ndarray, rows: int) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(covariance).sum())

    @staticmethod
    def colour(white: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        return white * np.sqrt(covariance)

    @staticmethod
    def moments(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        W = np.ones((len(mean), 2, 2))
        W[:, 0, 0] = covariance + mean**2
        W[:, 0, 1] = W[:, 1, 0] = mean
        return W

    @staticmethod
    def natural(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """-W^-1 / 2 of those moments, by blocks."""
        theta = np.empty((len(mean), 2, 2))
        theta[:, 0, 0] = -1 / covariance
        theta[:, 0, 1] = theta[:, 1, 0] = mean / covariance
        theta[:, 1, 1] = -1 - mean**2 / covariance
        return theta / 2

    @staticmethod
    def conjugate() -> Divergence:
        return Scaled(Stacked(LogDet()), 0.5)


@contextmanager
def _in_float64() -> Iterator[None]:
    """Context with an error message for a covariance without a Cholesky factor."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise ValueError(
            "covariance_ is singular in float64: the rows vary too little in some direction relative to others, and "
            "the weight of the prior is too small to compensate; raise prior_weight or prior_covariance, or scale "
            "the features (sklearn.preprocessing.StandardScaler)."
        ) from None


def _invert(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """Inverse and log-determinant of a positive definite matrix."""
    lower = cholesky(matrix, lower=True)
    inverse = cho_solve((lower, True), np.eye(len(matrix)))
    return (inverse + inverse.T) / 2, float(2 * np.log(np.diag(lower)).sum())
