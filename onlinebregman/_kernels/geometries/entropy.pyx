"""Geometries of entropies: relative, on positive weights and on the simplex, binary, and Burg's.

Weights of relative entropy are stored as at least the smallest normal number. A step that takes one further down adds
its `depth`, so that ln v = ln(stored) + depth, and on the simplex a weight of any depth may come back. Depths exist
only once a weight gets near; until then a bound on the least weight shows that there are none. No weight is below
exp(-1e6).
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, exp, fabs, frexp, hypot, isfinite, isnan, ldexp, log, log1p, sqrt
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport (
    COMPLETE, HAS_POLES, MISSED, SIGNED, Geometry, Workspace, find_poles, scratch
)
from onlinebregman._kernels.ops.entropy cimport (
    OB_SHORT_REACH, ob_binary_moved, ob_binary_ratios, ob_binary_sums, ob_burg_log, ob_burg_ratios,
    ob_burg_ratios_near_end, ob_burg_step, ob_burg_sums, ob_dot_square, ob_entropy_moments, ob_entropy_move,
    ob_entropy_step, ob_entropy_sums, ob_log_sum_outside, ob_product_range, ob_quotients, ob_sum_log, ob_sum_outside
)
from onlinebregman._kernels.ops.exp cimport ob_exp, ob_exp_from
from onlinebregman._kernels.ops.state import vector_of
from onlinebregman._kernels.ops.penalty cimport ob_binary_ridge, ob_entropy_ridge
from onlinebregman._kernels.ops.vector cimport (
    OB_TINY, ob_clip, ob_dot, ob_multiply, ob_range, ob_scale_positive, ob_sum
)
from onlinebregman._kernels.rows.rows cimport Row

# A sparse step by a factor of more than exp(600) rescales all weights first, so that none overflows.
cdef double LARGE_EXPONENT = 600.0
# For |z| up to this the moments up to the fifth give a sum of exp(z) x: z^5 / 5! is below rounding.
cdef double SERIES_RADIUS = 1e-3
# ln OB_TINY. Depths exist from where a step may end this near, as far as known, or has got this near.
cdef double FLOOR = log(OB_TINY)
cdef double MAY_SINK = FLOOR + 20.0
cdef double NEAR_FLOOR = FLOOR + 100.0
cdef double LITTLE = exp(MAY_SINK)
# No depth is below this, whose last digit is 1e-10: what came back from deeper would be known less well.
cdef double DEEPEST = -1e6


cdef struct Path:             # w(c) of the loaded row where it was computed last, the centre
    double* v                 # exp(-shift) w(centre)
    double centre, shift
    double[6] moment          # sums of v x^k
    double radius             # distance from the centre up to which the series holds; -1 if only moment[0] is known
    double largest            # largest |x|, set by dot(work) and evaluate(work, 0)
    double rest               # unnormalised weight outside the row (simplex); -1 if not known yet
    double log_rest           # its logarithm, the depths included; NaN if not known yet


cdef double entropy_proximal(double w, double l1, double l2) noexcept nogil:
    """ln v + l2 v = ln w - l1"""
    w = max(w * exp(-l1), OB_TINY)
    return w if l2 == 0 else max(ob_entropy_ridge(w, l2), OB_TINY)


cdef double entropy_distance(double v, double w) noexcept nogil:
    cdef double r = (v - w) / w
    return v * log1p(r) - (v - w)


cdef class EntropyGeometry(Geometry):
    """Relative entropy on w > 0 (EGU): w(c) = w exp(-c x), S = diag w.

    The workspace keeps the w(c) that was computed last, the centre. Sums over w(c) near it follow from a series with
    six moments, and a step continues from it. Small exponents take a short polynomial, others `jump`. Signed weights
    move along x and -x without a row of twice the length.
    """

    cdef double least         # a lower bound on ln v of all weights
    cdef double deep          # whether some may have a depth
    cdef double[::1] depth

    def __cinit__(self):
        self.lazy.proximal, self.lazy.distance = entropy_proximal, entropy_distance
        self.declare("least", &self.least)
        self.declare("deep", &self.deep)

    def __init__(self, weights, is_signed=False, upper=INFINITY, state=None):
        super().__init__(weights, is_signed, upper)
        self.least = self.least_log()
        self._resume(state)

    def get_state(self):
        return super().get_state() | ({"depth": np.array(self.depth)} if self.deep else {})

    def set_state(self, state):
        super().set_state(state)
        if self.deep:
            self.depth = vector_of(state.get("depth", ()), self.weights.shape[0])

    def penalise(self, l1, l2, linearised=False):
        """The penalty's proximal steps know no depth: weights stay at the least stored one."""
        super().penalise(l1, l2, linearised)
        if self.lazy.active:
            self.deep, self.least = 0.0, -INFINITY

    cdef void load(self, Workspace* work) noexcept nogil:
        self.fetch_weights(work)
        self.reset_path(work)

    cdef void reset_path(self, Workspace* work) noexcept nogil:
        """Set the centre to c = 0, the weights themselves."""
        cdef Path* path = <Path*> work.notes
        path.v, path.centre, path.shift, path.radius = work.w, 0.0, 0.0, -1.0

    cdef double dot(self, Workspace* work) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        cdef double square
        return ob_entropy_sums(work.w, work.x, work.n, self.traits & SIGNED, &square, &path.largest)

    cdef void sums(self, Workspace* work, double c, double* sums) noexcept nogil:
        """Sums of v, v x and v x^2 for v = exp(-shift) w(c): by the series about the centre, or at a new centre."""
        cdef Path* path = <Path*> work.notes
        cdef double t = path.centre - c, second, third, fourth, fifth
        cdef double* m = path.moment
        if fabs(t) > path.radius:
            if path.radius == 0 or fabs(t) * path.largest > SERIES_RADIUS:
                self.move(work, c, scratch(work, 1))
                t = 0.0
            ob_entropy_moments(path.v, work.x, work.n, self.traits & SIGNED, m)
            path.radius = SERIES_RADIUS / path.largest if isfinite(m[4] + m[5]) else 0.0
        if t == 0:
            sums[0], sums[1], sums[2] = m[0], m[1], m[2]
        elif isnan(t):
            sums[0] = sums[1] = sums[2] = t
        elif path.radius == 0:
            self.sums(work, c, sums)  # again, with c as the centre
        else:
            second, third, fourth, fifth = m[2] * (1.0 / 2), m[3] * (1.0 / 6), m[4] * (1.0 / 24), m[5] * (1.0 / 120)
            sums[0] = m[0] + t * (m[1] + t * (second + t * (third + t * (fourth + t * fifth))))
            sums[1] = m[1] + t * (2 * second + t * (3 * third + t * (4 * fourth + t * 5 * fifth)))
            sums[2] = 2 * second + t * (6 * third + t * (12 * fourth + t * 20 * fifth))

    cdef double mass(self, Workspace* work, double c) noexcept nogil:
        """Sum of exp(-shift) w(c)."""
        cdef Path* path = <Path*> work.notes
        cdef double[3] sums
        if fabs(c - path.centre) <= path.radius:
            self.sums(work, c, sums)
            return sums[0]
        self.move(work, c, scratch(work, 1))  # the step will need it
        return path.moment[0]

    cdef void move(self, Workspace* work, double c, double* v) noexcept nogil:
        """Compute w(c) into v, and make it the centre."""
        cdef Path* path = <Path*> work.notes
        cdef double exponent
        if fabs(c) < fabs(c - path.centre):
            self.reset_path(work)
        exponent = fabs(c - path.centre) * path.largest
        if exponent <= OB_SHORT_REACH:
            path.moment[0] = ob_entropy_move(v, path.v, work.x, c - path.centre, exponent, work.n, self.traits & SIGNED)
            if self.deep:
                path.moment[0] += self.raise_deep(work, c, v)
        elif self.deep:
            self.jump_by_logs(work, c, v)
        else:
            self.jump(work, c, v)
        path.v, path.centre, path.radius = v, c, -1.0

    cdef void jump(self, Workspace* work, double c, double* v) noexcept nogil:
        """`move` for an exponent of any size.

        The factor is applied as its square root, twice: it may overflow where its product with a tiny weight does not.
        """
        cdef Path* path = <Path*> work.notes
        cdef Py_ssize_t n = self.per_feature * work.n
        cdef double* e = scratch(work, 2)
        ob_exp(e, self.both(work), 0.5 * c, 0.0, n)
        ob_multiply(v, work.w, e, n)
        ob_entropy_step(v, v, e, n)
        path.moment[0] = ob_sum(v, n)

    cdef const double* both(self, Workspace* work) noexcept nogil:
        """The values that go with the weights: x, or (x, -x)."""
        cdef double* values = scratch(work, 3)
        cdef Py_ssize_t i
        if not self.traits & SIGNED:
            return work.x
        for i in range(work.n):
            values[i] = work.x[i]
            values[work.n + i] = -work.x[i]
        return values

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        cdef double[3] sums
        if c == 0:
            value[0] = ob_entropy_sums(work.w, work.x, work.n, self.traits & SIGNED, slope, &path.largest)
            return
        self.sums(work, c, sums)
        value[0], slope[0] = sums[1], sums[2]

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        return self.mass(work, c) - ob_sum(work.w, self.per_feature * work.n)

    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        return path.largest  # sum w x^3 <= max |x| sum w x^2

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        cdef size_t size = self.per_feature * work.n * sizeof(double)
        cdef double* start = NULL
        cdef double decrease
        if c == 0:
            return
        decrease = 2.0 * fabs(c) * path.largest
        self.least -= decrease
        if not self.least > MAY_SINK and self.may_sink(decrease):
            if self.backup == MISSED:
                return
            start = scratch(work, 4)
            memcpy(start, work.w, size)
        if c != path.centre:
            self.move(work, c, work.w)
        else:
            memcpy(work.w, path.v, size)
        if start != NULL:
            self.sink(work, c, start)

    # --- weights below the least that is stored -----------------------------------------------------------------

    cdef int moved_vectors(self, double** each) noexcept nogil:
        cdef int n = Geometry.moved_vectors(self, each)
        if self.deep:
            each[n] = &self.depth[0]
            n += 1
        return n

    cdef double least_log(self) noexcept nogil:
        cdef double lo = self.weights[0], hi = lo
        ob_range(&self.weights[0], self.weights.shape[0], &lo, &hi)
        return log(lo)

    @cython.final
    cdef bint may_sink(self, double decrease) noexcept nogil:
        """Whether there are depths, at the latest from this step on; its exponents are at most half of `decrease`."""
        cdef double least
        if self.deep or self.lazy.active:
            return self.deep != 0
        least = self.least_log()
        self.least = least - decrease
        if least > NEAR_FLOOR and self.least > MAY_SINK:
            return False
        if self.backup == COMPLETE:
            with gil:
                self.depth = np.zeros(self.weights.shape[0])
            self.least, self.deep = -INFINITY, 1.0
        else:
            self.backup = MISSED
        return True

    cdef inline Py_ssize_t place(self, Workspace* work, Py_ssize_t k) noexcept nogil:
        """Where the k-th weight of a row is stored."""
        if work.row.index == NULL:
            return k
        return k // work.n * self.n_features + work.row.index[k % work.n]

    cdef inline double log_moved(self, Workspace* work, Py_ssize_t k, double stored, double c) noexcept nogil:
        """ln w(c) of the k-th weight of a row, w being stored as this number."""
        cdef double x = work.x[k] if k < work.n else -work.x[k - work.n]
        return log(stored) + self.depth[self.place(work, k)] - c * x

    cdef inline double stored(self, Py_ssize_t j, double log_weight) noexcept nogil:
        """The number that is stored for a weight; sets its depth."""
        self.depth[j] = 0.0 if log_weight > FLOOR else max(log_weight - FLOOR, DEEPEST)
        return exp(log_weight) if log_weight > FLOOR else OB_TINY

    cdef void sink(self, Workspace* work, double c, const double* start) noexcept nogil:
        """After the step c from these stored weights: set the depths."""
        cdef Path* path = <Path*> work.notes
        cdef Py_ssize_t k, j
        for k in range(self.per_feature * work.n):
            j = self.place(work, k)
            if self.depth[j] < 0 or work.w[k] <= LITTLE:  # moved on from the floor
                work.w[k] = self.stored(j, self.log_moved(work, k, start[k], c) - path.shift)

    cdef double raise_deep(self, Workspace* work, double c, double* v) noexcept nogil:
        """Correct the v = exp(-shift) w(c) of weights that have a depth; returns by how much their sum changes."""
        cdef Path* path = <Path*> work.notes
        cdef Py_ssize_t k
        cdef double change = 0.0, moved
        for k in range(self.per_feature * work.n):
            if self.depth[self.place(work, k)] < 0:
                moved = max(exp(self.log_moved(work, k, OB_TINY, c) - path.shift), OB_TINY)
                change += moved - v[k]
                v[k] = moved
        return change

    cdef void jump_by_logs(self, Workspace* work, double c, double* v) noexcept nogil:
        """`jump` where there are depths."""
        cdef Path* path = <Path*> work.notes
        cdef Py_ssize_t k, n = self.per_feature * work.n
        cdef double* logs = scratch(work, 2)
        cdef double most = -INFINITY
        for k in range(n):
            logs[k] = self.log_moved(work, k, work.w[k], c)
            most = max(most, logs[k])
        path.shift = 0.0
        path.shift = self.best_shift(work, most, v == work.w)
        ob_exp(v, logs, -1.0, path.shift, n)
        for k in range(n):
            v[k] = max(v[k], OB_TINY)
        path.moment[0] = ob_sum(v, n)

    cdef double best_shift(self, Workspace* work, double most, bint last) noexcept nogil:
        """The shift of a `jump`, given the largest ln w(c) of the row; `last`: whether it is the step itself."""
        return 0.0


cdef class SimplexGeometry(EntropyGeometry):
    """Relative entropy on the simplex of total U (EG): w(c) = U v exp(-c x) / sum, S = diag w - w w'/U.

    Signed, this is EG+-.

    The stored v is not normalised, w = U v / sum v, so that a sparse row does not have to touch the other weights.
    """

    cdef readonly double size  # U, the sum of the weights
    cdef double total         # that of the stored weights
    cdef double summed        # the largest total since it was last recomputed,
    cdef double steps         # and the number of steps on sparse rows

    def __cinit__(self):
        self.declare("total", &self.total)
        self.declare("summed", &self.summed)
        self.declare("steps", &self.steps)

    def __init__(self, weights, is_signed=False, upper=INFINITY, size=1.0, state=None):
        super().__init__(weights, is_signed, upper)
        self.size = size
        self.total = self.summed = ob_sum(&self.weights[0], self.weights.shape[0])
        self._resume(state)

    def _arguments(self):
        return super()._arguments() + (self.size,)

    cdef double scale(self) noexcept nogil:
        return self.size / self.total

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        EntropyGeometry.load(self, work)
        path.rest = 0.0 if work.row.index == NULL else -1.0
        path.log_rest = NAN

    cdef double outside(self, Workspace* work) noexcept nogil:
        """Unnormalised weight of the columns outside a sparse row, times exp(-shift)."""
        cdef Path* path = <Path*> work.notes
        if path.rest < 0:
            path.rest = self.total - ob_sum(work.w, self.per_feature * work.n)
            if path.rest < 1e-6 * self.total:  # the difference has lost its digits
                path.rest = ob_sum_outside(
                    &self.weights[0], self.n_features, self.per_feature, work.row.index, work.row.n
                )
        if self.deep and path.rest > 0:
            if isnan(path.log_rest) and path.rest > 1e-200 * self.total:
                path.log_rest = log(path.rest)  # the depths are negligible
            elif isnan(path.log_rest):
                path.log_rest = ob_log_sum_outside(
                    &self.weights[0], &self.depth[0], self.n_features, self.per_feature, work.row.index, work.row.n
                )
            return exp(path.log_rest - path.shift)
        return path.rest if path.shift == 0 or path.rest == 0 else path.rest * exp(-path.shift)

    cdef double best_shift(self, Workspace* work, double most, bint last) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        cdef double shift = -log(self.total)
        if self.outside(work) > 0 or path.rest > 0:
            most = max(most, path.log_rest)
        shift += most
        return 0.0 if last and work.row.index != NULL and fabs(shift) < 100.0 else shift

    cdef void rescale(self, double shift, double factor, const Row* row) noexcept nogil:
        """Multiply all stored weights by factor = exp(-shift), but for the columns of a sparse row, if one is given."""
        cdef Py_ssize_t b, j, k
        self.least -= shift
        if not self.deep:
            ob_scale_positive(&self.weights[0], factor, self.weights.shape[0])
            return
        for b in range(self.per_feature):
            k = 0
            for j in range(b * self.n_features, (b + 1) * self.n_features):
                if row != NULL and k < row.n and row.index[k] == j - b * self.n_features:
                    k += 1
                elif self.depth[j] == 0 and isfinite(factor) and self.weights[j] * factor > OB_TINY:
                    self.weights[j] *= factor
                else:
                    self.weights[j] = self.stored(j, log(self.weights[j]) + self.depth[j] - shift)

    cdef void jump(self, Workspace* work, double c, double* v) noexcept nogil:
        """`move` for an exponent of any size: v = w exp(-c x - shift).

        The shift is first the largest exponent, -c times an origin, so that no factor overflows. It is lowered where
        the weights with large factors are so tiny that the sum would underflow. Exponents are computed as -c times the
        distance from the origin, as adding a shift to a large c x would lose digits. A step on a sparse row uses no
        shift if possible, as a shift rescales all other weights.
        """
        cdef Path* path = <Path*> work.notes
        cdef double total = 0.0, lo, hi, origin
        path.shift = 0.0
        lo = hi = work.x[0] if self.outside(work) == 0 else 0.0  # the weights left out have exponent 0
        ob_range(self.both(work), self.per_feature * work.n, &lo, &hi)
        origin = lo if c > 0 else hi
        if work.row.index != NULL and v == work.w and fabs(c * origin) < LARGE_EXPONENT:
            total = self.factors(work, c, 0.0, 0.0)
        if total < 1e-50 * self.total:
            total = self.factors(work, c, origin, 0.0)
        if total < 1e-50 * self.total:
            total = self.factors(work, c, origin, max(log(total / self.total), -LARGE_EXPONENT))
        path.moment[0] = total - self.outside(work)
        ob_entropy_step(v, work.w, scratch(work, 2), self.per_feature * work.n)

    cdef double factors(self, Workspace* work, double c, double origin, double lowered) noexcept nogil:
        """Set the shift, store exp(-c x - shift) in scratch 2, and return the sum of all v exp(-c x - shift)."""
        cdef Path* path = <Path*> work.notes
        cdef Py_ssize_t n = self.per_feature * work.n
        path.shift = lowered - c * origin if origin != 0 else lowered
        ob_exp_from(scratch(work, 2), self.both(work), c, origin, lowered, n)
        return ob_dot(work.w, scratch(work, 2), n) + self.outside(work)

    cdef double dot(self, Workspace* work) noexcept nogil:
        return self.scale() * EntropyGeometry.dot(self, work)

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        cdef double[3] sums
        cdef double total = self.total, dot
        if c == 0:
            sums[1] = ob_entropy_sums(work.w, work.x, work.n, self.traits & SIGNED, &sums[2], &path.largest)
        else:
            self.sums(work, c, sums)
            total = sums[0] + self.outside(work)
        dot = sums[1] / total
        value[0] = self.size * dot
        slope[0] = self.size * max(sums[2] / total - dot * dot, 0.0)

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        cdef double total = self.mass(work, c)  # which sets the shift
        total += self.outside(work)
        return self.size * (log(total / self.total) + path.shift)

    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        return 2.0 * path.largest  # a third central moment is at most the range times the second

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        cdef Path* path = <Path*> work.notes
        if c == 0:
            return
        if work.row.index != NULL:
            self.outside(work)  # computed before the weights change
            if path.shift != 0:
                self.reset_path(work)
        EntropyGeometry.step(self, work, c)
        if self.backup == MISSED:
            return
        if work.row.index != NULL and path.shift != 0:
            if not self.may_move_all():
                return
            self.rescale(path.shift, exp(-path.shift), work.row)
        self.total = path.moment[0] + self.outside(work)
        self.steps += work.row.index != NULL

    cdef void renormalise(self, Workspace* work) noexcept nogil:
        """Keep the total in range, by exact powers of two, and recompute it before sparse steps make it drift.

        Its rounding error is that of the largest total since it was last recomputed, so it is also recomputed after it
        has fallen.
        """
        cdef int exponent
        cdef bint in_range = 1e-4 < self.total < 1e4  # the clock of averaging advances by U / total
        if work.row.index == NULL:
            self.summed = self.total
        elif self.total > self.summed:
            self.summed = self.total
        if in_range and self.total > 0.1 * self.summed:
            if self.steps < max(self.weights.shape[0], 1024):
                return
        if self.backup != COMPLETE:
            self.backup = MISSED
            return
        if not in_range:
            if self.average.active:
                self.average.add_all(self)
                self.average.restart()
            frexp(self.total, &exponent)
            self.rescale(exponent * log(2.0), ldexp(1.0, -exponent), NULL)
        self.total = ob_sum(&self.weights[0], self.weights.shape[0])
        self.summed, self.steps = self.total, 0.0


cdef double binary_proximal(double w, double l1, double l2) noexcept nogil:
    """logit v + l2 v = logit w - l1"""
    cdef double up = w * exp(-l1)
    return max(up / (1.0 - w + up) if l2 == 0 else ob_binary_ridge(w, l1, l2), OB_TINY)


cdef double binary_distance(double v, double w) noexcept nogil:
    cdef double r = (v - w) / w, s = (w - v) / (1.0 - w)
    return v * log1p(r) + (1.0 - v) * log1p(s)


cdef class BinaryEntropyGeometry(Geometry):
    """Binary entropy on 0 < w < 1: w(c) = sigmoid(logit w - c x) = w e^(-c x) / (1 - w + w e^(-c x)).

    S = diag w (1 - w).
    """

    def __cinit__(self):
        self.lazy.proximal, self.lazy.distance = binary_proximal, binary_distance

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
        if self.traits & SIGNED and c == 0:
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


cdef struct Products:         # an interval that holds 0 and all products w_i x_i
    double least, most


cdef double burg_proximal(double w, double l1, double l2) noexcept nogil:
    """1/v = 1/w + l1 + l2 v, a quadratic equation."""
    w = w / (1.0 + l1 * w)
    return w if l2 == 0 else 2.0 * w / (1.0 + hypot(1.0, 2.0 * sqrt(l2) * w))


cdef double burg_distance(double v, double w) noexcept nogil:
    cdef double r = (v - w) / w
    return r - log1p(r)


cdef class BurgGeometry(Geometry):
    """Burg entropy (Itakura-Saito) on w > 0: w(c) = w / (1 + c x w), S = diag w^2, for c with all 1 + c x w > 0."""

    cdef double confined_to   # the upper bound that all weights are known to satisfy

    def __cinit__(self):
        self.traits |= HAS_POLES
        self.lazy.proximal, self.lazy.distance = burg_proximal, burg_distance
        self.declare("confined_to", &self.confined_to)

    def __init__(self, weights, is_signed=False, upper=INFINITY, state=None):
        super().__init__(weights, is_signed, upper)
        self.confined_to = upper
        self._resume(state)

    cdef bint needs_projection(self) noexcept nogil:
        return self.confined_to != self.upper

    cdef void project_all(self) noexcept nogil:
        if self.average.active:
            self.average.add_all(self)
        ob_clip(&self.weights[0], self.upper, self.weights.shape[0])
        self.confined_to = self.upper

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef double* v
        if work.origin == 0:
            ob_burg_sums(work.w, work.x, c, work.n, value, slope)
            if self.traits & SIGNED and c == 0:
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
        find_poles(work, products.least, products.most, lo, hi)

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
