"""Data as shards: runs of consecutive chunks, which depend on the data but not on the cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed
from sklearn.utils import check_array, check_consistent_length

from .._online.validation import check_weights


class Part(NamedTuple):
    """Consecutive rows, their targets and weights; None if there are none."""

    X: Any
    y: Any
    weights: Any


def is_dask(X: Any) -> bool:
    return dask.is_dask_collection(X)


def chunks_of(X: Any, name: str = "X") -> list[Delayed]:
    """The rows of a dask array, data frame or series, chunk by chunk."""
    if hasattr(X, "npartitions") and not hasattr(X, "numblocks"):  # a data frame or a series
        return list(X.to_delayed())
    if X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if X.ndim > 2 or X.ndim == 0:
        raise ValueError(f"{name} has {X.ndim} dimensions; it must be rows of values, or one value for each row.")
    return list(X.to_delayed().ravel())


def cut(X: Any, y: Any, sample_weight: Any, n_shards: int | None) -> list[Any]:
    """Shards, as lists of `Part`s: delayed ones of a dask collection, otherwise slices of arrays in memory."""
    given = {name: value for name, value in (("X", X), ("y", y), ("sample_weight", sample_weight)) if value is not None}
    lazy = {name for name, value in given.items() if is_dask(value)}
    if lazy and lazy != set(given):
        raise ValueError(
            f"{' and '.join(sorted(lazy))} must be dask collections together with the others, or none; got "
            f"{', '.join(f'{name} of type {type(value).__name__}' for name, value in given.items())}."
        )
    return _cut_lazily(given, n_shards) if lazy else _cut_in_memory(given, n_shards)


def _cut_lazily(given: dict[str, Any], n_shards: int | None) -> list[Any]:
    chunks = {name: chunks_of(value, name) for name, value in given.items()}
    n_chunks = len(chunks["X"])
    for name, value in given.items():
        if len(chunks[name]) != n_chunks:
            raise ValueError(
                f"{name} must have as many row chunks as X, {n_chunks}; got {len(chunks[name])}. Rechunk one of them."
            )
        own, expected = lengths(value), lengths(given["X"])
        differ = [i for i, pair in enumerate(zip(own, expected, strict=True)) if _differ(*pair)]
        if differ:
            i = differ[0]
            raise ValueError(
                f"{name} must have the row chunks of X; chunk {i} has {own[i]} rows, that of X {expected[i]}. "
                "Rechunk one like the other."
            )
    n_shards = n_chunks if n_shards is None else n_shards
    if n_shards > n_chunks:
        raise ValueError(f"n_shards must be at most the number of chunks of X, {n_chunks}; got {n_shards}. Rechunk X.")
    runs = np.array_split(np.arange(n_chunks), n_shards)
    columns = [chunks.get(name) for name in ("X", "y", "sample_weight")]
    make = dask.delayed(shard, pure=False)
    return [
        make(number, int(run[0]), [[None if column is None else column[i] for column in columns] for i in run])
        for number, run in enumerate(runs)
    ]


def _cut_in_memory(given: dict[str, Any], n_shards: int | None) -> list[list[Part]]:
    checked = check_array(given["X"], accept_sparse="csr", dtype=None, ensure_all_finite=False)
    X = given["X"] if hasattr(given["X"], "iloc") else checked
    check_consistent_length(X, *given.values())
    n, n_shards = rows_of(X), 1 if n_shards is None else n_shards
    if n_shards > n:
        raise ValueError(f"n_shards must be at most the number of rows, n_samples={n}; got {n_shards}.")
    columns = [X, *(None if name not in given else _sliceable(given[name]) for name in ("y", "sample_weight"))]
    ends = np.linspace(0, n, n_shards + 1).astype(int)
    return [
        [Part(*(None if column is None else _rows(column, start, end) for column in columns))]
        for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]


def shard(number: int, first: int, chunks: list[list[Any]]) -> list[Part]:
    """The parts of one shard, without empty ones; this is a task that runs where the chunks are."""
    parts = [Part(*chunk) for chunk in chunks]
    for i, part in enumerate(parts):
        for name, values in zip(("y", "sample_weight"), part[1:], strict=True):
            if values is not None and rows_of(values) != rows_of(part.X):
                raise ValueError(
                    f"{name} must have the row chunks of X; chunk {first + i} has {rows_of(values)} rows, that of X "
                    f"{rows_of(part.X)}. Rechunk one like the other."
                )
    kept = [part for part in parts if rows_of(part.X)]
    if not kept:
        raise ValueError(
            f"Shard {number} must have rows; got none, in chunks {first} to {first + len(parts) - 1} of X. Rechunk X, "
            "or lower n_shards."
        )
    return kept


def size(parts: list[Part]) -> tuple[int, float]:
    """The number of rows of a shard, and the sum of their weights."""
    rows = [rows_of(part.X) for part in parts]
    given = [check_weights(part.weights, n, allow_all_zero=True) for n, part in zip(rows, parts, strict=True)]
    weights = [n if values is None else values.sum() for n, values in zip(rows, given, strict=True)]
    return sum(rows), float(sum(weights))


def labels(parts: list[Part]) -> np.ndarray:
    """The labels in a shard; of an indicator matrix of several labels the numbers of its columns."""
    y = [np.asarray(part.y) for part in parts]
    if y[0].ndim == 2 and y[0].shape[1] > 1:
        return np.arange(y[0].shape[1])
    return np.unique(np.concatenate([part.ravel() for part in y]))


def lengths(X: Any) -> list[float]:
    """Rows of each chunk; NaN where unknown."""
    return list(X.chunks[0]) if hasattr(X, "chunks") else [np.nan] * X.npartitions


def _differ(a: float, b: float) -> bool:
    return a == a and b == b and a != b  # unknown lengths (NaN) are checked by the tasks


def rows_of(X: Any) -> int:
    """The number of rows."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _sliceable(values: Any) -> Any:
    return values if hasattr(values, "shape") else np.asarray(values)


def _rows(values: Any, start: int, end: int) -> Any:
    return values.iloc[start:end] if hasattr(values, "iloc") else values[start:end]
