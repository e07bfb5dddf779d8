"""Examples of metric learners: labelled rows, pairs, triplets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._online.estimator import Examples


@dataclass(frozen=True, kw_only=True)
class Comparisons(Examples):
    """Labelled rows or triplets, and the rows of X that they consist of."""

    points: np.ndarray

    @property
    def labels(self) -> np.ndarray | None:
        """Labels of `points`, which are the rows of positive weight, if they have any."""
        return self.y if self.y is None or len(self.y) == len(self.points) else self.y[self.weights > 0]

    def ordered(self, order: np.ndarray | None) -> Self:
        """The same in another order; fields without one value for each example are unchanged."""
        if order is None:
            return self
        values = {name: getattr(self, name, None) for name in ("X", "y", "weights", "senses")}
        return replace(self, **{name: value[order] for name, value in values.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class Pairs(Comparisons):
    """Pairs z = x_i - x_j and target distances: upper bounds (sense 1), lower bounds (-1) or equalities (0)."""

    senses: np.ndarray
    labels = None
