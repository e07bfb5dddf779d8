"""The examples that `early_stopping` holds out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from .types import RandomState
from .validation import Overflow, check_finite


class HeldOut:
    """Some of the examples, drawn at random.

    Attributes
    ----------
    learned : ndarray of int
        The numbers of the others, in increasing order.
    """

    def __init__(self, examples: Any, fraction: float, random_state: RandomState, *, allow_nan: bool) -> None:
        check_finite(examples.X, allow_nan=allow_nan)  # while rows have the numbers of the caller
        split = ShuffleSplit if examples.classes is None else StratifiedShuffleSplit
        splitter = split(test_size=fraction, random_state=random_state)
        rows, self._rows = next(splitter.split(np.zeros((len(examples), 1)), examples.classes))
        self.learned = np.sort(rows)
        if examples.weights is not None and not examples.weights[rows].any():
            raise ValueError(
                "early_stopping holds out all rows of positive sample weight, so that none is left to learn; use "
                "another random_state, or a smaller validation_fraction."
            )
        self._examples = examples.take(self._rows)
        if self._examples.weights is not None and not self._examples.weights.any():
            raise ValueError(
                "The sample weights for validation set are all zero, consider using a different random state, or a "
                "larger validation_fraction."
            )

    def score(self, score: Callable[[Any], float]) -> float:
        """The score of the examples; Overflow if it is not finite."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                value = score(self._examples)
        except ValueError:  # a prediction overflows
            value = -np.inf
        if np.isfinite(value) or (np.isnan(value) and len(self._examples) == 1):  # of which scikit-learn warns
            return value
        X = self._examples.X if sparse.issparse(self._examples.X) else np.asarray(self._examples.X)
        sizes = abs(X).max(axis=1).toarray().ravel() if sparse.issparse(X) else np.fmax.reduce(np.abs(X), axis=1)
        row = int(np.nanargmax(sizes))
        raise Overflow(
            "Predictions for the rows that early_stopping holds out, or the squares of their errors, are not finite. "
            f"Of these rows, row {self._rows[row]} is the largest (feature {sizes[row]:g})."
        )
