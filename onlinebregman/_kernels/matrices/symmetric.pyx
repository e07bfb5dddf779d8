"""Symmetric matrices from their upper triangle, and their factors."""

import numpy as np

from libc.math cimport fabs, isfinite, sqrt
from scipy.linalg import LinAlgError

from onlinebregman._kernels.ops.lapack cimport dsyevr


cdef Py_ssize_t size_of(const double[:, :] matrix) except -1:
    if not matrix.shape[0] == matrix.shape[1] > 0:
        raise ValueError(f"a matrix must be square; got shape {(matrix.shape[0], matrix.shape[1])}")
    return matrix.shape[0]


def mirrored(const double[:, :] upper):
    """The symmetric matrix with this upper triangle; the lower one is ignored."""
    cdef Py_ssize_t i, j, d = size_of(upper)
    matrix = np.empty((d, d))
    cdef double[:, ::1] out = matrix
    for i in range(d):
        for j in range(i, d):
            out[i, j] = out[j, i] = upper[i, j] + 0.0  # no negative zeros
    return matrix


def eigen_factor(const double[:, :] matrix):
    """L with W = L'L; rows are the principal directions, longest first, their largest entries positive.

    Negative eigenvalues are treated as rounding errors, and set to 0.
    """
    cdef Py_ssize_t i, j, k, d = size_of(matrix)
    cdef int info = 0, n_work = -1, n_integers = -1
    cdef double length
    cdef bint finite = True
    factor = np.empty((d, d))
    cdef double[:, ::1] out = factor, a = np.empty((d, d)), vectors = np.empty((d, d))
    cdef double[::1] values = np.empty(d), work = np.empty(1)
    cdef int[::1] integers = np.empty(1, dtype=np.intc), support = np.empty(2 * d, dtype=np.intc)
    decompose(<int> d, &a[0, 0], &values[0], &vectors[0, 0], &support[0], &work[0], -1, &integers[0], -1)  # the sizes
    n_work, n_integers = <int> work[0], integers[0]
    work, integers = np.empty(n_work), np.empty(n_integers, dtype=np.intc)
    with nogil:
        for i in range(d):
            for j in range(d):
                a[j, i] = matrix[i, j]
                finite = finite and isfinite(matrix[i, j])
        if finite:
            info = decompose(<int> d, &a[0, 0], &values[0], &vectors[0, 0], &support[0], &work[0], n_work,
                             &integers[0], n_integers)
        for i in range(d if finite and info == 0 else 0):
            k, length = 0, sqrt(max(values[d - 1 - i], 0.0))
            for j in range(d):
                if fabs(vectors[d - 1 - i, j]) > fabs(vectors[d - 1 - i, k]):
                    k = j
            for j in range(d):
                out[i, j] = vectors[d - 1 - i, j] * (length if vectors[d - 1 - i, k] > 0 else -length)
    if not finite:
        raise ValueError("the matrix must be finite to have a factor; got infinity or NaN")
    if info != 0:
        raise LinAlgError(
            f"LAPACK's dsyevr did not find the eigenvalues of a symmetric matrix of size {d} (info = {info})"
        )
    return factor


cdef int decompose(int d, double* a, double* values, double* vectors, int* support, double* work, int n_work,
                   int* integers, int n_integers) noexcept nogil:
    """Eigenvalues in increasing order and eigenvectors as rows, from the lower triangle of A in column-major order."""
    cdef int found = 0, info = 0, unused = 0
    cdef double zero = 0.0
    dsyevr("V", "A", "L", &d, a, &d, &zero, &zero, &unused, &unused, &zero, &found, values, vectors, &d, support,
           work, &n_work, integers, &n_integers, &info)
    return info


def add_deviations(const double[:, ::1] X, Py_ssize_t count, double[::1] mean, double[:, ::1] scatter):
    """Add rows, one after the other, to the mean of `count` rows and their scatter matrix (Welford 1962)."""
    cdef Py_ssize_t i, j, k, d = X.shape[1]
    if not d == mean.shape[0] == scatter.shape[0] == scatter.shape[1]:
        raise ValueError(f"rows must have {mean.shape[0]} features, the number in the rows before; got {d}")
    cdef double[::1] deviation = np.empty(d)
    with nogil:
        for i in range(X.shape[0]):
            count += 1
            for j in range(d):
                deviation[j] = X[i, j] - mean[j]
                mean[j] = mean[j] + deviation[j] / count
            for j in range(d):
                for k in range(d):
                    scatter[j, k] += deviation[j] * (X[i, k] - mean[k])


def balanced_factor(const double[:, :] matrix):
    """L with W = L'L, computed with features scaled to W_ii = 1, so that distances are accurate in any units."""
    cdef Py_ssize_t i, j, d = size_of(matrix)
    balanced, scales = np.empty((d, d)), np.empty(d)
    cdef double[:, ::1] out = balanced
    cdef double[::1] scale = scales
    for i in range(d):
        scale[i] = sqrt(matrix[i, i]) if matrix[i, i] > 0 else 1.0
    for i in range(d):
        for j in range(d):
            out[i, j] = matrix[i, j] / (scale[i] * scale[j])
    return eigen_factor(balanced) * scales
