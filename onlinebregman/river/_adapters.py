"""Adapters from rows as dicts to rows as vectors: a column for each feature, in the order in which they appear."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from struct import error as StructError
from struct import pack_into
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone

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
        where weights start at 0. None: the features of the first row, or block of rows. An estimator with
        handle_new_features="add" gets more columns when they are needed.
    missing : float
        The value of features that a row does not have; NaN for estimators that know missing values.
    sparse : bool
        Give the estimator sparse rows, of the features that a row has, so that `n_features` may be large.

    Attributes
    ----------
    fitted : estimator
        The estimator that learns.
    columns : dict
        The column of each feature.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        n_features: int | None = None,
        missing: float = 0.0,
        sparse: bool = False,
    ) -> None:
        self.estimator, self.n_features, self.missing, self.sparse = estimator, n_features, missing, sparse
        if sparse and missing != 0:
            raise ValueError(f"missing must be 0 with sparse=True; got {missing!r}.")
        self.fitted: Any = clone(estimator)
        self.columns: dict[Any, int] = {}
        self._row = self._blank(n_features or 0)
        self._values: Callable | None = None  # from a dict to the values of all known features
        self._format = ""  # of these values in memory
        self._target = np.empty(1)  # of one row
        self._began = False

    def learn_one(self, x: Features, y: Any = None, w: float = 1.0) -> None:
        """Learn a row.

        Parameters
        ----------
        x : dict
            Values by the names of features.
        y : number or label
            The target.
        w : float
            Weight of the row.
        """
        if self._packs(x):
            self._learn(self._row, y, w)
        else:
            with self._growing():
                self._learn(self._filled(x, True), y, w)

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn a block of rows, one after the other.

        Parameters
        ----------
        X : data frame of pandas or polars
            Values, with the names of features as columns.
        y : series or array-like
            Targets.
        """
        with self._growing():
            self._learn(self._rows(X, True), None if y is None else np.asarray(y), 1.0)

    def _learn(self, rows: Any, y: Any, w: float) -> None:
        """Let the estimator learn a row, or a block with an array of targets."""
        raise NotImplementedError

    def _partial_fit(self, rows: Any, w: float, *targets: Any, **options: Any) -> None:
        if w == 1.0:
            self.fitted.partial_fit(rows, *targets, **options)
        else:
            self.fitted.partial_fit(rows, *targets, sample_weight=[w], **options)
        self._began = True

    @contextmanager
    def _growing(self) -> Iterator[None]:
        """If rows are refused, their new features get no columns."""
        before = [(each, vars(each).copy()) for each in (self, self.fitted)]
        columns = self.columns
        try:
            yield
        except BaseException:
            if self.columns is not columns:  # the learner, too, is another one if it got features
                for each, attributes in before:
                    vars(each).clear()
                    vars(each).update(attributes)
                self._row[:] = self.missing
            raise

    def _blank(self, width: int) -> np.ndarray:
        """Memory for a row, of floats also if `missing` is an int."""
        return np.full((1, width), self.missing, dtype=np.float64)

    def _vector(self, x: Features) -> Any:
        """A row to predict for as a vector; a dense one in memory that is used again."""
        return self._row if self._packs(x) else self._filled(x, False)

    def _packs(self, x: Features) -> bool:
        """Write a row of all known features into the memory for rows; False if it is not one of numbers."""
        if self._values is None or len(x) != len(self.columns):
            return False
        try:
            pack_into(self._format, self._row.data, 0, *self._values(x))
        except (KeyError, StructError, OverflowError):
            return False
        return True

    def _filled(self, x: Features, learning: bool) -> Any:
        """A row of any features as a vector."""
        places = self._places(x, learning)
        values = [_number(x[name], name) for name in places]
        if self.sparse:
            columns = np.fromiter(places.values(), dtype=np.intp)
            order = columns.argsort()
            return csr_array((np.array(values)[order], columns[order], [0, len(order)]), (1, self._row.shape[1]))
        self._row[:] = self.missing
        self._row[0, list(places.values())] = values
        return self._row

    def _rows(self, X: Any, learning: bool) -> Any:
        """A data frame as an array."""
        names = list(X.columns)
        places = self._places(dict.fromkeys(names), learning)
        rows = np.full((len(X), self._row.shape[1]), self.missing)
        for name, place in places.items():
            try:
                rows[:, place] = X[name].to_numpy()
            except (TypeError, ValueError, OverflowError):
                rows[:, place] = [_number(value, name, f" in row {row}") for row, value in enumerate(X[name])]
        return csr_array(rows) if self.sparse else rows

    def _places(self, x: Features, learning: bool) -> dict[Any, int]:
        """The columns of the features of a row; new ones get a column if it is learned, and do not count otherwise."""
        columns = self.columns  # never changed in place
        new = [name for name in x if name not in columns]
        if new and learning:
            width = self._row.shape[1] or len(new)
            if len(columns) + len(new) > width and getattr(self.estimator, "handle_new_features", "error") == "add":
                width = len(columns) + len(new)
                if self._began:
                    self.fitted._add_features(width)
                self._row = self._blank(width)
            if len(columns) + len(new) > width:
                late = new[width - len(columns)]
                raise ValueError(
                    f"There is no column for the feature {late!r}: the estimator has learned rows of {width} columns. "
                    "Give n_features, the number of all features that may appear, when the model is made, or use an "
                    "estimator with handle_new_features='add'."
                )
            if not self._row.shape[1]:
                self._row = self._blank(width)
            self.columns = columns = columns | dict(zip(new, range(len(columns), width), strict=False))
            if len(columns) > 1 and not self.sparse:
                self._values, self._format = itemgetter(*columns), f"{len(columns)}d"
        return {name: columns[name] for name in x if name in columns}


def _number(value: Any, name: Any, where: str = "") -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"The feature {name!r} must be a number; got {value!r}{where}. Encode it first, with river's OneHotEncoder."
        ) from None


def _like(X: Any, kind: str, values: Any) -> Any:
    """A series or data frame of the library of X, with its index."""
    make = getattr(sys.modules[type(X).__module__.partition(".")[0]], kind)
    return make(values, index=X.index) if hasattr(X, "index") else make(values)


class RiverRegressor(RiverAdapter, base.MiniBatchRegressor):
    """A regressor as a model of river.

    Parameters
    ----------
    {estimator, n_features, missing, sparse}

    Attributes
    ----------
    {fitted, columns}

    See Also
    --------
    to_river : Chooses the adapter.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from onlinebregman import ParameterFreeRegressor
    >>> from onlinebregman.river import RiverRegressor
    >>> model = RiverRegressor(ParameterFreeRegressor())
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> print(error.get() < 0.25)
    True
    """

    def _learn(self, rows: Any, y: Any, w: float) -> None:
        if type(y) is not np.ndarray:
            try:
                pack_into("d", self._target.data, 0, y)
                y = self._target
            except (StructError, OverflowError):
                y = [y]  # which the estimator refuses
        self._partial_fit(rows, w, y)

    def predict_one(self, x: Features) -> float:
        """Predict the target of a row; 0 before the first one.

        Parameters
        ----------
        x : dict
            Values by the names of features.

        Returns
        -------
        y : float
            The prediction.
        """
        return float(self.fitted.predict(self._vector(x))[0]) if self._began else 0.0

    def predict_many(self, X: Any) -> Any:
        """Predict the targets of a block of rows.

        Parameters
        ----------
        X : data frame of pandas or polars
            Values, with the names of features as columns.

        Returns
        -------
        y : series
            The predictions.
        """
        return _like(X, "Series", self.fitted.predict(self._rows(X, False)) if self._began else np.zeros(len(X)))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from .. import ForwardRegressor, MirrorDescentRegressor

        yield {"estimator": ForwardRegressor(), "n_features": 30}
        yield {"estimator": MirrorDescentRegressor(), "n_features": 10_000, "sparse": True}


class RiverClassifier(RiverAdapter, base.MiniBatchClassifier):
    """A classifier as a model of river.

    Parameters
    ----------
    {estimator}
    classes : sequence of labels or None
        All labels. None: False and True, or, for an estimator with handle_unknown="add", those that appear.
    {n_features, missing, sparse}

    Attributes
    ----------
    {fitted, columns}

    See Also
    --------
    to_river : Chooses the adapter.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from onlinebregman import ParameterFreeClassifier
    >>> from onlinebregman.river import RiverClassifier
    >>> model = RiverClassifier(ParameterFreeClassifier())
    >>> accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> print(accuracy.get() > 0.88)
    True
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
        self._labels = (
            [False, True]
            if classes is None and not self._adds
            else check_classes([] if classes is None else classes).tolist()
        )
        self._codes: dict[Any, np.ndarray] = {}
        self._predict_proba = getattr(self.fitted, "predict_proba", None)  # bound once, which takes longer than a call

    @property
    def _adds(self) -> bool:
        return self.classes is None and adds_classes(self.estimator)

    @property
    def _multiclass(self) -> bool:
        return self._adds or len(self._labels) > 2

    def _learn(self, rows: Any, y: Any, w: float) -> None:
        if type(y) is not np.ndarray:
            known = self._codes.get(y)
            y = np.array([y]) if known is None else known
        if self._began or self._adds:
            self._partial_fit(rows, w, y)
        else:
            self._partial_fit(rows, w, y, classes=self._labels)
        if len(y) == 1:
            self._codes[y.tolist()[0]] = y

    def predict_proba_one(self, x: Features) -> dict[Any, float]:
        """Predict the probabilities of the labels of a row; equal ones before the first row.

        Parameters
        ----------
        x : dict
            Values by the names of features.

        Returns
        -------
        probabilities : dict
            Of each label.
        """
        if self._predict_proba is None:
            raise NotImplementedError
        if not self._began:
            return {label: 1.0 / len(self._labels) for label in self._labels}
        p = self._predict_proba(self._vector(x)).tolist()[0]
        if len(self._labels) != len(p):
            self._labels = self.fitted.classes_.tolist()
        return dict(zip(self._labels, p, strict=True))

    def predict_one(self, x: Features) -> Any:
        """Predict the label of a row; None as long as there are no labels.

        Parameters
        ----------
        x : dict
            Values by the names of features.

        Returns
        -------
        y : label
            The label.
        """
        if self._began:
            return self.fitted.predict(self._vector(x)).tolist()[0]
        return self._labels[0] if self._labels else None

    def predict_proba_many(self, X: Any) -> Any:
        """Predict the probabilities of the labels of a block of rows.

        Parameters
        ----------
        X : data frame of pandas or polars
            Values, with the names of features as columns.

        Returns
        -------
        probabilities : data frame
            With a column for each label, named by it; in polars, where names are strings, by `str(label)`.
        """
        if self._predict_proba is None:
            raise NotImplementedError
        if self._began:
            labels, p = self.fitted.classes_.tolist(), self._predict_proba(self._rows(X, False))
        else:
            labels, p = self._labels, np.full((len(X), len(self._labels)), 1.0 / max(1, len(self._labels)))
        names = labels if hasattr(X, "index") else map(str, labels)
        return _like(X, "DataFrame", dict(zip(names, p.T, strict=True)))

    def predict_many(self, X: Any) -> Any:
        """Predict the labels of a block of rows.

        Parameters
        ----------
        X : data frame of pandas or polars
            Values, with the names of features as columns.

        Returns
        -------
        y : series
            The labels.
        """
        labels = [self.predict_one({})] * len(X) if not self._began else self.fitted.predict(self._rows(X, False))
        return _like(X, "Series", labels)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from .. import ForwardClassifier, MirrorDescentClassifier

        yield {"estimator": ForwardClassifier(handle_unknown="add"), "n_features": 30}
        yield {"estimator": MirrorDescentClassifier(), "n_features": 10_000, "sparse": True}


class RiverAnomalyDetector(RiverAdapter, base.AnomalyDetector):
    """A density, or another estimator with `score_samples`, as an anomaly detector of river.

    Parameters
    ----------
    {estimator, n_features, missing, sparse}

    Attributes
    ----------
    {fitted, columns}

    See Also
    --------
    to_river : Chooses the adapter.

    Examples
    --------
    >>> from onlinebregman import OnlineGaussian
    >>> from onlinebregman.river import RiverAnomalyDetector
    >>> model = RiverAnomalyDetector(OnlineGaussian())
    >>> for i in range(50):
    ...     model.learn_one({"width": i % 5, "height": i % 7})
    >>> model.score_one({"width": 20, "height": 3}) > model.score_one({"width": 2, "height": 3})
    True
    """

    def _learn(self, rows: Any, y: Any, w: float) -> None:
        self._partial_fit(rows, w)

    def score_one(self, x: Features) -> float:
        """Score a row: minus `score_samples`, larger for rows that are more unusual; 0 before the first row.

        Parameters
        ----------
        x : dict
            Values by the names of features.

        Returns
        -------
        score : float
            The score.
        """
        return -float(self.fitted.score_samples(self._vector(x))[0]) if self._began else 0.0

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from .. import OnlineGaussian

        yield {"estimator": OnlineGaussian(), "n_features": 30}
