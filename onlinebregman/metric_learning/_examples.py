"""Examples of metric learners: labelled rows, pairs, triplets; checks whose errors name the row and a remedy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from .._online.containers import check_kind, readable
from .._online.estimator import Examples
from .._online.validation import check_finite, check_numbers, check_vector, warn_caller


@dataclass(frozen=True, kw_only=True)
class Comparisons(Examples):
    """Labelled rows or triplets, and the rows of X that they consist of."""

    points: np.ndarray

    @property
    def labels(self) -> np.ndarray | None:
        """Labels of `points`, which are the rows of positive weight, if they have any."""
        return self.y if self.y is None or len(self.y) == len(self.points) else self.y[self.weights > 0]

    def ordered(self, order: np.ndarray | None) -> Self:
        """The same in another order; fields without one value for each example are unchanged."""
        if order is None:
            return self
        values = {name: getattr(self, name, None) for name in ("X", "y", "weights", "senses")}
        return replace(self, **{name: value[order] for name, value in values.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class Pairs(Comparisons):
    """Pairs z = x_i - x_j and target distances: upper bounds (sense 1), lower bounds (-1) or equalities (0)."""

    senses: np.ndarray
    labels = None


def check_bounds(bounds) -> tuple[float, float] | None:
    """Two squared distances, the first one smaller; None stays None."""
    if bounds is None:
        return None
    values = np.asarray(bounds, dtype=np.float64)
    if values.shape != (2,) or not 0 <= values[0] < values[1] < np.inf:
        raise ValueError(f"bounds must be two squared distances, 0 <= same class < different classes; got {bounds!r}.")
    return float(values[0]), float(values[1])


def check_flat(X, remedy: str) -> None:
    """Raise a ValueError for an array of pairs or triplets of rows in place of rows."""
    if not hasattr(X, "ndim"):
        X = np.asarray(X)
    if X.ndim > 2:
        raise ValueError(f"Found an array of shape {tuple(X.shape)}, but rows make an array with dim 2; {remedy}.")


def check_size(X: np.ndarray) -> np.ndarray:
    """Rows whose squared distances have finite squares, by which rates are divided."""
    # as quickly as by `np.vdot`, which wakes the threads of BLAS
    if X.dtype == np.float64 and not np.einsum("ij,ij", X, X) < 1e140 and (large := np.abs(X) >= 1e70).any():
        row, column = (int(i) for i in np.argwhere(large)[0])
        raise ValueError(
            f"X must be below 1e70, as the squares of squared distances overflow; got X[{row}, {column}] = "
            f"{X[row, column]:g}. Scale the features (sklearn.preprocessing.StandardScaler), or remove the row."
        )
    return X


def check_similarity(labels, n: int) -> np.ndarray:
    """1 for similar, -1 for dissimilar pairs."""
    labels = check_vector(labels, n, "labels", "pairs")
    if not (np.abs(labels) == 1).all():
        row = int(np.argmax(np.abs(labels) != 1))
        raise ValueError(f"labels must be 1 (similar) or -1 (dissimilar); got labels[{row}] = {labels[row]:g}.")
    return labels


def check_labels(y: np.ndarray, remedy: str = "") -> None:
    """Raise a ValueError unless y holds labels. Integers, strings and booleans are labels, however many differ.

    In a stream with many classes most rows of a chunk may be the first of their class.
    """
    if y.dtype.kind not in "iubUS":
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise ValueError(f"{error}{remedy}") from error


def warn_of_labels() -> None:
    """Warn that the labels of all rows have taught nothing."""
    warn_caller(
        "All rows were of one class, or each of its own, so that nothing was learned and the metric is unchanged. "
        "Give rows of two or more classes, two of each."
    )


# Number of differences computed at a time.
_ROWS_A_BLOCK = 256


class Block(NamedTuple):
    """Instances to learn from, in their order: pairs as rows z of d values, or comparisons as rows (p, q) of 2d.

    A pair is X = z z'. A comparison is X = p p' - q q', p the difference of the two rows that should be farther apart.
    """

    rows: np.ndarray
    targets: np.ndarray  # squared distances, or margins
    senses: np.ndarray  # 1: similar, the target is an upper bound; -1: a lower bound; 0: an equality
    weights: np.ndarray
    scales: np.ndarray  # squared distances by which rates are scaled


def differences(X: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """X[first] - X[second], in blocks of rows, which avoids large temporary arrays."""
    z = np.empty((len(first), X.shape[1]))
    for start in range(0, len(z), _ROWS_A_BLOCK):
        part = slice(start, start + _ROWS_A_BLOCK)
        np.subtract(X[first[part]], X[second[part]], out=z[part])
    return z


def wrong_dimension(model, array: np.ndarray, wanted: int, what: str, remedy: str) -> ValueError:
    """An error that contains the text of metric-learn's."""
    return ValueError(
        f"{wanted}D array of formed {what} expected by {type(model).__name__}. Found {array.ndim}D array instead:\n"
        f"input={array}. Reshape your data and/or use a preprocessor.\n{remedy}"
    )


def members(model, tuples, width: int, name: str) -> np.ndarray:
    """The rows of tuples, one below the other: from an array of shape (n, width, n_features).

    With a preprocessor tuples may also be row numbers for it, of shape (n, width).
    """
    tuples = np.asarray(readable(tuples, name))
    numbers = model.preprocessor is not None and tuples.ndim == 2
    shape = f"(n_{name}, {width}, n_features)"
    if not numbers and tuples.ndim != 3:
        remedy = (
            f"{name} make an array of shape {shape}; row numbers need the parameter `preprocessor`, or the rows "
            f"themselves as X; got shape {tuples.shape}."
        )
        raise wrong_dimension(model, tuples, 3, "tuples", remedy)
    if tuples.shape[1] != width:
        raise ValueError(
            f"Tuples of {width} element(s) expected by {type(model).__name__}. Got tuples of {tuples.shape[1]} "
            f"element(s) instead (shape={tuples.shape}):\ninput={tuples}.\nGive {name} as an array of shape {shape}."
        )
    if numbers:
        return look_up(model.preprocessor, tuples.ravel())
    if tuples.dtype.kind == "f":
        check_finite(tuples, name)
    return tuples.reshape(-1, tuples.shape[2])


def look_up(preprocessor, numbers) -> np.ndarray:
    """The rows that a preprocessor, an array of them or a function, has for row numbers (or other keys)."""
    numbers = np.asarray(numbers)
    if callable(preprocessor):
        rows = np.asarray(preprocessor(numbers))
        if rows.ndim != 2 or len(rows) != len(numbers):
            raise ValueError(
                f"preprocessor must return one row for each of {len(numbers)} numbers; got an array of shape "
                f"{rows.shape}."
            )
        return rows
    rows = check_numbers(preprocessor, "preprocessor", dtype=None)
    check_kind(numbers.dtype, "row numbers")
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"Row numbers for the preprocessor must be integers; got dtype {numbers.dtype}.")
    outside = (numbers < 0) | (numbers >= len(rows))
    if outside.any():
        place = int(np.argmax(outside))
        raise ValueError(
            f"Row numbers must be from 0 to {len(rows) - 1}, for the rows of the preprocessor; got {numbers[place]}."
        )
    return rows[numbers]
