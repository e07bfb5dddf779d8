"""Ridge regression in the form of a triangular factor, which rows are rotated into.

The state A = a I + sum h x x', b = sum h x y of weighted rows is held as A = U'D U and b = U'D g with U unit upper
triangular and D diagonal, so that the ridge weights A^-1 b solve U w = g. A row z = (x, y) of weight h goes in by
Givens rotations without square roots (W. M. Gentleman, J. Inst. Maths Applics 12, 1973). With r the k-th row of (U, g),
and x_k, z, h those of the row after the rotations before:

    d' = d_k + h x_k^2,    r' = (d_k / d') r + (h x_k / d') z,    z' = z - x_k r,    h' = (d_k / d') h.

In the end y is the residual y - x'A^-1 b, and h is h / (1 + h x'A^-1 x): the prediction is a by-product of the update.
D only grows, so A stays positive definite for all data. With a forgetting factor, A <- gamma A + h x x' and b <- gamma
b + h y x, gamma d_k takes the place of d_k, but no pivot is discounted below `least`, a small part of a: in directions
in which no row has a component, such as the difference of equal columns, only rounding errors would remain. A row of
negative weight takes off what one of positive weight has added; rounding errors then leave at least a quarter of d_k.
Where there is nothing yet, d_k = 0, a row fits exactly, and h' = 0. The update is backward stable, and scaling a
feature scales a column of U, so badly scaled features cost no digits. One row costs O(d^2), a prediction half of that.

In memory: d_k, U[k, k+1:], g_k for k = 0, 1, ...: rows of d - k + m numbers, for d coordinates and m targets.
"""

import numpy as np

from libc.math cimport isfinite
from libc.string cimport memcpy, memset

from onlinebregman._kernels.ops.forward cimport ob_rotate, ob_rotate4, ob_rotate_into
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_dot


cdef double least_pivot(double alpha) noexcept nogil:
    return 1e-10 * alpha


cdef inline double discounted(double d, double gamma, double least) noexcept nogil:
    return gamma * d if gamma != 1 and gamma * d >= least else d


cdef void start_factor(double* r, Py_ssize_t d, Py_ssize_t m, double alpha) noexcept nogil:
    """A = alpha I, b = 0."""
    cdef Py_ssize_t k
    memset(r, 0, (d * (d + 1) // 2 + d * m) * sizeof(double))
    for k in range(d):
        r[0] = alpha
        r += d - k + m


cdef inline double raised(double past, double weight, double x) noexcept nogil:
    """The pivot with a row of this weight."""
    cdef double pivot = past + weight * x * x
    return 0.25 * past if pivot < 0.25 * past else pivot


cdef void rotate_rows(double* r, Py_ssize_t d, Py_ssize_t m, double* z, double* weight, Py_ssize_t n,
                      double gamma, double least) noexcept nogil:
    """Rotate n <= BATCH rows (x, y) into the factor together, bit for bit as one after the other."""
    cdef Py_ssize_t j, k, width = d + m
    cdef double[BATCH] x, keep, gain
    cdef double past, pivot
    cdef bint full
    for k in range(d):
        full, pivot = n == BATCH, r[0]
        for j in range(n):
            x[j] = z[j * width + k]
            full = full and x[j] != 0
            past = discounted(pivot, gamma, least)
            pivot = raised(past, weight[j], x[j])
            keep[j], gain[j] = (1.0, 0.0) if pivot == 0 else (past / pivot, weight[j] * x[j] / pivot)
            weight[j] *= keep[j]
        r[0] = pivot
        if full:
            ob_rotate4(r + 1, z + k + 1, width, x, keep, gain, width - k - 1)
        else:
            for j in range(n):
                if x[j] != 0:  # the rotation of a 0 is the identity
                    ob_rotate(r + 1, z + j * width + k + 1, x[j], keep[j], gain[j], width - k - 1)
        r += width - k


cdef bint rotate_row(double* rotated, const double* r, Py_ssize_t d, Py_ssize_t m, double* z, double* weight,
                     double gamma, double least) noexcept nogil:
    """Rotate a row into a copy of the factor, bit for bit as `rotate_rows` would; False if not all of it is finite."""
    cdef Py_ssize_t k, n = d + m
    cdef double past, pivot, keep, gain, x
    cdef bint finite = True
    for k in range(d):
        n -= 1
        x = z[k]
        past = discounted(r[0], gamma, least)
        pivot = raised(past, weight[0], x)
        keep, gain = (1.0, 0.0) if pivot == 0 else (past / pivot, weight[0] * x / pivot)
        if x != 0:
            finite &= not ob_rotate_into(rotated + 1, r + 1, z + k + 1, x, keep, gain, n)
        else:
            memcpy(rotated + 1, r + 1, n * sizeof(double))
        rotated[0] = pivot
        finite &= isfinite(pivot)
        weight[0] *= keep
        rotated += 1 + n
        r += 1 + n
    return finite


cdef void reduce_rows(const double* r, Py_ssize_t d, Py_ssize_t m, double* z, double* share, Py_ssize_t n,
                      double gamma, double least) noexcept nogil:
    """Apply the rotations to n rows (x, 0) of weights h, each by itself, without changing the factor.

    They leave -x'A^-1 b in place of the 0, and h / (1 + h x'(gamma A)^-1 x) in place of the weights `share`.
    """
    cdef Py_ssize_t j, k, width = d + m
    cdef double x, past
    for j in range(n):
        memset(z + j * width + d, 0, m * sizeof(double))
    for k in range(d):
        for j in range(n):
            x = z[j * width + k]
            if x != 0:
                past = discounted(r[0], gamma, least)
                share[j] *= past / (past + share[j] * x * x)
                ob_axpy(z + j * width + k + 1, r + 1, x, width - k - 1)
        r += width - k


cdef void solve_factor(const double* r, Py_ssize_t d, Py_ssize_t m, double* w) noexcept nogil:
    """The ridge weights w of shape (m, d), from U w = g."""
    cdef Py_ssize_t k, q, n
    r += d * (d + 1) // 2 + d * m
    for k in range(d - 1, -1, -1):
        n = d - k - 1  # number of values of U[k] right of the diagonal
        r -= 1 + n + m
        for q in range(m):
            w[q * d + k] = r[1 + n + q] - (ob_dot(r + 1, w + q * d + k + 1, n) if n else 0.0)


cdef void free_coordinate(double* r, Py_ssize_t d, Py_ssize_t m, Py_ssize_t j, double* z) noexcept nogil:
    """Leave nothing known of w_j, and of the other weights what the rows say whatever w_j is; z has d + m numbers.

    Row j is rotated through the rows above, which leaves them without w_j and U triangular, and then dropped.
    """
    cdef Py_ssize_t k, n = d + m - j
    cdef double pivot, total, x
    r += j * (d + m) - j * (j - 1) // 2
    pivot = r[0]
    memcpy(z + j, r, n * sizeof(double))
    memset(r, 0, n * sizeof(double))
    z[j] = 1.0
    for k in range(j - 1, -1, -1):
        n += 1
        r -= n
        x, z[k] = r[j - k], 0.0
        total = pivot + r[0] * x * x
        if r[0] == 0 or x == 0:
            continue
        ob_rotate(z + k + 1, r + 1, x, pivot / total, r[0] * x / total, n - 1)
        z[k] = r[0] * x / total
        r[0] *= pivot / total
        pivot = total


def unpacked(values, Py_ssize_t d, Py_ssize_t m):
    """(D, U, g) of a factor, as new arrays of shapes (d,), (d, d) and (d, m)."""
    U, g, D, start = np.eye(d), np.zeros((d, m)), np.zeros(d), 0
    for k in range(d):
        D[k], row = values[start], values[start + 1 : start + d - k + m]
        U[k, k + 1:], g[k] = row[:d - k - 1], row[d - k - 1:]
        start += d - k + m
    return D, U, g


def loses(start, sums):
    """Whether some sums have lost a part of those that they started from, so that it cannot be taken off them."""
    size = np.sqrt(np.diagonal(start) + sum(np.diagonal(each) for each in sums))
    size[size == 0] = 1.0
    return any(np.linalg.eigvalsh((each - start) / np.multiply.outer(size, size))[0] < -1e-6 for each in sums)


def factored(S, Py_ssize_t d):
    """(D, U, g, squares of residuals) of S = sum (x, y) (x, y)' and the prior; see `unpacked`."""
    A, b, squares = S[:d, :d].copy(), S[:d, d:], np.diagonal(S)[d:]
    empty = np.diagonal(A) == 0.0  # of an intercept without a penalty before the first row, or of constant columns
    A[empty, empty] = 1.0
    scale = np.sqrt(np.diagonal(A))
    try:
        lower = np.linalg.cholesky(A / np.multiply.outer(scale, scale)) * scale[:, np.newaxis]
    except np.linalg.LinAlgError:
        raise ValueError(
            "The rows of all shards together leave A, the prior and sum x x', singular; raise alpha."
        ) from None
    root = np.diagonal(lower)
    D, U, g = root ** 2, lower.T / root[:, np.newaxis], np.linalg.solve(lower, b) / root[:, np.newaxis]
    D[empty] = 0.0
    return D, U, g, np.maximum(squares - (g * g * D[:, np.newaxis]).sum(axis=0), 0.0)


def inverse_root(D, U, double gamma, double alpha):
    """R with x'A^-1 x = |R x|^2, A being discounted as for the next row."""
    past = np.where(gamma * D >= least_pivot(alpha), gamma * D, D)
    return np.linalg.inv(U).T / np.sqrt(past)[:, np.newaxis]
