"""One resumable pass over a stream that is larger than memory."""

from __future__ import annotations

import copy
import os
import re
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch, check_scalar

from .._online.containers import columns_of, frame_of_arrow, is_missing, needed
from .._online.validation import is_fitted
from ..losses import SquaredLoss
from ..model_selection._progressive import _labels
from ..model_selection._scoring import as_scorer, why_no_weights
from ..persistence import description, full_parameters, load_model, save_model
from ._frames import FileFrames, place

START_OVER = "resume=False to start over (--restart on the command line)"
HISTORY = 256  # largest number of points of a curve; when it is exceeded, every other point is dropped


def fit_stream(
    estimator: BaseEstimator,
    stream: Any,
    *,
    target: str | int | None = None,
    classes: ArrayLike | None = None,
    scoring: str | Callable | None = None,
    warm_start: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1_000_000,
    resume: bool = True,
    trusted: Iterable[type] = (),
    prefetch: int = 2,
    verbose: bool = False,
) -> Bunch:
    """Let an estimator learn a stream of frames or batches, once, in bounded memory.

    Parameters
    ----------
    estimator : estimator object
        Any with `partial_fit`. It is not changed; a copy learns.
    stream : iterable of frames or tuples, Arrow stream, path, or source
        Frames of pandas or polars, tables and record batches of pyarrow: what `pandas.read_csv(..., chunksize=10_000)`,
        `pandas.read_sql`, a dataset or a reader of pyarrow hand out, and anything with `__arrow_c_stream__`, as queries
        of DuckDB have. Or tuples (X, y), (X, y, sample_weight) or (X, None), as of `ArrayBatches`. A path is read by
        `FileFrames`. A source is an object that knows its positions: `read(position)` returns an iterator of tuples
        (position behind it, batch), from the first batch on for the position None; positions are whatever `save_model`
        writes, such as offsets of a log, and `identity` is a text that tells it from other sources.
    target : str or int, default=None
        Name or number of the column of targets in frames; negative numbers count from the last column. The other
        columns are X. None: frames have no targets.
    classes : array-like of shape (n_classes,), default=None
        All labels, for a classifier; not needed with `handle_unknown="add"`.
    scoring : str, callable or None, default=None
        Progressive validation: every batch is predicted before it is learned, and the score is the mean over batches,
        weighted by rows, or by the sums of sample weights, which the metric gets, too; for means over rows (accuracy,
        squared error, log loss) this is the score of all predictions. A scorer's name, a scorer(estimator, X, y), or a
        metric(y_true, y_pred), defined on every batch: if batches may lack classes, `make_scorer(log_loss,
        labels=classes, response_method="predict_proba")`. None: the mean progressive loss, `cumulative_loss_ / t_`,
        that most estimators of this package maintain at no cost.
    warm_start : bool, default=False
        True: the copy continues from the state of `estimator`.
    checkpoint : str or path, default=None
        A file for the model, the position in the stream and a checksum of the rows learned, see
        :func:`~onlinebregman.persistence.save_model`.
    checkpoint_every : int, default=1_000_000
        Number of rows between checkpoints, which are written at the ends of batches and at the end of the stream.
    resume : bool, default=True
        If the checkpoint file exists, resume from it and pass over the rows already learned, which are read, and have
        to be those; a source with positions is read from its own. The result is that of an uninterrupted run, bit for
        bit, also in batches of other sizes. False: start over, and overwrite the file; with `warm_start`, the model
        learns all rows of another stream.
    trusted : iterable of classes, default=()
        See :func:`~onlinebregman.persistence.load_model`.
    prefetch : int, default=2
        Number of batches to read ahead. 0, and from generators and standard input: none, without a thread.
    verbose : bool, default=False
        Print rows, scores and seconds to standard error, each time the number of rows has doubled.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        With the attributes `estimator`, the copy that has learned; `n_rows`, the rows learned, including those before a
        checkpoint; `score`, the mean score, NaN if there is none; `curve` and `curve_rows`, arrays of the mean scores
        up to rows of the stream, at most 256 for a stream of any length.

    Raises
    ------
    ValueError
        If the estimator has no `partial_fit`; if rows have weights, and it or the metric takes none; if the checkpoint
        is of another estimator, of other parameters, of another scoring, or of other rows, or the stream ends before
        it, or has no rows at all. An error of the estimator is passed on, with a note that names the rows, and the line
        of a file; the last checkpoint is kept.
    OSError
        If the checkpoint cannot be written; before a row is read, if there is no such folder.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.streams import fit_stream
    >>> frame = pd.DataFrame(np.random.default_rng(0).normal(size=(5000, 2)), columns=["a", "b"])
    >>> frame.assign(y=frame["a"] + 2.0 * frame["b"]).round(3).to_csv("measured.csv", index=False)
    >>> chunks = pd.read_csv("measured.csv", chunksize=1000)
    >>> result = fit_stream(ImplicitGDRegressor(), chunks, target="y", checkpoint="model.zip")
    >>> result.n_rows, result.estimator.coef_.round(2)
    (5000, array([1., 2.]))
    >>> fit_stream(ImplicitGDRegressor(), "measured.csv", target="y", checkpoint="model.zip").n_rows  # nothing is left
    5000
    """
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(f"{type(estimator).__name__} has no partial_fit and cannot learn incrementally.")
    check_scalar(checkpoint_every, "checkpoint_every", Integral, min_val=1)
    check_scalar(prefetch, "prefetch", Integral, min_val=0)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and (path.exists() > path.is_file() or not path.parent.is_dir()):  # not after hours of learning
        raise OSError(f"{path} cannot be a checkpoint: it is no file, or there is no folder {path.parent}.")
    if path is not None and resume and path.exists():
        model, course = _resumed(estimator, path, trusted)
    else:
        model, course = copy.deepcopy(estimator) if warm_start else clone(estimator), _Course()
    started = is_fitted(model)
    labels = _labels(model, None, classes, started)
    told = {} if labels is None else {"classes": labels}
    scorer = None if scoring is None else as_scorer(scoring, model)[0]
    if course.scoring not in ("", described := description(scoring)):
        said = f"{path} is a checkpoint with scoring = {course.scoring}; got {described}"
        raise ValueError(f"{said}. Give the same scoring, or {START_OVER}.")
    course.scoring = described
    refused = None if scorer is None else why_no_weights(model, scorer, scoring)
    saved_at, resumed_at, reports = course.n_rows, course.n_rows, _Reports(verbose, scorer is None)
    if isinstance(stream, str | os.PathLike):
        stream = FileFrames(stream)
    source = _rest(stream, target, course, path)
    # An error or Ctrl-C would have to wait for a thread that waits for input; connections may be bound to their thread.
    prefetch = 0 if getattr(stream, "path", None) == "-" or isinstance(stream, Generator) else prefetch
    try:
        with closing(_ahead(source, prefetch) if prefetch else source) as rest:
            for position, batch in rest:
                X, y, weights = (*batch, None)[:3]
                n = X.shape[0] if hasattr(X, "shape") else len(X)
                if not n:
                    continue
                given = {} if weights is None else {"sample_weight": weights}
                try:
                    if given and refused is not None:
                        raise ValueError(refused)
                    total = n if weights is None else float(np.sum(weights))
                    if scorer is not None and started and total > 0:
                        course.count(scorer(model, X, y, **given), total)
                    model.partial_fit(X, y, **told, **given)
                except Exception as error:
                    error.add_note(where(error, X, course.n_rows))
                    raise
                started, told = True, {}
                course.learned(n, None if scorer is not None else model)
                course.position, course.settings = position, getattr(stream, "settings", {})
                if path is not None and position is None:
                    course.checksums = checksums((X, y, weights), course.checksums)
                reports.show(course, model, getattr(stream, "fraction", None))
                if path is not None and course.n_rows - saved_at >= checkpoint_every:
                    save_model(model, path, extra=vars(course))
                    saved_at = course.n_rows
    except Exception as error:
        if saved_at > resumed_at:
            error.add_note(f"{path} has learned {saved_at} rows; go on with resume=True (--resume).")
        raise
    if not started:
        raise ValueError("The stream must have at least one row; got none.")
    if path is not None and (course.n_rows > saved_at or not path.exists()):
        save_model(model, path, extra=vars(course))
    reports.show(course, model, None, last=True)
    curve, curve_rows = np.array(course.curve), np.array(course.curve_rows)
    return Bunch(estimator=model, n_rows=course.n_rows, score=course.mean, curve=curve, curve_rows=curve_rows)


class _Course:
    """The progress of a run, and its losses."""

    def __init__(self) -> None:
        self.n_rows, self.n_scored, self.total, self.mean = 0, 0.0, 0.0, float("nan")
        self.curve: list[float] = []
        self.curve_rows: list[int] = []
        self.n_batches, self.every = 0, 1
        self.position: Any = None  # of a source that knows its positions
        self.identity = ""  # of it
        self.checksums = [0, 0, 0]  # of the rows of other streams
        self.settings: dict[str, Any] = {}  # of a stream that has them: how it is read
        self.scoring = ""  # its description

    def count(self, score: float, n: float) -> None:
        self.total += float(score) * n
        self.n_scored += n
        self.mean = self.total / self.n_scored

    def learned(self, n: int, model: Any) -> None:
        self.n_rows += n
        loss = getattr(model, "cumulative_loss_", None)
        if loss is not None and np.ndim(loss) == 0:
            rows = getattr(model, "t_", self.n_rows)
            self.mean = float(loss) / rows if rows else float("nan")
        self.n_batches += 1
        if self.n_batches % self.every == 0:
            self.curve.append(self.mean)
            self.curve_rows.append(self.n_rows)
            if len(self.curve) == HISTORY:
                del self.curve[::2], self.curve_rows[::2]
                self.every *= 2


class _Reports:
    """Lines on standard error at 1, 2, 4, ... batches, as Vowpal Wabbit prints them; on a terminal one that moves."""

    def __init__(self, verbose: bool, is_loss: bool) -> None:
        self.verbose, self.start, self.reported = verbose, time.perf_counter(), 0  # rows
        self.is_loss, self.moves = is_loss, sys.stderr.isatty()

    def show(self, course: _Course, model: Any, fraction: float | None, last: bool = False) -> None:
        new = course.n_rows > self.reported if last else course.n_rows >= 2 * self.reported
        if not (self.verbose and (new or self.moves)):
            return
        name, factor = _measure(model) if self.is_loss else ("mean score", 1.0)
        if not self.reported:
            print(f"{'rows':>14s} {name:>14s} {'seconds':>9s}", file=sys.stderr)
        self.reported = course.n_rows
        line = f"{course.n_rows:14d} {factor * course.mean:14.6g} {time.perf_counter() - self.start:9.1f}"
        if self.moves and not last and fraction is not None:
            done = int(30 * min(fraction, 1.0))
            line += f"  [{'=' * done}{' ' * (30 - done)}] {fraction:4.0%}"
        print(line.ljust(78), end="\r" if self.moves and not last else "\n", file=sys.stderr, flush=True)


def _measure(model: Any) -> tuple[str, float]:
    """The mean loss of a model as the metrics of scikit-learn name it, and its unit: of squared errors it is half."""
    if isinstance(getattr(model, "_learned_loss", None), SquaredLoss) or getattr(model, "loss", "") == "squared_error":
        return "squared_error", 2.0
    of_labels = hasattr(model, "predict_proba") and (not hasattr(model, "loss") or len(model.classes_) == 2)
    return ("log_loss" if of_labels and getattr(model, "loss", "log_loss") == "log_loss" else "mean loss"), 1.0


def where(error: Exception, X: Any, first: int) -> str:
    """The rows of the stream where an error was; of a row of a file its line or number, which the batch knows."""
    n, named = X.shape[0] if hasattr(X, "shape") else len(X), re.search(r"\brow (\d+)", str(error))
    if not named or (row := int(named[1])) >= n:
        return f"This was at rows {first} to {first + n - 1} of the stream."
    if hasattr(X, "lines"):
        return f"Row {row} is line {X.lines[row]} of the file."
    if hasattr(X, "index") and X.index.name in ("line", "row"):
        return f"Row {row} is {X.index.name} {X.index[row]} of the file."
    return f"Row {row} is row {first + row} of the stream."


def _resumed(estimator: Any, path: Path, trusted: Iterable[type]) -> tuple[Any, _Course]:
    model, extra = load_model(path, trusted=trusted, return_extra=True)
    course = _Course()
    if not isinstance(extra, dict) or not extra.keys() >= vars(course).keys():
        raise ValueError(f"{path} is a model, but not a checkpoint; give another file, or {START_OVER}.")
    vars(course).update(extra)
    if type(model) is not type(estimator) or full_parameters(model) != full_parameters(estimator):
        said = f"{path} is a checkpoint of {model!r}, not of {estimator!r}"
        raise ValueError(f"{said}; give another file, or {START_OVER}.")
    return model, course


def _frames(stream: Any) -> Iterable[Any]:
    """The frames or tuples of a stream."""
    if _is_frame(stream):
        return [stream]
    for method in ("to_batches", "to_arrow_reader"):  # of pyarrow's tables and datasets; of what DuckDB executed
        if hasattr(stream, method):
            return getattr(stream, method)()
    if hasattr(stream, "__arrow_c_stream__"):
        return needed("pyarrow").RecordBatchReader.from_stream(stream)
    return stream


def _is_frame(part: Any) -> bool:
    return hasattr(part, "iloc") or hasattr(part, "get_columns")  # of pandas or polars


def _as_tuple(batch: Any, target: str | int | None, number: int) -> tuple[Any, ...]:
    """A frame as (X, y)."""
    if isinstance(batch, tuple) and len(batch) in (2, 3):
        if target is not None:
            raise ValueError(f"Batch {number} is a tuple, and target is for frames. Leave it out.")
        return batch
    batch = frame_of_arrow(batch)
    if not _is_frame(batch):
        said = f"a frame of pandas, polars or pyarrow; got {type(batch).__name__}. Give a list of such tuples or frames"
        raise ValueError(f"Batch {number} must be a tuple (X, y) or (X, y, sample_weight), or {said}.")
    if target is None:
        return batch, None
    name = batch.columns[place(target, batch.columns, "Frames")]
    y = batch[name]
    return (batch.drop(columns=[name]), y) if hasattr(batch, "iloc") else (batch.drop(name), y.to_numpy())


def _rest(stream: Any, target: str | int | None, course: _Course, path: Path | None) -> Generator[Any, None, None]:
    """The batches after the rows that were learned, with the positions behind them of a source that knows them."""
    if hasattr(stream, "read") and hasattr(stream, "identity"):
        if course.n_rows and (course.position is None or course.identity != stream.identity):
            said = f"{path} is a checkpoint of the source {course.identity!r}, not of {stream.identity!r}"
            raise ValueError(f"{said}; give that one, or {START_OVER}.")
        course.identity = stream.identity
        for number, (position, batch) in enumerate(stream.read(course.position)):
            yield position, _as_tuple(batch, target, number)
        return
    other = (
        f"These are other rows than those that {path} has learned. Give that stream, learn all of these rows besides "
        f"with warm_start=True and resume=False (--continue on the command line), or {START_OVER}."
    )
    if course.position is not None:
        raise ValueError(other)
    passed, seen = 0, [0, 0, 0]
    for number, batch in enumerate(_frames(stream)):
        parts = (*_as_tuple(batch, target, number), None)[:3]
        n = parts[0].shape[0] if hasattr(parts[0], "shape") else len(parts[0])
        skip = min(max(course.n_rows - passed, 0), n)
        if skip:
            seen = checksums(_sliced(parts, slice(skip)), seen)
            if passed + skip == course.n_rows and seen != course.checksums:
                raise ValueError(other)
        passed += n
        if skip < n:
            yield None, _sliced(parts, slice(skip, None)) if skip else parts
    if passed < course.n_rows:
        raise ValueError(f"The stream has only {passed} rows, and cannot be read from row {course.n_rows} on. {other}")


def _sliced(parts: tuple[Any, ...], rows: slice) -> tuple[Any, ...]:
    return tuple(each if each is None else each.iloc[rows] if hasattr(each, "iloc") else each[rows] for each in parts)


def checksums(batch: tuple[Any, ...], before: list[int]) -> list[int]:
    """Those of X, y and weights of the rows of a batch, and of the rows before it."""
    return [old if part is None else zlib.crc32(_bits(part).data, old) for part, old in zip(batch, before, strict=True)]


def _bits(part: Any) -> np.ndarray:
    """Rows as numbers, texts as their checksums."""
    if sparse.issparse(part):
        rows = sparse.csr_array(part)
        return np.column_stack([rows.indices, rows.data])
    columns = [part] if np.ndim(part) == 1 else columns_of(part)
    return np.ascontiguousarray(np.column_stack([_bits_of_column(np.asarray(column)) for column in columns]))


def _bits_of_column(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "biuf":
        found = {value: _bits_of_value(value) for value in set(values.tolist())}
        values = np.array([found[value] for value in values.tolist()])
    values = values.astype(np.float64) + 0.0  # one zero, and one NaN
    return np.where(np.isnan(values), np.nan, values)


def _bits_of_value(value: Any) -> float:
    try:  # a part of a file may have numbers where others have their texts
        return np.nan if is_missing(value) else float({"True": 1, "False": 0}.get(value, value))
    except (TypeError, ValueError, OverflowError):
        return float(zlib.crc32(str(value).encode()))


def _ahead(source: Generator[Any, None, None], size: int) -> Generator[Any, None, None]:
    """The same batches, read ahead by `size` in a thread."""
    with ThreadPoolExecutor(1, "fit_stream reads ahead") as thread:
        read = deque(thread.submit(next, source, None) for _ in range(size))
        try:
            while (item := read.popleft().result()) is not None:
                read.append(thread.submit(next, source, None))
                yield item
        finally:
            for item in read:
                item.cancel()
            thread.submit(source.close).result()  # in the thread that used it, which some connections require
