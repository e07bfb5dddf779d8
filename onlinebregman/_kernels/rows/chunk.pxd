from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef enum:
    MAX_IMAGES = 32
    MAX_CHUNK_WORK = 1 << 24  # numbers read or written to learn a chunk: some milliseconds


cdef class Chunk:
    cdef tuple row_maps       # of the images of each row; None: the row itself
    cdef void* maps[MAX_IMAGES]   # the same
    cdef Py_ssize_t n_images
    cdef Py_ssize_t[MAX_IMAGES] widths  # most values in an image
    cdef bint in_place        # whether images that are rows are read where they are
    cdef Py_ssize_t width     # most values that may be copied of a row's images
    cdef Py_ssize_t capacity  # largest number of rows
    cdef Py_ssize_t n         # number of rows
    cdef Row* rows            # the images of each row, one after the other
    cdef Py_ssize_t* number   # of each row in its block
    cdef double[::1] numbers  # memory of weights and targets
    cdef double* weight
    cdef double* y            # `n_targets` for each row
    cdef Py_ssize_t n_targets
    cdef double[::1] values   # copies of the images' values, unless all of them are 1
    cdef Py_ssize_t[::1] columns

    cdef Py_ssize_t measure(self, Rows rows) noexcept
    cdef int reserve(self, Rows rows, Py_ssize_t most, Py_ssize_t n_targets=*) except -1
    cdef void add(self, Rows rows, const Row* row, double weight, const double* y) noexcept nogil
    cdef bint copied(self, Py_ssize_t k) noexcept nogil
    cdef Row* images(self, Py_ssize_t image) noexcept nogil
