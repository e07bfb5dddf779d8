"""Checks of the input of metric learners, with errors that name the row, the value and the remedy."""

from __future__ import annotations

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from .._online.validation import check_finite, check_numbers, plain_vector


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
    if X.dtype == np.float64 and not np.vdot(X, X) < 1e140 and (large := np.abs(X) >= 1e70).any():
        row, column = (int(i) for i in np.argwhere(large)[0])
        raise ValueError(
            f"X must be below 1e70, as the squares of squared distances overflow; got X[{row}, {column}] = "
            f"{X[row, column]:g}. Scale the features (sklearn.preprocessing.StandardScaler), or remove the row."
        )
    return X


def check_column(values, n: int, name: str, what: str) -> np.ndarray:
    """Finite numbers, one for each pair."""
    plain = plain_vector(values, n, "fiu")
    values = check_numbers(values, name, ensure_2d=False) if plain is None else plain
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one {what} per pair; got shape {values.shape}.")
    check_finite(values, name)
    return values


def check_similarity(labels, n: int) -> np.ndarray:
    """1 for similar, -1 for dissimilar pairs."""
    labels = check_column(labels, n, "labels", "label")
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
