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

from .._online.docs import described_by
from .._online.validation import check_targets_readable, is_fitted
from ..pipeline import adds_classes, check_instance, takes_classes
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
    delay: ArrayLike | None = None,
    times: ArrayLike | None = None,
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
    delay : number or array-like of shape (n_samples,), default=None
        How long after its row a label is known, in the units of `times`: rows are predicted in their order, each chunk
        by the model that has learned the labels that came before the moment of its first row, in the order in which
        they came, all that came between two chunks in one call of `partial_fit`. The label of a row with an infinite
        delay, or NaT, never comes. None: each chunk is learned before the next one is predicted. For arrays.
    times : array-like of shape (n_samples,), default=None
        The moments of the rows, which do not decrease: numbers, or datetimes, with a `delay` of timedeltas. None: the
        numbers of the rows, so that with delay=10 ten more rows are predicted before a label is known.
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
    check_scalar_or_none(n_points, "n_points")
    _check_learner(estimator)
    scorer, methods = as_scorer(scoring, estimator)
    learner, record = _pass(
        *(estimator, X, y, sample_weight, methods, chunk_size, classes, warm_start, delay, times),
        lambda learner: why_no_weights(learner, scorer, scoring),
    )
    return Bunch(
        **scores(scorer, learner, record, n_points),
        n_scored=len(record.y_true),
        y_true=record.y_true,
        predictions=record.predictions,
        estimator=learner,
    )


@described_by(progressive_val_score)
def progressive_val_predict(
    estimator: BaseEstimator,
    X: ArrayLike | Iterable[tuple[Any, ...]],
    y: ArrayLike | None = None,
    *,
    method: str = "predict",
    chunk_size: int | None = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    warm_start: bool = False,
    delay: ArrayLike | None = None,
    times: ArrayLike | None = None,
    **params: Any,
) -> np.ndarray | list[np.ndarray]:
    """The predictions of an online learner on a stream, each made before its row was learned.

    Parameters
    ----------
    {estimator, X, y}
    method : str
        The method that predicts: "predict", "predict_proba", "predict_interval" or any other that takes rows.
    {chunk_size, sample_weight, classes, warm_start, delay, times}
    **params : dict
        Further arguments of the method, such as `coverage`.

    Returns
    -------
    predictions : ndarray or list of ndarray
        Those of all rows but the first ones, which were learned before anything could be predicted: of the last
        `len(predictions)` rows. A list, if the method returns several arrays, such as both ends of intervals.

    See Also
    --------
    progressive_val_score : Their score.

    Examples
    --------
    Days of 24 hours, each predicted as a whole before any of its targets is known:

    >>> import numpy as np
    >>> from onlinebregman import ParameterFreeRegressor
    >>> from onlinebregman.model_selection import progressive_val_predict
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2400, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=2400)
    >>> model = ParameterFreeRegressor(random_features=0, delayed=True)
    >>> lower, upper = progressive_val_predict(model, X, y, method="predict_interval", coverage=0.9, chunk_size=24)
    >>> print(f"{np.mean((lower <= y[24:]) & (y[24:] <= upper)):.2f}")
    0.90
    """
    _check_learner(estimator)
    if not hasattr(estimator, method):
        raise ValueError(f"{type(estimator).__name__} has no method {method!r}; give one that predicts rows.")
    _, record = _pass(
        *(estimator, X, y, sample_weight, [method], chunk_size, classes, warm_start, delay, times),
        lambda learner: why_no_weights(learner, None, None),
        params,
    )
    return record.predictions[method]


def _check_learner(estimator: Any) -> None:
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(
            f"{type(estimator).__name__} has no partial_fit and cannot learn incrementally; use an online learner "
            "(for a Pipeline, use onlinebregman.pipeline.OnlinePipeline)."
        )
    check_instance(estimator, "estimator")


def _pass(
    estimator, X, y, sample_weight, methods, chunk_size, classes, warm_start, delay, times, why, params=None
) -> tuple[Any, Record]:
    """The copy that has learned the stream, and the record of its predictions."""
    check_scalar_or_none(chunk_size, "chunk_size")
    learner = copy.deepcopy(estimator) if warm_start else clone(estimator)
    started = is_fitted(learner)
    chunks = cut(
        as_pieces(X, y, sample_weight),
        chunk_size or (None if y is None else 1),
        numeric=is_regressor(learner),
        why_no_weights=why(learner),
    )
    late = None
    if delay is not None or times is not None:
        late = _LateLabels(X, y, sample_weight, delay, times, chunk_size or 1, is_regressor(learner))
    labels = _labels(learner, y, classes, started)
    return learner, _predict_then_learn(learner, chunks, methods, started, labels, late, params or {})


def check_scalar_or_none(value: Any, name: str) -> None:
    if value is not None:
        check_scalar(value, name, Integral, min_val=1)


class _LateLabels:
    """The rows of arrays in the order in which their labels come."""

    def __init__(self, X, y, sample_weight, delay, times, chunk_size: int, numeric: bool) -> None:
        if y is None or delay is None:
            raise ValueError("delay and times are for arrays X and y, times with a delay; got an iterable or None.")
        (self.arrays,) = cut([(X, y, sample_weight)], None, numeric=numeric, why_no_weights=None)
        n = len(self.arrays[1])
        moments = np.arange(n) if times is None else np.asarray(times)
        if moments.shape != (n,) or not (moments[1:] >= moments[:-1]).all():
            raise ValueError(f"times must be {n} moments, one for each row, that do not decrease.")
        # objects are datetimes and timedeltas of Python, or of pandas with a time zone
        moments = (moments - moments[:1]).astype("m8[us]") if moments.dtype == object else moments
        delay = np.asarray(delay)
        delay = delay.astype("m8[us]") if delay.dtype == object else delay
        if (delay.dtype.kind == "m") != (moments.dtype.kind in "mM"):
            raise ValueError(f"delay must be timedeltas if times are datetimes, and else numbers; got {delay}.")
        if delay.shape not in ((), (n,)) or (delay < np.zeros((), delay.dtype)).any():
            raise ValueError(f"delay must be >= 0, one for all or for each of {n} rows; got {delay}.")
        comes = moments + delay
        # before which chunk each label comes, the chunks being predicted at the moments of their first rows
        self.chunk = np.searchsorted(moments[::chunk_size], comes, side="right")
        never = np.isnat(comes) if comes.dtype.kind in "mM" else ~np.isfinite(comes)
        order = np.argsort(comes, kind="stable")
        self.order = order[~never[order]]
        self.chunk = self.chunk[self.order]

    def before(self, chunk: int | None) -> Iterator[tuple]:
        """The rows whose labels have come before a chunk, and since the one before; None: all others."""
        n = len(self.order) if chunk is None else int(self.chunk.searchsorted(chunk, side="right"))
        rows, self.order, self.chunk = self.order[:n], self.order[n:], self.chunk[n:]
        if len(rows):
            X, y, weights = self.arrays
            yield getattr(X, "iloc", X)[rows], y[rows], None if weights is None else weights[rows]


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


def _predict_then_learn(
    learner,
    chunks: Iterator,
    methods: Sequence[str],
    started: bool,
    classes,
    late: _LateLabels | None,
    params: dict[str, Any],
) -> Record:
    """Predict each chunk, then learn it; if `learner` has not `started`, the first chunk is only learned.

    Of labels that come `late`, those are learned before a chunk is predicted that have come by then.
    """

    def learn(X, y, weight) -> None:
        nonlocal started
        if weight is not None:
            arguments["sample_weight"] = weight
        learner.partial_fit(X, y, **arguments)
        started = True
        arguments.pop("classes", None)

    predictions = {name: _Rows() for name in methods}
    predicts = [(getattr(learner, name), rows) for name, rows in predictions.items()]
    targets, weights, ends, n_rows = _Rows(), _Rows(), array("q"), 0
    arguments: dict[str, Any] = {} if classes is None else {"classes": classes}
    first, weight = 0, None
    try:
        for number, (X, y, weight) in enumerate(chunks):
            first, n_rows = n_rows, n_rows + len(y)
            for block in () if late is None else late.before(number):
                learn(*block)
            if started:
                for predict, rows in predicts:
                    made = predict(X, **params)
                    rows.append(list(made) if isinstance(made, tuple) else made)
                targets.append(y)
                ends.append(n_rows)
                if weight is not None:
                    weights.append(weight)
            if late is None:
                learn(X, y, weight)
        for block in () if late is None else late.before(None):
            learn(*block)
    except Exception as error:
        error.add_note(f"This was at rows {first} to {n_rows - 1} of the stream.")
        raise
    if not n_rows:
        raise ValueError("The stream has no rows; give at least one to learn and one to score.")
    if not ends:
        raise ValueError(
            f"All {n_rows} rows are in the first chunk, which must be learned before anything can be predicted, or "
            "before the first label; use smaller chunks, a shorter delay, or warm_start=True with a fitted estimator."
        )
    return Record(
        np.asarray(targets.joined()),
        None if weight is None else np.asarray(weights.joined()),
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
    return np.unique(check_targets_readable(y, labels=True))
