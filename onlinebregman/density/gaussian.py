"""Online density estimation with the full Gaussian family: mean and covariance."""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky, solve_triangular
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._sklearn_compat import Interval, StrOptions
from .._validation import check_dense_rows, check_symmetric
from ..divergences import Conjugate, Divergence, LogDet, Scaled
from ._base import OnlineDensity

_REFRESH = 1024  # after so many rows the inverse is computed afresh, so that rounding errors do not add up


class _Progress(NamedTuple):
    """What a stream has come to; never changed in place."""

    total: np.ndarray  # k1 mu_1 + sum of weight * x
    weight: float  # k1 + sum of weights
    scatter: np.ndarray  # weight * covariance
    inverse: np.ndarray  # of scatter
    log_det: float  # of scatter
    rows: int
    loss: float


class OnlineGaussian(OnlineDensity):
    """Gaussian density whose mean and covariance are learned online.

    The exponential family of x and x x': with z = (x, 1), expectation parameter W = E[z z'] and potential
    F(W) = -ln det(W) / 2, the LogDet geometry of the metric learners. Each row is predicted by the member

        W_t = (k1 W_1 + sum z z') / (k1 + n),    k1 = k ("incremental_offline") or k + 1 ("forward"),

    n rows so far and W_1 from the prior's mean and covariance, and then learned.

    Parameters
    ----------
    strategy : {"forward", "incremental_offline"}, default="forward"
        Whether the prior counts for one row more than `prior_weight`.
    prior_weight : float, default=0.0
        How many rows the prior counts for, k; > 0 for "incremental_offline".
    prior_mean : float or array-like of shape (n_features,), default=0.0
        Mean of the prior.
    prior_covariance : float or array-like of shape (n_features, n_features), default=1.0
        Covariance of the prior, positive definite; a number for so many times the identity.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        Mean of the Gaussian that predicts the next row.
    covariance_, precision_ : ndarray of shape (n_features, n_features)
        Its covariance, and the inverse of that.
    expectation_parameters_ : ndarray of shape (n_features + 1, n_features + 1)
        W, positive definite.
    natural_parameters_ : ndarray of shape (n_features + 1, n_features + 1)
        f(W) = -W^-1 / 2.
    cumulant_, conjugate_ : Divergence
        The divergences of the conjugate of F, and of F; D_F(W, W~) is the relative entropy of W~ from W.
    t_ : int
        Rows learned; rows of weight zero do not count.
    cumulative_loss_ : float
        Sum of weight * -ln P(x), each row predicted before it was learned.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    See Also
    --------
    OnlineExponentialFamily : Coordinates one by one; Gaussians of given variance with regret bounds.
    sklearn.covariance.ShrunkCovariance : A covariance from all rows at once.

    Notes
    -----
    All parameters are read when learning starts. A row of weight h counts h times in sums and losses. With
    k_t = k1 + h_1 + ... + h_{t-1}, for every Gaussian of moments W (Key Lemma)

        sum h_t (L_t(W_t) - L_t(W)) = k1 D_F(W_1, W) - k_{T+1} D_F(W_{T+1}, W) + sum k_{t+1} D_F(W_{t+1}, W_t).

    There is no bound on the regret for all sequences: covariances may come arbitrarily near to singular.
    O(n_features^2) a row and in memory.

    References
    ----------
    .. [1] K. S. Azoury, M. K. Warmuth, "Relative Loss Bounds for On-line Density Estimation with the Exponential Family
       of Distributions", Machine Learning 43, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import OnlineGaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.multivariate_normal([1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]], size=5000)
    >>> model = OnlineGaussian().fit(X)
    >>> model.covariance_.round(1)
    array([[2. , 0.5],
           [0.5, 1. ]])
    """

    _parameter_constraints: dict = {
        "strategy": [StrOptions({"forward", "incremental_offline"})],
        "prior_weight": [Interval(Real, 0, None, closed="left")],
        "prior_mean": [Real, "array-like"],
        "prior_covariance": [Interval(Real, 0, None, closed="neither"), "array-like"],
    }

    def __init__(
        self,
        *,
        strategy: str = "forward",
        prior_weight: float = 0.0,
        prior_mean: float | ArrayLike = 0.0,
        prior_covariance: float | ArrayLike = 1.0,
    ) -> None:
        self.strategy = strategy
        self.prior_weight = prior_weight
        self.prior_mean = prior_mean
        self.prior_covariance = prior_covariance

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log-density of each row as the next one of the stream.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            ln P(x).
        """
        check_is_fitted(self)
        X = check_dense_rows(self, X, reset=False)
        lower = cholesky(self.covariance_, lower=True)
        white = solve_triangular(lower, (X - self.location_).T, lower=True)
        log_det = 2 * np.log(np.diag(lower)).sum()
        return -((white**2).sum(axis=0) + log_det + X.shape[1] * np.log(2 * np.pi)) / 2

    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> np.ndarray:
        """Draw rows from the Gaussian that predicts the next row.

        Parameters
        ----------
        n_samples : int, default=1
            How many rows.
        random_state : int, RandomState instance or None, default=None
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Independent rows.
        """
        check_is_fitted(self)
        white = check_random_state(random_state).normal(size=(n_samples, len(self.location_)))
        return self.location_ + white @ cholesky(self.covariance_, lower=True).T

    @property
    def location_(self) -> np.ndarray:
        """Mean of the Gaussian that predicts the next row, shape (n_features,)."""
        return self._now().total / self._now().weight

    @property
    def covariance_(self) -> np.ndarray:
        """Its covariance, shape (n_features, n_features)."""
        return self._now().scatter / self._now().weight

    @property
    def precision_(self) -> np.ndarray:
        """Inverse of its covariance, shape (n_features, n_features)."""
        return np.linalg.inv(self.covariance_)

    @property
    def expectation_parameters_(self) -> np.ndarray:
        """W = E[z z'] with z = (x, 1), shape (n_features + 1, n_features + 1)."""
        mean = np.append(self.location_, 1.0)
        moments = np.outer(mean, mean)
        moments[:-1, :-1] += self.covariance_
        return moments

    @property
    def natural_parameters_(self) -> np.ndarray:
        """f(W) = -W^-1 / 2, shape (n_features + 1, n_features + 1)."""
        return self.conjugate_.mirror(self.expectation_parameters_)

    @property
    def conjugate_(self) -> Divergence:
        """The divergence of F(W) = -ln det(W) / 2, a function of expectation parameters."""
        self._now()
        return Scaled(LogDet(), 0.5)

    @property
    def cumulant_(self) -> Divergence:
        """The divergence of the conjugate of F, a function of natural parameters."""
        return Conjugate(self.conjugate_)

    def _start(self, n: int) -> None:
        """Read the parameters, and begin a stream of no rows."""
        k1 = float(self.prior_weight) + (self.strategy == "forward")
        if k1 == 0:
            raise ValueError(
                "prior_weight=0 leaves strategy='incremental_offline' without a first prediction; give a positive "
                "prior_weight, or use strategy='forward'."
            )
        mean = np.asarray(self.prior_mean, dtype=np.float64)
        if mean.shape not in ((), (n,)) or not np.isfinite(mean).all():
            raise ValueError(f"prior_mean = {self.prior_mean}; give a finite number, or one for each of {n} features.")
        if isinstance(self.prior_covariance, Real):
            covariance = float(self.prior_covariance) * np.eye(n)
        else:
            covariance = check_symmetric(self.prior_covariance, "prior_covariance", n)
        scatter = k1 * covariance
        try:
            inverse, log_det = _invert(scatter)
        except np.linalg.LinAlgError:
            raise ValueError("prior_covariance is not positive definite; add a multiple of the identity.") from None
        self._progress = _Progress(k1 * np.broadcast_to(mean, n), k1, scatter, inverse, log_det, 0, 0.0)

    def _learn(self, X: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> None:
        """One pass over validated rows."""
        start = 0
        while start < len(X):  # in blocks that end where the inverse is due, wherever the call began
            rows = slice(start, start + _REFRESH - self._progress.rows % _REFRESH)
            now = self._advance(self._progress, X[rows], weights[rows])
            if not (np.isfinite(now.loss) and np.isfinite(now.scatter).all()):
                row = start + int(np.abs(X[rows]).max(axis=1).argmax())
                raise ValueError(
                    f"Row {numbers[row]} (largest value {np.abs(X[row]).max():g}) or one near it cannot be learned: "
                    "its square overflows, or the covariance is singular in float64; scale the features "
                    "(sklearn.preprocessing.StandardScaler), or raise prior_weight."
                )
            self._progress = now
            start = rows.stop

    @staticmethod
    def _advance(now: _Progress, X: np.ndarray, h: np.ndarray) -> _Progress:
        """Predict and learn a block of rows: the scatter and its inverse move by rank one a row."""
        with np.errstate(all="ignore"):
            total = np.cumsum(np.vstack([now.total, h[:, None] * X]), axis=0)
            weight = np.cumsum(np.append(now.weight, h))
            steps = X - total[:-1] / weight[:-1, None]
            gains = weight[:-1] * h / weight[1:]
            scatter, inverse = now.scatter.copy(), now.inverse.copy()
            distances = np.empty(len(X))
            for i, (u, gain) in enumerate(zip(steps, gains.tolist(), strict=True)):
                v = inverse @ u
                distances[i] = q = float(u @ v)
                scatter += gain * np.multiply.outer(u, u)
                v *= np.sqrt(gain / (1 + gain * q))
                inverse -= np.multiply.outer(v, v)
            log_det = np.cumsum(np.append(now.log_det, np.log1p(gains * distances)))
            n = X.shape[1]
            loss = h * (log_det[:-1] - n * np.log(weight[:-1] / (2 * np.pi)) + weight[:-1] * distances) / 2
            loss = np.cumsum(np.append(now.loss, loss))[-1]
        rows, log_det = now.rows + len(X), float(log_det[-1])
        if rows % _REFRESH == 0 and np.isfinite(loss):
            try:
                inverse, log_det = _invert(scatter)
            except np.linalg.LinAlgError:
                loss = np.nan
        return _Progress(total[-1].copy(), float(weight[-1]), scatter, inverse, log_det, rows, float(loss))


def _invert(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """Inverse and log-determinant of a positive definite matrix."""
    lower = cholesky(matrix, lower=True)
    inverse = cho_solve((lower, True), np.eye(len(matrix)))
    return (inverse + inverse.T) / 2, float(2 * np.log(np.diag(lower)).sum())
