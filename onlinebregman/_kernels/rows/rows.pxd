cimport cython

from onlinebregman._kernels.geometries.geometry cimport Row


@cython.final
cdef class Rows:
    cdef const char* values
    cdef const char* indices     # NULL for dense rows
    cdef const char* indptr
    cdef int value_size, index_size
    cdef Py_ssize_t n_rows, n_columns
    cdef Py_ssize_t widest       # most values in a row
    cdef Py_ssize_t stored       # values in all rows
    cdef Py_buffer[3] buffers    # what keeps the memory alive: one array (dense) or three (sparse)
    cdef int held
    cdef void* room
    cdef double* x               # room to widen a float32 row
    cdef Py_ssize_t* index       # room to widen a row's narrow indices

    cdef bint take(self, array, int ndim)
    cdef int make_room(self) except -1
    cdef void fetch(self, Py_ssize_t i, Row* row) noexcept nogil
    cdef void ask_for(self, Py_ssize_t i, const double* weights, Py_ssize_t blocks) noexcept nogil
    cdef bint increases(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil


cdef bint is_aligned(const Py_buffer* buffer) noexcept
cdef Rows dense_rows(X)
cdef Rows sparse_rows(X)
