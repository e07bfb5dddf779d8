"""Estimators that learn in epochs by a mirror map: a compiled learner moves their weights in its geometry."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from .._kernels.geometries.geometry import Geometry
from .._kernels.learners.learner import Learner
from .._kernels.rows.rows import RowMap
from .._sklearn_compat import Interval, StrOptions
from ..divergences import Divergence
from ..losses import resolve_loss
from ..schedules import LEARNING_RATES, Constant, Schedule, resolve_schedule
from .compiled import Spec, make_geometry, make_loss
from .estimator import LOSS, ROWS, Examples, OnlineEstimator, by_parameter, same
from .merging import mean, merged_adaptive, merged_geometry, merged_learner
from .regret import Certificate
from .theory import TheoryRate
from .types import RandomState
from .validation import Overflow, check_finite, too_large, warn_caller


class HeldOut:
    """Some of the examples, drawn at random.

    Attributes
    ----------
    learned : ndarray of int
        The numbers of the others, in increasing order.
    """

    def __init__(self, examples: Any, fraction: float, random_state: RandomState, *, owner: Any) -> None:
        check_finite(examples.X, owner=owner)  # while rows have the numbers of the caller
        split = ShuffleSplit if examples.classes is None else StratifiedShuffleSplit
        splitter = split(test_size=fraction, random_state=random_state)
        rows, self._rows = next(splitter.split(np.zeros((len(examples), 1)), examples.classes))
        self.learned = np.sort(rows)
        if examples.weights is not None and not examples.weights[rows].any():
            raise ValueError(
                "early_stopping holds out all rows of positive sample weight, so that none is left to learn; use "
                "another random_state, or a smaller validation_fraction."
            )
        self._examples = examples.take(self._rows)
        if self._examples.weights is not None and not self._examples.weights.any():
            raise ValueError(
                "The sample weights for validation set are all zero, consider using a different random state, or a "
                "larger validation_fraction."
            )

    def score(self, score: Callable[[Any], float]) -> float:
        """The score of the examples; Overflow if it is not finite."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                value = score(self._examples)
        except ValueError:  # a prediction overflows
            value = -np.inf
        if np.isfinite(value) or (np.isnan(value) and len(self._examples) == 1):  # of which scikit-learn warns
            return value
        X = self._examples.X if sparse.issparse(self._examples.X) else np.asarray(self._examples.X)
        sizes = abs(X).max(axis=1).toarray().ravel() if sparse.issparse(X) else np.fmax.reduce(np.abs(X), axis=1)
        row = int(np.nanargmax(sizes))
        raise Overflow(
            "Predictions for the rows that early_stopping holds out, or the squares of their errors, are not finite. "
            f"Of these rows, row {self._rows[row]} is the largest (feature {sizes[row]:g})."
        )


# The parameters that bounds take to be constant, as far as an estimator has them
_CONSTANT = frozenset(
    {"eta0", "learning_rate", "power_t", "alpha", "data_bounds", "scale_eta", "update", "loss", "upper_bound"}
    | {"sum_bound", "fit_intercept", "intercept_scaling", "class_weight", "average"}
)


RATES = frozenset({"eta0", "learning_rate", "power_t"})  # parameters that a model can begin without


class Rate(NamedTuple):
    """What the parameters `learning_rate` and `eta0` stand for."""

    learning_rate: Any  # a name or a schedule
    eta0: float


class MirrorEstimator(OnlineEstimator):
    """Connects an estimator to its mirror map: a compiled learner holds the weights and moves them in its geometry.

    `fit` runs epochs, shuffled or not, until `tol` or a callback stops it. A subclass defines what a run is made of
    (`_specify`) and the names of the parameters that can change between calls (`_read_at_each_call`); the others
    determine the weights and are read when learning starts.

    Parameters
    ----------
    max_iter : int
        Largest number of epochs of `fit`.
    tol : float or None
        `fit` stops when the mean loss of an epoch, plus the penalty of the weights after it if there is one, has not
        improved on the best by more than this for `n_iter_no_change` consecutive epochs. For linear regression it is
        in units of the mean loss of the constant mean(y). None: always `max_iter` epochs.
    n_iter_no_change : int
        See `tol`.
    early_stopping : bool or "best"
        Hold out a fraction of the rows in `fit`, stratified by class, and stop when the `score` of the model on them,
        by weights of rows and classes, has not improved by more than `tol` for `n_iter_no_change` consecutive epochs.
        "best": go back to the model after the epoch with the best score, then; True: keep the last one. `partial_fit`
        requires False.
    validation_fraction : float
        The fraction of the rows that `early_stopping` holds out.
    shuffle : bool
        Shuffle the rows before each epoch of `fit`. `partial_fit` never shuffles.
    random_state : int, RandomState instance or None
        For shuffling.
    verbose : int
        Print the mean loss of each epoch.

    Attributes
    ----------
    cumulative_loss_ : float
        Sum of weight * (a - y)^2 / 2 over all rows, each predicted before it was learned.
    n_iter_ : int
        Epochs of the last `fit`.
    loss_curve_ : list of float
        Mean loss of each epoch of the last `fit`, each row predicted before it was learned.
    validation_scores_ : list of float or None
        Scores of the held-out rows after each epoch of the last `fit`, with `early_stopping`.
    """

    _parameter_constraints: dict = {
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "learning_rate": [StrOptions(set(LEARNING_RATES)), Schedule],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "scale_eta": ["boolean"],
        "data_bounds": [dict, None],
        "track_regret": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean", StrOptions({"best"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    }

    _read_at_each_call: tuple[str, ...] = (
        "eta0", "learning_rate", "power_t", "scale_eta", "data_bounds", "update", "track_regret",
    )  # fmt: skip
    max_iter: int
    tol: float | None
    n_iter_no_change: int
    verbose: int
    _warm_start = by_parameter("warm_start")
    validation_fraction: float
    t_, cumulative_loss_ = ROWS, LOSS

    # Attributes of the estimators that inherit from this class
    init: Any
    _spec: Spec
    _divergence: Any = property(attrgetter("_spec.divergence"))
    _learned_loss: Any = property(attrgetter("_spec.loss"))
    _learned_penalty: Any = property(attrgetter("_spec.penalty"))
    learning_rate: Any
    eta0: float
    _learner_type: type[Learner] = Learner
    _fixed_divergence: Divergence  # of classes whose divergence has no parameters
    # Settings that are parameters of some estimators; the others have no public attribute of this name
    _update, _power_t = by_parameter("update"), by_parameter("power_t")
    _fit_intercept: Any = False
    _average: Any = False
    _track_regret: Any = False
    _intercept_scaling: float = 1.0
    _loss_parameter: Any = "squared_error"
    _slowdown = 1.0  # of learning_rate="adaptive": eta0 by its present rate

    def _specify(self, n_features: int | None) -> Spec:
        """What a run is made of, for a number of features; None before they are known."""
        return Spec(self._fixed_divergence, resolve_loss(self._loss_parameter))

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
        return self._fitted_state().run["weighted_loss"]

    def _make_learner(self, start: Any, spec: Spec | None = None) -> Learner:
        """A new learner; `start` is the number of features, or the prior of a matrix."""
        self._spec = self._specify(None) if spec is None else spec
        # Compiled: `Learner.learn_row` calls `mirror_step`, which predicts the row, finds c with f(w') = f(w) - c x by
        # the loss, the rate and the update, and has the geometry step there.
        return self._learner_type(self._make_geometry(start), make_loss(self._spec.loss))

    def _make_geometry(self, start: Any) -> Geometry:
        """The geometry at the start; `start` is a number of features here, the prior of a matrix in subclasses."""
        spec, divergence = self._spec, self._divergence
        weights = starting_weights(divergence, spec.init, start, spec.signed, spec.source)
        if spec.constraint is not None:
            weights = spec.constraint.project(divergence, weights)
        if spec.penalty is not None and not divergence.adaptive:
            spec.penalty.prox(divergence, weights, 1.0)  # raises an error now if there is no such proximal step
        return make_geometry(spec, weights)

    def _configure(self, schedule: Schedule | None = None, **more: Any) -> None:
        """Tell the learner how rows are learned from the next call on; see its `apply`."""
        if self._learner.t > 0:
            self._unbounded = self._why_unbounded()
        elif "_validated" in vars(self):  # no row of the calls before counts: the run begins with this one
            self._keep_parameters()
        self._learner.configure(
            update=self._update,
            schedule=self._schedule() if schedule is None else schedule,
            fit_intercept=self._fit_intercept,
            average=self._average,
            track_regret=self._track_regret,
            intercept_scaling=self._intercept_scaling,
            **more,
        )

    # --- epochs ----------------------------------------------------------------------------------------------------

    def _validate_and_learn(self, *arguments, check: Callable | None = None, learn: Callable | None = None) -> Self:
        if self._early_stopping:
            self._validate_params()
            raise ValueError(
                "early_stopping should be False with partial_fit, which learns all rows, once; got "
                f"{self._early_stopping!r}."
            )
        return super()._validate_and_learn(*arguments, check=check, learn=learn)

    def _learn_in_epochs(self, learn: Callable, data, X, y) -> None:
        """Sets `n_iter_` and `loss_curve_`: the mean loss of each epoch before each example was learned."""
        rows = held_out = None
        if self._early_stopping:
            held_out = HeldOut(data, self.validation_fraction, self.random_state, owner=self)
            rows = held_out.learned
        orders = self._orders(len(data), rows)
        self.loss_curve_: list[float] = []
        scores: list[float] = []
        if "validation_fraction" in self._get_param_names():  # like `early_stopping`
            self.validation_scores_ = None if held_out is None else scores
        tol = self.tol if held_out is not None else self._tolerance(data)
        best, stale, kept = np.inf, 0, None
        context, about, current = self._begin_tasks(self.max_iter, X, y)
        for i in range(self.max_iter):
            task = context.subcontext(task_name="epoch")
            task.call_on_fit_task_begin(**about)
            try:
                loss = learn(data, next(orders), again=i > 0)
                if held_out is not None:
                    scores.append(held_out.score(self._held_out_score))
            except Overflow as error:  # in the words of scikit-learn, by which users know and find it
                raise Overflow(
                    f"Floating-point under-/overflow occurred at epoch #{i + 1}. {error} Scaling input data with "
                    "StandardScaler or MinMaxScaler might help."
                ) from None
            self.loss_curve_.append(loss)
            if self.verbose:
                print(f"[{type(self).__name__}] epoch {i + 1}: mean loss {loss:.6g}")
            if held_out is None:
                if self.tol is not None and self._learned_penalty is not None:
                    loss = self._objective(loss)
            else:
                loss = -scores[-1]
                if self._early_stopping == "best" and loss < best:
                    kept = copy.deepcopy(self._learner)
            stale = 0 if tol is None or loss < best - tol else stale + 1
            best = min(best, loss)
            if stale >= self.n_iter_no_change and self._lower_rate():
                stale = 0
            stop = task.call_on_fit_task_end(**about, reconstruction_attributes=current)
            if stale >= self.n_iter_no_change or stop:
                break
        context.call_on_fit_task_end(**about, reconstruction_attributes=current)
        self.n_iter_: int = i + 1
        if kept is not None:
            self._learner = kept
        if self.tol is not None and stale < self.n_iter_no_change and self.n_iter_ == self.max_iter:
            warn_caller(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} before its loss converged to within "
                f"tol={self.tol:g}; raise max_iter, or set tol=None to run a given number of epochs.",
                ConvergenceWarning,
            )

    def _objective(self, loss: float) -> float:
        """What `tol` compares under a penalty, for the mean loss of an epoch that has just ended."""
        raise NotImplementedError

    def _tolerance(self, data) -> float | None:
        """`tol` in the units of the loss."""
        return self.tol

    def _lower_rate(self) -> bool:
        """Go on at a lower learning rate, as the model no longer improves at this one; False: stop."""
        return False

    def _held_out_score(self, data: Examples) -> float:
        """The `score` of the model on validated rows."""
        raise NotImplementedError

    # --- merging models that learned in parallel --------------------------------------------------------------------

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
        return mixed

    def _merged_learner(
        self, start: Learner, parts: Sequence[Learner], fractions: Sequence[float], row_map: RowMap | None = None
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

    def _why_unbounded(self) -> str | None:
        if self._unbounded is None:
            for name, before in self._started_with.items():
                if name in _CONSTANT and not same(now := getattr(self, name), before):
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

    def _rate(self) -> Rate:
        return Rate(self.learning_rate, self.eta0)

    def _refuse(self, reason: str, row: int, data: Examples, name: str | None = None) -> None:
        """Raise the error for a row, called `name` in the message, that the learner refused, with a remedy."""
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
            self._learned_loss.check_target(data.y)
        if reason == "too large":
            raise too_large(name)
        if reason == "failed":
            failure = self._learner.failure
            raise ValueError(f"{self._divergence!r} cannot take the step for {name}{under}: {failure}") from failure
        target = " ".join(f"{value:g}" for value in np.atleast_1d(data.y[row]))
        kind = Overflow if reason in ("not finite", "overflowed", "loss overflowed") else ValueError
        raise kind(
            {
                "not finite": f"The prediction for {name} is not finite: the weights diverge{under}. {remedy}",
                "overflowed": f"The weights overflowed at {name} (target {target}) or before{under}. {remedy}",
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


def starting_weights(
    divergence: Divergence, init: ArrayLike | float | None, n_features: int, signed: bool = False, name: str = "init"
) -> np.ndarray:
    """`init` as a validated point of the divergence's domain; by default one with equal weights.

    Signed weights are w+ followed by w-: the positive and negative parts of `init`, with the same number added to all
    of them. On the simplex that number fills up the total; otherwise it is 1 / 2n.
    """
    total = divergence.total
    inside = name in ("init", "coef_init")  # learning cannot start from the edge of the domain
    if signed:
        weights = _vector(init, n_features, 0.0, name)
        rest = 1.0
        if total is not None:
            with np.errstate(over="ignore"):
                rest = total - np.abs(weights).sum()
            if abs(rest) <= 1e-10 * total:  # 0 up to rounding
                rest = 0.0
            if not rest >= 0 or (rest == 0 and inside):
                limit = "less than" if inside else "at most"
                raise ValueError(
                    f"The absolute values of {name} must sum to {limit} total={total:g}, as w+ and w- together sum to "
                    f"the total; got {total - rest:g}. Use a larger total."
                )
        spread = rest / (2 * n_features)
        return np.r_[np.maximum(weights, 0) + spread, np.maximum(-weights, 0) + spread]
    if init is None:
        return divergence.default_start(n_features)
    weights = _vector(init, n_features, None, name)
    lower, upper = divergence.lower, divergence.upper
    outside = ~((weights > lower) & (weights < upper)) if inside else ~((weights >= lower) & (weights <= upper))
    if outside.any():
        worst = int(np.argmax(outside))
        limits = f"> {lower:g}" if upper == np.inf else f"between {lower:g} and {upper:g}"
        raise ValueError(f"{name} must be {limits} for this estimator; got {name}[{worst}] = {weights[worst]:g}.")
    if total is None:
        return weights
    with np.errstate(over="ignore"):
        size = weights.sum()
    if not np.isclose(size, total, rtol=1e-6, atol=0.0):
        raise ValueError(
            f"{name} must sum to total={total:g}; got a sum of {size:g}. Scale {name} by {total / size:g}, or set "
            "total to its sum."
        )
    return weights * (total / size)


def check_start(values: ArrayLike, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Finite weights or intercepts of this shape, one row for each output; one output needs no axis of its own."""
    values = np.asarray(values, dtype=np.float64)
    if values.shape != shape and not (shape[0] == 1 and values.shape == shape[1:]):
        raise ValueError(f"Provided {name} does not match dataset: its shape must be {shape}; got {values.shape}.")
    check_finite(values, name)
    return values.reshape(shape)


def _vector(values, n_features: int, default: float | None, name: str) -> np.ndarray:
    """A finite vector of one number for each feature, from a vector, one number for all, or None for the default."""
    weights = np.asarray(default if values is None else values, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_features, float(weights))
    if weights.shape != (n_features,):
        raise ValueError(
            f"{name} must have one weight for each of the {n_features} features; got shape {weights.shape}."
        )
    check_finite(weights, name)
    return weights
