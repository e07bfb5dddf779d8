cimport cython
from libc.stdint cimport uint64_t


cdef struct Row:              # a row as it comes; what is worked out about it goes elsewhere
    const double* x           # the values
    const Py_ssize_t* index   # their columns, strictly increasing; NULL for a dense row
    Py_ssize_t n              # how many values

# What is sorted: the number of a column, and where in the row its value is.
ctypedef uint64_t Entry


@cython.final
cdef class Rows:
    cdef const char* values
    cdef const char* indices     # NULL for dense rows
    cdef const char* indptr
    cdef int value_size, index_size
    cdef Py_ssize_t n_rows, n_columns
    cdef Py_ssize_t widest       # most values in a row
    cdef Py_ssize_t stored       # values in all rows
    cdef Py_buffer[4] buffers    # what keeps the memory alive: of one array or three (CSR), and of an order
    cdef int held
    cdef void* memory
    cdef void* room
    cdef double* x               # where a float32 row is widened
    cdef Py_ssize_t* index       # where a row's narrow indices are
    cdef double* z               # where a row is written to that is changed before it is learned; see `make_room`
    cdef double* filled          # and a sparse one that is made dense
    cdef void* order_room
    cdef double* ordered_x       # where a sparse row is put in order; NULL if all are
    cdef Py_ssize_t* ordered_index
    cdef Entry* entries
    cdef Entry* other_entries  # as many
    cdef const Py_ssize_t* order  # in which the rows are taken; NULL for the one they are in

    cdef bint take(self, array, int ndim)
    cdef int allocate(self) except -1
    cdef int make_room(self, bint filled) except -1
    cdef int take_in_order(self, order) except -1
    cdef void fetch(self, Py_ssize_t i, Row* row) noexcept nogil
    cdef void fill(self, Row* row) noexcept nogil
    cdef void put_in_order(self, Row* row) noexcept nogil
    cdef int make_order(self) except -1
    cdef void prefetch(self, Py_ssize_t i, const double* weights, Py_ssize_t per_feature) noexcept nogil
    cdef bint increases(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil
    cdef bint in_range(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil


cdef inline Py_ssize_t row_number(Rows rows, Py_ssize_t k) noexcept nogil:
    """Which row is the k-th to be taken?"""
    return k if rows.order == NULL else rows.order[k]


cdef bint is_aligned(const Py_buffer* buffer) noexcept
cpdef object in_doubles(values)
cdef bint hold_doubles(values, Py_buffer* buffer)
cdef Rows dense_rows(X)
cdef Rows sparse_rows(X)
cdef Rows try_rows(X)
cdef Rows open_rows(X)
