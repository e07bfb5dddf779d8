"""The matrix Burg gradient of JKD07: explicit LogDet steps whose rate keeps 0 < W < I."""

import numpy as np

from libc.math cimport INFINITY
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

from onlinebregman._kernels.geometries.geometry cimport Row, scratch
from onlinebregman._kernels.matrices.matrix cimport LogDetGeometry

cdef extern from "ops/vector.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    double ob_symv(const double* a, const double* z, double* v, Py_ssize_t n) noexcept nogil
    void ob_syr(double* a, const double* v, double c, Py_ssize_t n) noexcept nogil

# A step goes at most so far of the way to the bound, measured in N^-1 = W^-1 - I.
cdef double STRICTLY_INSIDE = 0.9
# Where N is above this, as v'Nv / v'v in the direction v = N^(1/2) z that a row moves, W is at its bound and stays.
cdef double AT_BOUND = 1e8
# Steps after which N is computed afresh.
cdef Py_ssize_t REFRESH = 1000


cdef class MatrixBurgGeometry(LogDetGeometry):
    """LogDet divergence on 0 < W < I, for update="gradient" (JKD07, Algorithm 2).

    N = (W^-1 - I)^-1 = (I - W)^-1 W is positive definite exactly where W < I, and (W^-1 + c X)^-1 moves it to
    (N^-1 + c X)^-1: the LogDet step again, whose domain is the algorithm's cap of the rate. W and N are the state.
    """

    cdef double[::1] room_

    def __init__(self, weights, state=None):
        weights = np.asarray(weights, dtype=np.float64)
        d = weights.shape[1]
        super().__init__(weights, state)
        self.room_ = np.empty(d * d)
        if len(weights) == d:
            self.refresh()

    def _laid_out(self, weights):
        return np.vstack([weights, np.zeros_like(weights)])

    cdef double* dual(self) noexcept nogil:
        return &self.weights[self.n_features * self.n_features]

    cdef void refresh(self) noexcept nogil:
        """N = (I - W)^-1 - I, which rank-one updates let drift."""
        cdef int d = <int> self.n_features, info
        cdef Py_ssize_t i, n = d * self.n_features
        for i in range(n):
            self.room_[i] = -self.weights[i]
        for i in range(d):
            self.room_[i * (d + 1)] += 1.0
        dpotrf(b"L", &d, &self.room_[0], &d, &info)  # LAPACK's lower triangle is our upper one
        if info == 0:
            dpotri(b"L", &d, &self.room_[0], &d, &info)
        if info != 0:  # W is at its bound, as far as rounding can tell
            return
        for i in range(n):
            self.dual()[i] = self.room_[i]
        for i in range(d):
            self.dual()[i * (d + 1)] -= 1.0

    cdef void load(self, Row* row) noexcept nogil:
        LogDetGeometry.load(self, row)
        row.rest = ob_symv(self.dual(), row.x, scratch(row, 1), self.n_features)
        row.reach = ob_dot(scratch(row, 1), scratch(row, 1), self.n_features)

    cdef bint stays(self, Row* row, double c) noexcept nogil:
        return c < 0 and row.reach >= AT_BOUND * row.rest

    cdef void domain(self, Row* row, double* lo, double* hi) noexcept nogil:
        lo[0] = -INFINITY if self.stays(row, -1.0) or row.rest <= 0 else -1.0 / row.rest
        hi[0] = INFINITY

    cdef void step(self, Row* row, double c) noexcept nogil:
        if self.stays(row, c):
            return
        LogDetGeometry.step(self, row, c)
        if row.rest > 0:
            ob_syr(self.dual(), scratch(row, 1), c / (1.0 + c * row.rest), self.n_features)
        self.state.steps += 1

    cdef void settle(self, Row* row) noexcept nogil:
        if self.state.steps >= max(REFRESH, self.n_features):
            self.refresh()
            self.state.steps = 0

    cdef double rate_cap(self, Row* row, double residual, double bias) noexcept nogil:
        """1 / (2 R^4) with R the largest norm(z) so far, and where W grows, the rate that keeps it below I."""
        cdef double cap
        self.state.radius = max(self.state.radius, ob_dot(row.x, row.x, self.n_features))
        if self.state.radius == 0:
            return INFINITY
        cap = 1.0 / (2.0 * self.state.radius * self.state.radius)
        if residual < 0 and row.rest > 0 and not self.stays(row, residual):
            cap = min(cap, STRICTLY_INSIDE / (-residual * row.rest))
        return cap
