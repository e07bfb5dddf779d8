from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows

cimport cython


cdef struct Change:           # a column, and what was known of it before a sparse row was added
    Py_ssize_t column
    double[7] before


@cython.final
cdef class Standardizer(RowMap):
    cdef readonly bint centred
    cdef readonly bint allow_nan
    cdef readonly bint clipped
    cdef readonly bint scaled
    cdef readonly bint strict
    cdef double weight        # sum of the weights of all rows so far
    cdef double block         # rows since `ob_count_close`
    cdef double[::1] state    # all deviations, then all 1 / deviations, or `root`s, all means, all weights
    # What `undo` restores: the whole state if `complete`, otherwise what a log has of the changed columns
    cdef bint complete
    cdef Change* log
    cdef Py_ssize_t capacity, logged

    cdef object inverse(self)
    cdef bint seen(self, Py_ssize_t column) noexcept nogil
    cdef void keep_invalid(self, Rows rows, const Row* row) noexcept nogil
    cdef void standardize(self, const Row* row, double* z) noexcept nogil
    cdef void learn(self, const Row* row, double weight, double* z) noexcept nogil
