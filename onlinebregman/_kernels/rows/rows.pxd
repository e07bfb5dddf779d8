cimport cython
from libc.string cimport memset

from onlinebregman._kernels.ops.row cimport ob_scatter
from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.ops.vector cimport OB_PREFETCH
from onlinebregman._kernels.rows.arrays cimport ColumnBlocks

cdef enum:
    AHEAD = 1 << 12           # bytes by which rows in another order than they are stored are prefetched


cdef struct Row:              # a read-only view of one row; what is computed from it is stored elsewhere
    const double* x           # the values
    const Py_ssize_t* index   # their columns, strictly increasing; NULL for a dense row
    Py_ssize_t n              # the number of values
    Py_ssize_t number         # which row of the block it is, as stored


@cython.final
@cython.no_gc  # it is in no cycle: it holds arrays, and nothing holds it for long
@cython.freelist(4)  # one is made in every call
cdef class Rows:
    cdef const char* values
    cdef Py_ssize_t row_step     # bytes from a dense row to the next
    cdef ColumnBlocks columns    # of dense rows that are stored by columns; None for others
    cdef const char* indices     # NULL for dense rows
    cdef const char* indptr
    cdef int value_size, index_size
    cdef Py_ssize_t n_rows, n_columns
    cdef Py_ssize_t widest       # most values in a row
    cdef Py_ssize_t stored       # values in all rows
    cdef object array            # or the three of CSR, and the order; keeps their memory alive
    cdef void* x_memory          # unaligned blocks that `x`, `z` and `filled` point into
    cdef void* z_memory
    cdef void* filled_memory
    cdef double* x               # a float32 row converted to float64
    cdef Py_ssize_t* index       # 32-bit indices of a row converted to Py_ssize_t
    cdef double* z               # a row that is transformed before it is learned; see `allocate_scratch`
    cdef double* filled          # a sparse row converted to dense
    cdef Py_ssize_t* indicators  # columns of an image of indicators; see `allocate_indicators`
    cdef const double* ones      # its values
    cdef const double* nans      # those of a row with a value that is not finite
    cdef Py_ssize_t n_indicators  # for how many there is memory
    cdef double* numbers         # the values of a row in another order; see `allocate_numbers`
    cdef void* binned_by         # whose bins of the fetched row are the first indicators; NULL: nobody's
    cdef bint sound              # whether that row may be learned
    cdef const Py_ssize_t* order  # the order in which rows are learned; NULL: as they are stored
    cdef Py_ssize_t lead         # how many rows ahead they are then prefetched

    cdef int allocate(self) except -1
    cdef int allocate_scratch(self, bint filled) except -1
    cdef int allocate_indicators(self, Py_ssize_t n) except -1
    cdef int allocate_numbers(self) except -1
    cdef int set_order(self, order) except -1
    cdef void fetch(self, Py_ssize_t i, Row* row) noexcept nogil
    cdef void fill(self, Row* row) noexcept nogil
    cdef void prefetch(self, Py_ssize_t i, const double* weights, Py_ssize_t per_feature) noexcept nogil
    cdef void prefetch_coming(self, Py_ssize_t k) noexcept nogil
    cdef bint increases(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil


cdef inline Py_ssize_t row_number(Rows rows, Py_ssize_t k) noexcept nogil:
    """The number of the row that is learned as the k-th."""
    return k if rows.order == NULL else rows.order[k]


cdef inline const double* filled(const Row* row, double* buffer, Py_ssize_t n) noexcept nogil:
    """The n values of a row, of a sparse one in the buffer."""
    if row.index == NULL:
        return row.x
    memset(buffer, 0, n * sizeof(double))
    ob_scatter(buffer, row.x, row.index, row.n)
    return buffer


cdef inline bint in_place(Rows rows) noexcept nogil:
    """Whether a row that was fetched stays where it is when others are fetched."""
    return rows.x == NULL and rows.index == NULL and rows.columns is None


cdef inline void prefetch_all(const char* at, Py_ssize_t n) noexcept nogil:
    """Prefetch n bytes, or the first ones: the processor foresees those that follow."""
    cdef Py_ssize_t k
    for k in range(0, min(n, AHEAD), 64):
        OB_PREFETCH(at + k)


cdef Rows dense_rows(X)
cdef Rows sparse_rows(X, bint sort=*)
cdef Rows try_rows(X)
cpdef Rows open_rows(X)


cdef struct Shape:            # of a block of rows, or of their images
    bint dense
    Py_ssize_t widest         # most values in a row
    Py_ssize_t stored         # values in all rows, or more


cdef class RowMap(Stateful):
    cdef readonly Py_ssize_t n_features  # columns of rows
    cdef readonly Py_ssize_t n_outputs   # columns of their images
    cdef bint begun                      # whether columns have begun, perhaps again, with the row learned last

    cdef int open(self, Rows rows) except -1
    cdef Shape shape(self, Rows rows) noexcept nogil
    cdef void map_row(self, Rows rows, Row* row) noexcept nogil
    cdef void map_to_learn(self, Rows rows, double weight, Row* row) noexcept nogil
    cdef bint begins(self, Py_ssize_t column, double weight, double* at) noexcept nogil
    cdef bint bounded(self) noexcept nogil
    cdef int begin(self, Rows rows) except -1
    cdef void undo(self) noexcept


cdef inline Shape shape_of(RowMap row_map, Rows rows) noexcept nogil:
    """The shape of what is learned: of the images under `row_map`, or of the rows if it is None."""
    return Shape(rows.indices == NULL, rows.widest, rows.stored) if row_map is None else row_map.shape(rows)


cdef inline void fetch_mapped(RowMap row_map, Rows rows, Py_ssize_t i, Row* row) noexcept nogil:
    """Row i as it is predicted: its image, if there is a map."""
    rows.fetch(i, row)
    if row_map is not None:
        row_map.map_row(rows, row)


cdef inline void fetch_to_learn(RowMap row_map, Rows rows, Py_ssize_t i, double weight, Row* row) noexcept nogil:
    """The same, and then the map learns the row."""
    rows.fetch(i, row)
    if row_map is not None:
        row_map.map_to_learn(rows, weight, row)
