"""Streams: arrays, or iterables of chunks, cut into chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length


def as_pieces(X, y, sample_weight) -> Iterable:
    """The stream as it was given: one piece of arrays, or the iterable of chunks."""
    if y is not None:
        return [(X, y, sample_weight)]
    if hasattr(X, "shape") or not isinstance(X, Iterable):
        raise ValueError(
            f"y is None, so X has to be an iterable of chunks (X, y), but it is of type {type(X).__name__}; give y."
        )
    if sample_weight is not None:
        raise ValueError(
            "With an iterable the weights come in its chunks (X, y, sample_weight); leave sample_weight out."
        )
    return X


def cut(pieces: Iterable, size: int | None, *, numeric: bool, why_no_weights: str | None) -> Iterator[tuple]:
    """Cut pieces into chunks (X, y, weights or None) of at most `size` rows; targets as float64 if `numeric`."""
    weighted = None
    for number, piece in enumerate(pieces):
        if not isinstance(piece, tuple) or len(piece) not in (2, 3):
            raise ValueError(
                f"Chunk {number} of the iterable is not a tuple (X, y) or (X, y, sample_weight), but of type "
                f"{type(piece).__name__}" + (f" and length {len(piece)}." if isinstance(piece, tuple) else ".")
            )
        X, y, weights = (*piece, None)[:3]
        weighted = weights is not None if number == 0 else weighted
        if weighted != (weights is not None):
            raise ValueError(
                f"Chunk {number} of the iterable differs from the first in having weights; give all or none."
            )
        if weighted and why_no_weights:
            raise ValueError(why_no_weights)
        X, y, weights = _sliceable(X), _targets(y, numeric), np.asarray(weights) if weighted else None
        check_consistent_length(X, y, weights)
        rows = getattr(X, "iloc", X)
        plain = isinstance(X, np.ndarray)
        for start in range(0, len(y), size or max(len(y), 1)):
            part = slice(start, start + size if size else None)
            # rows in C order take the fast path of this package's estimators
            chunk = np.ascontiguousarray(rows[part]) if plain else rows[part]
            yield chunk, y[part], weights[part] if weighted else None


def _sliceable(X):
    """X as something whose rows can be cut by a slice (of its `iloc`, if it has one)."""
    if sparse.issparse(X):
        return X.tocsr()
    return np.asarray(X) if isinstance(X, list | tuple) else X


def _targets(y, numeric: bool) -> np.ndarray:
    y = np.asarray(y)
    return np.ascontiguousarray(y, dtype=np.float64) if numeric and y.dtype.kind in "biuf" else y
