"""Rows that are stored by columns: in data frames, and in arrays in Fortran's order.

They are gathered in blocks that stay in the cache, as float64, when the first row of a block is fetched.
"""

import numpy as np

cimport cython

from libc.stdlib cimport free, malloc

from onlinebregman._kernels.ops.columns cimport ob_gather_column
from onlinebregman._kernels.ops.vector cimport OB_PREFETCH
from onlinebregman._kernels.rows.arrays cimport View, view

cdef enum:
    BLOCK = 1 << 14           # numbers in a block
    FEWEST_ROWS = 8           # rows in it, as many as there are values of a column in a cache line


class Columns:
    """Columns of numbers of one length that are read as rows, without a copy of all of them.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n_rows,)
        Of floating point numbers, integers or booleans.
    """

    ndim = 2

    def __init__(self, columns):
        self.columns = tuple(columns)
        self.shape = len(self.columns[0]), len(self.columns)
        self.dtype = np.result_type(*{column.dtype for column in self.columns})

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        """Some of the rows: those of a slice as `Columns`, others as an array."""
        chosen = Columns([column[rows] for column in self.columns])
        return chosen if isinstance(rows, slice) else np.asarray(chosen)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("columns cannot be an array without a copy")
        return np.stack(self.columns, axis=1, dtype=np.float64 if dtype is None else dtype, casting="unsafe")


@cython.final
cdef class ColumnBlocks:
    """Rows of columns, gathered block by block."""

    def __dealloc__(self):
        free(self.columns)
        free(self.memory)

    cdef int add(self, array) except -1:
        """Add a column, or all those of a 2-D array."""
        cdef View seen
        cdef Py_ssize_t j
        if not view(array, &seen) or seen.ndim > 2 or seen.shape[0] != self.n_rows or \
                not ob_gather_column(NULL, 0, NULL, 0, seen.type, 0):
            raise TypeError(f"columns must be of {self.n_rows} numbers each; got {array.dtype} of shape {array.shape}")
        for j in range(seen.shape[1]):
            self.columns[self.n_columns] = Strided(seen.at + j * seen.strides[1], seen.strides[0], seen.type)
            self.n_columns += 1
        return 0

    cdef void gather(self, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
        """Fill the block with n rows from the i-th on."""
        cdef Py_ssize_t j
        cdef Strided* column
        for j in range(self.n_columns):
            column = &self.columns[j]
            ob_gather_column(self.values + j, self.stride, column.at + i * column.step, column.step, column.kind, n)
        self.first, self.last = i, i + n

    cdef void prefetch(self, Py_ssize_t i) noexcept nogil:
        """Prefetch row i, unless it is in the block."""
        cdef Py_ssize_t j
        if not self.first <= i < self.last:
            for j in range(self.n_columns):
                OB_PREFETCH(self.columns[j].at + i * self.columns[j].step)

    cdef const double* row(self, Py_ssize_t i) noexcept nogil:
        """Row i; valid until another one is asked for."""
        if not self.first <= i < self.last:
            # After the last row of a block further ones will follow; rows in another order come one by one
            self.gather(i, min(self.capacity, self.n_rows - i) if i == self.last else 1)
        return self.values + (i - self.first) * self.stride


cdef ColumnBlocks blocks_of(X):
    """The rows of `Columns`, or of a 2-D array."""
    cdef ColumnBlocks blocks = ColumnBlocks.__new__(ColumnBlocks)
    cdef tuple arrays = X.columns if type(X) is Columns else (X,)
    cdef Py_ssize_t n_columns = X.shape[1]
    blocks.n_rows = X.shape[0]
    # An odd number of cache lines: rows whose addresses differ by a power of two would displace each other
    blocks.stride = 8 * (n_columns // 8 | 1)
    if blocks.stride < n_columns:
        blocks.stride += 16
    blocks.capacity = min(max(BLOCK // blocks.stride, FEWEST_ROWS), max(blocks.n_rows, 1))
    blocks.arrays = arrays
    blocks.columns = <Strided*> malloc(max(n_columns, 1) * sizeof(Strided))
    blocks.memory = malloc(blocks.capacity * blocks.stride * sizeof(double) + 64)
    if blocks.columns == NULL or blocks.memory == NULL:
        raise MemoryError()
    blocks.values = <double*> ((<size_t> blocks.memory + 63) & ~<size_t> 63)
    for array in arrays:
        blocks.add(array)
    return blocks
