"""The regret of a run of a model, and its bound, at some of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.base import clone, is_classifier

from ..linear_model._base import parts_of
from ._base import Array

# attributes of models that know the best in hindsight
_OF_THE_BEST = ("regret_", "expert_losses_", "cumulative_losses_")


def regret_of(estimator, X, y, coef, intercept, best_kw, n_points: int) -> dict[str, Any]:
    """What `RegretDisplay` holds, for a clone of an estimator that learns the rows."""
    model = clone(estimator)
    if hasattr(model, "regret_bound"):
        return _against_weights(model, X, y, coef, intercept, best_kw, n_points)
    name = type(model).__name__
    if not any(hasattr(type(model), key) for key in _OF_THE_BEST):
        raise ValueError(
            f"{name} has neither regret_bound nor regret_bound_; compute the regret and give it to the "
            "constructor, or use from_predictions."
        )
    if coef is not None or intercept is not None or best_kw is not None:
        raise ValueError(f"{name} is compared with the best in hindsight; omit coef and best_kw.")
    return _against_the_best(model, X, y, n_points)


def _against_weights(model, X, y, coef, intercept, best_kw, n_points: int) -> dict[str, Any]:
    """The certificate of a run of a linear model."""
    name, parameters = type(model).__name__, model.get_params(deep=False)
    if not hasattr(type(model), "coef_") or parameters.get("update") == "gradient":
        raise ValueError(
            f"{name} with these parameters is not a linear model with a certificate for its rates; compute the regret "
            "and give it to the constructor."
        )
    _check_comparator(parameters, coef, intercept)
    if parameters.get("standardize") == "auto":
        model.set_params(standardize=False)
    rated = "track_regret" in parameters  # the other models have no rates, and always a bound
    if rated:
        model.set_params(track_regret=True)
    if best_kw is not None and not rated:
        raise ValueError(f"{name} bounds no regret against the best comparator; omit best_kw.")
    X, y = _indexable(X), np.asarray(y)
    ends = _points(len(y), n_points)
    *_, last = _runs(clone(model), X, y, ends)
    if coef is None:
        coef, intercept = last.coef_, last.intercept_
    intercept = 0.0 if intercept is None else intercept
    rates = _rates_of(last, X, y) if rated else np.ones((len(y), 1))
    constant = bool((rates == rates[0, 0]).all())
    lost, bound, best_bound, weighted = [], [], [], {"weighted": True} if rated else {}
    for run in _runs(model, X, y, ends):
        lost.append(np.sum(run.weighted_loss_ if rated else run.cumulative_loss_))
        bound.append(np.sum(run.regret_bound(coef, intercept, **weighted)))
        best_bound.append(0.0 if best_kw is None else np.sum(run.regret_bound(**{"weighted": not constant} | best_kw)))
    losses = _losses_of(last, X, y, coef, intercept)
    best = np.cumsum((rates[:, : losses.shape[1]] * losses).sum(axis=1))[ends - 1]
    unit = rates[0, 0] if constant else 1.0
    return {
        "n_rows": ends,
        "regret": (lost - best) / unit,
        "bound": np.divide(bound, unit),
        "best_bound": None if best_kw is None else best_bound,
        "regret_name": "regret" if constant else "regret, of losses times rates",
    }


def _check_comparator(parameters: dict[str, Any], coef, intercept) -> None:
    if parameters.get("standardize") is True:
        raise ValueError(
            "With standardize=True comparators are weights of columns whose scale changes with each row; set "
            "standardize=False, and standardize the rows beforehand (sklearn.preprocessing.StandardScaler)."
        )
    if parameters.get("thresholds") is not None:
        raise ValueError(
            "With thresholds comparators are weights of indicators, whose bins move with each row; give the rows "
            "of indicators to a model without thresholds."
        )
    if intercept is not None and coef is None:
        raise ValueError("There is an intercept, but no coef; give both, or neither.")


def _rates_of(model, X, y) -> Array:
    """The rate of each row, in each learner if they differ, in a run like that of this model.

    Adaptive divergences change the rates of the schedule, and a `LossSchedule` has none by itself; their learners know
    that of the last row.
    """
    schedule, numbers = model.learning_rate, np.arange(1, len(y) + 1)
    if model.divergence_.adaptive or getattr(schedule, "sees_loss", schedule in ("pa1", "pa2")):
        runs = _runs(clone(model), X, y, numbers)
        return np.array([[part.tracked_rates[1] for part in parts_of(run._learner)] for run in runs])
    return model._schedule()(numbers)[:, np.newaxis]


def _against_the_best(model, X, y, n_points: int) -> dict[str, Any]:
    """The regret against the best in hindsight, of a mixture that of its members, at some of the rows."""
    X, y = _indexable(X), None if y is None else np.asarray(y)
    ends, regret, bound = _points(X.shape[0], n_points), [], []
    try:
        for run in _runs(model, X, y, ends):
            if hasattr(run, "regret_"):
                regret.append(run.regret_)
            else:
                members = run.expert_losses_ if hasattr(run, "expert_losses_") else run.cumulative_losses_
                regret.append(run.cumulative_loss_ - members.min())
            bound.append(run.regret_bound_)
    except AttributeError as error:
        raise ValueError(f"{type(model).__name__} has no bound on its regret: {error}.") from error
    return {"n_rows": ends, "regret": regret, "bound": bound}


def _points(n_rows: int, n_points: int) -> NDArray[np.intp]:
    """At most this many row numbers, evenly spaced, up to the last."""
    n_points = min(n_points, n_rows)
    return np.arange(1, n_points + 1) * n_rows // n_points


def _runs(model, X, y, ends) -> Iterator[Any]:
    """The model after each of these numbers of rows."""
    more = {"classes": np.unique(y)} if is_classifier(model) and y.ndim == 1 else {}
    for start, end in pairwise([0, *ends]):
        model.partial_fit(X[start:end], *(() if y is None else (y[start:end],)), **more)
        more = {}
        yield model


def _losses_of(model, X, y, coef, intercept) -> Array:
    """The losses of a fixed linear model on each row, in each of the model's learners, times the rows' weights."""
    scores = X @ np.atleast_2d(np.asarray(coef, dtype=np.float64)).T + intercept
    if not is_classifier(model):
        return model._learned_loss.value(scores, y.reshape(len(y), -1).astype(np.float64))
    codes = y if y.ndim == 2 else np.searchsorted(model.classes_, y)
    if getattr(model, "_joint", False):  # the log loss of the softmax
        losses = logsumexp(scores, axis=1, keepdims=True) - np.take_along_axis(scores, codes[:, np.newaxis], axis=1)
    else:
        losses = model._learned_loss.value(scores, model._class_targets(codes))
    if model._class_weight is not None:
        losses = losses * model._class_weights(codes, None, True).take(codes)[:, np.newaxis]
    return losses


def _indexable(X):
    """Rows that can be sliced: arrays and sparse matrices as they are."""
    return X.tocsr() if issparse(X) else np.asarray(X)
