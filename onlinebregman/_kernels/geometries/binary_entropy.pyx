"""The geometry of binary entropy, on weights between 0 and 1."""

from libc.math cimport INFINITY, exp, log1p

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace, scratch
from onlinebregman._kernels.ops.entropy cimport ob_binary_moved, ob_binary_ratios, ob_binary_sums, ob_sum_log
from onlinebregman._kernels.ops.exp cimport ob_exp
from onlinebregman._kernels.ops.penalty cimport ob_binary_ridge
from onlinebregman._kernels.ops.vector cimport OB_TINY, ob_range


cdef class BinaryEntropyGeometry(Geometry):
    """Binary entropy on 0 < w < 1: w(c) = sigmoid(logit w - c x) = w e^(-c x) / (1 - w + w e^(-c x)).

    S = diag w (1 - w).
    """

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef double lo = 0.0, hi = 0.0
        cdef double* v = work.w
        if c == 0:
            ob_range(work.x, work.n, &lo, &hi)
            (<double*> work.notes)[0] = max(hi, -lo)
        else:
            v = scratch(work, 1)
            ob_exp(v, work.x, c, 0.0, work.n)
            ob_binary_moved(v, work.w, v, work.n)
        ob_binary_sums(v, work.x, work.n, value, slope)
        if self.is_signed and c == 0:
            value[0] = self.dot(work)

    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil:
        return (<double*> work.notes)[0]  # |sum w (1 - w) (1 - 2 w) x^3| <= max |x| sum w (1 - w) x^2

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        cdef double* r = scratch(work, 1)
        cdef double powers = 0.0
        cdef Py_ssize_t i
        ob_exp(r, work.x, c, 0.0, work.n)
        ob_binary_ratios(r, work.w, r, work.n)
        for i in range(work.n):
            if r[i] == INFINITY:  # 1 - w + w e^z = e^z (w + (1 - w) e^-z)
                r[i] = work.w[i] + (1.0 - work.w[i]) * exp(c * work.x[i])
                powers -= c * work.x[i]
        return powers + ob_sum_log(r, work.n)

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        ob_exp(scratch(work, 1), work.x, c, 0.0, work.n)
        ob_binary_moved(work.w, work.w, scratch(work, 1), work.n)

    cdef bint composes(self) noexcept nogil:
        return self.l2 == 0

    cdef double proximal(self, Py_ssize_t j, double w, double l1, double l2) noexcept nogil:
        """logit v + l2 v = logit w - l1"""
        cdef double up = w * exp(-l1)
        return max(up / (1.0 - w + up) if l2 == 0 else ob_binary_ridge(w, l1, l2), OB_TINY)

    cdef double distance(self, Py_ssize_t j, double v, double w) noexcept nogil:
        cdef double r = (v - w) / w, s = (w - v) / (1.0 - w)
        return v * log1p(r) + (1.0 - v) * log1p(s)
