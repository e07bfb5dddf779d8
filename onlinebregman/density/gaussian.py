"""Online density estimation with Gaussians: mean and covariance, full or diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.learners.density import DensityLearner
from .._online.estimator import Examples
from .._online.merging import Moments, pooled
from .._online.validation import check_draws, check_learned, read_only
from .._sklearn_compat import Interval, StrOptions
from ..divergences import Divergence
from ._base import OnlineDensity, in_float64, refuse_log_density
from ._scatters import DiagonalScatter, FullScatter

_TINY = np.finfo(np.float64).tiny


class _Prior(NamedTuple):
    k: float  # its weight as a number of rows, in the comparison with the best Gaussian in hindsight
    mean: np.ndarray
    covariance: np.ndarray
    log_det: float


class OnlineGaussian(OnlineDensity):
    """Gaussian density whose mean and covariance are learned online.

    The exponential family of x and x x': with z = (x, 1), expectation parameter W = E[z z'] and potential
    F(W) = -ln det(W) / 2, the LogDet geometry of the metric learners. Each row is predicted by the member

        W_t = (k1 W_1 + sum z z') / (k1 + n),    k1 = k ("incremental_offline") or k + 1 ("forward"),

    n rows so far and W_1 from the prior's mean and covariance, and then learned. With covariance_type="diag" every
    feature has its own Gaussian, z = (x_i, 1), and losses and divergences are sums over the features.

    Parameters
    ----------
    covariance_type : {"full", "diag"}
        Whether the covariance is full, or diagonal with independent features.
    strategy : {"forward", "incremental_offline"}
        Whether the weight of the prior is increased by one row ("forward").
    prior_weight : float
        Number of rows that the prior is worth, k; > 0 for "incremental_offline".
    prior_mean : float or array-like of shape (n_features,)
        Mean of the prior.
    prior_covariance : float or array-like of shape (n_features, n_features) or (n_features,)
        Covariance of the prior, positive definite; its diagonal for "diag"; a number for that multiple of the identity.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        Mean of the Gaussian that predicts the next row.
    covariance_, precision_ : ndarray of shape (n_features, n_features), or (n_features,) for "diag"
        Its covariance, and the inverse of that; for "diag" their diagonals.
    expectation_parameters_ : ndarray of shape (n_features + 1, n_features + 1), or (n_features, 2, 2) for "diag"
        W, positive definite; for "diag" that of every feature.
    natural_parameters_ : ndarray of the shape of expectation_parameters_
        f(W) = -W^-1 / 2.
    cumulant_, conjugate_ : Divergence
        The divergences of the conjugate of F, and of F; D_F(W, W~) is the relative entropy of W~ from W.
    t_ : int
        Rows learned; rows of weight zero do not count.
    cumulative_loss_ : float
        Sum of weight * -ln P(x), each row predicted before it was learned.
    offline_loss_ : float
        The minimum of sum weight * -ln P(x) + k D_F(W_1, W) over all Gaussians with moments W, attained at W_B = (k W_1
        + sum z z') / (k + n). Without a prior the loss of the best Gaussian in hindsight. It is -inf if the covariance
        of W_B is numerically singular: without a prior, until the rows span the space, and for "diag" while a feature
        is constant.
    regret_ : float
        `cumulative_loss_ - offline_loss_`.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    OnlineExponentialFamily : Coordinates one by one; Gaussians of given variance with regret bounds.
    sklearn.covariance.ShrunkCovariance : A covariance from all rows at once.

    Notes
    -----
    An absurd row moves the mean and widens the covariance for good; :class:`DensityOutlierDetector` limits what it
    learns of it. The prior is in units of the features: with means of 10^6 or deviations of 10^-3, standardise them.

    All parameters are read when learning starts. A row of weight h counts h times in sums and losses. With
    k_t = k1 + h_1 + ... + h_{t-1}, for every Gaussian of moments W (Key Lemma)

        sum h_t (L_t(W_t) - L_t(W)) = k1 D_F(W_1, W) - k_{T+1} D_F(W_{T+1}, W) + sum k_{t+1} D_F(W_{t+1}, W_t).

    With d features, weights of sum n, and covariances C_B and C_1 of the Gaussians of W_B and W_1,

        offline_loss_ = (n d (ln 2 pi + 1) + (k + n) ln det C_B - k ln det C_1) / 2.

    There is no bound on the regret for all sequences, since covariances can be arbitrarily close to singular. Time per
    row and memory are O(n_features^2), or O(n_features) for "diag".

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
    >>> diagonal = OnlineGaussian(covariance_type="diag").fit(X)
    >>> diagonal.covariance_.round(1)
    array([2., 1.])
    >>> diagonal.offline_loss_ > model.offline_loss_
    True
    """

    _refused = (
        "its square overflows, or the covariance is singular in float64; scale the features "
        "(sklearn.preprocessing.StandardScaler), or raise prior_weight."
    )

    _parameter_constraints: dict = {
        "covariance_type": [StrOptions({"full", "diag"})],
        "strategy": [StrOptions({"forward", "incremental_offline"})],
        "prior_weight": [Interval(Real, 0, None, closed="left")],
        "prior_mean": [Real, "array-like"],
        "prior_covariance": [Interval(Real, 0, None, closed="neither"), "array-like"],
    }

    def __init__(
        self,
        *,
        covariance_type: Literal["full", "diag"] = "full",
        strategy: Literal["forward", "incremental_offline"] = "forward",
        prior_weight: float = 0.0,
        prior_mean: float | ArrayLike = 0.0,
        prior_covariance: float | ArrayLike = 1.0,
    ) -> None:
        self._set_arguments(locals())

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log-density of each row as the next one of the stream.

        Parameters
        ----------
        {X}

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            ln P(x).

        Raises
        ------
        ValueError
            If the covariance is singular in float64, or a log-density overflows.
        """
        return self._predict(X)

    def _refuse_prediction(self, X: np.ndarray, row: int) -> NoReturn:
        _ = self.precision_  # an error if the covariance is singular
        refuse_log_density(X, row)

    @in_float64
    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> np.ndarray:
        """Draw rows from the Gaussian that predicts the next row.

        Parameters
        ----------
        {n_samples, random_state}

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Independent rows.

        Raises
        ------
        ValueError
            If the covariance is singular in float64.
        """
        check_learned(self)
        white = check_draws(n_samples, random_state).normal(size=(n_samples, len(self.location_)))
        return self.location_ + self._scatter.colour(white, self.covariance_)

    @read_only
    @in_float64
    def location_(self) -> np.ndarray:
        """Mean of the Gaussian that predicts the next row, shape (n_features,)."""
        now = self._fitted_state()
        return now.origin + (now.k1 * (self._prior.mean - now.origin) + now.total) / (now.k1 + now.weight)

    @read_only
    @in_float64
    def covariance_(self) -> np.ndarray:
        """Its covariance, shape (n_features, n_features); its variances, shape (n_features,), for "diag"."""
        now = self._fitted_state()
        return self._total_scatter(now, now.k1) / (now.k1 + now.weight)

    @read_only
    @in_float64
    def precision_(self) -> np.ndarray:
        """Inverse of its covariance, of the same shape."""
        covariance = self.covariance_
        return self._scatter.precision(covariance)

    @read_only
    @in_float64
    def expectation_parameters_(self) -> np.ndarray:
        """W = E[z z'] with z = (x, 1), of all features or, (n_features, 2, 2), of one after the other."""
        mean = self.location_
        return self._scatter.moments(mean, self.covariance_)

    @read_only
    @in_float64
    def natural_parameters_(self) -> np.ndarray:
        """f(W) = -W^-1 / 2, of the shape of W."""
        mean = self.location_
        return self._scatter.natural(mean, self.covariance_)

    @property
    def conjugate_(self) -> Divergence:
        """The divergence of F(W) = -ln det(W) / 2, a function of expectation parameters."""
        self._fitted_state()
        return self._scatter.conjugate()

    @property
    @in_float64
    def offline_loss_(self) -> float:
        """Minimum of sum weight * -ln P(x) + k D_F(W_1, W) over all Gaussians with moments W."""
        # sum h z'W^-1 z + k tr(W^-1 W_1) is (k + n) tr(W^-1 W_B), and least at W = W_B
        now, k = self._fitted_state(), self._prior.k
        n = now.weight
        if n == 0:
            return 0.0
        log_det = self._scatter.log_determinant(self._total_scatter(now, k) / (k + n), now.t)
        entropy = len(now.total) * (np.log(2 * np.pi) + 1)
        return float(n * entropy + (k + n) * log_det - k * self._prior.log_det) / 2

    _matrices = property(lambda self: 7 * (self.covariance_type == "full"))

    def _begin(self, data: Examples) -> None:
        n = data.X.shape[1]
        k = float(self.prior_weight)
        self._check_first_prediction(k)
        k1 = k + (self.strategy == "forward")
        mean = np.asarray(self.prior_mean, dtype=np.float64)
        if mean.shape not in ((), (n,)) or not np.isfinite(mean).all():
            raise ValueError(f"prior_mean = {self.prior_mean}; give a finite number, or one for each of {n} features.")
        kind = FullScatter if self.covariance_type == "full" else DiagonalScatter
        covariance, log_det = kind.check(self.prior_covariance, n)
        self._scatter: type[FullScatter | DiagonalScatter] = kind
        self._prior = _Prior(k, np.broadcast_to(mean, n).copy(), covariance, log_det)
        self._learner = kind.learner(self._prior.mean, k1, covariance)

    def _joined(self, parts: Sequence[DensityLearner], sums: dict[str, Any]) -> DensityLearner:
        def moments(now: DensityLearner) -> Moments:
            return Moments(now.weight, now.origin + now.total / max(now.weight, _TINY), now.scatter)

        weight, mean, own = pooled(moments(self._learner), [moments(part) for part in parts], self._scatter.square)
        memory = [parts[0].origin, weight * (mean - parts[0].origin), own.ravel()]
        rows = self._learner.replaced(np.concatenate([*memory, np.zeros(own.size)]), **sums)
        predicted, log_det = self._scatter.predicting(self._total_scatter(rows, rows.k1))
        return self._learner.replaced(np.concatenate([*memory, predicted.ravel()]), log_det=log_det, **sums)

    def _total_scatter(self, now: DensityLearner, k: float) -> np.ndarray:
        """Scatter of the rows, and of the prior as k rows, about their common mean."""
        n, prior = now.weight, self._prior
        if n == 0:
            return k * prior.covariance
        offset = prior.mean - now.origin - now.total / n
        return k * prior.covariance + now.scatter + k * n / (k + n) * self._scatter.square(offset)
