"""Mixers of learners with further parts to learn: centred targets, calibrations, and combinations of the experts.

CentredMixer: every score is an expert's, and the mixture's score is their weighted mean.

ProbabilityMixer: every learner is an expert, whose scores give probabilities of the classes; the mixture's
probabilities are the weighted mean of theirs. Under log loss at rate 1 that is Bayes' rule: the mixture's log loss is
at most that of the best expert + ln K.

Either may have a `stack` of linear combinations of the experts, which are mixed with the mixture itself.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, exp, fabs, isfinite, log, tanh
from libc.string cimport memset

from onlinebregman._kernels.learners.hedge cimport Hedge
from onlinebregman._kernels.learners.links cimport (
    CALIBRATED, SOFTMAX, Calibration, calibrate, link_of, log_sigmoid, sigmoid
)
from onlinebregman._kernels.learners.mixer cimport AT_ONCE, JUDGE, LEARN, Mixer, Phase
from onlinebregman._kernels.learners.quantile_tracker cimport QuantileTracker
from onlinebregman._kernels.learners.stack cimport VOTES, Stack
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.ops.hedge cimport ob_log_losses, ob_mix_loss, ob_mix_two

# Rows whose predictions do not depend on centred learners: 0, then the first target, to which all of them are clipped.
cdef enum:
    UNLEARNED = 2

cdef double TINY = 1e-300     # lower bound of probabilities before their logarithms are taken
cdef double FAR = 10.0        # logits of experts are clipped to this distance from the mixture's, for combinations
cdef double VOTE_POWER = 8.0  # votes are the experts' probabilities to this power, normalised
CONSTANTS = (TINY, FAR, VOTE_POWER, VOTES)  # for exports and explanations, which compute the same


cdef inline double from_origin(TargetStats* stats, double y) noexcept nogil:
    """The distance of the next target from the first one."""
    if stats.weight == 0:
        stats.origin = y
    return y - stats.origin


cdef inline void update_stats(TargetStats* stats, double y, double weight) noexcept nogil:
    """Count a target, given as its distance from the first one."""
    stats.rows += 1.0
    stats.weight += weight
    stats.mean += weight / stats.weight * (y - stats.mean)
    stats.lo, stats.hi = min(stats.lo, y), max(stats.hi, y)


@cython.final
cdef class CentredMixer(Mixer):
    """The weighted mean of scores of learners that learn targets minus their mean so far.

    Predictions are clipped to the range of the targets so far. The first two targets, whose predictions do not depend
    on learners, they learn as 0. Targets and predictions are distances from the first target, so that what is learned
    does not depend on a constant that is added to all targets, nor does it lose digits. The loss that the first
    prediction, 0, adds to that of the first target itself is the same for all experts, and only in `first_loss`.

    Parameters
    ----------
    hedge : Hedge
        Of one expert for each score.
    loss : Loss
    stack : Stack or None
        Of combinations of the scores.
    tracker : QuantileTracker or None
        Of the errors of all predictions but the first, 0.
    """

    def __cinit__(self, Hedge hedge not None, Loss loss not None, Stack stack, QuantileTracker tracker, state=None):
        cdef Py_ssize_t n = hedge.n_experts
        self.loss, self.stack, self.tracker = loss, stack, tracker
        if stack is not None and stack.n_experts != n:
            raise ValueError(f"combinations must be of {n} experts; got {stack.n_experts}")
        self.allocate(hedge, n, 1, n + (0 if stack is None else 2 * n + 1 + 2 * stack.hedge.lanes))
        self.stats, self.known = TargetStats(0.0, 0.0, 0.0, INFINITY, -INFINITY, 0.0, 0.0), &self.stats
        self.learned.add("stats", &self.stats, sizeof(self.stats))

    @property
    def target_stats(self):
        """A dict of the `TargetStats`."""
        return self.stats

    cdef double first_loss(self) noexcept nogil:
        return self.stats.first_loss

    cdef void find_targets(self, const double* y, const double* weight, Py_ssize_t n, Py_ssize_t stride,
                           double* targets) noexcept nogil:
        cdef Py_ssize_t i
        cdef double distance
        cdef TargetStats stats = self.stats
        for i in range(n):
            distance = from_origin(&stats, y[i * stride])
            targets[i * stride] = distance - stats.mean if stats.rows >= UNLEARNED else 0.0
            update_stats(&stats, distance, weight[i])

    cdef bint enter(self, Phase phase) noexcept nogil:
        if phase == JUDGE:
            self.held, self.known = self.stats, &self.held
        elif phase == AT_ONCE:
            self.known = &self.stats
        return Mixer.enter(self, phase)

    cdef double prediction_of(self, double score) noexcept nogil:
        """The expert's prediction for a score, a distance: the mean added, and clipped to the range of the targets."""
        return min(max(score + self.known.mean, self.known.lo), self.known.hi) if self.known.weight > 0 else 0.0

    cdef double predict_both(self, const double* scores, const double* v, double* p, double* m) noexcept nogil:
        """The prediction of mixture and combinations; m: that of the mixture, with the weights v.

        Also sets the experts' predictions p and, in the memory that follows, see `buffer_size`: the features x of the
        combinations, n + 1 numbers of working memory, the weights u and the predictions q of the mixture and of them.
        """
        cdef Py_ssize_t k, j, n = self.hedge.n_experts
        cdef double* x = p + n
        cdef double* u = x + 2 * n + 1
        cdef double* q
        cdef double mixed, scale
        m[0] = 0.0
        for k in range(n):
            p[k] = self.prediction_of(scores[k])
            m[0] += v[k] * p[k]
        if self.stack is None:
            return m[0]
        q, scale = u + self.stack.hedge.lanes, self.stack.scale(self.known.hi - self.known.lo)
        self.stack.hedge.weigh(u)
        mixed, q[0] = u[0] * m[0], m[0]
        for k in range(n):
            x[k] = (p[k] - m[0]) / scale if scale > 0 else 0.0
        for j in range(self.stack.n):
            q[1 + j] = m[0]
            if scale > 0:
                q[1 + j] = min(max(m[0] + scale * self.stack.predict(j, x, x + n), self.known.lo), self.known.hi)
            mixed += u[1 + j] * q[1 + j]
        return mixed

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, n = self.hedge.n_experts
        cdef double mixed, m
        if self.hedge.totals.rows == 0:
            self.stats.origin = y
        if self.known.weight == 0 and self.phase != LEARN:
            self.stats.first_loss += weight * (self.loss.value(0.0, y) - self.loss.value(self.stats.origin, y))
        y -= self.stats.origin
        mixed = self.predict_both(scores, self.v, self.work, &m)
        self.error = fabs(y - mixed) if self.known.weight > 0 else -1.0
        if self.stack is not None and not self.learn_stack(self.work + n, m, mixed, y, weight):
            return INFINITY
        for k in range(n):
            self.losses[k] = self.loss.value(self.work[k], y)
        return self.loss.value(m, y)

    cdef bint learn_stack(self, double* x, double m, double mixed, double y, double weight) noexcept nogil:
        """The combinations learn a row of features x, predicted as m and `mixed`; returns False on overflow."""
        cdef Py_ssize_t j, n = self.hedge.n_experts
        cdef double scale = self.stack.scale(self.known.hi - self.known.lo)
        cdef double* u = x + 2 * n + 1
        cdef double* q = u + self.stack.hedge.lanes
        if self.phase != LEARN:
            for j in range(1 + self.stack.n):
                q[j] = weight * self.loss.value(q[j], y)
            mixed = weight * self.loss.value(mixed, y)
            self.stack.hedge.count(q, mixed, u, q, mixed)
        if self.phase == JUDGE:
            return isfinite(self.stack.hedge.totals.loss)
        for j in range(self.stack.n if scale > 0 else 0):
            if not self.stack.learn(j, x, (y - m) / scale, weight, x + n):
                return False
        if self.known.weight > 0:
            self.stack.residuals.weight += weight
            self.stack.residuals.squares += weight * (y - m) * (y - m)
        return isfinite(self.stack.hedge.totals.loss) and isfinite(self.stack.residuals.squares)

    cdef bint settle(self, const double* scores, double y, double weight) noexcept nogil:
        cdef double loss = self.stats.first_loss + self.hedge.totals.loss
        update_stats(&self.stats, from_origin(&self.stats, y), weight)
        return isfinite(loss)

    cdef Py_ssize_t buffer_size(self) noexcept nogil:
        cdef Py_ssize_t n = self.hedge.n_experts
        return self.hedge.lanes + n + (0 if self.stack is None else 2 * n + 1 + 2 * self.stack.hedge.lanes)

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        cdef double m
        out[0] = self.stats.origin + self.predict_both(scores, buffer, buffer + self.hedge.lanes, &m)


# Probabilities of classes go with `width` logits: one for two classes, log p_1 - log p_0, else log p_c + any constant.


cdef inline double largest(const double* a, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t c
    cdef double most = a[0]
    for c in range(1, n):
        most = max(most, a[c])
    return most


cdef double log_softmax(const double* a, Py_ssize_t width, Py_ssize_t y) noexcept nogil:
    """ln p_y from logits."""
    cdef double most, total = 0.0
    cdef Py_ssize_t c
    if width == 1:
        return log_sigmoid(a[0] if y else -a[0])
    most = largest(a, width)
    for c in range(width):
        total += exp(a[c] - most)
    return a[y] - most - log(total)


cdef void add_softmax(double* a, Py_ssize_t width, double weight, double* p) noexcept nogil:
    """Add the probabilities from logits, times a weight; the logits are overwritten."""
    cdef double most, total = 0.0
    cdef Py_ssize_t c
    if width == 1:
        p[1] += weight * sigmoid(a[0])
        p[0] += weight * sigmoid(-a[0])
        return
    most = largest(a, width)
    for c in range(width):
        a[c] = exp(a[c] - most)
        total += a[c]
    for c in range(width):
        p[c] += weight * a[c] / total


@cython.final
cdef class ProbabilityMixer(Mixer):
    """The weighted mean of the probabilities of classes.

    Parameters
    ----------
    hedge : Hedge
        Of one expert for each learner, at rate 1.
    n_classes : int
        At least 1.
    links : sequence of {"softmax", "logistic", "calibrated"}
        How each expert's scores (one for two classes, else one for each class) are mapped to probabilities.
    stack : Stack or None
        Of combinations of the logarithms of the experts' probabilities.
    separate : bool, default=False
        Whether experts have a score for each of two classes, too. There may be a single class, of probability 1.
    """

    def __cinit__(self, Hedge hedge not None, n_classes, links, Stack stack, separate=False, state=None):
        cdef bint each = separate is True  # without this argument, the state has its place
        self.n_classes, self.links, self.stack = n_classes, tuple(links), stack
        self.width = 1 if n_classes == 2 and not each else n_classes
        if n_classes < 2 - each:
            raise ValueError(f"n_classes must be {2 - each} or more; got {n_classes}")
        if len(self.links) != hedge.n_experts:
            raise ValueError(f"links must have one entry for each of {hedge.n_experts} experts; got {len(self.links)}")
        if stack is not None and stack.n_experts != hedge.n_experts:
            raise ValueError(f"combinations must be of {hedge.n_experts} experts; got {stack.n_experts}")
        self.hedge = hedge
        self.allocate(hedge, self.width * hedge.n_experts, n_classes, n_classes + (
            0 if stack is None else 2 * hedge.n_experts + 1 + n_classes + 2 * stack.hedge.lanes + self.buffer_size()
        ))
        known = "softmax", "logistic", "calibrated"
        self.kinds = np.array([link_of(link, known) for link in self.links], dtype=np.intc)
        self.calibrations = np.tile([1.0, 0.0, 1.0, 0.0, 1.0], (hedge.n_experts, 1))
        self.scales = <Calibration*> &self.calibrations[0, 0]
        self.learned.add("calibrations", self.scales, self.calibrations.nbytes)

    @property
    def of_two(self):
        """Whether experts have one score for two classes."""
        return self.width < self.n_classes

    def with_classes(self, n_classes):
        """A mixer of the same experts, with these weights, for more classes that have a score each."""
        _, (*_, state) = self.__reduce__()
        return ProbabilityMixer(self.hedge, n_classes, self.links, self.stack, True, state)

    @property
    def scaling(self):
        """(slopes, offsets) of the experts' logits, of shape (n_experts,) each; new arrays."""
        return np.array(self.calibrations)[:, :2].T

    cdef Py_ssize_t buffer_size(self) noexcept nogil:
        cdef Py_ssize_t lanes = self.hedge.lanes, length = lanes + max(2 * lanes, self.n_classes)
        return length if self.stack is None else length + (lanes + 2) * self.width + self.stack.hedge.lanes

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, label = <Py_ssize_t> y, n = self.hedge.n_experts
        cdef double mixed
        cdef double* a = self.work
        if not 0 <= label < self.n_classes:
            return INFINITY
        if self.n_classes == 1:
            memset(self.losses, 0, n * sizeof(double))
            return 0.0
        if self.width == 1:
            self.scale(scores, a)
            ob_log_losses(self.losses, a, 1.0 if label else -1.0, n)
        else:
            for k in range(n):
                self.find_logits(k, scores, a)
                self.losses[k] = -log_softmax(a, self.width, label)
        mixed = ob_mix_loss(self.v, self.losses, a, n)
        if self.stack is not None and not self.learn_stack(
            scores, label, weight, mixed, a + max(self.hedge.lanes, self.n_classes)
        ):
            return INFINITY
        return mixed

    cdef bint settle(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.hedge.n_experts if self.n_classes > 1 else 0):
            if self.kinds[k] == CALIBRATED:
                calibrate(&self.scales[k], scores + k * self.width, self.width, <Py_ssize_t> y, weight)
        return True

    cdef bint learn_stack(self, const double* scores, Py_ssize_t y, double weight, double lost,
                          double* buffer) noexcept nogil:
        """The combinations learn a row on which the mixture had the loss `lost`, returns False on overflow."""
        cdef Py_ssize_t k, c, j, n = self.hedge.n_experts, width = self.width
        cdef double mixed, slope
        cdef double* u = buffer   # weights of mixture and combinations, then their losses, then a buffer
        cdef double* losses = u + self.stack.hedge.lanes
        cdef double* t = losses + self.stack.hedge.lanes
        cdef double* g = t + self.stack.hedge.lanes
        cdef double* z = g + n
        cdef double* p = z + n + 1
        cdef double* rises = p + self.n_classes - width  # derivatives of the log probability by the logits
        cdef double* logits = p + self.n_classes
        cdef double* a = logits + width
        cdef double* x = a + width
        self.mixed(scores, self.v, p, x + n * width)
        self.differences(scores, p, logits, x)
        self.stack.hedge.weigh(u)
        losses[0] = lost
        for j in range(self.stack.n):
            if j == VOTES:
                self.votes(scores, logits, x)
            self.combine(j, logits, x, a)
            losses[1 + j] = -log_softmax(a, width, y)
            if self.phase == JUDGE:
                continue
            for c in range(self.n_classes):
                p[c] = c == y
            add_softmax(a, width, -1.0, p)
            slope = 1.0
            for k in range(n):
                g[k] = 0.0
                for c in range(width):
                    g[k] += x[k * width + c] * rises[c]
                slope += self.stack.b[j, k] * g[k]
            if not self.stack.learn(j, g, slope, weight, z):
                return False
        if self.phase == LEARN:
            return True
        mixed = ob_mix_loss(u, losses, t, 1 + self.stack.n)
        for j in range(1 + self.stack.n):
            losses[j] *= weight
        self.stack.hedge.count(losses, weight * mixed, u, losses, weight * mixed)
        return isfinite(self.stack.hedge.totals.loss)

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        cdef Py_ssize_t c, j, n = self.hedge.n_experts, lanes = self.hedge.lanes
        cdef double* more = buffer + lanes
        cdef double* logits = more + max(2 * lanes, self.n_classes)
        cdef double* a = logits + self.width
        cdef double* x = a + self.width
        cdef double* u = x + n * self.width
        out[0] = 1.0
        if self.n_classes > 1:
            self.mixed(scores, buffer, out, more)
        if self.stack is None or self.n_classes == 1:
            return
        self.differences(scores, out, logits, x)
        self.stack.hedge.weigh(u)
        for c in range(self.n_classes):
            out[c] *= u[0]
        for j in range(self.stack.n):
            if j == VOTES:
                self.votes(scores, logits, x)
            self.combine(j, logits, x, a)
            add_softmax(a, self.width, u[1 + j], out)

    cdef void find_logits(self, Py_ssize_t k, const double* scores, double* a) noexcept nogil:
        """Logits of the probabilities of an expert, from the scores of all."""
        cdef Py_ssize_t c
        for c in range(self.width):
            a[c] = self.scales[k].slope * scores[k * self.width + c] + self.scales[k].offset
            if self.width > 1 and self.kinds[k] != SOFTMAX:
                a[c] = log_sigmoid(a[c])

    cdef void mixed(self, const double* scores, const double* v, double* p, double* buffer) noexcept nogil:
        """Compute the weighted mean of the experts' probabilities."""
        cdef Py_ssize_t k, c, n = self.hedge.n_experts
        if self.width == 1:
            self.scale(scores, buffer)
            ob_mix_two(v, buffer, buffer + self.hedge.lanes, &p[1], &p[0], n)
            return
        for c in range(self.n_classes):
            p[c] = 0.0
        for k in range(n):
            self.find_logits(k, scores, buffer)
            add_softmax(buffer, self.width, v[k], p)

    cdef void differences(self, const double* scores, const double* p, double* logits, double* x) noexcept nogil:
        """The mixture's logits, shifted to the largest 0 if there are three or more; x: the experts' minus these."""
        cdef Py_ssize_t k, c, width = self.width
        cdef double most
        if width == 1:
            logits[0] = log(max(p[1], TINY)) - log(max(p[0], TINY))
        else:
            most = largest(p, width)
            for c in range(width):
                logits[c] = log(max(p[c], TINY)) - log(most)
        for k in range(self.hedge.n_experts):
            self.find_logits(k, scores, x)
            most = largest(x, width) if width > 1 else 0.0
            for c in range(width):
                x[c] = min(max(x[c] - most - logits[c], -FAR), FAR)
            x += width

    cdef void votes(self, const double* scores, double* logits, double* x) noexcept nogil:
        """What their combination has instead of `differences`: logits of 0, and the experts' votes."""
        cdef Py_ssize_t k, c, width = self.width
        for k in range(self.hedge.n_experts):
            self.find_logits(k, scores, x)
            if width == 1:
                x[0] = tanh(0.5 * VOTE_POWER * x[0])  # the difference of both votes
            else:
                for c in range(width):
                    logits[c], x[c] = VOTE_POWER * x[c], 0.0
                add_softmax(logits, width, 1.0, x)
            x += width
        memset(logits, 0, width * sizeof(double))

    cdef void combine(self, Py_ssize_t j, const double* logits, const double* x, double* out) noexcept nogil:
        """Compute the logits of a combination."""
        cdef Py_ssize_t k, c
        for c in range(self.width):
            out[c] = logits[c]
        for k in range(self.hedge.n_experts):
            for c in range(self.width):
                out[c] += self.stack.b[j, k] * x[k * self.width + c]

    cdef void scale(self, const double* scores, double* scaled) noexcept nogil:
        """Compute the experts' logits of two classes."""
        cdef Py_ssize_t k
        for k in range(self.hedge.n_experts):
            self.find_logits(k, scores, scaled + k)
