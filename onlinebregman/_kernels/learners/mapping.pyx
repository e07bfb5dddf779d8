"""A learner of nothing but the map of its rows, for transformers."""

cimport cython
from libc.math cimport isfinite

from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner
from onlinebregman._kernels.learners.run cimport LEARNED, NOT_FINITE
from onlinebregman._kernels.rows.rows cimport Row


@cython.final
cdef class MapLearner(AtomicLearner):
    """Learns rows by its map alone.

    Parameters
    ----------
    n_features : int
        Columns of the images of rows.
    """

    def __cinit__(self, Py_ssize_t n_features, state=None):
        self.n_features = n_features

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        return LEARNED if row.n == 0 or isfinite(row.x[0]) else NOT_FINITE
