cdef struct Table:
    const char* at
    bint single  # float32, else float64
    Py_ssize_t n_rows, n_columns
    Py_ssize_t row, column  # strides in bytes


cdef class TableView:
    cdef Table table
    cdef const double[:, :] wide
    cdef const float[:, :] narrow


cdef const double* row_of(const Table* t, Py_ssize_t i, double* buffer) noexcept nogil
