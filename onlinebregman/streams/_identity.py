"""A checksum of rows, which does not depend on how they are cut into batches, nor on what holds them."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from scipy import sparse

from .._online.categories import columns_of, is_missing


def checksums(batch: tuple[Any, ...], before: list[int]) -> list[int]:
    """Those of X, y and weights of the rows of a batch, and of the rows before it."""
    return [
        old if part is None else zlib.crc32(_numbers(part).data, old) for part, old in zip(batch, before, strict=True)
    ]


def _numbers(part: Any) -> np.ndarray:
    """Rows as numbers, texts as their checksums."""
    if sparse.issparse(part):
        rows = sparse.csr_array(part)
        return np.column_stack([rows.indices, rows.data])
    columns = [part] if np.ndim(part) == 1 else columns_of(part)
    return np.ascontiguousarray(np.column_stack([_column(np.asarray(column)) for column in columns]))


def _column(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "biuf":
        found = {value: _number(value) for value in set(values.tolist())}
        values = np.array([found[value] for value in values.tolist()])
    values = values.astype(np.float64) + 0.0  # one zero, and one NaN
    return np.where(np.isnan(values), np.nan, values)


def _number(value: Any) -> float:
    if is_missing(value):
        return np.nan
    return float(zlib.crc32(value.encode()) if isinstance(value, str) else value)
