"""A metric from labelled rows by DefiniteBoost: the least change that brings classes together and keeps them apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from .._kernels.matrices.reservoir import Reservoir
from .._online.estimator import Call, Examples
from .._online.examples import LearnsUnweighted
from .._online.types import RandomState
from .._online.validation import check_rows, dense, fitted, read_only, warn_caller
from .._sklearn_compat import Interval, StrOptions
from ..kernel_learning import DefiniteBoost
from ._examples import check_labels, check_size, warn_of_labels
from ._mahalanobis import MahalanobisTransformer
from ._memory import RemembersRows, numbers_of, random_numbers
from ._prior import centred, nearby_origin, relative

RELAXATIONS = 1.0 - 0.5 ** np.arange(6)  # shares of the way from `similar` to 1


class DefiniteBoostMetricLearner(RemembersRows, LearnsUnweighted, MahalanobisTransformer):
    """Mahalanobis metric from labelled rows, within bounds on the mean distances of each class (DefiniteBoost).

    Of all matrices W of trace n_features it is the one nearest to the identity, in the von Neumann divergence, that
    satisfies two constraints for each class:

    - the mean squared distance between its rows is at most `similar` times the Euclidean one,
    - that between its rows and their `n_impostors` nearest rows of other classes is at least `dissimilar` times.

    A mean of squared distances is tr(W X) with X the mean of z z'. The constraints are on means because bounds on
    single pairs are usually infeasible on real data, and the result would then depend on the few pairs that violate
    them.

    Parameters
    ----------
    similar : float
        Upper bound on mean squared distances within a class, as a share of those in the Euclidean metric. Where the
        bounds contradict each other, it is moved halfway to 1, up to five times, with a warning.
    dissimilar : float
        Lower bound on mean squared distances to impostors, as a share of those in the Euclidean metric.
    n_impostors : int
        Nearest rows of other classes, in the Euclidean metric, for each row.
    {n_components, preprocessor}
    projection : {"approximate", "exact"}
        See :class:`~onlinebregman.DefiniteBoost`.
    max_iter : int
        Largest number of rounds.
    tol : float
        Accuracy, see :class:`~onlinebregman.DefiniteBoost`.
    memory_size : int
        Number of rows stored for each class: a uniform sample of those seen.
    random_state : int, RandomState instance or None
        For that sample.

    Attributes
    ----------
    {components_, threshold_}
    boost_ : DefiniteBoost
        The kernel learner between the features that found W / n_features; its first constraints are those of rows of
        the same class, its last those of impostors.
    {classes_}
    n_iter_ : int
        Rounds.
    {n_features_in_, feature_names_in_}

    Warns
    -----
    ConvergenceWarning
        If the constraints are infeasible, or `max_iter` rounds were not enough: `similar` is relaxed then. If that does
        not suffice, a smaller `dissimilar` makes the constraints feasible.

    See Also
    --------
    LogDetMetricLearner : Learns online, from single pairs and triplets.
    DefiniteBoost : Any constraints, on objects or features.

    Notes
    -----
    `partial_fit` stores rows, a row costs O(n_features), and the metric for all stored rows is computed on access: the
    first one after a call, such as by `transform`, solves the problem with the parameters of that call.

    The features should be on the same scale (sklearn.preprocessing.StandardScaler). Classes with a single row, or with
    equal rows, have no distances within them; they only have impostors. Memory grows with n_classes memory_size
    n_features.

    References
    ----------
    .. [1] K. Tsuda, G. Raetsch, M. K. Warmuth, "Matrix Exponential Gradient Updates for On-line Learning and Bregman
       Projection", NIPS 2004, sections 4 and 5.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onlinebregman import DefiniteBoostMetricLearner
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), DefiniteBoostMetricLearner(), KNeighborsClassifier(5))
    >>> print(f"{cross_val_score(model, X, y).mean():.2f}")
    0.98
    """

    _unmergeable = "it solves for all the rows that it remembers at once"
    _state = "_solution"
    _parameter_constraints: dict = {
        "similar": [Interval(Real, 0, None, closed="neither")],
        "dissimilar": [Interval(Real, 0, None, closed="left")],
        "n_impostors": [Interval(Integral, 1, None, closed="left")],
        "projection": [StrOptions({"approximate", "exact"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "memory_size": [Interval(Integral, 1, 2**62, closed="left")],
    }
    _read_at_each_call = ("similar", "dissimilar", "n_impostors", "projection", "max_iter", "tol")

    def __init__(
        self,
        *,
        similar: float = 0.5,
        dissimilar: float = 1.0,
        n_impostors: int = 5,
        n_components: int | None = None,
        preprocessor: ArrayLike | Callable[[np.ndarray], ArrayLike] | None = None,
        projection: Literal["approximate", "exact"] = "approximate",
        max_iter: int = 500,
        tol: float = 1e-2,
        memory_size: int = 1000,
        random_state: RandomState = None,
    ) -> None:
        self._set_arguments(locals())

    def _check(self, call: Call, X, y, sample_weight=None) -> Examples:
        X, y = check_rows(self, self._by_number(X), y=y, reset=call.first, numeric=False)
        check_labels(y)
        X = check_size(dense(X))
        self._check_n_components(X.shape[1])
        return Examples(X, y)

    def _begin(self, data: Examples) -> None:
        self._sampler = Reservoir(data.X.shape[1], self.memory_size, random_numbers(self.random_state))
        self._labels: dict[Any, int] = {}
        self._begin_metric()

    def _go_on(self, data: Examples, call: Call) -> None:
        """Nothing to copy: a call of the sampler learns all of its rows or none."""

    def _learn(self, data: Examples, order: None = None, *, again: bool = False) -> None:
        numbers, self._labels = numbers_of(data.y, self._labels)
        self._sampler.learn(data.X, numbers)
        boost = DefiniteBoost(projection=self.projection, max_iter=self.max_iter, tol=self.tol)
        self._solution = _Solution((self.similar, self.dissimilar, self.n_impostors, boost))

    def _learn_in_epochs(self, learn: Callable, data: Examples, X, y) -> None:
        learn(data)
        if len(self._labels) == len(data) and self.dissimilar <= 1:  # which holds for the identity
            warn_of_labels()
        self._solved()

    def _solved(self) -> _Metric:
        """The metric for the stored rows, computed if rows have come since the last time."""
        solution = self._fitted_state()
        # read once, and replaced by one assignment: several threads may do this
        changes, found = self._sampler.n_changes, solution.found
        if found is None or found[0] != changes:
            with self._threads():  # also in a query
                found = solution.found = changes, self._solve(*solution.settings)
        return found[1]

    def _solve(self, wanted: float, dissimilar: float, n_impostors: int, unfitted: DefiniteBoost) -> _Metric:
        d, identity = self.n_features_in_, np.eye(self.n_features_in_)
        within, impostors = self._mean_squares(n_impostors)
        if not within and not impostors:
            return _Metric(identity, 0, clone(unfitted))
        lower = [dissimilar * identity - matrix for matrix in impostors]
        for similar in wanted + (1.0 - wanted) * RELAXATIONS:
            boost = clone(unfitted)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                boost.partial_fit_matrices(np.array([matrix - similar * identity for matrix in within] + lower))
            if boost.kkt_residual_ <= boost.tol or similar >= 1:
                break  # a solution for bounds that are not met has directions without any weight
        if similar != wanted or boost.kkt_residual_ > boost.tol:
            warn_caller(
                f"The bounds cannot all be met, or not within max_iter={boost.max_iter} rounds: the metric is for "
                f"similar={similar:g} in place of {wanted:g} (kkt_residual_={boost.kkt_residual_:g}).",
                ConvergenceWarning,
            )
        return _Metric(d * boost.kernel_, boost.n_iter_, boost)

    @property
    def boost_(self) -> DefiniteBoost:
        """The kernel learner between the features that found W / n_features."""
        return self._solved().boost

    @property
    def n_iter_(self) -> int:
        """Number of its rounds."""
        return self._solved().n_iter

    @read_only
    def classes_(self) -> np.ndarray:
        """Labels seen so far, sorted."""
        return np.unique(list(fitted(self, vars(self).get("_labels"))))

    def _mean_squares(self, n_impostors: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The mean of z z' within each class, and to impostors of each class, relative to the mean squared distance."""
        X, codes = self._sampler.sample()
        X = relative(X, nearby_origin(X))
        within, impostors = [], []
        for number in range(codes.max() + 1):
            mine, others = X[codes == number], X[codes != number]
            deviations = centred(mine)
            within.append(deviations.T @ deviations)
            if len(others):
                search = NearestNeighbors(n_neighbors=min(n_impostors, len(others))).fit(others)
                nearest = search.kneighbors(mine, return_distance=False)
                impostors.append(sum(z.T @ z for z in ((mine - others[column]) for column in nearest.T)))
        return _of_mean_one(within), _of_mean_one(impostors)

    def _metric(self) -> np.ndarray:
        return self._solved().matrix


class _Metric(NamedTuple):
    matrix: np.ndarray
    n_iter: int
    boost: DefiniteBoost


class _Solution:
    """The metric, computed on first use, with the sampler's `n_changes` before.

    The metric follows from rows and settings, so copies do not include it.
    """

    def __init__(self, settings: tuple) -> None:
        self.settings = settings  # the arguments of `_solve`, from the last call that learned rows
        self.found: tuple[int, _Metric] | None = None

    def __reduce__(self):
        return _Solution, (self.settings,)


def _of_mean_one(matrices: list[np.ndarray]) -> list[np.ndarray]:
    """Matrices divided by the mean of their diagonals, without those that vanish."""
    return [matrix / (np.trace(matrix) / len(matrix)) for matrix in matrices if np.trace(matrix) > 0]
