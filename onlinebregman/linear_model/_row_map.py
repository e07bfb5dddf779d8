"""Maps of rows that are learned with the model: columns standardised online, or indicators of their bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from .._kernels.rows.one_hot import OneHotMap
from .._kernels.rows.rows import RowMap
from .._kernels.rows.standardizer import Standardizer
from .._kernels.rows.thresholds import ThresholdMap, parts_of_pairs
from .._online.estimator import Examples
from .._online.export import ToOnnxMixin, ToSklearnMixin
from .._online.new_features import GrowsFeatures
from .._online.scores import Scores
from .._online.validation import read_only

# Most pairs of columns with thresholds="pairwise"; if there are more, as many are drawn.
PAIRS = 64


class MapsRows(GrowsFeatures, ToSklearnMixin, ToOnnxMixin):
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
    _sklearn_form = _onnx_form = "linear"
    _takes_sparse = True
    _allow_nan: bool
    # Of a member of a mixture: a mask of the columns that hold numbers of categories, and how many categories of all of
    # them together get an indicator
    _categorical: tuple[np.ndarray, int] | None = None
    _n_missing = 0  # the same of the columns of numbers: how many of them get an indicator of missing ones

    @property
    def _adapts(self) -> bool:
        """Whether each weight has a rate of its own, for rare indicators as well, and the model starts at 0."""
        raise NotImplementedError

    def _begin_map(self, X) -> tuple[RowMap | None, int]:
        """The map of rows like these, with which learning starts, and the number of columns that are learned."""
        row_map = self._make_row_map(X)
        return row_map, X.shape[1] if row_map is None else row_map.n_outputs

    def _like_first_rows(self) -> Examples:
        learner = self._fitted_learner()
        X = np.zeros((1, self.n_features_in_), np.float32 if getattr(self, "_single", False) else np.float64)
        sparse = isinstance(learner.row_map, Standardizer) and not learner.row_map.centred
        return Examples(csr_array(X) if sparse else X, np.zeros((1, *learner.coef.shape[:-1])))

    def _make_row_map(self, X) -> RowMap | None:
        """A map; None: rows are learned as they are."""
        n, allow_nan = X.shape[1], self._allow_nan
        if isinstance(self._thresholds, str):  # an array would be compared with a name element by element
            pairs = parts_of_pairs(n, PAIRS, 1, 0)[0] if self._thresholds == "pairwise" and n > 1 else ()
            return ThresholdMap(n, pairs, allow_nan=allow_nan)
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

    def _scores(self, of: Callable[..., Scores] = Scores.of) -> Scores:
        """The scores as a function of the row, or of its image (`Scores.of_images`)."""
        return of(self._fitted_learner())

    def _linear_model(self) -> tuple[np.ndarray, Any]:
        """Weights and intercepts in units of the data."""
        learner = self._fitted_learner()
        if learner.row_map is None:
            return learner.coef, learner.intercept
        return learner.row_map.in_units_of_data(learner.coef, learner.intercept)

    def _standardizer(self) -> Standardizer:
        row_map = self._fitted_learner().row_map
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
