"""Mirror descent for any divergence, loss and step: the general linear models, of which the named ones are choices."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .._online.mirror import MirrorMixin
from .._sklearn_compat import StrOptions
from ..constraints import Constraint
from ..divergences import DIVERGENCES, Divergence, resolve_divergence
from ..losses import LOSSES, Loss, resolve_loss
from ..losses._names import list_losses, loss_names
from ..schedules import Schedule
from ._base import OnlineLinearRegressor
from ._classifier import OnlineLinearClassifier


class ParametricMirrorMixin(MirrorMixin):
    """The mirror map that the parameter `divergence` says, with `loss`, `constraint` and `signed` beside it."""

    @property
    def _signed(self) -> bool:
        return self.signed

    def _mirror_map(self, n_features: int | None) -> Divergence:
        return resolve_divergence(self.divergence, n_features)

    def _constraint(self) -> Constraint | None:
        return self.constraint

    def _loss(self) -> Loss:
        return resolve_loss(self.loss)


@list_losses
class MirrorDescentRegressor(ParametricMirrorMixin, OnlineLinearRegressor):
    """Linear regression by mirror descent: any divergence, any loss, any step.

    Each row (x, y) moves the weights to w' = argmin D(w', w) + eta L(w'.x, y). With the mirror map f of the divergence
    D

        f(w') = f(w) - c x,    c = eta L'(a, y),

    a the score w.x before the step (explicit) or after it (implicit).

    Parameters
    ----------
    divergence : {"squared_euclidean", "relative_entropy", "simplex_entropy", "burg", "binary_entropy", "p_norm"} or \
            Divergence, default="squared_euclidean"
        What measures how far the weights move. A name stands for the default parameters, total 1 on the simplex and
        p = 2 ln n; others, and divergences of your own, come as objects from `onlinebregman.divergences`. The named
        ones are compiled, your own run by their NumPy methods.
    loss : {<regression losses>} or Loss, default="squared_error"
        What is learned on; with other parameters than the default ones, or of your own, as an object from
        `onlinebregman.losses`: "quantile" is the median, `QuantileLoss(quantile=0.9)` another quantile. The prediction
        is exp(X w + b) for "poisson" (counts or rates, y >= 0), a probability for "log_loss" (0 <= y <= 1) and X w + b
        for the others.
    signed : bool, default=False
        Learn w+ and w- of weights w = w+ - w-, for divergences between positive weights: the steps are those of the row
        (x, -x).
    constraint : Constraint or None, default=None
        A set from `onlinebregman.constraints` onto which each step is followed by the Bregman projection; with `signed`
        a constraint on w+ and w- together. Upper bounds on separable divergences and the 2-norm ball in the squared
        Euclidean distance are compiled.
    eta0 : float, default=0.3
        Learning rate eta for the loss.
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex", "theory"} or Schedule, default="invscaling"
        Rate of row t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t (for losses that are H-strongly
        convex, with eta0 = 1/H). "theory": the constant rate with the smallest loss bound under `data_bounds`, without
        eta0. A schedule from `onlinebregman.schedules` is taken as it is, without eta0.
    power_t : float, default=0.5
        Exponent of "invscaling".
    data_bounds : dict or None, default=None
        What rows and comparators keep to, for learning_rate="theory": "x", the size of a row (its norm in the
        divergence: `Divergence.row_size`), "u", that of the comparator's weights, "intercept", that of the comparator's
        intercept (0 if left out), "loss", its cumulative loss (squared loss), and "n_rows", the number of rows (losses
        of bounded slope).
    update : {"implicit", "explicit", "importance"}, default="implicit"
        "implicit": the exact step. "explicit": the linearised step. "importance": a row of weight h moves the weights
        exactly as h rows of weight 1, or as any splitting of h.
    init : array-like of shape (n_features,), float or None, default=None
        Weights to start from; None means 0 everywhere where that is in the domain, 1/n (of the total on the simplex),
        or 1/2 between 0 and 1.
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
    ImplicitGDRegressor, EGRegressor, BurgRegressor, PNormRegressor : The same steps on the squared loss, one divergence
        each.
    MirrorDescentClassifier : For labels.

    References
    ----------
    .. [1] M. K. Warmuth, "Bregman divergences and on-line learning", slides, "Matching losses".
    .. [2] B. Kulis, P. L. Bartlett, "Implicit Online Learning", ICML 2010, sections 2 and 3.

    Examples
    --------
    Poisson regression in the p-norm geometry, for a few features among many:

    >>> import numpy as np
    >>> from onlinebregman import MirrorDescentRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 50))
    >>> y = rng.poisson(np.exp(0.5 * X[:, 7] - 0.5 * X[:, 9]))
    >>> model = MirrorDescentRegressor(divergence="p_norm", loss="poisson", eta0=0.1).partial_fit(X, y)
    >>> print(model.coef_[[7, 9, 0]].round(1) + 0.0)
    [ 0.5 -0.5  0. ]

    Weights on the simplex from absolute errors:

    >>> from onlinebregman.divergences import SimplexEntropy
    >>> simplex = SimplexEntropy(total=2.0)
    >>> mixture = MirrorDescentRegressor(divergence=simplex, loss="absolute_error", fit_intercept=False)
    >>> mixture = mixture.partial_fit(X, X[:, 0] + X[:, 1])
    >>> print(mixture.coef_[:3].round(1), mixture.coef_.sum().round(6))
    [1. 1. 0.] 2.0
    """

    _parameter_constraints: dict = {
        **OnlineLinearRegressor._parameter_constraints,
        "divergence": [StrOptions(set(DIVERGENCES)), Divergence],
        "loss": [StrOptions(set(loss_names("regression"))), Loss],
        "signed": ["boolean"],
        "constraint": [Constraint, None],
    }

    def __init__(
        self,
        *,
        divergence: str | Divergence = "squared_euclidean",
        loss: str | Loss = "squared_error",
        signed: bool = False,
        constraint: Constraint | None = None,
        eta0: float = 0.3,
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
        self.divergence = divergence
        self.loss = loss
        self.signed = signed
        self.constraint = constraint
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        loss = LOSSES.get(self.loss) if isinstance(self.loss, str) else self.loss
        tags.target_tags.positive_only = getattr(loss, "target_range", Loss.target_range)[0] >= 0
        return tags


@list_losses
class MirrorDescentClassifier(ParametricMirrorMixin, OnlineLinearClassifier):
    """Linear classification by mirror descent: any divergence, any loss, any step.

    Each row (x, y) moves the weights to w' = argmin D(w', w) + eta L(w'.x, y). With the mirror map f of the divergence
    D

        f(w') = f(w) - c x,    c = eta L'(a, y),

    a the score w.x before the step (explicit) or after it (implicit). More than two classes are learned one against the
    rest, side by side.

    Parameters
    ----------
    divergence : {"squared_euclidean", "relative_entropy", "simplex_entropy", "burg", "binary_entropy", "p_norm"} or \
            Divergence, default="squared_euclidean"
        What measures how far the weights move. A name stands for the default parameters, total 1 on the simplex and
        p = 2 ln n; others, and divergences of your own, come as objects from `onlinebregman.divergences`. The named
        ones are compiled, your own run by their NumPy methods.
    loss : {<classification losses>} or Loss, default="log_loss"
        What is learned on; with other parameters than the default ones, or of your own, as an object from
        `onlinebregman.losses`. "log_loss" and "modified_huber" give probabilities. On "hinge" the implicit step in the
        squared Euclidean divergence is the passive-aggressive algorithm. "perceptron" needs explicit steps where the
        weights start at 0: there the exact step does not move. The targets of a `Loss` are its `labels`, -1 and 1
        unless it says otherwise.
    signed : bool, default=False
        Learn w+ and w- of weights w = w+ - w-, for divergences between positive weights: the steps are those of the row
        (x, -x).
    constraint : Constraint or None, default=None
        A set from `onlinebregman.constraints` onto which each step is followed by the Bregman projection; with `signed`
        a constraint on w+ and w- together. Upper bounds on separable divergences and the 2-norm ball in the squared
        Euclidean distance are compiled.
    eta0 : float, default=1.0
        Learning rate eta for the loss.
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex", "theory"} or Schedule, default="invscaling"
        Rate of row t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t (for losses that are H-strongly
        convex, with eta0 = 1/H). "theory": the constant rate with the smallest loss bound under `data_bounds`, without
        eta0. A schedule from `onlinebregman.schedules` is taken as it is, without eta0.
    power_t : float, default=0.5
        Exponent of "invscaling".
    data_bounds : dict or None, default=None
        What rows and comparators keep to, for learning_rate="theory": "x", the size of a row (its norm in the
        divergence: `Divergence.row_size`), "u", that of the comparator's weights, "intercept", that of the comparator's
        intercept (0 if left out), "loss", its cumulative loss (squared loss), and "n_rows", the number of rows (losses
        of bounded slope).
    update : {"implicit", "explicit", "importance"}, default="implicit"
        "implicit": the exact step. "explicit": the linearised step. "importance": a row of weight h moves the weights
        exactly as h rows of weight 1, or as any splitting of h.
    init : array-like of shape (n_features,), float or None, default=None
        Weights to start from; None means 0 everywhere where that is in the domain, 1/n (of the total on the simplex),
        or 1/2 between 0 and 1.
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
    PerceptronClassifier, WinnowClassifier : Mistake-driven learning.
    PNormClassifier : Steps in the p-norm divergence.
    MirrorDescentRegressor : For numbers.

    References
    ----------
    .. [1] M. K. Warmuth, "Bregman divergences and on-line learning", slides, "Matching losses".
    .. [2] B. Kulis, P. L. Bartlett, "Implicit Online Learning", ICML 2010, sections 2 and 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import scale
    >>> from onlinebregman import MirrorDescentClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MirrorDescentClassifier(random_state=0).fit(scale(X), y)
    >>> print(model.score(scale(X), y) > 0.9, model.predict_proba(scale(X)).shape)
    True (150, 3)
    """

    _parameter_constraints: dict = {
        **OnlineLinearClassifier._parameter_constraints,
        "divergence": [StrOptions(set(DIVERGENCES)), Divergence],
        "loss": [StrOptions(set(loss_names("classification"))), Loss],
        "signed": ["boolean"],
        "constraint": [Constraint, None],
    }

    def __init__(
        self,
        *,
        divergence: str | Divergence = "squared_euclidean",
        loss: str | Loss = "log_loss",
        signed: bool = False,
        constraint: Constraint | None = None,
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
        self.divergence = divergence
        self.loss = loss
        self.signed = signed
        self.constraint = constraint
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
