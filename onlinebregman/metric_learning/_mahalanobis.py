"""Distances under a learned matrix W, and a map to a space in which they are Euclidean."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from .._online.estimator import LearnsMatrix
from .._online.export import to_sklearn
from .._online.factors import factor
from .._online.types import MatrixLike
from .._online.validation import check_learned, check_rows, dense, finite, read_only
from .._sklearn_compat import Interval
from ._examples import check_flat, look_up, wrong_dimension
from ._thresholds import ThresholdMixin, rows_of_pairs


class Factor:
    """The factor L of the last metric that was asked for, as W may change with every pair; copies do not include it."""

    def __init__(self) -> None:
        self.known: tuple[np.ndarray, np.ndarray] | None = None  # one object, as threads replace it

    def __reduce__(self):
        return Factor, ()

    def of(self, metric: np.ndarray) -> np.ndarray:
        """L with W = L'L, read-only."""
        known = self.known
        if known is None or not np.array_equal(known[0], metric):
            components = factor(metric)
            components.flags.writeable = False
            known = self.known = metric, components
        return known[1]


class MahalanobisTransformer(
    ThresholdMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, LearnsMatrix, BaseEstimator
):
    """Distances sqrt(z'Wz) of rows. A subclass has the parameters below, learns W and defines `_metric`.

    Parameters
    ----------
    n_components : int or None
        Number of leading directions kept in `components_` and `transform`. None: all. Distances are always those of the
        full metric.
    preprocessor : array-like of shape (n_rows, n_features), callable or None
        Rows by number: where methods expect rows, or pairs, triplets or quadruplets of them, they then also accept
        numbers of its rows. A function of an array of n numbers, or other keys, returns their rows, of shape (n,
        n_features).

    Attributes
    ----------
    components_ : ndarray of shape (n_features, n_features) or (n_components, n_features)
        L with W = L'L; its rows are the principal directions, longest first.
    threshold_ : float or None
        Distance up to which pairs are similar, see `calibrate_threshold`; None before it is known.
    """

    _parameter_constraints: dict = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "preprocessor": ["array-like", callable, None],
    }
    _read_at_each_call: tuple[str, ...] = ("n_components", "preprocessor")
    preprocessor: ArrayLike | Callable[[np.ndarray], ArrayLike] | None

    _takes_sparse = True
    to_sklearn, _sklearn_form = to_sklearn, "metric"
    _factor: Factor  # a new one in each new model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _metric(self) -> np.ndarray:
        """W."""
        raise NotImplementedError

    def _begin_metric(self) -> None:
        """Bind what belongs to a new metric."""
        self._factor, self._threshold = Factor(), None

    def _by_number(self, X):
        """Rows; those of the preprocessor if X is a vector of numbers."""
        if self.preprocessor is None and isinstance(X, np.ndarray) and X.ndim == 1:
            remedy = (
                "Expected 2D array, got 1D array: one row is X.reshape(1, -1), and row numbers need `preprocessor`."
            )
            raise wrong_dimension(self, X, 2, "points", remedy)
        return X if self.preprocessor is None or np.ndim(X) != 1 else look_up(self.preprocessor, X)

    def _queried(self, X) -> np.ndarray:
        """Validated rows of a fitted model."""
        check_learned(self)
        return check_rows(self, self._by_number(X), reset=False)

    @finite("mapping")
    def transform(self, X: MatrixLike) -> np.ndarray:
        """Map rows to a space in which the learned distance is Euclidean: X @ components_.T.

        Parameters
        ----------
        {X}

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features) or (n_samples, n_components)
            The mapped rows; with `n_components` only along the leading directions.
        """
        return self._queried(X) @ self.components_.T

    @finite("squared distance")
    def predict(self, Z: MatrixLike) -> np.ndarray:
        """Squared distances z'Wz.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_features)
            Differences of two rows each.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            The squared distances.
        """
        check_learned(self)
        check_flat(Z, "give the differences of the two rows of each pair: pairs[:, 0] - pairs[:, 1]")
        return self._squared_lengths(dense(check_rows(self, Z, reset=False)))

    @finite("distance")
    def pair_distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Distances (not squared) between corresponding rows of X and Y, or of the pairs X.

        Parameters
        ----------
        {X, Y}

        Returns
        -------
        {distances}
        """
        first, second = rows_of_pairs(self, X, Y)
        return np.sqrt(self._squared_lengths(first - second))

    @finite("distance")
    def pairwise_distances(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Distances (not squared) between all rows of X and all rows of Y.

        For `metric="precomputed"` of scikit-learn's neighbours and clusterers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples_X, n_features)
            Rows.
        Y : {array-like, sparse matrix} of shape (n_samples_Y, n_features) or None, default=None
            Rows; X itself if None.

        Returns
        -------
        distances : ndarray of shape (n_samples_X, n_samples_Y)
            The distances.
        """
        check_learned(self)
        L = self._all_components()
        X = self._queried(X) @ L.T
        return cdist(X, X if Y is None else self._queried(Y) @ L.T)

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """The learned matrix W, shape (n_features, n_features): symmetric positive semidefinite; a copy."""
        check_learned(self)
        return self._metric().copy()

    def get_metric(self) -> Mahalanobis:
        """The learned distance as a function of two rows, for `metric=` of scikit-learn's neighbours and clusterers."""
        check_learned(self)
        return Mahalanobis(self._all_components())

    @read_only
    def components_(self) -> np.ndarray:
        """L with W = L'L, shape (n_features, n_features); rows are the principal directions, longest first.

        With `n_components` only that number of them.
        """
        check_learned(self)
        components = self._all_components()
        self._check_n_components(components.shape[1])
        return components[: self.n_components]

    def _squared_lengths(self, Z: np.ndarray) -> np.ndarray:
        return np.maximum(np.einsum("ij,ij->i", Z @ self._metric(), Z), 0.0)

    def _all_components(self) -> np.ndarray:
        return self._factor.of(self._metric())

    def _check_n_components(self, n_features: int) -> None:
        if self.n_components is not None and self.n_components > n_features:
            raise ValueError(
                f"Invalid n_components, must be in [1, {n_features}], the number of features of X, or None for all of "
                f"them; got {self.n_components}."
            )

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_ if self.n_components is None else self.n_components


class Mahalanobis:
    """Distance of two rows under W = L'L, as a picklable function.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_features)
        The factor L.

    Called with `squared=True`, it returns the squared distance.
    """

    def __init__(self, components: np.ndarray) -> None:
        self.components = components

    def __call__(self, a: ArrayLike, b: ArrayLike, squared: bool = False) -> float:
        a, b = (np.atleast_1d(np.squeeze(np.asarray(row))) for row in (a, b))
        if not a.shape == b.shape == self.components.shape[1:]:
            raise ValueError(
                f"a and b must be two rows of {self.components.shape[1]} numbers; got shapes {a.shape} and {b.shape}."
            )
        mapped = self.components @ (a - b)
        return float(mapped @ mapped if squared else np.linalg.norm(mapped))
