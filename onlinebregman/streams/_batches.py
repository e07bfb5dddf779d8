"""Batches (X, y) of rows, read on demand, as often as needed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.utils import check_consistent_length, check_scalar

from .._online.docs import DocumentedMixin

Batch = tuple[Any, Any]
_VALUES = (str, Number, np.bool_, type(None))
START_OVER = "resume=False to start over (--restart on the command line)"


class Batches(DocumentedMixin, ABC):
    """Batches of rows that can be iterated repeatedly: `for X, y in batches`.

    Subclasses have `_read(start)`, the batches from row `start` on, which counts the rows before it (`check_start`).

    Parameters
    ----------
    batch_size : int, default=10_000
        Rows of a batch. The learned model does not depend on it, except for what an estimator, or a file, lets the
        first batch decide: which columns are text, or the `prior` of a metric.

    Attributes
    ----------
    feature_names_ : list of str or None
        Names of the columns of X, known when the first batch is read; None if they have no names, or some the same.
    """

    feature_names_: list[str] | None = None
    # which columns of X are text, and whether targets are, in a file whose first batch tells
    _texts: tuple[list[bool], bool | None] | None = None

    def __init__(self, batch_size: int = 10_000) -> None:
        check_scalar(batch_size, "batch_size", Integral, min_val=1)
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[Batch]:
        return self.read()

    def read(self, start: int = 0) -> Iterator[Batch]:
        """The batches from a row on.

        Parameters
        ----------
        start : int, default=0
            Rows before it are skipped, at the cost of finding its position.

        Returns
        -------
        batches : iterator of (X, y)
            X of shape (n, n_features), an array or a CSR matrix; y of shape (n,), or None if there is no target.

        Raises
        ------
        ValueError
            On reading, if there are fewer rows than `start`.
        """
        return self._read(start)

    @abstractmethod
    def _read(self, start: int) -> Iterator[Batch]: ...

    def _resume(self, start: int, texts: tuple[list[bool], bool | None] | None) -> Iterator[Batch]:
        """The batches from a row on, with the `_texts` of the batches before it."""
        return self._read(start)


def check_start(start: int, n_rows: int) -> None:
    """Raise a ValueError if a stream has only `n_rows` before row `start`, the first that is to be read."""
    if n_rows < start:
        raise ValueError(
            f"The stream has only {n_rows} rows, and cannot be read from row {start} on. If a checkpoint was written "
            f"there, it is of another stream; give that one, or {START_OVER}."
        )


class ArrayBatches(Batches):
    """Batches of arrays, sparse matrices or memory maps.

    Parameters
    ----------
    X : {array-like, CSR matrix} of shape (n_samples, n_features), or path
        Rows. A .npy file given by its path is memory-mapped: only one batch is read at a time.
    y : array-like of shape (n_samples,) or path, default=None
        Targets.
    {batch_size}

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.streams import ArrayBatches
    >>> [len(y) for X, y in ArrayBatches(np.ones((25, 2)), np.ones(25), batch_size=10)]
    [10, 10, 5]
    """

    def __init__(
        self,
        X: ArrayLike | sparse.spmatrix | sparse.sparray | str | os.PathLike[str],
        y: ArrayLike | str | os.PathLike[str] | None = None,
        *,
        batch_size: int = 10_000,
    ) -> None:
        super().__init__(batch_size)
        self.X = _mapped(X)
        if sparse.issparse(self.X) and self.X.format != "csr":
            self.X = sparse.csr_array(self.X)
        self.y = None if y is None else _mapped(y)
        if self.y is not None:
            check_consistent_length(self.X, self.y)

    def _read(self, start: int) -> Iterator[Batch]:
        check_start(start, self.X.shape[0])
        for first in range(start, self.X.shape[0], self.batch_size):
            rows = slice(first, first + self.batch_size)
            X = self.X[rows] if sparse.issparse(self.X) else np.ascontiguousarray(self.X[rows])
            yield X, None if self.y is None else np.array(self.y[rows])


def _mapped(values: Any) -> Any:
    if isinstance(values, str | os.PathLike):
        try:
            return np.load(values, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError):
            raise
        except Exception as error:  # NumPy parses the header of the file as Python
            raise ValueError(f"{values} is not a .npy file, or damaged: {error!r}.") from error
    return values if hasattr(values, "shape") else np.asarray(values)


class Table(Batches):
    """Batches of a table with named columns, one of which is the target."""

    def __init__(self, target: str | int | None, columns: Sequence[str | int] | None, batch_size: int) -> None:
        super().__init__(batch_size)
        self.target, self.columns = target, columns

    def _places(self, names: Sequence[str], what: str) -> tuple[list[int], int | None]:
        """Numbers of the columns of X, and of the target."""
        target = None if self.target is None else self._place(self.target, names, what)
        if self.columns is None:
            places = [number for number in range(len(names)) if number != target]
        else:
            places = [self._place(column, names, what) for column in self.columns]
        if target in places:
            raise ValueError(
                f"{what} must have a target that is not one of the columns of X; got {names[target]!r}. Set target to "
                "the name of the targets' column (--target on the command line)."
            )
        chosen = [names[place] for place in places]
        named = len({name for name in chosen if isinstance(name, str)}) == len(chosen)
        self.feature_names_ = chosen if named else None
        return places, target

    def _place(self, column: str | int, names: Sequence[Any], what: str) -> int:
        if isinstance(column, Integral) and -len(names) <= column < len(names):
            return int(column) % len(names)
        if isinstance(column, Integral) and str(column) in names:  # such as a year
            column = str(column)
        if column not in names:
            raise ValueError(f"{what} must have a column {column!r}; got {', '.join(map(str, names))}.")
        return names.index(column)


def _check_values(columns: Iterable[Any], names: Iterable[str], n_read: int) -> None:
    """Raise a ValueError that names the first value which is neither a number nor text nor missing, such as a date."""
    for column, name in zip(columns, names, strict=True):
        dtype = getattr(column, "dtype", np.dtype(object))
        if dtype.kind in "biuf":
            continue
        wrong = {kind for kind in set(map(type, column)) if dtype.kind in "mM" or not issubclass(kind, _VALUES)}
        if wrong:
            row, value = next((row, value) for row, value in enumerate(column) if type(value) in wrong)
            raise ValueError(
                f"Column {name!r} must hold numbers or text; got {value!r} in row {n_read + row}. Leave it out "
                "(`columns` of batches), or convert it where it is stored, as a date to the number of days since "
                "another one."
            )


def as_rows(columns: Sequence[Any]) -> np.ndarray:
    """Columns as rows of numbers, NaN where a value is missing; of objects, if there are columns of text."""
    numeric = all(column.dtype.kind in "biuf" for column in columns)
    X = np.empty((len(columns[0]), len(columns)), dtype=np.float64 if numeric else object)
    for number, column in enumerate(columns):
        X[:, number] = column
    return X


@contextmanager
def opened(path: str | os.PathLike[str], mode: str = "rt") -> Iterator[Any]:
    if path == "-":
        yield sys.stdin
        return
    unpack: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    encoding = "utf-8" if mode == "rt" else None
    try:
        with unpack.get(os.path.splitext(path)[1].lower(), open)(path, mode, encoding=encoding) as file:
            yield file
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8: {error}. Convert it, for instance with iconv.") from error
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # such as a file that does not exist
            raise
        raise ValueError(f"{path} is damaged: {error}.") from error


class SVMLightBatches(Batches):
    """Batches of a file in svmlight's (libsvm's) format, as CSR matrices.

    Parameters
    ----------
    path : str or path
        The file. Those ending in .gz, .bz2 or .xz are decompressed.
    n_features : int
        Number of features, which the file does not contain.
    batch_bytes : int, default=2**22
        Size of a batch in bytes.
    zero_based : bool or "auto", default="auto"
        Whether columns are counted from 0. "auto": they are if the file has a column 0, and are counted from 1 if it
        has a column `n_features`.

    Raises
    ------
    ValueError
        On reading, if "auto" finds neither column, or both.

    Examples
    --------
    >>> from pathlib import Path
    >>> from onlinebregman.streams import SVMLightBatches
    >>> _ = Path("words.txt").write_text("1 1:0.5 3:2\\n-1 2:1\\n")
    >>> [(X.toarray().tolist(), y.tolist()) for X, y in SVMLightBatches("words.txt", 3, zero_based=False)]
    [([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        n_features: int,
        *,
        batch_bytes: int = 2**22,
        zero_based: bool | str = "auto",
    ) -> None:
        super().__init__()
        check_scalar(n_features, "n_features", Integral, min_val=1)
        check_scalar(batch_bytes, "batch_bytes", Integral, min_val=1)
        self.path, self.n_features, self.batch_bytes, self.zero_based = path, n_features, batch_bytes, zero_based

    def _read(self, start: int) -> Iterator[Batch]:
        zero_based = self._counts_from_zero() if self.zero_based == "auto" else self.zero_based
        n_read = 0
        for X, y in self._parsed(zero_based, self.n_features):
            passed, n_read = max(start - n_read, 0), n_read + len(y)
            if passed < len(y):
                yield X[passed:], y[passed:]
        check_start(start, n_read)

    def _parsed(self, zero_based: bool | str, n_features: int | None = None) -> Generator[Batch, None, None]:
        def parsed(text: bytes) -> Batch:
            return load_svmlight_file(io.BytesIO(text), n_features=n_features, zero_based=zero_based)

        n_read = 0
        with opened(self.path, "rb") as file:
            while lines := file.readlines(self.batch_bytes):
                try:
                    batch = parsed(b"".join(lines))
                except ValueError:
                    for number, line in enumerate(lines, n_read + 1):
                        try:
                            parsed(line)
                        except ValueError as error:
                            raise ValueError(
                                f"{self.path} must have lines `target column:value column:value ...`; got "
                                f"{line[:50].decode(errors='replace').strip()!r} in line {number} ({error})."
                            ) from error
                    raise
                n_read += len(lines)
                yield batch

    def _counts_from_zero(self) -> bool:
        """Whether columns are counted from 0; reads until that is known."""
        rows = 0
        with closing(self._parsed(zero_based=True)) as batches:
            for X, y in batches:
                first, last = (X.indices == 0).any(), (X.indices >= self.n_features).any()
                if first or last:
                    return bool(first)  # with both, the last one is refused on reading
                rows += len(y)
        if rows == 0:
            return True
        raise ValueError(
            f"{self.path} must have a column 0 or a column {self.n_features}, which tell whether columns are counted "
            "from 0 or from 1; got neither. Set zero_based (--first-column on the command line)."
        )


class ParquetBatches(Table):
    """Batches of Parquet, Arrow or Feather files, by `pyarrow.dataset`.

    Parameters
    ----------
    path : str, path or list of them
        A file, a folder of files, or several; in the order of their names.
    target : str, int or None, default=-1
        Name or number of the column of targets; negative numbers count from the last column. None: no target.
    columns : sequence of str or int, default=None
        The columns of X: numbers, and texts, which are categories to a learner, but no dates. None: all except the
        target.
    format : str, default="parquet"
        Name of the format in pyarrow: "parquet", "feather", "ipc", "csv" ...
    {batch_size}

    Raises
    ------
    ImportError
        On reading, if pyarrow is not installed.

    Examples
    --------
    >>> from onlinebregman.streams import ParquetBatches
    >>> batches = ParquetBatches("measured/", target="y", columns=["a", "b"])
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | list[str],
        target: str | int | None = -1,
        *,
        columns: Sequence[str | int] | None = None,
        format: str = "parquet",
        batch_size: int = 10_000,
    ) -> None:
        super().__init__(target, columns, batch_size)
        self.path, self.format = path, format

    def _read(self, start: int) -> Iterator[Batch]:
        try:
            import pyarrow.dataset
        except ImportError as error:
            raise ImportError("ParquetBatches requires pyarrow: `python -m pip install pyarrow`.") from error
        dataset = pyarrow.dataset.dataset(self.path, format=self.format)
        places, target = self._places(dataset.schema.names, str(self.path))
        names = dataset.schema.names
        chosen = [names[place] for place in places] + ([] if target is None else [names[target]])
        n_read = 0
        for batch in dataset.to_batches(columns=list(dict.fromkeys(chosen)), batch_size=self.batch_size):
            passed = max(start - n_read, 0)
            if passed < batch.num_rows:
                rows = batch.slice(passed)
                columns = [rows.column(names[place]).to_numpy(zero_copy_only=False) for place in places]
                _check_values(columns, [names[place] for place in places], n_read + passed)
                yield (
                    as_rows(columns),
                    None if target is None else rows.column(names[target]).to_numpy(zero_copy_only=False),
                )
            n_read += batch.num_rows
        check_start(start, n_read)


class SQLBatches(Table):
    """Batches of the result of a query, fetched from the database on demand.

    Parameters
    ----------
    connect : callable
        Opens a connection (DB-API 2.0), which is closed after reading: `lambda: sqlite3.connect(path)`. For drivers
        that fetch all rows at once by default, return a connection whose `cursor()` does not.
    query : str
        The query. Rows are in the order of its ORDER BY; without one a resumed run may see a different order.
    target : str, int or None, default=-1
        Name or number of the column of targets; negative numbers count from the last column. None: no target.
    columns : sequence of str or int, default=None
        The columns of X: numbers, and texts, which are categories to a learner, but no dates. None: all except the
        target.
    {batch_size}

    Examples
    --------
    >>> import sqlite3
    >>> from onlinebregman.streams import SQLBatches
    >>> def connect():
    ...     base = sqlite3.connect(":memory:")
    ...     _ = base.execute("CREATE TABLE scales AS SELECT 1.0 AS a, 2.0 AS b, 'R' AS side")
    ...     return base
    >>> list(SQLBatches(connect, "SELECT * FROM scales", target="side"))
    [(array([[1., 2.]]), array(['R'], dtype='<U1'))]
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        query: str,
        target: str | int | None = -1,
        *,
        columns: Sequence[str | int] | None = None,
        batch_size: int = 10_000,
    ) -> None:
        super().__init__(target, columns, batch_size)
        self.connect, self.query = connect, query

    def _read(self, start: int) -> Iterator[Batch]:
        with closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(self.query)
            names = [column[0] for column in cursor.description]
            places, target = self._places(names, "The answer to the query")
            n_read = 0
            while n_read < start and (passed := len(cursor.fetchmany(min(start - n_read, self.batch_size)))):
                n_read += passed
            check_start(start, n_read)
            while rows := cursor.fetchmany(self.batch_size):
                chosen = [[row[place] for place in places] for row in rows]
                _check_values(zip(*chosen, strict=True), [names[place] for place in places], n_read)
                n_read += len(rows)
                has_text = any(isinstance(value, str) for row in chosen for value in row)
                yield (
                    np.array(chosen, dtype=object if has_text else np.float64),
                    None if target is None else np.array([row[target] for row in rows]),
                )
