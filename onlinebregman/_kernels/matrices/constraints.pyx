"""Linear constraints on a density matrix: how far all are from their optimality conditions, and a step along one."""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, isfinite, isnan, log, log1p


cdef double squared_length(const double* a, Py_ssize_t n) noexcept nogil:
    """|a|^2, by pairs of sums of some length, each in eight lanes, as numpy.sum adds."""
    cdef Py_ssize_t i, k, half
    cdef double r[8]
    cdef double total = 0.0
    if n > 128:
        half = n // 2 - n // 2 % 8
        return squared_length(a, half) + squared_length(a + half, n - half)
    if n < 8:
        for i in range(n):
            total += a[i] * a[i]
        return total
    for k in range(8):
        r[k] = a[k] * a[k]
    i = 8
    while i < n - n % 8:
        for k in range(8):
            r[k] += a[i + k] * a[i + k]
        i += 8
    total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
    for i in range(i, n):
        total += a[i] * a[i]
    return total


def squared_lengths(rows):
    """Of all rows of an array of shape (n_rows, width), shape (n_rows,)."""
    cdef const double[:, ::1] a = np.ascontiguousarray(rows)
    cdef Py_ssize_t i, n = a.shape[0], width = a.shape[1]
    lengths = np.zeros(n)
    cdef double[::1] out = lengths
    if n > 0 and width > 0:
        with nogil:
            for i in range(n):
                out[i] = squared_length(&a[i, 0], width)
    return lengths


def row_extremes(rows):
    """0 and |z|^2 for all rows z of an array, shape (n_rows, 2): the eigenvalues of z z', save for further zeros."""
    cdef const double[:, ::1] a = np.ascontiguousarray(rows, dtype=np.float64)
    cdef Py_ssize_t i, n = a.shape[0], width = a.shape[1]
    extremes = np.zeros((n, 2))
    cdef double[:, ::1] out = extremes
    if width > 0:
        with nogil:
            for i in range(n):
                out[i, 1] = squared_length(&a[i, 0], width)
    return extremes


cdef inline double larger(double a, double b) noexcept nogil:
    """As numpy.maximum: NaN if one of them is."""
    return a if a > b or isnan(a) else b


def conditions(const double[::1] traces, const double[:, ::1] table, const double[::1] alpha, double d):
    """What constraints tr(W C_j) <= 0, or = 0, with C_j = sign_j (X_j - bound_j I), have come to.

    Parameters
    ----------
    traces : ndarray of shape (n,)
        tr(W X_j), for W of trace one.
    table : ndarray of shape (6, n)
        See `kernel_learning._constraints.Constraints`.
    alpha : ndarray of shape (n,)
        The multipliers.
    d : float
        Size of W.

    Returns
    -------
    values, violations, residuals, worst, farthest, finite
        See `kernel_learning._constraints.Conditions`.
    """
    cdef Py_ssize_t j, worst = 0, farthest = 0, n = traces.shape[0]
    cdef double value, violation, residual, largest = -INFINITY, highest = -INFINITY, total = 0.0
    cdef bint finite = True
    cdef const double[::1] bounds, signs, spreads, equal
    if table.shape[0] != 6 or not n == table.shape[1] == alpha.shape[0]:
        raise ValueError(f"there must be six numbers and a multiplier for each of {n} constraints")
    bounds, signs, spreads, equal = table[0], table[1], table[4], table[5]
    found = np.empty((3, n))
    cdef double[:, ::1] out = found
    with nogil:
        for j in range(n):
            value = signs[j] * (traces[j] - bounds[j]) * d / spreads[j]
            violation = fabs(value) if equal[j] else value
            residual = larger(violation, -larger(-(alpha[j] * spreads[j]), violation))
            out[0, j], out[1, j], out[2, j] = value, violation, residual
            if violation > largest:
                largest, worst = violation, j
            if residual > highest:
                highest, farthest = residual, j
            finite = finite and isfinite(residual)
            total += alpha[j] * spreads[j]
    return found[0], found[1], found[2], worst, worst if largest >= highest else farthest, finite and isfinite(total)


cdef inline double log_add_exp(double a, double b) noexcept nogil:
    """ln(exp(a) + exp(b))"""
    return max(a, b) + log1p(exp(-fabs(a - b)))


def approximate_step(double r, double low, double high, double margin, double lowest):
    """Step along C that minimises the bound behind Theorem 4.1, not below `lowest`, and the logarithm of that bound.

    With r = tr(W C) and the eigenvalues of C in [low, high], tr exp(log W - step C) is at most

        ((high - r) exp(-step low) + (r - low) exp(-step high)) / (high - low),

    least at step = ln((1 - r / low) / (1 - r / high)) / (high - low). The interval is widened to hold 0 and r with a
    `margin` inside it, which keeps both finite for constraints that no W meets, or singular ones only.
    """
    cdef double step, log_factor
    margin = max(margin, 1e-12 * max(-low, high, fabs(r)))  # bounds far beyond all eigenvalues
    low, high = min(low, -margin, r - margin), max(high, margin, r + margin)
    step = max((log1p(-r / low) - log1p(-r / high)) / (high - low), lowest)
    log_factor = log_add_exp(log(high - r) - step * low, log(r - low) - step * high) - log(high - low)
    return step, log_factor
