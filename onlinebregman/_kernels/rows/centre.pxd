cdef class Centre:
    cdef Py_ssize_t n         # number of columns
    cdef readonly bint allow_nan
    cdef double most          # see `begin`
    # Of each column c, the origin of the prior, how many rows were not at c, and the numbers of `ops/standardize.h`;
    # then the weight of the rows, now and when c last moved, and the number of rows in a block
    cdef double[::1] memory

    cdef void begin(self, const double* x) noexcept nogil
    cdef void centre(self, const double* x, double* z) noexcept nogil
    cdef bint count(self, const double* x, double weight) noexcept nogil
    cdef void move(self, double* z) noexcept nogil
    cdef void move_origin(self, double* z) noexcept nogil
    cdef double variance_to_add(self, Py_ssize_t j) noexcept nogil
    cdef bint jumps(self, Py_ssize_t j, double move) noexcept nogil
    cdef object blocks(self)
