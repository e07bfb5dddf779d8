cimport cython


cdef struct View:             # of an array; valid as long as the array is
    char* at
    char type                 # of its values, as a format character; 0 unless they are numbers of this machine
    Py_ssize_t itemsize       # bytes of a value
    bint contiguous           # in C's order
    bint aligned              # to the size of a value, which memory not allocated by NumPy may not be
    int ndim
    Py_ssize_t[2] shape       # of the first two axes, for any others 1
    Py_ssize_t[2] strides     # bytes from one value to the next along them; an axis of one value has `itemsize`


cdef bint view(array, View* seen)
cpdef object as_float64(values)
cdef object float64_array(values, View* seen)
cdef object empty_float64(Py_ssize_t n, double** at)


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
