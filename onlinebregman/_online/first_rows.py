"""The first rows of a stream, of which nobody knows which values are the absurd ones.

As more rows become known, the robust scale of a column, or of the targets, see `_kernels/ops/robust.h`, may shrink to
an interval beyond which some values lie that were learned. A model then begins again, as what it has learned is about
these, or about a scale of theirs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from .._kernels.rows.arrays import FIRST, has_absurd
from .containers import sound_csr

SOME = 10  # values that tell what is absurd: of fewer, some are close by chance in many columns
LOOKS = (SOME, FIRST, 2 * FIRST)  # after how many rows they are looked at
OF_LABELS = 5.0  # times as far are values in columns that spoil models of labels, to which few rows matter


class FirstRows(NamedTuple):
    """What a model has learned since it began, as long as these are the first rows of its stream."""

    n: int = 0  # rows of the stream so far
    rows: Any = None  # an array or CSR of those that were learned since
    targets: np.ndarray | None = None  # theirs, if these are numbers

    def before_look(self, X: Any) -> bool:
        """Whether rows are an array, or CSR, none of which is the last one before a look."""
        return getattr(X, "ndim", 0) == 2 and not any(self.n < look <= self.n + X.shape[0] for look in LOOKS)

    def after(self, X: Any, y: Any) -> tuple[FirstRows | None, list[int]]:
        """The first rows after some more, with targets or None, and those of these after which the model begins again.

        None in their place if they are over.
        """
        n, last = self.n + X.shape[0], []
        sparse = issparse(X) or issparse(self.rows)
        rows: Any = csr_matrix(X, dtype=np.float64, copy=True) if sparse else np.array(X, dtype=np.float64)
        targets = None if y is None else np.array(y)
        if sparse:
            rows.sum_duplicates()  # the same rows, in whatever order
        if np.shape(self.rows)[1:] == X.shape[1:]:  # no columns were added
            rows = vstack([csr_matrix(self.rows), rows], "csr") if sparse else np.concatenate([self.rows, rows])
            targets = None if targets is None else np.concatenate([self.targets, targets])
        begun, known = 0, rows.shape[0] - X.shape[0]
        for end in (known + look - self.n for look in LOOKS if self.n < look <= n):
            some = (sound_csr(rows) if sparse else rows)[begun:end]  # those of a file may be anything
            if sparse:  # most columns have nothing to tell
                some = some[:, some.getnnz(axis=0) >= SOME].toarray()
            if targets is not None:
                some = np.column_stack([some, targets[begun:end]])
            if has_absurd(some, SOME, OF_LABELS if y is None else 1.0):
                begun = end
                last.append(end - known - 1)
        if begun:
            rows, targets = rows[begun:], None if targets is None else targets[begun:]
        if sparse:  # without the flags and sizes of integers that tell how it was made
            rows = csr_matrix((rows.data, rows.indices, rows.indptr), rows.shape)
        return (FirstRows(n, rows, targets) if 0 <= n < LOOKS[-1] else None), last
