from onlinebregman._kernels.rows.rows cimport Row, Rows

cimport cython


cdef struct Change:           # of a column that a sparse row is about to count in
    Py_ssize_t column
    double square


@cython.final
cdef class Standardizer:
    cdef readonly Py_ssize_t n_features
    cdef readonly bint centred
    cdef double weight        # of all rows that count
    cdef double[::1] state    # of each column: sum h (x - mean)^2, 1 / its root, and the mean, one after the other
    # What the last call has to put back: all of it, or what rows have changed
    cdef double weight_before
    cdef bint complete
    cdef double[::1] before
    cdef Change* log
    cdef Py_ssize_t capacity, logged

    cdef object inverse(self)
    cdef int open(self, Rows rows) except -1
    cdef int begin(self, Rows rows) except -1
    cdef void undo(self) noexcept
    cdef bint bounded(self) noexcept nogil
    cdef double unit(self) noexcept nogil
    cdef void standardize(self, const Row* row, double* z) noexcept nogil
    cdef void learn(self, const Row* row, double weight, double* z) noexcept nogil


cdef inline void fetch_standardized(Standardizer standardizer, Rows rows, Py_ssize_t i, Row* row) noexcept nogil:
    """Row i as it is predicted: as it comes, without a standardizer."""
    rows.fetch(i, row)
    if standardizer is not None:
        rows.fill(row)
        standardizer.standardize(row, rows.z)
        row.x = rows.z


cdef inline void fetch_to_learn(Standardizer standardizer, Rows rows, Py_ssize_t i, double weight,
                                Row* row) noexcept nogil:
    """The same, and the row counts from now on: how rows are standardised depends on nothing but rows."""
    rows.fetch(i, row)
    if standardizer is not None:
        rows.fill(row)
        standardizer.learn(row, weight, rows.z)
        row.x = rows.z
