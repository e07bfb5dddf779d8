"""Nearest neighbours in a metric learned online, over a window of rows: what the classifier and the regressor share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_random_state

from .._online.estimator import Call, Examples
from .._online.examples import LearnsUnweighted
from .._online.export import to_sklearn
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_memory, check_query, dense, fitted, is_finite, warn_caller
from .._sklearn_compat import Interval, StrOptions, for_other_rows
from ..pipeline import check_instance, check_online, copies_to_learn, learn_more, learns
from ._memory import Window
from ._prior import nearby_origin, relative
from .frobenius import FrobeniusMetricLearner
from .logdet import LogDetMetricLearner
from .von_neumann import VonNeumannMetricLearner


@dataclass(frozen=True, kw_only=True)
class RowsOfWindow(Examples):
    """Rows, their labels or targets, and what the window stores of these: numbers of classes, or targets."""

    values: np.ndarray


class MetricNeighbors(LearnsUnweighted, BaseEstimator):
    """Nearest neighbours among the rows of a window, in metrics that are learned from the same rows.

    Parameters
    ----------
    n_neighbors : int
        Number of neighbours that are counted. While the window has fewer rows, all of them are.
    metric_learner : estimator, sequence of estimators, "auto" or None
        A transformer with `partial_fit`; the metric is the Euclidean distance after `transform`. For instance an
        :class:`~onlinebregman.pipeline.OnlinePipeline` of a scaler and a metric learner. A fitted one inside a
        :class:`~sklearn.frozen.FrozenEstimator` does not learn. None: a :class:`LogDetMetricLearner`. Several metric
        learners learn side by side, and their predictions are averaged; in a sequence, "euclidean" stands for
        untransformed rows. "auto": a set of them without parameters to tune, for features on the same scale.
    weights : {"uniform", "distance"}, callable or None
        Weights of the neighbours: equal, inverse to their distance, or a function of an array of distances.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}
        Search algorithm. Trees are rebuilt when the window or the metric has changed.
    window_size : int or None
        Number of most recent rows that are stored. None: all.
    shuffle : bool
        Let `fit`, if it gets more rows than `window_size`, store some of them drawn at random. False: the last ones, as
        `partial_fit` does. Metric learners have their own `shuffle`.
    n_jobs : int or None
        Threads of the search.
    random_state : int, RandomState instance or None
        For shuffling, and for `metric_learner=None` and "auto"; an estimator has its own `random_state`.

    Attributes
    ----------
    metric_learners_ : list of estimators
        The metric learners, fitted.
    metric_ : estimator
        The fitted metric learner, if there is only one.
    X_ : ndarray of shape (n_samples_fit_, n_features_in_)
        The rows in the window, oldest first, untransformed.
    n_samples_fit_ : int
        Rows in the window.
    n_samples_seen_ : int
        Rows learned.
    """

    _unmergeable = "it predicts by a window on the last rows of one stream; mix its metric learner"
    _parameter_constraints: dict = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "metric_learner": [BaseEstimator, StrOptions({"auto"}), list, tuple, None],
        "weights": [StrOptions({"uniform", "distance"}), callable, None],
        "algorithm": [StrOptions({"auto", "ball_tree", "kd_tree", "brute"})],
        "window_size": [Interval(Integral, 1, None, closed="left"), None],
    }
    _read_at_each_call: tuple[str, ...] = ("n_neighbors", "weights", "algorithm", "window_size")
    _takes_sparse = True
    _state = "_window"
    _others = property(lambda self: self.metric_learners_)
    to_sklearn, _sklearn_form = to_sklearn, "neighbors"
    _search: type[KNeighborsClassifier | KNeighborsRegressor]  # finds neighbours, and predicts by them
    _default_learning: dict[str, Any] = {}  # parameters of the default metric learners

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        metric_learner: BaseEstimator | Sequence[BaseEstimator | str] | Literal["auto"] | None = None,
        weights: Literal["uniform", "distance"] | Callable | None = "uniform",
        algorithm: Literal["auto", "ball_tree", "kd_tree", "brute"] = "auto",
        window_size: int | None = 1000,
        n_jobs: int | None = None,
        shuffle: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self._set_arguments(locals())

    # --- learning -------------------------------------------------------------------------------------------------

    def _begin(self, data: RowsOfWindow) -> None:
        self.metric_learners_ = self._new_metrics()
        check_memory(self, data.X.shape[1], 0, self.metric_learners_)
        self._window = Window(np.empty((0, data.X.shape[1])), data.values[:0].copy())
        self._mapped = Mapped()

    def _go_on(self, data: RowsOfWindow, call: Call) -> None:
        metrics = copies_to_learn(self.metric_learners_, len(data))
        self._mapped = self._mapped.for_copies(self.metric_learners_, metrics)
        self.metric_learners_ = metrics

    def _learn(self, data: RowsOfWindow, order: None = None, *, again: bool = False) -> None:
        for number, metric in enumerate(self.metric_learners_):
            check_online(metric, self._named(number))
            learn_more(metric, data.X, data.y)
        self._add_to_window(data)

    def _learn_in_epochs(self, learn: Callable, data: RowsOfWindow, X, y) -> None:
        with warnings.catch_warnings():  # then all metrics predict the same
            warnings.filterwarnings("ignore", "All (rows were of one class|targets were equal)", UserWarning)
            self.metric_learners_ = [metric.fit(data.X, data.y) for metric in self.metric_learners_]
        n, size = len(data), self.window_size
        if size is None or n <= size:
            self._add_to_window(data)
            return
        kept = np.arange(n - size, n) if (order := next(self._orders(n))) is None else order[n - size :]
        self._window = Window(data.X[kept], data.values[kept], n - size)
        which = f"the last {size} are" if order is None else f"{size}, drawn at random, are"
        warn_caller(f"fit was given {n} rows, and only {which} kept as neighbours; set window_size=None to keep all.")

    def _add_to_window(self, data: RowsOfWindow) -> None:
        self._window = self._window.extended(data.X, data.values, self.window_size)

    def _new_metrics(self) -> list[BaseEstimator]:
        given = self.metric_learner
        if given is None:
            return [LogDetMetricLearner(**self._default_learning, random_state=self.random_state)]
        if isinstance(given, str):
            learners = self._voting_metrics()
            seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=len(learners))
            return [each.set_params(random_state=int(seed)) for each, seed in zip(learners, seeds, strict=True)]
        if not isinstance(given, (list, tuple)):
            return [_new_metric(given, "metric_learner")]
        if not given:
            raise ValueError('metric_learner must hold at least one metric learner, or be "euclidean"; got none.')
        return [_new_metric(metric, self._named(number)) for number, metric in enumerate(given)]

    def _named(self, number: int) -> str:
        """The name of a metric learner in errors."""
        return f"metric_learner[{number}]" if isinstance(self.metric_learner, (list, tuple)) else "metric_learner"

    def _voting_metrics(self) -> list[BaseEstimator]:
        """The metrics of "auto": they start at the Euclidean metric, and make errors on different rows."""
        learners = LogDetMetricLearner, FrobeniusMetricLearner, VonNeumannMetricLearner
        return [learner(**self._default_learning) for learner in learners]

    # --- neighbours -----------------------------------------------------------------------------------------------

    def kneighbors(
        self, X: MatrixLike, n_neighbors: int | None = None, return_distance: bool = True
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Nearest rows of the window in the current metric, if there is only one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_queries, n_features)
            Rows.
        n_neighbors : int or None, default=None
            Number of neighbours; by default the parameter. At most the number of rows in the window.
        return_distance : bool, default=True
            Also return the distances.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Distances (not squared), increasing; if `return_distance`.
        indices : ndarray of shape (n_queries, n_neighbors)
            Positions of the neighbours in `X_` and `y_`.

        Raises
        ------
        ValueError
            If `n_neighbors` is not an integer >= 1, or a row is not finite.
        """
        if n_neighbors is not None and (not isinstance(n_neighbors, Integral) or n_neighbors < 1):
            raise ValueError(f"n_neighbors must be an integer >= 1, or None; got {n_neighbors!r}.")
        X, metric, window = self._queries(X), self.metric_, self._window
        count = min(self.n_neighbors if n_neighbors is None else n_neighbors, len(window))
        queries = _map(metric, X)
        origin, searcher = self._searcher(0, metric, queries.shape[1], window)
        return searcher.kneighbors(relative(queries, origin), count, return_distance)

    def _queries(self, X) -> np.ndarray:
        return dense(check_query(self, X))

    def _predictions(self, X, predict: str) -> list[tuple[Any, np.ndarray]]:
        """For each metric the neighbours' search, and what its method of this name predicts."""
        X, window, found = self._queries(X), self._window, []
        for number, metric in enumerate(self.metric_learners_):
            queries = _map(metric, X)
            origin, searcher = self._searcher(number, metric, queries.shape[1], window)
            with np.errstate(over="ignore", invalid="ignore"):
                means = getattr(searcher, predict)(relative(queries, origin))
            if not is_finite(means):
                row = int(np.argwhere(~np.isfinite(means))[0, 0])
                raise ValueError(
                    f"The mean of the neighbors of row {row} is not finite: scale the targets, or use weights that are "
                    f"finite and not all 0; weights={self.weights!r}."
                )
            found.append((searcher, means))
        return found

    def _searcher(self, number: int, metric: BaseEstimator, width: int, window: Window) -> tuple[Any, Any]:
        """An origin, and a nearest-neighbour search in the rows of a window minus that, mapped to `width` features.

        It is cached while it is valid. The window is read once and the cache replaced by one assignment, as other
        threads may predict or learn.
        """
        place = (width, _state_of(metric, window), window.first, window.last)
        settings = (min(self.n_neighbors, len(window)), self.weights, self.algorithm, self.n_jobs)
        known = self._mapped.content.get(number)
        if known is None or known.metric is not metric or (known.place, known.settings) != (place, settings):
            rows = _mapped_window(metric, window, known, place)
            origin, searcher = nearby_origin(rows), None
            searched = relative(rows, origin)
            if known is not None and known.settings == settings:
                searcher = for_other_rows(known.searcher, searched, window.values)
            if searcher is None:
                names = ("n_neighbors", "weights", "algorithm", "n_jobs")
                searcher = self._search(**dict(zip(names, settings, strict=True))).fit(searched, window.values)
            known = self._mapped.content[number] = _Searched(metric, place, settings, rows, origin, searcher)
        return known.origin, known.searcher

    # --- attributes -----------------------------------------------------------------------------------------------

    @property
    def metric_(self) -> BaseEstimator:
        """The metric learner, if there is only one."""
        metrics = fitted(self, vars(self).get("metric_learners_"))
        if len(metrics) > 1:
            raise AttributeError(f"{len(metrics)} metrics vote, each with its own neighbours; see metric_learners_.")
        return metrics[0]

    @metric_.setter
    def metric_(self, metric: BaseEstimator) -> None:
        self.metric_learners_ = [metric]

    @property
    def X_(self) -> np.ndarray:
        """The rows in the window, oldest first, untransformed; not writeable."""
        return self._fitted_state().rows

    @property
    def n_samples_fit_(self) -> int:
        """Rows in the window."""
        return len(self._fitted_state())

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned."""
        return self._fitted_state().last


# --- metrics ----------------------------------------------------------------------------------------------------------


def _new_metric(metric: BaseEstimator | str, what: str) -> BaseEstimator:
    """An unfitted copy of the metric given by a parameter, or an error."""
    if isinstance(metric, str) and metric == "euclidean":
        return FunctionTransformer()
    check_instance(metric, what)
    if not isinstance(metric, BaseEstimator):
        raise ValueError(f'{what} must be an estimator or "euclidean"; got {metric!r}.')
    if not hasattr(metric, "transform"):
        raise ValueError(f"{what} must be an estimator with the method transform; got {type(metric).__name__}.")
    return clone(metric)


def _map(metric: BaseEstimator, X: np.ndarray) -> np.ndarray:
    return dense(metric.transform(X), np.float64)


class _Searched(NamedTuple):
    """The rows of a window that one metric has mapped, and the search in them."""

    metric: BaseEstimator
    place: tuple[int, ...]  # columns after the mapping, the number of `_state_of`, and first and last row of the window
    settings: tuple
    rows: np.ndarray
    origin: np.ndarray | None
    searcher: Any


def _mapped_window(metric: BaseEstimator, window: Window, known: _Searched | None, place: tuple) -> np.ndarray:
    """The mapped rows of the window; rows that the same metric has mapped before are taken from the cache."""
    if known is not None and known.metric is metric:
        *before, first, last = known.place
        if before == list(place[:-2]) and first <= window.first < last <= window.last:
            kept, new = known.rows[window.first - first :], window.rows[last - window.first :]
            return np.concatenate([kept, _map(metric, new)]) if len(new) else kept
    return _map(metric, window.rows)


def _state_of(metric: BaseEstimator, window: Window) -> int:
    """A number that changes whenever the metric does."""
    # one that does not learn here may do so elsewhere
    return getattr(metric, "n_updates_", getattr(metric, "t_", window.last if learns(metric) else 0))


class Mapped:
    """A cache of mapped rows and their search; copies and files do not include it."""

    def __init__(self) -> None:
        self.content: dict[int, _Searched] = {}  # by index of the metric

    def for_copies(self, metrics: list, successors: list) -> Mapped:
        """The cache for copies of the metrics; entries whose metric has changed are found by `_state_of`."""
        mapped = Mapped()
        for number, known in self.content.copy().items():  # other threads may add to it
            if number < len(metrics) and known.metric is metrics[number]:
                mapped.content[number] = known._replace(metric=successors[number])
        return mapped

    def __reduce__(self):
        return Mapped, ()
