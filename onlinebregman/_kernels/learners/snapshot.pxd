from onlinebregman._kernels.geometries.geometry cimport MOVED, Geometry
from onlinebregman._kernels.rows.rows cimport Row


cdef class Snapshot:
    cdef bint complete        # a copy of all weights, or a log of the rows' weights
    cdef double* vectors[MOVED]  # those of the geometry that are saved
    cdef int n_vectors
    cdef Py_ssize_t start     # the first weight that may move, if `complete`
    cdef double* saved        # memory reused by all calls
    cdef Py_ssize_t capacity, used
    cdef Py_ssize_t* columns  # of the rows in the log, each followed by their number
    cdef Py_ssize_t room, logged  # how many of these numbers there is memory for, and how many there are

    cdef tuple held           # what settings may replace in the geometry, as it was; None if the call had no settings

    cdef int save(self, Geometry geometry) except -1
    cdef int hold(self, Geometry geometry) except -1
    cdef int begin(self, Geometry geometry, Py_ssize_t n_rows, Py_ssize_t n_values, bint complete) except -1
    cdef void log(self, Geometry geometry, const Row* row) noexcept nogil
    cdef int restore(self, Geometry geometry) except -1
    cdef void move(self, Geometry geometry, const Row* row, bint save) noexcept nogil
    cdef bint finite(self, Geometry geometry, const Row* row) noexcept nogil
    cdef bint finite_vector(self, Geometry geometry, double[::1] state, const Row* row) noexcept nogil
