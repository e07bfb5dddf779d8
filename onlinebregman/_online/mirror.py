"""Mixins that connect an estimator to its mirror map: a compiled learner updates weights in its geometry."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np

from .._kernels.geometries.geometry import Geometry
from .._kernels.learners.learner import Learner
from .._kernels.rows.rows import RowMap
from ..constraints import Constraint
from ..divergences import Divergence
from ..divergences._numerics import TINY
from ..losses import Loss, SquaredLoss
from ..penalties import Penalty
from ..schedules import Schedule, resolve_schedule
from .comparators import Comparators
from .compiled import make_geometry, make_loss
from .estimator import CountsLossMixin, Examples
from .merging import mean, merged_adaptive, merged_geometry, merged_learner
from .parameters import by_parameter
from .start import starting_weights
from .validation import Overflow, a_number, too_large


class MirrorMixin(CountsLossMixin):
    """Connects an estimator to its mirror map: a compiled learner holds the weights and moves them in its geometry.

    A subclass defines the divergence (`_mirror_map`) and the names of the parameters that can change between calls
    (`_read_at_each_call`); the others determine the weights and are read when learning starts.
    """

    # Attributes of the estimators that inherit from this class
    init: Any
    _start: Any  # of linear models: the parameters that are read when learning starts
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
    _signed = False  # whether w+ and w- are learned, with w = w+ - w-

    def _mirror_map(self, n_features: int | None) -> Divergence:
        """The divergence for a number of features; None before they are known."""
        raise NotImplementedError

    def _constraint(self) -> Constraint | None:
        """The constraint that weights are projected onto after each step."""
        return None

    def _penalty(self) -> Penalty | None:
        """The penalty whose proximal step follows each step."""
        return None

    def _loss(self) -> Loss:
        """The loss that is minimised."""
        return SquaredLoss()

    @property
    def divergence_(self) -> Divergence:
        """The divergence of this estimator; for signed weights that of (w+, w-)."""
        if self.__sklearn_is_fitted__():  # the one that learning started with; the parameters may have changed since
            return self._divergence
        return self._mirror_map(None)

    @property
    def weighted_loss_(self) -> Any:
        """Sum of eta_t L_t(w_t), rate times weight times loss before each step, since regret is tracked."""
        return self._fitted_learner().weighted_loss

    def _make_learner(self, start) -> Learner:
        """A new learner; `start` is the number of features, or the prior of a matrix."""
        self._divergence = self._mirror_map(int(start) if isinstance(start, Integral) else None)
        self._learned_loss, self._learned_penalty = self._loss(), self._penalty()
        return self._learner_type(self._make_geometry(start), make_loss(self._learned_loss.parts[0]))

    def _make_geometry(self, start: Any) -> Geometry:
        """The geometry at the start; `start` is a number of features here, the prior of a matrix in subclasses."""
        weights = starting_weights(self._divergence, self._start.init, start, self._signed, self._start.name)
        constraint, penalty = self._constraint(), self._learned_penalty
        if constraint is not None:
            weights = constraint.project(self._divergence, weights)
        if penalty is not None and not self._divergence.adaptive:
            penalty.prox(self._divergence, weights, 1.0)  # raises an error now if there is no such proximal step
        return make_geometry(self._divergence, weights, self._signed, constraint, penalty, self._learned_loss)

    def _configure(self) -> None:
        self._learner.configure(
            update=self._update,
            schedule=self._schedule(),
            fit_intercept=self._fit_intercept,
            average=self._average,
            track_regret=self._track_regret,
            intercept_scaling=self._intercept_scaling,
        )

    # --- mixing models that learned in parallel ---------------------------------------------------------------------

    _maxima: tuple[str, ...] = ()  # attributes of which the largest is taken
    _of_first: tuple[str, ...] = ()  # attributes taken from the first shard

    def _merged(self, parts: Sequence[Self], fractions: Sequence[float]) -> Self:
        """See `LifeCycleMixin._merged`: theta = sum share_s theta_s with theta_s = f(w_s)."""
        if self._track_regret and self._divergence.adaptive:
            raise TypeError(
                f"{type(self).__name__} cannot be mixed with track_regret=True and {self._divergence!r}, since the "
                "certificates of several shards have a mean in one divergence only, and each row changes this one; use "
                "track_regret=False, or a divergence that is not adaptive."
            )
        mixed = copy.copy(self)
        mixed._parallel = True
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
                "The mixed weights of parallel runs are not finite: the runs diverge, or their weights lie at opposite "
                "ends of the domain. Use smaller learning rates."
            )
        return merged_learner(start, parts, fractions, geometry, row_map)

    def _dual(self, geometry: Geometry) -> np.ndarray:
        """theta = f(w)."""
        return self._divergence.mirror(geometry.state_weights)

    def _geometry_at(self, theta: np.ndarray) -> Geometry:
        """The geometry with the weights f^-1(theta)."""
        return self._make_geometry(self._divergence.inverse_mirror(theta))

    def _check_tracked(self, learner: Learner) -> None:
        if learner.origin is None:
            raise ValueError("There is no regret certificate of this run; set track_regret=True before learning.")

    @np.errstate(over="ignore", invalid="ignore")
    def _certificate(self, learner: Learner, u: np.ndarray, intercept: float = 0.0) -> float:
        """D(u, w_1) - D(u, w_{T+1}) + S of one learner, the divergence of the intercept included."""
        self._check_tracked(learner)
        intercept = np.float64(intercept)
        (start, start_intercept), (end, end_intercept) = learner.origin, learner.position
        if learner.geometry.adaptive:
            constant, g, slope = learner.geometry.nearer_by_terms
            nearer_by = constant + g @ u + slope * intercept
        else:
            nearer_by = self._nearer_by(u, start, end)
        if self._learned_penalty is not None:
            nearer_by += learner.rate_sum * self._learned_penalty.value(u)
        if not learner.geometry.adaptive:
            nearer_by += ((intercept - start_intercept) ** 2 - (intercept - end_intercept) ** 2) / 2
        return a_number(float(nearer_by + learner.slack))

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # rates may underflow, too
    def _unweighted_certificate(self, learner: Learner, u: np.ndarray, intercept: float, largest: float) -> float:
        """A bound on sum weight_t (L_t(w_t) - L_t(u)): the certificate with each row's terms divided by its rate.

        As rates never increase, the sum of (D(u, w_t) - D(u, w_{t+1})) / eta_t is at most D(u, w_1) / eta_1 -
        D(u, w_{T+1}) / eta_T + (1 / eta_T - 1 / eta_1) times the largest D(u, w_t).
        """
        weighted, intercept = self._certificate(learner, u, intercept), np.float64(intercept)
        first, last = map(np.float64, learner.tracked_rates[:2])
        if first == 0:
            return 0.0
        self._check_rates(learner, "regret_certificate")
        slack, rows = learner.unweighted_slack
        if learner.geometry.adaptive:
            return a_number(float((weighted - learner.slack) / first + slack))
        (start, start_intercept), (end, end_intercept) = learner.origin, learner.position
        before = self._divergence.divergence(u, start) + (intercept - start_intercept) ** 2 / 2
        after = self._divergence.divergence(u, end) + (intercept - end_intercept) ** 2 / 2
        bound = before / first - after / last + slack
        if self._learned_penalty is not None:
            bound += rows * self._learned_penalty.value(u)
        if first == last:
            return a_number(float(bound))
        if not max(before, after) <= largest < np.inf:
            raise ValueError(
                "largest_divergence must be a bound on D(u, w_t) for all t where rates fall, which is at least "
                f"{max(before, after):g} for this comparator; got {largest}. Within an L2Ball of radius r the squared "
                "Euclidean divergence is at most (norm_2(coef) + r)^2 / 2."
            )
        return a_number(float(bound + largest * (1 / last - 1 / first)))

    def _nearer_by(self, u: np.ndarray, start: np.ndarray, end: np.ndarray) -> float:
        """D(u, start) - D(u, end) for two positions of the learner."""
        return self._divergence.divergence(u, start) - self._divergence.divergence(u, end)

    def _nearer_by_terms(self, start: np.ndarray, end: np.ndarray) -> tuple[float, np.ndarray]:
        """The constant and the g of D(u, start) - D(u, end) = constant + <u, g>, with g = f(end) - f(start)."""
        divergence = self._divergence
        # the last float inside the domain, where weights have underflowed to its edge
        inside = [np.clip(w, divergence.lower + TINY, np.nextafter(divergence.upper, 0.0)) for w in (start, end)]
        g = divergence.mirror(inside[1]) - divergence.mirror(inside[0])
        return divergence.divergence(end, start) - float(np.vdot(end, g)), g

    def _optimality_gap(
        self,
        learner: Learner,
        comparators: Comparators,
        *,
        weighted: bool,
        largest_divergence: float | None,
        largest_intercept: float | None = None,
        held_intercept: float | None = 0.0,
    ) -> float:
        """The largest bound on sum weight_t (L_t(w_t) - L_t(u) - R(u)) over a set of comparators u.

        The certificate is affine in u = (coef, intercept), so that its maximum is a value of the support function of
        the set. Of rates that fall, the inequality of `_unweighted_certificate` without D(u, w_{T+1}) (1 / eta_T - 1 /
        eta_1), which is not affine. An intercept that was held is that of all comparators.
        """
        self._check_one_run()
        self._check_tracked(learner)
        (start, start_intercept), (end, end_intercept) = learner.origin, learner.position
        if learner.geometry.adaptive:
            constant, g, slope = learner.geometry.nearer_by_terms
        else:
            constant, g = self._nearer_by_terms(start, end)
            constant += (start_intercept**2 - end_intercept**2) / 2
            slope = end_intercept - start_intercept
        farthest = comparators.support(g)
        if farthest == np.inf:
            raise ValueError(
                f"The bound is infinite over all comparators ({self._divergence.domain}); give a radius, "
                f"for those with norm_{comparators.order:g}(u) <= radius, or learn within a constraint."
            )
        if held_intercept is not None:
            farthest += held_intercept * slope
        elif slope != 0:
            if largest_intercept is None or not 0 <= largest_intercept < np.inf:
                raise ValueError(
                    "The bound is infinite over all intercepts; give largest_intercept, a finite bound >= 0 on the "
                    f"sizes of those to compare with; got {largest_intercept}."
                )
            farthest += largest_intercept * abs(slope)
        if weighted:
            return a_number(float(constant + farthest + learner.slack))
        first, last = map(np.float64, learner.tracked_rates[:2])
        if first == 0:
            return 0.0
        self._check_rates(learner, "weighted=True")
        slack, _ = learner.unweighted_slack
        bound = (constant + farthest) / first + slack
        if first != last:
            if largest_divergence is None or not 0 < largest_divergence < np.inf:
                raise ValueError(
                    "largest_divergence must be a finite bound on D(u, w_t) for all t and all comparators u, as rates "
                    f"fell; got {largest_divergence}. With weighted=True or learning_rate='constant' it is not needed."
                )
            bound += largest_divergence * (1 / last - 1 / first)
        return a_number(float(bound))

    def _check_rates(self, learner: Learner, remedy: str) -> None:
        """ValueError if rates increased, or those of an adaptive divergence changed."""
        first, last, rose = learner.tracked_rates
        if rose or (learner.geometry.adaptive and first != last):
            why = "rates increase during the run" if rose else f"the rates of {self._divergence!r} are not constant"
            raise ValueError(f"There is no bound on the regret itself if {why}; use {remedy}.")

    def _schedule(self) -> Schedule:
        """The learning rates."""
        learning_rate, eta0 = self._rate()
        return resolve_schedule(learning_rate, eta0, self._power_t, self._strength())

    def _strength(self) -> float | None:
        """The strength of the penalty, for learning_rate="optimal"; None for estimators without these rates."""
        return None

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
        before = self._learner.cumulative_loss
        super()._learn(data, order, scores=scores)
        return (self._learner.cumulative_loss - before) / total

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
