from libc.stdint cimport int64_t

from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.rows.rows cimport Row, RowMap
from onlinebregman._kernels.rows.trees cimport Trees

cimport cython

cdef enum:
    COARSE = 6               # bins at each resolution
    MEDIUM = 12
    FINE = 64
    RESOLUTIONS = 3
    OF_PAIRS = 2             # resolutions of pairs of columns, the first ones
    ALL_BINS = COARSE + MEDIUM + FINE
    WIDTH = ALL_BINS + RESOLUTIONS  # indicators of a column, with one of missing values at each resolution
    SAMPLE = 256             # values of a column that are kept, to tell where bins have to be split


cdef struct Column:          # what is known of a column; the bins of all resolutions, one after the other
    int64_t kept             # values in the sample
    int64_t[RESOLUTIONS] different  # values counted so far, at most one more than there are bins
    int64_t[ALL_BINS] number   # of each bin, in the order of the values
    double[ALL_BINS] lower   # the bins' least values, in order; infinite where there is no bin yet
    double[SAMPLE] sample    # in order


@cython.final
cdef class Bins(Stateful):
    cdef readonly Py_ssize_t n_features
    cdef object array         # of the columns
    cdef Column[::1] columns  # the same
    cdef readonly Trees trees  # or None
    cdef int64_t[::1] counted  # values of each column so far
    # What `undo` restores: the columns that the call has changed, of which copies are made when they change
    cdef Column[::1] before
    cdef int64_t[::1] counted_before
    cdef int64_t[::1] saved_in  # the last call in which a column was saved
    cdef int64_t call

    cdef void find(self, const Row* row, Py_ssize_t* bins) noexcept nogil
    cdef void learn(self, const Row* row, double weight) noexcept nogil
    cdef int begin(self, Py_ssize_t n_rows) except -1
    cdef Column* to_change(self, Py_ssize_t j) noexcept nogil
    cdef void undo(self) noexcept


@cython.final
cdef class ThresholdMap(RowMap):
    cdef readonly Bins bins
    cdef readonly Py_ssize_t widest
    cdef readonly bint singles
    cdef readonly bint allow_nan
    cdef readonly object pairs
    cdef Py_ssize_t[:, ::1] pair
    cdef readonly bint grown  # whether there are indicators of leaves as well

    cdef void apply(self, const Py_ssize_t* bins, Py_ssize_t* columns) noexcept nogil
    cdef Py_ssize_t n_found(self) noexcept nogil
