from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows
from onlinebregman._kernels.rows.standardizer cimport Standardizer

cimport cython


@cython.final
cdef class OneHotMap(RowMap):
    cdef readonly Standardizer standardizer
    cdef readonly Py_ssize_t n_indicators
    cdef Py_ssize_t[::1] numeric       # the columns of numbers
    cdef Py_ssize_t[::1] categorical   # the columns of categories
    cdef readonly bint missing         # whether missing numbers have indicators
    cdef Py_ssize_t[:, ::1] place      # of each category of each of them among the indicators; -1 if it has none
    cdef Py_ssize_t[::1] place_of_missing  # the same of each of the columns of numbers
    cdef Py_ssize_t[:, ::1] owner      # of each indicator, as indices of `place`; beyond its rows, of numbers
    cdef Py_ssize_t used, used_before  # number of indicators that have a category

    cdef Row indicate(self, Rows rows, Row* row) noexcept nogil
    cdef void assign(self, Py_ssize_t c, Py_ssize_t code, Py_ssize_t place) noexcept nogil
    cdef void take(self, Py_ssize_t c, Py_ssize_t code) noexcept nogil
    cdef Py_ssize_t insert(self, Rows rows, Py_ssize_t place, Py_ssize_t free, Py_ssize_t* at) noexcept nogil
    cdef Py_ssize_t place_of(self, Py_ssize_t c, double x, Py_ssize_t* code) noexcept nogil
