"""Blocks of rows, read in place: float64 or float32 arrays, by rows or by columns, columns of data frames, and CSR;
and the base class of maps of rows."""

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse

cimport cython
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free

from onlinebregman._kernels.ops.pointers cimport cache_line, resized
from onlinebregman._kernels.ops.row cimport ob_widen_columns, ob_widen_values
from onlinebregman._kernels.ops.vector cimport OB_PREFETCH, ob_dot
from onlinebregman._kernels.rows.arrays cimport View, as_float64, blocks_of, empty_float64, view
from onlinebregman._kernels.rows.arrays import Columns

cdef type ndarray = np.ndarray

# From this many columns on the weights do not fit into a core's own cache, and those of the next row are prefetched.
cdef Py_ssize_t LARGE = 1 << 16


ctypedef fused Column:
    int32_t
    int64_t


cdef inline bint increasing(const Column* a, Py_ssize_t n) noexcept nogil:
    """Whether the numbers increase strictly."""
    cdef Py_ssize_t i
    cdef Column descents = 0
    for i in range(n - 1):
        descents |= a[i] >= a[i + 1]
    return descents == 0


cdef inline Py_ssize_t integer(const char* values, int size, Py_ssize_t i) noexcept nogil:
    return (<const int32_t*> values)[i] if size == 4 else <Py_ssize_t> (<const int64_t*> values)[i]


@cython.final
@cython.no_gc
@cython.freelist(4)
cdef class Rows:
    """A block of rows; `fetch` points a `Row` at one of them."""

    def __dealloc__(self):
        free(self.x_memory)
        free(self.index)
        free(self.z_memory)
        free(self.filled_memory)
        free(self.indicators)
        free(self.numbers)

    cdef int allocate(self) except -1:
        """Memory to convert rows that are not float64 with indices of type Py_ssize_t."""
        if self.value_size != sizeof(double):
            self.x_memory = resized(NULL, self.widest * sizeof(double) + 64)
            self.x = cache_line(self.x_memory)
        if self.indices != NULL and self.index_size != sizeof(Py_ssize_t):
            self.index = <Py_ssize_t*> resized(NULL, self.widest * sizeof(Py_ssize_t))
        return 0

    cdef int allocate_scratch(self, bint filled) except -1:
        """Memory for a row that is transformed before it is learned, and, with `filled`, to make sparse rows dense.

        There may be an indicator for each value.
        """
        filled = filled and self.indices != NULL
        if self.z == NULL:
            self.z_memory = resized(NULL, 2 * (self.n_columns if filled else self.widest) * sizeof(double) + 64)
            self.z = cache_line(self.z_memory)
        if filled and self.filled == NULL:
            self.filled_memory = resized(NULL, self.n_columns * sizeof(double) + 64)
            self.filled = cache_line(self.filled_memory)
        return 0

    cdef int allocate_indicators(self, Py_ssize_t n) except -1:
        """Memory for images of at most n indicators: their columns, and their values, all 1 or all NaN."""
        cdef double* values
        cdef Py_ssize_t k
        if n > self.n_indicators:
            self.indicators = <Py_ssize_t*> resized(self.indicators, n * (sizeof(Py_ssize_t) + 2 * sizeof(double)))
            self.n_indicators = n
            values = <double*> (self.indicators + n)
            for k in range(n):
                values[k], values[n + k] = 1.0, NAN
            self.ones, self.nans = values, values + n
        return 0

    cdef int allocate_numbers(self) except -1:
        """Memory for the values of a row in another order."""
        if self.numbers == NULL:
            self.numbers = <double*> resized(NULL, self.n_columns * sizeof(double))
        return 0

    cdef void fill(self, Row* row) noexcept nogil:
        """Make a sparse row dense, in memory that was allocated for that."""
        row.x, row.index, row.n = filled(row, self.filled, self.n_columns), NULL, self.n_columns

    cdef int set_order(self, order) except -1:
        """Learn these rows in this order, an array of intp; None: all as they are stored."""
        cdef View seen
        cdef Py_ssize_t k, i, n, stored = 0
        if order is not None:
            if not (is_vector(order, &seen) and seen.type in b"lq" and seen.itemsize == sizeof(Py_ssize_t)):
                raise TypeError(f"the order of rows must be a C-contiguous array of intp; got {type(order).__name__}")
            self.array, self.order, n = (self.array, order), <const Py_ssize_t*> seen.at, seen.shape[0]
            for k in range(n):  # rows may come several times
                i = self.order[k]
                if not 0 <= i < self.n_rows:
                    raise ValueError(f"the order must be of numbers of {self.n_rows} rows; got {i}")
                stored += self.n_columns if self.indices == NULL else \
                    integer(self.indptr, self.index_size, i + 1) - integer(self.indptr, self.index_size, i)
            self.n_rows, self.stored = n, stored
            self.lead = max(1, min(8, AHEAD * n // max(stored * self.value_size, 1)))
        return 0

    cdef void fetch(self, Py_ssize_t i, Row* row) noexcept nogil:
        cdef Py_ssize_t start = 0
        cdef const char* at
        row.number, self.binned_by = i, NULL
        if self.indices == NULL:
            row.index, row.n = NULL, self.n_columns
            if self.columns is not None:
                row.x = self.columns.row(i)
                return
            at = self.values + i * self.row_step
        else:
            start = integer(self.indptr, self.index_size, i)
            row.n = integer(self.indptr, self.index_size, i + 1) - start
            if self.index == NULL:
                row.index = (<const Py_ssize_t*> self.indices) + start
            else:
                ob_widen_columns(self.index, (<const int32_t*> self.indices) + start, row.n)
                row.index = self.index
            at = self.values + start * self.value_size
        if self.x == NULL:
            row.x = <const double*> at
        else:
            ob_widen_values(self.x, <const float*> at, row.n)
            row.x = self.x

    cdef void prefetch(self, Py_ssize_t i, const double* weights, Py_ssize_t per_feature) noexcept nogil:
        """Prefetch the weights of row i, if it is sparse and the weights do not fit into the cache."""
        cdef Py_ssize_t b, k
        if self.indices == NULL or self.n_columns < LARGE:
            return
        for b in range(per_feature):
            for k in range(integer(self.indptr, self.index_size, i), integer(self.indptr, self.index_size, i + 1)):
                OB_PREFETCH(weights + b * self.n_columns + integer(self.indices, self.index_size, k))

    cdef void prefetch_coming(self, Py_ssize_t k) noexcept nogil:
        """Prefetch the row `lead` rows after the k-th, which the processor cannot foresee in the given order."""
        cdef Py_ssize_t i, start, n
        if k + self.lead >= self.n_rows:
            return
        i = self.order[k + self.lead]
        if self.columns is not None:
            self.columns.prefetch(i)
        elif self.indices == NULL:
            prefetch_all(self.values + i * self.row_step, self.n_columns * self.value_size)
        else:
            start = integer(self.indptr, self.index_size, i)
            n = integer(self.indptr, self.index_size, i + 1) - start
            prefetch_all(self.values + start * self.value_size, n * self.value_size)
            prefetch_all(self.indices + start * self.index_size, n * self.index_size)
            if k + 2 * self.lead < self.n_rows:
                OB_PREFETCH(self.indptr + self.order[k + 2 * self.lead] * self.index_size)

    cdef bint increases(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
        """Whether these columns are in range and increase strictly."""
        if start == end:
            return True
        if integer(self.indices, self.index_size, start) < 0:
            return False
        if integer(self.indices, self.index_size, end - 1) >= self.n_columns:
            return False
        if self.index_size == 4:
            return increasing((<const int32_t*> self.indices) + start, end - start)
        return increasing((<const int64_t*> self.indices) + start, end - start)


def in_order(X):
    """A copy of a CSR matrix with the columns of each row in order, and the values of equal ones summed."""
    ordered = type(X)((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    ordered.sum_duplicates()
    return ordered


cdef inline bint is_vector(array, View* seen):
    """View an array; whether it is an aligned vector of numbers in C's order."""
    return view(array, seen) and seen.ndim == 1 and seen.contiguous and seen.aligned


cdef Rows dense_rows(X):
    """Rows of a 2-D array of float64 or float32 in any layout, or of `Columns`; None if it is something else."""
    cdef Rows rows = Rows.__new__(Rows)
    cdef View seen
    if type(X) is not ndarray and type(X) is Columns:
        rows.columns = blocks_of(X)
        rows.value_size, (rows.n_rows, rows.n_columns) = sizeof(double), X.shape
    elif not view(X, &seen) or seen.ndim != 2 or seen.type not in b"df" or not seen.aligned:
        return None
    elif (seen.strides[0] | seen.strides[1]) & (seen.itemsize - 1):
        return None
    else:
        rows.array, rows.values, rows.value_size, rows.row_step = X, seen.at, seen.itemsize, seen.strides[0]
        rows.n_rows, rows.n_columns = seen.shape[0], seen.shape[1]
        if seen.strides[1] != seen.itemsize:
            rows.columns, rows.value_size = blocks_of(X), sizeof(double)
    rows.widest, rows.stored = rows.n_columns, rows.n_rows * rows.n_columns
    rows.allocate()
    return rows


cdef Rows sparse_rows(X, bint sort=True):
    """Rows of a CSR matrix of float64 or float32, with `sort` also if columns come in any order; None of others."""
    cdef Rows rows = Rows.__new__(Rows)
    cdef View values, indices, indptr
    cdef Py_ssize_t i, start, end
    cdef bint ordered = True
    rows.array = X.data, X.indices, X.indptr
    if not (is_vector(X.data, &values) and is_vector(X.indices, &indices) and is_vector(X.indptr, &indptr)):
        return None
    if values.type not in b"df" or indices.type not in b"ilq" or indptr.type not in b"ilq":
        return None
    if indices.itemsize not in (4, 8) or indptr.itemsize != indices.itemsize or len(X.shape) != 2:
        return None
    rows.values, rows.value_size = values.at, values.itemsize
    rows.indices, rows.indptr, rows.index_size = indices.at, indptr.at, indices.itemsize
    rows.n_rows, rows.n_columns = X.shape
    if rows.n_rows < 0 or indptr.shape[0] != rows.n_rows + 1:
        return None
    start = integer(rows.indptr, rows.index_size, 0)
    rows.stored = integer(rows.indptr, rows.index_size, rows.n_rows)
    if start != 0 or rows.stored > values.shape[0] or rows.stored > indices.shape[0]:
        return None
    for i in range(rows.n_rows):
        end = integer(rows.indptr, rows.index_size, i + 1)
        if not start <= end <= rows.stored:
            return None
        rows.widest = max(rows.widest, end - start)
        ordered = ordered and rows.increases(start, end)
        start = end
    if not ordered:
        return sparse_rows(in_order(X), sort=False) if sort else None
    rows.allocate()
    return rows


cdef Rows try_rows(X):
    """The rows of X if it is an array of numbers or a readable CSR matrix, and not of a subclass; None otherwise."""
    cdef Rows rows
    if type(X) is ndarray:
        rows = dense_rows(X)
        if rows is None and X.ndim == 2:
            X = X.copy() if X.dtype == np.float32 else as_float64(X)
            rows = None if X is None else dense_rows(X)
        return rows
    if type(X) is csr_matrix or type(X) is csr_array:
        return sparse_rows(X) if type(X.data) is ndarray else None
    return dense_rows(X) if type(X) is Columns else None


cpdef Rows open_rows(X):
    """The rows of validated X, dense or CSR."""
    cdef Rows rows = sparse_rows(X) if issparse(X) else dense_rows(X)
    if rows is None:
        raise TypeError(
            "X must be an aligned array of float64 or float32, or a CSR matrix of these with column indices in range; "
            f"got {type(X).__name__}"
        )
    return rows


def squared_lengths(X):
    """x'x of each row, dense or CSR."""
    cdef Rows rows = open_rows(X)
    cdef double* squares
    cdef Py_ssize_t i
    cdef Row row
    lengths = empty_float64(rows.n_rows, &squares)
    for i in range(rows.n_rows):
        rows.fetch(i, &row)
        squares[i] = ob_dot(row.x, row.x, row.n)
    return lengths


cdef class RowMap(Stateful):
    """Base class of what is learned instead of rows: their images under a map that itself learns from the rows before.

    A row is predicted and learned as the map sees it before the row, which the map then learns as well. A map belongs
    to one learner or to several that learn the same rows, and takes part in their calls: `open` the rows, `begin`, map
    row after row, check that all is `bounded`, or `undo`.
    """

    def key(self):
        """What maps of the same rows must have in common to have the same images."""
        raise NotImplementedError

    def share(self, RowMap other):
        """Share with another map, of the same rows and of another key, what both learn from them."""

    def begin_again(self):
        """Forget scales of columns."""

    def admit_missing(self):
        """Learn rows with missing values from now on, if that has to be said."""

    def in_units_of_data(self, coef, intercept):
        """Weights and intercept as they are shown, for those of images."""
        return coef, intercept

    cdef int open(self, Rows rows) except -1:
        """Check the width of rows, and allocate, as a part of them, what it takes to map one after the other."""
        if rows.n_columns != self.n_features:
            raise ValueError(
                f"rows must have {self.n_features} features, the number in the rows learned before; got "
                f"{rows.n_columns}"
            )
        return 0

    cdef Shape shape(self, Rows rows) noexcept nogil:
        """The shape of the images of rows."""
        return Shape(True, self.n_outputs, rows.n_rows * self.n_outputs)

    cdef void map_row(self, Rows rows, Row* row) noexcept nogil:
        """Replace a row by its image; the memory of the last image is used again."""

    cdef void map_to_learn(self, Rows rows, double weight, Row* row) noexcept nogil:
        """The same, and then learn the row, which counts as `weight` rows."""

    cdef bint begins(self, Py_ssize_t column, double weight, double* at) noexcept nogil:
        """Whether a column of images has begun with the row learned last, of this weight; then where it stands."""
        return False

    cdef bint bounded(self) noexcept nogil:
        """Whether all numbers are finite that the last call may have changed."""
        return True

    cdef int begin(self, Rows rows) except -1:
        """Before rows are learned: save what `undo` needs."""
        return self.fields.save()

    cdef void undo(self) noexcept:
        """Return to the state from before the last call."""
        self.fields.restore()
