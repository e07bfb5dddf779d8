from onlinebregman._kernels.rows.rows cimport Row, Rows
from onlinebregman._kernels.rows.standardizer cimport Standardizer


cdef class Chunk:
    cdef Py_ssize_t most      # rows that it has room for,
    cdef Py_ssize_t n         # and those there are:
    cdef Row* rows
    cdef Py_ssize_t* number   # of each in its block
    cdef double[::1] numbers  # its weight, its target,
    cdef double* weight
    cdef double* y
    cdef double[::1] values   # and, of several, what it consists of
    cdef Py_ssize_t[::1] columns
    cdef Py_ssize_t width

    cdef int reserve(self, Rows rows, Py_ssize_t most) except -1
    cdef void add(self, Standardizer standardizer, Rows rows, Py_ssize_t i, double weight, double y) noexcept nogil
