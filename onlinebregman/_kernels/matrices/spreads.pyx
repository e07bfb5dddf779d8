"""Rates over the squares of spreads: what goes before and after the steps on instances X, whose losses are (a - y)^2 / 2.

The spread of an instance is the difference between the ends of an interval that holds its eigenvalues; that of a stream is
the largest so far.
"""

import numpy as np

from libc.float cimport DBL_MIN
from libc.math cimport fabs, isfinite


def rates(const double[:, :] extremes, const double[::1] y, const double[::1] weights, const Py_ssize_t[::1] order,
          double spread, double loss, bint scaled):
    """The instances to learn, in their order, and the multiples of the rate for them, over spread^2 if `scaled`.

    Returns
    -------
    index : ndarray of intp
        Those of positive weight, but for multiples of the identity, for which tr(W X) is the same for every W.
    rates : ndarray of shape (len(index),)
    spread : float
        Of the stream, after them; of the one to blame where one is.
    largest_weight : float
    n_collapsed : int
        Multiples of the identity.
    too_large : int
        The first one whose square, or the loss to which those so far may add up, overflows; -1 for none.
    """
    cdef Py_ssize_t i, k, n = 0, n_collapsed = 0, n_rows = y.shape[0] if order is None else order.shape[0]
    cdef double low, high, own, size, most, weight, largest_weight = 0.0
    taken, multiples = np.empty(n_rows, dtype=np.intp), np.empty(n_rows)
    cdef Py_ssize_t[::1] index = taken
    cdef double[::1] rate = multiples
    for k in range(n_rows):
        i = k if order is None else order[k]
        weight = 1.0 if weights is None else weights[i]
        if weight <= 0:
            continue
        low, high = extremes[i, 0], extremes[i, 1]
        own, size = high - low, max(-low, high)
        if not (own * own != 0 and own >= 1e-12 * size):
            n_collapsed += 1
            continue
        spread = max(spread, own)
        most = size + fabs(y[i])  # of |a - y|
        loss += weight * most * most
        if not isfinite(spread * spread + loss):
            return taken[:n], multiples[:n], spread, largest_weight, n_collapsed, i
        largest_weight = max(largest_weight, weight)
        # a row of rate 0 would be left out
        index[n], rate[n] = i, max(weight / (spread * spread), DBL_MIN) if scaled else weight
        n += 1
    return taken[:n], multiples[:n], spread, largest_weight, n_collapsed, -1


def added_losses(double loss, const double[::1] scores, const double[::1] y, const double[::1] weights,
                 const Py_ssize_t[::1] index):
    """The loss, with those of instances added one by one: however the stream is cut."""
    cdef Py_ssize_t k
    cdef double gap, weight
    for k in range(index.shape[0]):
        gap = scores[k] - y[index[k]]
        weight = 1.0 if weights is None else weights[index[k]]
        loss += weight * (gap * gap) / 2.0
    return loss
