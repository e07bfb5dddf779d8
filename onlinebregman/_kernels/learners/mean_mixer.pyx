"""The weighted mean of scores of experts, and what of absurd forecasts is learned: see `ops/robust.h`."""

cimport cython
from libc.math cimport INFINITY, NAN, fabs, isnan

from onlinebregman._kernels.learners.hedge cimport Hedge
from onlinebregman._kernels.learners.mixer cimport AT_ONCE, LEARN, Mixer, Phase
from onlinebregman._kernels.learners.quantile_tracker cimport QuantileTracker
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.ops.robust cimport OB_FIRST, ob_robust, ob_robust_count, ob_robust_known, ob_robust_look
from onlinebregman._kernels.ops.vector cimport ob_nonfinite

cdef double FAR = 3.0            # deviations of the targets


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
    cdef double lo            # range of the forecasts that count
    cdef double hi
    cdef double lowest, highest  # targets, and forecasts that counted, while errors had no limit
    cdef double least, most   # of a row, between which forecasts are learned

    def __cinit__(self, Hedge hedge not None, Loss loss not None, bint gradient, QuantileTracker tracker, limits,
                  state=None):
        self.loss, self.gradient, self.tracker = loss, gradient, tracker
        self.allocate(hedge, hedge.n_experts, 1)
        self.limits = {None: NOTHING, "errors": ERRORS}.get(limits, FORECASTS)
        self.lo, self.hi = limits if self.limits == FORECASTS else (-INFINITY, INFINITY)
        self.lowest, self.highest = INFINITY, -INFINITY
        self.fields.add("targets", &self.targets, sizeof(self.targets))
        self.fields.add("errors", &self.errors, sizeof(self.errors))
        self.fields.add("lo", &self.lo, 4 * sizeof(double))

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, n = self.hedge.n_experts
        cdef double mean, loss, slope, best, target = y
        cdef double* learned = self.work
        if ob_nonfinite(scores, n) != 0 and not (self.limits != NOTHING and self.some_sleep(scores)):
            return NAN
        self.mix(scores, &mean, self.v)
        loss = self.loss.value(mean, y)
        if self.tracker is not None:
            self.error = fabs(y - self.loss.link(mean))
        if self.limits == FORECASTS:
            target = min(max(y, self.lo), self.hi)
        elif self.limits == ERRORS:
            self.limit_errors(y)
        self.clipped = target != y
        for k in range(n):
            self.losses[k] = loss if isnan(scores[k]) else self.loss.value(scores[k], y)
            learned[k] = mean if self.absurd(scores[k]) else scores[k]
            if self.limits == ERRORS:
                learned[k] = min(max(learned[k], self.least), self.most)
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
        if self.limits == ERRORS and self.phase != LEARN:
            for k in range(n if self.errors.moves < OB_FIRST else 0):  # learned without a limit
                self.lowest, self.highest = min(self.lowest, y, learned[k]), max(self.highest, y, learned[k])
            ob_robust_count(&self.errors, y - mean)
            ob_robust_count(&self.targets, y)
        return loss

    cdef bint settle(self, const double* scores, double y, double weight) noexcept nogil:
        if self.limits == ERRORS and self.phase == AT_ONCE:
            self.look()
        return True

    cdef bint enter(self, Phase phase) noexcept nogil:
        cdef bint finite = Mixer.enter(self, phase)
        if phase == AT_ONCE and self.limits == ERRORS:
            self.look()
        return finite

    cdef void look(self) noexcept nogil:
        """Find the range of forecasts for the next row; the weights begin again if they have learned absurd numbers."""
        cdef bint far
        ob_robust_look(&self.targets)
        if ob_robust_known(&self.targets):
            self.lo, self.hi = self.targets.origin + self.targets.lo, self.targets.origin + self.targets.hi
        # beyond a range of few targets by more than its width
        far = 2 * self.targets.n >= OB_FIRST and max(self.lo - self.lowest, self.highest - self.hi) > self.hi - self.lo
        if far and self.hedge.share == 0:  # with a share weights come back by themselves
            self.hedge.forget()
        if far or self.targets.n >= 2 * OB_FIRST:
            self.lowest, self.highest = INFINITY, -INFINITY

    cdef void limit_errors(self, double y) noexcept nogil:
        """Errors far beyond those of the mixture, and the deviation of targets, are learned as the ends of these."""
        cdef double origin = y - self.errors.origin, far = INFINITY
        if self.errors.moves >= OB_FIRST:
            ob_robust_look(&self.errors)
            far = FAR * self.targets.deviation
        self.least, self.most = min(origin - self.errors.hi, y - far), max(origin - self.errors.lo, y + far)

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
            # a single one, to the last digit, so that all have the same costs
            mean = mean / weight if weight > 0 and counting > 1 else equal / counting if counting > 0 else NAN
        out[0] = mean
