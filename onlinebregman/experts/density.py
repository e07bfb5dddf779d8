"""The Bayes mixture of density estimators."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mixer import LogMixer
from .._online.estimator import Call
from .._online.examples import LearnsRows
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_draws, check_learned, check_rows, check_weights, dense, first_true
from ..density._base import Density, OnlineDensity
from ._base import Array, ExpertMixture, Forecasts


class DensityMixture(Density, LearnsRows, ExpertMixture):
    """Bayes mixture of density estimators: its log loss is at most that of the best expert + ln K.

    The forecast is the density q(x) = sum v_k p_k(x), and after observing x, v_k ~ v_k p_k(x): Bayes' rule. The losses
    of the mixture add up to -ln sum prior_k exp(-L_k), for any stream of rows of weight 1, so that

        loss of the mixture  <=  L_k + ln(1 / prior_k)    for every expert k.

    This also holds for weights below 1; larger ones add a cost, which `regret_bound_` includes.

    With `share` > 0 a fraction of the total weight is redistributed after each row, which is Bayes' rule for a best
    expert that may change at any time: the loss is at most that of the best *sequence* of experts + `tracking_bound`.

    Parameters
    ----------
    estimators : list of (str, estimator) or None
        The experts: online density estimators with `score_samples`, cloned when learning starts; all of them learn each
        row after it was forecast. Fitted ones in a :class:`~sklearn.frozen.FrozenEstimator`, such as scikit-learn's
        `KernelDensity` and `GaussianMixture`, do not change. None: the columns of X are the log-densities of the
        experts, -inf for a density of 0. An expert whose log-density is NaN sleeps.
    {share, prior, history, shuffle, random_state}

    Attributes
    ----------
    weights_ : ndarray of shape (n_experts,)
        Weights in the next forecast: the posterior probabilities of the experts.
    {weights_history_}
    cumulative_loss_ : float
        Log-loss of the mixture, the sum of weight * -ln q(x), each row forecast before it was learned.
    expert_losses_ : ndarray of shape (n_experts,)
        Log-losses of the experts; infinite for one that gave density 0 to a row.
    regret_bound_ : float
        Bound on `cumulative_loss_` minus the loss of the best expert: ln K for equal priors and rows of weight <= 1.
    {estimators_, t_, n_features_in_, feature_names_in_}

    See Also
    --------
    BayesMixture : The same for probabilities of classes.
    OnlineExponentialFamily, OnlineGaussian : Experts.

    Notes
    -----
    The weight of a row multiplies its losses, and is passed on to the experts; the first bound is for weights of 1,
    `regret_bound_` for any weights. All experts must give densities with respect to the same measure (not a probability
    mass for counts together with a Gaussian density).

    References
    ----------
    .. [1] R. Schapire, COS 511, lecture 20: "Maximum entropy", its last section, on on-line log-loss.
    .. [2] M. Herbster, M. K. Warmuth, "Tracking the Best Expert", Machine Learning 32, 1998.

    Examples
    --------
    Which family are waiting times from? In this example each is the sum of three exponential variables, a gamma
    variable:

    >>> import numpy as np
    >>> from onlinebregman import DensityMixture, OnlineExponentialFamily, OnlineGaussian
    >>> X = np.random.default_rng(0).exponential(size=(200, 3)).sum(axis=1, keepdims=True)
    >>> families = [
    ...     ("exponential", OnlineExponentialFamily("exponential")),
    ...     ("gamma", OnlineExponentialFamily("gamma", shape=3.0)),
    ...     ("gaussian", OnlineGaussian()),
    ... ]
    >>> mixture = DensityMixture(families).fit(X)
    >>> regret = mixture.cumulative_loss_ - mixture.expert_losses_.min()
    >>> print(mixture.weights_.round(3), f"{regret:.3f} <= {np.log(3):.3f}")
    [0. 1. 0.] 1.099 <= 1.099
    >>> mixture.sample(2, random_state=0).shape
    (2, 1)
    """

    _forecast_method = "score_samples"

    def __init__(
        self,
        estimators: list[tuple[str, Any]] | None = None,
        *,
        share: float = 0.0,
        prior: ArrayLike | None = None,
        history: int = 0,
        shuffle: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self._set_arguments(locals())

    def score_samples(self, X: MatrixLike) -> Array:
        """Log-density of each row as the next one of the stream.

        Parameters
        ----------
        {X}

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            ln q(x); -inf where all experts with weight give density 0.
        """
        check_learned(self)
        forecasts = self._forecasts(self._check_rows(X, first=False))
        self._check_forecasts(forecasts)
        logs = np.where(np.isnan(forecasts), -np.inf, forecasts)
        return np.logaddexp.reduce(logs + self._log_weights(forecasts), axis=1)

    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> Array:
        """Draw rows from the mixture that forecasts the next row: for each, first an expert, then a row of this expert.

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
            If the experts are columns of X, or one of them has no `sample`.
        """
        check_learned(self)
        if not self.estimators_:
            raise ValueError("Rows cannot be sampled, as the experts are columns of X; give estimators.")
        for k, expert in enumerate(self.estimators_):
            if not hasattr(expert, "sample"):
                raise ValueError(f"Expert {self._name(k)} must have the method sample; got a {type(expert).__name__}.")
        rng = check_draws(n_samples, random_state)
        chosen = rng.choice(len(self.estimators_), size=n_samples, p=self.weights_)
        rows = np.empty((n_samples, self.n_features_in_))
        for k in np.unique(chosen):
            rows[chosen == k] = _sample(self.estimators_[k], int((chosen == k).sum()), rng)
        return rows

    def _check(self, call: Call, X, y: None, sample_weight: ArrayLike | None) -> Forecasts:
        X = self._check_rows(X, first=call.first)
        return Forecasts(X, weights=check_weights(sample_weight, X.shape[0], allow_all_zero=call.partial))

    def _check_rows(self, X, *, first: bool):
        # a log-density may be -inf; `_columns` checks them
        return check_rows(self, X, reset=first, finite=bool(self.estimators if first else self.estimators_))

    def _make_mixer(self, hedge: Hedge) -> LogMixer:
        return LogMixer(hedge, False, True)

    def _columns(self, X) -> Array:
        """ln p_k of each row, shape (n_samples, n_experts), from the columns of X."""
        logs = dense(X, np.float64)
        self._check_forecasts(logs)
        return logs

    def _link_of(self, expert: OnlineDensity) -> Literal["identity"] | None:
        return "identity"

    def _forecast(self, k: int, X) -> Array:
        return np.asarray(self.estimators_[k].score_samples(X), dtype=np.float64)

    def _check_forecasts(self, forecasts: Array) -> None:
        if wrong := first_true(forecasts == np.inf):
            row, k = wrong
            raise ValueError(
                f"Expert {self._name(k)} gives infinity as log-density of row {row}; remove the row or the "
                "expert, or give one that was fitted beforehand, in a sklearn.frozen.FrozenEstimator."
            )

    def _refuse(self, reason: str, row: int, forecasts: Array, targets: None) -> NoReturn:
        if reason == "bad target":
            raise ValueError(
                f"All experts with weight give density 0 to row {row}; remove it, or add an expert with a density "
                "that is positive everywhere."
            )
        super()._refuse(reason, row, forecasts, targets)


def _sample(expert, n_samples: int, rng: np.random.RandomState) -> Array:
    """Rows drawn from one expert."""
    if "random_state" in inspect.signature(expert.sample).parameters:
        return expert.sample(n_samples, random_state=rng)
    # scikit-learn's mixtures use their parameter random_state, and also return the components
    expert = copy.copy(expert.estimator if isinstance(expert, FrozenEstimator) else expert)
    drawn = expert.set_params(random_state=rng).sample(n_samples)
    return drawn[0] if isinstance(drawn, tuple) else drawn
