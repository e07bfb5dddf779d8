"""Importances of columns, and how columns are distributed, as far as the members of a mixture know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .._kernels.rows.standardizer import Standardizer
from .._kernels.rows.thresholds import ThresholdMap

Array = NDArray[np.float64]

SAMPLE = 256  # values that stand for the distribution of a column


def importances(model: Any, n_rows: int = SAMPLE) -> Array:
    """The share of each column in the variance of predictions (total-effect Sobol index, by Jansen's estimator).

    Columns are drawn independently, from the samples that members of bins hold, or as normal.
    """
    rng, d = np.random.default_rng(0), model.n_features_in_
    draw = sampler(model)
    if draw is None:
        raise AttributeError(
            "feature_importances_ requires members that know how columns are distributed: those of dense rows with "
            "thresholds=True, or with standardize=True and without categories."
        )
    X, others = (np.column_stack([rng.permutation(draw(j, n_rows)) for j in range(d)]) for _ in range(2))
    predicted = model._predict_validated(X, ())
    changes = np.empty(d)
    for j in range(d):
        rows = X.copy()
        rows[:, j] = others[:, j]
        changes[j] = np.linalg.norm(model._predict_validated(rows, ()) - predicted)
    largest = changes.max()
    shares = (changes / largest) ** 2 if largest > 0 else changes
    return shares / max(shares.sum(), 1.0)


def sampler(model: Any) -> Callable[[int, int], Array] | None:
    """A function that gives n values of column j, as they are distributed in the rows so far; None if unknown."""
    maps = [member._learner.row_map for member in model.estimators_]
    binned = next((each for each in maps if isinstance(each, ThresholdMap)), None)
    standardizer = next((each for each in maps if isinstance(each, Standardizer) and each.centred), None)
    if binned is not None:
        state = binned.bins.get_state()
        kept, sample, counted = state["kept"], state["sample"], state["counted"]

        def draw(j: int, n: int) -> Array:
            if not model.t_:  # rows of weight 0
                return np.zeros(n)
            missing = max(round(n * (1 - counted[j] / model.t_)), 0)  # another thread may be learning more rows
            places = (np.arange(n - missing) + 0.5) * (kept[j] / max(n - missing, 1))
            return np.append(sample[j, places.astype(np.intp)], np.full(missing, np.nan))

        return draw
    if standardizer is None:
        return None
    inverse = standardizer.in_units_of_data(np.ones(standardizer.n_features), 0.0)[0]
    mean, deviation = standardizer.mean, standardizer.scale * (inverse > 0)  # 0 of constant columns
    return lambda j, n: mean[j] + deviation[j] * ndtri((np.arange(n) + 0.5) / n)
