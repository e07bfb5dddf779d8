"""Base class of the parameter-free mixtures: their members, and the history of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import Tags, check_random_state, get_tags

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.stack import Stack
from .._kernels.rows.one_hot import CATEGORIES
from .._kernels.rows.thresholds import ThresholdMap, parts_of_pairs
from .._online.categories import FROM_DTYPE, Categories, find_categorical, is_from_dtype
from .._online.containers import frame_of_arrow
from .._online.estimator import Call, Examples
from .._online.export import to_onnx
from .._online.validation import opened, read_only
from .._sklearn_compat import Interval, StrOptions, check_feature_names
from ..linear_model._forward import ForwardEstimator
from ._explanation import ExplainedMixin

# Up to this number of features the default set has members with a matrix, which cost O(n_features^2) per row, and up to
# this number of features times scores members of indicators.
SECOND_ORDER = 128
# Pairs of columns whose indicators one member learns.
PAIRS = 32
# Second-order members learn indicators of this number of categories for each column of them, of all columns together,
# and of so many missing values. Those of others cost no time.
PER_COLUMN = 8


class ParameterFree(ExplainedMixin):
    """Many online models that learn the same rows in one pass, mixed according to their past losses.

    Parameters
    ----------
    members : sequence of estimators or None
        The models. None: those of the default set.
    stacking : bool
        Mix the mixture with linear combinations of the members, which may be better than the best of them: ridge
        regression of the mixture's residuals, or on-line Newton steps on the log odds of the classes. They cost the
        square of the number of members in time.
    memory : bool
        Correct the predictions by what the rows learned before say about the next target: of labels, which one has
        followed the last one, and the shares of recent ones; of numbers, the last two targets and errors, if the loss
        only depends on the residual (and is not of a quantile other than the median). `predict` predicts each of its
        rows as the one after the last row that was learned; see `delayed` for labels that come late. A `fit` that
        shuffles rows remembers nothing.
    share : float
        Fraction of the total weight that is redistributed after each row, so that the mixture adapts when the best
        member changes: 0 <= share < 1; where classes are rare, of which there is less to learn in a row, a part of it.
        With 0 the bound is smaller, for streams on which one member stays the best.
    standardize : bool
        For the default set of members: standardise rows online, with the means and standard deviations so far. On
        streams that start with sparse rows at most one of them does.
    random_features : int
        For the default set: also include models with this many random Fourier features, for kernels of three widths,
        and one with twice as many, for up to 128 columns; two of them forget, for targets that drift. The cost of each
        is quadratic in its number of features, in time and memory: three with 128 and one with 256 take 10 to 15
        microseconds per row and a megabyte. 0: only linear members.
    thresholds : bool
        For the default set, on streams that start with dense rows of up to 128 columns: also include models of
        indicators of bins, for targets that depend on thresholds of columns or of pairs of columns (see `thresholds` of
        `MirrorDescentClassifier`); of pairs if columns times classes are at most 128. Their cost is linear in the
        number of columns.
    trees : int
        For the models of single columns among these, if columns times classes are at most 128: most regression trees
        that are grown from the residuals of the predictions, one after every 1024 rows from row 6144 on, later less
        often: 128 are reached after 2.8 million rows. Indicators of their leaves are learned next to those of bins, so
        that the model grows with the stream. 0: none.
    categorical_features : array-like of bool, int or str, "from_dtype", or None
        The columns of categories: a mask, numbers, or names of features. "from_dtype": the columns of data frames (of
        pandas or polars) with a dtype of categories, text or bool, or of objects that are not all numbers in the first
        rows, and those of arrays of objects that hold text there. None: there are none. Categories need not be known in
        advance, and their order does not matter. Read when learning starts.
    n_jobs : int or None
        Threads that learn a block of rows, if that is long enough: models with a matrix learn side by side. -1: one for
        each processor; None: 1, or what a `joblib.parallel_config` says. The numbers do not depend on it.
    random_state : int, RandomState instance or None
        For drawing the features and pairs of columns, and for shuffling. A number, such as the default, gives the same
        every time.

    Attributes
    ----------
    cumulative_losses_ : ndarray of shape (n_members,)
        Losses of the models over all rows, each predicted before it was learned.
    stacking_weights_ : ndarray of shape (n_combinations + 1,)
        Weights of the members' mixture, and of each linear combination of them, in the next prediction.
    stacking_coef_ : ndarray of shape (n_combinations, n_members)
        Coefficients of each combination: it adds to the mixture the members' differences from it, times these.
    memory_weights_ : ndarray of shape (n_corrections + 1,)
        Weights of the prediction without memory, and of each correction of it, in the next prediction.
    memory_coef_ : ndarray of shape (n_corrections, n_terms)
        Coefficients of the corrections: of the differences from the prediction, in log odds, of the forecasts by the
        labels after the last one, and by recent ones; of numbers those of the last two errors, and of the differences
        of the last two targets from the prediction.
    is_categorical_ : ndarray of bool of shape (n_features_in_,) or None
        Which columns are categorical; None if there are none.
    categories_ : list or None
        For each column the list of its categories, in the order in which they were learned; None for a column of
        numbers, or if no column is categorical.
    """

    _parameter_constraints: dict = {
        "members": [Sequence, None],
        "stacking": ["boolean"],
        "memory": ["boolean"],
        "share": [Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean"],
        "random_features": [Interval(Integral, 0, None, closed="left")],
        "thresholds": ["boolean"],
        "trees": [Interval(Integral, 0, None, closed="left")],
        "categorical_features": ["array-like", StrOptions({FROM_DTYPE}), None],
    }

    _takes_sparse = True
    to_onnx, _onnx_form = to_onnx, "mixture"
    members: Sequence[Any] | None
    stacking: bool
    memory: bool
    share: float
    standardize: bool
    random_features: int
    thresholds: bool
    trees: int
    categorical_features: ArrayLike | Literal["from_dtype"] | None
    _categories: Categories | None = None
    _indicates_missing: bool  # whether a row with a missing number has been learned

    def _default_members(self, second_order: bool, sparse: bool) -> list[Any]:
        """The default set, with or without second-order models, for sparse or dense rows."""
        raise NotImplementedError

    def _nonlinear(self, kind: Callable[..., Any], scaled: dict[str, bool]) -> list[Any]:
        """Second-order models of random features, if any, for the kernels exp(-width |x - x'|^2 / n_features).

        Two of them forget, so that nonlinear targets are followed where they drift, too.
        """
        rng, n = check_random_state(self.random_state), self.random_features
        return [
            kind(
                alpha=alpha,
                forgetting=forgetting,
                random_features=number,
                gamma=width / self.n_features_in_,
                random_state=int(rng.randint(2**31 - 1)),
                **scaled,
            )
            for width, number, alpha, forgetting in (
                (0.1, n, 0.1, 1.0),
                (0.3, n, 0.1, 0.999),
                (1.0, n, 0.1, 0.999),
                (0.3, 2 * n, 0.01, 1.0),
            )
            if n > 0
        ]

    def _of_thresholds(self, make: Callable[..., Any], n_scores: int = 1, newton: bool = True) -> list[Any]:
        """Models of indicators of bins, if any, of single columns and of several parts of their pairs.

        `newton`: whether the loss has a bound on its curvature or its slope.
        """
        if not self.thresholds:
            return []
        wide = self.n_features_in_ * n_scores > SECOND_ORDER
        settings: list[tuple[str, float, Any]] = [("diagonal_newton", 4.0, "no_interactions")]
        settings += [("normalized_adagrad", 3.0, "no_interactions")] if wide or n_scores == 1 else []
        settings += [] if wide or self.n_features_in_ == 1 else self._of_pairs(n_scores)
        members = [
            make(divergence=divergence, eta0=eta, thresholds=thresholds)
            for divergence, eta, thresholds in settings
            if newton or divergence != "diagonal_newton"
        ]
        if members and not wide:  # the others stay what they are on streams that have no use for trees
            members[0]._n_trees = self.trees
        return members

    def _of_pairs(self, n_scores: int) -> list[tuple[str, float, Any]]:
        """Settings of models of parts of the pairs of columns."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        many = comb(self.n_features_in_, 2) > 6 * PAIRS  # of which four parts would miss too many
        n_parts = 2 if n_scores > 1 else 10 if many else 4
        parts = [part.tolist() for part in parts_of_pairs(self.n_features_in_, PAIRS, n_parts, seed)]
        settings = (("diagonal_newton", 1.0), ("normalized_adagrad", 3.0))
        return [(*settings[number % 2], parts[number % len(parts)]) for number in range(max(len(parts), 2))]

    def _make_estimators(self, X) -> list[Any]:
        members = self.members
        if members is None:
            members = self._default_members(X.shape[1] <= SECOND_ORDER, issparse(X))
        if len(members) == 0:
            raise ValueError("members must hold at least one model, or be None for the default set; got none.")
        for number, member in enumerate(members):
            if not isinstance(member, self._kinds):
                kinds = " or ".join(kind.__name__ for kind in self._kinds)
                raise ValueError(f"members[{number}] must be of type {kinds}; got {member!r}.")
        members = list(members) if self.members is None else [clone(member) for member in members]
        linear, second_order = self._indicated(X.shape[1])
        for member in members:
            member._allow_nan = self._allow_nan
            member._categorical = second_order if isinstance(member, ForwardEstimator) else linear
        return members

    # --- missing values and categories ----------------------------------------------------------------------------

    def _takes_missing_values(self) -> bool:
        """Whether all members standardise dense rows, or learn their bins."""
        if self.members is None:
            return self.standardize
        return all(
            getattr(member, "_standardizes", False)
            or getattr(member, "_centred", False)
            or getattr(member, "_thresholds", None) is not None
            for member in self.members
        )

    def _indicated(self, n_features: int) -> Sequence[tuple[np.ndarray, int] | None]:
        """The columns of categories, and how many of these have an indicator, for linear and second-order members."""
        if self._categories is None:
            return None, None
        mask = self._categories.is_categorical
        n = int(mask.sum())
        return (mask, CATEGORIES * n), (mask, min(PER_COLUMN * n, max(SECOND_ORDER - n_features, 0) + n))

    @property
    def _reads_numbers(self) -> bool:
        return self._categories is None

    def _check(self, call: Call, X, y, sample_weight=None, *classes) -> Examples:
        X = X if isinstance(X, np.ndarray) else frame_of_arrow(X)
        if call.first:
            self._allow_nan, self._indicates_missing = not issparse(X) and self._takes_missing_values(), False
            found = find_categorical(X, self.categorical_features)
            self._categories = None if found is None else Categories(found)
        known = self._categories
        if known is None:
            return self._check_encoded(call, X, y, sample_weight, *classes)
        rows, self._categories = known.encode(X) if call.first else self._encode_rows(known, X)
        data = self._check_encoded(call, rows, y, sample_weight, *classes)
        if data.weights is not None and not data.weights.all():  # rows of weight 0 bring no categories
            rows, self._categories = known.encode(X, data.weights > 0)
            data = replace(data, X=np.ascontiguousarray(rows))
        return data

    def _check_encoded(self, call: Call, X, y, sample_weight=None, *classes) -> Examples:
        """`_check` of rows of numbers; in the first call it also makes the unfitted members."""
        return super()._check(call, X, y, sample_weight, *classes)

    def _learn(
        self, data: Examples, order: np.ndarray | None = None, *, again: bool = False, scores: Any = None
    ) -> float:
        """Before the first row with a missing number is learned, members get indicators of them.

        Rows then come to `GrowsClasses._learn`, which stops at those of new classes, and to `LifeCycleMixin._learn`,
        which has the compiled learner of all members learn them.
        """
        first = self._first_missing(data, order) if again or self._first_rows is None else None
        if first is not None:
            self._copy_learner()
            if first > 0 and not self._together:  # of rows that are predicted together none is learned before
                order = np.arange(len(data)) if order is None else order
                super()._learn(data, order[:first], again=True)
                order = order[first:]
            self._indicate_missing()
        return super()._learn(data, order, again=again, scores=scores)

    def _first_missing(self, data: Examples, order: np.ndarray | None) -> int | None:
        """Where in the order a number is missing first, of a column that has had one; None if there are indicators."""
        if self._indicates_missing or not self._allow_nan or issparse(data.X):
            return None
        maps = [member._learner.row_map for member in self.estimators_]
        known = next((each.known for each in maps if each is not None and not isinstance(each, ThresholdMap)), None)
        if known is None:
            return None
        missing = np.isnan(data.X if self._categories is None else data.X[:, ~self._categories.is_categorical])
        rows = np.arange(len(data)) if order is None else order
        learned = np.flatnonzero(np.ones(len(rows)) if data.weights is None else data.weights[rows])
        missing = missing[rows[learned]]
        first = (missing & np.logical_or.accumulate(np.vstack([known, ~missing]))[:-1]).any(axis=1)
        return int(learned[first.argmax()]) if first.any() else None

    def _indicate_missing(self) -> None:
        """Give indicators to members that adapt; the others stay, which predict better where gaps say nothing."""
        categorical = 0 if self._categories is None else int(self._categories.is_categorical.sum())
        n = 0 if self.handle_new_features == "add" else self.n_features_in_ - categorical
        for member in self.estimators_:
            room = max(SECOND_ORDER - member._learner.n_features, PER_COLUMN)
            member._indicate_missing(member._adapts * (min(n, room) if isinstance(member, ForwardEstimator) else n))
        self._indicates_missing = True
        self._bind_learners(self._learner.mixer)
        self._configure()

    def _encode_rows(self, known: Categories, X, learn: bool | None = None) -> tuple[Any, Categories]:
        """Rows with the numbers of categories, and the categories, with new ones; see `Categories.encode`."""
        if issparse(X):
            raise ValueError("Rows with categories must be dense; got a sparse matrix. Use X.toarray().")
        X, names = self._by_name(X, False), vars(self).get("feature_names_in_")
        if names is not None and getattr(X, "ndim", 2) == 2 and names.tolist() != list(getattr(X, "columns", ())):
            check_feature_names(self, X, reset=False)
        return known.encode(X, learn, type(self).__name__)

    def _translated(self, X) -> Any:
        known = self._categories
        if known is None:
            return super()._translated(X)
        if getattr(X, "shape", ())[:1] != (1,):  # validation of more rows takes little of their time
            return None
        rows, numbers = self._encode_rows(known, X)
        return opened(self, rows) if numbers.numbers == known.numbers else None

    def _query(self, X, **options) -> Any:
        known = self._categories
        return super()._query(X if known is None else self._encode_rows(known, X, False)[0], **options)

    @read_only
    def is_categorical_(self) -> np.ndarray | None:
        """Which columns are categorical; None if there are none."""
        categories = self._fitted_categories()
        return None if categories is None else categories.is_categorical

    @property
    def categories_(self) -> list[list[Any] | None] | None:
        """The categories of each column, None for numbers; None if no column is categorical."""
        categories = self._fitted_categories()
        return None if categories is None else categories.listed()

    def _fitted_categories(self) -> Categories | None:
        self._fitted_models()
        return self._categories

    @read_only
    def stacking_weights_(self) -> np.ndarray:
        """Weights of the mixture and of each combination in the next prediction, shape (n_combinations + 1,)."""
        return self._of_outputs(lambda mixer: np.ones(1) if mixer.stack is None else mixer.stack.hedge.weights)

    @read_only
    def stacking_coef_(self) -> np.ndarray:
        """Coefficients of the members' differences from their mixture, shape (n_combinations, n_members)."""
        return self._of_outputs(
            lambda mixer: np.zeros((0, len(self.estimators_))) if mixer.stack is None else mixer.stack.coef
        )

    @read_only
    def memory_weights_(self) -> np.ndarray:
        """Weights of the forecast without the memory and of each correction, shape (n_corrections + 1,)."""
        return self._of_outputs(lambda mixer: np.ones(1) if mixer.memory is None else mixer.memory.stack.hedge.weights)

    @read_only
    def memory_coef_(self) -> np.ndarray:
        """Coefficients of what each correction adds to the forecast, shape (n_corrections, n_terms)."""
        return self._of_outputs(lambda mixer: np.zeros((0, 0)) if mixer.memory is None else mixer.memory.stack.coef)

    def _make_hedge(self, rate: float | None) -> tuple[Hedge, Stack | None]:
        """The weights of the members, and their linear combinations, if any."""
        n = len(self.estimators_)
        stacked = self.stacking and n > 1
        return Hedge(n, rate, self.share), Stack(n, rate, self.share) if stacked else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(self._takes_missing_values())
        given = self.categorical_features
        tags.input_tags.categorical = given is not None
        tags.input_tags.sparse = given is None or is_from_dtype(given)  # no sparse column has such a dtype
        return tags

    def _tags_of_members(self) -> list[Tags]:
        return [get_tags(member) for member in self.members or () if isinstance(member, self._kinds)]
