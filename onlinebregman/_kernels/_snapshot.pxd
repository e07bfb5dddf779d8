from onlinebregman._kernels._geometry cimport Geometry
from onlinebregman._kernels._rows cimport Rows


cdef class Snapshot:
    cdef Geometry geometry
    cdef Rows rows
    cdef bint whole
    cdef double* saved

    cdef void restore(self)
    cdef void move(self, bint save)
    cdef Py_ssize_t move_vector(self, double* state, double* saved, bint save) noexcept nogil
    cdef bint finite(self) noexcept nogil
