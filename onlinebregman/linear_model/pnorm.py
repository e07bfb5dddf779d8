"""The p-norm algorithms: between gradient descent (p = 2) and exponentiated gradient (p = 2 ln n)."""

from __future__ import annotations

from numbers import Real

from numpy.typing import ArrayLike

from .._online.mirror import MirrorMixin
from .._sklearn_compat import Interval, StrOptions
from ..divergences import PNorm
from ..divergences._names import automatic_p
from ..losses import Loss, resolve_loss
from ..losses._names import list_losses, loss_names
from ..schedules import Schedule
from ._base import OnlineLinearRegressor
from ._classifier import OnlineLinearClassifier

_P = [Interval(Real, 2, None, closed="left"), StrOptions({"auto"})]


class PNormMirrorMixin(MirrorMixin):
    """Mirror map of half the squared q-norm, 1/p + 1/q = 1. Weights of any sign, 0 at the start."""

    def _mirror_map(self, n_features: int | None) -> PNorm:
        return PNorm(automatic_p(n_features) if self.p == "auto" else self.p)


class PNormRegressor(PNormMirrorMixin, OnlineLinearRegressor):
    """Linear regression by steps in the p-norm divergence, for weights of any sign of which few matter.

    Each row (x, y) moves the weights to w' = argmin D(w', w) + eta (w'.x - y)^2 / 2 with D the Bregman divergence of
    half the squared q-norm, 1/p + 1/q = 1:

        f(w') = f(w) - c x,    f(w) = sgn(w) |w|^(q-1) / norm_q(w)^(q-2),    c = eta (a - y),

    a the prediction before the step (explicit) or after it (implicit). With p = 2 ln n the loss grows with the
    logarithm of the number of features n, as for exponentiated gradient, without a bound on the sum of the weights.

    Parameters
    ----------
    p : float or "auto", default="auto"
        The norm in which rows are measured, p >= 2; "auto" is 2 ln n, at least 2. p = 2 is gradient descent.
    eta0 : float, default=0.1
        Learning rate eta for the loss (a - y)^2 / 2. The default, with its schedule, suits standardised features and
        targets.
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex", "theory"} or Schedule, default="invscaling"
        Rate of row t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t (for losses that are H-strongly
        convex, with eta0 = 1/H). "theory": the constant rate with the smallest loss bound under `data_bounds`, without
        eta0. A schedule from `onlinebregman.schedules` is taken as it is, without eta0.
    power_t : float, default=0.5
        Exponent of "invscaling".
    data_bounds : dict or None, default=None
        What rows and comparators keep to, for learning_rate="theory": "x", the size of a row (its p-norm), "u", that of
        the comparator's weights (q-norm), "intercept", that of the comparator's intercept (0 if left out), and "loss",
        its cumulative loss.
    update : {"implicit", "explicit", "importance"}, default="implicit"
        "implicit": the exact step. "explicit": the linearised step. "importance": a row of weight h moves the weights
        exactly as h rows of weight 1, or as any splitting of h.
    init : array-like of shape (n_features,), float or None, default=None
        Weights to start from; None means 0 everywhere.
    fit_intercept : bool, default=True
        Learn an intercept: one more coordinate of feature 1 in the squared Euclidean geometry, inside the same step.
    max_iter : int, default=1000
        Largest number of epochs of `fit`.
    tol : float or None, default=1e-3
        `fit` stops when the mean loss of an epoch was not below the best by more than this, `n_iter_no_change` times
        in a row. None: always `max_iter` epochs.
    n_iter_no_change : int, default=5
        See `tol`.
    shuffle : bool, default=True
        Shuffle the rows before each epoch of `fit`. `partial_fit` never shuffles.
    average : bool or int, default=False
        Let `coef_` and `intercept_` be the average over all steps, or over those from the given row on.
    track_regret : bool, default=False
        Accumulate what `regret_certificate` needs.
    warm_start : bool, default=False
        Let `fit` go on from the weights it finds, its learning rate included.
    random_state : int, RandomState instance or None, default=None
        For shuffling.
    verbose : int, default=0
        Print the mean loss of each epoch.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    intercept_ : float
        Intercept.
    t_ : int
        Rows learned.
    cumulative_loss_ : float
        Sum of weight times loss over all rows, each predicted before it was learned.
    n_iter_ : int
        Epochs of the last `fit`.
    loss_curve_ : list of float
        Mean loss of each epoch of the last `fit`, each row predicted before it was learned.
    weighted_loss_ : float
        Sum of rate times weight times loss, each before its step, since regret is tracked.
    regret_bound_ : float
        Under learning_rate="theory", the theorem's bound on `cumulative_loss_` minus the comparator's.
    divergence_ : Divergence
        The divergence the estimator moves in.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

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

    _parameter_constraints: dict = {**OnlineLinearRegressor._parameter_constraints, "p": _P}

    def __init__(
        self,
        *,
        p: float | str = "auto",
        eta0: float = 0.1,
        learning_rate: str | Schedule = "invscaling",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: str = "implicit",
        init: ArrayLike | float | None = None,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        average: bool | int = False,
        track_regret: bool = False,
        warm_start: bool = False,
        random_state=None,
        verbose: int = 0,
    ) -> None:
        self.p = p
        super().__init__(
            eta0=eta0,
            learning_rate=learning_rate,
            power_t=power_t,
            data_bounds=data_bounds,
            update=update,
            init=init,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            tol=tol,
            n_iter_no_change=n_iter_no_change,
            shuffle=shuffle,
            average=average,
            track_regret=track_regret,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )


@list_losses
class PNormClassifier(PNormMirrorMixin, OnlineLinearClassifier):
    """Linear classification by steps in the p-norm divergence, for weights of any sign of which few matter.

    The steps of `PNormRegressor` on a loss for labels. On "perceptron", with explicit steps, this is the p-norm
    Perceptron.

    Parameters
    ----------
    p : float or "auto", default="auto"
        The norm in which rows are measured, p >= 2; "auto" is 2 ln n, at least 2. p = 2 is gradient descent.
    loss : {<classification losses>} or Loss, default="log_loss"
        What is learned on. "log_loss" and "modified_huber" give probabilities; "perceptron" needs explicit steps, as
        the exact one does not leave weights of 0. The targets of a `Loss` are its `labels`, -1 and 1 unless it says
        otherwise.
    eta0 : float, default=1.0
        Learning rate eta for the loss.
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex", "theory"} or Schedule, default="invscaling"
        Rate of row t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t (for losses that are H-strongly
        convex, with eta0 = 1/H). "theory": the constant rate with the smallest loss bound under `data_bounds`, without
        eta0. A schedule from `onlinebregman.schedules` is taken as it is, without eta0.
    power_t : float, default=0.5
        Exponent of "invscaling".
    data_bounds : dict or None, default=None
        What rows and comparators keep to, for learning_rate="theory": "x", the size of a row (its p-norm), "u", that of
        the comparator's weights (q-norm), "intercept", that of the comparator's intercept (0 if left out), and
        "n_rows", the number of rows.
    update : {"implicit", "explicit", "importance"}, default="implicit"
        "implicit": the exact step. "explicit": the linearised step. "importance": a row of weight h moves the weights
        exactly as h rows of weight 1, or as any splitting of h.
    init : array-like of shape (n_features,), float or None, default=None
        Weights to start from; None means 0 everywhere.
    class_weight : dict, "balanced" or None, default=None
        Weights {label: weight} that multiply those of the rows with this label; 1 for labels that are left out.
        "balanced": n_samples / (n_classes * number of rows with the label), for `fit` alone. None: 1.
    fit_intercept : bool, default=True
        Learn an intercept: one more coordinate of feature 1 in the squared Euclidean geometry, inside the same step.
    max_iter : int, default=1000
        Largest number of epochs of `fit`.
    tol : float or None, default=1e-3
        `fit` stops when the mean loss of an epoch was not below the best by more than this, `n_iter_no_change` times
        in a row. None: always `max_iter` epochs.
    n_iter_no_change : int, default=5
        See `tol`.
    shuffle : bool, default=True
        Shuffle the rows before each epoch of `fit`. `partial_fit` never shuffles.
    average : bool or int, default=False
        Let `coef_` and `intercept_` be the average over all steps, or over those from the given row on.
    track_regret : bool, default=False
        Accumulate what `regret_certificate` needs.
    warm_start : bool, default=False
        Let `fit` go on from the weights it finds, its learning rate included.
    random_state : int, RandomState instance or None, default=None
        For shuffling.
    verbose : int, default=0
        Print the mean loss of each epoch.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights; one row for two classes, else one for each class against the rest.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    t_ : int
        Rows learned.
    cumulative_loss_ : float
        Sum of weight times loss over all rows, each predicted before it was learned, and over the learners.
    n_iter_ : int
        Epochs of the last `fit`.
    loss_curve_ : list of float
        Mean loss of each epoch of the last `fit`, each row predicted before it was learned.
    weighted_loss_ : float
        Sum of rate times weight times loss, each before its step, since regret is tracked.
    regret_bound_ : float
        Under learning_rate="theory", the theorem's bound on `cumulative_loss_` minus the comparator's.
    divergence_ : Divergence
        The divergence the estimator moves in.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

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

    _parameter_constraints: dict = {
        **OnlineLinearClassifier._parameter_constraints,
        "p": _P,
        "loss": [StrOptions(set(loss_names("classification"))), Loss],
    }

    def __init__(
        self,
        *,
        p: float | str = "auto",
        loss: str | Loss = "log_loss",
        eta0: float = 1.0,
        learning_rate: str | Schedule = "invscaling",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: str = "implicit",
        init: ArrayLike | float | None = None,
        class_weight: dict | str | None = None,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        average: bool | int = False,
        track_regret: bool = False,
        warm_start: bool = False,
        random_state=None,
        verbose: int = 0,
    ) -> None:
        self.p = p
        self.loss = loss
        self.class_weight = class_weight
        super().__init__(
            eta0=eta0,
            learning_rate=learning_rate,
            power_t=power_t,
            data_bounds=data_bounds,
            update=update,
            init=init,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            tol=tol,
            n_iter_no_change=n_iter_no_change,
            shuffle=shuffle,
            average=average,
            track_regret=track_regret,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )

    def _loss(self) -> Loss:
        return resolve_loss(self.loss)
