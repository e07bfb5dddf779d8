"""Geometries: mirror maps row by row.

A geometry holds the weights and moves them along w(c) = f^-1(f(w) - c x), the one-parameter family in which every
explicit and implicit step on a row x lies. `load` prepares the workspace of a row; then there are four operations, the
last one needed only where w(c) is not linear in c:

dot(work)           w.x
evaluate(work, c)   w(c).x and x'S x = -d(w(c).x)/dc, without moving
step(work, c)       w <- w(c)
conjugate(work, c)  F*(f(w) - c x) - F*(f(w)), so that D(w, w(c)) = conjugate(work, c) + c w.x

A row is read and never written to. Intermediate results go into the workspace, so that several threads can predict with
one geometry. The weights of a sparse row are gathered into a contiguous buffer, so both layouts use the same helpers;
cost O(nonzeros).

Threads that predict hold no lock: `weights` and the stamps of a penalty keep their addresses as long as the geometry
lives.

A penalty and the average of the weights are parts that a geometry has, see `Lazy` and `Average`.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, fabs, isfinite
from libc.stdlib cimport free

from onlinebregman._kernels.ops.pointers cimport resized
from onlinebregman._kernels.ops.state cimport State
from onlinebregman._kernels.ops.state import aligned, average_of, vector_of
from onlinebregman._kernels.ops.row cimport ob_average_dot, ob_gather, ob_scatter
from onlinebregman._kernels.ops.vector cimport ob_accumulate, ob_clip, ob_dot, ob_dot_signed
from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef int make_workspace(Workspace* work, Py_ssize_t length) except -1:
    """Allocate a workspace for vectors of this length; to be freed by `free_workspace`."""
    work.notes = work.memory if length <= SHORT else resized(NULL, (NOTES + 5 * length) * sizeof(double))
    work.vectors, work.length, work.in_block = <double*> work.notes + NOTES, length, False
    return 0


cdef void free_workspace(Workspace* work) noexcept nogil:
    if work.notes != work.memory:
        free(work.notes)


cdef class Workspaces:
    """Several workspaces, freed with this object."""

    def __dealloc__(self):
        self.release()

    cdef void release(self) noexcept:
        while self.n > 0:
            self.n -= 1
            free_workspace(&self.each[self.n])
        free(self.each)
        self.each = NULL

    cdef int reserve(self, Py_ssize_t n, Py_ssize_t length) except -1:
        """Allocate at least n, for vectors of at least this length; existing ones may have to be opened again."""
        if n <= self.n and length <= self.length:
            return 0
        n, length = max(n, self.n), max(length, self.length)
        self.release()
        self.each = <Workspace*> resized(NULL, n * sizeof(Workspace))
        self.length = length
        while self.n < n:
            make_workspace(&self.each[self.n], length)
            self.n += 1
        return 0


cdef void gather_row(Geometry geometry, const Row* row, double* source, double* out) noexcept nogil:
    """Gather a sparse row's weights, or other numbers of their length."""
    cdef Py_ssize_t b
    for b in range(geometry.per_feature):
        ob_gather(out + b * row.n, source + b * geometry.n_features, row.index, row.n)


cdef void scatter_row(Geometry geometry, const Row* row, double* values, double* target) noexcept nogil:
    cdef Py_ssize_t b
    for b in range(geometry.per_feature):
        ob_scatter(target + b * geometry.n_features, values + b * row.n, row.index, row.n)


cdef class Average:
    """The sum of a geometry's weights over time. A weight is added when it is about to move, for the time it stood."""

    def __cinit__(self):
        self.total = self.stamp = None

    cdef double value(self, Geometry geometry, Py_ssize_t j) noexcept nogil:
        """The j-th weight, where it is not stored."""
        return geometry.weights[j]

    cdef double* values(self, Geometry geometry) noexcept nogil:
        """All weights."""
        return &geometry.weights[0]

    @cython.final
    cdef void add(self, Geometry geometry, const Row* row) noexcept nogil:
        """Before a step: add the weights that it moves."""
        cdef Py_ssize_t b, i, j
        cdef double* total = &self.total[0]
        cdef double* stamp = &self.stamp[0]
        cdef const double* weights = &geometry.weights[0]
        cdef double clock = self.clock
        cdef bint computed = self.computed
        if row.index == NULL or geometry.lazy.eager or geometry.traits & MOVES_ALL:
            self.add_all(geometry)
            return
        for b in range(geometry.weight_blocks):
            for i in range(row.n):
                j = b * geometry.n_features + row.index[i]
                total[j] += (self.value(geometry, j) if computed else weights[j]) * (clock - stamp[j])
                stamp[j] = clock

    @cython.final
    cdef void add_all(self, Geometry geometry) noexcept nogil:
        cdef Py_ssize_t n = geometry.weight_blocks * geometry.n_features
        ob_accumulate(&self.total[0], &self.stamp[0], self.values(geometry), self.clock, n)

    @cython.final
    cdef void restart(self) noexcept nogil:
        """Count the time from 0 again, after `add_all`."""
        self.clock = 0.0
        self.stamp[:] = 0.0

    @cython.final
    cdef double dot(self, Geometry geometry, const Row* row) noexcept nogil:
        """The score of a row by the sum; the row need not be loaded."""
        cdef double dot = self.dot_from(geometry, row, self.first)
        return dot - self.dot_from(geometry, row, geometry.n_features) if geometry.traits & SIGNED else dot

    @cython.final
    cdef double dot_from(self, Geometry geometry, const Row* row, Py_ssize_t start) noexcept nogil:
        cdef const double* total = &self.total[start]
        cdef const double* stamp = &self.stamp[start]
        cdef const double* weights = &geometry.weights[start]
        cdef double dot = 0.0, clock = self.clock
        cdef bint computed = self.computed
        cdef Py_ssize_t i, j
        if row.index == NULL:
            return ob_average_dot(total, stamp, self.values(geometry) + start, clock, row.x, row.n)
        for i in range(row.n):
            j = row.index[i]
            dot += (total[j] + (self.value(geometry, j) if computed else weights[j]) * (clock - stamp[j])) * row.x[i]
        return dot


cdef class Lazy:
    """The proximal steps of a penalty, argmin of D(v, w) + eta R(v): after each step and before a projection.

    A sparse row makes that of its own weights only; for the others a common clock advances: `threshold`, the sum of all
    l1, and `growth`, the product of all 1 + l2 (of eta_t times them, as rates change). Each weight stores the clock at
    which it last moved, and catches up when a row needs it or when all weights are read; reading never writes. After as
    many rows as there are weights, and before `growth` overflows, all weights catch up and the clock is reset, so that
    its differences keep their precision; on average this costs as much as one more row. Whatever needs all weights at
    each row (averages, the certificate, the projection onto a ball, proximal steps that cannot be combined) makes it
    for all of them (`eager`).

    A geometry sets `proximal` and `distance`, or has a subclass.
    """

    def __cinit__(self):
        self.stamp = None

    cdef bint composes(self, Geometry geometry) noexcept nogil:
        """Whether consecutive proximal steps of a weight are one proximal step, of the sum of their l1.

        In the squared Euclidean geometry they are with l2, too: there v = (w - l1) / (1 + l2), and after steps of l1_t
        and l2_t

            |w_T| = (|w_s| G_s - sum l1_t G_{t-1}) / G_T,    G_t = (1 + l2_1) ... (1 + l2_t).

        The sum is the growth of the clock's `threshold` since the weight's stamp, and G_t is the clock's `growth`. A
        weight is stored as w_s G_s, so that catching up is one proximal step, of that sum and G_T - 1. Adaptive
        geometries override the step; their clock shows the sum of l1 + l2. The others compose only if l2 = 0.
        """
        return self.proximal != NULL and self.l2 == 0

    cdef bint averages(self, Geometry geometry) noexcept nogil:
        """Whether weights can be averaged while proximal steps are pending: without l1 and bounds all of them are their
        stored values over `growth`, and the clock of averaging advances by 1 / growth."""
        return False

    cdef void advance(self, double l1, double l2) noexcept nogil:
        """Advance the clock by a proximal step."""
        self.threshold += l1 * self.growth
        self.growth *= 1.0 + l2

    cdef double caught_up(self, Geometry geometry, Py_ssize_t j) noexcept nogil:
        """The j-th weight after its pending proximal steps."""
        return min(self.proximal(geometry.weights[j], self.threshold - self.stamp[j], self.growth - 1.0),
                   geometry.upper)

    cdef void step_row(self, Geometry geometry, Workspace* work, double l1, double l2, bint missed) noexcept nogil:
        """The proximal step of the loaded weights of a sparse row; if `missed`, of l1 minus their stamps."""
        cdef Py_ssize_t b, i, j
        cdef double* w = work.w
        for b in range(geometry.weight_blocks):
            for i in range(work.row.n):
                j = b * geometry.n_features + work.row.index[i]
                w[i] = self.proximal(w[i], l1 - self.stamp[j] if missed else l1, l2)
            w += work.row.n

    @cython.final
    cdef void catch_up(self, Geometry geometry, Workspace* work) noexcept nogil:
        """After `load`: make the pending proximal steps of the weights gathered for a sparse row."""
        if self.pending and work.row.index != NULL:
            self.step_row(geometry, work, self.threshold, self.growth - 1.0, True)
            geometry.project(work)

    @cython.final
    cdef void catch_up_all(self, Geometry geometry) noexcept nogil:
        """Make the pending proximal steps of all weights, and reset the clock; all weights are backed up."""
        cdef Py_ssize_t j
        if self.pending:
            if geometry.average.active:
                geometry.average.add_all(geometry)
            for j in range(geometry.weight_blocks * geometry.n_features):
                geometry.weights[j] = self.caught_up(geometry, j)
            self.threshold, self.growth, self.pending = 0.0, 1.0, 0.0
            self.stamp[:] = 0.0

    @cython.final
    cdef void shrink(self, Geometry geometry, Workspace* work, double eta) noexcept nogil:
        """The proximal step of a sparse row's weights, then the projection; stores them and advances the clock.

        All weights catch up before differences of the clock lose digits.
        """
        cdef double l1 = eta * self.l1, l2 = eta * self.l2
        cdef double limit = 16.0 if geometry.average.active else 1e100  # the clock of averaging is a sum of 1 / growth
        cdef Py_ssize_t b, i
        if self.pending >= max(geometry.weights.shape[0], 1024) or self.growth * (1.0 + l2) > limit:
            if self.pending and geometry.backup != COMPLETE:
                geometry.backup = MISSED
                return
            self.catch_up_all(geometry)
        self.advance(l1, l2)
        self.pending += 1.0
        self.step_row(geometry, work, l1, l2, False)
        geometry.project(work)
        for b in range(geometry.weight_blocks):
            for i in range(work.row.n):
                work.w[b * work.row.n + i] *= self.growth
                self.stamp[b * geometry.n_features + work.row.index[i]] = self.threshold
        geometry.store(work)

    cdef double shrink_all(self, Geometry geometry, double eta, bint tracked) noexcept nogil:
        """The proximal step of all weights from w' to w'', then the projection, in the stored weights; if `tracked`,
        returns eta R(w'') + D(w'', w') for the regret certificate."""
        cdef double l1 = eta * self.l1, l2 = eta * self.l2, v, w, total = 0.0
        cdef Py_ssize_t j
        for j in range(geometry.weights.shape[0]):
            w = geometry.weights[j]
            v = self.proximal(w, l1, l2)
            if tracked:
                total += l1 * fabs(v) + 0.5 * l2 * v * v + self.distance(v, w)
            geometry.weights[j] = min(v, geometry.upper)
        return total


cdef class Geometry:
    """Weights and their mirror map.

    Parameters
    ----------
    weights : ndarray of shape (per_feature * n_features,)
        The weights to start from; copied.
    is_signed : bool, default=False
        Whether these are w+ followed by w-, of a linear model with weights w+ - w-.
    upper : float, default=inf
        Largest weight: each step is followed by clipping, the Bregman projection of every separable potential.
    state : dict, default=None
        A result of `get_state` to continue from; the last parameter of every geometry.
    """

    def __cinit__(self, *arguments, **more):
        self.average, self.lazy = Average(), Lazy()
        if not (arguments or more):  # __new__ without arguments would leave every pointer NULL
            raise TypeError(f"{type(self).__name__} must be given the weights to start from; got no arguments")
        self.average.total = self.average.stamp = None  # or reading them before they are set would be an error in C

    def __init__(self, weights, is_signed=False, upper=INFINITY, state=None):
        self.weights = aligned(np.asarray(weights, dtype=np.float64).ravel())
        self.traits |= SIGNED if is_signed else 0
        self.per_feature = max(self.per_feature, 2 if is_signed else 1)
        self.weight_blocks = 1 if self.traits & ADAPTIVE else self.per_feature
        self.n_features = self.weights.shape[0] // self.per_feature if self.per_feature else 0
        if self.n_features == 0 or self.weights.shape[0] != self.n_features * self.per_feature:
            raise ValueError(
                f"the number of weights must be a positive multiple of {self.per_feature}, the number per feature; "
                f"got {self.weights.shape[0]}"
            )
        self.upper = upper
        self.declare("clock", &self.average.clock)
        self.declare("l1", &self.lazy.l1)
        self.declare("l2", &self.lazy.l2)
        self.declare("threshold", &self.lazy.threshold)
        self.declare("growth", &self.lazy.growth)
        self.declare("pending", &self.lazy.pending)
        self._resume(state)

    cdef int declare(self, str name, void* number, bint sums_rows=False,
                     Py_ssize_t size=sizeof(double)) except -1:
        """In `__cinit__`, declare an attribute that steps change: it is undone, copied, pickled, and written to files,
        and where models that learned in parallel are merged, the increments of what `sums_rows` are added."""
        if self.state is None:
            self.state, self.row_sums = State(), ()
        if sums_rows:
            self.row_sums += (name,)
        return self.state.add(name, number, size)

    def _resume(self, state):
        """At the end of a constructor: continue from a state, if one is given."""
        if state is not None:
            self.set_state(state)

    def _arguments(self):
        """The constructor's arguments before `state`, to rebuild this geometry."""
        return np.asarray(self.weights).copy(), self.is_signed, self.upper

    @property
    def is_signed(self):
        """Whether there are weights w+ and w- of each feature; see `Trait`."""
        return self.traits & SIGNED != 0

    @property
    def linear(self):
        return self.traits & LINEAR != 0

    @property
    def adaptive(self):
        return self.traits & ADAPTIVE != 0

    @property
    def state_weights(self):
        """The weights a step moves, both halves of signed ones; a new array."""
        return self._now() * self.scale()

    def get_state(self):
        """The state in addition to the weights: the declared numbers and, where there are any, arrays."""
        state = self.state.values()
        if self.average.active:
            state |= {"average_sum": np.array(self.average.total), "stamp": np.array(self.average.stamp)}
        if self.lazy.active and self.lazy.composes(self):
            state["threshold_stamp"] = np.array(self.lazy.stamp)
        return state | {"linearised": True} if self.lazy.linearised else state

    def set_state(self, state):
        """Restore a result of `get_state`."""
        size = self.weights.shape[0]
        self.state.continue_from(state)
        self.lazy.active, self.lazy.linearised = self.lazy.l1 > 0 or self.lazy.l2 > 0, "linearised" in state
        if (self.lazy.active and type(self.lazy) is Lazy and self.lazy.proximal == NULL) or \
                (self.lazy.pending and not self.lazy.composes(self)):
            raise ValueError(f"{type(self).__name__} has no such proximal steps as the state has (l1, l2, pending)")
        if "threshold_stamp" in state:
            self.lazy.stamp = aligned(vector_of(state["threshold_stamp"], size), self.spare)
        elif self.lazy.pending or (self.lazy.active and self.lazy.composes(self)):
            raise ValueError("the state of a geometry with a penalty must contain threshold_stamp; got None")
        self.average.active = "average_sum" in state
        if self.average.active:
            vectors = (aligned(vector_of(state[name], size), self.spare) for name in ("average_sum", "stamp"))
            self.average.total, self.average.stamp = vectors

    def __reduce__(self):
        return type(self), (*self._arguments(), self.get_state())

    def start_averaging(self):
        """Average the weights from the next row on."""
        if not self.average.active:
            self.average.total = aligned(np.zeros(self.weights.shape[0]), self.spare)
            self.average.stamp = aligned(np.full(self.weights.shape[0], self.average.clock), self.spare)
            self.average.active = True

    def stop_averaging(self):
        """Discard the average."""
        self.average.active = False
        self.average.total = self.average.stamp = None
        self.average.clock = 0.0

    def penalise(self, l1, l2, linearised=False):
        """Follow each step by the proximal step of R(w) = l1 |w|_1 + l2 |w|_2^2 / 2, or its explicit step."""
        self.lazy.l1, self.lazy.l2, self.lazy.threshold, self.lazy.growth = l1, l2, 0.0, 1.0
        self.lazy.active, self.lazy.linearised = l1 > 0 or l2 > 0, linearised and l2 > 0
        if self.lazy.active and self.lazy.composes(self):
            self.lazy.stamp = aligned(np.zeros(self.weights.shape[0]), self.spare)

    def _now(self):
        """The stored weights; if some proximal steps are pending, a new array in which they are made."""
        cdef double[::1] now
        cdef Py_ssize_t j
        if not self.lazy.pending:
            return np.asarray(self.weights)
        values = np.array(self.weights)
        now = values
        for j in range(self.weight_blocks * self.n_features):
            now[j] = self.lazy.caught_up(self, j)
        return values

    @property
    def limits(self):
        """None if scores are w.x for all x; otherwise the largest |x| up to which they are, M, and g and p, or None.

        Beyond that x stands for x min(sqrt(f), p f) with f = M^2 (1 + g) / (x^2 + M^2 g), or without g for x M / |x|.
        """
        return None

    def coef(self, average_over=0.0):
        """The weights, or their average over a number of steps; a new array."""
        cdef Average average = self.average
        cdef double[::1] total = average.total, stamp = average.stamp  # another thread may discard them meanwhile
        cdef double clock = average.clock
        if average_over > 0 and total is not None:
            time = clock - np.asarray(stamp)
            return self._to_coef(average_of(np.asarray(self.weights), np.asarray(total), time, average_over))
        return self._to_coef(self._now() * self.scale())

    def _to_coef(self, weights):
        return weights[:self.n_features] - weights[self.n_features:] if self.traits & SIGNED else weights

    cdef Py_ssize_t vector_length(self, Py_ssize_t n) noexcept nogil:
        """The length that the vectors of a workspace must have for rows of at most n values."""
        return self.per_feature * n

    cdef int moved_vectors(self, double** each) noexcept nogil:
        """The vectors that steps change, the weights and others of their length; returns how many there are."""
        cdef int n = 1
        each[0] = &self.weights[0]
        if self.average.active:
            each[1], each[2], n = &self.average.total[0], &self.average.stamp[0], 3
        if self.lazy.active and (not self.lazy.eager or self.lazy.pending):
            each[n] = &self.lazy.stamp[0]
            n += 1
        return n

    cdef Py_ssize_t first_mutable(self, Py_ssize_t n_rows) noexcept nogil:
        """The first weight that a block of `n_rows` dense rows may move; those before it need no backup."""
        return 0

    cdef void begin_block(self, Rows rows, const double* sample_weight, Workspace* work) noexcept nogil:
        """These rows are loaded next in this workspace, in their order, except those of weight 0."""

    cdef void load(self, Workspace* work) noexcept nogil:
        """Prepare the workspace for its row."""
        cdef double* both
        cdef Py_ssize_t i, n = work.n
        if self.traits & SIGNED:
            both = scratch(work, 3)
            for i in range(n):
                both[i] = work.x[i]
                both[n + i] = -work.x[i]
            work.x, work.n = both, 2 * n
        self.fetch_weights(work)

    cdef void fetch_weights(self, Workspace* work) noexcept nogil:
        if work.row.index == NULL:
            work.w = &self.weights[0]
        else:
            work.w = work.vectors
            gather_row(self, work.row, &self.weights[0], work.w)

    cdef void store(self, Workspace* work) noexcept nogil:
        """Write the loaded weights back."""
        if work.row.index != NULL:
            scatter_row(self, work.row, work.w, &self.weights[0])

    cdef double scale(self) noexcept nogil:
        """The factor from the stored weights to the weights."""
        return 1.0

    cdef bint bounded(self) noexcept nogil:
        """Whether the weights and the clocks are finite, given that the stored weights are."""
        return isfinite(self.scale()) and isfinite(self.average.clock) and isfinite(self.lazy.threshold)

    cdef void renormalise(self, Workspace* work) noexcept nogil:
        """After a step: restore the range or form in which the weights are stored."""

    @cython.final
    cdef bint may_move_all(self) noexcept nogil:
        """Before all weights move in a step: whether they are backed up, otherwise it is repeated when they are."""
        if self.backup != COMPLETE:
            self.backup = MISSED
        elif self.average.active:
            self.average.add_all(self)
        return self.backup == COMPLETE

    cdef double dot(self, Workspace* work) noexcept nogil:
        """w.x"""
        cdef Py_ssize_t half = work.n // 2
        if self.traits & SIGNED:
            return ob_dot_signed(work.w, work.w + half, work.x, half)
        return ob_dot(work.w, work.x, work.n)

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        """w(c).x and x'Sx at w(c), without moving; if `LINEAR`, only c = 0 occurs."""

    cdef void domain(self, Workspace* work, double* lo, double* hi) noexcept nogil:
        """The open interval of c on which w(c) is defined.

        If the geometry has poles there, c may be so near to one that it would lose its digits. Then `work.origin` is
        this end, and `domain`, `evaluate`, `conjugate` and `step` take or return c relative to it.
        """
        lo[0], hi[0] = -INFINITY, INFINITY

    cdef double adapt(self, Workspace* work, double g, double a, double y, double weight, bint exact,
                      double* slope, double* intercept_xSx) noexcept nogil:
        """If `ADAPTIVE`: update the metric with a row that was predicted, g being the derivative of its loss at a.

        Sets `slope` to x'Sx and `intercept_xSx`, which is not 0 on entry if there is an intercept, to 1 / h of the
        intercept; returns a factor of the rate. `exact`: whether the step is implicit or importance-invariant.
        """
        return 1.0

    cdef void note_step(self, Workspace* work, double c, double gain) noexcept nogil:
        """If `ADAPTIVE`: add D(u, w) - D(u, w(c)) = gain - c (u.x), the intercept included, to the tracked sums."""

    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil:
        """A bound on the relative rate at which x'Sx, now `slope`, changes with c; after evaluate(work, 0)."""
        return 0.0

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        """F*(f(w) - c x) - F*(f(w))."""
        return 0.0

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        """Move the loaded weights to w(c)."""

    cdef void project(self, Workspace* work) noexcept nogil:
        """After a step: project the row's weights onto the constraint."""
        if self.upper < INFINITY:
            ob_clip(work.w, self.upper, self.weight_blocks * work.row.n)

    cdef bint needs_projection(self) noexcept nogil:
        """Whether the constraint has changed, so that weights may violate it."""
        return False

    cdef void project_all(self) noexcept nogil:
        """Project all weights onto the constraint; called before rows are learned, with all weights backed up."""
