"""Mirror descent for any divergence, loss and step: the general linear models."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.learners.multi_learner import MultiLearner
from .._online.compiled import Spec
from .._online.estimator import by_parameter
from .._online.mirror import MirrorEstimator, Rate
from .._online.types import RandomState
from .._online.validation import read_only
from .._sklearn_compat import Interval, StrOptions
from ..constraints import Constraint
from ..divergences import DIVERGENCES, Divergence, resolve_divergence
from ..losses import Loss, resolve_loss
from ..losses._base import list_losses
from ..losses.margin import OneClassLoss
from ..penalties import PENALTIES, ElasticNet, Penalty, resolve_penalty
from ..schedules import AggressiveRate, LearningRate, Schedule
from ._base import OnlineLinearModel, OnlineLinearRegressor, Update, parts_of
from ._certificates import RegretBoundsMixin
from ._classifier import OnlineLinearClassifier


class ParametricMirrorMixin(MirrorEstimator):
    """The mirror map given by the parameter `divergence`, with `loss`, `constraint` and `signed`.

    Parameters
    ----------
    divergence : {"squared_euclidean", "relative_entropy", "simplex_entropy", "burg", "binary_entropy", "p_norm", \
            "adagrad", "normalized_adagrad", "diagonal_newton"} or Divergence
        The divergence that measures how far the weights move. A name stands for default parameters (total 1 on the
        simplex, p = 2 ln n); pass an object from `onlinebregman.divergences` for other parameters, or your own
        divergence. Named divergences are compiled, your own are called through their NumPy methods. The last three
        adapt to the rows: they support neither `signed` nor constraints other than `UpperBound` and `Box`. With
        "normalized_adagrad" and "diagonal_newton" rows need not be scaled.
    signed : bool
        Learn w+ and w- with w = w+ - w-, for divergences between positive weights, by steps on the row (x, -x).
    constraint : Constraint or None
        A set from `onlinebregman.constraints` onto which each step is followed by the Bregman projection; with `signed`
        a constraint on w+ and w- together. Upper bounds on separable divergences and the 2-norm ball in the squared
        Euclidean distance are compiled.
    penalty : {"l1", "l2", "elasticnet"} or Penalty or None
        R(w) = alpha (l1_ratio sum abs(w) + (1 - l1_ratio) sum w^2 / 2), where "l1" and "l2" stand for ratios of 1 and
        0. Each step is followed by the proximal step argmin D(v, w) + eta_t R(v), in adaptive divergences by the limit
        of many small ones, before a projection. A `Penalty`, from `onlinebregman.penalties` or your own, is used
        directly; `ExplicitElasticNet` makes the steps of scikit-learn's SGD. The intercept is not penalised, and
        weights of rows do not affect the penalty; with `signed` it is applied to (w+, w-). Read when learning starts.
        The cost of a sparse row is proportional to its nonzeros, except with `average` or `track_regret`, and where
        proximal steps cannot be combined (user guide).
    alpha : float
        Strength of a penalty that is given by its name, and of learning_rate="optimal" without a penalty.
    l1_ratio : float or None
        Share of the L1 part in "elasticnet", from 0 to 1; not used by other penalties.
    eta0 : float or None
        Learning rate eta for the loss. None: a value that suits the divergence, 3 for "normalized_adagrad", 1 for
        "adagrad", 4 for "diagonal_newton", and for the others 0.3 for regression and 1 for classification.
    learning_rate : {"auto", "constant", "invscaling", "sqrt", "strongly_convex", "adaptive", "optimal", "pa1", "pa2", \
            "theory"} or Schedule
        Rate of row t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t (for losses that are H-strongly
        convex, with eta0 = 1/H). "auto": "constant" for adaptive divergences, "invscaling" for the others. "theory":
        the constant rate with the smallest loss bound under `data_bounds`, without eta0; with a penalty that has an L2
        part, in "squared_euclidean" without an intercept, 1 / (alpha (1 - l1_ratio) t), for a regret of O(log T).
        "adaptive": eta0 until `fit` would stop, by `tol` or `early_stopping`, then a fifth of it, and so on down to
        1e-6. "optimal": scikit-learn's, 1 / (alpha (t_0 + t - 1)) with t_0 = alpha^(-3/4) and the alpha of the penalty.
        "pa1" and "pa2": the rates of the passive-aggressive algorithms with C = eta0, for explicit steps on losses of
        slope 1 ("hinge", "absolute_error", "epsilon_insensitive") in "squared_euclidean"; see
        `schedules.PassiveAggressive`. A schedule from `onlinebregman.schedules` is used directly, without eta0.
    data_bounds : dict or None
        Bounds on rows and comparators, for learning_rate="theory": "x", the size of a row (its norm in the divergence:
        `Divergence.row_size`), "u", that of the comparator's weights, or "divergence", its D(u, w_1), "intercept",
        that of the comparator's intercept (0 if left out), "loss", its cumulative loss (squared loss), and "n_rows",
        the number of rows (losses of bounded slope). "burg" and "relative_entropy" need an upper bound as `constraint`,
        "divergence", and, for implicit and importance-invariant steps on the squared loss, "y", the absolute value of a
        target. With a penalty "x" and "u" suffice, on the squared loss with "y".
    init : array-like of shape (n_features,), float or None
        Weights to start from; None means 0 everywhere where that is in the domain, 1/n (of the total on the simplex),
        or 1/2 between 0 and 1.
    intercept_scaling : float
        The intercept is learned as the weight of a feature of this constant value, so that its rate is
        intercept_scaling^2 eta; a smaller value prevents it from oscillating where rows are sparse. Divergences that
        adapt the rate of the intercept, as that of all weights, require 1, and so do certificates.
    n_jobs : int or None
        Threads among which several outputs, or the classes of "ovr", are divided, if the block of rows is large enough,
        the loss is "log_loss" or "squared_error", steps are implicit, and the divergence is "squared_euclidean" or an
        adaptive one. -1: one for each processor; None: 1, or what a `joblib.parallel_config` says. The numbers do not
        depend on it.
    """

    _parameter_constraints: dict = {
        "divergence": [StrOptions(set(DIVERGENCES)), Divergence],
        "standardize": ["boolean", StrOptions({"auto"})],
        "thresholds": [StrOptions({"no_interactions", "pairwise"}), "array-like", None],
        "signed": ["boolean"],
        "constraint": [Constraint, None],
        "penalty": [StrOptions(set(PENALTIES)), Penalty, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "eta0": [*MirrorEstimator._parameter_constraints["eta0"], None],
        "learning_rate": [
            *OnlineLinearModel._parameter_constraints["learning_rate"],
            StrOptions({"auto", *get_args(AggressiveRate)}),
        ],
    }
    divergence: str | Divergence
    loss: str | Loss
    signed: bool
    constraint: Constraint | None
    penalty: Literal["l1", "l2", "elasticnet"] | Penalty | None
    alpha: float
    l1_ratio: float | None
    standardize: bool | Literal["auto"]
    _falling_rate: float  # default eta0 of a decreasing rate
    _loss_parameter = by_parameter("loss")
    _thresholds = by_parameter("thresholds")
    _intercept_scaling = by_parameter("intercept_scaling")
    _n_jobs = by_parameter("n_jobs")
    _read_at_each_call: tuple[str, ...] = ("penalty", "alpha", "l1_ratio", "intercept_scaling")

    @property
    def _standardizes(self) -> bool:
        if self.standardize != "auto":
            return self.standardize
        divergence: Any = DIVERGENCES[self.divergence] if isinstance(self.divergence, str) else self.divergence
        of_columns = self.penalty is not None or self.constraint is not None or self.init is not None
        return divergence.scale_free and not (of_columns or self._track_regret or self._given_start)

    def _penalty(self) -> Penalty | None:
        return None if self.penalty is None else resolve_penalty(self.penalty, self.alpha, self.l1_ratio)

    def _specify(self, n_features: int | None) -> Spec:
        divergence, loss = resolve_divergence(self.divergence, n_features), resolve_loss(self._loss_parameter)
        return Spec(divergence, loss, self._penalty(), self.constraint, self.signed)

    def _check_kept(self) -> None:
        super()._check_kept()
        self._check_same("penalty", self._penalty(), self._learned_penalty)  # by `penalty`, `alpha` and `l1_ratio`

    def _configure(self, schedule: Schedule | None = None) -> None:
        if self._track_regret or self.learning_rate == "theory" or self._intercept_scaling != 1:
            self._check_certified()
        if self._joint and (self._update == "importance" or self.learning_rate == "theory"):
            what, instead = ("update", "implicit") if self._update == "importance" else ("learning_rate", "auto")
            raise ValueError(
                f"multi_class='multinomial' has no {what}={getattr(self, what)!r}, which is for losses of one score; "
                f"use {what}={instead!r}, or multi_class='ovr'."
            )
        schedule = self._schedule()
        if schedule.sees_norm:
            self._check_aggressive()
        super()._configure(schedule)
        if isinstance(self._learner, MultiLearner):
            self._learner.n_jobs = self._n_jobs

    def _check_certified(self) -> None:
        """Check that certificates are not asked for of steps that have none."""
        penalty, scaling = self._learned_penalty, self._intercept_scaling
        if scaling != 1 and self._divergence.adaptive:
            raise ValueError(
                f"intercept_scaling must be 1 with {self._divergence!r}, which adapts the rate of the intercept; got "
                f"{scaling}."
            )
        certified = "track_regret=True" if self._track_regret else "learning_rate='theory'"
        if not (self._track_regret or self.learning_rate == "theory"):
            return
        if penalty is not None and penalty.explicit:
            raise ValueError(
                f"{penalty!r} has no certificate for {certified}; use ElasticNet, whose steps are proximal."
            )
        if scaling != 1:
            raise ValueError(
                f"intercept_scaling must be 1 for {certified}; got {scaling}. A column of this value has a certificate."
            )

    def _check_aggressive(self) -> None:
        """Check that passive-aggressive rates suit the steps and the loss."""
        geometry, loss = parts_of(self._fitted_state())[0].geometry, self._learned_loss
        linear = geometry.linear and not geometry.adaptive
        sloped = loss.lipschitz == 1 and loss.curvature_range[1] == np.inf and not isinstance(loss, OneClassLoss)
        if not (linear and sloped):
            raise ValueError(
                "learning_rate='pa1' or 'pa2' requires divergence='squared_euclidean' and a loss of slope 1 or -1, "
                f"'hinge', 'absolute_error' or 'epsilon_insensitive'; got {self._divergence!r} and {loss!r}. Implicit "
                "steps at a constant rate are passive-aggressive in any divergence and loss."
            )
        if self._update != "explicit":
            raise ValueError(
                f"learning_rate='pa1' or 'pa2' requires update='explicit', for which these are the rates; got "
                f"{self._update!r}. Implicit steps on the loss are PA-I at the constant rate C, those on its square "
                "PA-II: set learning_rate='constant'."
            )

    def _strength(self) -> float:
        if isinstance(self.penalty, ElasticNet):
            return self.penalty.alpha
        if isinstance(self.penalty, Penalty):
            raise ValueError(
                "learning_rate='optimal' requires a penalty of known strength, by name or ElasticNet, L1 or L2; got "
                f"{self.penalty!r}. Use onlinebregman.schedules.Optimal(alpha)."
            )
        return self.alpha

    def _rate(self) -> Rate:
        divergence = self._divergence if "_spec" in vars(self) else self.divergence
        constant = (DIVERGENCES[divergence] if isinstance(divergence, str) else divergence).constant_rate
        learning_rate, eta0 = self.learning_rate, self.eta0
        if learning_rate == "auto":
            learning_rate = "invscaling" if constant is None else "constant"
        if eta0 is None:
            eta0 = self._falling_rate if constant is None else constant
        return Rate(learning_rate, eta0)

    @read_only
    def metric_(self) -> np.ndarray:
        """The weights h of an adaptive divergence, 0 for columns that were always 0; a read-only copy."""
        metrics = [part.geometry.metric for part in parts_of(self._fitted_state()) if part.geometry.adaptive]
        if not metrics:
            raise AttributeError(f"metric_ requires an adaptive divergence; got {self._divergence!r}")
        return np.stack(metrics) if isinstance(self._learner, MultiLearner) else metrics[0]


@list_losses
class MirrorDescentRegressor(ParametricMirrorMixin, RegretBoundsMixin, OnlineLinearRegressor):
    """Linear regression by mirror descent: any divergence, any loss, any step.

    Each row (x, y) moves the weights to w' = argmin D(w', w) + eta L(w'.x, y). With the mirror map f of the divergence
    D

        f(w') = f(w) - c x,    c = eta L'(a, y),

    a the score w.x before the step (explicit) or after it (implicit).

    Parameters
    ----------
    {divergence}
    loss : {<regression losses>} or Loss
        The loss. Pass an object from `onlinebregman.losses` for other than the default parameters, or your own loss:
        "quantile" is the median, `QuantileLoss(quantile=0.9)` another quantile, `QuantileLoss([0.1, 0.9])` several;
        "tweedie" has the power 1.5. The prediction is exp(X w + b) for "poisson" (counts or rates, y >= 0), "tweedie"
        (y >= 0) and "gamma" (y > 0), a probability for "log_loss" (0 <= y <= 1) and X w + b for the others.
    {signed, constraint, penalty, alpha, l1_ratio, eta0, learning_rate, power_t, data_bounds, update, init}
    {fit_intercept, intercept_scaling, standardize, thresholds, max_iter, tol, n_iter_no_change, early_stopping}
    {validation_fraction, shuffle}
    {average, track_regret, warm_start, handle_new_features, n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, t_}
    cumulative_loss_ : float
        Sum of weight times loss over all rows, each predicted before it was learned.
    metric_ : ndarray of shape (n_features,)
        For an adaptive divergence: its weights h, 0 for columns that were always 0.
    {n_iter_, loss_curve_, validation_scores_, weighted_loss_, theory_bound_, divergence_, n_features_in_}
    {feature_names_in_}
    {mean_, scale_, n_samples_seen_}

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

    _falling_rate = 0.3

    def __init__(
        self,
        *,
        divergence: str | Divergence = "normalized_adagrad",
        loss: str | Loss = "squared_error",
        signed: bool = False,
        constraint: Constraint | None = None,
        penalty: Literal["l1", "l2", "elasticnet"] | Penalty | None = None,
        alpha: float = 0.0001,
        l1_ratio: float | None = 0.15,
        eta0: float | None = None,
        learning_rate: LearningRate | AggressiveRate | Literal["auto", "adaptive", "theory"] | Schedule = "auto",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: Update = "implicit",
        init: ArrayLike | float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        standardize: bool | Literal["auto"] = "auto",
        thresholds: Literal["no_interactions", "pairwise"] | ArrayLike | None = None,
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
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())


@list_losses
class MirrorDescentClassifier(ParametricMirrorMixin, RegretBoundsMixin, OnlineLinearClassifier):
    """Linear classification by mirror descent: any divergence, any loss, any step.

    Each row (x, y) moves the weights to w' = argmin D(w', w) + eta L(w'.x, y). With the mirror map f of the divergence
    D

        f(w') = f(w) - c x,    c = eta L'(a, y),

    a the score w.x before the step (explicit) or after it (implicit). More than two classes are learned one-vs-rest,
    side by side, or with one loss of all scores: `multi_class`.

    Parameters
    ----------
    {divergence}
    loss : {<classification losses>} or Loss
        The loss. Pass an object from `onlinebregman.losses` for other than the default parameters, or your own loss.
        "log_loss" and "modified_huber" give probabilities. With "hinge" the implicit step in the squared Euclidean
        divergence is the passive-aggressive algorithm. "perceptron" needs update="explicit" if the weights start at
        0, which implicit steps cannot leave. The targets of a `Loss` are its `labels`, -1 and 1 by default.
    multi_class : {"ovr", "multinomial"}
        How more than two classes are learned: one-vs-rest with separate losses, or jointly with the log loss of the
        softmax of their scores, where a row (x, y) moves the weights of class c by c_c = eta (p_c - [y = c]), p the
        probabilities before the step or after it. "multinomial" requires "log_loss" and implicit or explicit steps, and
        works in every divergence. For two classes both are the same. Read when learning starts.
    {signed, constraint, penalty, alpha, l1_ratio, eta0, learning_rate, power_t, data_bounds, update, init}
    {class_weight, handle_unknown, fit_intercept, intercept_scaling, standardize, thresholds, max_iter, tol}
    {n_iter_no_change, early_stopping, validation_fraction, shuffle, average, track_regret}
    {warm_start, handle_new_features, n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, classes_, t_, cumulative_loss_, n_iter_, loss_curve_, validation_scores_, weighted_loss_}
    {theory_bound_}
    {divergence_, n_features_in_, feature_names_in_}
    {mean_, scale_, n_samples_seen_}
    metric_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        For an adaptive divergence: its weights h for each learner, 0 for columns that were always 0.

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

    _parameter_constraints: dict = {"multi_class": [StrOptions({"ovr", "multinomial"})]}
    _multi_class = by_parameter("multi_class")
    _falling_rate = 1.0

    def __init__(
        self,
        *,
        divergence: str | Divergence = "normalized_adagrad",
        loss: str | Loss = "log_loss",
        multi_class: Literal["ovr", "multinomial"] = "ovr",
        signed: bool = False,
        constraint: Constraint | None = None,
        penalty: Literal["l1", "l2", "elasticnet"] | Penalty | None = None,
        alpha: float = 0.0001,
        l1_ratio: float | None = 0.15,
        eta0: float | None = None,
        learning_rate: LearningRate | AggressiveRate | Literal["auto", "adaptive", "theory"] | Schedule = "auto",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: Update = "implicit",
        init: ArrayLike | float | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        handle_unknown: Literal["error", "add"] = "error",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        standardize: bool | Literal["auto"] = "auto",
        thresholds: Literal["no_interactions", "pairwise"] | ArrayLike | None = None,
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
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())
