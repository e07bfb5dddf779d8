"""The mixins that tie an estimator to its mirror map: a compiled learner that moves weights in its geometry."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from ._compiled import make_geometry, make_loss
from ._kernels.geometries.geometry import Geometry
from ._kernels.loop.learner import Learner
from ._kernels.matrices.frobenius import FrobeniusGeometry
from ._kernels.matrices.logdet_blocked import BlockedLogDetGeometry
from ._kernels.matrices.matrix import LogDetGeometry
from ._kernels.matrices.matrix_burg import MatrixBurgGeometry
from ._kernels.matrices.von_neumann import VonNeumannGeometry
from ._online.estimator import Examples
from ._validation import check_finite, fitted
from .constraints import Constraint
from .divergences import (
    Burg,
    Divergence,
    LogDet,
    PNorm,
    RelativeEntropy,
    SimplexEntropy,
    SquaredEuclidean,
    SquaredFrobenius,
    VonNeumann,
    resolve_divergence,
)
from .divergences._names import automatic_p
from .losses import Loss, SquaredLoss, resolve_loss
from .schedules import Schedule, resolve_schedule


class MirrorMixin:
    """Ties an estimator to its mirror map: a compiled learner holds the weights and moves them in its geometry.

    A subclass names the divergence (`_mirror_map`) and the parameters that are `_read_at_each_call`; the others shape
    the weights and are read when learning starts.
    """

    _read_at_each_call: tuple[str, ...]
    _signed = False  # learn w+ and w- of w = w+ - w-?

    def _mirror_map(self, n_features: int | None) -> Divergence:
        """The divergence for so many features; None before they are known."""
        raise NotImplementedError

    def _constraint(self) -> Constraint | None:
        """What each step is projected onto."""
        return None

    def _loss(self) -> Loss:
        """The loss that is learned on."""
        return SquaredLoss()

    @property
    def divergence_(self) -> Divergence:
        """The divergence this estimator moves in; for signed weights that of (w+, w-)."""
        if self.__sklearn_is_fitted__():  # what learning started with; the parameters may have been set since
            return self._divergence
        return self._mirror_map(None)

    @property
    def t_(self) -> int:
        """Rows learned so far; rows of weight zero do not count."""
        return self._fitted_learner().t

    @property
    def cumulative_loss_(self) -> float:
        """Sum of weight times loss of what `predict` said of each row before it was learned, with `average`, too."""
        return self._fitted_learner().cumulative_loss

    def _fitted_learner(self) -> Learner:
        return fitted(self, vars(self).get("_learner"))

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in vars(self)

    def _make_learner(self, start) -> Learner:
        """A learner at the start: `start` is the number of features, or the prior of a matrix."""
        self._divergence = self._mirror_map(start if isinstance(start, Integral) else None)
        self._learned_loss = self._loss()
        return Learner(self._make_geometry(start), make_loss(self._learned_loss))

    def _make_geometry(self, n_features: int) -> Geometry:
        weights = starting_weights(self._divergence, self.init, n_features, self._signed)
        constraint = self._constraint()
        if constraint is not None:
            weights = constraint.project(self._divergence, weights)
        return make_geometry(self._divergence, weights, self._signed, constraint)

    def _parameters_are_valid(self) -> bool:
        return self._learner.in_force(vars(self))

    def _configure(self) -> None:
        parameters = {name: getattr(self, name) for name in self._read_at_each_call}
        self._learner.configure(
            update=self.update,
            schedule=self._schedule(),
            fit_intercept=parameters.get("fit_intercept", False),
            average=parameters.get("average", False),
            track_regret=parameters.get("track_regret", False),
            validated=parameters,
        )

    def _certificate(self, learner: Learner, u: np.ndarray, intercept: float = 0.0) -> float:
        """D(u, w_1) - D(u, w_{T+1}) + S of one learner, the divergence of the intercept included."""
        if learner.origin is None:
            raise ValueError("There is no regret certificate of this run; set track_regret=True before learning.")
        (start, start_intercept), (end, end_intercept) = learner.origin, learner.position
        gap = self._nearer_by(u, start, end)
        gap += ((intercept - start_intercept) ** 2 - (intercept - end_intercept) ** 2) / 2
        return float(gap + learner.slack)

    def _nearer_by(self, u: np.ndarray, start: np.ndarray, end: np.ndarray) -> float:
        """D(u, start) - D(u, end) of two positions of the learner."""
        return self._divergence.divergence(u, start) - self._divergence.divergence(u, end)

    def _schedule(self) -> Schedule:
        """The learning rates."""
        return resolve_schedule(self.learning_rate, self.eta0, self.power_t)

    def _learn(self, data: Examples, order: np.ndarray | None = None, *, again: bool = False) -> float:
        """One pass over rows; returns the weighted mean loss before each was learned."""
        total = len(data.y) if data.weights is None else data.weights.sum()
        if total == 0:
            return 0.0
        before = self._learner.cumulative_loss
        refused = self._learner.learn(data.X, data.y, data.weights, order)
        if refused is not None:
            check_finite(data.X)
            self._refuse(*refused, data.y)
        return (self._learner.cumulative_loss - before) / total

    def _refuse(self, reason: str, row: int, y: np.ndarray, name: str | None = None) -> None:
        """Raise the error that says why the learner refused a row (of this name), and what to do."""
        name = name or f"row {row}"
        own = self.get_params(deep=False)  # an error names no parameter that this estimator does not have
        rate = own.get("learning_rate")
        by_eta0 = "eta0" in own and not isinstance(rate, Schedule) and rate != "theory"
        settings = [f"update={self.update!r}"] if "update" in own else []
        settings.append(f"eta0={self.eta0:g}" if by_eta0 else f"learning_rate={rate!r}")
        settings = " and ".join(settings)
        remedies = ["scale features and targets (sklearn.preprocessing.StandardScaler)"]
        remedies.insert(0, "lower eta0" if by_eta0 else "set learning_rate to lower rates")
        if own.get("update") in ("explicit", "gradient"):
            remedies.append("use update='implicit'")
        if own.get("average") and reason == "overflowed":
            remedies.append("set average=False, the sum of the weights may have overflowed")
        remedy = ", or ".join(remedies)
        remedy = remedy[0].upper() + remedy[1:] + "."
        if reason == "bad target":
            self._learned_loss.check_target(y)
        if reason == "failed":
            failure = self._learner.failure
            raise ValueError(
                f"{self._divergence!r} cannot take the step for {name} under {settings}: {failure}"
            ) from failure
        target = " ".join(f"{value:g}" for value in np.atleast_1d(y[row]))
        raise ValueError(
            {
                "not finite": f"The prediction for {name} is not finite: the weights diverge under {settings}. "
                f"{remedy}",
                "overflowed": f"The weights overflowed at {name} or before, under {settings}. {remedy}",
                "loss overflowed": f"The loss of {name} (target {target}), or what it adds up to, overflows under "
                f"{settings}: the weights diverge, or features and targets are too large. {remedy}",
                "left domain": f"At {name} (target {target}) the step under {settings} leaves the domain "
                f"{self._divergence.domain!r} of the weights. {remedy}",
                "negative": f"Negative values in data passed to {type(self).__name__} at {name}: "
                "update='gradient' needs X >= 0 and y >= 0. "
                + ("Use update='implicit', which takes any sign." if "update" in own else "Shift or leave them out."),
                "bad target": f"The target {target} at {name} is not admissible for {self._learned_loss!r}.",
            }[reason]
        )


class EuclideanMirrorMixin(MirrorMixin):
    """Mirror map of the squared Euclidean potential: the identity. Weights of any sign, 0 at the start."""

    def _mirror_map(self, n_features: int | None) -> SquaredEuclidean:
        return SquaredEuclidean()


class BurgMirrorMixin(MirrorMixin):
    """Mirror map of the Burg entropy: f(w) = -1/w. Positive weights, 1/n at the start."""

    def _mirror_map(self, n_features: int | None) -> Burg:
        return Burg()


class EntropyMirrorMixin(MirrorMixin):
    """Mirror map of the relative entropy: f(w) = ln w, on the simplex, on all positive weights, or for w+ - w-."""

    @property
    def _signed(self) -> bool:
        return self.weights == "signed"

    def _mirror_map(self, n_features: int | None) -> RelativeEntropy | SimplexEntropy:
        return RelativeEntropy() if self.weights == "positive" else SimplexEntropy(total=self.total)


class PNormMirrorMixin(MirrorMixin):
    """Mirror map of half the squared q-norm, 1/p + 1/q = 1. Weights of any sign, 0 at the start."""

    def _mirror_map(self, n_features: int | None) -> PNorm:
        return PNorm(automatic_p(n_features) if self.p == "auto" else self.p)


class ChosenMirrorMixin(MirrorMixin):
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


# From so many features on LogDet updates are made in blocks: faster by then, also for a pair at a time (measured).
BLOCKED_FROM = 100


class LogDetMirrorMixin(MirrorMixin):
    """Mirror map of the LogDet potential: f(W) = -W^-1, on symmetric positive definite matrices."""

    update = "implicit"  # the only step that stays positive definite whatever the data

    def _mirror_map(self, n_features: int | None) -> LogDet:
        return LogDet()

    def _make_geometry(self, prior: np.ndarray) -> LogDetGeometry:
        return LogDetGeometry(prior) if len(prior) < BLOCKED_FROM else BlockedLogDetGeometry(prior)


class MatrixBurgMirrorMixin(MirrorMixin):
    """Mirror map of the LogDet potential on 0 < W < I, which the rate of its explicit steps keeps to."""

    update = "gradient"

    def _mirror_map(self, n_features: int | None) -> LogDet:
        return LogDet()

    def _make_geometry(self, init: np.ndarray) -> MatrixBurgGeometry:
        return MatrixBurgGeometry(init)


class FrobeniusMirrorMixin(MirrorMixin):
    """Mirror map of the squared Frobenius norm: the identity; steps are projected onto semidefinite matrices."""

    def _mirror_map(self, n_features: int | None) -> SquaredFrobenius:
        return SquaredFrobenius()

    def _make_geometry(self, prior: np.ndarray) -> FrobeniusGeometry:
        return FrobeniusGeometry(prior)


class VonNeumannMirrorMixin(MirrorMixin):
    """Mirror map of the von Neumann potential: f(W) = log W, on symmetric positive definite matrices.

    They have the trace that `trace` says; None for any.
    """

    def _mirror_map(self, n_features: int | None) -> VonNeumann:
        return VonNeumann(trace=self.trace)

    def _make_geometry(self, prior: np.ndarray) -> VonNeumannGeometry:
        return VonNeumannGeometry(VonNeumann().mirror(prior), self._divergence.trace)

    def _nearer_by(self, u: np.ndarray, start: np.ndarray, end: np.ndarray) -> float:
        """The learner's positions are log W, and tr(U log U) cancels."""
        self._divergence.check_domain(u, closed=True)
        gap = float(np.vdot(u, end - start))
        if self._divergence.trace is None:
            gap += float(np.exp(np.linalg.eigvalsh(start)).sum() - np.exp(np.linalg.eigvalsh(end)).sum())
        return gap


def starting_weights(
    divergence: Divergence, init: ArrayLike | float | None, n_features: int, signed: bool = False, name: str = "init"
) -> np.ndarray:
    """`init` as a checked point of the divergence's domain; by default the one that prefers no feature.

    Signed weights come as w+ and w-, one after the other: the halves of `init`, and what is left of the simplex, or
    1 / 2n, added to both.
    """
    total = divergence.total
    if signed:
        weights = _vector(init, n_features, 0.0, name)
        with np.errstate(over="ignore"):
            room = 1.0 if total is None else total - np.abs(weights).sum()
        if total is not None and abs(room) <= 1e-10 * total:  # up to rounding, all of it
            room = 0.0
        if not room >= 0 or (room == 0 and name == "init"):
            raise ValueError(
                f"The absolute values of {name} sum to {total - room:g}, which leaves nothing of "
                f"total={total:g} for the other signs; use a larger total."
            )
        spread = room / (2 * n_features)  # what w+ and w- have beyond init, each
        return np.r_[np.maximum(weights, 0) + spread, np.maximum(-weights, 0) + spread]
    if init is None:
        return divergence.default_start(n_features)
    weights = _vector(init, n_features, None, name)
    lower, upper = divergence.lower, divergence.upper
    outside = ~((weights > lower) & (weights < upper)) if name == "init" else ~((weights >= lower) & (weights <= upper))
    if outside.any():
        worst = int(np.argmax(outside))
        limits = f"> {lower:g}" if upper == np.inf else f"between {lower:g} and {upper:g}"
        raise ValueError(f"{name}[{worst}] = {weights[worst]:g}, but this estimator's weights have to be {limits}.")
    if total is None:
        return weights
    with np.errstate(over="ignore"):
        size = weights.sum()
    if not np.isclose(size, total, rtol=1e-6, atol=0.0):
        raise ValueError(
            f"{name} sums to {size:g}, but weights on the simplex sum to total={total:g}; "
            f"scale {name} by {total / size:g}, or set total to its sum."
        )
    return weights * (total / size)


def _vector(values, n_features: int, default: float | None, name: str) -> np.ndarray:
    """A finite vector, one number a feature, from a vector, a number for all features, or None for the default."""
    weights = np.asarray(default if values is None else values, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_features, float(weights))
    if weights.shape != (n_features,):
        raise ValueError(
            f"{name} has shape {weights.shape}, but X has {n_features} features; give one weight a feature."
        )
    check_finite(weights, name)
    return weights
