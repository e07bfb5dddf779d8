"""Pairs and triplets given by the user, converted to the rows that a learner reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Number of differences computed at a time.
_ROWS_A_BLOCK = 256


class Block(NamedTuple):
    """Instances to learn from, in their order: pairs as rows z of d values, or triplets as rows (p, q) of 2d.

    A pair is X = z z'. A triplet is X = p p' - q q', p the difference of the anchor to the row that should be farther.
    """

    rows: np.ndarray
    targets: np.ndarray  # squared distances, or margins
    senses: np.ndarray  # 1: similar, the target is an upper bound; -1: a lower bound; 0: an equality
    weights: np.ndarray
    scales: np.ndarray  # squared distances by which rates are scaled


def differences(X: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """X[first] - X[second], in blocks of rows, which avoids large temporary arrays."""
    z = np.empty((len(first), X.shape[1]))
    for start in range(0, len(z), _ROWS_A_BLOCK):
        part = slice(start, start + _ROWS_A_BLOCK)
        np.subtract(X[first[part]], X[second[part]], out=z[part])
    return z
