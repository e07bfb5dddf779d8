"""One-class learning: a half-space that holds most rows, learned with its offset."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .._online.estimator import SCORES, Call, Examples
from .._online.outliers import PredictsOutliers
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_rows, check_weights
from .._sklearn_compat import Interval, StrOptions, fit_context
from ..constraints import Constraint
from ..divergences import Divergence
from ..losses.margin import OneClassLoss
from ..penalties import L2, Penalty
from ..schedules import LEARNING_RATES, LearningRate, Schedule
from ._base import OnlineLinearModel, Update
from .mirror_descent import ParametricMirrorMixin


class OneClassMirrorDescent(PredictsOutliers, ParametricMirrorMixin, OnlineLinearModel):
    """Outlier detection by a linear one-class support vector machine that learns row by row, in any divergence.

    It minimises the mean over the rows x of

        max(0, rho - w.x) - nu rho + nu |w|^2 / 2

    over weights w and the offset rho: for the best rho at most a fraction nu of the rows has w.x < rho, the outliers.
    Each row moves the weights by a step on the first term, f(w') = f(w) + eta x if w.x <= rho, and the offset by rho' =
    rho + eta (nu - [w.x <= rho]), which makes it the nu-quantile of the scores; the proximal step of the last term
    follows. Rows should lie to one side of the origin, as random features of a kernel do
    (:class:`sklearn.kernel_approximation.RBFSampler`, :class:`~sklearn.kernel_approximation.Nystroem`). If `fit` runs
    until `tol`, which is in units of nu, it ends with the offset that is best for its weights, so that the fraction nu
    of its rows, or the next smaller one, are outliers; with tol=None it only makes steps, as `partial_fit`.

    Parameters
    ----------
    nu : float
        Bound on the fraction of outliers among the rows, 0 < nu <= 1, and strength of the penalty. Read when learning
        starts.
    {divergence, signed, constraint}
    penalty : Penalty or None
        A penalty in place of the last term, such as `L1(nu)` for few weights; None: `L2(nu)`. Read when learning
        starts.
    eta0 : float
        Learning rate eta.
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex"} or Schedule
        Rate of row t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t. A schedule from
        `onlinebregman.schedules` is used directly, without eta0.
    {power_t}
    update : {"explicit", "implicit", "importance"}
        Kind of the step on the first term; adaptive divergences require "explicit", as exact steps do not leave the
        start.
    {init, max_iter, tol, n_iter_no_change, shuffle, average, warm_start, handle_new_features, random_state, verbose}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w.
    offset_ : float
        Offset rho.
    {t_}
    cumulative_loss_ : float
        Sum of weight times max(0, rho - w.x) over all rows, each scored before it was learned.
    {n_iter_, loss_curve_, divergence_, n_features_in_, feature_names_in_}

    See Also
    --------
    DensityOutlierDetector : By the density of rows.
    sklearn.linear_model.SGDOneClassSVM : The same objective, by gradient steps.

    References
    ----------
    .. [1] B. Schoelkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson, "Estimating the Support of a
       High-Dimensional Distribution", Neural Computation 13, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from onlinebregman import OneClassMirrorDescent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> features = RBFSampler(gamma=0.1, random_state=0).fit(X)
    >>> model = OneClassMirrorDescent(nu=0.1).partial_fit(features.transform(X))
    >>> print(f"{(model.predict(features.transform(X)) == -1).mean():.1f}")
    0.1
    >>> print(model.predict(features.transform([[0.0, 0.0], [4.0, 4.0]])))
    [ 1 -1]
    """

    _parameter_constraints: dict = {
        "nu": [Interval(Real, 0, 1, closed="right")],
        "penalty": [Penalty, None],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "learning_rate": [StrOptions(set(LEARNING_RATES)), Schedule],
    }
    _fit_intercept, _track_regret, _early_stopping = True, False, False
    _intercept_scaling, _n_jobs = 1.0, None
    _thresholds, _standardizes = None, False
    nu: float
    _intercept_init = "offset_init"

    def __init__(
        self,
        *,
        nu: float = 0.5,
        divergence: str | Divergence = "squared_euclidean",
        signed: bool = False,
        constraint: Constraint | None = None,
        penalty: Penalty | None = None,
        eta0: float = 1.0,
        learning_rate: LearningRate | Schedule = "sqrt",
        power_t: float = 0.5,
        update: Update = "explicit",
        init: ArrayLike | float | None = None,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        average: bool | int = True,
        warm_start: bool = False,
        handle_new_features: Literal["error", "add"] = "error",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: MatrixLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        coef_init: ArrayLike | None = None,
        offset_init: float | None = None,
    ) -> Self:
        """Fit from scratch, from given weights, or continue with `warm_start`: up to `max_iter` epochs over the rows.

        Parameters
        ----------
        {X}
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the learning rate of each row; a row of weight 0 is ignored.
        coef_init : array-like of shape (n_features,), default=None
            Weights to start from, in place of `init` and of those of a warm start: a new run begins.
        offset_init : float, default=None
            Offset to start from, 0 by default.

        Returns
        -------
        {self}
        """
        given = coef_init is not None or offset_init is not None
        intercept = None if offset_init is None else np.multiply(-1.0, offset_init)
        begin = partial(self._begin, coef=coef_init, intercept=intercept) if given else None
        return self._fit(X, None, sample_weight, begin=begin)

    def partial_fit(self, X: MatrixLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from these rows, once, in their order.

        The numbers do not depend on how a stream is split into calls. A call learns all of its rows or, if it raises,
        none.

        Parameters
        ----------
        {X, y, sample_weight}

        Returns
        -------
        {self}

        Raises
        ------
        ValueError
            If a row cannot be learned, or parameters are incompatible; the estimator is then unchanged.
        """
        return self._partial_fit(X, np.ones(getattr(X, "shape", (0,))[:1]), sample_weight)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Scores of rows minus the offset: w.x - rho, negative for outliers.

        Parameters
        ----------
        {X}

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            X @ coef_ - offset_.
        """
        return self._predict(X, SCORES)

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Scores of rows: w.x.

        Parameters
        ----------
        {X}

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            X @ coef_.
        """
        return self.decision_function(X) + self.offset_

    @property
    def offset_(self) -> float:
        """The offset rho: minus the intercept."""
        return -float(self.intercept_)

    _loss_parameter = property(lambda self: OneClassLoss(self.nu))

    def _penalty(self) -> Penalty:
        return self.penalty if isinstance(self.penalty, Penalty) else L2(self.nu)

    def _objective(self, loss: float) -> float:
        """The objective of the class, at the weights and the offset after the epoch."""
        return super()._objective(loss) + self.nu * self._learner.position[1]

    def _tolerance(self, data: Examples) -> float | None:
        """The objective of rows of norm 1 is at most nu / 2 in size."""
        return None if self.tol is None else self.tol * self.nu

    def _learn_in_epochs(self, learn: Callable, data: Examples, X, y) -> None:
        super()._learn_in_epochs(learn, data, X, y)
        if self.tol is not None:  # the best offset for these weights: the nu-quantile of the scores
            scores = self._predict_validated(data.X, SCORES)
            self._learner.shift_intercept(-np.quantile(scores, self.nu, weights=data.weights, method="inverted_cdf"))

    def _check(self, call: Call, X, y=None, sample_weight=None) -> Examples:
        X = check_rows(self, X, reset=call.first, any_layout=True)
        weights = check_weights(sample_weight, X.shape[0], allow_all_zero=call.partial)
        return Examples(X, np.ones(X.shape[0]), weights)

    def _configure(self, schedule: Schedule | None = None) -> None:
        if self._divergence.adaptive and self.update != "explicit":
            raise ValueError(
                f"update must be 'explicit' with {self._divergence!r}, since exact steps do not leave the start; got "
                f"{self.update!r}."
            )
        super()._configure(schedule)
