"""Matrix geometries on rank-one instances z z': they predict z'Wz, and a step is a rank-one update.

Of the symmetric state W, shape (d, d), only the upper triangle is kept up to date.
"""

import numpy as np

from libc.math cimport INFINITY, sqrt

from onlinebregman._kernels._geometry cimport Geometry, Row

cdef extern from "vector_ops.h":
    double ob_symv(const double* a, const double* z, double* v, Py_ssize_t n) noexcept nogil
    void ob_syr(double* a, const double* v, double c, Py_ssize_t n) noexcept nogil


cdef class LogDetGeometry(Geometry):
    """LogDet divergence: (W^-1 + c z z')^-1 = W - c / (1 + c a) v v' with v = W z, a = z'W z.

    On the row z this is the Burg geometry of the single number a: w(c) = a / (1 + c a), S = a^2.
    """

    def __init__(self, weights):
        weights = np.asarray(weights)
        self.blocks = weights.shape[0]
        super().__init__(weights)

    def _arguments(self):
        return (np.asarray(self.weights).reshape(self.n_features, self.n_features).copy(),)

    def _to_coef(self, weights):
        upper = np.triu(weights.reshape(self.n_features, self.n_features))
        return upper + np.triu(upper, 1).T

    cdef Py_ssize_t room(self, Py_ssize_t n) noexcept nogil:
        return n

    cdef void load(self, Row* row) noexcept nogil:
        row.w = row.buffer  # v
        row.a = ob_symv(&self.weights[0], row.x, row.w, self.n_features)

    cdef void store(self, Row* row) noexcept nogil:
        pass

    cdef double dot(self, Row* row) noexcept nogil:
        return row.a

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        value[0] = row.a / (1.0 + c * row.a)
        slope[0] = value[0] * value[0]

    cdef void domain(self, Row* row, double* lo, double* hi) noexcept nogil:
        lo[0] = -1.0 / row.a if row.a > 0 else -INFINITY
        hi[0] = INFINITY

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return 2.0 * sqrt(slope)

    cdef void step(self, Row* row, double c) noexcept nogil:
        ob_syr(&self.weights[0], row.w, c / (1.0 + c * row.a), self.n_features)
