"""Streams larger than memory: batches of rows from files and data bases, and one pass over them that can be resumed.

`for X, y in batches: model.partial_fit(X, y)` is the whole of it. Batches of this module can be iterated over again,
and :func:`fit_stream` adds what a long run needs: rows read while others are learned, progressive validation in bounded
memory, checkpoints, and resuming.
"""

from ._batches import ArrayBatches, Batches, CSVBatches, ParquetBatches, SQLBatches, SVMLightBatches
from ._fit import fit_stream

__all__ = [
    "ArrayBatches",
    "Batches",
    "CSVBatches",
    "ParquetBatches",
    "SQLBatches",
    "SVMLightBatches",
    "fit_stream",
]
