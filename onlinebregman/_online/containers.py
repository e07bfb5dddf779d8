"""Containers of rows, targets and weights: their checks, before scikit-learn and SciPy read them, and categories.

SciPy does not check the arrays of a sparse matrix: a column index out of range may crash the interpreter. scikit-learn
converts datetime64 arrays to numbers, and ignores the mask of masked arrays.

Columns of categories, of data frames or arrays of objects, become numbers, by dictionaries that grow: a category
becomes the number of categories of its column that were learned before it, so 0, 1, ... in the order in which they
appear, whatever their order and dtype are and however the stream is cut; a missing value becomes NaN. A number or
boolean and the text that it prints are one category, as files do not tell them apart. A category that has not been
learned gets the number that the next one will have. From `LARGEST` on they share a number.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections import Counter
from contextlib import suppress
from datetime import date
from numbers import Number
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from .._kernels.rows.arrays import Columns

_REMEDY = (
    "Rebuild it, for example by scipy.sparse.coo_array((values, (rows, columns)), shape).tocsr(), and leave the "
    "arrays inside it alone."
)
# What makes numbers of times and ranges of NumPy and pandas; those of polars have `to_physical`, of Arrow `cast`.
_NUMBERS = {
    "M": ".astype('datetime64[s]').astype('int64')",
    "m": " / numpy.timedelta64(1, 'h')",
    "PeriodDtype": ".astype('int64')",
    "IntervalDtype": ".map(lambda each: each.mid)",
}


def readable(values, name: str = "X", *, labels: bool = False):
    """`values`, if their type can hold numbers, or `labels`; sparse ones as CSR with checked indices.

    Raises
    ------
    ValueError
        If values are masked, complex, times or structured, or a sparse matrix is malformed.
    """
    if sparse.issparse(values):
        return sound_csr(values, name)
    of_rows = isinstance(values, list | tuple) or (
        isinstance(values, np.ndarray) and values.ndim and values.dtype == object
    )
    if isinstance(values, dict) or (of_rows and len(values) and isinstance(values[0], dict)):
        raise ValueError(
            f"{name} must be an array of numbers or a data frame; got dicts. Give pandas.DataFrame({name}), or convert "
            "them with sklearn.feature_extraction.DictVectorizer or FeatureHasher."
        )
    values = unmasked(values, name)
    values = np.asarray(values) if isinstance(values, list | tuple) else values
    if hasattr(values, "dtype"):
        check_kind(values.dtype, name, labels=labels)
    elif (frame := hasattr(values, "dtypes")) or hasattr(values, "schema"):  # a table of pyarrow
        pairs = zip(values.columns, values.dtypes, strict=True) if frame else ((f.name, f.type) for f in values.schema)
        for column, dtype in pairs:
            check_kind(dtype, f"{name}[{column!r}]", labels=labels)
    return values


def unmasked(values, name: str):
    """The data of a masked array, if no value is masked; everything else unchanged."""
    if isinstance(values, list | tuple) and any(isinstance(value, np.ma.MaskedArray) for value in values):
        values = np.ma.array(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    mask = np.ma.getmaskarray(values)
    if mask.dtype.names is None and mask.any():
        where = ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column"), np.argwhere(mask)[0], strict=False))
        raise ValueError(
            f"Input {name} is masked ({where}). Remove such rows, or fill the masked values with meaningful numbers, "
            f"{name}.filled(value)."
        )
    return np.ma.getdata(values)


def check_kind(dtype, name: str, *, labels: bool = False) -> None:
    """Raise a ValueError if values of this dtype, of NumPy, pandas or polars, are neither numbers nor `labels`."""
    kind = getattr(dtype, "kind", "")
    if kind == "c":
        instead = "numpy.hstack([X.real, X.imag])" if name == "X" else f"{name}.real"
        raise ValueError(f"Complex data not supported: {name} has dtype {dtype}. Give real values, such as {instead}.")
    temporal = getattr(dtype, "is_temporal", bool)()
    number = ".to_physical()" if temporal else _NUMBERS.get(kind) or _NUMBERS.get(type(dtype).__name__)
    if type(dtype).__module__ == "pyarrow.lib" and sys.modules["pyarrow"].types.is_temporal(dtype):
        number = f".cast('int{dtype.bit_width}')"
    if number is not None:
        instead = f"labels, such as {name}.astype(str)" if labels else f"numbers of your choice: {name}{number}"
        raise ValueError(f"{name} must be numeric; got dtype {dtype}. Give {instead}.")
    if kind == "V":
        raise ValueError(
            f"{name} has the structured dtype {dtype}. Give plain columns, such as "
            f"numpy.lib.recfunctions.structured_to_unstructured({name})."
        )


def as_float(value: Any) -> float:
    """A number as a float, one beyond the largest of them as infinity."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


# --- data frames ------------------------------------------------------------------------------------------------------

# A data frame with fewer rows or values is converted as a whole, in less time than its columns are found.
_MANY_ROWS, _MANY_VALUES = 1 << 12, 1 << 20


def columns_of_numbers(X) -> Columns | None:
    """The columns of a large data frame of pandas or polars, if they can be read in place; None for other rows."""
    package = type(X).__module__.partition(".")[0]
    if type(X).__name__ != "DataFrame" or package not in ("pandas", "polars") or len(X) < _MANY_ROWS:
        return None
    (n_rows, n_columns), columns = X.shape, []
    if n_rows * n_columns < _MANY_VALUES:
        return None
    for j in range(n_columns):
        if package == "polars":
            try:
                values = X.to_series(j).to_numpy(allow_copy=False)
            except RuntimeError:  # it has missing values, or comes in pieces
                return None
        else:
            column = X.iloc[:, j]
            if not isinstance(column.dtype, np.dtype):
                return None
            values = column.to_numpy()
        dtype = values.dtype
        of_rows = values.strides[0] >= dtype.itemsize * n_columns > dtype.itemsize  # which are read in place as well
        unusual = dtype.itemsize > 8 or dtype == np.float16 or not (dtype.isnative and values.flags.aligned)
        if dtype.kind not in "fiub" or unusual or of_rows:
            return None
        columns.append(values)
    return Columns(columns)


def doubled(items: Any) -> list[Any]:
    """The items of which there are several."""
    return [item for item, n in Counter(items).items() if n > 1]


def needed(name: str, what: str = "Reading files and Arrow data", extra: str = "files") -> Any:
    """A module of a package that is optional, which `what` needs, and an extra contains."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        said = f"{what} requires {name.partition('.')[0]}, which is not installed"
        raise ImportError(f"{said}: `python -m pip install 'onlinebregman[{extra}]'`.") from error


def frame_of_arrow(X: Any) -> Any:
    """Tables, batches and streams of Arrow as frames of pandas, decimals as floating point numbers; else X itself."""
    if hasattr(X, "collect_schema") and not hasattr(X, "get_columns"):
        raise ValueError("X must have values; got a lazy frame. Give X.collect().")
    known = hasattr(X, "dtype") or hasattr(X, "iloc") or hasattr(X, "get_columns") or hasattr(X, "type")
    if known or not (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")):
        return X
    needed("pandas")
    pyarrow = needed("pyarrow")
    table = pyarrow.table(X)
    types = [pyarrow.float64() if pyarrow.types.is_decimal(field.type) else field.type for field in table.schema]
    table = table.cast(pyarrow.schema(zip(table.column_names, types, strict=True)))
    return table.to_pandas(date_as_object=False)


# --- sparse matrices --------------------------------------------------------------------------------------------------


def sound_csr(X, name: str = "X"):
    """A sparse matrix or array as CSR of the same kind, with every index checked.

    If X is CSR, the result shares its arrays, unless they have to be converted to integers of 4 or 8 bytes and numbers
    supported by SciPy. The flags of X are ignored, as they may be outdated after its arrays were changed.

    Raises
    ------
    ValueError
        If the arrays are not those of a matrix of this shape.
    """
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead: {name} is a sparse array of shape {X.shape}. Give "
            "rows, a single one as X.reshape(1, -1)."
        )
    if isinstance(getattr(X, "data", None), np.ndarray):
        check_kind(X.data.dtype, "X")
    try:
        return _read(X).tocsr()
    except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as fault:
        raise ValueError(
            f"Input {name} is a malformed sparse matrix in {X.format.upper()} format: {fault}. {_REMEDY}"
        ) from None


def _read(X):
    """The matrix with checked arrays, shared where they can be used in place; rows of lists and dicts as CSR."""
    if X.format in ("lil", "dok"):  # which have lists, converted without looking at columns
        if X.format == "lil" and list(map(len, X.rows)) != list(map(len, X.data)):
            raise ValueError("there are lists of columns and lists of values that differ in length")
        return _checked(X.tocsr())
    data = np.require(unmasked(_array(X, "data"), "data"), requirements=["C", "A"])
    if data.dtype.kind not in "biuf" or not data.dtype.isnative or data.dtype == np.float16:
        data = data.astype(np.float64)
    if X.format == "coo":
        return type(X)((data, (_integers(X, "row"), _integers(X, "col"))), shape=X.shape)
    if X.format == "dia":
        offsets = _integers(X, "offsets")
        inside = (offsets > -X.shape[0]) & (offsets < X.shape[1])  # other diagonals have no entries
        return type(X)((data[inside], offsets[inside]), shape=X.shape)
    made = copy.copy(X)
    for flag in ("_has_canonical_format", "_has_sorted_indices"):
        vars(made).pop(flag, None)
    made.data, made.indices, made.indptr = data, _integers(X, "indices"), _integers(X, "indptr")
    if X.format == "bsr" and any(n % size for n, size in zip(X.shape, data.shape[1:], strict=True)):
        raise ValueError(f"blocks of shape {data.shape[1:]} do not make a matrix of shape {X.shape}")
    if made.indptr.ndim and (np.diff(made.indptr) < 0).any():  # SciPy takes one that ends at 0 for empty
        raise ValueError("indptr must not decrease")
    return _checked(made)


def _array(X, part: str) -> np.ndarray:
    """One of the arrays inside X."""
    values = getattr(X, part, None)
    if not isinstance(values, np.ndarray):
        raise TypeError(f"{part} must be an array; got {type(values).__name__}")
    return values


def _integers(X, part: str) -> np.ndarray:
    values = _array(X, part)
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise TypeError(f"{part} must hold integers, in one dimension; got dtype {values.dtype}, ndim={values.ndim}")
    return np.require(unmasked(values, part), None if values.dtype in (np.int32, np.int64) else np.int64, ["C", "A"])


def _checked(X):
    """X after SciPy's check, with a row in the error for an index of CSR."""
    try:
        X.check_format(full_check=True)
    except ValueError as fault:
        outside = (X.indices < 0) | (X.indices >= X.shape[1])
        if X.format != "csr" or not outside.any() or len(X.indptr) != X.shape[0] + 1 or (np.diff(X.indptr) < 0).any():
            raise
        entry = int(outside.argmax())
        row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
        raise ValueError(f"row {row} has the column index {X.indices[entry]}: {fault}") from None
    return X


# --- columns of categories --------------------------------------------------------------------------------------------

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


# --- containers -------------------------------------------------------------------------------------------------------


def columns_of(X) -> list[Any]:
    """The columns of a data frame of pandas or polars, of an array, or of a list of rows."""
    if hasattr(X, "iloc") and X.ndim == 2:
        return [column for _, column in X.items()]
    if hasattr(X, "get_columns"):
        return list(X.get_columns())
    checked = readable(X[:1] if isinstance(X, list | tuple) else X)  # dicts are refused
    values = checked if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if values.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {values.ndim}D array instead: rows must have shape (n_samples, n_features). "
            "Reshape your data: a single row is X.reshape(1, -1), of a data frame X.iloc[[0]]."
        )
    return list(values.T)


def like_frame(X, values: np.ndarray):
    """An array as a data frame like X, if X is one."""
    if hasattr(X, "iloc"):
        return type(X)(values, index=X.index, columns=X.columns)
    return type(X)(values, schema=X.columns) if hasattr(X, "get_columns") else values


def check_no_text(X) -> None:
    """Raise an error that names the first text in rows of numbers."""
    if sparse.issparse(X) or not (hasattr(X, "columns") or np.ndim(X) == 2):
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


# --- values -----------------------------------------------------------------------------------------------------------


def _listed(column) -> list[Any]:
    """The values of a column as Python objects, None for missing ones."""
    values = column.to_list() if hasattr(column, "to_list") else column.tolist()
    return [None if is_missing(value) else value for value in values]


def is_missing(value) -> bool:
    """Whether a value is None, NaN, or pandas' NA or NaT, which do not equal themselves or cannot tell."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
