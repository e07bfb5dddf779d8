"""One resumable pass over a stream that is larger than memory."""

from __future__ import annotations

import copy
import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch, check_scalar

from .._online.validation import is_fitted
from ..model_selection._progressive import _labels
from ..model_selection._scoring import as_scorer, why_no_weights
from ..persistence import description, full_parameters, load_model, save_model
from ._batches import START_OVER, Batches, check_start

_LATER = {"feature_names", "texts", "scoring"}  # that checkpoints of earlier versions do not have
HISTORY = 256  # largest number of points of a curve; when it is exceeded, every other point is dropped


def fit_stream(
    estimator: BaseEstimator,
    batches: Iterable[tuple[Any, ...]],
    *,
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
    """Let an estimator learn a stream of batches, once, in bounded memory.

    Parameters
    ----------
    estimator : estimator object
        Any with `partial_fit`. It is not changed; a copy learns.
    batches : iterable of tuples
        (X, y) or (X, y, sample_weight) or (X, None): those of this module, a list, or a generator. The next batches are
        read in a thread while one is learned.
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
        A file for the model and the position in the stream, see :func:`~onlinebregman.persistence.save_model`.
    checkpoint_every : int, default=1_000_000
        Number of rows between checkpoints, which are written at the ends of batches and at the end of the stream.
    resume : bool, default=True
        If the checkpoint file exists, resume from it and skip the rows already learned. The result is that of an
        uninterrupted run, bit for bit, also with another `batch_size`: the columns that the first batch of a CSV file
        found to be text remain text. False: start over, and overwrite the file.
    trusted : iterable of classes, default=()
        See :func:`~onlinebregman.persistence.load_model`.
    prefetch : int, default=2
        Number of batches to read ahead. 0, and from standard input: none, without a thread.
    verbose : bool, default=False
        Print rows, scores and seconds to standard error, each time the number of rows has doubled.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        With the attributes

        estimator : estimator object
            The copy that has learned.
        n_rows : int
            Rows learned, including those before a checkpoint.
        score : float
            The mean score; NaN if there is none.
        curve : ndarray of shape (n_points,)
            The mean score up to `curve_rows`, at most 256 points for a stream of any length.
        curve_rows : ndarray of shape (n_points,)
            Rows of the stream.

    Raises
    ------
    ValueError
        If the estimator has no `partial_fit`; if rows have weights, and it or the metric takes none; if the checkpoint
        is of another estimator, of other parameters, of another scoring, or of other names or kinds of columns, or the
        stream ends before it, or has no rows at all. An error of the estimator is passed on, with a note that names the
        rows; the last checkpoint is kept.
    OSError
        If the checkpoint cannot be written; before a row is read, if there is no such folder.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.streams import ArrayBatches, fit_stream
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> batches = ArrayBatches(X, X @ [1.0, 2.0, 3.0], batch_size=1000)
    >>> result = fit_stream(ImplicitGDRegressor(), batches, checkpoint="model.zip")
    >>> result.n_rows, result.estimator.coef_.round(2)
    (5000, array([1., 2., 3.]))
    >>> fit_stream(ImplicitGDRegressor(), batches, checkpoint="model.zip").n_rows  # nothing left to learn
    5000
    """
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(f"{type(estimator).__name__} has no partial_fit and cannot learn incrementally.")
    check_scalar(checkpoint_every, "checkpoint_every", Integral, min_val=1)
    check_scalar(prefetch, "prefetch", Integral, min_val=0)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and (path.is_dir() or not path.parent.is_dir()):  # not after hours of learning
        raise OSError(f"{path} cannot be a checkpoint: it is a folder, or there is no folder {path.parent}.")
    if path is not None and resume and path.exists():
        model, course = _resumed(estimator, path, trusted)
    else:
        model, course = copy.deepcopy(estimator) if warm_start else clone(estimator), _Course()
    started = is_fitted(model)
    labels = _labels(model, None, classes, started)
    told = {} if labels is None else {"classes": labels}
    scorer = None if scoring is None else as_scorer(scoring, model)[0]
    course.score_by(description(scoring), path)
    refused = None if scorer is None else why_no_weights(model, scorer, scoring)
    saved_at, reports = course.n_rows, _Reports(verbose)
    source = _rest(batches, course)
    if isinstance(batches, Batches) and getattr(batches, "path", None) == "-":  # standard input
        prefetch = 0  # an error or Ctrl-C would have to wait for the thread, which waits for input
    with closing(_ahead(source, prefetch) if prefetch else source) as rest:
        for batch in rest:
            if isinstance(batches, Batches):
                course.name(batches.feature_names_, batches._texts, path)
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
                error.add_note(f"This was at rows {course.n_rows} to {course.n_rows + n - 1} of the stream.")
                raise
            started, told = True, {}
            course.learned(n, None if scorer is not None else model)
            reports.show(course)
            if path is not None and course.n_rows - saved_at >= checkpoint_every:
                save_model(model, path, extra=vars(course))
                saved_at = course.n_rows
    if not started:
        raise ValueError("The stream must have at least one row; got none.")
    if path is not None and (course.n_rows > saved_at or not path.exists()):
        save_model(model, path, extra=vars(course))
    reports.show(course, last=True)
    return Bunch(
        estimator=model,
        n_rows=course.n_rows,
        score=course.mean,
        curve=np.array(course.curve),
        curve_rows=np.array(course.curve_rows),
    )


class _Course:
    """The progress of a run, and its losses."""

    def __init__(self) -> None:
        self.n_rows, self.n_scored, self.total, self.mean = 0, 0.0, 0.0, float("nan")
        self.curve: list[float] = []
        self.curve_rows: list[int] = []
        self.n_batches, self.every = 0, 1
        self.feature_names: list[str] | None = None
        self.texts: tuple[list[bool], bool | None] | None = None  # of `Batches`
        self.scoring = ""  # its description

    def score_by(self, scoring: str, path: Path | None) -> None:
        """The scores of a curve are all by one scoring."""
        if self.scoring not in ("", scoring):
            raise ValueError(
                f"{path} is a checkpoint with scoring = {self.scoring}; got {scoring}. Give the same scoring, or "
                f"{START_OVER}."
            )
        self.scoring = scoring

    def name(self, names: list[str] | None, texts: tuple[list[bool], bool | None] | None, path: Path | None) -> None:
        """Columns are learned by their places: those of a checkpoint must have had the same names, and kinds."""
        if self.feature_names is None:
            self.feature_names = names
        elif names is not None and names != self.feature_names:
            raise ValueError(
                f"{path} is a checkpoint of the columns {', '.join(self.feature_names)}; got {', '.join(names)}. Give "
                f"these columns in this order (`columns` of batches), or {START_OVER}."
            )
        if self.texts is None:
            self.texts = texts
        elif texts is not None and texts[0] != self.texts[0]:
            learned, given = (
                ", ".join(map(str, itertools.compress(names or itertools.count(), mask))) or "none"
                for mask in (self.texts[0], texts[0])
            )
            raise ValueError(
                f"{path} is a checkpoint of these columns of text: {learned}; got {given}. Omit `text_columns` of "
                f"batches, or {START_OVER}."
            )

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
    """Lines on standard error at 1, 2, 4, ... batches, as Vowpal Wabbit prints them."""

    def __init__(self, verbose: bool) -> None:
        self.verbose, self.start, self.next, self.shown = verbose, time.perf_counter(), 0, False

    def show(self, course: _Course, last: bool = False) -> None:
        if not self.verbose or (course.n_rows < self.next and not last):
            return
        if not self.shown:
            print(f"{'rows':>14s} {'mean score':>14s} {'seconds':>9s}", file=sys.stderr)
        self.shown, self.next = True, 2 * course.n_rows
        seconds = time.perf_counter() - self.start
        print(f"{course.n_rows:14d} {course.mean:14.6g} {seconds:9.1f}", file=sys.stderr, flush=True)


def _resumed(estimator: Any, path: Path, trusted: Iterable[type]) -> tuple[Any, _Course]:
    model, extra = load_model(path, trusted=trusted, return_extra=True)
    course = _Course()
    if not isinstance(extra, dict) or extra.keys() | _LATER != vars(course).keys():
        raise ValueError(f"{path} is a model, but not a checkpoint; give another file, or {START_OVER}.")
    vars(course).update(extra)
    if type(model) is not type(estimator) or full_parameters(model) != full_parameters(estimator):
        raise ValueError(
            f"{path} is a checkpoint of {model!r}, not of {estimator!r}; give another file, or {START_OVER}."
        )
    return model, course


def _rest(batches: Iterable[tuple[Any, ...]], course: _Course) -> Generator[tuple[Any, ...], None, None]:
    """The batches after the rows that were learned."""
    n_rows = course.n_rows
    if isinstance(batches, Batches):
        yield from batches._resume(n_rows, course.texts)
        return
    passed = 0
    for number, batch in enumerate(batches):
        if not isinstance(batch, tuple) or len(batch) not in (2, 3):
            raise ValueError(
                f"Batch {number} must be a tuple (X, y) or (X, y, sample_weight); got {type(batch).__name__}"
                + (f" of length {len(batch)}." if isinstance(batch, tuple) else ". Give a list of such tuples.")
            )
        n = batch[0].shape[0] if hasattr(batch[0], "shape") else len(batch[0])
        skip = min(max(n_rows - passed, 0), n)
        passed += n
        if skip == 0:
            yield batch
        elif skip < n:
            yield tuple(None if part is None else part[skip:] for part in batch)
    check_start(n_rows, passed)


def _ahead(source: Generator[Any, None, None], size: int) -> Generator[Any, None, None]:
    """The same batches, read ahead by `size` in a thread."""
    read: queue.Queue[tuple[str, Any]] = queue.Queue(size)
    stop = threading.Event()

    def put(kind: str, item: Any) -> bool:
        while not stop.is_set():
            try:
                read.put((kind, item), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in source:
                if not put("batch", item):
                    return
            put("end", None)
        except BaseException as error:  # is raised where batches are learned
            put("error", error)
        finally:
            source.close()  # in the thread that used it, which some connections require

    thread = threading.Thread(target=work, name="fit_stream reads ahead", daemon=True)
    thread.start()
    try:
        while True:
            kind, item = read.get()
            if kind == "end":
                return
            if kind == "error":
                raise item
            yield item
    finally:
        stop.set()
        thread.join()
