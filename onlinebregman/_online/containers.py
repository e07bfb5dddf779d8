"""Containers of rows, targets and weights, and their checks, before scikit-learn and SciPy read them.

SciPy does not check the arrays of a sparse matrix: a column index out of range may crash the interpreter. scikit-learn
converts datetime64 arrays to numbers, and ignores the mask of masked arrays.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections import Counter
from typing import Any

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
    "DatetimeTZDtype": ".dt.tz_convert(None).astype('datetime64[s]').astype('int64')",
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
    number = ".to_physical()" if temporal else _NUMBERS.get(type(dtype).__name__) or _NUMBERS.get(kind)
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


# --- values -----------------------------------------------------------------------------------------------------------


def as_float(value: Any) -> float:
    """A number as a float, one beyond the largest of them as infinity."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


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
