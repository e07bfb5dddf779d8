"""Indicators of bins that are learned online."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import TransformerMixin
from sklearn.utils import Tags, check_random_state

from .._kernels.learners.mapping import MapLearner
from .._kernels.rows.thresholds import BINS, BINS_OF_PAIRS, ThresholdMap, parts_of_pairs
from .._online.estimator import Call, Examples, OnlineEstimator
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_learned, check_query, check_rows, read_only
from .._sklearn_compat import Interval, check_feature_names_in, fit_context


class ThresholdFeatures(TransformerMixin, OnlineEstimator):
    """Indicators of the bins of columns and of pairs of columns, which are learned online.

    Every column has 6, 12 and 64 bins, and every pair of columns 6 x 6 and 12 x 12. A row is mapped to the indicators
    of the bins in which it lies: a linear model of them is a sum of step functions of one column, and of two. In
    contrast to the bins of :class:`~sklearn.preprocessing.KBinsDiscretizer`, these are learned from a stream, and keep
    their numbers when they are refined, so that the weights of a model that learns online keep their meaning.

    Parameters
    ----------
    n_pairs : int
        Most pairs of columns. If there are more, as many are drawn; 0: single columns only.
    sparse_output : bool
        Return a CSR matrix, of which a row has 3 nonzeros for each column and 2 for each pair. False: a dense array, as
        `set_output` needs it.
    {shuffle}
    random_state : int, RandomState instance or None
        For drawing the pairs, and for shuffling. Read when learning starts, as `n_pairs`.

    Attributes
    ----------
    pairs_ : ndarray of shape (n_pairs, 2)
        The numbers of the columns of each pair.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    ParameterFreeRegressor, ParameterFreeClassifier : Mixtures of models, some of which learn such indicators.
    MirrorDescentRegressor, MirrorDescentClassifier : Learn such indicators with `thresholds`.
    sklearn.preprocessing.KBinsDiscretizer : Bins of all rows at once.

    Notes
    -----
    A bin is an interval between values of its column. At a resolution of b bins, each of the first b different values
    gets a bin of its own, so that columns of few values, or of numbers of categories, have one bin for each value. When
    there are more, the bins are the intervals that begin at these values. After 4, 8, 16, ... values, bins that hold
    more than twice as many values as two neighbours together are split at their median, and the neighbours are united;
    the numbers of values are those in a uniform sample of 256 values of the column. Of two united bins, the one that
    held more values keeps its number, and the other number is that of the upper half of the split bin.

    Bins depend on the order of the values of their column alone: any increasing function of a column gives the same
    indicators. NaN is a missing value, which has a bin of its own at each resolution; sparse rows have no NaN, and
    zeros where they have no value.

    Memory is 7 kilobytes per column, and time linear in the number of columns and pairs: 1.2 microseconds for a row
    with 20 columns.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ImplicitGDRegressor, ThresholdFeatures
    >>> from onlinebregman.pipeline import make_online_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = np.where(X[:, 0] > 0.5, X[:, 1] > 0, 3.0)
    >>> model = make_online_pipeline(ThresholdFeatures(), ImplicitGDRegressor())
    >>> for start in range(0, 2000, 100):
    ...     model = model.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> print(f"{model.score(X[2000:], y[2000:]):.2f}")
    0.95

    Each column has its bins at three resolutions, followed by those of the pairs:

    >>> features = ThresholdFeatures(n_pairs=0, shuffle=False).fit([[1.5], [2.5], [7.0]])
    >>> features.get_feature_names_out()[:4]
    array(['x0 = 1.5 (6)', 'x0 = 2.5 (6)', 'x0 = 7 (6)', 'x0 unused 3 (6)'],
          dtype=object)
    >>> features.transform([[2.5], [np.nan]]).nonzero()[1]
    array([ 1,  8, 21,  6, 19, 84], dtype=int32)
    """

    _takes_sparse = True
    _parameter_constraints: dict = {
        "n_pairs": [Interval(Integral, 0, None, closed="left")],
        "sparse_output": ["boolean"],
    }
    _read_at_each_call = ("sparse_output",)
    _allow_nan = True
    _unmergeable = "its bins follow the values of one stream"

    def __init__(
        self, *, n_pairs: int = 64, sparse_output: bool = True, shuffle: bool = True, random_state: RandomState = 0
    ) -> None:
        self._set_arguments(locals())

    n_pairs: int
    sparse_output: bool

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Learn the bins from scratch: one pass over the rows, in random order if `shuffle`.

        Parameters
        ----------
        {X}
        y : None
            Ignored.

        Returns
        -------
        {self}
        """
        return self._fit(X, y)

    def partial_fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Learn more rows in their order. The bins do not depend on how a stream is split into calls.

        Parameters
        ----------
        {X, y}

        Returns
        -------
        {self}
        """
        return self._partial_fit(X)

    def transform(self, X: MatrixLike) -> csr_matrix | np.ndarray:
        """The indicators of rows.

        Parameters
        ----------
        {X}

        Returns
        -------
        X_new : {CSR matrix, ndarray} of shape (n_samples, n_features_out)
            1 for the bins in which a row lies, and 0 for all others.
        """
        X = check_query(self, X)
        row_map = self._learner.row_map
        columns = row_map.transform(X)
        n, n_ones = columns.shape
        ends = np.arange(n + 1) * n_ones
        ones = csr_matrix((np.ones(columns.size), columns.ravel(), ends), shape=(n, row_map.n_outputs))
        return ones if self.sparse_output else ones.toarray()

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """The values in each bin, as far as they are known now, and in parentheses the number of bins.

        Parameters
        ----------
        input_features : array-like of shape (n_features,), default=None
            Names of the columns; None: those of the rows that were learned.

        Returns
        -------
        names : ndarray of shape (n_features_out,)
            Such as "x0 = 3 (6)", "1.25 <= x0 < 1.5 (12)" or "x0 missing (64)"; for pairs "x0 = 3, x1 < 1.5 (6)". Bins
            that are not in use yet are called "x0 unused 3 (64)". Bounds have as many digits as distinguish them.
        """
        check_learned(self)
        columns = check_feature_names_in(self, input_features)
        bins = [self._names_of_bins(number, name) for number, name in enumerate(columns)]
        names = [f"{each} ({size})" for of in bins for each_of, size in zip(of, BINS, strict=True) for each in each_of]
        for first, second in self.pairs_:
            for left, right, size in zip(bins[first], bins[second], BINS_OF_PAIRS, strict=False):
                names += [f"{one}, {other} ({size})" for one in left for other in right]
        return np.array(names, dtype=object)

    @read_only
    def pairs_(self) -> np.ndarray:
        """The numbers of the columns of each pair, shape (n_pairs, 2)."""
        check_learned(self)
        return self._learner.row_map.pairs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check(self, call: Call, X: MatrixLike, y: Any = None, sample_weight: None = None) -> Examples:
        return Examples(check_rows(self, X, reset=call.first))

    def _begin(self, data: Examples) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        (pairs,) = parts_of_pairs(data.X.shape[1], self.n_pairs, 1, seed)
        row_map = ThresholdMap(data.X.shape[1], pairs, allow_nan=True)
        self._learner = MapLearner(row_map.n_outputs)
        self._learner.map_by(row_map)

    def _learn(self, data: Examples, order: np.ndarray | None = None, *, again: bool = False) -> None:
        self._learner.learn(data.X, order=order)

    def _names_of_bins(self, number: int, name: str) -> list[list[str]]:
        """The names of the bins of a column at each resolution."""
        state = self._learner.row_map.bins.get_state()
        different, numbers, lower = (state[name][number] for name in ("different", "number", "lower"))
        names, start = [], 0
        for size, values in zip(BINS, different, strict=True):
            n = min(size, values)
            edges = lower[start : start + n].tolist()
            if values <= size:
                found = [f"{name} = {repr(value).removesuffix('.0')}" for value in edges]
            else:
                edges = _distinct(edges)
                inner = [f"{left} <= {name} < {right}" for left, right in pairwise(edges[1:])]
                found = [f"{name} < {edges[1]}", *inner, f"{name} >= {edges[-1]}"]
            in_order = dict(zip(numbers[start : start + n].tolist(), found, strict=True))
            names.append([in_order.get(i, f"{name} unused {i}") for i in range(size)] + [f"{name} missing"])
            start += size
        return names


def _distinct(numbers: list[float]) -> list[str]:
    """Increasing numbers with the fewest digits, four or more, that distinguish them."""
    for digits in range(4, 18):
        found = [f"{number:.{digits}g}" for number in numbers]
        if len(set(found)) == len(found):
            break
    return found
