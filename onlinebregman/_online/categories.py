"""Columns of categories, of data frames or arrays of objects, and the numbers that they become.

A category becomes the number of categories of its column that were learned before it, so 0, 1, ... in the order in
which they appear, whatever their order and dtype are and however the stream is cut; a missing value becomes NaN. A
number or boolean and the text that it prints are one category, as files do not tell them apart. A category that has not
been learned gets the number that the next one will have. From `LARGEST` on they share a number.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from numbers import Number
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from .containers import as_float, check_kind, columns_of, is_missing, is_number, like_frame

LARGEST = 4096
FROM_DTYPE = "from_dtype"
# Names of the dtypes of categories, of pandas (in pyarrow, too) and polars, without parameters and in lower case.
_DTYPES = {
    *("category", "categorical", "enum", "dictionary"),
    *("str", "string", "large_string", "utf8", "object"),
    *("bool", "boolean"),
}


class Categories:
    """Which columns are categorical, and the numbers of the categories learned so far; it never changes.

    Parameters
    ----------
    is_categorical : ndarray of bool of shape (n_features,)
    numbers : dict of dict
        {column: {category: number}}; those of columns without any may be missing.
    """

    def __init__(self, is_categorical: np.ndarray, numbers: dict[int, dict[Any, int]] | None = None) -> None:
        self.is_categorical, self.numbers = is_categorical, numbers or {}

    def encode(self, X, learn=None, owner: str = "the model") -> tuple[Any, Categories]:
        """X with numbers instead of categories, as a data frame if it is one; and the categories, with new ones.

        `learn`: for each row whether its categories are learned; None: they all are, False: none. `owner`: whose rows
        these are.
        """
        whole = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf"  # whose numbers are read at once
        columns = X.T if whole else columns_of(X)
        if len(columns) != len(self.is_categorical):
            raise ValueError(
                f"X has {len(columns)} features, but {owner} is expecting {len(self.is_categorical)} features as input."
            )
        names = getattr(X, "columns", range(len(columns)))
        values = np.array(X, dtype=np.float64, order="C") if whole else np.empty((len(columns[0]), len(columns)))
        numbers = dict(self.numbers)
        for j in () if whole else (~self.is_categorical).nonzero()[0].tolist():
            values[:, j] = _numbers(columns[j], names[j])
        for j in self.is_categorical.nonzero()[0].tolist():
            known = numbers.get(j, {})
            if whole and None not in (found := list(map(known.get, columns[j].tolist()))):
                values[:, j] = found
                continue
            listed = _listed(columns[j])
            try:
                if learn is not False:
                    kept = listed if learn is None else [value for value, h in zip(listed, learn, strict=True) if h]
                    known = numbers[j] = _grown(known, kept)
                new = len(known)
                values[:, j] = [
                    np.nan
                    if value is None
                    else known.get(value, new)
                    if value in known
                    else known.get(_twin(value), new)
                    for value in listed
                ]
            except TypeError as error:
                with suppress(TypeError):  # by the first value without a hash, such as a tuple of lists: it is named
                    for row, value in enumerate(listed):  # noqa: B007
                        hash(value)
                raise ValueError(
                    f"Categories must be text, numbers or other values that can be compared; got {value!r} in "
                    f"row {row}, column {names[j]!r}."
                ) from error
        return like_frame(X, values), Categories(self.is_categorical, numbers)

    def listed(self) -> list[list[Any] | None]:
        """For each column its categories in the order in which they were learned; None for columns of numbers."""
        return [list(self.numbers.get(j, ())) if given else None for j, given in enumerate(self.is_categorical)]


def find_categorical(X, categorical_features) -> np.ndarray | None:
    """Which columns of the first rows are categorical, as the parameter says; None if none are."""
    if categorical_features is None or (sparse.issparse(X) and is_from_dtype(categorical_features)):
        return None
    if sparse.issparse(X):
        raise ValueError("categorical_features require dense rows; got a sparse matrix. Use X.toarray().")
    if is_from_dtype(categorical_features):
        columns = columns_of(X) if hasattr(X, "columns") or (isinstance(X, np.ndarray) and X.dtype == object) else []
        chosen = np.array([_has_categories(column) for column in columns], dtype=bool)
    else:
        chosen = _mask(categorical_features, X)
    return chosen if chosen.any() else None


def _mask(categorical_features, X) -> np.ndarray:
    """A mask, numbers or names of columns as a mask of its own."""
    names, n_features = getattr(X, "columns", None), len(columns_of(X))
    kind = np.asarray(categorical_features).dtype.kind
    given = np.asarray(categorical_features, dtype=object)  # in which bools are not numbers
    n_bools = sum(isinstance(item, bool | np.bool_) for item in given.flat)
    if kind == "b" or (n_bools > 0 and n_bools == given.size):
        if given.shape != (n_features,):
            raise ValueError(
                f"categorical_features set as a boolean mask must have shape ({n_features},), one entry for each "
                f"feature; got shape {given.shape}."
            )
        return given.astype(bool)
    if given.size and (given.ndim != 1 or kind not in "iuUO" or n_bools > 0):
        raise ValueError(
            "categorical_features must be an array-like of bool, int or str, and bool of all or none; got "
            f"{given.tolist()!r}."
        )
    mask = np.zeros(n_features, dtype=bool)
    for item in given.tolist():
        if isinstance(item, str):
            if names is None:
                raise ValueError(
                    f"categorical_features has the name {item!r}, but X has no feature names; give numbers of columns "
                    "or a boolean mask."
                )
            if item not in list(names):
                raise ValueError(
                    f"categorical_features has an item value {item!r} which is not a valid feature name of the data; "
                    f"got {list(names)}."
                )
            mask[list(names).index(item)] = True
        elif not isinstance(item, int | np.integer) or not 0 <= item < n_features:
            raise ValueError(
                f"categorical_features set as integer indices must be in [0, n_features - 1] = [0, {n_features - 1}]; "
                f"got {item!r}."
            )
        else:
            mask[item] = True
    return mask


def check_no_text(X) -> None:
    """Raise an error that names the first text in rows of numbers."""
    if sparse.issparse(X) or not (hasattr(X, "columns") or np.ndim(X) in (1, 2)):
        return
    names = getattr(X, "columns", None)
    for j, column in enumerate(columns_of(X)):
        for row, value in enumerate(_listed(column) if _has_categories(column) else ()):
            if isinstance(value, str) and not is_number(value):
                _refuse(value, row, j if names is None else names[j])


def _refuse(value, row: int, name) -> NoReturn:
    raise ValueError(
        f"Column {name!r} must hold numbers; got {value!r} in row {row}. If its values are categories, encode them "
        "(sklearn.preprocessing.OneHotEncoder), or let a parameter-free model know before its first row, by their "
        "dtype in a data frame or by categorical_features."
    )


def is_from_dtype(categorical_features) -> bool:
    """Whether the columns of categories are found by their dtypes."""
    return isinstance(categorical_features, str) and categorical_features == FROM_DTYPE


def _has_categories(column) -> bool:
    """Whether a column has a dtype of categories; of objects: whether it is not of numbers alone; arrays: has text."""
    if isinstance(column, np.ndarray):
        return any(isinstance(value, str) for value in column.tolist())
    name = str(column.dtype).lower()
    if name == "object":
        known = [value for value in column if not is_missing(value)]
        if known and isinstance(known[0], date):
            check_kind(np.dtype("M8[s]"), f"X[{column.name!r}]")
        return not known or not all(isinstance(value, Number) and not isinstance(value, bool) for value in known)
    return name.partition("[")[0].partition("(")[0].partition("<")[0] in _DTYPES


def _listed(column) -> list[Any]:
    """The values of a column as Python objects, None for missing ones."""
    values = column.to_list() if hasattr(column, "to_list") else column.tolist()
    return [None if is_missing(value) else value for value in values]


def _twin(value) -> Any:
    """The text of a number or boolean, and the number or boolean that prints as a text; None if there is none."""
    if not isinstance(value, str):
        return str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if value in ("True", "False"):
        return value == "True"
    return float(value) if is_number(value) and _twin(float(value)) == value else None


def _grown(known: dict[Any, int], listed: list[Any]) -> dict[Any, int]:
    """The numbers of categories, and of the new ones among these values; the same object if there are none."""
    new = [value for value in dict.fromkeys(listed) if value is not None and value not in known]
    if not new or len(known) == LARGEST:
        return known
    grown = dict(known)
    for value in new:
        if _twin(value) not in grown and len(grown) < LARGEST:
            grown[value] = len(grown)
    return grown if len(grown) > len(known) else known


def _numbers(column, name) -> np.ndarray:
    """A column of numbers as float64, NaN where it is missing."""
    check_kind(column.dtype, f"X[{name!r}]")
    kind = getattr(column.dtype, "kind", "")
    if isinstance(column, np.ndarray) and kind in "biuf":
        return column
    if kind != "O" and not isinstance(column, np.ndarray) and not _has_categories(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(column, "iloc") else column.to_numpy()
    listed, row = _listed(column), 0
    try:
        values = np.empty(len(listed))
        for row, value in enumerate(listed):
            values[row] = np.nan if value is None else as_float(value)
    except (TypeError, ValueError):
        _refuse(listed[row], row, name)
    return values
