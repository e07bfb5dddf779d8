"""A chunk of rows, each fetched and mapped once for all learners."""

import numpy as np

from libc.stdlib cimport free
from libc.string cimport memcpy

from onlinebregman._kernels.ops.pointers cimport resized
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows, in_place, shape_of
from onlinebregman._kernels.rows.thresholds import ThresholdMap


cdef class Chunk:
    """Rows of positive weight with their targets, filled from one block of rows after the other.

    Parameters
    ----------
    row_maps : tuple of RowMap or None
        By which rows are mapped, all different; None: not at all.
    """

    def __cinit__(self, tuple row_maps):
        cdef Py_ssize_t k
        if len(row_maps) > MAX_IMAGES:
            raise ValueError(f"learners must have at most {MAX_IMAGES} maps of rows in all; got {len(row_maps)}")
        if len({id(each.bins) for each in row_maps if isinstance(each, ThresholdMap)}) > 1:
            raise ValueError("learners must share the bins of their maps of rows; got different ones")
        self.row_maps, self.n_images = row_maps, len(row_maps)
        for k in range(self.n_images):
            self.maps[k] = <void*> row_maps[k]
        self.values, self.columns, self.numbers = np.empty(0), np.empty(0, dtype=np.intp), np.empty(0)

    def __dealloc__(self):
        free(self.rows)
        free(self.number)

    cdef Py_ssize_t measure(self, Rows rows) noexcept:
        """Find the most values that may be copied of the images of one of these rows, in all."""
        cdef Py_ssize_t k
        self.width, self.in_place = 0, in_place(rows)
        for k in range(self.n_images):
            self.widths[k] = shape_of(<RowMap> self.maps[k], rows).widest
            self.width += 0 if self.in_place and self.maps[k] == <void*> None else self.widths[k]
        return self.width

    cdef int reserve(self, Rows rows, Py_ssize_t most, Py_ssize_t n_targets=1) except -1:
        """Allocate memory for `most` of these rows, which are measured, with `n_targets` targets each."""
        cdef Py_ssize_t k, copied
        cdef bint indexed = False
        self.n, self.capacity, self.n_targets = 0, most, n_targets
        copied = most * self.width if most > 1 or self.n_images > 1 else 0
        if self.numbers.shape[0] < (1 + n_targets) * most:
            self.rows = <Row*> resized(self.rows, self.n_images * most * sizeof(Row))
            self.number = <Py_ssize_t*> resized(self.number, most * sizeof(Py_ssize_t))
            self.numbers = np.empty((1 + n_targets) * most)
        self.weight = &self.numbers[0]
        self.y = self.weight + most
        if self.values.shape[0] < copied:
            self.values = np.empty(copied)
        for k in range(self.n_images):
            indexed = indexed or not shape_of(<RowMap> self.maps[k], rows).dense
        if indexed and self.columns.shape[0] < copied:
            self.columns = np.empty(copied, dtype=np.intp)
        return 0

    cdef void add(self, Rows rows, const Row* row, double weight, const double* y) noexcept nogil:
        """Add a row, as it was fetched from `rows`, which the maps learn, with its targets; NULL: 0."""
        cdef Py_ssize_t k, start = self.n * self.width
        cdef Row* image
        for k in range(self.n_images):
            image = self.images(k) + self.n
            image[0] = row[0]
            if self.maps[k] != <void*> None:
                (<RowMap> self.maps[k]).map_to_learn(rows, weight, image)
            if self.copied(k) and image.n > 0:
                if image.x != rows.ones:
                    memcpy(&self.values[start], image.x, image.n * sizeof(double))
                    image.x = &self.values[start]
                if image.index != NULL:
                    memcpy(&self.columns[start], image.index, image.n * sizeof(Py_ssize_t))
                    image.index = &self.columns[start]
                start += image.n
        self.number[self.n], self.weight[self.n] = row.number, weight
        for k in range(self.n_targets):
            self.y[self.n * self.n_targets + k] = 0.0 if y == NULL else y[k]
        self.n += 1

    cdef inline bint copied(self, Py_ssize_t k) noexcept nogil:
        """Whether the k-th image is copied: unless neither the next row nor the next map overwrites it."""
        if self.in_place and self.maps[k] == <void*> None:
            return False
        return self.capacity > 1 or k + 1 < self.n_images

    cdef inline Row* images(self, Py_ssize_t image) noexcept nogil:
        """The rows of the chunk as one of the maps shows them."""
        return self.rows + image * self.capacity
