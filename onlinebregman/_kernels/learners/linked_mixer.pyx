"""The mixture of scores for losses that are not of the residual, such as those of counts, costs and proportions."""

cimport cython
from libc.math cimport INFINITY, copysign, fabs, isfinite, isinf, isnan, log

from onlinebregman._kernels.learners.mixer cimport JUDGE
from onlinebregman._kernels.learners.second_order cimport LEAST_CURVATURE
from onlinebregman._kernels.learners.solver cimport line_step
from onlinebregman._kernels.learners.stack cimport Stack
from onlinebregman._kernels.learners.stacked_mixers cimport CentredMixer
from onlinebregman._kernels.ops.robust cimport OB_FIRST, ob_robust, ob_robust_clip, ob_robust_known, ob_robust_limit

cdef double GAIN = 3.0        # of the steps of the shift over those of the best shift of all rows, which lags behind
cdef double SETTLED = 50.0    # equal targets above 0, before which experts are still on their way to the mean
cdef double LEAST_UNIT = 1e3  # in rounding errors, see `stack`: losses of equal targets may all be 0


cdef struct TargetTotals:           # of the targets so far, as they are learned
    double rows
    double mean
    double spread             # sum (weight y)^2 / (sum weight y)^2
    double largest
    double information        # sum of the curvatures of the loss at the predictions, by which the shift moves


@cython.final
cdef class LinkedMixer(CentredMixer):
    """The weighted mean of scores that are shifted, so that totals are right, and clipped, while few targets are known.

    Scores are clipped to a factor n around the mean of the targets, in the terms of the loss: n equal targets, the
    others being 0, would have as uncertain a mean. Without that the losses of the first rows would say more about the
    experts than those of all others. Combinations learn by implicit second-order steps on the loss.

    Parameters
    ----------
    hedge, loss, stack, tracker, memory
        Those of a `CentredMixer`; memory is None.
    limited : bool
        Whether targets are limited to their robust scale, see `ops/robust.h`, also for the learners.
    """

    cdef bint limited         # whether absurd targets are
    cdef TargetTotals totals

    def __cinit__(self, hedge, loss, stack, tracker, memory, bint limited, state=None):
        self.limited = limited
        self.fields.add("totals", &self.totals, sizeof(self.totals))

    cdef void find_targets(self, const double* y, const double* weight, Py_ssize_t n, Py_ssize_t stride,
                           double* targets) noexcept nogil:
        cdef Py_ssize_t i
        cdef ob_robust scale = self.scale
        for i in range(n):
            targets[i * stride] = ob_robust_limit(&scale, y[i * stride]) if self.limited else y[i * stride]

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, n = self.hedge.n_experts
        cdef double m, mixed = self.predict_both(scores, self.v, self.work, &m)
        self.error = fabs(y - self.loss.link(mixed)) if self.known.weight > 0 else -1.0
        self.target = ob_robust_limit(&self.scale, y) if self.limited else y
        if self.watched:
            self.residuals[0] = -self.loss.derivative(mixed, self.target)
            self.residuals[1] = -self.loss.derivative(self.known.shift, self.target)
        self.clipped = self.target != y
        for k in range(n):
            self.losses[k] = self.loss.value(self.work[k], y)
            if self.clipped:
                self.costs[k] = self.cost_of(self.work[k])
        if self.clipped:
            self.cost = self.cost_of(m)
        if self.stack is not None and not self.learn_stack(m, &mixed, y, 0.0, weight):
            return INFINITY
        if self.phase != JUDGE and not self.forget_absurd() and -INFINITY < self.known.lo < self.known.hi:
            self.recalibrate(mixed, weight)
        return self.loss.value(m, y)

    cdef bint squeeze(self, double* p, Py_ssize_t n, double shift) noexcept nogil:
        return False

    cdef double cost_of(self, double p) noexcept nogil:
        return self.loss.value(p, self.target)

    cdef double unit_of(self, Stack stack) noexcept nogil:
        return stack.scale(LEAST_UNIT)

    cdef bint learn_combinations(self, double m, double unit, double weight) noexcept nogil:
        """Ridge regression of a target z - g / h with the weight h is the implicit step on the loss.

        z is the score after that step, g and h are the slope and the curvature there.
        """
        cdef Py_ssize_t j, n = self.hedge.n_experts
        cdef double* x = self.work + n
        cdef double z, q, h, share
        for j in range(self.stack.n if unit > 0 else 0):
            z = m + unit * self.stack.ridge(j, x, x + n, &share)
            q = max(1.0 / share - 1.0, 0.0)
            z -= q * line_step(self.loss, z, q, weight, self.target)
            h = max(self.loss.curvature(z, self.target), LEAST_CURVATURE)
            z -= self.loss.derivative(z, self.target) / h
            if not isfinite(z) or h == INFINITY:  # it had gone to where the loss overflows
                self.stack.restart(j)
                continue
            if not self.stack.learn(j, x, (z - m) / unit, weight * h, x + n):
                return False
        if self.known.lo < self.known.hi:  # predictions depend on the experts
            self.stack.residuals.weight += weight
            self.stack.residuals.squares += 2.0 * weight * self.cost_of(m)
        return isfinite(self.stack.residuals.squares)

    cdef bint forget_absurd(self) noexcept nogil:
        """Forget targets that the scale has found to be absurd since they were learned; whether there were any."""
        cdef TargetTotals* totals = &self.totals
        if not (self.limited and ob_robust_known(&self.scale) and self.scale.moves <= OB_FIRST
                and totals.largest > self.scale.origin + self.scale.hi):
            return False
        totals.mean = self.scale.origin + ob_robust_clip(&self.scale, totals.mean - self.scale.origin)
        totals.largest = self.scale.origin + self.scale.hi
        totals.spread, totals.information, self.stats.shift = 1.0 / totals.rows, 0.0, 0.0
        return True

    cdef void recalibrate(self, double mixed, double weight) noexcept nogil:
        """An implicit Newton step of the shift on the loss of a prediction, so that its slopes have the mean 0."""
        cdef double rate
        mixed += self.stats.shift - self.known.shift
        self.totals.information += weight * max(self.loss.curvature(mixed, self.target), LEAST_CURVATURE)
        rate = GAIN / self.totals.information
        if self.totals.spread * SETTLED < 1.0:
            self.stats.shift -= rate * line_step(self.loss, mixed, rate, weight, self.target)

    cdef bint settle(self, const double* scores, double y, double weight) noexcept nogil:
        """Count a target. While all are 0, or at another end of the domain, predictions are as if there were a one."""
        cdef TargetTotals* totals = &self.totals
        cdef double part, score
        totals.rows += 1.0
        self.stats.weight += weight
        totals.mean += weight / self.stats.weight * (self.target - totals.mean)
        totals.largest = max(totals.largest, self.target)
        part = self.stats.weight * totals.mean
        part = weight * self.target / part if part > 0 else 0.0
        totals.spread = totals.spread * (1.0 - part) * (1.0 - part) + part * part
        score = self.loss.score_of(totals.mean)
        if isnan(score):
            self.stats.lo, self.stats.hi = -INFINITY, INFINITY
        elif isinf(score):
            self.stats.lo = self.stats.hi = copysign(log(totals.rows + 1.0), score)
        else:
            self.stats.lo, self.stats.hi = score + log(totals.spread), score - log(totals.spread)
        return isfinite(self.hedge.totals.loss)
