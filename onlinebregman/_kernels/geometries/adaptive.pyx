"""Adaptive geometries: squared Euclidean distances with a weight h_i for each coordinate, computed from the past rows.

    D_t(u, w) = sum h_i (u_i - w_i)^2 / 2,    w_i(c) = w_i - c x_i / h_i,    x'Sx = sum x_i^2 / h_i

After a row is predicted, and before it is learned, `adapt` adds it to the sums that h is computed from: only to those
of its nonzeros, so that a sparse row costs O(nonzeros). A factor common to all coordinates is returned and multiplies
the learning rate. The intercept is a coordinate of value 1: the row's score also moves by intercept_xSx = 1 / h_0.

Instead of a penalty's proximal step, each step is followed by the penalty's flow v' = -(l1 sgn v + l2 v) / h_i from w'
for the time eta, the limit of many small proximal steps (docs/frame.rst):

    |w''| = max(0, (|w'| + l1 / l2) e^(-l2 eta / h_i) - l1 / l2), and for l2 = 0 the soft threshold l1 eta / h_i.

As h_i does not change until a row has a value there, the pending flows of a coordinate are one flow, for the sum of
their times; proximal steps would only compose for l2 = 0. A coordinate without values has no h_i, and does not move.
"""

import numpy as np

cimport cython
from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, fabs, sqrt

from onlinebregman._kernels.geometries.geometry cimport ADAPTIVE, LINEAR, Geometry, Lazy, Workspace, scratch
from onlinebregman._kernels.ops.adaptive cimport (
    OB_UNSEEN, ob_adapt, ob_adapt_normalised, ob_adapt_second_order, ob_flow, ob_normalised_dot, ob_reciprocal,
    ob_rescale_row, ob_shrink, ob_update_largest
)
from onlinebregman._kernels.ops.exp cimport ob_exp1
from onlinebregman._kernels.ops.robust cimport (
    ob_quantile, ob_quantile_unit, ob_robust, ob_robust_known, ob_robust_limit
)
from onlinebregman._kernels.ops.row cimport ob_gather, ob_scatter, ob_sparse_axpy
from onlinebregman._kernels.ops.state import aligned, average_of, vector_of
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_dot

# By this factor the intercept's 1 / h is raised in an exact first step: its score is the target to 12 digits then.
cdef double FIRST_STEP_FACTOR = 2.0**40

cdef enum:                    # blocks of the state
    WEIGHTS
    SUMS                      # of g^2 x^2, g^2 z^2 or k z^2, with z = x r
    RECIPROCALS               # r = 1 / the largest |x|


cdef struct Notes:
    double* q                 # x / h
    double* reciprocals
    int larger                # whether a value is the largest of its coordinate so far
    double dot, square        # w.x and sum z^2, computed when the row was loaded; valid unless `larger`
    double slope              # x'q


cdef inline double* block_of(AdaptiveGeometry geometry, Workspace* work, int number, int place) noexcept nogil:
    """The row's values of a block: the block itself, or gathered into a working vector (sparse)."""
    cdef double* source = &geometry.weights[number * geometry.n_features]
    if work.row.index == NULL:
        return source
    ob_gather(scratch(work, place), source, work.row.index, work.row.n)
    return scratch(work, place)


cdef inline void store_block(AdaptiveGeometry geometry, Workspace* work, int number, double* values) noexcept nogil:
    if work.row.index != NULL:
        ob_scatter(&geometry.weights[number * geometry.n_features], values, work.row.index, work.row.n)


cdef inline double reciprocal_root(double total) noexcept nogil:
    return 1.0 / sqrt(total) if total >= DBL_MIN else 0.0


cdef class AdaptiveGeometry(Geometry):
    """Base class: a weight and some sums for each coordinate.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        The weights to start from; copied.
    upper : float, default=inf
        Largest weight.
    """

    def __cinit__(self):
        self.traits |= LINEAR | ADAPTIVE
        self.declare("intercept_sum", &self.intercept_sum, True)
        self.declare("pulled", &self.pulled)
        self.declare("gained", &self.gained)
        self.blocks = 2
        self.lazy = Flow()

    def __init__(self, weights, upper=INFINITY, state=None):
        self.per_feature = 1
        super().__init__(weights, False, upper)
        self.per_feature, self.spare = self.blocks, self.n_features
        self.weights = aligned(self.weights, self.spare, self.blocks * self.n_features)
        self._resume(state)

    def _arguments(self):
        return self.state_weights, self.upper

    def get_state(self):
        return {**super().get_state(), "box": self.box, "blocks": np.array(self.weights)}

    def set_state(self, state):
        blocks = state["blocks"]
        self.per_feature = np.size(blocks) // self.n_features
        self.tracking = self.per_feature > self.blocks
        if self.tracking:
            self.per_feature = self.blocks + 1
        self.weights = aligned(vector_of(blocks, max(self.per_feature, self.blocks) * self.n_features), self.spare)
        super().set_state(state)
        if state["box"] is not None:
            self.confine(*state["box"])

    @property
    def state_weights(self):
        """The weights; a new array."""
        return self._now()[:self.n_features].copy()

    def confine(self, low, high):
        """Follow each step by the projection onto low <= w <= high, both of shape (n_features,): by clipping."""
        self.box = vector_of(low, self.n_features), vector_of(high, self.n_features)
        self.low, self.high = self.box

    @property
    def metric(self):
        """h of every coordinate, 0 where no row had a value; a new array."""
        raise NotImplementedError

    def coef(self, average_over=0.0):
        """See `Geometry.coef`."""
        cdef double[::1] total = self.average.total, stamp = self.average.stamp
        cdef double clock = self.average.clock
        cdef Py_ssize_t n = self.n_features
        if average_over == 0 or total is None:
            return self.state_weights
        return average_of(self.state_weights, np.asarray(total)[:n], clock - np.asarray(stamp)[:n], average_over)

    # --- the regret certificate: sum c (w.x - u.x) - c^2 x'Sx / 2 over the rows, by parts ------------------------

    @property
    def tracks(self):
        return bool(self.tracking)

    def start_tracking(self):
        """Accumulate the sums that the certificate needs of the geometry, from the next row on."""
        cdef Py_ssize_t start = self.blocks * self.n_features
        if not self.tracking:
            self.arrange(self.blocks + 1)
            vectors = [self.weights, self.lazy.stamp, self.average.total, self.average.stamp]
            for vector in vectors:
                if vector is not None:
                    np.asarray(vector)[start:] = 0.0
            self.pulled = self.gained = 0.0

    def stop_tracking(self):
        """Discard these sums."""
        self.arrange(self.blocks)

    cdef void arrange(self, Py_ssize_t per_feature) noexcept:
        """Set the number of blocks, one more with tracking than without; in place, as other threads may be reading."""
        cdef Py_ssize_t size = per_feature * self.n_features
        self.tracking, self.per_feature = per_feature > self.blocks, per_feature
        self.weights.shape[0] = size
        if self.lazy.stamp is not None:
            self.lazy.stamp.shape[0] = size
        if self.average.active:
            self.average.total.shape[0] = self.average.stamp.shape[0] = size

    @property
    def nearer_by_terms(self):
        """Constant, slopes in u and slope in the intercept of sum D_t(u, w_t) - D_t(u, w_t(c_t)) over tracked rows."""
        return self.gained, -np.asarray(self.weights)[self.blocks * self.n_features:], -self.pulled

    cdef void note_step(self, Workspace* work, double c, double gain) noexcept nogil:
        cdef double* pulls = &self.weights[self.blocks * self.n_features]
        self.pulled += c
        self.gained += gain
        if work.row.index == NULL:
            ob_axpy(pulls, work.row.x, -c, work.row.n)
        else:
            ob_sparse_axpy(pulls, work.row.index, work.row.x, -c, work.row.n)

    # --- a row --------------------------------------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t n) noexcept nogil:
        return n

    cdef void load(self, Workspace* work) noexcept nogil:
        work.w = block_of(self, work, WEIGHTS, 0)

    cdef void store(self, Workspace* work) noexcept nogil:
        store_block(self, work, WEIGHTS, work.w)

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        """x'Sx is computed by `adapt`."""
        value[0], slope[0] = ob_dot(work.w, work.x, work.n), 0.0

    cdef double adapt(self, Workspace* work, double g, double a, double y, double weight, bint exact,
                      double* slope, double* intercept_xSx) noexcept nogil:
        cdef bint intercept = intercept_xSx[0] != 0
        cdef double factor = self.update_metric(work, weight * g * g, weight, intercept, slope, intercept_xSx)
        if not intercept:
            intercept_xSx[0] = 0.0
        return factor

    cdef double update_metric(self, Workspace* work, double s, double weight, bint intercept, double* slope,
                              double* intercept_xSx) noexcept nogil:
        """Add the row to the sums, with s = weight g^2; compute x / h, its slope, intercept_xSx; the rate's factor."""
        return 1.0

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        if c != 0:
            ob_axpy(work.w, (<Notes*> work.notes).q, c, work.n)

    # --- constraint and penalty: coordinate by coordinate -------------------------------------------------------

    cdef void project(self, Workspace* work) noexcept nogil:
        cdef Py_ssize_t i
        if self.box is None:
            Geometry.project(self, work)
            return
        for i in range(work.row.n):
            work.w[i] = self.confined(i if work.row.index == NULL else work.row.index[i], work.w[i])

    cdef double confined(self, Py_ssize_t j, double w) noexcept nogil:
        return min(w, self.upper) if self.box is None else min(max(w, self.low[j]), self.high[j])

    cdef double reciprocal(self, Py_ssize_t j) noexcept nogil:
        """1 / h of a coordinate; 0 if no row had a value there."""
        cdef double* own = &self.weights[j]
        cdef Py_ssize_t n = self.n_features
        return ob_reciprocal(own[SUMS * n], own[RECIPROCALS * n] if self.blocks > RECIPROCALS else 1.0, self.prior)

    cdef void flow_row(self, Workspace* work, const double* t, double l1, double l2) noexcept nogil:
        """The flow of a sparse row's weights, for the times t, or 1."""
        cdef double* units = block_of(self, work, RECIPROCALS, 2) if self.blocks > RECIPROCALS else NULL
        ob_shrink(work.w, block_of(self, work, SUMS, 1), units, self.prior, t, l1, l2, work.n)

    cdef double flow_all(self, double l1, double l2, bint tracked) noexcept nogil:
        """See `Lazy.shrink_all`; for a flow the term D(w'', w') gets the factor e^(-l2 eta / h) (docs/frame.rst).

        D(u, w') - D(u, w'') is linear in u, as for a step, and added to the same sums.
        """
        cdef double v, w, r, total = 0.0
        cdef Py_ssize_t j, n = self.n_features
        cdef double* first = &self.weights[0]
        cdef double* units = first + RECIPROCALS * n if self.blocks > RECIPROCALS else NULL
        cdef double* pulls = first + self.blocks * n
        if not tracked:
            ob_shrink(first, first + SUMS * n, units, self.prior, NULL, l1, l2, n)
        for j in range(n if tracked else 0):
            r, w = self.reciprocal(j), self.weights[j]
            if r > 0:
                v = ob_flow(w, r, l1, l2)
                total += l1 * fabs(v) + 0.5 * l2 * v * v + ob_exp1(-l2 * r) * (0.5 * (v - w) * (v - w) / r)
                pulls[j] += (w - v) / r
                self.gained += 0.5 * (w - v) * (w + v) / r
                self.weights[j] = v
        if self.box is not None or self.upper < INFINITY:
            for j in range(n):
                self.weights[j] = self.confined(j, self.weights[j])
        return total


@cython.final
cdef class Flow(Lazy):
    """The flow of a penalty, in place of its proximal step."""

    cdef bint composes(self, Geometry geometry) noexcept nogil:
        return True

    cdef void advance(self, double l1, double l2) noexcept nogil:
        self.threshold += l1 + l2

    cdef void step_row(self, Geometry geometry, Workspace* work, double l1, double l2, bint missed) noexcept nogil:
        cdef double strength = self.l1 + self.l2
        cdef double* t = NULL
        cdef Py_ssize_t i
        if missed:  # l1 is the clock
            t = scratch(work, 4)
            for i in range(work.n):
                t[i] = l1 - self.stamp[work.row.index[i]]
            l1, l2 = self.l1 / strength, self.l2 / strength
        (<AdaptiveGeometry> geometry).flow_row(work, t, l1, l2)

    cdef double caught_up(self, Geometry geometry, Py_ssize_t j) noexcept nogil:
        cdef double t = (self.threshold - self.stamp[j]) * (<AdaptiveGeometry> geometry).reciprocal(j)
        cdef double strength = self.l1 + self.l2
        t = ob_flow(geometry.weights[j], t, self.l1 / strength, self.l2 / strength)
        return (<AdaptiveGeometry> geometry).confined(j, t)

    cdef double shrink_all(self, Geometry geometry, double eta, bint tracked) noexcept nogil:
        return (<AdaptiveGeometry> geometry).flow_all(eta * self.l1, eta * self.l2, tracked)


cdef class AdaGradGeometry(AdaptiveGeometry):
    """h = sqrt(sum g^2 x^2)."""

    @property
    def metric(self):
        """See `AdaptiveGeometry.metric`."""
        return np.sqrt(np.asarray(self.weights)[self.n_features:2 * self.n_features])

    cdef double update_metric(self, Workspace* work, double s, double weight, bint intercept, double* slope,
                              double* intercept_xSx) noexcept nogil:
        cdef Notes* notes = <Notes*> work.notes
        cdef double* sums = block_of(self, work, SUMS, 1)
        notes.q = scratch(work, 2)
        slope[0] = ob_adapt(notes.q, sums, work.x, s, work.n)
        store_block(self, work, SUMS, sums)
        self.intercept_sum += s
        intercept_xSx[0] = reciprocal_root(self.intercept_sum)
        return 1.0


cdef class NormalisedGeometry(AdaptiveGeometry):
    """Base class for metrics of z = x / M, with M the largest |x| of the coordinate so far, the current row included.

    Where M grows, weights are rescaled: the current row is already predicted with the rescaled ones.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
    upper : float, default=inf
    located : bool, default=False
        Whether scores have the units of the target.
    by_deviation : int, default=0
        1: the rate is proportional to the deviation of the targets; 2: of those limited to their robust scale, and
        at most to twice the mean deviation lately, for losses of bounded slope; 3: of these, and at most to the unit
        of a quantile, see `ops/robust.h`.
    """

    cdef readonly bint located          # whether scores have the units of the target
    cdef readonly int by_deviation      # by which deviation of the targets the rate is
    cdef double counted, of_class       # weight of the rows, and of those of the class
    cdef double target_weight, target_mean, target_spread  # of the targets, and their sum of squared deviations
    cdef ob_robust targets              # their scale
    cdef ob_quantile quantile

    def __cinit__(self):
        self.blocks = 3
        self.declare("target_weight", &self.target_weight)
        self.declare("target_mean", &self.target_mean)
        self.declare("target_spread", &self.target_spread)
        self.declare("quantile", &self.quantile, False, sizeof(self.quantile))
        self.declare("targets", &self.targets, False, sizeof(self.targets))
        self.declare("counted", &self.counted, True)
        self.declare("of_class", &self.of_class, True)

    def __init__(self, weights, upper=INFINITY, located=False, by_deviation=0, state=None):
        super().__init__(weights, upper)
        np.asarray(self.weights)[RECIPROCALS * self.n_features:] = OB_UNSEEN
        self.located, self.by_deviation = located, by_deviation
        self._resume(state)

    def _arguments(self):
        return *super()._arguments(), self.located, self.by_deviation

    @property
    def limits(self):
        """See `Geometry.limits`."""
        sums, reciprocals = np.asarray(self.weights)[self.n_features:3 * self.n_features].reshape(2, -1)
        largest = np.divide(1.0, reciprocals, out=np.full(self.n_features, np.inf), where=reciprocals < OB_UNSEEN)
        return (largest, sums.copy(), np.ones_like(sums)) if self.prior else (largest, None, None)

    def metric_of(self, in_units):
        """h = M^2 times a function of the sums, at most the largest float."""
        sums, reciprocals = np.asarray(self.weights)[self.n_features:3 * self.n_features].reshape(2, -1)
        with np.errstate(over="ignore"):
            metric = in_units(sums) / reciprocals / reciprocals
        return np.where(reciprocals < OB_UNSEEN, np.minimum(metric, np.finfo(np.float64).max), 0.0)

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef Notes* notes = <Notes*> work.notes
        cdef double* sums
        if work.twin != NULL and (work.row.index == NULL or (<const Notes*> work.twin.notes).larger):
            work.twin = NULL  # the metric is updated in place
        notes.reciprocals = block_of(self, work, RECIPROCALS, 2) if work.twin == NULL else \
            (<const Notes*> work.twin.notes).reciprocals
        work.w = block_of(self, work, WEIGHTS, 0)
        notes.dot = ob_normalised_dot(work.w, work.x, notes.reciprocals, work.n, &notes.square, &notes.larger)
        if notes.larger:
            sums = block_of(self, work, SUMS, 1)
            ob_rescale_row(scratch(work, 3), work.x, sums, notes.reciprocals, self.prior, work.n)
            work.x = scratch(work, 3)

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef Notes* notes = <Notes*> work.notes
        if notes.larger or self.lazy.active:
            AdaptiveGeometry.evaluate(self, work, c, value, slope)
        else:
            value[0], slope[0] = notes.dot, 0.0

    @cython.final
    cdef double update_largest(self, Workspace* work) noexcept nogil:
        """Update the largest |x| with those of the row, and return sum z^2, which is at most n then."""
        cdef Notes* notes = <Notes*> work.notes
        cdef double* sums
        cdef int larger
        if notes.larger:
            work.x = work.row.x
            sums = block_of(self, work, SUMS, 1)
            ob_update_largest(work.w, sums, notes.reciprocals, work.x, self.prior, work.n)
            store_block(self, work, SUMS, sums)
            store_block(self, work, RECIPROCALS, notes.reciprocals)
            ob_normalised_dot(work.w, work.x, notes.reciprocals, work.n, &notes.square, &larger)
        return notes.square

    @cython.final
    cdef double unit_of_steps(self, double g, double a, double y, double weight) noexcept nogil:
        """The deviation of the targets so far, y included, see `by_deviation`; |y| while all of them are equal."""
        cdef double learned = ob_robust_limit(&self.targets, y) if self.by_deviation >= 2 else y
        cdef double residual = learned - self.target_mean, unit
        self.target_weight += weight
        self.target_mean += residual * (weight / self.target_weight)
        self.target_spread += weight * residual * (learned - self.target_mean)
        unit = sqrt(self.target_spread / self.target_weight) if self.target_spread > 0 else fabs(learned)
        if ob_robust_known(&self.targets):
            unit = min(unit, 2.0 * self.targets.deviation)
        return unit if self.by_deviation < 3 else ob_quantile_unit(&self.quantile, g, fabs(a - y), unit)

    cdef double adapt(self, Workspace* work, double g, double a, double y, double weight, bint exact,
                      double* slope, double* intercept_xSx) noexcept nogil:
        """See `AdaptiveGeometry.adapt`. Where targets have units, an exact first step moves the intercept alone, to the
        first target: the sums are then independent of the distance of the targets from 0."""
        cdef bint first = self.located and exact and intercept_xSx[0] != 0 and self.target_weight == 0
        cdef double deviation = self.unit_of_steps(0.0 if first else g, a, y, weight) if self.located else 1.0
        self.counted, self.of_class = self.counted + weight, self.of_class + weight * y
        cdef double factor = AdaptiveGeometry.adapt(
            self, work, 0.0 if first else g, a, y, weight, exact, slope, intercept_xSx
        )
        if self.by_deviation:
            factor *= deviation
        if first and factor > 0 and g != 0:
            intercept_xSx[0] = FIRST_STEP_FACTOR * fabs(y / g) / factor
        return factor


cdef class NormalisedAdaGradGeometry(NormalisedGeometry):
    """h = M sqrt(sum g^2 x^2), the rate times sqrt(t / N) with N the sum of z^2 over t rows.

    The sums are those of g^2 z^2, so that h = M^2 sqrt(sums). Where M grows from m, weights are multiplied by m / M.
    """

    cdef double rows, norms   # weight of the rows, and sum of their z^2

    def __cinit__(self):
        self.declare("rows", &self.rows, True)
        self.declare("norms", &self.norms, True)

    @property
    def metric(self):
        """See `AdaptiveGeometry.metric`."""
        return self.metric_of(np.sqrt)

    cdef double update_metric(self, Workspace* work, double s, double weight, bint intercept, double* slope,
                              double* intercept_xSx) noexcept nogil:
        cdef Notes* notes = <Notes*> work.notes
        cdef double* sums
        cdef double factor
        self.rows += weight
        self.norms += weight * (self.update_largest(work) + intercept)
        self.intercept_sum += s
        intercept_xSx[0] = reciprocal_root(self.intercept_sum)
        factor = sqrt(self.rows / self.norms) if self.norms > 0 else 1.0
        sums, notes.q = block_of(self, work, SUMS, 1), scratch(work, 2)
        slope[0] = ob_adapt_normalised(notes.q, sums, work.x, notes.reciprocals, s, work.n)
        store_block(self, work, SUMS, sums)
        return factor


cdef class DiagonalNewtonGeometry(NormalisedGeometry):
    """h = M^2 + k sum x^2, k the curvature. The sums are those of k z^2, so that h = M^2 (1 + sums).

    Where M grows, h w is kept: the weight becomes what the same gradients give with a stronger prior. `of_classes`, for
    the log loss, k is times 4 p (1 - p), p = (n_1 + 1/2) / (n + 1) the share of the class so far: its bound 1/4 is
    hundreds of rows of a class of one in a thousand, whose probability would fall like 1 / ln t.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
    upper : float, default=inf
    located, by_deviation : bool or int, default=0
    curvature : float > 0, default=1.0
    flat, of_classes : bool, default=False
        Whether the loss is 0 on an interval of scores; rows there have no curvature. Whether it is the log loss.
    """

    cdef readonly double curvature
    cdef public bint of_classes        # whether k is that of the share of a class so far
    cdef readonly bint flat            # whether the loss is 0 on an interval, where rows have no curvature

    def __cinit__(self):
        self.prior = True

    def __init__(self, weights, upper=INFINITY, located=False, by_deviation=0, curvature=1.0, flat=False,
                 of_classes=False, state=None):
        super().__init__(weights, upper, located, by_deviation)
        self.curvature, self.flat, self.of_classes = curvature, flat, of_classes
        self._resume(state)

    def _arguments(self):
        return *super()._arguments(), self.curvature, self.flat, self.of_classes

    @property
    def metric(self):
        """See `AdaptiveGeometry.metric`."""
        return self.metric_of(lambda sums: 1.0 + sums)

    def same_metric(self, DiagonalNewtonGeometry other):
        """Whether the metrics are the same, and stay so if both learn the same rows."""
        cdef Py_ssize_t n = self.n_features
        alike = self.curvature == other.curvature and not self.flat and not other.flat
        return alike and np.array_equal(self.weights[n:3 * n], other.weights[n:3 * n])

    cdef double update_metric(self, Workspace* work, double s, double weight, bint intercept, double* slope,
                              double* intercept_xSx) noexcept nogil:
        cdef Notes* notes = <Notes*> work.notes
        cdef double k = self.curvature * weight if s > 0 or not self.flat else 0.0
        cdef double* sums
        if self.of_classes:
            k *= 4.0 * (self.of_class + 0.5) * (self.counted - self.of_class + 0.5) / (self.counted + 1.0) ** 2
        if work.twin == NULL:
            self.update_largest(work)
            sums, notes.q = block_of(self, work, SUMS, 1), scratch(work, 2)
            notes.slope = ob_adapt_second_order(notes.q, sums, work.x, notes.reciprocals, k, work.n)
        else:
            sums = scratch(work.twin, 1)
            notes.q, notes.slope = (<const Notes*> work.twin.notes).q, (<const Notes*> work.twin.notes).slope
        slope[0] = notes.slope
        store_block(self, work, SUMS, sums)
        self.intercept_sum += k
        intercept_xSx[0] = 1.0 / (1.0 + self.intercept_sum)
        return 1.0
