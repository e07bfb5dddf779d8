"""The matrix Burg gradient of JKD07: explicit LogDet steps whose rate keeps 0 < W < I."""

import numpy as np

from libc.math cimport INFINITY
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

from onlinebregman._kernels.geometries.geometry cimport Workspace, scratch
from onlinebregman._kernels.matrices.matrix cimport Instance, LogDetGeometry

cdef extern from "ops/vector.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    double ob_symv(const double* a, const double* z, double* v, Py_ssize_t n) noexcept nogil
    void ob_syr(double* a, const double* v, double c, Py_ssize_t n) noexcept nogil

# A step goes at most this fraction of the way to the bound, measured in N^-1 = W^-1 - I.
cdef double STRICTLY_INSIDE = 0.9
# If v'Nv / v'v exceeds this for the direction v = N^(1/2) z that a row moves, W is at its bound and the row is skipped.
cdef double AT_BOUND = 1e8
# Number of steps after which N is recomputed.
cdef Py_ssize_t REFRESH = 1000


cdef struct DualInstance:     # X of the loaded row
    Instance primal
    double dual               # z'Nz
    double dual_square        # |N z|^2


cdef class MatrixBurgGeometry(LogDetGeometry):
    """LogDet divergence on 0 < W < I, for update="gradient" (JKD07, Algorithm 2).

    N = (W^-1 - I)^-1 = (I - W)^-1 W is positive definite exactly where W < I, and (W^-1 + c X)^-1 moves it to
    (N^-1 + c X)^-1: the LogDet step again, whose domain is the algorithm's cap of the rate. W and N are the state.
    """

    cdef double[::1] memory

    def __init__(self, weights, state=None):
        weights = np.asarray(weights, dtype=np.float64)
        super().__init__(weights, state)
        d = self.n_features
        self.memory = np.empty(d * d)
        if len(weights) == d:
            self.refresh()

    def _more_rows(self, d):
        return d + 2

    def _laid_out(self, weights):
        return np.vstack([weights, np.zeros_like(weights)])

    @property
    def left_out(self):
        """Number of rows that were skipped because W is at its bound in their direction."""
        return int(self.state.left_out)

    cdef double* dual(self) noexcept nogil:
        return &self.weights[self.n_features * self.n_features]

    cdef void refresh(self) noexcept nogil:
        """Recompute N = (I - W)^-1 - I, in which rank-one updates accumulate rounding errors."""
        cdef int d = <int> self.n_features, info
        cdef Py_ssize_t i, n = d * self.n_features
        for i in range(n):
            self.memory[i] = -self.weights[i]
        for i in range(d):
            self.memory[i * (d + 1)] += 1.0
        dpotrf(b"L", &d, &self.memory[0], &d, &info)  # LAPACK's lower triangle is our upper one
        if info == 0:
            dpotri(b"L", &d, &self.memory[0], &d, &info)
        if info != 0:  # W is at its bound up to rounding
            return
        for i in range(n):
            self.dual()[i] = self.memory[i]
        for i in range(d):
            self.dual()[i * (d + 1)] -= 1.0

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef DualInstance* instance = <DualInstance*> work.notes
        LogDetGeometry.load(self, work)
        instance.dual = ob_symv(self.dual(), work.x, scratch(work, 1), self.n_features)
        instance.dual_square = ob_dot(scratch(work, 1), scratch(work, 1), self.n_features)

    cdef bint stays(self, Workspace* work, double c) noexcept nogil:
        cdef DualInstance* instance = <DualInstance*> work.notes
        return c < 0 and instance.dual_square >= AT_BOUND * instance.dual

    cdef void domain(self, Workspace* work, double* lo, double* hi) noexcept nogil:
        cdef DualInstance* instance = <DualInstance*> work.notes
        lo[0] = -INFINITY if self.stays(work, -1.0) or instance.dual <= 0 else -1.0 / instance.dual
        hi[0] = INFINITY

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        cdef DualInstance* instance = <DualInstance*> work.notes
        if self.stays(work, c):
            self.state.left_out += 1.0
            return
        LogDetGeometry.step(self, work, c)
        if instance.dual > 0:
            ob_syr(self.dual(), scratch(work, 1), c / (1.0 + c * instance.dual), self.n_features)
        self.state.steps += 1

    cdef void renormalise(self, Workspace* work) noexcept nogil:
        if self.state.steps >= max(REFRESH, self.n_features):
            self.refresh()
            self.state.steps = 0

    cdef double rate_cap(self, Workspace* work, double residual, double bias) noexcept nogil:
        """1 / (2 R^4) with R the largest norm(z) so far, and where W grows, the rate that keeps it below I."""
        cdef DualInstance* instance = <DualInstance*> work.notes
        cdef double cap
        self.state.radius = max(self.state.radius, ob_dot(work.x, work.x, self.n_features))
        if self.state.radius == 0:
            return INFINITY
        cap = 1.0 / (2.0 * self.state.radius * self.state.radius)
        if residual < 0 and instance.dual > 0 and not self.stays(work, residual):
            cap = min(cap, STRICTLY_INSIDE / (-residual * instance.dual))
        return cap
