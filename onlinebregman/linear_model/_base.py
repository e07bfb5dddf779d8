"""Base class of the linear models: the connection of rows, the learner that holds the weights, and predictions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from .._kernels.geometries.geometry import Geometry
from .._kernels.learners.learner import Learner
from .._kernels.learners.multi_learner import MultiLearner
from .._online.compiled import make_geometry
from .._online.estimator import EpochEstimator, Examples
from .._online.merging import merged_standardizer
from .._online.mirror import MirrorMixin
from .._online.parameters import by_parameter
from .._online.start import check_start
from .._online.theory import TheoryRate, penalised_rate, theory_rate
from .._online.validation import read_only
from .._sklearn_compat import Interval, StrOptions
from ..schedules import LEARNING_RATES, LearningRate, Schedule
from ._row_map import MapsRows

Update = Literal["implicit", "explicit", "importance"]
_SLOWDOWN, _LOWEST_RATE = 5.0, 1e-6  # of learning_rate="adaptive", as in scikit-learn


class OnlineLinearModel(MapsRows, MirrorMixin, EpochEstimator):
    """A linear model learned row by row; a mirror mixin gives it its geometry, a subclass what it predicts.

    Parameters
    ----------
    eta0 : float
        Learning rate eta for the loss.
    learning_rate : {"constant", "invscaling", "sqrt", "strongly_convex", "adaptive", "theory"} or Schedule
        Rate of row t = 1, 2, ...: eta0, eta0 / t^power_t, eta0 / sqrt(t), or eta0 / t (for losses that are H-strongly
        convex, with eta0 = 1/H). "adaptive": eta0 until `fit` would stop, by `tol` or `early_stopping`, then a fifth of
        it, and so on down to 1e-6. "theory": the constant rate with the smallest loss bound under `data_bounds`,
        without eta0. A schedule from `onlinebregman.schedules` is used directly, without eta0.
    update : {"implicit", "explicit", "importance"}
        "implicit": the exact step. "explicit": the linearised step. "importance": a row of weight h has exactly the
        effect of h rows of weight 1, or of any other split of h.
    init : array-like of shape (n_features,), float or None
        Weights to start from; None means 0 everywhere.
    fit_intercept : bool
        Learn an intercept, as an additional coordinate with feature 1 in the squared Euclidean geometry.
    average : bool or int
        Average `coef_` and `intercept_` over all steps, or over those from the given row on. Averages are better where
        targets are noisy (with 30 % wrong labels of 10,000 rows 4 % errors in place of 8 after `fit`), the last weights
        where the stream drifts.
    warm_start : bool
        Let `fit` continue from the current weights and learning rate.

    Attributes
    ----------
    divergence_ : Divergence
        The divergence of the estimator.
    """

    _parameter_constraints: dict = {
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "learning_rate": [StrOptions({*LEARNING_RATES, "theory", "adaptive"}), Schedule],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "data_bounds": [dict, None],
        "update": [StrOptions({"implicit", "explicit", "importance"})],
        "init": ["array-like", Interval(Real, None, None, closed="neither"), None],
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
        "average": ["boolean", Interval(Integral, 1, None, closed="left")],
        "track_regret": ["boolean"],
    }

    _read_at_each_call: tuple[str, ...] = (
        "eta0",
        "learning_rate",
        "power_t",
        "data_bounds",
        "update",
        "fit_intercept",
        "average",
        "track_regret",
        "early_stopping",
        "handle_new_features",
    )

    eta0: float
    learning_rate: LearningRate | Literal["theory", "adaptive"] | Schedule
    power_t: float
    data_bounds: dict[str, float] | None

    update: Update | Literal["gradient"]
    init: ArrayLike | float | None
    fit_intercept: bool
    average: bool | int
    track_regret: bool
    warm_start: bool
    _init = by_parameter("init")
    _fit_intercept = by_parameter("fit_intercept")
    _average = by_parameter("average")
    _track_regret = by_parameter("track_regret")
    _early_stopping = by_parameter("early_stopping")
    _intercept_init = "intercept_init"  # the argument of `fit`
    _sparse_coef = False  # see `sparsify`
    _single = False  # whether learning started with rows of float32, so that `coef_` is float32, too
    _joint = False  # whether several learners have one joint loss
    _given_start = False  # whether learning started from given weights or intercepts
    _sorted = False  # whether predictions are several quantiles, in ascending order

    def _lower_rate(self) -> bool:
        if self._rate()[0] != "adaptive" or self._schedule().scale <= _LOWEST_RATE:
            return False
        self._slowdown *= _SLOWDOWN
        self._configure()
        return True

    def _objective(self, loss: float) -> float:
        """The mean loss, summed over outputs as it is, plus the penalty of the weights after the epoch."""
        with np.errstate(over="ignore", under="ignore"):  # of squares of weights
            return loss + sum(self._learned_penalty.value(part.position[0]) for part in _parts(self._learner))

    def _upper_bound(self) -> float:
        """A bound on all weights, infinite if there is none."""
        constraint = self._spec.constraint
        return np.inf if constraint is None else float(np.max(constraint.upper))

    def _theory(self, rows: int = 0) -> TheoryRate:
        data_bounds, spec = self.data_bounds or {}, self._spec
        if spec.init is not None and "divergence" not in data_bounds:
            raise ValueError(f"learning_rate='theory' requires {spec.source}=None, or data_bounds['divergence'].")
        if any(spec.intercepts):
            raise ValueError("learning_rate='theory' requires intercept_init=None: its bounds start at 0.")
        if self._update == "gradient":
            raise ValueError("update='gradient' has a rate and a bound of its own (loss_bound); use a schedule.")
        run = (spec.divergence, spec.loss, self._update)
        run_options: dict[str, Any] = {
            "signed": spec.signed,
            "fit_intercept": self._fit_intercept,
            "largest_weight": self._learner.largest_weight,
            "rows": rows,
        }
        if spec.penalty is None:
            return theory_rate(*run, data_bounds, self._n_weights, upper=self._upper_bound(), **run_options)
        contains_zero = spec.constraint is None or spec.constraint.contains(np.zeros(self._n_weights))
        run_options["around_zero"] = spec.init is None and contains_zero
        return penalised_rate(*run, spec.penalty, data_bounds, self._n_weights, **run_options)

    def _outputs(self, data: Examples) -> tuple[int, type[MultiLearner] | None]:
        """The number of learners for the outputs, and what they form together; None: there is only one."""
        return 1, None

    def _make_learners(self, n_weights: int, data: Examples, coef: ArrayLike | None) -> Learner | MultiLearner:
        """A new learner, or one for each output, which start from the rows of `coef`, if given, instead of `init`."""
        n, kind = self._outputs(data)
        given: dict[str, Any] = {}
        if coef is not None:
            given = {"source": "coef_init", "coef": check_start(coef, "coef_init", (n, n_weights))}
        elif self._init is not None:
            given = {"init": np.array(self._init, dtype=np.float64)}
        spec = self._specify(n_weights)._replace(**given)
        losses, learners = spec.loss.parts, []
        self._sorted = len(losses) > 1
        for number in range(n):
            init, loss = spec.start(number)[0], losses[number % len(losses)]
            learners.append(self._make_learner(n_weights, spec._replace(init=init, loss=loss)))
        self._spec = spec._replace(init=init)
        return learners[0] if kind is None else kind(learners)

    @read_only
    def coef_(self) -> np.ndarray:
        """Weights of the features, in units of the data: a read-only copy, or a sparse one after `sparsify`.

        Learning itself and predictions use float64; if it started with rows of float32, this copy is rounded to that,
        unless a weight would overflow.
        """
        coef: Any = self._linear_model()[0]
        if self._single and np.abs(coef).max() <= np.finfo(np.float32).max:
            coef = coef.astype(np.float32)
        return csr_array(np.atleast_2d(coef)) if self._sparse_coef else coef

    def sparsify(self) -> Self:
        """Let `coef_` be a CSR array, with one row for each output, until the next `fit`.

        The model itself, which goes on learning, is not affected.

        Returns
        -------
        {self}
        """
        self._fitted_learner()
        self._sparse_coef = True
        return self

    def densify(self) -> Self:
        """Let `coef_` be a dense array, as it is without `sparsify`.

        Returns
        -------
        {self}
        """
        self._fitted_learner()
        self._sparse_coef = False
        return self

    def _begin(self, data: Examples, coef: ArrayLike | None = None, intercept: ArrayLike | None = None) -> None:
        self._given_start = coef is not None or intercept is not None
        row_map, n_weights = self._begin_map(data.X)
        self._slowdown, self._sparse_coef = 1.0, False
        self._single = data.X.dtype == np.float32
        if self._given_start:
            self._check_start()
        del self._given_start
        self._learner = self._make_learners(n_weights, data, coef)
        self._learner.map_by(row_map)
        if intercept is not None:
            parts = _parts(self._learner)
            values = check_start(intercept, self._intercept_init, (len(parts),)).tolist()
            for part, value in zip(parts, values, strict=True):
                part.begin_at(value)
            self._spec = self._spec._replace(intercepts=tuple(values))

    @property
    def _adapts(self) -> bool:
        return self._divergence.adaptive and self._init is None

    def _begin_at(self, coef: ArrayLike | None, intercept: ArrayLike | None, sign: float = 1.0) -> Callable | None:
        """What begins a run at given weights and intercepts, times a sign; None if there are none."""
        if coef is None and intercept is None:
            return None
        return partial(self._begin, coef=coef, intercept=None if intercept is None else np.multiply(sign, intercept))

    def _check_start(self) -> None:
        """Check that learning can start from given weights and intercepts."""
        if self._thresholds is not None:
            raise ValueError(
                f"coef_init and intercept_init cannot be used with thresholds={self._thresholds!r}, as a new run makes "
                "new bins; use warm_start=True to go on with a model."
            )
        if self._standardizes:
            raise ValueError(
                "coef_init and intercept_init are in units of the data, which standardize=True knows after its first "
                "rows only; use warm_start=True to go on with a model, or init for weights of standardised columns."
            )

    @property
    def _n_weights(self) -> int:
        """The number of weights of a learner: of features, or of what is learned instead."""
        return self._learner.n_features

    @property
    def _unmergeable(self) -> str | None:
        if self._thresholds is None:
            return super()._unmergeable
        return f"with thresholds={self._thresholds!r} each model has bins of its own; use thresholds=None"

    def _untrained(self, **start: Any) -> Self:
        """It begins at the same `coef_init` and `intercept_init`."""
        return super()._untrained(coef=self._spec.coef, intercept=self._spec.intercepts or None, **start)

    def _merged_learner(self, start, parts, fractions, row_map=None) -> Learner | MultiLearner:
        row_map = merged_standardizer(start.row_map, [part.row_map for part in parts])
        mix = super()._merged_learner
        if not isinstance(start, MultiLearner):
            return mix(start, parts, fractions, row_map)
        columns = zip(start.learners, *(part.learners for part in parts), strict=True)
        mixed = type(start)([mix(first, others, fractions, row_map) for first, *others in columns])
        mixed.map_by(row_map)
        return mixed

    def _geometry_at(self, theta: np.ndarray) -> Geometry:
        divergence, loss, penalty, constraint, signed, *_ = self._spec
        weights = divergence.inverse_mirror(theta)
        if constraint is not None:
            weights = constraint.project(divergence, weights)
        return make_geometry(divergence, weights, signed, constraint, penalty, loss)

    def _progressive_fit(self, X, y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
        """Learn rows in one pass, and return the prediction before each that a mixture of such models uses.

        Returns None, and learns nothing, if that takes several calls or would raise an error.
        """
        raise NotImplementedError

    def _refuse_prediction(self, X, row: int) -> NoReturn:
        x = X[row : row + 1]
        scores = self._learner.predict(x, False)
        if scores is not None:
            with np.errstate(over="ignore"):
                score = np.ravel(scores)[np.argmin(np.isfinite(np.ravel(self._learned_loss.link(scores))))]
            raise ValueError(
                f"The prediction for row {row} overflows: the link of {self._learned_loss!r} at the score {score:g}. "
                "Scale features as in rows that were learned, or lower eta0."
            )
        raise ValueError(
            f"The prediction for row {row} (largest feature {abs(x).max():g}) is not finite: X @ coef_ + intercept_ "
            "overflows. Scale features and targets (sklearn.preprocessing.StandardScaler)."
        )


def _parts(learner: Learner | MultiLearner) -> list[Learner]:
    """The learners of each loss."""
    return learner.learners if isinstance(learner, MultiLearner) else [learner]
