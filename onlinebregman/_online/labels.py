"""Code shared by classifiers on streams: the classes, and the codes of labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._kernels.rows.arrays import as_float64
from .._sklearn_compat import StrOptions
from .containers import check_kind, unmasked
from .estimator import Call, Examples, LifeCycleMixin
from .examples import FitsTargets
from .types import MatrixLike
from .validation import as_own_numbers, check_output_shape, check_rows, check_weights, first_true

_ALL = "give all class labels, or set handle_unknown='add' to add each with its first row"


class GrowsClasses(LifeCycleMixin):
    """What learns numbers of classes: its targets for them, and classes that are added between rows."""

    classes_: np.ndarray
    _multilabel = False  # whether rows have several labels, the columns of an indicator matrix

    if TYPE_CHECKING:

        def _with_classes(self, numbers: list[int]) -> Any:
            """A learner of `classes_`, in which the classes of the present one have these numbers."""

    def _learn(self, data: Any, order: np.ndarray | None = None, **options: Any) -> Any:
        """Learn the rows up to the first one of a new class, add that class, and so on.

        If all rows were predicted together, their classes are added before.
        """
        if not data.new:
            return super()._learn(data, order, **options)
        if options.get("scores") is not None:
            raise ValueError("Scores of rows must be those of the same classes; got rows of new ones.")
        codes, labels = data.classes, [*self.classes_.tolist(), *data.new]
        known = len(labels) - len(data.new)
        seen, firsts = np.unique(codes, return_index=True)
        firsts *= not getattr(self, "_together", False)
        self._copy_learner()
        self._configure()  # the copy, for rows before the first new class
        start = 0
        for begun, end in enumerate([*firsts[seen >= known].tolist(), len(codes)], known):
            if start < end:
                numbers = self._numbers()
                present = np.array([numbers.get(label, 0) for label in labels]).take(codes[start:end])
                super()._learn(self._recoded(data, start, present), np.arange(start, end), **options)
            if begun < len(labels):
                self._add_classes([labels[begun]])
            start = end
        return None

    def _recoded(self, data: Any, start: int, codes: np.ndarray) -> Any:
        """Data without new classes, in which the rows from `start` on have these numbers of classes."""
        some = self._class_targets(codes)
        targets = np.zeros((len(data.classes), *some.shape[1:]))
        targets[start : start + len(codes)] = some
        return replace(data, y=targets, new=())

    def _add_labels(self, labels: Sequence[Any]) -> None:
        """Add classes before the rows of a call."""
        if set(labels) - set(self.classes_.tolist()):
            self._copy_learner()
            self._add_classes(labels)

    def _add_classes(self, labels: Sequence[Any]) -> None:
        """Continue with more classes, the new ones at their prior."""
        before = self.classes_
        self.classes_ = check_classes([*before.tolist(), *labels])
        self._store_targets_of_classes()
        self._renumber(self.classes_.searchsorted(before))

    def _renumber(self, numbers: np.ndarray) -> None:
        """Continue with a learner of `classes_`, in which the present classes have these numbers."""
        self._unbounded = "Bounds are for a run with the same classes, but some were added; call fit with all of them."
        self._learner = self._with_classes(numbers.tolist())
        self._configure()

    def _numbers(self) -> dict[Any, int]:
        """The number of each class."""
        return {label: number for number, label in enumerate(self.classes_.tolist())}

    def _class_targets(self, codes: np.ndarray) -> np.ndarray:
        """The learner's targets for the numbers of classes."""
        return self._targets_of_classes[codes]  # `take` would copy the whole table

    def _make_targets_of_classes(self) -> np.ndarray:
        """The learner's target for each class, one row per class; by default the number of the class.

        For several labels their targets, by default their indicators: where they are absent, and where present.
        """
        n = len(self.classes_)
        return np.eye(2)[:, [1] * n] if self._multilabel else np.arange(n, dtype=np.float64)

    def _store_targets_of_classes(self, table: np.ndarray | None = None) -> None:
        """Store the targets of each class, and a dict from labels to them."""
        self._targets_of_classes = table = self._make_targets_of_classes() if table is None else table
        self._code_of = {label: table[number : number + 1] for number, label in enumerate(self.classes_.tolist())}

    _begin_classes = _store_targets_of_classes  # when `classes_` have been set for the first time

    def __getstate__(self) -> dict[str, Any]:
        whole: Any = super().__getstate__()
        state = dict(whole)
        if state.pop("_code_of", None) is not None:
            state["_targets_of_classes"] = _as_two_targets(state["_targets_of_classes"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        table = state.get("_targets_of_classes")
        if table is not None:
            table = one_against_rest(len(self.classes_), *table) if isinstance(table, tuple) else table
            self._store_targets_of_classes(table)


def one_against_rest(n_classes: int, low: float, high: float) -> np.ndarray:
    """The targets of each class, for learners of one class each: high for its own, low for others.

    It has no memory for each row: rows are parts of one line around the only high.
    """
    line = np.full(2 * n_classes - 1, float(low))
    line[n_classes - 1] = high
    return sliding_window_view(line, n_classes)[::-1]


def _as_two_targets(table: np.ndarray) -> np.ndarray | tuple[float, float]:
    """Low and high of a table `one_against_rest`, which has the square of as many numbers as classes; others as is."""
    if table.ndim == 2 and len(table) > 1 and table.shape[1] == len(table):
        low, high = float(table[0, 1]), float(table[0, 0])
        if np.array_equal(table, one_against_rest(len(table), low, high)):
            return low, high
    return table


class StreamClassifierMixin(GrowsClasses, ClassifierMixin):
    """A classifier whose `classes_` are known from the first call on, or grow with `handle_unknown`.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weights {label: weight} that multiply those of the rows with this label; 1 for labels that are not listed.
        "balanced": n_samples / (n_classes * number of rows with the label), only for `fit`; with `sample_weight` sums
        of weights in place of numbers of rows, as in :func:`~sklearn.utils.class_weight.compute_class_weight`. None: 1.
    handle_unknown : {"error", "add"}
        What to do with labels that are not among the classes. "error": raise an error. "add": add the class, which
        starts at its prior, from its first row of positive weight on; `partial_fit` then needs no `classes`, and adds
        those it gets at once.
    """

    _parameter_constraints: dict = {"class_weight": [StrOptions({"balanced"}), dict, None]}
    _read_at_each_call: tuple[str, ...] = ("class_weight",)
    _fewest_classes = 2
    handle_unknown: Literal["error", "add"] = "error"  # of classifiers without this parameter
    _class_weight: Any = None
    _takes_indicators = False  # whether rows may have several labels

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict the labels of rows.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels: for each row that with the largest score or probability, of several the first in `classes_`. After
            indicators of several labels, those whose scores are positive, as indicators.
        """
        scores = self._class_scores(X)
        if self._multilabel:
            return (scores > 0).astype(np.int64)
        return self.classes_.take(self._largest(scores))

    def _largest(self, scores: np.ndarray) -> np.ndarray:
        """The number of the class with the largest score of each row."""
        return scores[:, 0] > 0 if scores.shape[1] < len(self.classes_) else scores.argmax(axis=1)

    def _class_scores(self, X) -> np.ndarray:
        """Scores of the classes, one column each; or for two classes one column, positive for the second of them."""
        return self.predict_proba(X)

    def _of_labels(self, probabilities: np.ndarray) -> np.ndarray:
        """For several labels their probabilities, from those of the absence and the presence of each."""
        return probabilities[:, 1::2] if self._multilabel else probabilities

    def _class_numbers(self, y: np.ndarray, classes: ArrayLike | None, call: Call) -> np.ndarray:
        """The number of each label's class; sets `classes_` at the start, and later checks that they are the same."""
        if call.first:
            self._set_classes(y, classes, call.partial)
        elif classes is not None:
            labels = check_classes(classes)
            if not np.array_equal(labels, self.classes_):
                raise ValueError(
                    f"classes = {labels.tolist()} is not the same as on the first call to partial_fit, "
                    f"{self.classes_.tolist()}; omit it."
                )
        return self._known_codes(y, _ALL if call.partial else "set warm_start=False to begin again with other classes")

    def _check_indicators(self, y: np.ndarray, classes: ArrayLike | None, call: Call) -> np.ndarray:
        """Indicators of several labels, in {0, 1}; at the start sets `classes_` to the numbers of the columns."""
        if wrong := first_true(~_are_indicators(y)):
            row, column = wrong
            raise ValueError(
                "y should be 1d, or an indicator matrix of 0 and 1 for several labels; got "
                f"{y[row, column : column + 1].tolist()[0]!r} at row {row}, column {column}. For outputs of several "
                "classes each use sklearn.multioutput.MultiOutputClassifier."
            )
        if self._class_weight is not None or self.handle_unknown == "add":
            raise ValueError(
                "y should be 1d with class_weight or handle_unknown='add', which are for classes that exclude each "
                "other; set class_weight=None and handle_unknown='error' for an indicator matrix of several labels."
            )
        columns = np.arange(y.shape[1])
        if call.first:
            self.classes_ = columns
            self._begin_classes()
        else:
            check_output_shape(y, (len(self.classes_),))
        if classes is not None and not np.array_equal(check_classes(classes), columns):
            raise ValueError(
                f"classes must be the numbers of the columns of y, 0 to {len(columns) - 1}, for several labels; got "
                f"{check_classes(classes).tolist()}. Omit it."
            )
        return y.astype(np.intp)

    def _class_targets(self, codes: np.ndarray) -> np.ndarray:
        if self._multilabel:  # of indicators
            return np.where(codes, *self._targets_of_classes[::-1])
        return super()._class_targets(codes)

    def _set_classes(self, y: np.ndarray, classes: ArrayLike | None, partial: bool) -> None:
        if partial and classes is None:
            raise ValueError(f"classes must be passed on the first call to partial_fit; {_ALL}.")
        if not partial:
            check_classification_targets(y)
        self.classes_ = check_classes(classes) if partial else finite_labels(np.unique(y))
        if len(self.classes_) < self._fewest_classes:
            needed = ("one class", "two classes")[self._fewest_classes - 1]
            n_classes = f"{len(self.classes_)} class{'es' * (len(self.classes_) != 1)}"
            raise ValueError(
                f"A classifier needs at least {needed}, but there is {n_classes}: {self.classes_.tolist()}."
            )

    def _known_codes(self, y: np.ndarray, remedy: str) -> np.ndarray:
        """The number of each label's class; an error names the first unknown label."""
        codes, known = self._encode(y)
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(
                f"The label {y[row : row + 1].tolist()[0]!r} at row {row} is not one of the classes "
                f"{self.classes_.tolist()}; {remedy}."
            )
        return codes

    def _check_labels(self, call: Call, X, y, sample_weight=None, classes: ArrayLike | None = None) -> Examples:
        """Validated rows, the numbers of their classes, and weights; at the start sets `classes_` and their targets."""
        X, y = check_rows(
            self,
            X,
            y=y,
            reset=call.first,
            numeric=False,
            multi_output=self._takes_indicators,
            finite=sample_weight is not None,
            any_layout=True,
        )
        if self._takes_indicators:
            y = y if y.ndim == 2 and y.shape[1] > 1 else column_or_1d(y, warn=True)
        if call.first:
            self._multilabel = y.ndim == 2
        elif (y.ndim == 2) != self._multilabel:
            check_output_shape(y, (len(self.classes_),) if self._multilabel else ())
        weights = check_weights(sample_weight, len(y), allow_all_zero=call.partial)
        if self._multilabel:
            return Examples(X, self._class_targets(self._check_indicators(y, classes, call)), weights)
        codes, new = self._numbers_and_new(y, classes, call, weights)
        if self._class_weight is not None:
            of_rows = self._class_weights(codes, weights, call.partial, new).take(codes)
            of_rows = of_rows if weights is None else of_rows * weights
            weights = check_weights(of_rows, len(y), allow_all_zero=call.partial)
        return Examples(X, codes if new else self._class_targets(codes), weights, codes, new)

    # --- classes that appear later ----------------------------------------------------------------------------------

    def _numbers_and_new(
        self, y: np.ndarray, classes: ArrayLike | None, call: Call, weights: np.ndarray | None
    ) -> tuple[np.ndarray, list]:
        """The number of each label's class, and the labels of new classes: see `Examples`.

        At the start sets `classes_`: to those given, or all labels in `fit`, or the first label.
        """
        if self.handle_unknown != "add":
            codes = self._class_numbers(y, classes, call)
            if call.first:
                self._begin_classes()
            return codes, []
        if call.first:
            counted = y if weights is None else y[weights > 0]
            if call.partial and classes is None and not len(counted):
                raise ValueError("The first call must have a row of weight > 0, or all of its labels as `classes`.")
            if not call.partial:
                check_classification_targets(y)
            self.classes_ = check_classes(y if not call.partial else counted[:1] if classes is None else classes)
            self._begin_classes()
        elif classes is not None:
            self._add_labels(check_classes(classes).tolist())
        codes, known = self._encode(y)
        if known.all():
            return codes, []
        labels = self.classes_.tolist()
        late = list(dict.fromkeys(y[~known if weights is None else ~known & (weights > 0)].tolist()))
        check_classes([*labels, *late])
        if not call.partial and (self._shuffles() or hasattr(self, "max_iter")):  # in another order, or repeatedly
            self._add_labels(late)
            labels, late = self.classes_.tolist(), []
        numbers = {label: number for number, label in enumerate([*labels, *late])}
        codes = np.array([numbers.get(label, 0) for label in y.tolist()], dtype=np.intp)
        return codes if weights is None else np.where((weights > 0) | (codes < len(labels)), codes, 0), late

    def _class_weights(
        self, codes: np.ndarray, sample_weight: np.ndarray | None, partial: bool, new: Sequence[Any] = ()
    ) -> np.ndarray:
        """The weight of each class, and each new one, according to `class_weight`."""
        n_classes = len(self.classes_) + len(new)
        if self._class_weight != "balanced":
            if self.handle_unknown == "add" and isinstance(self._class_weight, dict):  # it may list labels to come
                weights = np.array([self._class_weight.get(label, 1.0) for label in [*self.classes_.tolist(), *new]])
            else:
                weights = compute_class_weight(self._class_weight, classes=self.classes_, y=self.classes_)
            if not ((weights >= 0) & (weights < np.inf)).all():
                raise ValueError(f"class_weight must have finite weights >= 0; got {self._class_weight}.")
            return weights
        if partial:
            raise ValueError(
                "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' weights, use "
                "compute_class_weight('balanced', classes=classes, y=y). In place of y you can use a large enough "
                "sample of the full training set target to properly estimate the class frequency distributions. Pass "
                "the resulting weights as the class_weight parameter."
            )
        counts = np.bincount(codes, weights=sample_weight, minlength=n_classes)
        return np.divide(counts.sum(), n_classes * counts, out=np.zeros(n_classes), where=counts > 0)

    def _plain_targets(self, y) -> np.ndarray | None:
        """The learner's targets if the labels need no validation; None otherwise."""
        if self._class_weight is not None:
            return None
        if self._multilabel:
            if type(y) is not np.ndarray or y.shape[1:] != self.classes_.shape or y.dtype.kind not in "biuf":
                return None
            return self._class_targets(y) if _are_indicators(y).all() else None
        if type(y) is list:
            if len(y) == 1 and type(y[0]) in (int, float, str):
                return self._code_of.get(y[0])
            y = None if as_float64(y) is None else np.array(y)  # in float64 integers above 2^53 would be rounded
        if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind in "cmM":
            return None
        if len(y) == 1 and y.dtype.kind != "O":  # objects may not be hashable
            return self._code_of.get(y.item())
        codes, known = self._encode(y)
        return self._class_targets(codes) if known.all() else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        exclusive = self._class_weight is not None or self.handle_unknown == "add"
        tags.classifier_tags.multi_label = self._takes_indicators and not exclusive
        return tags

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each label's class, and whether it is one of the classes."""
        try:
            codes = self.classes_.searchsorted(y)
        except TypeError:  # labels that cannot be compared with the classes
            numbers = self._numbers()
            codes = np.array([numbers.get(label, -1) for label in y.ravel().tolist()], dtype=np.intp)
            return codes, codes >= 0
        return codes, self.classes_.take(codes, mode="clip") == y


class LearnsLabels(StreamClassifierMixin, FitsTargets):
    """Learns rows with the labels of classes that are known from the first call on, or added when they come."""

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from these rows, once, in their order.

        The numbers do not depend on how a stream is split into calls. A call learns all of its rows or, if it raises,
        none.

        Parameters
        ----------
        {X, y}
        classes : array-like of shape (n_classes,), default=None
            All class labels. Needed by the first call, unless `handle_unknown` is "add"; optional afterwards.
        {sample_weight}

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError}
        """
        return self._partial_fit(X, y, sample_weight, classes)


def _are_indicators(y: np.ndarray) -> np.ndarray:
    return (y == 0) | (y == 1)


def check_classes(classes) -> np.ndarray:
    """The unique class labels, sorted, from an array, a list, a range or a set of them."""
    if isinstance(classes, Set):
        classes = list(classes)
    if isinstance(classes, dict | Iterator):
        raise ValueError(
            f"classes must be an array, list or set of labels; got a {type(classes).__name__}. Use list(classes)."
        )
    labels = as_own_numbers(np.asarray(unmasked(classes, "classes")))
    check_kind(labels.dtype, "classes", labels=True)
    if labels.ndim != 1:
        shown = repr(classes) if not labels.ndim else f"shape {labels.shape}"
        raise ValueError(f"classes must be one-dimensional, for example [0, 1] or numpy.unique(y); got {shown}.")
    kinds = {isinstance(label, str) for label in (classes if labels.dtype.kind in "US" else labels.tolist())}
    if len(kinds) > 1:
        raise ValueError(f"classes must be labels of one kind; got strings and numbers, {list(classes)!r}.")
    try:
        return finite_labels(np.unique(labels))
    except TypeError as error:
        raise ValueError(
            f"classes must be labels of one kind, which can be sorted; got {labels.tolist()!r} ({error})."
        ) from error


def finite_labels(classes: np.ndarray) -> np.ndarray:
    """The same classes; an error if one of them is NaN or infinite."""
    labels = classes.tolist()
    if any(isinstance(label, float) and not isfinite(label) for label in labels):
        raise ValueError(f"classes must be finite; got {labels}. Remove NaN and infinity.")
    return classes
