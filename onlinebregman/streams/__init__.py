"""Streams larger than memory: batches of rows from files and databases, and one pass over them that can be resumed.

The basic loop is `for X, y in batches: model.partial_fit(X, y)`. Batches of this module can be iterated repeatedly, and
:func:`fit_stream` adds features for long runs: reading ahead, progressive validation in bounded memory, checkpoints,
and resuming.
"""

from ._batches import ArrayBatches, Batches, ParquetBatches, SQLBatches, SVMLightBatches
from ._csv import CSVBatches
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
