"""Adapters from rows as dicts to rows as vectors: a column for each feature, in the order in which they appear."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Mapping
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor

from .._online.docs import DocumentedMixin
from .._online.labels import check_classes
from ..pipeline import adds_classes

try:
    from river import base
except ImportError as error:
    raise ImportError('onlinebregman.river requires the package river: pip install "onlinebregman[river]"') from error

Features = Mapping[Any, Any]


class RiverAdapter(DocumentedMixin):
    """An estimator that learns dicts from names of features to numbers.

    Parameters
    ----------
    estimator : estimator
        An unfitted estimator with `partial_fit`; a clone of it learns.
    n_features : int or None
        Number of columns of the rows that the estimator gets. Features get columns in the order in which they appear;
        the others are reserved for features that appear later, and hold `missing` until then, which changes nothing
        where weights start at 0. None: the features of the first row. An estimator with
        handle_new_features="add" gets more columns when they are needed.
    missing : float
        The value of features that a row does not have; NaN for estimators that know missing values.
    sparse : bool
        Give the estimator sparse rows, of the features that a row has, so that `n_features` may be large.
    """

    def __init__(
        self, estimator: BaseEstimator, n_features: int | None = None, missing: float = 0.0, sparse: bool = False
    ) -> None:
        self.estimator, self.n_features, self.missing, self.sparse = estimator, n_features, missing, sparse
        if sparse and missing != 0:
            raise ValueError(f"missing must be 0 with sparse=True; got {missing!r}.")
        self.fitted: Any = clone(estimator)
        self.columns: dict[Any, int] = {}
        self._row = np.full((1, n_features or 0), float(missing))
        self._values: Callable | None = None  # from a dict to the values of all known features
        self._began = False

    def learn_one(self, x: Features, y: Any = None, w: float = 1.0) -> None:
        """Learn a row x with the target or label y and the weight w."""
        columns, before = self.columns, (self.fitted, self._row)
        try:
            row = self._row if self._packs(x) else self._filled(x, columns := self._with_new(x))
            self._learn(row, y, {} if w == 1.0 else {"sample_weight": [w]})
        except BaseException:
            self.fitted, self._row = before  # features of refused rows get no columns
            raise
        if columns is not self.columns:
            self.columns = columns
            self._values = itemgetter(*columns) if len(columns) > 1 and not self.sparse else None

    def _learn(self, row: Any, y: Any, options: dict[str, Any]) -> None:
        self.fitted.partial_fit(row, y, **options)
        self._began = True

    def _vector(self, x: Features) -> Any:
        """A row to predict for, in memory that is used again."""
        return self._row if self._packs(x) else self._filled(x, self.columns)

    def _packs(self, x: Features) -> bool:
        """Write a row of all known features into the memory for rows; False if it is not one of numbers."""
        if self._values is None or len(x) != len(self.columns):
            return False
        try:
            struct.pack_into(f"{len(x)}d", self._row.data, 0, *self._values(x))
        except (KeyError, struct.error, OverflowError):
            return False
        return True

    def _filled(self, x: Features, columns: dict[Any, int]) -> Any:
        """A dict as a row; features without a column do not count."""
        known = sorted((columns[name], _number(value, name)) for name, value in x.items() if name in columns)
        places, values = [place for place, _ in known], [value for _, value in known]
        if self.sparse:
            return csr_array((values, places, [0, len(known)]), (1, self._row.shape[1]), dtype=np.float64)
        self._row[:] = self.missing
        self._row[0, places] = values
        return self._row

    def _with_new(self, names: Features) -> dict[Any, int]:
        """The columns of known features, and of new ones; there is memory for a row of all of them."""
        new = [name for name in names if name not in self.columns]
        count, width = len(self.columns) + len(new), self._row.shape[1] if self._began else self.n_features
        if width is not None and count > width:
            if getattr(self.estimator, "handle_new_features", "error") != "add":
                raise ValueError(
                    f"There is no column for the feature {new[width - len(self.columns)]!r}: the estimator has learned "
                    f"rows of {width} columns. Give n_features, the number of all features that may appear, when the "
                    "model is made, or use an estimator with handle_new_features='add'."
                )
            if self._began:
                self.fitted = copy.copy(self.fitted)
                self.fitted._add_features(count)
        if self._row.shape[1] != max(count, width or 0):
            self._row = np.full((1, count), float(self.missing))
        return self.columns | dict(zip(new, range(len(self.columns), count), strict=True)) if new else self.columns


def _number(value: Any, name: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"The feature {name!r} must be a number; got {value!r}. Encode it first, with river's OneHotEncoder."
        ) from None


class RiverRegressor(RiverAdapter, base.Regressor):
    """A regressor as a model of river.

    Parameters
    ----------
    {estimator, n_features, missing, sparse}
    """

    def _learn(self, row: Any, y: Any, options: dict[str, Any]) -> None:
        super()._learn(row, np.array([float(y) if isinstance(y, Real) else y]), options)

    def predict_one(self, x: Features) -> float:
        """Predict the target of a row; 0 before the first one."""
        return float(self.fitted.predict(self._vector(x))[0]) if self._began else 0.0


class RiverClassifier(RiverAdapter, base.Classifier):
    """A classifier as a model of river.

    Parameters
    ----------
    {estimator}
    classes : sequence of labels or None
        All labels. None: False and True, or, for an estimator with handle_unknown="add", those that appear.
    {n_features, missing, sparse}
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        classes: ArrayLike | None = None,
        n_features: int | None = None,
        missing: float = 0.0,
        sparse: bool = False,
    ) -> None:
        super().__init__(estimator, n_features, missing, sparse)
        self.classes = classes
        self._adds = classes is None and adds_classes(estimator)
        self._labels = [] if self._adds else [False, True] if classes is None else check_classes(classes).tolist()

    @property
    def _multiclass(self) -> bool:
        return self._adds or len(self._labels) > 2

    def _learn(self, row: Any, y: Any, options: dict[str, Any]) -> None:
        if not (self._began or self._adds):
            options = options | {"classes": self._labels}
        super()._learn(row, np.array([y]), options)
        self._labels = self.fitted.classes_.tolist() if self._adds else self._labels

    def predict_proba_one(self, x: Features) -> dict[Any, float]:
        """Predict the probabilities of the labels of a row; equal ones before the first row."""
        if not hasattr(self.fitted, "predict_proba"):
            raise NotImplementedError
        if not self._began:
            return {label: 1.0 / len(self._labels) for label in self._labels}
        return dict(zip(self._labels, self.fitted.predict_proba(self._vector(x)).tolist()[0], strict=True))

    def predict_one(self, x: Features) -> Any:
        """Predict the label of a row; None as long as there are no labels."""
        if self._began:
            return self.fitted.predict(self._vector(x)).tolist()[0]
        return self._labels[0] if self._labels else None


class RiverAnomalyDetector(RiverAdapter, base.AnomalyDetector):
    """A density, or another estimator with `score_samples`, as an anomaly detector of river.

    Parameters
    ----------
    {estimator, n_features, missing, sparse}
    """

    def _learn(self, row: Any, y: Any, options: dict[str, Any]) -> None:
        super()._learn(row, None, options)

    def score_one(self, x: Features) -> float:
        """Score a row: minus `score_samples`, larger for rows that are more unusual; 0 before the first row."""
        return -float(self.fitted.score_samples(self._vector(x))[0]) if self._began else 0.0


def to_river(estimator: BaseEstimator, **options: Any) -> RiverAdapter:
    """An estimator as a model of river: a classifier, a regressor, or an anomaly detector if it has `score_samples`.

    Parameters
    ----------
    estimator : estimator
        An unfitted estimator with `partial_fit`; a clone of it learns.
    **options : dict
        Parameters of the adapter: `RiverClassifier`, `RiverRegressor` or `RiverAnomalyDetector`.

    Returns
    -------
    model : RiverAdapter
        The model: `fitted` is the estimator that learns, `columns` the column of each feature.

    Examples
    --------
    >>> from onlinebregman import ForwardClassifier
    >>> from onlinebregman.river import to_river
    >>> model = to_river(ForwardClassifier(standardize=True), classes=["cat", "dog"])
    >>> for x, y in [({"legs": 4, "sound": 0}, "cat"), ({"legs": 4, "sound": 1}, "dog")] * 20:
    ...     p = model.predict_proba_one(x)
    ...     model.learn_one(x, y)
    >>> model.predict_one({"legs": 4, "sound": 1})
    'dog'
    """
    if hasattr(estimator, "partial_fit"):
        if is_classifier(estimator):
            return RiverClassifier(estimator, **options)
        if is_regressor(estimator):
            return RiverRegressor(estimator, **options)
        if hasattr(estimator, "score_samples"):
            return RiverAnomalyDetector(estimator, **options)
    raise ValueError(
        "to_river takes a classifier or regressor with partial_fit, or an estimator with score_samples; got "
        f"{estimator!r}."
    )
