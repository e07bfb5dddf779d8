"""What all estimators share: the online loop, and the mixins that tie an estimator to its mirror map."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ._kernels._geometry import (
    BurgGeometry,
    EntropyGeometry,
    EuclideanGeometry,
    SignedSimplexGeometry,
    SimplexGeometry,
)
from ._kernels._learner import Learner
from ._kernels._loss import SquaredLoss
from ._kernels._matrix_geometry import LogDetGeometry
from ._sklearn_compat import CallbackSupportMixin, Interval
from ._validation import check_finite
from .divergences import Burg, LogDet, RelativeEntropy, SimplexEntropy, SquaredEuclidean
from .schedules import resolve_schedule


class OnlineEstimator(CallbackSupportMixin, BaseEstimator):
    """The loop of `fit`: epochs over the rows, shuffled or not, until `tol` or a callback says stop.

    A subclass has the constructor parameters `max_iter`, `tol`, `shuffle`, `n_iter_no_change`, `random_state` and
    `verbose`, and hands its learning of one epoch to `_fit_epochs`.
    """

    _loop_constraints = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
    }

    def _run(self, body: Callable[[int], bool], n: int, task: str, X, y) -> int:
        """Call `body(i)` for i < n as one callback task each, until it returns True or a callback asks to stop.

        Returns how many were run.
        """
        context = self._init_callback_context(max_subtasks=n)
        data = {"estimator": self, "X": X, "y": y, "metadata": {}}
        context.call_on_fit_task_begin(**data)
        for i in range(n):
            subcontext = context.subcontext(task_name=task)
            subcontext.call_on_fit_task_begin(**data)
            done = body(i)
            stop = subcontext.call_on_fit_task_end(**data, reconstruction_attributes=self._reconstruction_attributes)
            if done or stop:
                break
        context.call_on_fit_task_end(**data, reconstruction_attributes=self._reconstruction_attributes)
        return i + 1

    def _reconstruction_attributes(self) -> dict:
        """Fitted attributes that go on changing in place, copied: what a callback needs to evaluate the model now."""
        return {}

    def _fit_epochs(self, learn: Callable[[np.ndarray | None], float], n_rows: int, X, y, stacklevel: int = 4) -> None:
        """Run up to `max_iter` epochs of `learn(order)`, which returns the mean loss before each row was learned.

        `order` is a permutation of the rows, or None for the order they came in. Sets `n_iter_` and `loss_curve_`.
        `stacklevel` is where a warning is to point: the caller of `fit`, with scikit-learn's wrapper in between.
        """
        rng = check_random_state(self.random_state) if self.shuffle else None
        self.loss_curve_ = []
        best, stale = np.inf, 0

        def epoch(i: int) -> bool:
            nonlocal best, stale
            loss = learn(None if rng is None else rng.permutation(n_rows))
            self.loss_curve_.append(loss)
            if self.verbose:
                print(f"[{type(self).__name__}] epoch {i + 1}: mean loss {loss:.6g}")
            if self.tol is None:
                return False
            stale = stale + 1 if loss > best - self.tol else 0
            best = min(best, loss)
            return stale >= self.n_iter_no_change

        self.n_iter_ = self._run(epoch, self.max_iter, "epoch", X, y)
        if self.tol is not None and stale < self.n_iter_no_change and self.n_iter_ == self.max_iter:
            warnings.warn(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} before its loss settled to within "
                f"tol={self.tol:g}; raise max_iter, or set tol=None to run a given number of epochs.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )


class MirrorMixin:
    """Ties an estimator to its mirror map: a compiled learner holds the weights and moves them in its geometry.

    A subclass names the geometry (`divergence_`, `_make_geometry`) and the parameters that are `_read_at_each_call`;
    the others shape the weights and are read when learning starts.
    """

    _read_at_each_call: tuple[str, ...]

    @property
    def t_(self) -> int:
        """Rows learned so far; rows of weight zero do not count."""
        return self._fitted_learner().t

    @property
    def cumulative_loss_(self) -> float:
        """Sum of weight * (a - y)^2 / 2 over all rows, each predicted before it was learned."""
        return self._fitted_learner().cumulative_loss

    def _fitted_learner(self) -> Learner:
        try:
            return vars(self)["_learner"]
        except KeyError:
            raise AttributeError(
                f"this {type(self).__name__} has not learned a row yet; call fit or partial_fit"
            ) from None

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in vars(self)

    def _make_learner(self, start) -> Learner:
        """A learner at the start: `start` is the number of features, or the prior of a matrix."""
        return Learner(self._make_geometry(start), SquaredLoss())

    def _configure(self, learner: Learner) -> Learner:
        """Put the parameters of now in force."""
        parameters = {name: getattr(self, name) for name in self._read_at_each_call}
        learner.configure(
            update=self.update,
            schedule=resolve_schedule(self.learning_rate, self.eta0, self.power_t),
            fit_intercept=parameters.get("fit_intercept", False),
            average=parameters.get("average", False),
            armed=parameters,
        )
        return learner

    def _learn(self, X, y, sample_weight, order=None) -> float:
        """One pass over validated rows; returns the weighted mean loss before each was learned."""
        total = len(y) if sample_weight is None else sample_weight.sum()
        if total == 0:
            return 0.0
        before = self._learner.cumulative_loss
        refused = self._learner.learn(X, y, sample_weight, order)
        if refused is not None:
            raise ValueError(self._explain(*refused, y))
        return (self._learner.cumulative_loss - before) / total

    def _explain(self, reason: str, row: int, y: np.ndarray) -> str:
        """Why the learner refused a row, and what to do."""
        settings = f"update={self.update!r} and eta0={self.eta0:g}"
        remedy = "Lower eta0, or scale features and targets (sklearn.preprocessing.StandardScaler)"
        remedy += "." if self.update == "implicit" else ", or use update='implicit'."
        return {
            "not finite": f"The prediction for row {row} is not finite: the weights diverge under {settings}. {remedy}",
            "overflowed": f"The weights overflowed at row {row} or before, under {settings}. {remedy}",
            "left domain": f"At row {row} (target {y[row]:g}) the step under {settings} leaves the domain "
            f"{self.divergence_.domain!r} of the weights. {remedy}",
            "negative": f"Negative values in data passed to {type(self).__name__} at row {row}: update='gradient' "
            "needs X >= 0 and y >= 0. Use update='implicit', which takes any sign.",
        }[reason]

    def _reconstruction_attributes(self) -> dict:
        return {"_learner": copy.deepcopy(self._learner)}


class EuclideanMirrorMixin(MirrorMixin):
    """Mirror map of the squared Euclidean potential: the identity. Weights of any sign, 0 at the start."""

    @property
    def divergence_(self) -> SquaredEuclidean:
        """The divergence this estimator moves in."""
        return SquaredEuclidean()

    def _make_geometry(self, n_features: int) -> EuclideanGeometry:
        return EuclideanGeometry(_starting_weights(self.init, n_features, 0.0, -np.inf))


class BurgMirrorMixin(MirrorMixin):
    """Mirror map of the Burg entropy: f(w) = -1/w. Positive weights, 1/n at the start."""

    @property
    def divergence_(self) -> Burg:
        """The divergence this estimator moves in."""
        return Burg()

    def _make_geometry(self, n_features: int) -> BurgGeometry:
        return BurgGeometry(_starting_weights(self.init, n_features, 1.0 / n_features, 0.0))


class EntropyMirrorMixin(MirrorMixin):
    """Mirror map of the relative entropy: f(w) = ln w, on the simplex, on all positive weights, or for w+ - w-."""

    @property
    def divergence_(self) -> RelativeEntropy | SimplexEntropy:
        """The divergence this estimator moves in; for signed weights that of (w+, w-)."""
        if self.__sklearn_is_fitted__():  # what learning started with; the parameters may have been set since
            geometry = self._learner.geometry
            return SimplexEntropy(total=geometry.size) if isinstance(geometry, SimplexGeometry) else RelativeEntropy()
        return RelativeEntropy() if self.weights == "positive" else SimplexEntropy(total=self.total)

    def _make_geometry(self, n_features: int) -> EntropyGeometry:
        if self.weights == "positive":
            return EntropyGeometry(_starting_weights(self.init, n_features, 1.0 / n_features, 0.0))
        if self.weights == "simplex":
            start = _starting_weights(self.init, n_features, self.total / n_features, 0.0)
            if not np.isclose(start.sum(), self.total, rtol=1e-6, atol=0.0):
                raise ValueError(
                    f"init sums to {start.sum():g}, but weights on the simplex sum to total={self.total:g}; "
                    f"scale init by {self.total / start.sum():g}, or set total to its sum."
                )
            return SimplexGeometry(start, self.total)
        start = _starting_weights(self.init, n_features, 0.0, -np.inf)
        spread = (self.total - np.abs(start).sum()) / (2 * n_features)  # what w+ and w- have beyond init, each
        if not spread > 0:
            raise ValueError(
                f"The absolute values of init sum to {np.abs(start).sum():g}, which leaves nothing of "
                f"total={self.total:g} for the other signs; use a larger total."
            )
        return SignedSimplexGeometry(np.r_[np.maximum(start, 0) + spread, np.maximum(-start, 0) + spread], self.total)


class LogDetMirrorMixin(MirrorMixin):
    """Mirror map of the LogDet potential: f(W) = -W^-1, on symmetric positive definite matrices."""

    update = "implicit"  # the only step that stays positive definite whatever the data

    @property
    def divergence_(self) -> LogDet:
        """The divergence this estimator moves in."""
        return LogDet()

    def _make_geometry(self, prior: np.ndarray) -> LogDetGeometry:
        return LogDetGeometry(prior)


def _starting_weights(init, n_features: int, default: float, above: float) -> np.ndarray:
    """`init` as a checked vector of finite weights > `above`; `default` everywhere if it is None."""
    if init is None:
        return np.full(n_features, default)
    weights = np.asarray(init, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_features, float(weights))
    if weights.shape != (n_features,):
        raise ValueError(f"init has shape {weights.shape}, but X has {n_features} features; give one weight a feature.")
    check_finite(weights, "init")
    if not (weights > above).all():
        worst = int(np.argmin(weights))
        raise ValueError(f"init[{worst}] = {weights[worst]:g}, but this estimator's weights have to be > {above:g}.")
    return weights
