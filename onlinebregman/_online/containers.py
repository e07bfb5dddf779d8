"""Checks of the containers of rows, targets and weights, before scikit-learn and SciPy read them.

SciPy does not check the arrays of a sparse matrix: a column index out of range may crash the interpreter. scikit-learn
converts datetime64 arrays to numbers, and ignores the mask of masked arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._kernels.rows.arrays import Columns

_REMEDY = (
    "Rebuild it, for example by scipy.sparse.coo_array((values, (rows, columns)), shape).tocsr(), and leave the "
    "arrays inside it alone."
)


class _Malformed(Exception):
    """An error in the arrays inside a sparse matrix."""


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
            f"{name} must be an array of numbers; got dicts. Convert them with "
            "sklearn.feature_extraction.DictVectorizer or FeatureHasher."
        )
    values = unmasked(values, name)
    if isinstance(values, list | tuple):
        values = np.asarray(values)
    for dtype in [values.dtype] if hasattr(values, "dtype") else set(getattr(values, "dtypes", ())):
        check_kind(dtype, name, labels=labels)
    return values


def unmasked(values, name: str):
    """The data of a masked array, if no value is masked; everything else unchanged."""
    if isinstance(values, list | tuple) and any(isinstance(value, np.ma.MaskedArray) for value in values):
        values = np.ma.array(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    mask = np.ma.getmaskarray(values)
    if mask.dtype.names is None and mask.any():
        place = [int(i) for i in np.argwhere(mask)[0]]
        where = ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column"), place, strict=False))
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
    if kind in ("M", "m") or getattr(dtype, "is_temporal", bool)():  # the latter of polars
        numbers = " / numpy.timedelta64(1, 'h')" if kind == "m" else ".astype('datetime64[s]').astype(float)"
        instead = f"labels, such as {name}.astype(str)" if labels else f"numbers in a unit you choose: {name}{numbers}"
        raise ValueError(f"{name} must be numeric; got times of dtype {dtype}. Give {instead}.")
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
    if type(X).__name__ != "DataFrame" or package not in ("pandas", "polars"):
        return None
    (n_rows, n_columns), columns = X.shape, []
    if n_rows < _MANY_ROWS or n_rows * n_columns < _MANY_VALUES:
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
        if dtype.kind not in "fiub" or dtype.itemsize > 8 or dtype == np.float16 or not dtype.isnative:
            return None
        if not values.flags.aligned or values.strides[0] >= dtype.itemsize * n_columns > dtype.itemsize:
            return None  # the latter are those of rows, which are read in place as well
        columns.append(values)
    return Columns(columns)


# --- sparse matrices --------------------------------------------------------------------------------------------------


def sound_csr(X, name: str = "X"):
    """A sparse matrix or array as CSR of the same kind, with every index checked.

    If X is CSR, the result shares its arrays, unless they have to be converted to integers of 4 or 8 bytes and numbers
    supported by SciPy. The flags of X are ignored, as they may be outdated after its arrays were changed.

    Raises
    ------
    ValueError
        If the arrays are not those of a matrix of this shape; the message names the first row and index at fault.
    """
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead: {name} is a sparse array of shape {X.shape}. Give "
            "rows, a single one as X.reshape(1, -1)."
        )
    try:
        if min(X.shape) < 0:
            raise _Malformed(f"it has the shape {X.shape}, but numbers of rows and columns must not be negative")
        return _READERS[X.format](X)
    except _Malformed as fault:
        raise ValueError(
            f"Input {name} is a malformed sparse matrix in {X.format.upper()} format: {fault}. {_REMEDY}"
        ) from None


def _made(X, kind: str, **arrays):
    """A matrix in format `kind` with these arrays; a sparse array if X is one."""
    new = getattr(sparse, f"{kind}_{'array' if isinstance(X, sparse.sparray) else 'matrix'}")(X.shape)
    for part, array in arrays.items():
        setattr(new, part, array)
    return new


def _array(X, part: str, ndim: int = 1) -> np.ndarray:
    """One of the arrays inside X, with this number of dimensions."""
    values = getattr(X, part, None)
    if not isinstance(values, np.ndarray):
        raise _Malformed(f"{part} must be an array; got {type(values).__name__}")
    if values.ndim != ndim:
        raise _Malformed(f"{part} must have {ndim} dimensions; got {values.ndim}")
    return np.require(unmasked(values, part), requirements=["C", "A"])


def _values(X, ndim: int = 1) -> np.ndarray:
    """The array `data`, in a dtype that SciPy supports."""
    values = _array(X, "data", ndim)
    check_kind(values.dtype, "X")
    known = values.dtype.kind in "biuf" and values.dtype.isnative and values.dtype != np.float16
    return values if known else values.astype(np.float64)


def _integers(values: np.ndarray, part: str) -> np.ndarray:
    if values.dtype.kind not in "iu":
        raise _Malformed(f"{part} must hold integers; got dtype {values.dtype}")
    return values if values.dtype in (np.int32, np.int64) else values.astype(np.int64)


def _check_range(indices: np.ndarray, n: int, what: str, where) -> None:
    """Check that all indices are from 0 to n - 1; `where` is the name of an entry, given its number."""
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        entry = int(np.argmax((indices < 0) | (indices >= n)))
        raise _Malformed(f"{where(entry)} has the {what} index {indices[entry]}, but there are {n} {what}s")


def _compressed(X, kind: str, axis: int = 0, block: tuple[int, int] = (1, 1)):
    """CSR, CSC (axis=1) or BSR (blocks) with checked arrays."""
    of_blocks = " of blocks" if kind == "bsr" else ""
    (n_major, major), (n_minor, minor) = (
        (X.shape[k] // block[k], ("row", "column")[k] + of_blocks) for k in (axis, 1 - axis)
    )
    data = _values(X, 3 if kind == "bsr" else 1)
    indices, indptr = (_integers(_array(X, part), part) for part in ("indices", "indptr"))
    if indices.dtype != indptr.dtype:
        indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    n_entries = min(len(data), len(indices))
    if len(indptr) != n_major + 1:
        raise _Malformed(f"indptr must have {n_major + 1} entries for {n_major} {major}s; got {len(indptr)}")
    if indptr[0] != 0:
        raise _Malformed(f"indptr must start at 0; got {indptr[0]}")
    if indptr.max() > n_entries:
        first = int(np.argmax(indptr > n_entries))
        raise _Malformed(
            f"{major} {first - 1} ends at entry {indptr[first]}, but there are {len(indices)} indices and {len(data)} "
            "values"
        )
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        first = int(np.argmax(falls))
        raise _Malformed(f"indptr decreases from {indptr[first]} to {indptr[first + 1]} at {major} {first}")
    data, indices = data[: indptr[-1]], indices[: indptr[-1]]
    _check_range(
        indices, n_minor, minor, lambda entry: f"{major} {int(np.searchsorted(indptr, entry, side='right')) - 1}"
    )
    return _made(X, kind, data=data, indices=indices, indptr=indptr)


def _from_bsr(X):
    block = _array(X, "data", 3).shape[1:]
    if 0 in block or X.shape[0] % block[0] or X.shape[1] % block[1]:
        raise _Malformed(f"blocks of shape {block} do not make a matrix of shape {X.shape}")
    return _compressed(X, "bsr", block=block).tocsr()


def _from_entries(X, values: np.ndarray, rows: np.ndarray, columns: np.ndarray):
    """A CSR matrix with these entries, with checked indices."""
    if not len(values) == len(rows) == len(columns):
        raise _Malformed(f"there are {len(values)} values, {len(rows)} row indices and {len(columns)} column indices")
    _check_range(rows, X.shape[0], "row", lambda entry: f"entry {entry}")
    _check_range(columns, X.shape[1], "column", lambda entry: f"row {rows[entry]}")
    kind = sparse.coo_array if isinstance(X, sparse.sparray) else sparse.coo_matrix
    return kind((values, (rows, columns)), shape=X.shape).tocsr()


def _from_coo(X):
    return _from_entries(X, _values(X), *(_integers(_array(X, part), part) for part in ("row", "col")))


def _from_dia(X):
    data, offsets = _values(X, 2), _integers(_array(X, "offsets"), "offsets")
    if len(data) != len(offsets) or len(np.unique(offsets)) != len(offsets):
        raise _Malformed(f"there are {len(data)} diagonals and {len(np.unique(offsets))} different offsets")
    inside = (offsets > -X.shape[0]) & (offsets < X.shape[1])  # other diagonals have no entries
    return _made(X, "dia", data=data[inside], offsets=offsets[inside]).tocsr()


def _from_lil(X):
    rows, data = _array(X, "rows"), _array(X, "data")
    if not len(rows) == len(data) == X.shape[0]:
        raise _Malformed(f"it has {X.shape[0]} rows, but {len(rows)} lists of columns and {len(data)} of values")
    for i, (columns, values) in enumerate(zip(rows, data, strict=True)):
        if not (isinstance(columns, list) and isinstance(values, list) and len(columns) == len(values)):
            raise _Malformed(f"row {i} is not a list of columns and a list of as many values")
    lengths = [len(columns) for columns in rows]
    columns = np.array([column for columns in rows for column in columns] or [0])[: sum(lengths)]
    values = np.array([value for values in data for value in values], dtype=X.dtype)
    return _from_entries(X, values, np.repeat(np.arange(len(rows)), lengths), _integers(columns, "rows"))


def _from_dok(X):
    places = np.array(list(X.keys()) or [(0, 0)])[: len(X.keys())]
    if places.ndim != 2 or places.shape[1] != 2:
        raise _Malformed("a key is not a pair of a row and a column")
    values = np.array(list(X.values()), dtype=X.dtype)
    return _from_entries(X, values, *_integers(places, "keys").T)


_READERS = {
    "csr": lambda X: _compressed(X, "csr"),
    "csc": lambda X: _compressed(X, "csc", axis=1).tocsr(),
    "bsr": _from_bsr,
    "coo": _from_coo,
    "dia": _from_dia,
    "lil": _from_lil,
    "dok": _from_dok,
}
