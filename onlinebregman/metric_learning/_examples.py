"""What metric learners learn from: labelled rows, pairs, triplets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._online.estimator import Examples


@dataclass(frozen=True, kw_only=True)
class Comparisons(Examples):
    """Labelled rows, or triplets, and the rows of X they are made of."""

    points: np.ndarray

    def ordered(self, order: np.ndarray | None) -> Self:
        """The same in another order; what has not one value an example stays."""
        if order is None:
            return self
        values = {name: getattr(self, name, None) for name in ("X", "y", "weights", "senses")}
        return replace(self, **{name: value[order] for name, value in values.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class Pairs(Comparisons):
    """Pairs z = x_i - x_j and their target distances; 1: at most those, -1: at least, 0: those."""

    senses: np.ndarray
