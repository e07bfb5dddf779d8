"""What metric learners learn from: labelled rows, pairs, triplets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._online.estimator import Examples


@dataclass(frozen=True, kw_only=True)
class Comparisons(Examples):
    """Labelled rows, or triplets, and the rows of X they are made of; `in_blocks` if learned by several calls."""

    points: np.ndarray
    in_blocks: bool = False


@dataclass(frozen=True, kw_only=True)
class Pairs(Comparisons):
    """Pairs z = x_i - x_j and their target distances; 1: at most those, -1: at least, 0: those."""

    senses: np.ndarray
