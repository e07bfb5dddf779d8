"""The first rows of a stream, of which nobody knows which values are the absurd ones.

As more rows become known, the robust scale of a column, or of the targets, see `ops/robust.h`, may shrink to an
interval beyond which some values lie that were learned. A model then begins again, as what it has learned is about
these, or about a scale of theirs.
"""

import numpy as np

from scipy.sparse import csr_matrix, issparse, vstack

from libc.math cimport fabs, isfinite
from libc.string cimport memset

from onlinebregman._kernels.ops.robust cimport OB_FIRST, ob_robust, ob_robust_count, ob_robust_known

cdef enum:
    SOME = 10                 # values that tell what is absurd: of fewer, some are close by chance in many columns
    LAST = 2 * OB_FIRST       # rows
cdef double OF_LABELS = 5.0   # times as far are values in columns that spoil models of labels, to which few rows matter
cdef tuple LOOKS = (SOME, OB_FIRST, LAST)  # after how many they are looked at


def has_absurd(const double[:, :] values, double times):
    """Whether a column has a value so many times farther than its scale allows; what is not finite does not count.

    Values that are equal to the usual one, as zeros of sparse rows, tell nothing. Of a column that had `SOME` others
    before the last look, that one has not to tell more.
    """
    cdef ob_robust scale
    cdef double far
    cdef bint told
    cdef Py_ssize_t i, k
    for k in range(values.shape[1]):
        memset(&scale, 0, sizeof(scale))
        for i in range(values.shape[0]):
            if isfinite(values[i, k]):
                ob_robust_count(&scale, values[i, k])
        told = SOME <= scale.moves <= OB_FIRST + SOME and ob_robust_known(&scale)
        far = times * (scale.hi - scale.mean)
        for i in range(values.shape[0] if told else 0):
            if isfinite(values[i, k]) and not fabs(values[i, k] - scale.origin - scale.mean) <= far:
                return True
    return False


def joined(before, more):
    """An array with further rows, which are copied; CSR if some of them are. None: there are none before."""
    sparse = issparse(more) or issparse(before)
    more = csr_matrix(more, dtype=np.float64, copy=True) if sparse else np.array(more, dtype=np.float64)
    if sparse:
        more.sum_duplicates()  # the same rows, in whatever order
    if before is None or before.shape[1:] != more.shape[1:]:  # columns were added, or a file is damaged
        return more
    return vstack([before, more], "csr") if sparse else np.concatenate([before, more])


def dense(rows):
    """Rows as an array; of sparse ones the columns that may tell something."""
    if issparse(rows):
        rows = rows[:, rows.getnnz(axis=0) >= SOME].toarray()
    return rows


cdef class FirstRows:
    """Rows and targets that a model has learned since it began, as long as they are the first ones of its stream.

    Parameters
    ----------
    n : int, default=0
        Rows of the stream so far.
    rows : array or CSR of shape (n_rows, n_features), default=None
        Those that were learned since; None if there are none. CSR may be given as its three arrays and n_features.
    targets : ndarray of shape (n_rows, n_targets), default=None
        Their targets, if these are numbers.
    """

    cdef readonly Py_ssize_t n
    cdef object rows, targets

    def __init__(self, Py_ssize_t n=0, rows=None, targets=None):
        if not 0 <= n < LAST:
            raise ValueError(f"first rows must be fewer than {LAST}; got {n}")
        if isinstance(rows, tuple):
            data, indices, indptr, n_features = rows
            rows = csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_features))
            rows.check_format()
            if (np.diff(rows.indptr) < 0).any():  # SciPy takes one that ends at 0 for empty
                raise ValueError("indptr must not decrease")
        self.n, self.rows, self.targets = n, rows, targets

    def __reduce__(self):
        rows = self.rows
        if issparse(rows):
            rows = rows.data, rows.indices, rows.indptr, rows.shape[1]
        return FirstRows, (self.n, rows, self.targets)

    @property
    def until_look(self):
        """The rows until they are looked at."""
        return next(look - self.n for look in LOOKS if look > self.n)

    def before_look(self, X):
        """Whether rows are an array, or CSR, none of which is the last one before a look."""
        return getattr(X, "ndim", 0) == 2 and X.shape[0] < self.until_look

    def after(self, X, y):
        """The first rows after some more, with targets or None, and whether the model must begin again then.

        None in their place if they are over.
        """
        n, look = self.n + X.shape[0], X.shape[0] == self.until_look
        rows, targets = joined(self.rows, X), None
        if y is not None:
            targets = joined(self.targets, np.atleast_2d(np.array(y).T).T)
            again = look and (has_absurd(dense(rows), 1.0) or has_absurd(targets, 1.0))
        else:
            again = look and has_absurd(dense(rows), OF_LABELS)
        if n == LAST:
            return None, again
        return FirstRows(n) if again else FirstRows(n, rows, targets), again
