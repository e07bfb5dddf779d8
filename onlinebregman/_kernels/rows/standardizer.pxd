from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows

cimport cython


cdef struct Change:           # a column and its sum of squares before a sparse row was added
    Py_ssize_t column
    double square


@cython.final
cdef class Standardizer(RowMap):
    cdef readonly bint centred
    cdef readonly bint allow_nan
    cdef readonly bint clipped
    cdef double weight        # sum of the weights of all rows so far
    # All sums h (x - mean)^2, then all 1 / their square roots, then all means; from the first missing value on (`gaps`)
    # also the sums of the weights of the rows in which the columns were present
    cdef double[::1] state
    cdef bint gaps, gaps_before
    # What `undo` restores: a copy of the whole state if `complete`, otherwise a log of the changed columns
    cdef double weight_before
    cdef bint complete
    cdef double[::1] before
    cdef Change* log
    cdef Py_ssize_t capacity, logged

    cdef object inverse(self)
    cdef double unit(self) noexcept nogil
    cdef Py_ssize_t size(self) noexcept nogil
    cdef void keep_invalid(self, Rows rows, const Row* row) noexcept nogil
    cdef bint lacks_values(self, const double* x) noexcept nogil
    cdef void standardize(self, const Row* row, double* z) noexcept nogil
    cdef void learn(self, const Row* row, double weight, double* z) noexcept nogil
