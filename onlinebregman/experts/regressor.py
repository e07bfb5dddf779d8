"""Mixtures of experts that forecast numbers."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mean_mixer import MeanMixer
from .._kernels.learners.mixer import AggregatingMixer
from .._online.compiled import make_loss
from .._online.estimator import Call, by_parameter
from .._online.examples import LearnsTargets
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_finite, finite, first_true
from .._sklearn_compat import Interval, StrOptions
from ..losses import AbsoluteLoss, SquaredLoss
from ..losses._base import ResidualLoss
from ._base import Array, ExpertMixture, Forecasts, are_numbers, check_awake, given_rate, hoeffding_rate


class ExpertMixtureRegressor(RegressorMixin, LearnsTargets, ExpertMixture):
    """Weighted mean of the forecasts of experts, with weights that depend on their losses.

    The forecast is a = sum v_k p_k, and after each row (p, y) the weights are updated by

        average   v_k ~ v_k exp(-rate L(p_k, y))        (exponentially weighted average)
        eg        v_k ~ v_k exp(-rate L'(a, y) p_k)     (exponentiated gradient)
        ml_poly   v_k ~ max(R_k, 0) / (Q_k + max r^2)                            (polynomial potential)
        boa       v_k ~ eta_k exp(eta_k (R_k - sum of eta_k r_k^2))              (Bernstein online aggregation)

    with r_k = L'(a, y) (a - p_k), what expert k would have saved, R_k and Q_k the sums of r_k and r_k^2, and eta_k =
    min(1 / (2 max |r_k|), sqrt(ln K / Q_k)). The average is nearly as good as the best expert, the others nearly as
    good as the best fixed mixture of experts, the last two at rates of each expert's own, with nothing to set. If the
    range of the targets is known, the Aggregating Algorithm (`strategy="aggregating"`) has a quarter of the average's
    regret bound: it updates weights like the average, at a higher rate, and its forecast is not quite the weighted
    mean, see Notes. `share` > 0 redistributes a fraction of the total weight after each row (fixed share), which makes
    it nearly as good as the best *sequence* of experts with few switches. Each row is forecast before it is learned.

    Parameters
    ----------
    estimators : list of (str, estimator) or None
        The experts: online regressors, cloned when learning starts; all of them learn each row after it was forecast.
        Fitted ones in a :class:`~sklearn.frozen.FrozenEstimator` do not change. They get the weights of the rows, which
        also multiply losses. None: the columns of X are the forecasts of the experts.
    strategy : {"ml_poly", "boa", "eg", "average", "aggregating"}
        What the weights are updated by: the losses of the experts ("average", "aggregating"), or the gradient of the
        loss of the mixture (the others). "aggregating", for squared errors, forecasts by the Aggregating Algorithm.
        Read when learning starts, like `loss`.
    loss : {"squared_error", "absolute_error"}
        (a - y)^2 / 2 or |a - y|.
    learning_rate : {"adaptive", "theory"} or float
        The rate. "adaptive": ln K / gap, for losses of any magnitude (AdaHedge), or the rates of "ml_poly" and "boa",
        which have no others. "theory": that of the theorem for `data_bounds`, see Notes. Read when learning starts,
        like the next three.
    share : float
        Fraction of the total weight that is redistributed after each row, below 1; a good value is the number of
        switches divided by the number of rows. If positive, the learning rate must be a number or "theory", with
        strategy "average", "eg" or "aggregating".
    data_bounds : dict or None
        Bounds on forecasts and targets, for learning_rate="theory": "y", the pair of the smallest and the largest
        value, whose difference is B in the Notes, and "n_rows", the number of rows T (not needed for squared losses,
        unless the strategy is "eg"). strategy="aggregating" needs "y" at any rate: targets beyond it are refused,
        forecasts clipped, and experts whose forecasts are farther than B from it have no weight in the row.
    {prior, history, shuffle, random_state, delayed}

    Attributes
    ----------
    {weights_, weights_history_, cumulative_loss_}
    expert_losses_ : ndarray of shape (n_experts,)
        Losses of the experts.
    {regret_bound_, estimators_, t_, n_features_in_, feature_names_in_}

    See Also
    --------
    ExpertMixtureClassifier : The same for probabilities of classes.
    LearningRateMixture : Mixes one model at many learning rates, faster.
    EGRegressor : Exponentiated gradient with other steps, an intercept, signs.

    Notes
    -----
    A forecast that is NaN is of an expert that sleeps: it has no weight in the row, which costs it as much as the
    mixture of the others.

    `regret_bound_` is ln K / rate + gap, where the gap is the accumulated cost of mixing; it holds for every stream and
    every rate. That of "ml_poly" and "boa" is the largest over the experts of a bound that grows with the root of Q_k,
    so that it is small for those whose forecasts were near the mixture's. With forecasts and targets in a range of
    length B, the rates of "theory" and their a priori bounds are:

    - average, squared error: rate 1 / B^2, no gap, regret at most B^2 ln K;
    - aggregating, squared error: rate 4 / B^2, no gap, regret at most B^2 ln K / 4;
    - average, absolute error: rate sqrt(8 ln K / T) / B, regret at most B sqrt(T ln K / 2);
    - eg, squared error: rate sqrt(8 ln K / T) / B^2, regret at most B^2 sqrt(T ln K / 2) against every mixture;
    - eg, absolute error: the same as for the average, against every mixture.

    Unless `data_bounds` give the range, absurd forecasts and targets are limited before the weights learn from them: an
    expert whose forecast is more than ten mean deviations from the mean of the targets has no weight in that row, and
    errors beyond ten mean errors of the mixture, and three deviations of the targets, count as the nearest within.
    `expert_losses_` are those of the forecasts as they are; `regret_bound_` includes what limits have changed.

    The weight of a row multiplies its losses; these bounds are for weights of 1, `regret_bound_` for any weights. The
    first two hold for weights up to 1; for weights up to h, the rate divided by h has no gap, and h times the bound.

    With the generalised prediction g(y) = -ln(sum v_k exp(-(4 / B^2) (p_k - y)^2 / 2)) B^2 / 4, and forecasts and
    targets between l and u, the Aggregating Algorithm forecasts a = (l + u) / 2 + (g(l) - g(u)) / B at every learning
    rate. `expert_losses_` are then the losses of the clipped forecasts.

    References
    ----------
    .. [1] J. Kivinen, M. K. Warmuth, "Averaging Expert Predictions", EuroCOLT 1999.
    .. [2] M. Herbster, M. K. Warmuth, "Tracking the Best Expert", Machine Learning 32, 1998.
    .. [3] N. Cesa-Bianchi, G. Lugosi, "Prediction, Learning, and Games", 2006, sections 2.2, 3.3 and 5.2.
    .. [4] S. de Rooij, T. van Erven, P. D. Grunwald, W. M. Koolen, "Follow the Leader If You Can, Hedge If You Must",
       JMLR 15, 2014.
    .. [5] V. Vovk, "Competitive On-line Statistics", International Statistical Review 69, 2001.
    .. [6] P. Gaillard, G. Stoltz, T. van Erven, "A Second-order Bound with Excess Losses", COLT 2014 (ML-Poly).
    .. [7] O. Wintenberger, "Optimal Learning with Bernstein Online Aggregation", Machine Learning 106, 2017.

    Examples
    --------
    Columns of X are the experts, and the best one changes after 500 rows:

    >>> import numpy as np
    >>> from onlinebregman import ExpertMixtureRegressor
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(size=1000)
    >>> X = np.clip(y[:, np.newaxis] + 0.3 * rng.normal(size=(1000, 4)), 0.0, 1.0)
    >>> X[:500, 1], X[500:, 2] = y[:500], y[500:]
    >>> settings = {"learning_rate": "theory", "data_bounds": {"y": (0, 1)}, "share": 0.002, "history": 1000}
    >>> mixture = ExpertMixtureRegressor(strategy="average", **settings, shuffle=False)  # the rows are in time
    >>> leaders = mixture.fit(X, y).weights_history_.argmax(axis=1)
    >>> print(leaders[[100, 400, 900]], bool(mixture.cumulative_loss_ <= mixture.tracking_bound(n_switches=1)))
    [1 1 2] True

    A smaller bound for targets that are known to be between 0 and 1:

    >>> aggregating = ExpertMixtureRegressor(
    ...     strategy="aggregating", learning_rate="theory", data_bounds={"y": (0, 1)}
    ... ).fit(X, y)
    >>> print(f"{aggregating.regret_bound_:.4f}, {np.log(4) / 4:.4f}")
    0.3466, 0.3466
    >>> bool(aggregating.cumulative_loss_ <= aggregating.expert_losses_.min() + aggregating.regret_bound_)
    True

    Online models as experts:

    >>> from onlinebregman import BurgRegressor, ImplicitGDRegressor
    >>> X = rng.uniform(size=(500, 5))
    >>> y = X @ [1.0, 2.0, 0.0, 0.0, 3.0]
    >>> mixture = ExpertMixtureRegressor([("burg", BurgRegressor()), ("gd", ImplicitGDRegressor())]).fit(X, y)
    >>> bool(mixture.cumulative_loss_ <= mixture.expert_losses_.min() + mixture.regret_bound_)
    True
    """

    _parameter_constraints: dict = {
        "strategy": [StrOptions({"ml_poly", "boa", "eg", "average", "aggregating"})],
        "loss": [StrOptions({"squared_error", "absolute_error"})],
        "learning_rate": [StrOptions({"adaptive", "theory"}), Interval(Real, 0, None, closed="neither")],
        "data_bounds": [dict, None],
    }
    _strategy = by_parameter("strategy")

    def __init__(
        self,
        estimators: list[tuple[str, Any]] | None = None,
        *,
        strategy: Literal["average", "eg", "ml_poly", "boa", "aggregating"] = "ml_poly",
        loss: Literal["squared_error", "absolute_error"] = "squared_error",
        learning_rate: Literal["adaptive", "theory"] | float = "adaptive",
        share: float = 0.0,
        data_bounds: dict[str, Any] | None = None,
        prior: ArrayLike | None = None,
        history: int = 0,
        shuffle: bool = True,
        random_state: RandomState = None,
        delayed: bool = False,
    ) -> None:
        self._set_arguments(locals())

    def predict(self, X: MatrixLike) -> Array:
        """The mixture's forecasts: the weighted mean of the experts', or as "aggregating" says.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Forecasts.
        """
        return self._predict(X, by="_experts_learner").ravel()

    @finite("prediction")
    def _predict_validated(self, X, settings: tuple = ()) -> Array:
        check_finite(X, owner=self)
        forecasts = self._forecasts(X)
        check_awake(forecasts)
        return self._learner.predict(np.ascontiguousarray(forecasts))[:, 0]

    def _check(self, call: Call, X, y, sample_weight: ArrayLike | None) -> Forecasts:
        rows = super()._check(call, X, y, sample_weight)
        return Forecasts(rows.X, rows.y, rows.weights, targets=rows.y)

    def _make_mixer(self, hedge: Hedge) -> AggregatingMixer | MeanMixer:
        if self.strategy == "aggregating":
            return AggregatingMixer(hedge, *self._bounds("strategy='aggregating'", {"y"})[:2])
        loss = SquaredLoss() if self.loss == "squared_error" else AbsoluteLoss()
        limits = self._bounds("", {"y"})[:2] if self.learning_rate == "theory" else "errors"
        return MeanMixer(hedge, make_loss(loss), self.strategy != "average", None, limits)

    def _link_of(self, expert: Any) -> Literal["identity"] | None:
        return "identity" if type(expert._learned_loss).link is ResidualLoss.link else None

    def _forecast(self, k: int, X) -> Array:
        return self._completed(k, np.asarray(self.estimators_[k].predict(X)))

    def _completed(self, k: int, forecasts: Array) -> Array:
        if forecasts.ndim > 1 and forecasts.shape[1] != 1:
            raise ValueError(
                f"Expert {self._name(k)} must have one output; got {forecasts.shape[1]} forecasts of each row. Use an "
                "expert for each of them, such as a model of one quantile."
            )
        return np.ravel(forecasts)

    def _check_forecasts(self, forecasts: Array) -> None:
        if wrong := first_true(np.isinf(forecasts)):
            row, k = wrong
            raise ValueError(
                f"Forecasts of expert {self._name(k)} must be finite; got {forecasts[row, k]} at row {row}. Lower its "
                "learning rate, or remove it."
            )

    def _refuse(self, reason: str, row: int, forecasts: Array, targets: Array) -> NoReturn:
        if reason == "bad target" and isinstance(self._learner, AggregatingMixer):
            lo, hi = self._learner.lo, self._learner.hi
            raise ValueError(
                f"The target of row {row} must be within data_bounds['y'] = {(lo, hi)}; got {float(targets[row])}. "
                "Begin with a wider range in data_bounds, or clip the targets."
            )
        if reason == "bad target":
            raise ValueError(
                f"The loss at row {row} (target {targets[row]:g}) must be finite; got infinity. Scale targets and "
                "forecasts."
            )
        super()._refuse(reason, row, forecasts, targets)

    def _rate(self, n_experts: int) -> float | None:
        if self.strategy == "aggregating":
            if self.loss != "squared_error":
                raise ValueError(f"loss must be 'squared_error' with strategy='aggregating'; got {self.loss!r}.")
            self._bounds("strategy='aggregating'", {"y"})
        if self.learning_rate != "theory":
            return given_rate(self.learning_rate, self.share)
        mixable = {"average": 1.0, "aggregating": 4.0}.get(self.strategy) if self.loss == "squared_error" else None
        lo, hi, n_rows = self._bounds("learning_rate='theory'", {"y"} if mixable else {"y", "n_rows"})
        if mixable:
            return mixable / (hi - lo) ** 2
        return hoeffding_rate((hi - lo) ** 2 if self.loss == "squared_error" else hi - lo, n_rows, n_experts)

    def _bounds(self, what: str, needed: set[str]) -> tuple[float, float, float]:
        """The range of targets, and the number of rows, from `data_bounds`; `what` needs some of them."""
        bounds = self.data_bounds or {}
        n_rows = bounds.get("n_rows", 1)
        if needed <= set(bounds) and np.shape(bounds["y"]) == (2,) and are_numbers(*bounds["y"], n_rows):
            lo, hi = float(bounds["y"][0]), float(bounds["y"][1])
            if hi - lo >= 1e-100 and n_rows > 0:
                return lo, hi, float(n_rows)
        raise ValueError(
            f"{what} needs data_bounds with {' and '.join(sorted(needed))}, 'y' a pair (smallest, largest) of numbers, "
            f"n_rows positive; got {self.data_bounds!r}."
        )
