"""Base class of the linear models: the connection of rows, the learner that holds the weights, and predictions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from itertools import cycle
from numbers import Integral, Real
from typing import Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_pinball_score, r2_score
from sklearn.utils import Tags

from .._kernels.geometries.geometry import Geometry
from .._kernels.learners.learner import Learner
from .._kernels.learners.multi_learner import MultiLearner
from .._kernels.rows.one_hot import OneHotMap
from .._kernels.rows.rows import RowMap
from .._kernels.rows.standardizer import Standardizer
from .._kernels.rows.thresholds import Bins, ThresholdMap, parts_of_pairs
from .._online.compiled import make_geometry
from .._online.estimator import Before, Call, Examples, by_parameter
from .._online.examples import LearnsTargets
from .._online.export import to_onnx, to_sklearn
from .._online.merging import merged_standardizer
from .._online.mirror import MirrorEstimator, check_start
from .._online.new_features import GrowsFeatures
from .._online.scores import Scores
from .._online.theory import TheoryRate, penalised_rate, theory_rate
from .._online.types import MatrixLike
from .._online.validation import check_output_shape, check_rows, check_weights, read_only, warn_caller
from .._sklearn_compat import Interval, StrOptions, fit_context
from ..divergences import AdaGrad, NormalizedAdaGrad
from ..losses import LOSSES, Loss
from ..losses._base import has_positive_targets, loss_names
from ..schedules import LEARNING_RATES, LearningRate, Schedule

Update = Literal["implicit", "explicit", "importance"]
_SLOWDOWN, _LOWEST_RATE = 5.0, 1e-6  # of learning_rate="adaptive", as in scikit-learn


# Most pairs of columns with thresholds="pairwise"; if there are more, as many are drawn.
PAIRS = 64
ROOT = 1.5e-154  # of the smallest normal number


class MapsRows(GrowsFeatures):
    """A linear model that can learn images of the rows: standardised online, or as indicators of bins.

    Parameters
    ----------
    standardize : bool or "auto"
        Standardise rows online: learn and predict (x - mean) / deviation, with the weighted mean and standard deviation
        of the rows learned before, clipped to [-5, 5]; 0 in columns that were constant so far. Values beyond 200
        deviations count as five in mean and deviation, so that an absurd value leaves the column usable; eight in a row
        beyond ten, as after a change of its level, start both anew. If learning starts with sparse rows, columns are
        not centred but only divided by their root mean square, for all subsequent rows, dense or sparse. Everything
        that concerns weights (penalty, `init`, constraints, bounds, certificates) refers to standardised columns,
        except for `coef_` and `intercept_`, which are in units of the data. "auto": True for models that promise that
        rows need not be scaled, unless something given is about weights of the columns as they are: `penalty`,
        `constraint`, `init`, `coef_init`, `intercept_init` or `track_regret`. Read when learning starts.
    thresholds : {"no_interactions", "pairwise"} or array-like of shape (n_pairs, 2) or None
        Learn, instead of the columns, indicators of their bins ("no_interactions"), also of the bins of up to 64 pairs
        of columns ("pairwise"), or only those of the given pairs of column numbers: the model is a sum of step
        functions of one column, and of two. Bins are computed online from the rows learned before, and do not depend on
        the units of the columns, so that `standardize` has no effect; see :ref:`thresholds`. Everything that concerns
        weights refers to the indicators, `coef_` as well. Read when learning starts.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        With `standardize`, the means that are subtracted from columns, or 0 if they are not centred.
    scale_ : ndarray of shape (n_features,)
        With `standardize`, the divisors of the columns; 1 for constant columns, which are learned as 0.
    n_samples_seen_ : float
        With `standardize`, the total weight of the rows learned.
    """

    _standardizes: Any = False  # what the parameter `standardize` stands for
    _thresholds: Literal["no_interactions", "pairwise"] | ArrayLike | None = None
    to_sklearn, to_onnx = to_sklearn, to_onnx
    _sklearn_form = _onnx_form = "linear"
    _takes_sparse = True
    _allow_nan: bool
    # Of a member of a mixture: a mask of the columns that hold numbers of categories, and how many categories of all of
    # them together get an indicator
    _categorical: tuple[np.ndarray, int] | None = None
    _n_trees = 0  # and most trees whose leaves get indicators, next to those of bins
    _n_missing = 0  # the same of the columns of numbers: how many of them get an indicator of missing ones

    @property
    def _adapts(self) -> bool:
        """Whether each weight has a rate of its own, for rare indicators as well, and the model starts at 0."""
        raise NotImplementedError

    def _like_first_rows(self) -> Examples:
        learner = self._fitted_state()
        X = np.zeros((1, self.n_features_in_), np.float32 if getattr(self, "_single", False) else np.float64)
        sparse = isinstance(learner.row_map, Standardizer) and not learner.row_map.centred
        return Examples(csr_array(X) if sparse else X, np.zeros((1, *learner.coef.shape[:-1])))

    def _make_row_map(self, X) -> RowMap | None:
        """A map; None: rows are learned as they are."""
        n, allow_nan = X.shape[1], self._allow_nan
        if isinstance(self._thresholds, str):  # an array would be compared with a name element by element
            pairs = parts_of_pairs(n, PAIRS, 1, 0)[0] if self._thresholds == "pairwise" and n > 1 else ()
            return ThresholdMap(
                n, pairs, allow_nan=allow_nan, bins=Bins(n, n_trees=self._n_trees), grown=self._n_trees > 0
            )
        if self._thresholds is not None:
            return ThresholdMap(n, _checked_pairs(self._thresholds, n), singles=False, allow_nan=allow_nan)
        if self._categorical is None and not self._n_missing:
            return self._make_standardizer(n, not issparse(X))
        mask, n_indicators = self._categorical or (np.zeros(n, dtype=bool), 0)
        standardizer, missing = self._make_standardizer(int((~mask).sum()), True), self._n_missing
        return OneHotMap(mask, n_indicators + missing, standardizer, missing > 0)

    def _make_standardizer(self, n_features: int, centred: bool) -> Standardizer | None:
        nan = self._allow_nan
        return Standardizer(n_features, centred, allow_nan=nan, strict=nan) if self._standardizes else None

    def _indicate_missing(self, n: int) -> None:
        """Before the first row with a missing number is learned: continue with indicators of them, of up to n columns.

        They have been 0 in all rows.
        """
        row_map = self._learner.row_map
        if n > 0 and isinstance(row_map, Standardizer | OneHotMap):
            self._grow(np.zeros((1, self.n_features_in_)), self._learner.n_features + n, _n_missing=n)
        elif row_map is not None:
            row_map.admit_missing()

    def _begin_again(self) -> None:
        """Continue with a new learner of images by the same map, without the scales that it has."""
        before, self._learner = self._learner, self._untrained()._learner
        row_map = copy.deepcopy(before.row_map)
        if row_map is not None:
            row_map.begin_again()
        self._learner.map_by(row_map)
        losses = self._before.losses + getattr(before, "cumulative_losses", before.cumulative_loss)
        self._before = Before(self._before.rows + before.t, losses)

    def _scores(self, of: Callable[..., Scores] = Scores.of) -> Scores:
        """The scores as a function of the row, or of its image (`Scores.of_images`)."""
        return of(self._fitted_state())

    def _linear_model(self) -> tuple[np.ndarray, Any]:
        """Weights and intercepts in units of the data."""
        learner = self._fitted_state()
        if learner.row_map is None:
            return learner.coef, learner.intercept
        return learner.row_map.in_units_of_data(learner.coef, learner.intercept)

    def _standardizer(self) -> Standardizer:
        row_map = self._fitted_state().row_map
        row_map = row_map.standardizer if self._n_missing and self._categorical is None else row_map
        if not isinstance(row_map, Standardizer):
            raise AttributeError("this attribute requires standardize=True, set before learning starts")
        return row_map

    @read_only
    def coef_(self) -> np.ndarray:
        """Weights of the features, in units of the data; a read-only copy."""
        return self._linear_model()[0]

    @read_only
    def intercept_(self) -> float | np.ndarray:
        """The intercept, or one for each row of `coef_`."""
        return self._linear_model()[1]

    @read_only
    def mean_(self) -> np.ndarray:
        """Means that are subtracted from columns; AttributeError without `standardize`."""
        return self._standardizer().mean

    @read_only
    def scale_(self) -> np.ndarray:
        """Deviations that columns are divided by; AttributeError without `standardize`."""
        return self._standardizer().scale

    @property
    def n_samples_seen_(self) -> float:
        """Total weight of the rows learned; AttributeError without `standardize`."""
        return self._standardizer().n_samples_seen


def _checked_pairs(thresholds: ArrayLike, n_features: int) -> np.ndarray:
    pairs = np.asarray(thresholds)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu" or len(pairs) == 0:
        raise ValueError(f"thresholds must be 'no_interactions', 'pairwise' or pairs of columns; got {thresholds!r}.")
    wrong = (pairs < 0).any(axis=1) | (pairs >= n_features).any(axis=1) | (pairs[:, 0] == pairs[:, 1])
    if wrong.any():
        raise ValueError(
            f"thresholds must be pairs of two different columns from 0 to {n_features - 1}; got "
            f"{pairs[wrong.argmax()].tolist()}."
        )
    return pairs


class OnlineLinearModel(MapsRows, MirrorEstimator):
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
        "learning_rate": [StrOptions({*LEARNING_RATES, "theory", "adaptive"}), Schedule],
        "update": [StrOptions({"implicit", "explicit", "importance"})],
        "init": ["array-like", Interval(Real, None, None, closed="neither"), None],
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
        "average": ["boolean", Interval(Integral, 1, None, closed="left")],
    }

    _read_at_each_call: tuple[str, ...] = ("fit_intercept", "average", "early_stopping")

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
    _joint = False  # whether several learners have one joint loss, of the softmax of all scores
    _separate = False  # whether each class has a learner, also one or two classes
    _prior: Any = None  # what learners of later classes start from
    _given_start = False  # whether learning started from given weights or intercepts
    _sorted = False  # whether predictions are several quantiles, in ascending order

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Self:
        """Fit from scratch, from given weights, or continue with `warm_start`: up to `max_iter` epochs over the rows.

        Each epoch learns the rows in random order, unless shuffle=False. Rows in float64 or float32, dense (in arrays
        of any layout, and large data frames) or CSR, are read without a copy.

        Parameters
        ----------
        {X, y, sample_weight}
        coef_init : array-like of the shape of `coef_`, default=None
            Weights to start from, in place of `init` and of those of a warm start: a new run begins, with its first
            learning rates.
        intercept_init : float or array-like of the shape of `intercept_`, default=None
            Intercepts to start from, 0 by default.

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError}
        """
        elsewhere = coef_init is not None or intercept_init is not None
        begin = partial(self._begin, coef=coef_init, intercept=intercept_init) if elsewhere else None
        return self._fit(X, y, sample_weight, begin=begin)

    def _lower_rate(self) -> bool:
        if self._rate().learning_rate != "adaptive" or self._schedule().scale <= _LOWEST_RATE:
            return False
        self._slowdown *= _SLOWDOWN
        self._configure()
        return True

    def _objective(self, loss: float) -> float:
        """The mean loss, summed over outputs as it is, plus the penalty of the weights after the epoch."""
        with np.errstate(over="ignore", under="ignore"):  # of squares of weights
            return loss + sum(self._learned_penalty.value(part.position[0]) for part in parts_of(self._learner))

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
            return theory_rate(*run, data_bounds, self._learner.n_features, upper=self._upper_bound(), **run_options)
        contains_zero = spec.constraint is None or spec.constraint.contains(np.zeros(self._learner.n_features))
        run_options["around_zero"] = spec.init is None and contains_zero
        return penalised_rate(*run, spec.penalty, data_bounds, self._learner.n_features, **run_options)

    def _outputs(self, data: Examples) -> tuple[int, type[MultiLearner] | None]:
        """The number of learners for the outputs, and what they form together; None: there is only one."""
        return 1, None

    def _make_learners(self, n_weights: int, data: Examples, coef: ArrayLike | None) -> Learner | MultiLearner:
        """A new learner, or one for each output, which start from the rows of `coef`, if given, instead of `init`."""
        n, kind = self._outputs(data)
        start: dict[str, Any] = {}
        if coef is not None:
            start = {"source": "coef_init", "coef": check_start(coef, "coef_init", (n, n_weights))}
        elif self._init is not None:
            start = {"init": np.array(self._init, dtype=np.float64)}
        spec = self._specify(n_weights)._replace(**start)
        losses, inits = spec.loss.parts, [spec.init] * n if spec.coef is None else spec.coef
        self._sorted = len(losses) > 1
        learners = [
            self._make_learner(n_weights, spec._replace(init=init, loss=loss))
            for init, loss in zip(inits, cycle(losses), strict=False)
        ]
        self._spec = spec._replace(init=inits[-1])
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
        self._fitted_state()
        self._sparse_coef = True
        return self

    def densify(self) -> Self:
        """Let `coef_` be a dense array, as it is without `sparsify`.

        Returns
        -------
        {self}
        """
        self._fitted_state()
        self._sparse_coef = False
        return self

    def _begin(self, data: Examples, coef: ArrayLike | None = None, intercept: ArrayLike | None = None) -> None:
        self._given_start = coef is not None or intercept is not None
        row_map = self._make_row_map(data.X)
        n_weights = data.X.shape[1] if row_map is None else row_map.n_outputs
        self._slowdown, self._sparse_coef = 1.0, False
        self._single = data.X.dtype == np.float32
        if self._given_start:
            self._check_start()
        del self._given_start
        self._prior = self._make_learners(n_weights, data, None).learners[0] if self._separate else None
        self._learner = self._make_learners(n_weights, data, coef)
        started = intercept is not None or np.any(self._learner.coef)
        if getattr(self._learned_loss, "margin", 1.0) == 0 and self._update != "explicit" and not started:
            warn_caller(
                f"update={self._update!r} learns nothing from weights of 0, which minimise a loss of margin 0 already; "
                'set update="explicit".',
                ConvergenceWarning,
            )
        sizes = np.abs(data.y).reshape(len(data.y), -1).max(axis=1)
        squared = isinstance(self._divergence, AdaGrad | NormalizedAdaGrad) and not vars(self).get("_learns_residuals")
        if squared and 0 < sizes.max() < ROOT and np.max(np.abs(self._learned_loss.derivative(0.0, sizes))) < ROOT:
            raise ValueError(
                f"Targets must be above {ROOT:g}, as {self._divergence!r} divides by squares of slopes, which "
                f"underflow; the largest is {sizes.max():g}, in row {sizes.argmax()}. Scale targets "
                "(sklearn.compose.TransformedTargetRegressor)."
            )
        self._learner.map_by(row_map)
        if intercept is not None:
            parts = parts_of(self._learner)
            values = check_start(intercept, self._intercept_init, (len(parts),)).tolist()
            for part, value in zip(parts, values, strict=True):
                part.shift_intercept(value)
            self._spec = self._spec._replace(intercepts=tuple(values))

    def _begin_like(self, twin: Self) -> None:
        """`_begin` as another model, which differs in nothing but `RATES`, has begun; they share the map of rows."""
        self.__dict__.update({name: value for name, value in vars(twin).items() if name not in vars(self)})
        begun = twin._learner
        learners = [type(one)(copy.deepcopy(one.geometry), one.loss) for one in getattr(begun, "learners", [begun])]
        self._learner = type(begun)(learners) if isinstance(begun, MultiLearner) else learners[0]
        self._learner.map_by(begun.row_map)

    @property
    def _adapts(self) -> bool:
        return self._divergence.adaptive and self._init is None

    @property
    def _watches(self) -> bool:
        """If rows need not be scaled; certificates are for a run from its start."""
        return self._standardizes and not self._track_regret

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
        weights = self._divergence.inverse_mirror(theta)
        if self._spec.constraint is not None:
            weights = self._spec.constraint.project(self._divergence, weights)
        return make_geometry(self._spec, weights)

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


class OnlineLinearRegressor(RegressorMixin, OnlineLinearModel, LearnsTargets):
    """A linear model that predicts h(X w + b), h the link of its loss: the identity for the squared one.

    Several outputs, y of shape (n_samples, n_outputs), are learned side by side, each as by a model of its own, from
    rows that are read, standardised and mapped once.

    Parameters
    ----------
    eta0 : float
        Learning rate eta for the loss (a - y)^2 / 2. The default, with its schedule, is suitable for standardised
        features and targets: see Notes.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Weights.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept.
    """

    _parameter_constraints: dict = {"loss": [StrOptions(set(loss_names("regression"))), Loss]}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        named = self._loss_parameter
        loss = LOSSES.get(named) if isinstance(named, str) else named
        tags.target_tags.multi_output = len(getattr(loss, "parts", (loss,))) == 1
        tags.target_tags.positive_only = has_positive_targets(named)
        return tags

    def _progressive_fit(self, X, y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
        """Learn rows in one pass, and return the prediction before each that a mixture of such models uses.

        Returns None, and learns nothing, if that takes several calls or would raise an error.
        """
        scores = self._progressive_scores(X, y, sample_weight)
        if scores is None:
            return None
        predictions = parts_of(self._learner)[0].link(scores.ravel()).reshape(-1, *self._output_shape)
        return np.sort(predictions, axis=1) if self._sorted else predictions

    @property
    def _output_shape(self) -> tuple[int, ...]:
        """The shape of a row's targets."""
        learner = self._fitted_state()
        return (learner.n_scores,) if isinstance(learner, MultiLearner) else ()

    def _outputs(self, data: Examples) -> tuple[int, type[MultiLearner] | None]:
        return (data.y.shape[1], MultiLearner) if data.y.ndim == 2 else (1, None)

    def _check(self, call: Call, X, y, sample_weight=None) -> Examples:
        finite = sample_weight is not None
        X, y = check_rows(self, X, y=y, reset=call.first, multi_output=True, finite=finite, any_layout=True)
        loss = self._loss_parameter if call.first else self._learned_loss
        n_losses = len(getattr(loss, "parts", (loss,)))
        if n_losses > 1:  # of one target
            if y.ndim > 1:
                raise ValueError(
                    f"y should be 1d for several quantiles, which have one target; got shape {y.shape}. Use a model "
                    "for each target, such as the estimators_ of sklearn.multioutput.MultiOutputRegressor."
                )
            y = np.repeat(y[:, np.newaxis], n_losses, axis=1)
        if not call.first:
            check_output_shape(y, self._output_shape)
        return Examples(X, y, check_weights(sample_weight, len(y), allow_all_zero=call.partial))

    def _tolerance(self, data: Examples) -> float | None:
        """`tol` times the mean loss of the best constant, which has the units of the loss, if it has units."""
        y, weights, loss = data.y.reshape(len(data.y), -1), data.weights, self._learned_loss
        with np.errstate(all="ignore"):
            mean = np.average(y, axis=0, weights=weights)
            scores = mean if loss.translation_invariant else np.log(mean)
            of_mean = loss.translation_invariant or np.allclose(loss.link(scores), mean)
            if self.tol is None or not of_mean:  # probabilities
                return self.tol
            columns = zip(cycle(loss.parts), scores, y.T, strict=False)
            unit = sum(np.average(part.value(score, target), weights=weights) for part, score, target in columns)
        return float(self.tol * unit) if unit < np.inf else self.tol

    def _held_out_score(self, data: Examples) -> float:
        scores = self._predict_validated(data.X)
        y, scores = (data.y[:, 0], np.sort(scores)) if self._sorted else (data.y, scores)
        return self._quality(y, scores, data.weights)

    def _quality(self, y: ArrayLike, predictions: np.ndarray, weights: ArrayLike | None) -> float:
        if not self._sorted:
            return float(r2_score(y, predictions, sample_weight=weights))
        loss: Any = self._learned_loss
        each = zip(predictions.T, loss.quantile, strict=True)
        return float(np.mean([d2_pinball_score(y, p, sample_weight=weights, alpha=q) for p, q in each]))

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of predictions; of several quantiles the mean of D^2, the same with the pinball loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict for.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the sums of losses.

        Returns
        -------
        score : float
            At most 1; 0 for the mean of y, or its quantiles, in place of predictions.
        """
        return self._quality(y, self.predict(X), sample_weight)

    def _scores(self, *of: Callable) -> Scores:
        if self._sorted:
            raise ValueError(
                "Predictions of several quantiles are sorted, which no exported form does; learn a model for each."
            )
        return super()._scores(*of)

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict the targets of rows.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions: h(X @ coef_.T + intercept_) with h the link of the loss, the identity for the squared loss;
            several quantiles are sorted in ascending order.
            Exceptions are rows with values beyond the largest of their column so far, for which scale-invariant models
            and the divergences "normalized_adagrad" and "diagonal_newton" rescale the weights, and, with `standardize`,
            values beyond five deviations, which count as five.
        """
        predictions = self._predict(X)
        return np.sort(predictions, axis=1) if self._sorted else predictions


def parts_of(learner: Learner | MultiLearner) -> list[Learner]:
    """The learners of each loss."""
    return learner.learners if isinstance(learner, MultiLearner) else [learner]
