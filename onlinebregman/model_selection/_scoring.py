"""Scorers and metrics of predictions that were made at different times, while a model learned."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from sklearn import metrics
from sklearn.base import is_classifier, is_regressor

from .._sklearn_compat import response_method, score_function
from ..pipeline import last_step

_RESPONSES = ("predict", "predict_proba", "predict_log_proba", "decision_function")
_RANKINGS = ("decision_function", "predict_proba")
# The methods that metrics read which do not compare targets with the values of predict.
_READ_BY = {
    metrics.average_precision_score: _RANKINGS,
    metrics.brier_score_loss: "predict_proba",
    metrics.d2_log_loss_score: "predict_proba",
    metrics.hinge_loss: "decision_function",
    metrics.log_loss: "predict_proba",
    metrics.roc_auc_score: _RANKINGS,
    metrics.top_k_accuracy_score: _RANKINGS,
}


class Record(NamedTuple):
    """The record of a pass: targets, weights and predictions, by method, of all scored rows."""

    y_true: np.ndarray
    weights: np.ndarray | None
    predictions: dict[str, np.ndarray | list[np.ndarray]]
    ends: np.ndarray  # rows of the stream up to the end of each scored chunk

    @property
    def skipped(self) -> int:
        """Rows before the first that was scored."""
        return self.ends[-1] - len(self.y_true)


def as_scorer(scoring, estimator) -> tuple[Callable, list[str]]:
    """`scoring` as a scorer(estimator, X, y), and the names of the methods it may call."""
    name, has = type(estimator).__name__, [method for method in _RESPONSES if hasattr(estimator, method)]
    if scoring is None:
        if not (is_regressor(estimator) or is_classifier(estimator)):
            raise ValueError(
                f"scoring is None, but {name} is neither a regressor nor a classifier, whose score compares targets "
                "with predictions; give a scorer."
            )
        return type(last_step(estimator)).score, ["predict"]
    scorer = scoring
    if isinstance(scoring, str):
        scorer = metrics.get_scorer(scoring)
    elif not callable(scoring):
        raise ValueError(f"scoring must be the name of a scorer, a callable or None; got {scoring!r}.")
    elif not _takes_estimator(scoring):
        read = _READ_BY.get(getattr(scoring, "func", scoring), "predict")
        scorer = metrics.make_scorer(scoring, response_method=read)
    # Scorers of scikit-learn name the method that they read, or several of which the first available one is read.
    read = response_method(scorer)
    if read is None:
        return scorer, has
    read = [read] if isinstance(read, str) else read
    methods = [method for method in read if method in has][:1]
    if not methods:
        raise ValueError(f"{name} has no {' or '.join(read)}, which scoring = {scoring!r} reads; use another scorer.")
    return scorer, methods


def _takes_estimator(function: Callable) -> bool:
    """Whether a callable is a scorer(estimator, X, y) and not a metric(y_true, y_pred)."""
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is p.empty for p in positional) > 2 or any(p.name == "X" for p in positional)


def why_no_weights(estimator, scorer, scoring) -> str | None:
    """Why rows cannot have weights; None if they can."""
    takers = [(f"{type(estimator).__name__}.partial_fit", estimator.partial_fit)]
    if scorer is not None:
        takers.append((f"scoring = {scoring!r}", score_function(scorer)))
    for what, function in takers:
        if "sample_weight" not in inspect.signature(function).parameters:
            return f"Rows have weights, but {what} does not accept sample_weight; omit them, or use one that does."
    return None


def _replay(estimator, record: Record):
    """A copy of `estimator` that returns the recorded predictions of rows, given by their numbers."""

    def recorded(name: str) -> Callable:
        def method(rows):
            if name not in record.predictions:
                raise ValueError(
                    f"scoring=None calls {name}, but only predict was recorded; pass your own scorer(estimator, X, "
                    "y), for which all methods are recorded."
                )
            predictions, scored = record.predictions[name], np.asarray(rows) - record.skipped
            return [output[scored] for output in predictions] if isinstance(predictions, list) else predictions[scored]

        method.__name__ = name  # scikit-learn distinguishes probabilities and labels by it
        return method

    replay = copy.copy(estimator)
    for name in _RESPONSES:
        if hasattr(estimator, name):
            setattr(replay, name, recorded(name))
    return replay


def scores(scorer, learner, record: Record, n_points: int | None) -> dict[str, float | np.ndarray]:
    """The metric of everything, up to each of at most `n_points` points, and between them."""
    last = last_step(learner)
    replay = _replay(last if scorer is getattr(type(last), "score", None) else learner, record)
    ends, skipped = record.ends, record.skipped

    def score(rows: np.ndarray) -> float:
        weights = {} if record.weights is None else {"sample_weight": record.weights[rows - skipped]}
        return float(scorer(replay, rows, record.y_true[rows - skipped], **weights))

    def score_of_few(start: int, stop: int) -> float:
        """The score of some rows; NaN where the metric is not defined for so few rows, without its warnings.

        Those of weight 0 are none of them, or a metric that is not defined would be a quotient of rounding errors.
        """
        rows = np.arange(start, stop)
        if record.weights is not None:
            rows = rows[record.weights[rows - skipped] > 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return score(rows)
            except (ValueError, ZeroDivisionError):
                return np.nan

    n_points = min(n_points or len(ends), len(ends))
    points = ends[np.arange(1, n_points + 1) * len(ends) // n_points - 1]
    total = score(np.arange(skipped, ends[-1]))
    return {
        "score": total,
        "curve": np.array([*(score_of_few(skipped, stop) for stop in points[:-1]), total]),
        "window_scores": np.array([score_of_few(*window) for window in pairwise([skipped, *points])]),
        "n_rows": points,
    }
