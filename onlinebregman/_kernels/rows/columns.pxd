cimport cython


cdef struct Strided:          # a column
    const char* at
    Py_ssize_t step           # bytes from one value to the next
    char kind                 # of its values, as a format character


@cython.final
cdef class ColumnBlocks:
    cdef tuple arrays         # which keep the memory alive
    cdef Strided* columns
    cdef Py_ssize_t n_rows, n_columns
    cdef void* memory         # unaligned block that `values` points into
    cdef double* values       # a block of rows
    cdef Py_ssize_t stride    # numbers from one of these rows to the next
    cdef Py_ssize_t capacity  # most rows in a block
    cdef Py_ssize_t first, last  # which rows are in it: from the first on, up to but not including the last

    cdef int add(self, array) except -1
    cdef void gather(self, Py_ssize_t i, Py_ssize_t n) noexcept nogil
    cdef void prefetch(self, Py_ssize_t i) noexcept nogil
    cdef const double* row(self, Py_ssize_t i) noexcept nogil


cdef ColumnBlocks blocks_of(arrays)
