"""The geometry of Burg's entropy, on positive weights."""

from libc.math cimport INFINITY, fabs, hypot, log1p, sqrt

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace, scratch
from onlinebregman._kernels.ops.entropy cimport (
    ob_burg_log, ob_burg_ratios, ob_burg_ratios_near_end, ob_burg_step, ob_burg_sums, ob_dot_square, ob_product_range,
    ob_quotients, ob_sum_log
)
from onlinebregman._kernels.ops.vector cimport ob_clip


cdef struct Products:         # an interval that holds 0 and all products w_i x_i
    double least, most


cdef class BurgGeometry(Geometry):
    """Burg entropy (Itakura-Saito) on w > 0: w(c) = w / (1 + c x w), S = diag w^2, for c with all 1 + c x w > 0."""

    def __cinit__(self):
        self.has_poles = True
        self.declare("confined_to", &self.confined_to)

    def __init__(self, weights, is_signed=False, upper=INFINITY, state=None):
        super().__init__(weights, is_signed, upper)
        self.confined_to = upper
        self._resume(state)

    cdef bint needs_projection(self) noexcept nogil:
        return self.confined_to != self.upper

    cdef void project_all(self) noexcept nogil:
        if self.averaging:
            self.accumulate_all()
        ob_clip(&self.weights[0], self.upper, self.weights.shape[0])
        self.confined_to = self.upper

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef double* v
        if work.origin == 0:
            ob_burg_sums(work.w, work.x, c, work.n, value, slope)
            if self.is_signed and c == 0:
                value[0] = self.dot(work)
            return
        v = scratch(work, 1)
        self.ratios(work, c, v)
        ob_quotients(v, work.w, v, work.n)
        ob_dot_square(v, work.x, work.n, value, slope)

    cdef void domain(self, Workspace* work, double* lo, double* hi) noexcept nogil:
        cdef Products* products = <Products*> work.notes
        products.least = products.most = 0.0
        ob_product_range(work.w, work.x, work.n, &products.least, &products.most)
        lo[0] = -1.0 / products.most if products.most > 0 else -INFINITY
        hi[0] = -1.0 / products.least if products.least < 0 else INFINITY
        if work.origin != 0:
            lo[0] -= work.origin  # exactly 0 at the end that c is measured from
            hi[0] -= work.origin

    cdef void ratios(self, Workspace* work, double c, double* r) noexcept nogil:
        """1 + c x w, which the weights are divided by."""
        cdef Products* products = <Products*> work.notes
        if work.origin == 0:
            ob_burg_ratios(r, work.w, work.x, c, work.n)
        else:
            ob_burg_ratios_near_end(r, work.w, work.x, products.most if work.origin < 0 else products.least, c, work.n)

    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil:
        return 2.0 * sqrt(slope)  # sum (w x)^3 <= (sum (w x)^2)^(3/2)

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        """Outside its domain, where a gradient step may lead: the value that gives D(w, w(c)) for all u <= upper."""
        cdef Products* products = <Products*> work.notes
        cdef double lo, hi, beyond = 0.0
        cdef double* r = scratch(work, 1)
        cdef Py_ssize_t i
        self.domain(work, &lo, &hi)
        if work.origin == 0 and fabs(c) * max(products.most, -products.least) <= 0.5:
            return -ob_burg_log(work.w, work.x, c, work.n)
        self.ratios(work, c, r)
        if not lo < c < hi:
            for i in range(work.n):
                if r[i] <= 0:  # the weight moves to its bound, by less than c x: the rest times u <= upper is added
                    r[i] = work.w[i] / self.upper
                    beyond += 1.0 - 1.0 / r[i] - c * work.x[i] * self.upper
        return beyond - ob_sum_log(r, work.n)

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        if work.origin == 0:
            ob_burg_step(work.w, work.x, c, work.n)
        else:
            self.ratios(work, c, scratch(work, 1))
            ob_quotients(work.w, work.w, scratch(work, 1), work.n)

    cdef bint composes(self) noexcept nogil:
        return self.l2 == 0

    cdef double proximal(self, Py_ssize_t j, double w, double l1, double l2) noexcept nogil:
        """1/v = 1/w + l1 + l2 v, a quadratic equation."""
        w = w / (1.0 + l1 * w)
        return w if l2 == 0 else 2.0 * w / (1.0 + hypot(1.0, 2.0 * sqrt(l2) * w))

    cdef double distance(self, Py_ssize_t j, double v, double w) noexcept nogil:
        cdef double r = (v - w) / w
        return r - log1p(r)
