from onlinebregman._kernels.geometries.geometry cimport Geometry
from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef class Snapshot:
    cdef bint complete        # a copy of all weights, or a log of the rows' weights
    cdef bint stamped         # whether the stamps of proximal steps are saved
    cdef bint deep            # whether there are depths, which are saved
    cdef Py_ssize_t start     # the first weight that may move, if `complete`
    cdef double* saved        # memory reused by all calls
    cdef Py_ssize_t capacity, used
    cdef Py_ssize_t logged    # number of rows in the log
    cdef Py_ssize_t* numbers  # and which rows of the block they are: not all rows are logged
    cdef Py_ssize_t room      # for how many of them there is memory

    cdef int begin(self, Geometry geometry, Rows rows, bint complete) except -1
    cdef void log(self, Geometry geometry, const Row* row) noexcept nogil
    cdef void restore(self, Geometry geometry, Rows rows) noexcept nogil
    cdef Py_ssize_t vectors(self, Geometry geometry) noexcept nogil
    cdef void move(self, Geometry geometry, const Row* row, bint save) noexcept nogil
    cdef void move_vector(self, Geometry geometry, double[::1] state, const Row* row, double* saved,
                          bint save) noexcept nogil
    cdef bint finite(self, Geometry geometry, const Row* row) noexcept nogil
    cdef bint finite_vector(self, Geometry geometry, double[::1] state, const Row* row) noexcept nogil
