"""Progressive validation: every row is predicted before it is learned."""

from __future__ import annotations

import copy
import inspect
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils import Bunch, check_scalar

from .._online.validation import is_fitted
from ..pipeline import adds_classes, takes_classes
from ._chunks import as_pieces, cut
from ._scoring import Record, as_scorer, scores, why_no_weights


def progressive_val_score(
    estimator: BaseEstimator,
    X: ArrayLike | Iterable[tuple[Any, ...]],
    y: ArrayLike | None = None,
    *,
    scoring: str | Callable | None = None,
    chunk_size: int | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    warm_start: bool = False,
    n_points: int | None = 100,
) -> Bunch:
    """Score an online learner on a stream: each chunk is predicted, then learned with `partial_fit`.

    The score is the metric of all predictions together, each made by the model that had learned the rows before. It is
    therefore meaningful for any metric, including those that are undefined for one row (R², AUC) or are not means over
    rows.

    Parameters
    ----------
    estimator : estimator object
        Any scikit-learn estimator with `partial_fit`. It is not changed; a copy learns.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or iterable of tuples
        Rows in the order of the stream; or, with `y=None`, an iterable of chunks (X, y) or (X, y, sample_weight), of
        which one is held in memory at a time. Empty chunks are skipped.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Targets; None if `X` is an iterable of chunks.
    scoring : str, callable or None, default=None
        The name of a scorer, a scorer(estimator, X, y), or a metric or loss(y_true, y_pred), whose sign is kept. None:
        the estimator's `score`. Functions of `sklearn.metrics` that need probabilities or decision values get these;
        any other function of two arguments gets the output of `predict`. Your own scorer may call `predict`,
        `predict_proba`, `predict_log_proba` and `decision_function` with the `X` that is passed to it, which contains
        row numbers, since the rows are not stored.
    chunk_size : int or None, default=None
        Rows that are predicted before any of them is learned. None: single rows for arrays, and the chunks of an
        iterable without splitting. An int also splits longer chunks of an iterable.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for `partial_fit` and for the metric. With an iterable they are part of its chunks.
    classes : array-like of shape (n_classes,), default=None
        All labels, for the first `partial_fit` of a classifier. None: those in `y`. Required for an iterable, whose
        first chunk may lack some labels, unless the classifier continues with `warm_start`, or adds labels that appear
        later (`handle_unknown="add"`).
    warm_start : bool, default=False
        False: an unfitted clone learns the stream, and its first chunk is learned without being predicted. True: the
        copy continues from the state of `estimator`, and every row is predicted if that is fitted.
    n_points : int or None, default=100
        Largest number of points of the curve, evenly spaced over the chunks. None: one after every chunk, which takes
        quadratic time.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        With the attributes

        score : float
            The metric of all predictions.
        curve : ndarray of shape (n_points,)
            The metric of all predictions up to each point, the last of them `score`; NaN where it is undefined, for
            instance while all rows have the same label.
        window_scores : ndarray of shape (n_points,)
            The metric of the predictions since the previous point, which shows drift sooner.
        n_rows : ndarray of shape (n_points,)
            Rows of the stream up to each point.
        n_scored : int
            Rows that were predicted and scored: all, or all but those of the first chunk.
        y_true : ndarray of shape (n_scored,) or (n_scored, n_outputs)
            Their targets.
        predictions : dict of str to ndarray or list of ndarray
            Their predictions, by name of the method; a list of arrays if the method returns a list.
        estimator : estimator object
            The copy that has learned the whole stream.

    Raises
    ------
    ValueError
        If the estimator has no `partial_fit`, or does not support the required methods or weights; if the stream has no
        rows, or none to score; if labels are unknown, or lengths differ. An error of the estimator is passed on, with a
        note that names the rows of the stream.

    References
    ----------
    A. P. Dawid, "Present position and potential developments: some personal views: statistical theory: the
    prequential approach", Journal of the Royal Statistical Society A 147 (1984); A. Blum, A. Kalai and J. Langford,
    "Beating the hold-out: bounds for k-fold and progressive cross-validation", COLT 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ImplicitGDRegressor
    >>> from onlinebregman.model_selection import progressive_val_score
    >>> X = np.random.default_rng(0).normal(size=(1000, 5))
    >>> y = X @ [1.0, -2.0, 0.0, 0.5, 3.0]
    >>> result = progressive_val_score(ImplicitGDRegressor(), X, y, scoring="r2", n_points=4)
    >>> result.n_rows, result.n_scored
    (array([ 250,  500,  750, 1000]), 999)
    >>> print(result.curve.round(3), result.window_scores.round(3))
    [0.957 0.981 0.987 0.991] [0.957 1.    1.    1.   ]

    A classifier that learns a stream in chunks, evaluated with a loss:

    >>> from sklearn.metrics import log_loss
    >>> from sklearn.naive_bayes import GaussianNB
    >>> chunks = ((X[i : i + 100], y[i : i + 100] > 0) for i in range(0, 1000, 100))
    >>> result = progressive_val_score(GaussianNB(), chunks, scoring=log_loss, classes=[False, True])
    >>> round(result.score, 2), result.n_scored
    (0.28, 900)
    """
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(
            f"{type(estimator).__name__} has no partial_fit and cannot learn incrementally; use an online learner "
            "(for a Pipeline, use onlinebregman.pipeline.OnlinePipeline)."
        )
    for name, value in (("chunk_size", chunk_size), ("n_points", n_points)):
        if value is not None:
            check_scalar(value, name, Integral, min_val=1)
    scorer, methods = as_scorer(scoring, estimator)
    learner = copy.deepcopy(estimator) if warm_start else clone(estimator)
    started = is_fitted(learner)
    chunks = cut(
        as_pieces(X, y, sample_weight),
        chunk_size or (None if y is None else 1),
        numeric=is_regressor(learner),
        why_no_weights=why_no_weights(learner, scorer, scoring),
    )
    record = _predict_then_learn(learner, chunks, methods, started, _labels(learner, y, classes, started))
    return Bunch(
        **scores(scorer, learner, record, n_points),
        n_scored=len(record.y_true),
        y_true=record.y_true,
        predictions=record.predictions,
        estimator=learner,
    )


class _Rows:
    """Collects arrays, and concatenates them now and then, so that many single rows are not stored as many objects."""

    def __init__(self) -> None:
        self._parts: list = []
        self._blocks: list = []

    def append(self, part) -> None:
        self._parts.append(part)
        if len(self._parts) == 4096:
            self._blocks.append(_joined(self._parts))
            self._parts.clear()

    def joined(self) -> np.ndarray | list[np.ndarray]:
        return _joined(self._blocks + self._parts)


def _joined(parts: list) -> np.ndarray | list[np.ndarray]:
    if isinstance(parts[0], list) and isinstance(parts[0][0], np.ndarray):  # probabilities of several outputs
        return [np.concatenate(output) for output in zip(*parts, strict=True)]
    return np.concatenate(parts)


def _predict_then_learn(learner, chunks: Iterator, methods: Sequence[str], started: bool, classes) -> Record:
    """Predict each chunk, then learn it; if `learner` has not `started`, the first chunk is only learned."""
    learn = learner.partial_fit
    predictions = {name: _Rows() for name in methods}
    predicts = [(getattr(learner, name), rows) for name, rows in predictions.items()]
    targets, weights, ends, n_rows = _Rows(), _Rows(), array("q"), 0
    arguments = {} if classes is None else {"classes": classes}
    for X, y, weight in chunks:
        first, n_rows = n_rows, n_rows + len(y)
        try:
            if started:
                for predict, rows in predicts:
                    rows.append(predict(X))
                targets.append(y)
                ends.append(n_rows)
            if weight is not None:
                arguments["sample_weight"] = weight
                if started:
                    weights.append(weight)
            learn(X, y, **arguments)
        except Exception as error:
            error.add_note(f"This was at rows {first} to {n_rows - 1} of the stream.")
            raise
        started = True
        arguments.pop("classes", None)
    if not n_rows:
        raise ValueError("The stream has no rows; give at least one to learn and one to score.")
    if not ends:
        raise ValueError(
            f"All {n_rows} rows are in the first chunk, which must be learned before anything can be predicted, so "
            "that none is left to score; use smaller chunks, or warm_start=True with a fitted estimator."
        )
    return Record(
        np.asarray(targets.joined()),
        np.asarray(weights.joined()) if "sample_weight" in arguments else None,
        {name: rows.joined() for name, rows in predictions.items()},
        np.frombuffer(ends, np.int64),
    )


def _labels(learner, y, classes, started: bool):
    """`classes` for the first call of `partial_fit`; None if it does not need them."""
    if is_regressor(learner) or "classes" not in inspect.signature(learner.partial_fit).parameters:
        if classes is not None:
            raise ValueError(f"classes must be None, as {type(learner).__name__}.partial_fit does not accept it.")
        return None
    if classes is not None or started:
        return list(classes) if isinstance(classes, Set) else classes
    if not takes_classes(learner):  # a pipeline without such steps
        return None
    if y is None:
        if adds_classes(learner):
            return None
        raise ValueError(
            f"classes must be given for an iterable, as its first chunk may lack labels that {type(learner).__name__} "
            "will see; give all labels of the stream."
        )
    if np.ndim(y) != 1:
        raise ValueError(f"classes is None, but y has {np.ndim(y)} dimensions; give classes as partial_fit takes them.")
    return np.unique(np.asarray(y))
