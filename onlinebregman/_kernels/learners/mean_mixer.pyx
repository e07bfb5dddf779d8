"""The weighted mean of scores of experts, and what of absurd forecasts is learned: see `ops/robust.h`."""

cimport cython
from libc.math cimport INFINITY, NAN, fabs, isinf, isnan

from onlinebregman._kernels.learners.hedge cimport Hedge
from onlinebregman._kernels.learners.mixer cimport AT_ONCE, JUDGE, LEARN, Mixer, Phase
from onlinebregman._kernels.learners.quantile_tracker cimport QuantileTracker
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.ops.robust cimport (
    OB_FIRST, ob_median, ob_robust, ob_robust_count, ob_robust_known, ob_robust_look
)
from onlinebregman._kernels.ops.vector cimport ob_nonfinite

cdef double FAR = 3.0            # deviations of the targets
cdef double FAR_AT_FIRST = 1e3   # typical errors


cdef enum Limits:             # what is clipped before it is learned
    NOTHING
    FORECASTS
    ERRORS


@cython.final
cdef class MeanMixer(Mixer):
    """The weighted mean of scores. With a loss that is convex in the score its loss is at most that of the experts.

    Parameters
    ----------
    hedge : Hedge
    loss : Loss
    gradient : bool
        Whether weights move by the gradient of the mixture's loss ("eg"), not by the experts' losses ("average").
    tracker : QuantileTracker or None
        Of the errors of the link of the mean.
    limits : "errors", pair of float, or None
        What is learned of absurd rows. Experts whose forecasts are beyond the robust scale of the targets, or NaN, have
        no weight in the row, whose loss is that of the mixture, and errors of the others are clipped to the scale of
        the mixture's. Or a range of targets and forecasts is given.
    """

    cdef int limits
    cdef ob_robust targets    # their scale; with ERRORS for forecasts
    cdef ob_robust errors     # the scale of those of the mixture
    cdef ob_robust held_targets, held_errors  # those at the start of a call of delayed rows
    cdef double lo            # range of the forecasts that count
    cdef double hi
    cdef double least, most   # of a row: forecasts between these are learned as they are,
    cdef double below, above  # and others as one of these

    def __cinit__(self, Hedge hedge not None, Loss loss not None, bint gradient, QuantileTracker tracker, limits,
                  state=None):
        self.loss, self.gradient, self.tracker = loss, gradient, tracker
        self.allocate(hedge, hedge.n_experts, 1)
        if isinstance(limits, tuple):
            self.limits, (self.lo, self.hi) = FORECASTS, limits
        else:
            self.limits = {None: NOTHING, "errors": ERRORS}[limits]
            self.lo, self.hi = -INFINITY, INFINITY
        self.fields.add("targets", &self.targets, sizeof(self.targets))
        self.fields.add("errors", &self.errors, sizeof(self.errors))
        self.fields.add("lo", &self.lo, 2 * sizeof(double))

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, n = self.hedge.n_experts
        cdef double mean, loss, slope, best, target = y
        cdef double* learned = self.work
        if ob_nonfinite(scores, n) != 0 and not self.some_sleep(scores):  # absurd forecasts are finite
            return NAN
        self.mix(scores, &mean, self.v)
        loss = self.loss.value(mean, y)
        if self.tracker is not None:
            self.error = fabs(y - self.loss.link(mean))
        if self.limits == FORECASTS:
            target = min(max(y, self.lo), self.hi)
        elif self.limits == ERRORS:
            self.limit_errors(scores, y)
        self.clipped = target != y
        for k in range(n):
            self.losses[k] = loss if isnan(scores[k]) else self.loss.value(scores[k], y)
            learned[k] = mean if self.absurd(scores[k]) else scores[k]
            if self.limits == ERRORS and not self.least <= learned[k] <= self.most:
                learned[k] = self.below if learned[k] < self.least else self.above
            self.clipped = self.clipped or learned[k] != scores[k]
        if self.clipped:
            mean, best = 0.0, INFINITY
            for k in range(n):
                mean += self.v[k] * learned[k]
                best = min(best, self.losses[k])
            if best == INFINITY:
                return best
            self.cost = self.loss.value(mean, target)
        slope = self.loss.derivative(mean, target) if self.gradient else 0.0
        for k in range(n if self.gradient or self.clipped else 0):
            self.costs[k] = slope * learned[k] if self.gradient else self.loss.value(learned[k], target)
        if self.limits == ERRORS:
            ob_robust_count(&self.errors, y - mean)
            ob_robust_count(&self.targets, y)
            if self.phase == AT_ONCE:
                self.look()
        return loss

    cdef bint enter(self, Phase phase) noexcept nogil:
        if phase == JUDGE:
            self.held_targets, self.held_errors = self.targets, self.errors
        elif phase == LEARN:
            self.targets, self.errors = self.held_targets, self.held_errors
        elif self.limits == ERRORS:
            self.look()
        return Mixer.enter(self, phase)

    cdef void look(self) noexcept nogil:
        """Find the range of forecasts for the next row."""
        ob_robust_look(&self.targets)
        if ob_robust_known(&self.targets):
            self.lo, self.hi = self.targets.origin + self.targets.lo, self.targets.origin + self.targets.hi

    cdef void limit_errors(self, const double* scores, double y) noexcept nogil:
        """Errors far beyond those of the mixture, and the deviation of the targets, are learned as the ends of these.

        While nothing is known of targets, errors are typical up to a multiple of the experts' lower median, as which
        others are learned.
        """
        cdef Py_ssize_t k, n = 0
        cdef double origin = y - self.errors.origin, far = INFINITY, typical
        cdef double* errors = self.work
        if not ob_robust_known(&self.targets):
            for k in range(self.hedge.n_experts):
                if not isnan(scores[k]):
                    errors[n] = fabs(y - scores[k])
                    n += 1
            ob_median(errors, n, 0.0)
            typical = errors[(n - 1) // 2]
            far = FAR_AT_FIRST * typical if typical > 0 else INFINITY
            self.least, self.most, self.below, self.above = y - far, y + far, y - typical, y + typical
            return
        if self.errors.moves >= OB_FIRST:
            ob_robust_look(&self.errors)
            far = FAR * self.targets.deviation
        self.least, self.most = min(origin - self.errors.hi, y - far), max(origin - self.errors.lo, y + far)
        self.below, self.above = self.least, self.most

    cdef bint some_sleep(self, const double* scores) noexcept nogil:
        """Whether all forecasts that are not finite are NaN, of experts that sleep, and there are others."""
        cdef Py_ssize_t k, awake = 0
        for k in range(self.hedge.n_experts):
            if isinf(scores[k]):
                return False
            awake += not isnan(scores[k])
        return self.limits != NOTHING and awake > 0

    cdef bint absurd(self, double score) noexcept nogil:
        """Whether a forecast is beyond its range, or NaN, so that its expert has no weight in the row."""
        return self.limits != NOTHING and not self.lo <= score <= self.hi

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        """The mean of the forecasts within the range; if there are none, of the ends of it that are nearest."""
        cdef Py_ssize_t k, counting = 0, n = self.hedge.n_experts
        cdef double score, mean = 0.0, weight = 0.0, equal = 0.0
        cdef bint outside = self.limits != NOTHING
        for k in range(n):
            outside = outside and self.absurd(scores[k])
        for k in range(n):
            score = scores[k]
            if self.absurd(score):
                if isnan(score) or not outside:
                    continue
                score = min(max(score, self.lo), self.hi)
            counting += 1
            mean += buffer[k] * score
            weight += buffer[k]
            equal += score
        if counting < n:
            mean = mean / weight if weight > 0 else equal / counting if counting > 0 else NAN
        out[0] = mean
