"""Code shared by classifiers on streams: the classes, and the codes of labels."""

from __future__ import annotations

from collections.abc import Iterator, Set
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from .._kernels.rows.rows import as_float64
from .containers import check_kind, unmasked
from .docs import DocumentedMixin
from .estimator import Call, Examples
from .types import MatrixLike
from .validation import check_rows, check_weights


class StreamClassifierMixin(DocumentedMixin, ClassifierMixin):
    """A classifier whose `classes_` are known from the first call on and do not change.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weights {label: weight} that multiply those of the rows with this label; 1 for labels that are not listed.
        "balanced": n_samples / (n_classes * number of rows with the label), only for `fit`. None: 1.
    """

    _fewest_classes = 2
    class_weight: dict[Any, float] | Literal["balanced"] | None = None

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict the labels of rows.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels: for each row that with the largest score or probability, of several the first in `classes_`.
        """
        scores = self._class_scores(X)
        return self.classes_.take(self._largest(scores))

    def _largest(self, scores: np.ndarray) -> np.ndarray:
        """The number of the class with the largest score of each row."""
        return scores[:, 0] > 0 if scores.shape[1] < len(self.classes_) else scores.argmax(axis=1)

    def _class_scores(self, X) -> np.ndarray:
        """Scores of the classes, one column each; or for two classes one column, positive for the second of them."""
        return self.predict_proba(X)

    def _class_numbers(self, y: np.ndarray, classes: ArrayLike | None, call: Call) -> np.ndarray:
        """The number of each label's class; sets `classes_` at the start, and later checks that they are the same."""
        if call.first:
            self._set_classes(y, classes, call.partial)
        elif classes is not None:
            given = check_classes(classes)
            if not np.array_equal(given, self.classes_):
                raise ValueError(
                    f"classes = {given.tolist()} is not the same as on the first call to partial_fit, "
                    f"{self.classes_.tolist()}; omit it."
                )
        return self._known_codes(
            y,
            "pass all labels of the stream as `classes` to the first call of partial_fit"
            if call.partial
            else "set warm_start=False to begin again with other classes",
        )

    def _set_classes(self, y: np.ndarray, classes: ArrayLike | None, partial: bool) -> None:
        if partial and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit; give all class labels.")
        if not partial:
            check_classification_targets(y)
        self.classes_: np.ndarray = check_classes(classes) if partial else finite_labels(np.unique(y))
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
        """Validated rows, the numbers of their classes, and weights; at the start sets `classes_` and the code book."""
        X, y = check_rows(
            self, X, y=y, reset=call.first, numeric=False, finite=sample_weight is not None, any_layout=True
        )
        codes = self._class_numbers(y, classes, call)
        if call.first:
            self._store_code_book()
        weights = check_weights(sample_weight, len(y), allow_all_zero=call.partial)
        if self.class_weight is not None:
            of_rows = self._class_weights(codes, weights, call.partial).take(codes)
            of_rows = of_rows if weights is None else of_rows * weights
            weights = check_weights(of_rows, len(y), allow_all_zero=call.partial)
        return Examples(X, codes, weights)

    def _class_weights(self, codes: np.ndarray, sample_weight: np.ndarray | None, partial: bool) -> np.ndarray:
        """The weight of each class according to `class_weight`."""
        n_classes = len(self.classes_)
        if self.class_weight != "balanced":
            weights = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
            if not ((weights >= 0) & (weights < np.inf)).all():
                raise ValueError(f"class_weight must have finite weights >= 0; got {self.class_weight}.")
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

    def _make_code_book(self) -> np.ndarray:
        """The learner's target for each class, one row per class; by default the number of the class."""
        return np.arange(len(self.classes_), dtype=np.float64)

    def _store_code_book(self) -> None:
        """Store the code book, and a dict from labels to its rows."""
        self._code_book = book = self._make_code_book()
        self._code_of = {label: book[number : number + 1] for number, label in enumerate(self.classes_.tolist())}

    def _plain_targets(self, y) -> np.ndarray | None:
        """The learner's targets if the labels need no validation; None otherwise."""
        if self.class_weight is not None:
            return None
        if type(y) is list:
            if len(y) == 1 and type(y[0]) in (int, float, str):
                return self._code_of.get(y[0])
            y = None if as_float64(y) is None else np.array(y)  # in float64 integers above 2^53 would be rounded
        if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind in "cmM":
            return None
        if len(y) == 1 and y.dtype.kind != "O":  # objects may not be hashable
            return self._code_of.get(y.item())
        codes, known = self._encode(y)
        return self._code_book.take(codes, axis=0) if known.all() else None

    def _encode(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each label's class, and whether it is one of the classes."""
        try:
            codes = self.classes_.searchsorted(y)
        except TypeError:  # labels that cannot be compared with the classes
            numbers = {label: number for number, label in enumerate(self.classes_.tolist())}
            codes = np.array([numbers.get(label, -1) for label in y.ravel().tolist()], dtype=np.intp)
            return codes, codes >= 0
        return codes, self.classes_.take(codes, mode="clip") == y


def check_classes(classes) -> np.ndarray:
    """The unique class labels, sorted, from an array, a list, a range or a set of them."""
    if isinstance(classes, Set):
        classes = list(classes)
    if isinstance(classes, dict | Iterator):
        raise ValueError(
            f"classes must be an array, list or set of labels; got a {type(classes).__name__}. Use list(classes)."
        )
    labels = np.asarray(unmasked(classes, "classes"))
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
