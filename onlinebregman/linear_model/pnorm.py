"""The p-norm algorithms: between gradient descent (p = 2) and exponentiated gradient (p = 2 ln n)."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

from numpy.typing import ArrayLike

from .._online.compiled import Spec
from .._online.estimator import by_parameter
from .._online.mirror import MirrorEstimator
from .._online.types import RandomState
from .._sklearn_compat import Interval, StrOptions
from ..divergences import PNorm
from ..divergences._base import automatic_p
from ..losses import Loss, resolve_loss
from ..losses._base import list_losses
from ..schedules import LearningRate, Schedule
from ._base import OnlineLinearRegressor, Update
from ._certificates import RegretBoundsMixin
from ._classifier import OnlineLinearClassifier


class PNormMirrorMixin(MirrorEstimator):
    """Mirror map of half the squared q-norm, 1/p + 1/q = 1. Weights of any sign, 0 at the start.

    Parameters
    ----------
    p : float or "auto"
        The norm in which rows are measured, p >= 2; "auto" is 2 ln n, at least 2. p = 2 is gradient descent.
    """

    _parameter_constraints: dict = {"p": [Interval(Real, 2, None, closed="left"), StrOptions({"auto"})]}
    p: float | Literal["auto"]
    _standardizes = by_parameter("standardize")

    def _specify(self, n_features: int | None) -> Spec:
        p = automatic_p(n_features) if self.p == "auto" else self.p
        return Spec(PNorm(p), resolve_loss(self._loss_parameter))


class PNormRegressor(PNormMirrorMixin, RegretBoundsMixin, OnlineLinearRegressor):
    """Linear regression by steps in the p-norm divergence, for weights of any sign of which few are relevant.

    Each row (x, y) moves the weights to w' = argmin D(w', w) + eta (w'.x - y)^2 / 2 with D the Bregman divergence of
    half the squared q-norm, 1/p + 1/q = 1:

        f(w') = f(w) - c x,    f(w) = sgn(w) |w|^(q-1) / norm_q(w)^(q-2),    c = eta (a - y),

    a the prediction before the step (explicit) or after it (implicit). With p = 2 ln n the loss bound grows with the
    logarithm of the number of features n, as for exponentiated gradient, but the sum of the weights is not bounded.

    Parameters
    ----------
    {p}
    eta0 : float
        Learning rate eta for the loss (a - y)^2 / 2. The default, with its schedule, is suitable for standardised
        features and targets.
    {learning_rate, power_t}
    data_bounds : dict or None
        Bounds on rows and comparators, for learning_rate="theory": "x", the size of a row (its p-norm), "u", that of
        the comparator's weights (q-norm), "intercept", that of the comparator's intercept (0 if left out), and "loss",
        its cumulative loss.
    {update, init, fit_intercept, standardize}
    {max_iter, tol, n_iter_no_change, early_stopping, validation_fraction, shuffle, average, track_regret, warm_start}
    {handle_new_features}
    {random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, t_, cumulative_loss_, n_iter_, loss_curve_, validation_scores_, weighted_loss_, theory_bound_}
    {divergence_}
    {n_features_in_, feature_names_in_}
    {mean_, scale_, n_samples_seen_}

    See Also
    --------
    EGRegressor : Exponentiated gradient.
    ImplicitGDRegressor : p = 2.

    References
    ----------
    .. [1] M. K. Warmuth, "Bregman divergences and on-line learning", slides, "Bounds for Linear Regression with Square
       Loss".
    .. [2] C. Gentile, "The Robustness of the p-Norm Algorithms", Machine Learning 53, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import PNormRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 200))
    >>> y = 2.0 * X[:, 3] - 1.0 * X[:, 8]
    >>> model = PNormRegressor(learning_rate="constant", eta0=0.02).partial_fit(X, y)
    >>> print(model.coef_[[3, 8, 0]].round(1) + 0.0)
    [ 2. -1.  0.]
    """

    def __init__(
        self,
        *,
        p: float | Literal["auto"] = "auto",
        eta0: float = 0.1,
        learning_rate: LearningRate | Literal["theory", "adaptive"] | Schedule = "invscaling",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: Update = "implicit",
        init: ArrayLike | float | None = None,
        fit_intercept: bool = True,
        standardize: bool = False,
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


@list_losses
class PNormClassifier(PNormMirrorMixin, RegretBoundsMixin, OnlineLinearClassifier):
    """Linear classification by steps in the p-norm divergence, for weights of any sign of which few are relevant.

    The steps of `PNormRegressor` on a loss for labels. On "perceptron", with explicit steps, this is the p-norm
    Perceptron.

    Parameters
    ----------
    {p}
    loss : {<classification losses>} or Loss
        The loss. "log_loss" and "modified_huber" give probabilities; "perceptron" needs explicit steps, as implicit
        steps cannot leave weights of 0. The targets of a `Loss` are its `labels`, -1 and 1 by default.
    {eta0, learning_rate, power_t}
    data_bounds : dict or None
        Bounds on rows and comparators, for learning_rate="theory": "x", the size of a row (its p-norm), "u", that of
        the comparator's weights (q-norm), "intercept", that of the comparator's intercept (0 if left out), and
        "n_rows", the number of rows.
    {update, init, class_weight, handle_unknown, fit_intercept, standardize}
    {max_iter, tol, n_iter_no_change, early_stopping, validation_fraction, shuffle, average, track_regret}
    {warm_start, handle_new_features, random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, classes_, t_, cumulative_loss_, n_iter_, loss_curve_, validation_scores_, weighted_loss_}
    {theory_bound_}
    {divergence_, n_features_in_, feature_names_in_}
    {mean_, scale_, n_samples_seen_}

    See Also
    --------
    PerceptronClassifier : p = 2.
    WinnowClassifier : The multiplicative counterpart.

    References
    ----------
    .. [1] A. J. Grove, N. Littlestone, D. Schuurmans, "General Convergence Results for Linear Discriminant Updates",
       Machine Learning 43, 2001.
    .. [2] C. Gentile, "The Robustness of the p-Norm Algorithms", Machine Learning 53, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import PNormClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 100))
    >>> y = np.where(X[:, 0] > X[:, 1], "up", "down")
    >>> model = PNormClassifier().partial_fit(X[:500], y[:500], classes=["down", "up"])
    >>> print(model.score(X[500:], y[500:]) > 0.9)
    True
    """

    _loss_parameter = by_parameter("loss")

    def __init__(
        self,
        *,
        p: float | Literal["auto"] = "auto",
        loss: str | Loss = "log_loss",
        eta0: float = 1.0,
        learning_rate: LearningRate | Literal["theory", "adaptive"] | Schedule = "invscaling",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: Update = "implicit",
        init: ArrayLike | float | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        handle_unknown: Literal["error", "add"] = "error",
        fit_intercept: bool = True,
        standardize: bool = False,
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
