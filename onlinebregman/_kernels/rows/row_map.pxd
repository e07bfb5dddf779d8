from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef struct Shape:            # of a block of rows, or of their images
    bint dense
    Py_ssize_t widest         # most values in a row
    Py_ssize_t stored         # values in all rows, or more


cdef class RowMap:
    cdef readonly Py_ssize_t n_features  # columns of rows
    cdef readonly Py_ssize_t n_outputs   # columns of their images

    cdef int open(self, Rows rows) except -1
    cdef Shape shape(self, Rows rows) noexcept nogil
    cdef void map_row(self, Rows rows, Row* row) noexcept nogil
    cdef void map_to_learn(self, Rows rows, double weight, Row* row) noexcept nogil
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
