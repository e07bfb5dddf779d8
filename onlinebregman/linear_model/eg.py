"""Exponentiated gradient: multiplicative steps in the relative entropy."""

from __future__ import annotations

from numbers import Real
from typing import Literal

from numpy.typing import ArrayLike

from .._online.compiled import Spec
from .._online.mirror import MirrorEstimator
from .._online.types import RandomState
from .._sklearn_compat import Interval, StrOptions
from ..divergences import RelativeEntropy, SimplexEntropy
from ..losses import resolve_loss
from ..schedules import LearningRate, Schedule
from ._base import OnlineLinearRegressor, Update
from ._certificates import RegretBoundsMixin


class EntropyMirrorMixin(MirrorEstimator):
    """Mirror map of the relative entropy: f(w) = ln w, on the simplex, on all positive weights, or for w+ - w-.

    Parameters
    ----------
    weights : {"signed", "simplex", "positive"}
        Weights of any sign with sum |w| <= total, weights >= 0 with sum total, or any weights > 0.
    init : array-like of shape (n_features,), float or None
        Weights to start from; None means total / n on the simplex, 1 / n for positive weights, 0 for signed ones.
    """

    _parameter_constraints: dict = {
        "weights": [StrOptions({"signed", "simplex", "positive"})],
        "total": [Interval(Real, 0, None, closed="neither")],
    }
    weights: Literal["signed", "simplex", "positive"]
    total: float

    def _specify(self, n_features: int | None) -> Spec:
        divergence = RelativeEntropy() if self.weights == "positive" else SimplexEntropy(total=self.total)
        return Spec(divergence, resolve_loss(self._loss_parameter), signed=self.weights == "signed")


class EGRegressor(EntropyMirrorMixin, RegretBoundsMixin, OnlineLinearRegressor):
    """Linear regression by exponentiated gradient steps.

    Each row (x, y) moves the weights to w' = argmin RE(w', w) + eta (w'.x - y)^2 / 2. All such steps are
    multiplicative:

        positive    w'_i = w_i exp(-c x_i)                              (EGU)
        simplex     the same, then divided so that sum w' = total      (EG)
        signed      w = w+ - w-, EG on the row (x, -x)                  (EG+-)

    with c = eta (a - y), a the prediction before the step (explicit) or after it (implicit). The loss bound grows with
    the logarithm of the number of features, so that many irrelevant features do little harm.

    Parameters
    ----------
    {weights}
    total : float
        The sum U of the weights on the simplex, and of w+ and w- together for signed weights. It limits the range of
        predictions: choose it like a regularisation parameter, according to the size of the solution (for instance
        after scaling y). Not used for positive weights.
    {eta0, learning_rate, power_t}
    data_bounds : dict or None
        Bounds on rows and comparators, for learning_rate="theory": "x", the size of a row (its largest absolute value;
        on the simplex), "intercept", that of the comparator's intercept (0 if left out), and "loss", its cumulative
        loss. Positive weights need an upper bound for a theorem: `MirrorDescentRegressor` with `UpperBound`.
    update : {"implicit", "explicit", "importance"}
        "implicit": the exact step. "explicit": the linearised step of the exponentiated gradient algorithm.
        "importance": a row of weight h has exactly the effect of h rows of weight 1, or of any other split of h.
    {init, fit_intercept, max_iter, tol, n_iter_no_change, early_stopping, validation_fraction, shuffle, average}
    {track_regret, warm_start, handle_new_features, random_state}
    {verbose}

    Attributes
    ----------
    {coef_, intercept_, t_, cumulative_loss_, n_iter_, loss_curve_, validation_scores_, weighted_loss_, theory_bound_}
    {divergence_}
    {n_features_in_, feature_names_in_}

    See Also
    --------
    ImplicitGDRegressor : The same for the squared Euclidean distance.
    BurgRegressor : Positive weights in the Burg entropy.

    Notes
    -----
    An absurd value in a column or target makes weights so small that multiplicative steps hardly bring them back: clip
    columns to their usual range. Against absurd targets `MirrorDescentRegressor(divergence="simplex_entropy",
    signed=True, loss="huber")` makes the same steps on another loss.

    Among eta0 = 0.03, 0.1, ..., 3 with "invscaling", the default was the best or within 0.01 of it in mean
    cross-validated R^2 over ten standardised regression data sets (benchmarks/defaults.py).

    References
    ----------
    .. [1] J. Kivinen, M. K. Warmuth, "Exponentiated Gradient versus Gradient Descent for Linear Predictors",
       Information and Computation 132, 1997.
    .. [2] B. Kulis, P. L. Bartlett, "Implicit Online Learning", ICML 2010, sections 3 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import EGRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 100))
    >>> y = 0.7 * X[:, 3] - 0.2 * X[:, 8]
    >>> model = EGRegressor(eta0=0.5, learning_rate="constant").partial_fit(X, y)
    >>> print(model.coef_[[3, 8, 0]].round(2) + 0.0)
    [ 0.7 -0.2  0. ]

    Weights of a mixture:

    >>> mixture = EGRegressor(weights="simplex", eta0=10.0, learning_rate="constant", fit_intercept=False)
    >>> mixture = mixture.partial_fit(X, X[:, :4].mean(axis=1))
    >>> print(mixture.coef_[:5].round(2), mixture.coef_.sum().round(6))
    [0.25 0.25 0.25 0.25 0.  ] 1.0
    """

    def __init__(
        self,
        *,
        weights: Literal["signed", "simplex", "positive"] = "signed",
        total: float = 1.0,
        eta0: float = 1.0,
        learning_rate: LearningRate | Literal["theory", "adaptive"] | Schedule = "invscaling",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: Update = "implicit",
        init: ArrayLike | float | None = None,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        early_stopping: bool | Literal["best"] = False,
        validation_fraction: float = 0.1,
        shuffle: bool = True,
        average: bool | int = False,
        track_regret: bool = False,
        warm_start: bool = False,
        handle_new_features: Literal["error", "add"] = "error",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())
