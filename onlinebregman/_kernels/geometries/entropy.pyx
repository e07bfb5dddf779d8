"""Geometries of the entropies on positive weights: relative entropy, on the simplex too, Burg's and binary."""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, frexp, isfinite, ldexp, log, sqrt
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport Geometry, Row, scratch

cdef extern from "ops/vector.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_scale_positive(double* w, double c, Py_ssize_t n) noexcept nogil
    double ob_sum(const double* a, Py_ssize_t n) noexcept nogil
    void ob_range(const double* a, Py_ssize_t n, double* lo, double* hi) noexcept nogil
    void ob_multiply(double* p, const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_clip(double* w, double upper, Py_ssize_t n) noexcept nogil

cdef extern from "ops/entropy.h":
    double OB_SHORT_REACH
    void ob_exp(double* e, const double* x, double c, double shift, Py_ssize_t n) noexcept nogil
    void ob_exp_from(double* e, const double* x, double c, double origin, double shift, Py_ssize_t n) noexcept nogil
    void ob_entropy_step(double* v, const double* w, const double* e, Py_ssize_t n) noexcept nogil
    double ob_entropy_sums(const double* w, const double* x, Py_ssize_t n, bint twins,
                           double* square, double* largest) noexcept nogil
    void ob_entropy_moments(const double* w, const double* x, Py_ssize_t n, bint twins, double* moment) noexcept nogil
    double ob_entropy_move(double* v, const double* w, const double* x, double c, double reach, Py_ssize_t n,
                           bint twins) noexcept nogil
    void ob_burg_sums(const double* w, const double* x, double c, Py_ssize_t n,
                      double* dot, double* square) noexcept nogil
    void ob_product_range(const double* w, const double* x, Py_ssize_t n, double* lo, double* hi) noexcept nogil
    void ob_burg_ratios_beside(double* r, const double* w, const double* x, double largest, double c,
                               Py_ssize_t n) noexcept nogil
    double ob_burg_log(const double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_burg_step(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_burg_ratios(double* r, const double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    double ob_sum_log(const double* a, Py_ssize_t n) noexcept nogil
    void ob_binary_moved(double* v, const double* w, const double* e, Py_ssize_t n) noexcept nogil
    void ob_binary_ratios(double* r, const double* w, const double* e, Py_ssize_t n) noexcept nogil
    void ob_binary_sums(const double* w, const double* x, Py_ssize_t n, double* dot, double* square) noexcept nogil
    void ob_quotients(double* v, const double* w, const double* r, Py_ssize_t n) noexcept nogil
    void ob_dot_square(const double* w, const double* x, Py_ssize_t n, double* dot, double* square) noexcept nogil
    double ob_burg_mass(const double* w, const double* x, Py_ssize_t n) noexcept nogil

# A sparse step by more than exp(600) goes through a rescaling of all weights, so that none overflows.
cdef double LARGE_EXPONENT = 600.0
# |z| to which the moments up to the fifth give a sum of exp(z) x: z^5 / 5! is below rounding
cdef double SERIES_REACH = 1e-3


cdef class EntropyGeometry(Geometry):
    """Relative entropy on w > 0 (EGU): w(c) = w exp(-c x), S = diag w.

    A row remembers the w(c) that was worked out last, its centre: nearby, six moments tell the sums of all other w(c),
    and the step goes on from there. Small exponents take a short polynomial, others `jump`. Signed weights move along x
    and -x without a row of twice the length.
    """

    cdef void load(self, Row* row) noexcept nogil:
        self.fetch_weights(row)
        self.go_back(row)

    cdef void go_back(self, Row* row) noexcept nogil:
        """The centre is where the weights are."""
        row.v, row.centre, row.shift, row.reach = row.w, 0.0, 0.0, -1.0

    cdef double dot(self, Row* row) noexcept nogil:
        cdef double square
        return ob_entropy_sums(row.w, row.x, row.n, self.doubled, &square, &row.largest)

    cdef void sums(self, Row* row, double c, double* sums) noexcept nogil:
        """Sums of v, v x and v x^2, with v = exp(-shift) w(c): by their series about the centre, or at a new centre."""
        cdef double t = row.centre - c, second, third, fourth, fifth
        cdef double* m = row.moment
        if fabs(t) > row.reach:
            if row.reach == 0 or fabs(t) * row.largest > SERIES_REACH:
                self.move(row, c, scratch(row, 1))
                t = 0.0
            ob_entropy_moments(row.v, row.x, row.n, self.doubled, m)
            row.reach = SERIES_REACH / row.largest if isfinite(m[4] + m[5]) else 0.0
        if t == 0:
            sums[0], sums[1], sums[2] = m[0], m[1], m[2]
        elif row.reach == 0:
            self.sums(row, c, sums)  # again, at c itself
        else:
            second, third, fourth, fifth = m[2] * (1.0 / 2), m[3] * (1.0 / 6), m[4] * (1.0 / 24), m[5] * (1.0 / 120)
            sums[0] = m[0] + t * (m[1] + t * (second + t * (third + t * (fourth + t * fifth))))
            sums[1] = m[1] + t * (2 * second + t * (3 * third + t * (4 * fourth + t * 5 * fifth)))
            sums[2] = 2 * second + t * (6 * third + t * (12 * fourth + t * 20 * fifth))

    cdef double mass(self, Row* row, double c) noexcept nogil:
        """Sum of exp(-shift) w(c)."""
        cdef double[3] sums
        if fabs(c - row.centre) <= row.reach:
            self.sums(row, c, sums)
            return sums[0]
        self.move(row, c, scratch(row, 1))  # the step will need it
        return row.moment[0]

    cdef void move(self, Row* row, double c, double* v) noexcept nogil:
        """Work out w(c) into v: from now on the centre."""
        cdef double reach
        if fabs(c) < fabs(c - row.centre):
            self.go_back(row)
        reach = fabs(c - row.centre) * row.largest
        if reach <= OB_SHORT_REACH:
            row.moment[0] = ob_entropy_move(v, row.v, row.x, c - row.centre, reach, row.n, self.doubled)
        else:
            self.jump(row, c, v)
        row.v, row.centre, row.reach = v, c, -1.0

    cdef void jump(self, Row* row, double c, double* v) noexcept nogil:
        """`move` for an exponent of any size.

        The factor is applied as its square root, twice: it may overflow where its product with a tiny weight does not.
        """
        cdef Py_ssize_t n = self.blocks * row.n
        cdef double* e = scratch(row, 2)
        ob_exp(e, self.both(row), 0.5 * c, 0.0, n)
        ob_multiply(v, row.w, e, n)
        ob_entropy_step(v, v, e, n)
        row.moment[0] = ob_sum(v, n)

    cdef const double* both(self, Row* row) noexcept nogil:
        """The values of all the row's weights: x, or (x, -x)."""
        cdef double* values = scratch(row, 3)
        cdef Py_ssize_t i
        if not self.doubled:
            return row.x
        for i in range(row.n):
            values[i] = row.x[i]
            values[row.n + i] = -row.x[i]
        return values

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        cdef double[3] sums
        if c == 0:
            value[0] = ob_entropy_sums(row.w, row.x, row.n, self.doubled, slope, &row.largest)
            return
        self.sums(row, c, sums)
        value[0], slope[0] = sums[1], sums[2]

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        return self.mass(row, c) - ob_sum(row.w, self.blocks * row.n)

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return row.largest  # sum w x^3 <= max |x| sum w x^2

    cdef void step(self, Row* row, double c) noexcept nogil:
        if c != row.centre:
            self.move(row, c, row.w)
        elif c != 0:
            memcpy(row.w, row.v, self.blocks * row.n * sizeof(double))

    cdef void project(self, Row* row) noexcept nogil:
        if self.upper < INFINITY:
            ob_clip(row.w, self.upper, self.blocks * row.n)


cdef class SimplexGeometry(EntropyGeometry):
    """Relative entropy on the simplex of total U (EG): w(c) = U v exp(-c x) / sum, S = diag w - w w'/U.

    Signed, this is EG+-.

    The state v is not normalised, w = U v / sum v, so that a sparse row leaves the other weights alone.
    """

    cdef readonly double size  # U, the sum of the weights

    def __init__(self, weights, doubled=False, upper=INFINITY, size=1.0, state=None):
        super().__init__(weights, doubled, upper)
        self.size = size
        self.state.total = self.state.summed = ob_sum(&self.weights[0], self.weights.shape[0])
        self._resume(state)

    def _arguments(self):
        return super()._arguments() + (self.size,)

    cdef double scale(self) noexcept nogil:
        return self.size / self.state.total

    cdef void load(self, Row* row) noexcept nogil:
        EntropyGeometry.load(self, row)
        row.rest = 0.0 if row.index == NULL else -1.0

    cdef double outside(self, Row* row) noexcept nogil:
        """Unnormalised weight of the columns that a sparse row leaves out, times exp(-shift)."""
        if row.rest < 0:
            row.rest = self.state.total - ob_sum(row.w, self.blocks * row.n)
            if row.rest < 1e-6 * self.state.total:  # the difference has lost its digits
                row.rest = self.weight_outside(row)
        return row.rest if row.shift == 0 or row.rest == 0 else row.rest * exp(-row.shift)

    cdef double weight_outside(self, Row* row) noexcept nogil:
        cdef Py_ssize_t b, j, k
        cdef double total = 0.0
        for b in range(self.blocks):
            k = 0
            for j in range(self.n_features):
                if k < row.stored and row.index[k] == j:
                    k += 1
                else:
                    total += self.weights[b * self.n_features + j]
        return total

    cdef void jump(self, Row* row, double c, double* v) noexcept nogil:
        """`move` for an exponent of any size: v = w exp(-c x - shift).

        The shift starts as the largest exponent, -c times an origin, so that no factor overflows, and is lowered where
        the weights under the large factors are so tiny that the sum, or what it is compared with, would underflow. That
        little would be lost in a large c x: the exponents are products with the distance from the origin. A step on a
        sparse row does without if it can, to leave the other weights alone.
        """
        cdef double total = 0.0, lo, hi, origin
        row.shift = 0.0
        lo = hi = row.x[0] if self.outside(row) == 0 else 0.0  # the weights left out have exponent 0
        ob_range(self.both(row), self.blocks * row.n, &lo, &hi)
        origin = lo if c > 0 else hi
        if row.index != NULL and v == row.w and fabs(c * origin) < LARGE_EXPONENT:
            total = self.factors(row, c, 0.0, 0.0)
        if total < 1e-50 * self.state.total:
            total = self.factors(row, c, origin, 0.0)
        if total < 1e-50 * self.state.total:
            total = self.factors(row, c, origin, max(log(total / self.state.total), -LARGE_EXPONENT))
        row.moment[0] = total - self.outside(row)
        ob_entropy_step(v, row.w, scratch(row, 2), self.blocks * row.n)

    cdef double factors(self, Row* row, double c, double origin, double lowered) noexcept nogil:
        """exp(-c x - shift) into scratch 2, for this shift from now on; returns the sum of all v exp(-c x - shift)."""
        cdef Py_ssize_t n = self.blocks * row.n
        row.shift = lowered - c * origin if origin != 0 else lowered
        ob_exp_from(scratch(row, 2), self.both(row), c, origin, lowered, n)
        return ob_dot(row.w, scratch(row, 2), n) + self.outside(row)

    cdef double dot(self, Row* row) noexcept nogil:
        return self.scale() * EntropyGeometry.dot(self, row)

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        cdef double[3] sums
        cdef double total = self.state.total, dot
        if c == 0:
            sums[1] = ob_entropy_sums(row.w, row.x, row.n, self.doubled, &sums[2], &row.largest)
        else:
            self.sums(row, c, sums)
            total = sums[0] + self.outside(row)
        dot = sums[1] / total
        value[0] = self.size * dot
        slope[0] = self.size * max(sums[2] / total - dot * dot, 0.0)

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        cdef double total = self.mass(row, c)  # which sets the shift
        total += self.outside(row)
        return self.size * (log(total / self.state.total) + row.shift)

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return 2.0 * row.largest  # a third central moment is at most the range times the second

    cdef void step(self, Row* row, double c) noexcept nogil:
        if c == 0:
            return
        if row.index != NULL:
            self.outside(row)  # found out while the weights are what they were
            if row.shift != 0:
                self.go_back(row)
        EntropyGeometry.step(self, row, c)
        if row.index != NULL and row.shift != 0:
            if not self.backed_up:
                self.blocked = True
                return
            if self.averaging:
                self.accumulate_all()
            ob_scale_positive(&self.weights[0], exp(-row.shift), self.weights.shape[0])
        self.state.total = row.moment[0] + self.outside(row)
        self.state.steps += row.index != NULL

    cdef void settle(self, Row* row) noexcept nogil:
        """Keep the total in range (by powers of two: exact), and sum it afresh before sparse steps make it drift.

        Its rounding error is that of the largest total since the last fresh sum, so a fall calls for one, too.
        """
        cdef int exponent
        cdef bint in_range = 1e-4 < self.state.total < 1e4  # averaging's clock runs at U / total
        if row.index == NULL:
            self.state.summed = self.state.total
        elif self.state.total > self.state.summed:
            self.state.summed = self.state.total
        if in_range and self.state.total > 0.1 * self.state.summed and self.state.steps < max(self.weights.shape[0], 1024):
            return
        if not self.backed_up:
            self.blocked = True
            return
        if not in_range:
            if self.averaging:
                self.accumulate_all()
                self.state.clock = 0.0
                self.stamp[:] = 0.0
            frexp(self.state.total, &exponent)
            ob_scale_positive(&self.weights[0], ldexp(1.0, -exponent), self.weights.shape[0])
        self.state.total = ob_sum(&self.weights[0], self.weights.shape[0])
        self.state.summed = self.state.total
        self.state.steps = 0


cdef class BurgGeometry(Geometry):
    """Burg entropy (Itakura-Saito) on w > 0: w(c) = w / (1 + c x w), S = diag w^2, for c with all 1 + c x w > 0."""

    def __init__(self, weights, doubled=False, upper=INFINITY, state=None):
        super().__init__(weights, doubled, upper)
        self.state.confined_to = upper
        self._resume(state)

    @property
    def sum_bound(self):
        """What the rate of the gradient step takes the sum of the weights for, at least."""
        return self.state.sum_bound

    @sum_bound.setter
    def sum_bound(self, double bound):
        self.state.sum_bound = bound

    cdef bint unsettled(self) noexcept nogil:
        return self.state.confined_to != self.upper

    cdef void confine(self) noexcept nogil:
        if self.averaging:
            self.accumulate_all()
        ob_clip(&self.weights[0], self.upper, self.weights.shape[0])
        self.state.confined_to = self.upper

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        cdef double* v
        if row.end == 0:
            ob_burg_sums(row.w, row.x, c, row.n, value, slope)
            if self.doubled and c == 0:
                value[0] = self.dot(row)
            return
        v = scratch(row, 1)
        self.ratios(row, c, v)
        ob_quotients(v, row.w, v, row.n)
        ob_dot_square(v, row.x, row.n, value, slope)

    cdef void domain(self, Row* row, double* lo, double* hi) noexcept nogil:
        row.lo = row.hi = 0.0
        ob_product_range(row.w, row.x, row.n, &row.lo, &row.hi)
        lo[0] = -1.0 / row.hi if row.hi > 0 else -INFINITY
        hi[0] = -1.0 / row.lo if row.lo < 0 else INFINITY
        if row.end != 0:
            lo[0] -= row.end  # exactly 0 at the end that c is counted from
            hi[0] -= row.end

    cdef bint count_from(self, Row* row, double end) noexcept nogil:
        row.end = end
        return True

    cdef void ratios(self, Row* row, double c, double* r) noexcept nogil:
        """1 + c x w, by what the weights are divided."""
        if row.end == 0:
            ob_burg_ratios(r, row.w, row.x, c, row.n)
        else:
            ob_burg_ratios_beside(r, row.w, row.x, row.hi if row.end < 0 else row.lo, c, row.n)

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return 2.0 * sqrt(slope)  # sum (w x)^3 <= (sum (w x)^2)^(3/2)

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        """Beyond its domain, where the gradient step may lead: what D(w, w(c)) comes to for comparators u <= upper."""
        cdef double lo, hi, beyond = 0.0
        cdef double* r = scratch(row, 1)
        cdef Py_ssize_t i
        self.domain(row, &lo, &hi)
        if row.end == 0 and fabs(c) * max(row.hi, -row.lo) <= 0.5:
            return -ob_burg_log(row.w, row.x, c, row.n)
        self.ratios(row, c, r)
        if not lo < c < hi:
            for i in range(row.n):
                if r[i] <= 0:  # the weight goes to its bound: by so much less than c x, each worth u <= upper
                    r[i] = row.w[i] / self.upper
                    beyond += 1.0 - 1.0 / r[i] - c * row.x[i] * self.upper
        return beyond - ob_sum_log(r, row.n)

    cdef void step(self, Row* row, double c) noexcept nogil:
        if row.end == 0:
            ob_burg_step(row.w, row.x, c, row.n)
        else:
            self.ratios(row, c, scratch(row, 1))
            ob_quotients(row.w, row.w, scratch(row, 1), row.n)

    cdef double rate_cap(self, Row* row, double residual, double bias) noexcept nogil:
        """JKD07 Algorithm 1: 1 / (2 m B R^2), with B the `upper`.

        R and m are running maxima: of the features, and of the sum of the weights where a row is not 0. An intercept is
        one more coordinate, of curvature 1: 1 / (2 (m B R^2 + 1)). See docs/regret.rst for the proof.
        """
        cdef double lo = 0.0, hi = 0.0, steepness
        ob_range(row.x, row.n, &lo, &hi)
        if lo < 0:
            return -1.0
        self.state.radius = max(self.state.radius, hi)
        self.state.mass = max(self.state.mass, ob_burg_mass(row.w, row.x, row.n))
        steepness = max(self.state.mass, self.state.sum_bound) * self.upper * self.state.radius * self.state.radius + bias
        return 0.5 / steepness if steepness > 0 else INFINITY


cdef class BinaryEntropyGeometry(Geometry):
    """Binary entropy on 0 < w < 1: w(c) = sigmoid(logit w - c x) = w e^(-c x) / (1 - w + w e^(-c x)), S = diag w (1 - w)."""

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        cdef double* v = row.w
        if c == 0:
            row.lo = row.hi = 0.0
            ob_range(row.x, row.n, &row.lo, &row.hi)
        else:
            v = scratch(row, 1)
            ob_exp(v, row.x, c, 0.0, row.n)
            ob_binary_moved(v, row.w, v, row.n)
        ob_binary_sums(v, row.x, row.n, value, slope)
        if self.doubled and c == 0:
            value[0] = self.dot(row)

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return max(row.hi, -row.lo)  # |sum w (1 - w) (1 - 2 w) x^3| <= max |x| sum w (1 - w) x^2

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        ob_exp(scratch(row, 1), row.x, c, 0.0, row.n)
        ob_binary_ratios(scratch(row, 1), row.w, scratch(row, 1), row.n)
        return ob_sum_log(scratch(row, 1), row.n)

    cdef void step(self, Row* row, double c) noexcept nogil:
        ob_exp(scratch(row, 1), row.x, c, 0.0, row.n)
        ob_binary_moved(row.w, row.w, scratch(row, 1), row.n)
