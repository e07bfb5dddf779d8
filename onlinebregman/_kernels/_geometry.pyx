"""Geometries: mirror maps row by row.

A geometry holds the weights and moves them along w(c) = f^-1(f(w) - c x), the one-parameter family in which every
explicit and implicit step on a row x lies. It answers four questions about a loaded row:

dot(row)           w.x
peek(row, c)       w(c).x and x'S x = -d(w(c).x)/dc, without moving
step(row, c)       w <- w(c)
conjugate(row, c)  F*(f(w) - c x) - F*(f(w)), so that D(w, w(c)) = conjugate(row, c) + c w.x

A sparse row is gathered into a contiguous buffer, so both layouts run through the same helpers; cost O(nonzeros).
"""

import numpy as np

from libc.math cimport INFINITY, exp, frexp, ldexp, log, sqrt

cdef extern from "row_ops.h":
    double OB_TINY
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_dot_norm(const double* a, const double* b, Py_ssize_t n, double* dot, double* norm) noexcept nogil
    void ob_axpy(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_scale_positive(double* w, double c, Py_ssize_t n) noexcept nogil
    double ob_sum(const double* a, Py_ssize_t n) noexcept nogil
    void ob_range(const double* a, Py_ssize_t n, double* lo, double* hi) noexcept nogil
    double ob_sparse_dot(const double* w, const Py_ssize_t* index, const double* x, Py_ssize_t n) noexcept nogil
    void ob_sparse_axpy(double* w, const Py_ssize_t* index, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_gather(double* v, const double* w, const Py_ssize_t* index, Py_ssize_t n) noexcept nogil
    void ob_scatter(double* w, const double* v, const Py_ssize_t* index, Py_ssize_t n) noexcept nogil
    void ob_accumulate(double* total, double* stamp, const double* w, double clock, Py_ssize_t n) noexcept nogil
    void ob_exp(double* e, const double* x, double c, double shift, Py_ssize_t n) noexcept nogil
    void ob_entropy_step(double* w, const double* e, Py_ssize_t n) noexcept nogil
    void ob_entropy_sums(const double* w, const double* e, const double* x, Py_ssize_t n,
                         double* total, double* dot, double* square) noexcept nogil
    void ob_weighted_sums(const double* w, const double* x, Py_ssize_t n, double* dot, double* square) noexcept nogil
    void ob_burg_sums(const double* w, const double* x, double c, Py_ssize_t n,
                      double* dot, double* square) noexcept nogil
    void ob_multiply(double* p, const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_burg_step(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_burg_ratios(double* r, const double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    double ob_sum_log(const double* a, Py_ssize_t n) noexcept nogil
    void ob_clip(double* w, double upper, Py_ssize_t n) noexcept nogil
    void ob_binary_moved(double* v, const double* w, const double* e, Py_ssize_t n) noexcept nogil
    void ob_binary_ratios(double* r, const double* w, const double* e, Py_ssize_t n) noexcept nogil
    void ob_binary_sums(const double* w, const double* x, Py_ssize_t n, double* dot, double* square) noexcept nogil
    double ob_burg_speed(const double* w, const double* x, double inverse_upper, Py_ssize_t n) noexcept nogil

# How close to its upper bound Burg's gradient step may bring a weight: at the bound itself the rate would be 0 for ever.
cdef double STRICTLY_INSIDE = 0.9
# A sparse step by more than exp(600) goes through a rescaling of all weights, so that none overflows.
cdef double LARGE_EXPONENT = 600.0


cdef inline double* scratch(Row* row, int k) noexcept nogil:
    """Working vector 1 or 2; vector 0 holds gathered weights, vector 3 the row (x, -x) of signed weights."""
    return row.buffer + k * row.room


def aligned(values):
    """A copy on a boundary of 64 bytes: a cache line, and the widest vector register."""
    room = np.empty(values.shape[0] + 8)
    start = -(room.ctypes.data // 8) % 8
    room[start : start + values.shape[0]] = values
    return room[start : start + values.shape[0]]


def _restore(kind, arguments, state):
    geometry = kind(*arguments)
    geometry.set_state(*state)
    return geometry


cdef class Geometry:
    """Weights and their mirror map.

    Parameters
    ----------
    weights : ndarray of shape (blocks * n_features,)
        The weights to start from; copied.
    doubled : bool, default=False
        Are these w+ and w- one after the other, of a linear model with weights w+ - w-?
    upper : float, default=inf
        Largest weight: each step is followed by clipping, the Bregman projection of every separable potential.
    """

    def __init__(self, weights, doubled=False, upper=INFINITY):
        self.weights = aligned(np.asarray(weights, dtype=np.float64).ravel())
        self.doubled = doubled
        self.blocks = max(self.blocks, 2 if doubled else 1)
        self.n_features = self.weights.shape[0] // self.blocks
        self.upper = upper
        self.state.rate = INFINITY

    def _arguments(self):
        """What the constructor takes, to rebuild this geometry."""
        return np.asarray(self.weights).copy(), self.doubled, self.upper

    @property
    def state_weights(self):
        """The weights a step moves, both halves of signed ones; a new array."""
        return np.asarray(self.weights) * self.scale()

    def get_state(self):
        """The state beside the weights, as plain numbers and arrays."""
        averaging = (np.asarray(self.average_sum).copy(), np.asarray(self.stamp).copy()) if self.averaging else None
        return self.state, averaging

    def set_state(self, state, averaging):
        """Put back what `get_state` returned."""
        self.state = state
        self.averaging = averaging is not None
        if self.averaging:
            self.average_sum, self.stamp = (np.array(values, dtype=np.float64) for values in averaging)

    def __reduce__(self):
        return _restore, (type(self), self._arguments(), self.get_state())

    def start_averaging(self):
        """Average the weights from now on."""
        if not self.averaging:
            self.average_sum = np.zeros(self.weights.shape[0])
            self.stamp = np.full(self.weights.shape[0], self.state.clock)
            self.averaging = True

    def stop_averaging(self):
        """Forget the average."""
        self.averaging = False
        self.average_sum = self.stamp = None
        self.state.clock = 0.0

    def coef(self, average_over=0.0):
        """The weights, or their average over so many steps; a new array."""
        weights = np.asarray(self.weights)
        if average_over > 0:
            weights = np.asarray(self.average_sum) + weights * (self.state.clock - np.asarray(self.stamp))
            return self._to_coef(weights / average_over)
        return self._to_coef(weights * self.scale())

    def _to_coef(self, weights):
        return weights[:self.n_features] - weights[self.n_features:] if self.doubled else weights

    cdef Py_ssize_t room(self, Py_ssize_t n) noexcept nogil:
        """How long the vectors of a row's working memory have to be, for rows of at most n values."""
        return self.blocks * n

    cdef void gather(self, Row* row, double[::1] source, double* out) noexcept nogil:
        cdef Py_ssize_t b
        for b in range(self.blocks):
            ob_gather(out + b * row.stored, &source[b * self.n_features], row.index, row.stored)

    cdef void scatter(self, Row* row, double* values, double[::1] target) noexcept nogil:
        cdef Py_ssize_t b
        for b in range(self.blocks):
            ob_scatter(&target[b * self.n_features], values + b * row.stored, row.index, row.stored)

    cdef void load(self, Row* row) noexcept nogil:
        cdef double* both
        cdef Py_ssize_t i, n = row.n
        if self.doubled:
            both = scratch(row, 3)
            for i in range(n):
                both[i] = row.x[i]
                both[n + i] = -row.x[i]
            row.x = both
            row.n = 2 * n
        self.fetch_weights(row)

    cdef void fetch_weights(self, Row* row) noexcept nogil:
        if row.index == NULL:
            row.w = &self.weights[0]
        else:
            row.w = row.buffer
            self.gather(row, self.weights, row.w)

    cdef void store(self, Row* row) noexcept nogil:
        """Write the loaded weights back."""
        if row.index != NULL:
            self.scatter(row, row.w, self.weights)

    cdef double scale(self) noexcept nogil:
        """What the stored weights have to be multiplied by."""
        return 1.0

    cdef void settle(self, Row* row) noexcept nogil:
        """Housekeeping after a step, on all weights."""

    cdef void accumulate(self, Row* row) noexcept nogil:
        """Before a step: add the row's weights to the average for the time they have stood still."""
        cdef Py_ssize_t b, i, j
        if row.index == NULL:
            self.accumulate_all()
            return
        for b in range(self.blocks):
            for i in range(row.stored):
                j = b * self.n_features + row.index[i]
                self.average_sum[j] += self.weights[j] * (self.state.clock - self.stamp[j])
                self.stamp[j] = self.state.clock

    cdef void accumulate_all(self) noexcept nogil:
        ob_accumulate(&self.average_sum[0], &self.stamp[0], &self.weights[0], self.state.clock, self.weights.shape[0])

    cdef double dot(self, Row* row) noexcept nogil:
        return ob_dot(row.w, row.x, row.n)

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        pass

    cdef void domain(self, Row* row, double* lo, double* hi) noexcept nogil:
        """The open interval of c on which w(c) is defined."""
        lo[0] = -INFINITY
        hi[0] = INFINITY

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        """A bound on how fast x'Sx, now `slope`, changes with c, relative to itself; after peek(row, 0)."""
        return 0.0

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        """F*(f(w) - c x) - F*(f(w))."""
        return 0.0

    cdef void step(self, Row* row, double c) noexcept nogil:
        pass

    cdef void project(self, Row* row) noexcept nogil:
        """After a step: project the row's weights onto what they are constrained to."""
        if self.upper < INFINITY:
            ob_clip(row.w, self.upper, row.n)

    cdef double rate_cap(self, Row* row, double residual) noexcept nogil:
        """Largest rate of the papers' adaptive explicit step, for residual a - y; -1 where it is not defined."""
        return INFINITY


cdef class EuclideanGeometry(Geometry):
    """w(c) = w - c x, S = I.

    With a `radius`, each step is followed by the projection onto the ball norm(w) <= radius.
    """

    def __init__(self, weights, doubled=False, upper=INFINITY, radius=INFINITY):
        super().__init__(weights, doubled, upper)
        self.radius = radius

    def __cinit__(self):
        self.linear = True

    def _arguments(self):
        return super()._arguments() + (self.radius,)

    cdef void fetch_weights(self, Row* row) noexcept nogil:
        if row.index == NULL or self.doubled or self.upper < INFINITY:
            Geometry.fetch_weights(self, row)
        else:
            row.w = &self.weights[0]  # a sparse row is learned in place

    cdef bint in_place(self, Row* row) noexcept nogil:
        return row.index != NULL and row.w == &self.weights[0]

    cdef void store(self, Row* row) noexcept nogil:
        if not self.in_place(row):
            Geometry.store(self, row)

    cdef double dot(self, Row* row) noexcept nogil:
        return ob_sparse_dot(row.w, row.index, row.x, row.n) if self.in_place(row) else ob_dot(row.w, row.x, row.n)

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        if self.in_place(row):
            value[0], slope[0] = ob_sparse_dot(row.w, row.index, row.x, row.n), ob_dot(row.x, row.x, row.n)
        else:
            ob_dot_norm(row.w, row.x, row.n, value, slope)
        value[0] -= c * slope[0]

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        cdef double value, slope
        self.peek(row, 0.0, &value, &slope)
        return c * (0.5 * c * slope - value)

    cdef void step(self, Row* row, double c) noexcept nogil:
        if self.in_place(row):
            ob_sparse_axpy(row.w, row.index, row.x, c, row.n)
        else:
            ob_axpy(row.w, row.x, c, row.n)

    cdef void settle(self, Row* row) noexcept nogil:
        cdef Py_ssize_t n = self.weights.shape[0]
        cdef double norm
        if self.radius == INFINITY:
            return
        norm = sqrt(ob_dot(&self.weights[0], &self.weights[0], n))
        if norm <= self.radius:
            return
        if not self.backed_up:
            self.blocked = True
            return
        if self.averaging:
            self.accumulate_all()
        ob_axpy(&self.weights[0], &self.weights[0], 1.0 - self.radius / norm, n)


cdef class EntropyGeometry(Geometry):
    """Relative entropy on w > 0 (EGU): w(c) = w exp(-c x), S = diag w.

    The factor is applied as its square root, twice: it may overflow where its product with a tiny weight does not.
    """

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        cdef double total
        cdef double* e = scratch(row, 1)
        cdef double* w = scratch(row, 2)
        if c == 0:
            ob_weighted_sums(row.w, row.x, row.n, value, slope)
            row.lo = row.hi = 0.0
            ob_range(row.x, row.n, &row.lo, &row.hi)
            return
        ob_exp(e, row.x, 0.5 * c, 0.0, row.n)
        ob_multiply(w, row.w, e, row.n)
        ob_entropy_sums(w, e, row.x, row.n, &total, value, slope)

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        cdef double total, value, slope
        cdef double* e = scratch(row, 1)
        cdef double* w = scratch(row, 2)
        ob_exp(e, row.x, 0.5 * c, 0.0, row.n)
        ob_multiply(w, row.w, e, row.n)
        ob_entropy_sums(w, e, row.x, row.n, &total, &value, &slope)
        return total - ob_sum(row.w, row.n)

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return max(row.hi, -row.lo)  # sum w x^3 <= max |x| sum w x^2

    cdef void step(self, Row* row, double c) noexcept nogil:
        cdef double* e = scratch(row, 1)
        ob_exp(e, row.x, 0.5 * c, 0.0, row.n)
        ob_multiply(row.w, row.w, e, row.n)
        ob_entropy_step(row.w, e, row.n)


cdef class SimplexGeometry(EntropyGeometry):
    """Relative entropy on the simplex of total U (EG): w(c) = U v exp(-c x) / sum, S = diag w - w w'/U.

    Signed, this is EG+-.

    The state v is not normalised, w = U v / sum v, so that a sparse row leaves the other weights alone.
    """

    def __init__(self, weights, doubled=False, upper=INFINITY, size=1.0):
        super().__init__(weights, doubled, upper)
        self.size = size
        self.state.total = self.state.summed = ob_sum(&self.weights[0], self.weights.shape[0])

    def _arguments(self):
        return super()._arguments() + (self.size,)

    cdef double scale(self) noexcept nogil:
        return self.size / self.state.total

    cdef void fetch_weights(self, Row* row) noexcept nogil:
        Geometry.fetch_weights(self, row)
        row.rest = 0.0
        if row.index != NULL:
            row.rest = self.state.total - ob_sum(row.w, row.n)
            if row.rest < 1e-6 * self.state.total:  # the difference has lost its digits
                row.rest = self.weight_outside(row)
        row.lo = row.hi = row.x[0] if row.n > 0 and row.rest == 0 else 0.0  # the weights left out have exponent 0
        ob_range(row.x, row.n, &row.lo, &row.hi)

    cdef double weight_outside(self, Row* row) noexcept nogil:
        """Unnormalised weight of the columns that a sparse row leaves out."""
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

    cdef double factors(self, Row* row, double c, double* m) noexcept nogil:
        """e = exp(-c x - m) into scratch 1; returns the sum of all v exp(-c x - m).

        m starts as the largest exponent, so that no factor overflows, and is lowered where the weights under the large
        factors are so tiny that the sum, or what it is compared with, would underflow.
        """
        cdef double total = self.sum_of_factors(row, c, m[0])
        if total < 1e-50 * self.state.total:
            m[0] += max(log(total / self.state.total), -LARGE_EXPONENT)
            total = self.sum_of_factors(row, c, m[0])
        return total

    cdef double sum_of_factors(self, Row* row, double c, double m) noexcept nogil:
        ob_exp(scratch(row, 1), row.x, c, m, row.n)
        return ob_dot(row.w, scratch(row, 1), row.n) + (row.rest * exp(-m) if row.rest > 0 else 0.0)

    cdef double largest_exponent(self, Row* row, double c) noexcept nogil:
        """Among -c x (and 0, for the weights that a sparse row leaves out)."""
        return -c * row.lo if c > 0 else -c * row.hi

    cdef double dot(self, Row* row) noexcept nogil:
        return self.scale() * ob_dot(row.w, row.x, row.n)

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        cdef double total, touched, dot, square, m
        if c == 0:
            ob_weighted_sums(row.w, row.x, row.n, &dot, &square)
            total = self.state.total
        else:
            m = self.largest_exponent(row, c)
            total = self.factors(row, c, &m)
            ob_entropy_sums(row.w, scratch(row, 1), row.x, row.n, &touched, &dot, &square)
        dot /= total
        value[0] = self.size * dot
        slope[0] = self.size * max(square / total - dot * dot, 0.0)

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        cdef double m = self.largest_exponent(row, c)
        cdef double total = self.factors(row, c, &m)
        return self.size * (log(total / self.state.total) + m)

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return row.hi - row.lo  # a third central moment is at most the range times the second

    cdef void step(self, Row* row, double c) noexcept nogil:
        cdef double m = self.largest_exponent(row, c)
        cdef double total
        if row.index != NULL and -LARGE_EXPONENT < m < LARGE_EXPONENT:
            m = 0.0  # leave the other weights alone
        total = self.factors(row, c, &m)
        if row.index != NULL and m != 0:
            if not self.backed_up:
                self.blocked = True
                return
            if self.averaging:
                self.accumulate_all()
            ob_scale_positive(&self.weights[0], exp(-m), self.weights.shape[0])
        ob_entropy_step(row.w, scratch(row, 1), row.n)
        self.state.total = total
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

    def confine(self):
        """Take weights at the upper bound or beyond off it, or the adaptive rate would be 0 for ever."""
        weights = np.asarray(self.weights)
        weights[weights >= self.upper] = STRICTLY_INSIDE * self.upper

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        ob_burg_sums(row.w, row.x, c, row.n, value, slope)

    cdef void domain(self, Row* row, double* lo, double* hi) noexcept nogil:
        cdef double smallest = 0.0, largest = 0.0
        ob_multiply(scratch(row, 1), row.w, row.x, row.n)
        ob_range(scratch(row, 1), row.n, &smallest, &largest)
        lo[0] = -1.0 / largest if largest > 0 else -INFINITY
        hi[0] = -1.0 / smallest if smallest < 0 else INFINITY

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return 2.0 * sqrt(slope)  # sum (w x)^3 <= (sum (w x)^2)^(3/2)

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        ob_burg_ratios(scratch(row, 1), row.w, row.x, c, row.n)
        return -ob_sum_log(scratch(row, 1), row.n)

    cdef void step(self, Row* row, double c) noexcept nogil:
        ob_burg_step(row.w, row.x, c, row.n)

    cdef double rate_cap(self, Row* row, double residual) noexcept nogil:
        """JKD07 Algorithm 1: 1 / (2 m R^2), and where the weights grow, the rate that keeps them below `upper`."""
        cdef double lo = 0.0, hi = 0.0, cap, speed
        ob_range(row.x, row.n, &lo, &hi)
        if lo < 0:
            return -1.0
        self.state.radius = max(self.state.radius, hi)
        if self.state.radius == 0:
            return INFINITY
        cap = 1.0 / (2.0 * self.upper * self.n_features * self.state.radius * self.state.radius)
        if residual < 0:
            speed = ob_burg_speed(row.w, row.x, 1.0 / self.upper, row.n)
            if speed > 0:
                cap = min(cap, STRICTLY_INSIDE / (-residual * speed))
        return cap


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

    cdef double sharpness(self, Row* row, double slope) noexcept nogil:
        return max(row.hi, -row.lo)  # |sum w (1 - w) (1 - 2 w) x^3| <= max |x| sum w (1 - w) x^2

    cdef double conjugate(self, Row* row, double c) noexcept nogil:
        ob_exp(scratch(row, 1), row.x, c, 0.0, row.n)
        ob_binary_ratios(scratch(row, 1), row.w, scratch(row, 1), row.n)
        return ob_sum_log(scratch(row, 1), row.n)

    cdef void step(self, Row* row, double c) noexcept nogil:
        ob_exp(scratch(row, 1), row.x, c, 0.0, row.n)
        ob_binary_moved(row.w, row.w, scratch(row, 1), row.n)
