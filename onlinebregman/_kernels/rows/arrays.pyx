"""Arrays of numbers: read and made through NumPy's C interface, in a fraction of the time that a buffer takes."""

import numpy as np

from libc.math cimport NAN
from libc.string cimport memset
from numpy cimport (
    NPY_DOUBLE, PyArray_DATA, PyArray_DIM, PyArray_EMPTY, PyArray_IS_C_CONTIGUOUS, PyArray_IS_F_CONTIGUOUS,
    PyArray_ISNOTSWAPPED, PyArray_ITEMSIZE, PyArray_NDIM, PyArray_SIZE, PyArray_STRIDE, import_array,
    ndarray, npy_intp,
)

from onlinebregman._kernels.ops.vector cimport ob_nonfinite

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
    cdef Py_ssize_t i, k, n
    cdef const float* a
    cdef float[8] sums
    cdef double total = NAN
    if type(values) is not ndarray or not view(values, &seen):
        return False
    if not (seen.aligned and (seen.contiguous or PyArray_IS_F_CONTIGUOUS(values))):
        return False
    n = PyArray_SIZE(values)
    if seen.type == c"d":
        total = ob_nonfinite(<const double*> seen.at, n)
    elif seen.type == c"f":
        a, total = <const float*> seen.at, 0.0
        memset(sums, 0, sizeof(sums))
        for i in range(0, n - n % 8, 8):
            for k in range(8):
                sums[k] += a[i + k] * 0.0
        for i in range(n - n % 8, n):
            sums[0] += a[i] * 0.0
        for k in range(8):
            total += sums[k]
    return total == 0
