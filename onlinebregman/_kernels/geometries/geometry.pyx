"""Geometries: mirror maps row by row.

A geometry holds the weights and moves them along w(c) = f^-1(f(w) - c x), the one-parameter family in which every
explicit and implicit step on a row x lies. It answers four questions about a loaded row, the last one only where w(c)
is not linear in c:

dot(row)           w.x
peek(row, c)       w(c).x and x'S x = -d(w(c).x)/dc, without moving
step(row, c)       w <- w(c)
conjugate(row, c)  F*(f(w) - c x) - F*(f(w)), so that D(w, w(c)) = conjugate(row, c) + c w.x

A sparse row is gathered into a contiguous buffer, so both layouts run through the same helpers; cost O(nonzeros).
"""

import numpy as np

from libc.math cimport INFINITY, isfinite, ldexp, sqrt

cdef extern from "ops/row.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    double ob_dot_twins(const double* a, const double* b, const double* x, Py_ssize_t n) noexcept nogil
    void ob_dot_norm(const double* a, const double* b, Py_ssize_t n, double* dot, double* norm) noexcept nogil
    void ob_axpy(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    double ob_sparse_dot(const double* w, const Py_ssize_t* index, const double* x, Py_ssize_t n) noexcept nogil
    void ob_sparse_axpy(double* w, const Py_ssize_t* index, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_gather(double* v, const double* w, const Py_ssize_t* index, Py_ssize_t n) noexcept nogil
    void ob_scatter(double* w, const double* v, const Py_ssize_t* index, Py_ssize_t n) noexcept nogil
    void ob_accumulate(double* total, double* stamp, const double* w, double clock, Py_ssize_t n) noexcept nogil
    void ob_clip(double* w, double upper, Py_ssize_t n) noexcept nogil
    double ob_average_dot(const double* total, const double* stamp, const double* w, double clock, const double* x,
                          Py_ssize_t n) noexcept nogil


def aligned(values):
    """A copy on a boundary of 64 bytes: a cache line, and the widest vector register."""
    room = np.empty(values.shape[0] + 8)
    start = -(room.ctypes.data // 8) % 8
    room[start : start + values.shape[0]] = values
    return room[start : start + values.shape[0]]


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
    state : tuple, default=None
        What `get_state` said of a geometry, to go on as it would: the last parameter of every geometry.
    """

    def __cinit__(self, *arguments, **more):
        if not (arguments or more):  # by __new__ alone: without weights every pointer would lead nowhere
            raise TypeError(f"{type(self).__name__} needs weights to start from")

    def __init__(self, weights, doubled=False, upper=INFINITY, state=None):
        self.weights = aligned(np.asarray(weights, dtype=np.float64).ravel())
        self.doubled = doubled
        self.blocks = max(self.blocks, 2 if doubled else 1)
        self.n_features = self.weights.shape[0] // self.blocks
        self.upper = upper
        self.state.rate = self.state.noted = INFINITY
        self._resume(state)

    def _resume(self, state):
        """At the end of a constructor: go on from a state, if one is given."""
        if state is not None:
            self.set_state(*state)

    def _arguments(self):
        """What the constructor takes before `state`, to rebuild this geometry."""
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
        return type(self), (*self._arguments(), self.get_state())

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
            total, time = np.asarray(self.average_sum), self.state.clock - np.asarray(self.stamp)
            with np.errstate(over="ignore"):
                average = (total + weights * time) / average_over
            if not np.isfinite(average).all():  # a sum of large weights overflows, not their average
                average = total / average_over + weights * (time / average_over)
            return self._to_coef(average)
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

    cdef Py_ssize_t at_rest(self, Py_ssize_t n_rows) noexcept nogil:
        """How many weights, from the first on, so many dense rows cannot move: nobody has to back them up."""
        return 0

    cdef void forget(self) noexcept nogil:
        """The rows that were expected will not come."""

    cdef Py_ssize_t wants(self) noexcept nogil:
        """How many rows it can be told to expect now: those that are loaded next, in this order."""
        return 0

    cdef Py_ssize_t expect(self, Row* row) noexcept nogil:
        """Expect one more row. Returns for how many there is room still."""
        return 0

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

    cdef bint bounded(self) noexcept nogil:
        """Are the weights, and the clock of their average, finite if the stored ones are?"""
        return isfinite(self.scale()) and isfinite(self.state.clock)

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

    cdef double averaged_dot(self, Row* row) noexcept nogil:
        """The score of a row, not loaded yet, by the sums of averaged weights."""
        cdef double dot = self.averaged_block_dot(row, 0)
        return dot - self.averaged_block_dot(row, self.n_features) if self.doubled else dot

    cdef double averaged_block_dot(self, Row* row, Py_ssize_t start) noexcept nogil:
        cdef Py_ssize_t i, j
        cdef double dot = 0.0
        if row.index == NULL:
            return ob_average_dot(
                &self.average_sum[start], &self.stamp[start], &self.weights[start], self.state.clock, row.x, row.n
            )
        for i in range(row.n):
            j = start + row.index[i]
            dot += (self.average_sum[j] + self.weights[j] * (self.state.clock - self.stamp[j])) * row.x[i]
        return dot

    cdef double dot(self, Row* row) noexcept nogil:
        cdef Py_ssize_t half = row.n // 2
        if self.doubled:
            return ob_dot_twins(row.w, row.w + half, row.x, half)
        return ob_dot(row.w, row.x, row.n)

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        pass

    cdef void domain(self, Row* row, double* lo, double* hi) noexcept nogil:
        """The open interval of c on which w(c) is defined."""
        lo[0] = -INFINITY
        hi[0] = INFINITY

    cdef bint count_from(self, Row* row, double end) noexcept nogil:
        """From now on c is counted from this end of the domain, beside which it loses its digits: True, or False where
        w(c) needs no such care. `domain`, `peek`, `conjugate` and `step` then take, or give, the c of `row.end + c`."""
        return False

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

    cdef double rate_cap(self, Row* row, double residual, double bias) noexcept nogil:
        """Largest rate of the papers' adaptive explicit step, for residual a - y; -1 where it is not defined.

        `bias` is 1 if an intercept moves with the weights, else 0.
        """
        return INFINITY

    cdef bint unsettled(self) noexcept nogil:
        """May weights lie outside of the constraint now in force?"""
        return False

    cdef void confine(self) noexcept nogil:
        """Project all weights onto the constraint now in force; before rows are learned, and all are backed up."""


cdef class EuclideanGeometry(Geometry):
    """w(c) = w - c x, S = I.

    With a `radius`, each step is followed by the projection onto the ball norm(w) <= radius.
    """

    def __init__(self, weights, doubled=False, upper=INFINITY, radius=INFINITY, state=None):
        super().__init__(weights, doubled, upper, state)
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
        return ob_sparse_dot(row.w, row.index, row.x, row.n) if self.in_place(row) else Geometry.dot(self, row)

    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil:
        if self.in_place(row):
            value[0], slope[0] = ob_sparse_dot(row.w, row.index, row.x, row.n), ob_dot(row.x, row.x, row.n)
        else:
            ob_dot_norm(row.w, row.x, row.n, value, slope)
            if self.doubled:
                value[0] = Geometry.dot(self, row)
        value[0] -= c * slope[0]

    cdef void step(self, Row* row, double c) noexcept nogil:
        if self.in_place(row):
            ob_sparse_axpy(row.w, row.index, row.x, c, row.n)
        else:
            ob_axpy(row.w, row.x, c, row.n)

    cdef void settle(self, Row* row) noexcept nogil:
        cdef Py_ssize_t i, n = self.weights.shape[0]
        cdef double total, share  # of the weights, that the ball holds
        if self.radius == INFINITY:
            return
        total = ob_dot(&self.weights[0], &self.weights[0], n)
        share = self.radius / sqrt(total)
        if total == INFINITY:
            total = 0.0
            for i in range(n):
                total += ldexp(self.weights[i], -600) ** 2
            share = ldexp(self.radius / sqrt(total), -600)
        if share >= 1.0:
            return
        if not self.backed_up:
            self.blocked = True
            return
        if self.averaging:
            self.accumulate_all()
        for i in range(n):
            self.weights[i] *= share
