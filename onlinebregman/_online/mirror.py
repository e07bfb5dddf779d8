"""Mixins that connect an estimator to its mirror map: a compiled learner updates weights in its geometry."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np

from .._kernels.geometries.geometry import Geometry
from .._kernels.learners.learner import Learner
from .._kernels.rows.rows import RowMap
from ..constraints import Constraint
from ..divergences import Divergence
from ..losses import Loss, SquaredLoss
from ..penalties import Penalty
from ..schedules import Constant, Schedule, resolve_schedule
from .compiled import make_geometry, make_loss
from .estimator import CountsLossMixin, Examples
from .merging import mean, merged_adaptive, merged_geometry, merged_learner
from .parameters import by_parameter, same
from .regret import Certificate
from .start import starting_weights
from .theory import TheoryRate
from .validation import Overflow, too_large

# The parameters that bounds take to be constant, as far as an estimator has them
_CONSTANT = frozenset(
    {"eta0", "learning_rate", "power_t", "alpha", "data_bounds", "scale_eta", "update", "loss", "upper_bound"}
    | {"sum_bound", "fit_intercept", "intercept_scaling", "class_weight", "average"}
)


class Spec(NamedTuple):
    """What a run is made of, by the parameters when it starts and by what the class of the estimator fixes."""

    divergence: Divergence
    loss: Loss = SquaredLoss()
    penalty: Penalty | None = None  # whose proximal step follows each step
    constraint: Constraint | None = None  # that weights are projected onto after each step
    signed: bool = False  # whether w+ and w- are learned, with w = w+ - w-
    init: np.ndarray | None = None  # the weights to start from, of linear models; None for those of the divergence
    source: str = "init"  # the parameter that gives `init`
    coef: np.ndarray | None = None  # of each learner, in place of `init`
    intercepts: tuple[float, ...] = ()

    def start(self, number: int) -> tuple[np.ndarray | None, float]:
        """The weights, None for those of the divergence, and the intercept that a learner starts from."""
        init = self.init if self.coef is None else self.coef[number]
        return init, self.intercepts[number] if self.intercepts else 0.0


class MirrorMixin(CountsLossMixin):
    """Connects an estimator to its mirror map: a compiled learner holds the weights and moves them in its geometry.

    A subclass defines what a run is made of (`_specify`) and the names of the parameters that can change between calls
    (`_read_at_each_call`); the others determine the weights and are read when learning starts.
    """

    # Attributes of the estimators that inherit from this class
    init: Any
    _spec: Spec
    _divergence: Any = property(attrgetter("_spec.divergence"))
    _learned_loss: Any = property(attrgetter("_spec.loss"))
    _learned_penalty: Any = property(attrgetter("_spec.penalty"))
    learning_rate: Any
    eta0: float
    get_params: Any
    _learner_type: type[Learner] = Learner
    # Settings that are parameters of some estimators; the others have no public attribute of this name
    _update, _power_t = by_parameter("update"), by_parameter("power_t")
    _fit_intercept: Any = False
    _average: Any = False
    _track_regret: Any = False
    _intercept_scaling: float = 1.0
    _loss_parameter: Any = "squared_error"
    _slowdown = 1.0  # of learning_rate="adaptive": eta0 by its present rate
    _learned_under: dict[str, Any]  # the values of `_CONSTANT` when the run began

    def _specify(self, n_features: int | None) -> Spec:
        """What a run is made of, for a number of features; None before they are known."""
        raise NotImplementedError

    @property
    def divergence_(self) -> Divergence:
        """The divergence of this estimator; for signed weights that of (w+, w-)."""
        if self.__sklearn_is_fitted__():  # the one that learning started with; the parameters may have changed since
            return self._divergence
        return self._specify(None).divergence

    @property
    def weighted_loss_(self) -> Any:
        """Sum of eta_t L_t(w_t), rate times weight times loss before each step, since regret is tracked."""
        if "track_regret" not in self._get_param_names():
            raise AttributeError(f"{type(self).__name__} tracks no regret")
        return self._fitted_learner().weighted_loss

    def _make_learner(self, start: Any, spec: Spec | None = None) -> Learner:
        """A new learner; `start` is the number of features, or the prior of a matrix."""
        self._spec = self._specify(None) if spec is None else spec
        return self._learner_type(self._make_geometry(start), make_loss(self._spec.loss.parts[0]))

    def _make_geometry(self, start: Any) -> Geometry:
        """The geometry at the start; `start` is a number of features here, the prior of a matrix in subclasses."""
        divergence, loss, penalty, constraint, signed, init, source, *_ = self._spec
        weights = starting_weights(divergence, init, start, signed, source)
        if constraint is not None:
            weights = constraint.project(divergence, weights)
        if penalty is not None and not divergence.adaptive:
            penalty.prox(divergence, weights, 1.0)  # raises an error now if there is no such proximal step
        return make_geometry(divergence, weights, signed, constraint, penalty, loss)

    def _configure(self, schedule: Schedule | None = None) -> None:
        if self._learner.t == 0:  # a run begins
            self._learned_under, self._unbounded = self._constants(), None
        else:
            self._unbounded = self._why_unbounded()
        self._learner.configure(
            update=self._update,
            schedule=self._schedule() if schedule is None else schedule,
            fit_intercept=self._fit_intercept,
            average=self._average,
            track_regret=self._track_regret,
            intercept_scaling=self._intercept_scaling,
        )

    # --- merging models that learned in parallel --------------------------------------------------------------------

    _maxima: tuple[str, ...] = ()  # attributes of which the largest is taken
    _of_first: tuple[str, ...] = ()  # attributes taken from the first shard

    @property
    def _unmergeable(self) -> str | None:
        if not (self._track_regret and self.__sklearn_is_fitted__() and self._divergence.adaptive):
            return None
        return (
            f"with track_regret=True and {self._divergence!r} the certificates of several models have no mean, which "
            "requires one divergence, and each row changes this one; use track_regret=False, or a divergence that is "
            "not adaptive"
        )

    def _merged(self, parts: Sequence[Self], fractions: Sequence[float]) -> Self:
        """See `LifeCycleMixin._merged`: theta = sum share_s theta_s with theta_s = f(w_s)."""
        mixed = copy.copy(self)
        mixed._parallel = True
        mixed._unbounded = self._why_unbounded()
        mixed._learner = self._merged_learner(self._learner, [part._learner for part in parts], fractions)
        for name in self._maxima:
            setattr(mixed, name, max(getattr(part, name) for part in parts))
        for name in self._of_first:
            setattr(mixed, name, copy.deepcopy(getattr(parts[0], name)))
        return mixed

    def _merged_learner(
        self,
        start: Learner,
        parts: Sequence[Learner],
        fractions: Sequence[float],
        row_map: RowMap | None = None,
    ) -> Learner:
        if start.geometry.adaptive:
            geometry = merged_adaptive(start, parts, fractions)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                theta = mean(fractions, [self._dual(part.geometry) for part in parts])
                geometry = merged_geometry(start, parts, self._geometry_at(theta))
        if not np.isfinite(geometry.state_weights).all():
            raise ValueError(
                "The merged weights are not finite: the models diverge, or their weights lie at opposite ends of the "
                "domain. Use smaller learning rates."
            )
        return merged_learner(start, parts, fractions, geometry, row_map)

    def _dual(self, geometry: Geometry) -> np.ndarray:
        """theta = f(w)."""
        return self._divergence.mirror(geometry.state_weights)

    def _geometry_at(self, theta: np.ndarray) -> Geometry:
        """The geometry with the weights f^-1(theta)."""
        return self._make_geometry(self._divergence.inverse_mirror(theta))

    # --- bounds on a run --------------------------------------------------------------------------------------------

    _certificate_type: type[Certificate] = Certificate

    def _constants(self) -> dict[str, Any]:
        """The present values of `_CONSTANT`, with copies of those that may change in place."""
        values = {name: getattr(self, name) for name in self._get_param_names() if name in _CONSTANT}
        return {name: dict(value) if isinstance(value, dict) else value for name, value in values.items()}

    def _why_unbounded(self) -> str | None:
        if self._unbounded is None:
            for name, now in self._constants().items():
                if not same(now, before := self._learned_under[name]):
                    return (
                        f"Bounds hold for a run under constant parameters, but {name} was changed from {before!r} to "
                        f"{now!r} after row {self._learner.t}; call fit, or clone, to begin a new run."
                    )
        return self._unbounded

    def _certificate(self, learner: Learner, *, mixed: bool = False) -> Certificate:
        """The certificate of one learner; `mixed`: also the mean of those of parallel runs."""
        self._check_one_run(mixed)
        return self._certificate_type(learner, self._divergence, self._learned_penalty)

    def _schedule(self) -> Schedule:
        """The learning rates."""
        learning_rate, eta0 = self._rate()
        if learning_rate == "theory":
            return self._theory().schedule
        if learning_rate == "adaptive":
            return Constant(eta0 / self._slowdown)
        strength = self._strength() if learning_rate == "optimal" else None
        return resolve_schedule(learning_rate, eta0, self._power_t, strength)

    def _theory(self, rows: int = 0) -> TheoryRate:
        """The rate for the present parameters, and its guarantee for a number of rows."""
        raise NotImplementedError

    def _strength(self) -> float:
        """The strength of the penalty, for learning_rate="optimal"."""
        raise NotImplementedError

    def _rate(self) -> tuple[Any, float]:
        """The schedule's name or object, and its initial rate, from the parameters `learning_rate` and `eta0`."""
        return self.learning_rate, self.eta0

    def _learn(
        self,
        data: Examples,
        order: np.ndarray | None = None,
        *,
        again: bool = False,
        scores: np.ndarray | None = None,
    ) -> float:
        """One pass over rows; returns the weighted mean loss before each was learned, and fills in their `scores`."""
        n, weights = len(data.y), data.weights
        if order is not None and len(order) < n:  # others are held out
            n, weights = len(order), None if weights is None else weights[order]
        total = n if weights is None else weights.sum()
        if total == 0:
            return 0.0
        learner = self._learner
        before = learner.cumulative_loss
        refused = learner.learn(data.X, data.y, data.weights, order, scores)
        if refused is not None:
            self._refuse_row(data, *refused)
        return (learner.cumulative_loss - before) / total

    def _refuse(self, reason: str, row: int, data: Examples, name: str | None = None) -> None:
        """Raise the error for a row, called `name` in the message, that the learner refused, with a remedy."""
        y = data.y
        name = name or f"row {row}"
        own = self.get_params(deep=False)  # the message names only parameters that this estimator has
        rate, eta0 = self._rate() if "learning_rate" in own else (None, own.get("eta0"))
        by_eta0 = "eta0" in own and not isinstance(rate, Schedule) and rate not in ("theory", "optimal")
        settings = [f"update={self._update!r}"] if "update" in own else []
        remedies = ["scale features and targets (sklearn.preprocessing.StandardScaler)"]
        if by_eta0 or rate is not None:
            settings.append(f"eta0={eta0:g}" if by_eta0 else f"learning_rate={rate!r}")
            remedies.insert(0, "lower eta0" if by_eta0 else "set learning_rate to lower rates")
        under = f" under {' and '.join(settings)}" if settings else ""
        if data.weights is not None:
            remedies.append("scale the sample weights")
        if own.get("update") in ("explicit", "gradient"):
            remedies.append("use update='implicit'")
        if own.get("average") and reason == "overflowed":
            remedies.append("set average=False, the sum of the weights may have overflowed")
        remedy = ", or ".join(remedies)
        remedy = remedy[0].upper() + remedy[1:] + "."
        if reason == "bad target":
            self._learned_loss.check_target(y)
        if reason == "too large":
            raise too_large(name)
        if reason == "failed":
            failure = self._learner.failure
            raise ValueError(f"{self._divergence!r} cannot take the step for {name}{under}: {failure}") from failure
        target = " ".join(f"{value:g}" for value in np.atleast_1d(y[row]))
        kind = Overflow if reason in ("not finite", "overflowed", "loss overflowed") else ValueError
        raise kind(
            {
                "not finite": f"The prediction for {name} is not finite: the weights diverge{under}. {remedy}",
                "overflowed": f"The weights overflowed at {name} or before{',' * bool(under)}{under}. {remedy}",
                "loss overflowed": f"The loss of {name} (target {target}), or the sum of losses, overflows{under}: the "
                f"weights diverge, or features and targets are too large. {remedy}",
                "left domain": f"At {name} (target {target}) the step{under} leaves the domain "
                f"{self._divergence.domain!r} of the weights. {remedy}",
                "negative": f"Negative values in data passed to {type(self).__name__} at {name}: "
                "update='gradient' needs X >= 0 and y >= 0. "
                + ("Use update='implicit', which accepts any sign." if "update" in own else "Shift or remove them."),
                "bad target": f"The target {target} at {name} is not valid for {self._learned_loss!r}.",
            }[reason]
        )
