"""Pairs, triplets and quadruplets given by the user, converted to the rows that a learner reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._online.containers import check_kind, readable
from .._online.validation import check_finite, check_numbers

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
