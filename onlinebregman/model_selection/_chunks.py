"""Streams: arrays, or iterables of chunks, cut into chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length

from .._online.containers import sound_csr, unmasked


def as_pieces(X, y, sample_weight) -> Iterable:
    """The stream as it was given: one piece of arrays, or the iterable of chunks."""
    if y is not None:
        return [(X, y, sample_weight)]
    if hasattr(X, "shape") or not isinstance(X, Iterable):
        raise ValueError(f"X must be an iterable of chunks (X, y) if y is None; got {type(X).__name__}. Give y, or 0s.")
    if sample_weight is not None:
        raise ValueError(
            "With an iterable the weights are part of its chunks (X, y, sample_weight); omit sample_weight."
        )
    return X


def cut(pieces: Iterable, size: int | None, *, numeric: bool, why_no_weights: str | None) -> Iterator[tuple]:
    """Cut pieces into chunks (X, y, weights or None) of at most `size` rows; targets as float64 if `numeric`."""
    weighted = None
    for number, piece in enumerate(pieces):
        if not isinstance(piece, tuple) or len(piece) not in (2, 3):
            raise ValueError(
                f"Chunk {number} of the iterable must be a tuple (X, y) or (X, y, sample_weight); got type "
                f"{type(piece).__name__}" + (f" and length {len(piece)}." if isinstance(piece, tuple) else ".")
            )
        X, y, weights = (*piece, None)[:3]
        weighted = weights is not None if number == 0 else weighted
        if weighted != (weights is not None):
            raise ValueError(
                f"Either all chunks of the iterable must have weights or none; chunk {number} differs from the first."
            )
        if weighted and why_no_weights:
            raise ValueError(why_no_weights)
        X, y = _sliceable(X), _targets(y, numeric)
        weights = np.atleast_1d(unmasked(weights, "sample_weight")) if weighted else None
        _check_block(X, y, number)
        check_consistent_length(X, y, weights)
        rows = getattr(X, "iloc", X)
        plain = isinstance(X, np.ndarray)
        for start in range(0, len(y), size or max(len(y), 1)):
            part = slice(start, start + size if size else None)
            # rows in C order take the fast path of this package's estimators
            chunk = np.ascontiguousarray(rows[part]) if plain else rows[part]
            yield chunk, y[part], None if weights is None else weights[part]


def _sliceable(X):
    """X as something whose rows can be cut by a slice (of its `iloc`, if it has one)."""
    if sparse.issparse(X):
        return sound_csr(X)
    X = unmasked(X, "X")
    return np.asarray(X) if isinstance(X, list | tuple) else X


def _check_block(X, y: np.ndarray, number: int) -> None:
    """Raise a ValueError if a chunk is a single row and not a block, as later errors would be hard to understand."""
    if isinstance(X, Mapping):
        raise ValueError(
            f"Chunk {number} has a dict for X, but chunks are blocks of rows. Give arrays, for example from a list of "
            "dicts with sklearn.feature_extraction.DictVectorizer, or a list, [x], if the first step of a pipeline "
            "reads dicts."
        )
    one_row = isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "biuf"
    if y.ndim == 0 or (one_row and len(y) == 1 < len(X)):
        raise ValueError(
            f"Chunk {number} is a single row, but chunks are blocks of rows. Give X of shape (1, n_features) and y of "
            "shape (1,), such as X[i : i + 1] and y[i : i + 1], or pass the arrays X and y themselves, without zip, "
            "to have them read row by row."
        )


def _targets(y, numeric: bool) -> np.ndarray:
    if sparse.issparse(y):
        raise ValueError("y must be dense; got a sparse matrix. Use y.toarray().")
    y = np.asarray(unmasked(y, "y"))
    return np.require(y, np.float64, ["C", "A"]) if numeric and y.dtype.kind in "biuf" else y
