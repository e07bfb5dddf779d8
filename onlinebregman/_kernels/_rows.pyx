"""Blocks of rows, read where they lie: C-contiguous float64 or float32 arrays, and canonical CSR matrices."""

import numpy as np

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc


cdef inline Py_ssize_t integer(const char* values, int size, Py_ssize_t i) noexcept nogil:
    return (<const int32_t*> values)[i] if size == 4 else <Py_ssize_t> (<const int64_t*> values)[i]


cdef class Rows:
    """A block of rows; `fetch` points a `Row` at one of them."""

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.buffer)
        free(self.x)
        free(self.index)

    cdef int make_room(self) except -1:
        if self.value_size != sizeof(double):
            self.x = <double*> malloc(max(self.widest, 1) * sizeof(double))
            if self.x == NULL:
                raise MemoryError()
        if self.indices != NULL and self.index_size != sizeof(Py_ssize_t):
            self.index = <Py_ssize_t*> malloc(max(self.widest, 1) * sizeof(Py_ssize_t))
            if self.index == NULL:
                raise MemoryError()
        return 0

    cdef Py_ssize_t column(self, Py_ssize_t k) noexcept nogil:
        """Column of the k-th stored value of a sparse block."""
        return integer(self.indices, self.index_size, k)

    cdef void fetch(self, Py_ssize_t i, Row* row) noexcept nogil:
        cdef Py_ssize_t start, k
        if self.indices == NULL:
            start, row.n = i * self.n_columns, self.n_columns
            row.index = NULL
        else:
            start = integer(self.indptr, self.index_size, i)
            row.n = integer(self.indptr, self.index_size, i + 1) - start
            if self.index == NULL:
                row.index = (<const Py_ssize_t*> self.indices) + start
            else:
                for k in range(row.n):
                    self.index[k] = self.column(start + k)
                row.index = self.index
        row.stored = row.n
        if self.x == NULL:
            row.x = (<const double*> self.values) + start
        else:
            for k in range(row.n):
                self.x[k] = (<const float*> self.values)[start + k]
            row.x = self.x


cdef Rows dense_rows(X):
    """Rows of a C-contiguous 2-D array of float64 or float32; None if it is something else."""
    cdef Rows rows = Rows.__new__(Rows)
    try:
        PyObject_GetBuffer(X, &rows.buffer, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    except (BufferError, ValueError):
        return None
    rows.held = True
    if rows.buffer.ndim != 2 or rows.buffer.format[1] != 0 or rows.buffer.format[0] not in b"df":
        return None
    rows.values, rows.value_size = <const char*> rows.buffer.buf, rows.buffer.itemsize
    rows.n_rows, rows.n_columns = rows.buffer.shape[0], rows.buffer.shape[1]
    rows.widest, rows.stored = rows.n_columns, rows.n_rows * rows.n_columns
    rows.make_room()
    return rows


cdef Rows sparse_rows(X):
    """Rows of a canonical CSR matrix."""
    cdef Rows rows = Rows.__new__(Rows)
    data, indices, indptr = (np.ascontiguousarray(values) for values in (X.data, X.indices, X.indptr))
    if indices.dtype != indptr.dtype:
        indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    rows.arrays = (data, indices, indptr)
    rows.values = <const char*> <size_t> data.ctypes.data
    rows.indices = <const char*> <size_t> indices.ctypes.data
    rows.indptr = <const char*> <size_t> indptr.ctypes.data
    rows.value_size, rows.index_size = data.itemsize, indices.itemsize
    rows.n_rows, rows.n_columns = X.shape
    rows.stored = len(data)
    rows.widest = np.diff(indptr).max()
    rows.make_room()
    return rows
