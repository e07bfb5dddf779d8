from onlinebregman._kernels.rows.rows cimport Row, Rows
from onlinebregman._kernels.rows.standardizer cimport Standardizer


cdef class Chunk:
    cdef Py_ssize_t capacity  # largest number of rows
    cdef Py_ssize_t n         # number of rows
    cdef Row* rows
    cdef Py_ssize_t* number   # of each row in its block
    cdef double[::1] numbers  # memory of weights and targets
    cdef double* weight
    cdef double* y
    cdef double[::1] values   # copies of the rows' values, if there are several rows
    cdef Py_ssize_t[::1] columns
    cdef Py_ssize_t width

    cdef int reserve(self, Rows rows, Py_ssize_t most) except -1
    cdef void add(self, Standardizer standardizer, Rows rows, Py_ssize_t i, double weight, double y) noexcept nogil
