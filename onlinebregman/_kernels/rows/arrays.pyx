"""Arrays of numbers: read and made through NumPy's C interface, in a fraction of the time that a buffer takes.

Rows that are stored by columns, in data frames and in arrays in Fortran's order, are gathered in blocks that stay in
the cache, as float64, when the first row of a block is fetched.
"""

import numpy as np

cimport cython
from libc.math cimport fabs, isfinite
from libc.stdlib cimport free
from libc.string cimport memset
from numpy cimport (
    NPY_DOUBLE, PyArray_DATA, PyArray_DIM, PyArray_EMPTY, PyArray_IS_C_CONTIGUOUS, PyArray_IS_F_CONTIGUOUS,
    PyArray_ISNOTSWAPPED, PyArray_ITEMSIZE, PyArray_NDIM, PyArray_SIZE, PyArray_STRIDE, import_array,
    ndarray, npy_intp,
)

from onlinebregman._kernels.ops.pointers cimport cache_line, resized
from onlinebregman._kernels.ops.robust cimport OB_FIRST, ob_robust, ob_robust_count, ob_robust_known
from onlinebregman._kernels.ops.row cimport ob_gather_column
from onlinebregman._kernels.ops.vector cimport OB_PREFETCH, ob_nonfinite

cdef enum:
    BLOCK = 1 << 14           # numbers in a block
    FEWEST_ROWS = 8           # rows in it, as many as there are values of a column in a cache line

import_array()


cdef bint view(values, View* seen):
    """View an array; False for what is none."""
    cdef ndarray array
    cdef int k
    if not isinstance(values, ndarray):
        return False
    array = values
    seen.at, seen.itemsize, seen.ndim = <char*> PyArray_DATA(array), PyArray_ITEMSIZE(array), PyArray_NDIM(array)
    seen.type = array.descr.type if PyArray_ISNOTSWAPPED(array) else 0
    seen.contiguous = PyArray_IS_C_CONTIGUOUS(array)
    seen.aligned = seen.itemsize > 0 and <size_t> seen.at & <size_t> (seen.itemsize - 1) == 0  # sizes of numbers: 2^k
    for k in range(2):
        seen.shape[k] = PyArray_DIM(array, k) if k < seen.ndim else 1
        seen.strides[k] = PyArray_STRIDE(array, k) if seen.shape[k] > 1 else seen.itemsize
    return True


cpdef object as_float64(values):
    """A copy of an array of numbers or a list of int and float, C-contiguous in float64; None for anything else."""
    if type(values) is list:
        for value in values:
            if type(value) is not float and type(value) is not int:
                return None
    elif type(values) is not ndarray or values.dtype.kind not in "fiu":
        return None
    try:
        return np.array(values, dtype=np.float64, order="C")
    except OverflowError:
        return None


cdef object float64_array(values, View* seen):
    """Numbers as a C-contiguous array of float64, copied if need be, and its view; None for anything else."""
    cdef bint given = type(values) is ndarray and view(values, seen)
    if not (given and seen.type == c"d" and seen.contiguous and seen.aligned):
        values = as_float64(values)
        if values is not None:
            view(values, seen)
    return values


cdef object empty_float64(Py_ssize_t n, double** at):
    """An array of n numbers, and where they are."""
    cdef npy_intp[1] shape
    shape[0] = n
    array = PyArray_EMPTY(1, shape, NPY_DOUBLE, 0)
    at[0] = <double*> PyArray_DATA(array)
    return array


def all_finite(values):
    """Whether values are a contiguous array of floats, all of them finite; False is also returned for other types."""
    cdef View seen
    if type(values) is not ndarray or not view(values, &seen):
        return False
    if not (seen.aligned and (seen.contiguous or PyArray_IS_F_CONTIGUOUS(values))):
        return False
    if seen.type == c"d":
        return ob_nonfinite(<const double*> seen.at, PyArray_SIZE(values)) == 0
    return seen.type == c"f" and bool(np.isfinite(values).all())


FIRST = OB_FIRST  # numbers of which all are in a robust scale, see `ops/robust.h`


def has_absurd(const double[:, :] values, Py_ssize_t some, double times):
    """Whether a column has a value so many times farther than its scale allows; what is not finite does not count.

    Values that are equal to the usual one, as zeros of sparse rows, tell nothing, and nor do fewer than `some` others.
    """
    cdef ob_robust scale
    cdef double far
    cdef bint told
    cdef Py_ssize_t i, k
    for k in range(values.shape[1]):
        memset(&scale, 0, sizeof(scale))
        for i in range(values.shape[0]):
            if isfinite(values[i, k]):
                ob_robust_count(&scale, values[i, k])
        told = some <= scale.moves <= OB_FIRST + some and ob_robust_known(&scale)  # more have told before
        far = times * (scale.hi - scale.mean)
        for i in range(values.shape[0] if told else 0):
            if isfinite(values[i, k]) and not fabs(values[i, k] - scale.origin - scale.mean) <= far:
                return True
    return False


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
    blocks.columns = <Strided*> resized(NULL, n_columns * sizeof(Strided))
    blocks.memory = resized(NULL, blocks.capacity * blocks.stride * sizeof(double) + 64)
    blocks.values = cache_line(blocks.memory)
    for array in arrays:
        blocks.add(array)
    return blocks
