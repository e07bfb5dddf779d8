"""Streams larger than memory: frames, files and arrays, and one pass over them that can be resumed.

The basic loop is `for X, y in batches: model.partial_fit(X, y)`. :func:`fit_stream` adds features for long runs:
reading ahead, progressive validation in bounded memory, checkpoints, and resuming. It learns whatever hands out frames,
such as `pandas.read_csv(..., chunksize=10_000)`, and files by their paths.
"""

from ._batches import ArrayBatches, SVMLightBatches
from ._fit import fit_stream
from ._frames import FileFrames

__all__ = ["ArrayBatches", "FileFrames", "SVMLightBatches", "fit_stream"]
