"""How far linear constraints on a density matrix are from what they are at the optimum: a pass over all of them."""

import numpy as np

from libc.math cimport fabs, isnan


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


def squared_lengths(const double[:, :] rows):
    """Of all rows, shape (n_rows,)."""
    cdef Py_ssize_t i, n = rows.shape[0], width = rows.shape[1]
    cdef const double[:, ::1] a = np.ascontiguousarray(rows)
    lengths = np.zeros(n)
    cdef double[::1] out = lengths
    if n > 0 and width > 0:
        with nogil:
            for i in range(n):
                out[i] = squared_length(&a[i, 0], width)
    return lengths


cdef inline double larger(double a, double b) noexcept nogil:
    """As numpy.maximum: NaN if one of them is."""
    return a if a > b or isnan(a) else b


def conditions(const double[::1] traces, const double[::1] signs, const double[::1] bounds,
               const double[::1] spreads, const unsigned char[::1] equal, const double[::1] alpha, double d):
    """What constraints tr(W C_j) <= 0, or = 0, with C_j = sign_j (X_j - bound_j I), have come to.

    Parameters
    ----------
    traces : ndarray of shape (n,)
        tr(W X_j), for W of trace one.
    signs, bounds, spreads, equal, alpha : ndarray of shape (n,)
        See `kernel_learning._constraints.Constraints`, and the multipliers.
    d : float
        Size of W.

    Returns
    -------
    values, violations, residuals : ndarray of shape (n,)
        tr(W C_j), how far it is violated, and the distance from the optimality conditions; relative to spread_j / d.
    """
    cdef Py_ssize_t j, n = traces.shape[0]
    cdef double value, violation, slack
    if not n == signs.shape[0] == bounds.shape[0] == spreads.shape[0] == equal.shape[0] == alpha.shape[0]:
        raise ValueError(f"there must be a sign, bound, spread, kind and multiplier for each of {n} constraints")
    found = np.empty((3, n))
    cdef double[:, ::1] out = found
    with nogil:
        for j in range(n):
            value = signs[j] * (traces[j] - bounds[j]) * d / spreads[j]
            violation = fabs(value) if equal[j] else value
            slack = -larger(-(alpha[j] * spreads[j]), violation)
            out[0, j], out[1, j], out[2, j] = value, violation, larger(violation, slack)
    return found[0], found[1], found[2]
