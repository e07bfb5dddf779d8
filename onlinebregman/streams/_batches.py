"""Batches (X, y) of rows, read on demand, as often as needed."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.utils import check_consistent_length, check_scalar

Batch = tuple[Any, Any]
_DAMAGES = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError, UnicodeError, OSError)
_NAMED = ("ZstdError", "ArrowInvalid", "LookupError")  # these very classes, the last of unknown encodings


class ArrayBatches:
    """Batches of arrays, sparse matrices or memory maps.

    Parameters
    ----------
    X : {array-like, CSR matrix} of shape (n_samples, n_features), or path
        Rows. A .npy file given by its path is memory-mapped: only one batch is read at a time.
    y : array-like of shape (n_samples,) or path, default=None
        Targets.
    batch_size : int, default=10_000
        Rows of a batch, which do not change the model, unless an estimator lets the first batch decide something.

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
        check_scalar(batch_size, "batch_size", Integral, min_val=1)
        self.batch_size = batch_size
        self.X = _mapped(X)
        if sparse.issparse(self.X) and self.X.format != "csr":
            self.X = sparse.csr_array(self.X)
        self.y = None if y is None else _mapped(y)
        if self.y is not None:
            check_consistent_length(self.X, self.y)

    def __iter__(self) -> Iterator[Batch]:
        for first in range(0, self.X.shape[0], self.batch_size):
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


@contextmanager
def damage(path: str | os.PathLike[str]) -> Iterator[None]:
    """What unpackers and decoders raise, as a ValueError that names the file."""
    try:
        yield
    except Exception as error:
        several = str(error).startswith(("Multiple files found", "Zero files found"))  # by pandas
        if not (several or isinstance(error, _DAMAGES) or type(error).__name__ in _NAMED):
            raise
        if getattr(error, "errno", None) is not None:  # such as a file that does not exist
            raise
        said = str(error).splitlines()[0].partition(" <_io")[0].rstrip(".")
        remedy = "Unpack it, and give one file" if several else "Set its format, packing or encoding"
        raise ValueError(f"{path} cannot be read, or is damaged: {said}. {remedy}.") from error


class SVMLightBatches:
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
        has a column `n_features`; neither of them, or both, is an error. Known as `zero_based_` when rows are read.

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
        check_scalar(n_features, "n_features", Integral, min_val=1)
        check_scalar(batch_bytes, "batch_bytes", Integral, min_val=1)
        self.path, self.n_features, self.batch_bytes, self.zero_based = path, n_features, batch_bytes, zero_based

    def __iter__(self) -> Iterator[Batch]:
        self.zero_based_ = self._counts_from_zero() if self.zero_based == "auto" else bool(self.zero_based)
        yield from (batch for batch in self._parsed(self.zero_based_, self.n_features) if len(batch[1]))

    def _parsed(self, zero_based: bool | str, n_features: int | None = None) -> Generator[Batch, None, None]:
        def parsed(text: bytes) -> Batch:
            return load_svmlight_file(io.BytesIO(text), n_features=n_features, zero_based=zero_based)

        n_read = 0
        unpack: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
        with damage(self.path), unpack.get(os.path.splitext(self.path)[1].lower(), open)(self.path, "rb") as file:
            while lines := file.readlines(self.batch_bytes):
                if not n_read:
                    lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
                try:
                    batch = parsed(b"".join(lines))
                except (ValueError, OverflowError):
                    for number, line in enumerate(lines, n_read + 1):
                        try:
                            parsed(line)
                        except (ValueError, OverflowError) as error:
                            text = line[:50].decode(errors="replace").strip()
                            said = (
                                f"{self.path}, line {number}: got {text!r} ({error}), with n_features={self.n_features}"
                            )
                            raise ValueError(f"{said} (--n-features). Write `target column:value ...`.") from error
                    raise
                X, y = batch
                n_read += len(lines)
                X.lines = range(n_read - len(lines) + 1, n_read + 1)  # the numbers of the lines of rows
                if len(y) < len(lines):  # of which others are empty or remarks
                    rows = (bool(line.partition(b"#")[0].strip()) for line in lines)
                    X.lines = list(itertools.compress(X.lines, rows))
                yield X, y

    def _counts_from_zero(self) -> bool:
        """Whether columns are counted from 0; reads until that is known."""
        rows = 0
        with closing(self._parsed(zero_based=True)) as batches:
            for X, _ in batches:
                rows += X.shape[0]
                if (first := (X.indices == 0).any()) or (X.indices >= self.n_features).any():
                    return bool(first)  # with both, the last one is refused on reading
        if rows == 0:
            return True
        raise ValueError(
            f"{self.path} must have a column 0 or a column {self.n_features}, which tell whether columns are counted "
            "from 0 or from 1; got neither. Set zero_based (--first-column on the command line)."
        )
