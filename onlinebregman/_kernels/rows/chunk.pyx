"""A chunk of rows, fetched and standardised once for all learners."""

import numpy as np

from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from onlinebregman._kernels.rows.rows cimport Row, Rows
from onlinebregman._kernels.rows.standardizer cimport Standardizer, fetch_to_learn


cdef class Chunk:
    """Rows of positive weight with their targets, filled from one block of rows after the other."""

    def __cinit__(self):
        self.values, self.columns, self.numbers = np.empty(0), np.empty(0, dtype=np.intp), np.empty(0)

    def __dealloc__(self):
        free(self.rows)
        free(self.number)

    cdef int reserve(self, Rows rows, Py_ssize_t most) except -1:
        """Allocate memory for `most` of these rows; a single row is not copied when it is fetched."""
        cdef void* memory
        cdef Py_ssize_t copied = most if most > 1 else 0
        self.n, self.capacity, self.width = 0, most, rows.widest
        if self.numbers.shape[0] < 2 * most:
            memory = realloc(self.rows, most * sizeof(Row))
            if memory == NULL:
                raise MemoryError()
            self.rows = <Row*> memory
            memory = realloc(self.number, most * sizeof(Py_ssize_t))
            if memory == NULL:
                raise MemoryError()
            self.number, self.numbers = <Py_ssize_t*> memory, np.empty(2 * most)
        self.weight = &self.numbers[0]
        self.y = self.weight + most
        if self.values.shape[0] < copied * self.width:
            self.values = np.empty(copied * self.width)
        if rows.indices != NULL and self.columns.shape[0] < copied * self.width:
            self.columns = np.empty(copied * self.width, dtype=np.intp)
        return 0

    cdef void add(self, Standardizer standardizer, Rows rows, Py_ssize_t i, double weight, double y) noexcept nogil:
        """Add row i, and update the statistics of the standardizer with it."""
        cdef Row* row = &self.rows[self.n]
        cdef double* x
        fetch_to_learn(standardizer, rows, i, weight, row)
        if self.capacity > 1 and row.n > 0:
            x = &self.values[self.n * self.width]
            memcpy(x, row.x, row.n * sizeof(double))
            row.x = x
            if row.index != NULL:
                memcpy(&self.columns[self.n * self.width], row.index, row.n * sizeof(Py_ssize_t))
                row.index = &self.columns[self.n * self.width]
        self.number[self.n], self.weight[self.n], self.y[self.n] = i, weight, y
        self.n += 1
