"""Code shared by the mixtures of experts: experts as columns or estimators, and the loop over the rows."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from math import log
from numbers import Integral, Real
from typing import Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mixer import Mixer
from .._kernels.learners.mixture import MixtureLearner
from .._kernels.learners.regret_hedges import BernsteinHedge, PolynomialHedge
from .._kernels.learners.transaction import Validated
from .._objects import is_finite_number
from .._online.estimator import Call, Examples, LifeCycleMixin
from .._online.validation import dense, is_fitted, read_only
from .._online.weights import WeightsMixin
from .._sklearn_compat import BaseComposition, Interval
from ..pipeline import check_instance, check_online, copies_to_learn, learns, parameters_of

Array = NDArray[np.float64]


def are_numbers(*values) -> bool:
    """Whether all values are numbers whose squares do not overflow as floats, and not NaN."""
    return all(is_finite_number(value) and abs(float(value)) <= 1e100 for value in values)


def hoeffding_rate(loss_range: float, n_rows: float, n_experts: int) -> float:
    """The rate at which losses within this range have a regret of loss_range sqrt(n_rows ln(n_experts) / 2)."""
    return (8.0 * log(max(n_experts, 2)) / n_rows) ** 0.5 / loss_range


RATES_OF_THEIR_OWN: dict[str, type[Hedge]] = {"ml_poly": PolynomialHedge, "boa": BernsteinHedge}


def given_rate(learning_rate: Literal["adaptive"] | float, share: float) -> float | None:
    """The rate of a `Hedge`: a number, or None for one that adapts, which is not for fixed share."""
    if learning_rate != "adaptive":
        return float(learning_rate)
    if share:
        raise ValueError(f"learning_rate must be a number or 'theory' with share = {share:g}; got 'adaptive'.")
    return None


@dataclass(frozen=True)
class Forecasts(Examples):
    """Rows to forecast, the targets that experts learn (`y`), and those that losses are computed from (`targets`)."""

    targets: Any = None


class ExpertMixture(WeightsMixin, LifeCycleMixin, MetaEstimatorMixin, BaseComposition):
    """Experts, given as columns of X or as online estimators, mixed by weights that depend on their past losses.

    A subclass defines the forecasts of the experts (`_columns`, `_forecast`), the learner of their weights, and the
    rate.

    Parameters
    ----------
    strategy : {"average", "eg", "ml_poly", "boa"}
        What the weights are updated by: the losses of the experts ("average"), or the gradient of the loss of the
        mixture ("eg", "ml_poly", "boa"). Read when learning starts, like `loss`.
    prior : array-like of shape (n_experts,)
        Initial weights; equal by default.
    share : float
        Fraction of the total weight that is redistributed after each row, below 1; a good value is the number of
        switches divided by the number of rows. Read when learning starts, like `prior`.
    history : int
        Number of most recent rows whose weights are stored in `weights_history_`; read at each call.
    shuffle : bool
        Learn the rows of `fit` in random order. False: in their own order, as `partial_fit` always does. That is for
        rows in time: then `share` lets the weights follow the experts that were good recently, and `weights_history_`
        says who led when.

    Attributes
    ----------
    weights_ : ndarray of shape (n_experts,)
        Weights in the next forecast.
    weights_history_ : ndarray of shape (n_rows, n_experts)
        Weights with which each of the last `history` rows was forecast; the argmax of each row is the leading expert.
    cumulative_loss_ : float
        Loss of the mixture.
    regret_bound_ : float
        Bound on `cumulative_loss_` minus the loss of the best expert ("eg": of the best mixture), for this run.
    estimators_ : list
        The fitted experts; empty if they are the columns of X.
    t_ : int
        Rows forecast and counted. The first row is only learned if some experts cannot predict before they have
        learned.
    """

    _unmergeable = (
        "its weights follow from the losses of one sequence of rows, each predicted by experts that have learned all "
        "rows before"
    )
    _parameter_constraints: dict = {
        "estimators": [list, None],
        "share": [Interval(Real, 0, 1, closed="left")],
        "prior": ["array-like", None],
        "history": [Interval(Integral, 0, None, closed="left")],
    }

    _takes_sparse = True  # or the experts refuse sparse rows
    _others = property(lambda self: self.estimators_)
    _allow_nan = property(lambda self: all(tags.input_tags.allow_nan for tags in self._tags_of_experts()))
    _forecast_method = "predict"  # method that experts must have
    _strategy = "average"
    _read_at_each_call: tuple[str, ...] = ("history",)

    history: int

    @property
    def _fast_learner(self) -> str:
        return "_experts_learner" if self.__dict__.get("estimators_") else "_learner"

    @read_only
    def expert_losses_(self) -> Array:
        """Cumulative losses of the experts, each row forecast before it was learned, shape (n_experts,)."""
        return self._fitted_mixer().expert_losses

    @property
    def t_(self) -> int:
        """Rows that were forecast and counted; rows of weight zero are not."""
        return self._fitted_hedge().n_rows

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, and with `deep` those of the experts as name__parameter.

        Parameters
        ----------
        deep : bool, default=True
            Also those of the experts.

        Returns
        -------
        params : dict
            Names and values.
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, experts by their names, and parameters of experts as name__parameter.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self : object
            The estimator.
        """
        return self._set_params("estimators", **params)

    def tracking_bound(self, n_switches: int) -> float:
        """Bound on `cumulative_loss_` minus that of the best sequence of experts with a given number of switches.

        With share a and K equal priors it is (ln K + m ln(K / a) - (T - 1 - m) ln(1 - a + a / K)) / rate + gap for m
        switches in T rows.

        Parameters
        ----------
        n_switches : int
            Number of changes from one expert to another in the sequence.

        Returns
        -------
        bound : float
            Infinite for share=0 and at least one switch.
        """
        check_is_fitted(self)
        if not isinstance(n_switches, Integral) or n_switches < 0:
            raise ValueError(f"n_switches must be an integer >= 0; got {n_switches!r}.")
        return self._learner.hedge.regret_bound(int(n_switches))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        experts = self._tags_of_experts()
        tags.input_tags.sparse = all(expert.input_tags.sparse for expert in experts)
        tags.input_tags.allow_nan = self._allow_nan
        tags.input_tags.positive_only = any(expert.input_tags.positive_only for expert in experts)
        tags.target_tags.positive_only = any(expert.target_tags.positive_only for expert in experts)
        return tags

    def _tags_of_experts(self) -> list[Tags]:
        pairs = self.estimators if isinstance(self.estimators, list) else []
        return [get_tags(pair[1]) for pair in pairs if _is_pair(pair)]

    # --- learning -------------------------------------------------------------------------------------------------

    def _begin(self, data: Examples) -> None:
        """Bind unfitted experts, and the learner of their weights."""
        X = data.X
        self.estimators_ = self._fresh_experts()
        n_experts = len(self.estimators_) if self.estimators_ else self._n_columns_of_experts(X.shape[1])
        self._experts_learner: MixtureLearner | None = None
        self._ready = not self.estimators_ or all(map(is_fitted, self.estimators_))
        self._learner = self._make_mixer(self._make_hedge(n_experts))

    def _make_hedge(self, n_experts: int) -> Hedge:
        """The weights of the experts, by the strategy."""
        kind = RATES_OF_THEIR_OWN.get(self._strategy)
        if kind is None:
            return Hedge(n_experts, self._rate(n_experts), self.share, self._prior(n_experts))
        if self.share or self.learning_rate != "adaptive":
            raise ValueError(
                f"strategy={self._strategy!r} has rates of its own, and needs learning_rate='adaptive' and share=0; "
                f"got {self.learning_rate!r} and {self.share:g}. Use strategy='average' or 'eg'."
            )
        return kind(n_experts, None, 0.0, self._prior(n_experts))

    def _n_columns_of_experts(self, n_features: int) -> int:
        """The number of experts whose forecasts this many columns are."""
        return n_features

    def _rate(self, n_experts: int) -> float | None:
        """The learning rate, by default that of Bayes' rule; None: it adapts."""
        return 1.0

    def _make_mixer(self, hedge: Hedge) -> Mixer:
        """The learner of the weights."""
        raise NotImplementedError

    def _configure(self) -> None:
        super()._configure(history=self.history)

    def _go_on(self, data: Examples, call: Call) -> None:
        self.estimators_ = copies_to_learn(self.estimators_, len(data))

    def _fresh_experts(self) -> list[Any]:
        if self.estimators is None:
            return []
        for pair in self.estimators:
            if isinstance(pair, tuple) and len(pair) == 2:
                check_instance(pair[1], f"Expert {pair[0]!r}")
        if not self.estimators or not all(map(_is_pair, self.estimators)):
            raise ValueError(
                "'estimators' should be a non-empty list of (name, estimator) tuples; omit it if the columns of X "
                "are the forecasts of the experts."
            )
        names, experts = zip(*self.estimators, strict=True)
        self._validate_names(names)
        for name, expert in self.estimators:
            check_online(expert, f"Expert {name!r}")
            if not hasattr(expert, self._forecast_method):
                raise ValueError(
                    f"Expert {name!r} must have the method {self._forecast_method}; got a {type(expert).__name__}."
                )
        return [clone(expert) for expert in experts]

    def _prior(self, n_experts: int) -> Array | None:
        if self.prior is None:
            return None
        prior = np.asarray(self.prior, dtype=np.float64)
        if prior.shape != (n_experts,) or not (prior > 0).all() or not np.isfinite(prior.sum()):
            raise ValueError(
                f"prior must be one positive number for each of the {n_experts} experts; got {self.prior!r}."
            )
        return prior / prior.sum()

    def _learn(self, data: Forecasts, order: Array | None = None, *, again: bool = False) -> None:
        """Forecast each row before it is learned, and update the weights of the experts by their losses."""
        if self.estimators_:
            self._weigh_rows(*self._forecast_and_learn(data.X, data.y, data.weights, order), data, order)
            self._gather_learners()
        else:
            self._weigh_rows(self._columns(data.X), data.weights, data, order)

    def _weigh_rows(self, forecasts: Array, weights: Array | None, data: Forecasts, order: Array | None) -> None:
        """Update the weights by the forecasts of all experts, each in the form that `_forecast` returns."""
        self._update_weights(forecasts, data.targets, weights, order)

    def _update_weights(
        self, forecasts: Array, targets: Array | None, weights: Array | None, order: Array | None
    ) -> None:
        """Update the weights by rows of forecasts; by all rows or, on an error, by none."""
        refused = self._learner.learn(forecasts, targets, weights, order)
        if refused is not None:
            reason, row = refused
            check_awake(forecasts[row : row + 1], row)
            self._refuse(reason, row, forecasts, targets)

    def _refuse(self, reason: str, row: int, forecasts: Array, targets: Array | None) -> NoReturn:
        """Raise the error for a row, or the rows up to it, whose losses are not finite."""
        raise ValueError(
            f"The sum of the losses up to row {row} must be finite; got infinity. Scale the forecasts, or the weights."
        )

    def _forecast_and_learn(self, X, y, sample_weight: Array | None, order: Array | None = None) -> tuple[Array, Array]:
        """The experts' forecasts of each row before they learn it, and the weights of the rows that were forecast.

        Only rows in `order` are learned, in that order, if it is given. The first row is only learned, not forecast, if
        an expert is not fitted; so are all rows that were to be forecast together. Without targets experts get X alone.
        """
        shape = self._shape_of_forecasts()
        forecasts = np.full((X.shape[0], *shape), 1 / shape[-1])  # rows that are not forecast pass all checks
        weights, counted = np.ones(X.shape[0]) if sample_weight is None else sample_weight, np.zeros(X.shape[0])
        learners = [k for k, expert in enumerate(self.estimators_) if learns(expert)]
        for k in () if sample_weight is None else learners:
            if "sample_weight" not in parameters_of(self.estimators_[k].partial_fit):
                raise ValueError(
                    f"sample_weight is given, but the expert {type(self.estimators_[k]).__name__} does not accept it; "
                    "omit it, or use experts that do."
                )
        rows = np.flatnonzero(weights) if order is None else order[weights[order] != 0]
        together = self._together
        if not self._ready and len(rows):
            first, rows = (rows, rows[:0]) if together else (rows[:1], rows[1:])
            for k in learners:
                self._learn_rows(k, first, *_rows(first, X, y, sample_weight), classes=vars(self).get("classes_"))
            self._ready = True
        if not len(rows):
            return forecasts, counted
        self._check_experts()
        counted[rows] = weights[rows]
        block = (X, y, sample_weight) if order is None and len(rows) == X.shape[0] else _rows(rows, X, y, sample_weight)
        others = []  # experts that forecast and learn row by row, or first forecast and then learn all rows
        for k, expert in enumerate(self.estimators_):
            own = None
            if k in learners and _is_compiled(expert) and not together:
                own = expert._progressive_fit(*block)
            if own is None:
                others.append(k)
            else:
                forecasts[rows, k] = self._completed(k, own)
        try:
            for part in () if not others else [rows] if together else rows[:, np.newaxis]:
                current = block if together else _rows(slice(part[0], part[0] + 1), X, y, sample_weight)
                for k in others:
                    forecasts[part, k] = self._forecast(k, current[0])
                for k in others:
                    if k in learners:
                        self._learn_rows(k, part, *current)
        except ValueError:  # an invalid forecast before, which may be the cause, is reported first
            self._check_forecasts(forecasts)
            raise
        self._check_forecasts(forecasts)
        return forecasts, counted

    def _learn_rows(
        self, k: int, rows: np.ndarray, X, y, sample_weight: Array | None, classes: np.ndarray | None = None
    ) -> None:
        """Learn a row, or all, with an expert; in the first call with the classes, if it accepts them."""
        method = self.estimators_[k].partial_fit
        more = {} if sample_weight is None else {"sample_weight": sample_weight}
        if classes is not None and "classes" in parameters_of(method):
            more["classes"] = classes
        try:
            method(*((X,) if y is None else (X, y)), **more)
        except ValueError as error:  # its message says row 0, if it gets one row at a time
            which = f"row {rows[0]}" if len(rows) == 1 else f"rows {rows[0]} to {rows[-1]}"
            raise ValueError(f"Expert {self._name(k)} cannot learn {which}: {error}") from error

    def _gather_learners(self) -> None:
        """Make the learner of all experts in one compiled pass for the next calls, if all experts are compiled."""
        experts = self.estimators_
        learners = [vars(expert).get("_learner") for expert in experts]
        known, self._experts_learner = self._experts_learner, None
        if not (self._ready and all(map(_is_compiled, experts))):
            return
        weighted = any(getattr(expert, "_class_weight", None) is not None for expert in experts)
        if weighted or not all(now.predictive and now.n_scores == 1 for now in learners):
            return
        if known is None or not all(map(operator.is_, known.learners, learners)):
            links = [self._link_of(expert) for expert in experts]
            if None in links:
                return
            targets_by_class = [vars(expert).get("_targets_of_classes") for expert in experts]
            known = MixtureLearner(learners, self._learner, targets_by_class, links)
        known.set_experts(experts, Validated(self, ("_learner", "estimators_")), map(_bound, experts))
        self._experts_learner = known

    def _link_of(self, expert: Any) -> Literal["identity", "logistic", "clipped"] | None:
        """How scores of a compiled expert are mapped to forecasts; None if the compiled pass cannot do it."""
        raise NotImplementedError

    def _shape_of_forecasts(self) -> tuple[int, ...]:
        return (len(self.estimators_),)

    def _forecast(self, k: int, X) -> Array:
        """An expert's forecasts of rows."""
        raise NotImplementedError

    def _completed(self, k: int, forecasts: Array) -> Array:
        """The forecasts of an expert, with what it does not know about."""
        return forecasts

    def _forecasts(self, X) -> Array:
        """The forecasts of all experts, shape (n_rows, n_experts, ...)."""
        if not self.estimators_:
            return self._columns(X)
        self._check_experts()
        return np.stack([self._forecast(k, X) for k in range(len(self.estimators_))], axis=1, dtype=np.float64)

    def _columns(self, X) -> Array:
        """The forecasts that the columns of X are."""
        return dense(X, np.float64)

    def _log_weights(self, forecasts: Array) -> Array:
        """ln of the weights in rows of forecasts, shape (n_rows, n_experts); in rows where some sleep the others'."""
        logs, asleep = self._learner.hedge.log_weights, np.isnan(forecasts)
        if not asleep.any():
            return logs
        check_awake(forecasts)
        logs = np.where(asleep, -np.inf, np.maximum(logs, -1e300))  # equal weights if those awake have none
        logs -= logs.max(axis=1, keepdims=True)
        return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)

    def _check_experts(self) -> None:
        """Raise an error if an expert cannot forecast."""

    def _check_forecasts(self, forecasts: Array) -> None:
        """Raise an error that names the first row with an invalid forecast, and the expert."""
        raise NotImplementedError

    def _name(self, expert: int) -> str:
        return repr(self.estimators[expert][0]) if self.estimators else f"in column {expert}"


def check_awake(forecasts: Array, first: int = 0) -> None:
    """Raise an error for a row in which all experts sleep; the rows are those from the `first` on."""
    asleep = np.isnan(forecasts).all(axis=1)
    if asleep.any():
        row = first + int(asleep.argmax())
        raise ValueError(f"Row {row} must have a forecast of at least one expert; got NaN of all. Leave it out.")


def _is_pair(pair) -> bool:
    if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
        return False
    return hasattr(pair[1], "get_params") and not isinstance(pair[1], type)


def _is_compiled(expert) -> bool:
    """Whether its class is defined in this package, and can learn rows in one pass."""
    return type(expert).__module__.startswith("onlinebregman.") and hasattr(expert, "_progressive_fit")


def _bound(expert) -> Validated:
    """What an expert must still have if the compiled pass is to learn by its learner."""
    return Validated(expert, tuple(name for name in ("_learner", "class_weight") if hasattr(expert, name)))


def _rows(rows, X, y, sample_weight) -> tuple[Any, Any, Any]:
    """Some rows with their targets and weights, if given."""
    return X[rows], None if y is None else y[rows], None if sample_weight is None else sample_weight[rows]
