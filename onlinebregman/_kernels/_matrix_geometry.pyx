"""Matrix geometries: they predict tr(W X) for instances X of rank one or two, and a step is an update of that rank.

A row z of d values is a pair, X = z z'. A row (p, q) of 2 d values is a triplet, X = p p' - q q': with the differences
p and q of an anchor to two other rows, tr(W X) is how much farther the first one is, in squared distance.

Of the symmetric state W, shape (d, d), only the upper triangle is kept up to date.
"""

import numpy as np

from libc.math cimport INFINITY, log1p, sqrt

from onlinebregman._kernels._geometry cimport Row, scratch

cdef extern from "vector_ops.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    double ob_symv(const double* a, const double* z, double* v, Py_ssize_t n) noexcept nogil
    void ob_syr(double* a, const double* v, double c, Py_ssize_t n) noexcept nogil


cdef class MatrixGeometry(Geometry):
    """What the geometries of symmetric matrices share: the upper triangle, and triplets taken apart.

    Parameters
    ----------
    weights : ndarray of shape (d, d)
        The symmetric matrix to start from; copied.
    """

    def __init__(self, weights):
        weights = np.asarray(weights)
        self.blocks = weights.shape[0]
        super().__init__(weights)

    def _arguments(self):
        return (np.asarray(self.weights).reshape(self.n_features, self.n_features).copy(),)

    @property
    def state_weights(self):
        """W; a new array."""
        return self._to_coef(np.asarray(self.weights))

    def _to_coef(self, weights):
        upper = np.triu(weights.reshape(self.n_features, self.n_features))
        return upper + np.triu(upper, 1).T

    cdef Py_ssize_t room(self, Py_ssize_t n) noexcept nogil:
        return n

    cdef void store(self, Row* row) noexcept nogil:
        pass

    cdef void split(self, Row* row, double* s, double* t) noexcept nogil:
        """s = p + q and t = p - q, with which X = (s t' + t s') / 2: no digits are lost where p and q are near each
        other."""
        cdef Py_ssize_t i, d = self.n_features
        for i in range(d):
            s[i] = row.x[i] + row.x[d + i]
            t[i] = row.x[i] - row.x[d + i]

    cdef double balance(self, Row* row, double ss, double st, double tt) noexcept nogil:
        """Set hi and lo, the eigenvalues of X against a matrix, from the products of s and t in it. Returns the scale k
        with which X = x x' - y y', x'x = hi, y'y = -lo and x'y = 0 for x = (k s + t / k) / 2, y = (k s - t / k) / 2."""
        cdef double length
        if ss <= 0 or tt <= 0 or ss * tt == 0:  # X = 0, or nothing but rounding errors
            row.hi = row.lo = 0.0
            return 1.0
        length = sqrt(ss * tt)
        row.hi, row.lo = 0.5 * max(length + st, 0.0), -0.5 * max(length - st, 0.0)
        return sqrt(sqrt(tt / ss))


cdef class LogDetGeometry(MatrixGeometry):
    """LogDet divergence: W(c) = (W^-1 + c X)^-1.

    On the eigenvalues mu of X against W, hi >= 0 >= lo, this is the Burg geometry: tr(W(c) X) = sum mu / (1 + c mu),
    S = sum mu^2 / (1 + c mu)^2. A pair has hi = z'Wz and lo = 0. A triplet is X = x x' - y y' with x'Wx = hi,
    y'Wy = -lo and x'Wy = 0, so that its step is that of two pairs,

        W(c) = W - c / (1 + c hi) v v' + c / (1 + c lo) u u',    v = W x, u = W y.
    """

    cdef double times(self, Row* row, const double* z, double* v) noexcept nogil:
        """v = W z, and z'W z."""
        return ob_symv(&self.weights[0], z, v, self.n_features)

    cdef void take(self, const double* v, double c) noexcept nogil:
        """W -= c v v'"""
        ob_syr(&self.weights[0], v, c, self.n_features)

    cdef void load(self, Row* row) noexcept nogil:
        row.w = row.buffer  # v, and behind it u
        row.lo = 0.0
        if row.n > self.n_features:
            self.load_triplet(row)
            return
        row.hi = self.times(row, row.x, row.w)
        if row.hi <= 0:  # z = 0, or nothing but rounding errors
            row.hi = 0.0

    cdef void load_triplet(self, Row* row) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        cdef double* s = scratch(row, 1)
        cdef double* t = s + d
        cdef double ss, tt
        self.split(row, s, t)
        ss, tt = self.times(row, s, row.w), self.times(row, t, row.w + d)
        turn(row.w, row.w + d, self.balance(row, ss, ob_dot(s, row.w + d, d), tt), d)

    cdef double dot(self, Row* row) noexcept nogil:
        return row.hi + row.lo

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        cdef double hi = row.hi / (1.0 + c * row.hi), lo = row.lo / (1.0 + c * row.lo)
        value[0], slope[0] = hi + lo, hi * hi + lo * lo

    cdef void domain(self, Row* row, double* lo, double* hi) noexcept nogil:
        lo[0] = -1.0 / row.hi if row.hi > 0 else -INFINITY
        hi[0] = -1.0 / row.lo if row.lo < 0 else INFINITY

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return 2.0 * sqrt(slope)

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        return -log1p(c * row.hi) - log1p(c * row.lo)

    cdef void step(self, Row* row, double c) noexcept nogil:
        cdef double shrink = 1.0 + c * row.hi, grow = 1.0 + c * row.lo
        if row.hi > 0:
            self.take(row.w, c / shrink)
        if row.lo < 0:
            self.take(row.w + self.n_features, -c / grow)
        row.hi, row.lo = row.hi / shrink, row.lo / grow
