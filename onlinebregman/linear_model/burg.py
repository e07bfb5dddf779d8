"""Regression in the Burg entropy (Itakura-Saito divergence): positive weights of any magnitude."""

from __future__ import annotations

from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from .._kernels.learners.learner import Learner
from .._online.comparators import Comparators
from .._online.mirror import starting_weights
from .._online.theory import adaptive_rate_bound
from .._online.types import RandomState
from .._online.validation import read_only
from .._sklearn_compat import Interval, StrOptions
from ..divergences import Burg
from ..schedules import LearningRate, Schedule
from ._base import OnlineLinearRegressor, Update, parts_of
from ._certificates import RegretBoundsMixin


class BurgRegressor(RegretBoundsMixin, OnlineLinearRegressor):
    """Linear regression with positive weights, in the geometry of the Burg entropy.

    Each row (x, y) moves the weights to w' = argmin D(w', w) + eta (w'.x - y)^2 / 2 with the Itakura-Saito divergence
    D(u, w) = sum u/w - ln(u/w) - 1. All such steps have the form

        1 / w'_i = 1 / w_i + c x_i,    c = eta (a - y),

    a the prediction before the step (explicit, gradient) or after it (implicit). The divergence depends only on ratios:
    small weights are learned as accurately as large ones, relative to their size. The weights stay positive; the
    intercept can have any sign.

    Parameters
    ----------
    upper_bound : float or None
        Upper bound on all weights, in units of the weights: each step is followed by the projection onto w <=
        upper_bound, from the next row learned on. None: no bound, except for update="gradient", where it is 1.
    sum_bound : float or None
        For update="gradient": m, an upper bound on the sum of the weights, in units of the weights. Algorithm 1 of the
        paper corresponds to sum_bound = n_features * upper_bound. A smaller bound learns faster. None: the largest sum
        so far. A sum that exceeds `sum_bound` replaces it.
    {eta0}
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex", "theory"} or Schedule
        Rate of row t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t (for losses that are H-strongly
        convex, with eta0 = 1/H). A schedule from `onlinebregman.schedules` is used directly, without eta0.
    {power_t}
    data_bounds : dict or None
        Bounds on rows and comparators, for learning_rate="theory", which needs `upper_bound`: "x", the 2-norm of a row,
        "divergence", D(u, w_1) of the comparator's weights, "intercept", the size of its intercept (0 if left out),
        "loss", its cumulative loss, and, for implicit and importance-invariant steps, "y", the absolute value of a
        target.
    update : {"implicit", "explicit", "importance", "gradient"}
        "implicit": the exact step (Itakura-Saito), for features of any sign. "explicit": the linearised step; where
        a weight would not stay positive it becomes `upper_bound`, without which there is an error. "importance": a row
        of weight h has exactly the effect of h rows of weight 1, or of any other split of h. "gradient": Algorithm 1 of
        the paper, for X >= 0 and y >= 0, see Notes.
    init : array-like of shape (n_features,), float or None
        Weights to start from; None means 1 / n everywhere.
    {fit_intercept, max_iter, tol, n_iter_no_change, early_stopping, validation_fraction, shuffle, average}
    {track_regret, warm_start, handle_new_features, random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, t_, cumulative_loss_, n_iter_, loss_curve_, validation_scores_, weighted_loss_, theory_bound_}
    {divergence_}
    eta_ : float or ndarray of shape (n_outputs,)
        Rate of the next step of update="gradient", before that row lowers it further; otherwise the schedule's next.
    eta_history_ : ndarray of shape (n_changes, 2), or list of them
        Row number t and new rate, where update="gradient" lowered its rate below that of the schedule and by a tenth or
        more since the last entry: at most a few hundred entries for a stream of any length.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    EGRegressor : Positive weights in the relative entropy.
    ImplicitGDRegressor : Weights of any sign.

    Notes
    -----
    With update="gradient" the rate adapts: it is at most 1 / (2 (m B R^2 + i)), with B = upper_bound, R the largest
    feature value so far, m the largest sum so far of the weights at the nonzero features of a row (or `sum_bound`), and
    i = 1 if an intercept is learned, else 0. It never increases, and eta0 with its schedule only limits it: set a large
    eta0 to use the adaptive rate alone. With eta_1 and eta_T the first and the last rate, and half the squared
    difference of the intercepts in D(u, w_1),

        sum L_t(w_t) <= 2 eta_1 / eta_T sum L_t(u) + D(u, w_1) / eta_T

    for every comparator 0 < u <= upper_bound with any intercept, losses being multiplied by the weights of their rows
    (`loss_bound`); the user guide has the proof. The papers' rate is that of sum_bound = n_features * upper_bound. As
    printed, the algorithm lowers the rate permanently where a weight would exceed 1, such that the weight becomes
    exactly 1; after that the rate is 0 and learning stops. Here the weight is projected to upper_bound and the rate is
    not lowered.

    An absurd value in a column or target makes weights so small that later steps hardly bring them back, and, with
    update="gradient", the rate small for good: clip columns to their usual range. Against absurd targets
    `MirrorDescentRegressor(divergence="burg", loss="huber")` makes the same steps on another loss.

    Among eta0 = 0.03, 0.1, ..., 3 with "invscaling", the default was the best or within 0.01 of it in mean
    cross-validated R^2 over ten standardised regression data sets (benchmarks/defaults.py).

    References
    ----------
    .. [1] P. Jain, B. Kulis, I. S. Dhillon, "Online Linear Regression using Burg Entropy", TR-07-08, UT Austin, 2007,
       Algorithm 1.
    .. [2] B. Kulis, P. L. Bartlett, "Implicit Online Learning", ICML 2010, section 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import BurgRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 4))
    >>> y = X @ [3.0, 1.0, 0.3, 0.1]
    >>> model = BurgRegressor(eta0=100.0, max_iter=20, tol=None, fit_intercept=False, random_state=0).fit(X, y)
    >>> print(model.coef_.round(2))
    [3.  1.  0.3 0.1]
    """

    _parameter_constraints: dict = {
        "update": [StrOptions({"implicit", "explicit", "importance", "gradient"})],
        "upper_bound": [Interval(Real, 0, None, closed="neither"), None],
        "sum_bound": [Interval(Real, 0, None, closed="neither"), None],
    }
    _read_at_each_call = ("upper_bound", "sum_bound")
    _fixed_divergence = Burg()

    def __init__(
        self,
        *,
        upper_bound: float | None = None,
        sum_bound: float | None = None,
        eta0: float = 3.0,
        learning_rate: LearningRate | Literal["theory", "adaptive"] | Schedule = "invscaling",
        power_t: float = 0.5,
        data_bounds: dict[str, float] | None = None,
        update: Update | Literal["gradient"] = "implicit",
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

    def _configure(self, schedule: Schedule | None = None) -> None:
        super()._configure(schedule, upper=self._upper_bound(), sum_bound=float(self.sum_bound or 0.0))

    def loss_bound(
        self, coef: ArrayLike, intercept: ArrayLike = 0.0, comparator_loss: ArrayLike = 0.0
    ) -> float | np.ndarray:
        """Bound of Theorem 1 of the paper on `cumulative_loss_` with update="gradient".

        For every comparator u of weights 0 < u <= upper_bound, any intercept if one is learned, and the rows so far

            L  <=  2 eta_1 / eta_T L_u + D(u, w_1) / eta_T,

        the right side, with eta_1 and eta_T the first and the last rate, losses multiplied by the weights of their
        rows, and half the squared intercept in D. The user guide has the proof.

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (n_outputs, n_features)
            Weights of the comparator, positive; one row for all outputs is enough.
        intercept : float or array-like of shape (n_outputs,), default=0.0
            Its intercept, 0 if none is learned.
        comparator_loss : float or array-like of shape (n_outputs,), default=0.0
            L_u, its cumulative loss over the same rows, each as often as it was learned; 0 if the targets are its own.

        Returns
        -------
        bound : float or ndarray of shape (n_outputs,)
            The right side, of each output.

        Raises
        ------
        ValueError
            If the theorem does not apply: for other updates, with `average`, if parameters or features changed in
            mid-stream, and for other comparators.
        """
        return self._each_bound(self._loss_bound, coef, intercept, comparator_loss)

    def _loss_bound(
        self, learner: Learner, number: int, coef: ArrayLike, intercept: float, comparator_loss: float
    ) -> float:
        """The bound of one learner."""
        self._check_one_run()
        if self.update != "gradient" or self.average:
            raise ValueError("Theorem 1 requires update='gradient' and average=False; fit again with these.")
        upper = self._upper_bound()
        u = starting_weights(self._divergence, coef, self.n_features_in_, False, name="coef")
        _check_upper(u, upper, "the bound")
        if not np.isfinite(intercept) or (intercept != 0 and not self.fit_intercept):
            raise ValueError(f"intercept must be finite, and 0 if none was learned; got {intercept}.")
        init, start_intercept = self._spec.start(number)
        start = np.minimum(starting_weights(self._divergence, init, self.n_features_in_, False), upper)
        divergence = self._divergence.divergence(u, start) + (intercept - start_intercept) ** 2 / 2
        return adaptive_rate_bound(learner.limit.range, divergence, comparator_loss)

    def _comparators(self) -> Comparators:
        return super()._comparators()._replace(upper=self._upper_bound())

    def _comparator(self, coef: ArrayLike) -> np.ndarray:
        u = super()._comparator(coef)
        _check_upper(u, self._upper_bound(), "the certificate")
        return u

    def _upper_bound(self) -> float:
        if self.upper_bound is not None:
            return float(self.upper_bound)
        return 1.0 if self.update == "gradient" else np.inf

    @property
    def eta_(self) -> float | np.ndarray:
        """Rate of the next step, of each output if there are several."""
        return self._each(lambda part, number: part.next_rate)

    @read_only
    def eta_history_(self) -> np.ndarray | list[np.ndarray]:
        """Rows (t, rate) at which the rate of update="gradient" had fallen by a tenth or more, shape (n_changes, 2).

        A list of such arrays, one for each output, if there are several.
        """
        limits = [part.limit for part in parts_of(self._fitted_state())]
        falls = [np.empty((0, 2)) if limit is None else limit.falls for limit in limits]
        return falls if self._output_shape else falls[0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.update == "gradient"
        tags.target_tags.positive_only = self.update == "gradient"
        return tags


def _check_upper(u: np.ndarray, upper: float, what: str) -> None:
    if (u > upper * (1 + 1e-10)).any():
        worst = int(np.argmax(u))
        raise ValueError(
            f"coef must be at most upper_bound={upper:g}, under which rows were learned, for {what}; got "
            f"coef[{worst}] = {u[worst]:g}."
        )
