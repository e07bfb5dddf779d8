"""Mixers of learners with further parts to learn: centred targets, calibrations, and combinations of the experts.

CentredMixer: every score is an expert's, and the mixture's score is their weighted mean.

ProbabilityMixer: every learner is an expert, whose scores give probabilities of the classes; the mixture's
probabilities are the weighted mean of theirs. Under log loss at rate 1 that is Bayes' rule: the mixture's log loss is
at most that of the best expert + ln K. With a share, less weight is redistributed where classes are rare: rows of one
in a thousand are what tells experts apart, and weights would be equal again before the next one. The part is the
harmonic mean of the classes' counts over their arithmetic mean.

Either may have a `stack` of linear combinations of the experts, which are mixed with the mixture itself, and then a
`memory`, whose corrections are mixed with the result in the same way: two stages of one kind.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, fabs, isfinite, log, sqrt, tanh
from libc.string cimport memset

from onlinebregman._kernels.learners.hedge cimport Hedge
from onlinebregman._kernels.learners.links cimport (
    CALIBRATED, SOFTMAX, Calibration, add_softmax, calibrate, largest, link_of, log_sigmoid, log_softmax
)
from onlinebregman._kernels.learners.memory cimport LABEL_FEATURES, LabelMemory, TargetMemory, width_of
from onlinebregman._kernels.learners.mixer cimport AT_ONCE, JUDGE, LEARN, Mixer, Phase
from onlinebregman._kernels.learners.quantile_tracker cimport QuantileTracker
from onlinebregman._kernels.learners.stack cimport VOTES, Stack
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.losses.loss import QuantileLoss
from onlinebregman._kernels.ops.hedge cimport ob_log_losses, ob_mix_loss, ob_mix_two
from onlinebregman._kernels.ops.vector cimport OB_LANES
from onlinebregman._kernels.ops.robust cimport (
    OB_FIRST, ob_quantile_unit, ob_robust, ob_robust_clip, ob_robust_count, ob_robust_known
)

cdef double TINY = 1e-300     # lower bound of probabilities before their logarithms are taken
cdef double FAR = 10.0        # logits of experts are clipped to this distance from the mixture's, for combinations
cdef double VOTE_POWER = 8.0  # votes are the experts' probabilities to this power, normalised
cdef double OFFSET_STEP = 0.01  # units
cdef double MEMORY = 1000.0   # rows, of which an excess is the sum
cdef double REPAIR = 0.06     # deviations, over the standard deviation of a target's side
CONSTANTS = (TINY, FAR, VOTE_POWER, VOTES)  # for exports and explanations, which compute the same


def surprises(p):
    """A power of -ln p, p probabilities of labels, whose quantiles are about those of |z|, z normal."""
    with np.errstate(divide="ignore"):
        return np.sqrt(np.sqrt(np.maximum(-np.log(p), 0.0)))


cdef inline void follow(TargetStats* stats, const ob_robust* scale) noexcept nogil:
    """Bring what the first targets said into the interval of the scale, of which the origin may have moved."""
    cdef bint moved = stats.weight > 0 and stats.origin != scale.origin
    stats.origin = scale.origin
    if not ob_robust_known(scale) or scale.moves > OB_FIRST or not (
            moved or stats.lo < scale.lo or stats.hi > scale.hi):
        return
    if moved:
        stats.lo, stats.hi = scale.lo, scale.hi
    stats.shift = scale.mean
    stats.lo, stats.hi = max(stats.lo, scale.lo), min(stats.hi, scale.hi)


cdef inline void update_stats(TargetStats* stats, double y, double weight) noexcept nogil:
    """Count a target, given as its distance from the origin."""
    stats.weight += weight
    stats.shift += weight / stats.weight * (y - stats.shift)
    stats.lo, stats.hi = min(stats.lo, y), max(stats.hi, y)


cdef inline Py_ssize_t stage_size(Stack stack) noexcept nogil:
    """Numbers that `predict_stage` and `count_stage` need: features, working memory, weights, predictions and costs."""
    return 0 if stack is None else 2 * stack.n_experts + 1 + 3 * stack.hedge.lanes


cdef class CentredMixer(Mixer):
    """The weighted mean of scores of learners that learn targets minus their mean so far.

    Predictions are clipped to the range of the targets so far. Targets far from the others are learned as the ends of
    their robust scale, see `ops/robust.h`, and so are predictions: costs are losses of these, the rest of a loss is
    only reported. Until the scale is known, predictions do not depend on learners, which learn targets as 0, and cost
    nothing. Targets and predictions are distances from an origin, so that what is learned does not depend on a constant
    that is added to all targets, nor does it lose digits. The loss that the first prediction, 0, adds to that of the
    first target itself is the same for all experts, and only in `first_loss`. To what is predicted as a quantile an
    offset is added, by which the shares of targets below and above are right; weights are learned without it.

    Parameters
    ----------
    hedge : Hedge
        Of one expert for each score.
    loss : Loss
    stack : Stack or None
        Of combinations of the scores.
    tracker : QuantileTracker or None
        Of the errors of all predictions but the first, 0.
    memory : TargetMemory or None
        Without effect for quantiles other than the median.
    """

    def __cinit__(self, Hedge hedge not None, Loss loss not None, Stack stack, QuantileTracker tracker,
                  TargetMemory memory, *more):
        cdef Py_ssize_t n = hedge.n_experts
        self.quantile = loss.quantile if isinstance(loss, QuantileLoss) else 0.0
        memory = memory if self.quantile in (0.0, 0.5) else None
        self.loss, self.stack, self.tracker, self.memory = loss, stack, tracker, memory
        if stack is not None and stack.n_experts != n:
            raise ValueError(f"combinations must be of {n} experts; got {stack.n_experts}")
        self.allocate(hedge, n, 1, n + self.stage_length())
        self.stats.lo, self.stats.hi, self.known = INFINITY, -INFINITY, &self.stats
        self.fields.add("stats", &self.stats, sizeof(self.stats))
        self.fields.add("scale", &self.scale, sizeof(self.scale))

    @property
    def target_stats(self):
        """A dict of the `TargetStats`; the `origin` is that of predictions, with the offset."""
        return {**self.stats, "origin": self.stats.origin + self.stats.offset}

    @property
    def units(self):
        """See `unit_of`: of the stack and the memory, 0 without one."""
        stacks = self.stack, None if self.memory is None else self.memory.stack
        return [0.0 if stack is None else self.unit_of(stack) for stack in stacks]

    cdef double unit_of(self, Stack stack) noexcept nogil:
        """The unit of the features and targets of combinations; 0 if it is unknown."""
        return stack.scale(self.known.hi - self.known.lo)

    cdef double first_loss(self) noexcept nogil:
        return self.stats.first_loss

    cdef void find_targets(self, const double* y, const double* weight, Py_ssize_t n, Py_ssize_t stride,
                           double* targets) noexcept nogil:
        cdef Py_ssize_t i
        cdef double target
        cdef TargetStats stats = self.stats
        cdef ob_robust scale = self.scale
        for i in range(n):
            target = ob_robust_count(&scale, y[i * stride])
            follow(&stats, &scale)
            targets[i * stride] = target - stats.shift if ob_robust_known(&scale) else 0.0
            update_stats(&stats, target, weight[i])

    cdef bint enter(self, Phase phase) noexcept nogil:
        if phase == JUDGE:
            self.held, self.known, self.held_scale = self.stats, &self.held, self.scale
        elif phase == LEARN:
            self.scale = self.held_scale
        elif phase == AT_ONCE:
            self.known = &self.stats
        return Mixer.enter(self, phase)

    cdef double predict_both(self, const double* scores, const double* v, double* p, double* m) noexcept nogil:
        """The prediction of mixture and combinations; m: that of the mixture, with the weights v.

        Also sets the experts' predictions p and, in the memory that follows, what `predict_stage` sets.
        """
        cdef Py_ssize_t k, n = self.hedge.n_experts
        cdef const TargetStats* known = self.known
        cdef double* x = p + n
        cdef double unit
        m[0] = 0.0
        for k in range(n):  # distances: the mean added, and clipped to the range of the targets
            p[k] = min(max(scores[k] + known.shift, known.lo), known.hi) if known.weight > 0 else 0.0
            m[0] += v[k] * p[k]
        if self.stack is None:
            return m[0]
        unit = self.unit_of(self.stack)
        for k in range(n):
            x[k] = (p[k] - m[0]) / unit if unit > 0 else 0.0
        return self.predict_stage(self.stack, m[0], unit, x)

    cdef double predict_stage(self, Stack stack, double m, double unit, double* x) noexcept nogil:
        """The prediction of a forecast m and its combinations with features x.

        Also sets, after x and n + 1 numbers of working memory, their weights u and predictions q; see `stage_size`.
        """
        cdef Py_ssize_t j, n = stack.n_experts
        cdef double* u = x + 2 * n + 1
        cdef double* q = u + stack.hedge.lanes
        cdef double mixed
        stack.hedge.weigh(u)
        mixed, q[0] = u[0] * m, m
        for j in range(stack.n):
            q[1 + j] = m
            if unit > 0:
                q[1 + j] = min(max(m + unit * stack.predict(j, x, x + n), self.known.lo), self.known.hi)
            mixed += u[1 + j] * q[1 + j]
        return mixed

    cdef double remember(self, double mixed, double* x) noexcept nogil:
        """The prediction with the memory's corrections; x as in `predict_stage`."""
        cdef double unit
        if self.memory is None:
            return mixed
        unit = self.unit_of(self.memory.stack)
        (<TargetMemory> self.memory).find_features(self.known.origin, mixed, unit, x)
        return self.predict_stage(self.memory.stack, mixed, unit, x)

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, n = self.hedge.n_experts
        cdef double distance, shift, mixed, corrected, loss, m, offset = self.known.offset
        cdef double* p = self.work
        if self.hedge.totals.rows == 0:
            self.known.origin = y
        if self.known.weight == 0 and self.phase != LEARN:
            self.stats.first_loss += weight * (self.loss.value(0.0, y) - self.loss.value(self.known.origin, y))
        distance = y - self.known.origin
        mixed = self.predict_both(scores, self.v, p, &m)
        corrected = self.remember(mixed, p + n + stage_size(self.stack))
        self.error = fabs(distance - (corrected + offset)) if self.known.weight > 0 else -1.0
        for k in range(n):
            self.losses[k] = self.loss.value(p[k], distance)
        loss = self.loss.value(m + offset, distance)
        self.target = ob_robust_count(&self.scale, y)
        shift = self.known.origin - self.scale.origin
        self.clipped = self.squeeze(p, n, shift) or self.target != distance or not ob_robust_known(&self.scale)
        self.clipped = self.clipped or offset != 0
        if self.clipped:
            m = 0.0
            for k in range(n):
                m += self.v[k] * p[k]
                self.costs[k] = self.cost_of(p[k])
            self.cost = self.cost_of(m)
        if self.watched:
            self.residuals[0] = -self.loss.derivative(ob_robust_clip(&self.scale, corrected + shift), self.target)
            self.residuals[1] = -self.loss.derivative(self.known.shift + shift, self.target)
        if self.phase != JUDGE:
            follow(&self.stats, &self.scale)
        if self.stack is None:
            mixed = m
        elif not self.learn_stack(m, &mixed, distance, shift, weight):
            return INFINITY
        if self.memory is not None and not self.learn_memory(mixed, corrected, distance, shift, weight):
            return INFINITY
        if self.quantile > 0 and self.phase != JUDGE and self.scale.moves > OB_FIRST:
            self.move_offset(self.loss.derivative(corrected + offset, distance), distance - corrected, weight)
        return loss

    cdef void move_offset(self, double slope, double residual, double weight) noexcept nogil:
        """Steps depend on the side of the target only, so that the shares of both sides become right.

        Once one was wrong beyond chance, the offset goes at least where it was, in units of residuals, when it was not.
        """
        cdef TargetStats* stats = &self.stats
        cdef ob_robust* scale = &stats.residuals
        cdef double share = weight * (self.scale.n - 1.0) / stats.weight  # weights have no units
        cdef double unit = ob_quantile_unit(&stats.quantile, slope, self.error, 2.0 * self.scale.deviation)
        cdef double spread = sqrt(self.quantile * (1.0 - self.quantile)), before = stats.excess, place, side
        ob_robust_count(scale, residual)
        stats.offset -= OFFSET_STEP * share * unit * slope
        stats.excess -= share * slope + stats.excess / MEMORY
        place = (stats.offset - scale.origin - scale.mean) / scale.deviation
        if scale.moves <= OB_FIRST or not before * stats.excess > 0:
            stats.usual = place
        elif fabs(stats.excess) > 1.0 + spread * sqrt(min(scale.n, MEMORY / 2)):
            side = 1.0 if stats.excess > 0 else -1.0
            stats.offset += side * scale.deviation * max(side * (stats.usual - place), REPAIR / spread)
            stats.excess = 0.0

    cdef bint squeeze(self, double* p, Py_ssize_t n, double shift) noexcept nogil:
        """Measure predictions from the scale's new origin, and clip them to its interval; whether that changes any."""
        cdef Py_ssize_t k
        cdef double before
        cdef bint changed = False
        for k in range(n):
            before = p[k]
            p[k] = ob_robust_clip(&self.scale, before + shift)
            changed = changed or p[k] != before
        return changed

    cdef double cost_of(self, double p) noexcept nogil:
        """What is learned as the loss of a prediction."""
        return self.loss.value(p, self.target) if ob_robust_known(&self.scale) else 0.0

    cdef bint learn_stack(self, double m, double* mixed, double y, double shift, double weight) noexcept nogil:
        """The combinations learn the row of the predictions in `work`; False on overflow. See `count_stage`."""
        if not self.count_stage(self.stack, self.work + self.hedge.n_experts, m, mixed, y, shift, weight):
            return False
        return self.phase == JUDGE or self.learn_combinations(m, self.unit_of(self.stack), weight)

    cdef bint count_stage(self, Stack stack, double* x, double m, double* mixed, double y, double shift,
                          double weight) noexcept nogil:
        """Count the losses of what `predict_stage` predicted; False on overflow.

        m, `shift`: the forecast as it is learned, and by how much the origin fell; `mixed` and y: prediction and target
        as distances from the one before. Then `mixed` becomes the prediction as it is learned.
        """
        cdef Py_ssize_t j
        cdef double loss, cost
        cdef double* u = x + 2 * stack.n_experts + 1
        cdef double* q = u + stack.hedge.lanes
        cdef double* costs = q + stack.hedge.lanes
        loss = cost = weight * self.loss.value(mixed[0] + self.known.offset, y)
        for j in range(1 + stack.n):
            costs[j], q[j] = q[j], weight * self.loss.value(q[j], y)
        if self.squeeze(costs, 1 + stack.n, shift) or self.clipped:
            costs[0], mixed[0] = m, 0.0
            for j in range(1 + stack.n):
                mixed[0] += u[j] * costs[j]
                costs[j] = weight * self.cost_of(costs[j])
            cost = weight * self.cost_of(mixed[0])
            if self.phase != LEARN:
                stack.hedge.leave_out(q, loss, costs, cost)
        else:
            costs = q
        if self.phase != LEARN:
            stack.hedge.count(q, loss, u, costs, cost)
        return isfinite(stack.hedge.totals.loss)

    cdef bint learn_combinations(self, double m, double unit, double weight) noexcept nogil:
        """Learn the features of the stack, in this unit; False on overflow."""
        cdef Py_ssize_t k, n = self.hedge.n_experts
        cdef double* p = self.work
        cdef double* x = p + n
        for k in range(n if self.clipped and unit > 0 else 0):
            x[k] = (p[k] - m) / unit
        return self.learn_stage(self.stack, x, m, unit, weight)

    cdef bint learn_stage(self, Stack stack, double* x, double m, double unit, double weight) noexcept nogil:
        """Ridge regression of the residual on the features x, in the unit; False on overflow."""
        cdef Py_ssize_t j
        for j in range(stack.n if unit > 0 else 0):
            if not stack.learn(j, x, (self.target - m) / unit, weight, x + stack.n_experts):
                return False
        if self.known.weight > 0:
            stack.residuals.weight += weight
            stack.residuals.squares += weight * (self.target - m) * (self.target - m)
        return isfinite(stack.residuals.squares)

    cdef bint learn_memory(self, double m, double mixed, double y, double shift, double weight) noexcept nogil:
        """The memory learns a row; arguments as in `count_stage`."""
        cdef double* x = self.work + self.hedge.n_experts + stage_size(self.stack)
        cdef double unit = self.unit_of(self.memory.stack)
        if not self.count_stage(self.memory.stack, x, m, &mixed, y, shift, weight):
            return False
        if self.phase == JUDGE:
            return True
        if not (<TargetMemory> self.memory).find_features(self.scale.origin, m, unit, x):
            unit = 0.0
        if not self.learn_stage(self.memory.stack, x, m, unit, weight):
            return False
        (<TargetMemory> self.memory).learn(
            self.scale.origin, self.target, m if self.known.weight > 0 else self.target
        )
        return True

    cdef bint settle(self, const double* scores, double y, double weight) noexcept nogil:
        update_stats(&self.stats, self.target, weight)
        return isfinite(self.stats.first_loss + self.hedge.totals.loss)

    cdef Py_ssize_t stage_length(self) noexcept nogil:
        return stage_size(self.stack) + (0 if self.memory is None else stage_size(self.memory.stack))

    cdef Py_ssize_t buffer_size(self) noexcept nogil:
        return self.hedge.lanes + self.hedge.n_experts + self.stage_length()

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        cdef double m, mixed
        cdef double* p = buffer + self.hedge.lanes
        mixed = self.predict_both(scores, buffer, p, &m)
        out[0] = self.remember(mixed, p + self.hedge.n_experts + stage_size(self.stack))
        out[0] += self.known.origin + self.known.offset


cdef struct Stage:            # of combinations of a forecast: parts of a buffer
    double* u                 # weights of the forecast and the combinations, their losses, and a buffer
    double* losses
    double* t
    double* g                 # the gradient, and a buffer for the stack
    double* z
    double* q                 # the probabilities of a combination, and of the forecast
    double* p
    double* logits            # of the forecast
    double* a                 # of a combination
    double* x                 # the features
    double* more              # a buffer for the mixture


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
    tracker : QuantileTracker or None
        Of -ln p, p the probability of the label, for sets of classes.
    memory : LabelMemory or None
    separate : bool, default=False
        Whether experts have a score for each of two classes, too. There may be a single class, of probability 1.
    """

    cdef readonly Py_ssize_t n_classes
    cdef Py_ssize_t width     # scores of an expert
    cdef readonly tuple links
    cdef int[::1] kinds       # the `Link` of each expert
    cdef double[::1] counts   # weight of the rows of each class so far
    cdef double[:, ::1] calibrations  # memory of the following
    cdef Calibration* scales

    def __cinit__(self, Hedge hedge not None, n_classes, links, Stack stack, QuantileTracker tracker,
                  LabelMemory memory, separate=False, state=None):
        cdef bint each = separate is True  # without this argument, the state has its place
        self.n_classes, self.links, self.width = n_classes, tuple(links), width_of(n_classes, each)
        self.stack, self.tracker, self.memory = stack, tracker, memory
        if n_classes < 2 - each:
            raise ValueError(f"n_classes must be {2 - each} or more; got {n_classes}")
        if len(self.links) != hedge.n_experts:
            raise ValueError(f"links must have one entry for each of {hedge.n_experts} experts; got {len(self.links)}")
        if stack is not None and stack.n_experts != hedge.n_experts:
            raise ValueError(f"combinations must be of {hedge.n_experts} experts; got {stack.n_experts}")
        if memory is not None and (memory.n_classes, memory.width) != (self.n_classes, self.width):
            raise ValueError(f"memory must be of {n_classes} classes; got {memory.n_classes}, {memory.width} at a time")
        self.hedge = hedge
        self.allocate(hedge, self.width * hedge.n_experts, n_classes, n_classes + self.stage_length())
        self.kinds = np.array([link_of(link, ("softmax", "logistic", "calibrated")) for link in links], dtype=np.intc)
        self.calibrations = np.tile([1.0, 0.0, 1.0, 0.0, 1.0], (hedge.n_experts, 1))
        self.scales = <Calibration*> &self.calibrations[0, 0]
        self.fields.add("calibrations", self.scales, self.calibrations.nbytes)
        self.counts = np.zeros(n_classes)
        self.fields.vector("counts", self.counts)

    @property
    def of_two(self):
        """Whether experts have one score for two classes."""
        return self.width < self.n_classes

    def with_classes(self, n_classes, numbers):
        """A mixer of the same experts, with these weights, for more classes that have a score each.

        `numbers` are those of the present classes.
        """
        state, counts = self.get_state(), np.zeros(n_classes)
        counts[numbers], state["counts"] = state["counts"], counts
        memory = None if self.memory is None else self.memory.with_classes(n_classes, numbers)
        return ProbabilityMixer(self.hedge, n_classes, self.links, self.stack, self.tracker, memory, True, state)

    @property
    def scaling(self):
        """(slopes, offsets) of the experts' logits, of shape (n_experts,) each; new arrays."""
        return np.array(self.calibrations)[:, :2].T

    cdef Py_ssize_t buffer_size(self) noexcept nogil:
        return self.hedge.lanes + self.stage_length()

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, label = <Py_ssize_t> y, n = self.hedge.n_experts
        cdef double mixed
        cdef double* a = self.work
        self.error = -1.0
        if not 0 <= label < self.n_classes:
            return INFINITY
        if self.n_classes == 1:
            memset(self.losses, 0, n * sizeof(double))
            return 0.0
        self.hedge.evenness = self.evenness()
        if self.stack is not None:
            self.stack.hedge.evenness = self.hedge.evenness
        if self.memory is not None:
            self.memory.stack.hedge.evenness = self.hedge.evenness
        if self.width == 1:
            self.find_all_logits(scores, a)
            ob_log_losses(self.losses, a, 1.0 if label else -1.0, n)
        else:
            for k in range(n):
                self.find_logits(k, scores, a)
                self.losses[k] = -log_softmax(a, self.width, label)
        mixed = ob_mix_loss(self.v, self.losses, a, n)
        return mixed if self.learn_stages(
            scores, label, weight, mixed, a + max(self.hedge.lanes, self.n_classes)
        ) else INFINITY

    cdef double evenness(self) noexcept nogil:
        """The harmonic over the arithmetic mean of the counts of the classes so far; 0 for a single one."""
        cdef Py_ssize_t c, n = 0
        cdef double inverses = 0.0, total = 0.0
        for c in range(self.n_classes):
            if self.counts[c] > 0:
                n += 1
                inverses += 1.0 / self.counts[c]
                total += self.counts[c]
        return min(n / inverses * n / total, 1.0) if n > 1 else 0.0

    cdef bint settle(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k
        self.counts[<Py_ssize_t> y] += weight
        for k in range(self.hedge.n_experts if self.n_classes > 1 else 0):
            if self.kinds[k] == CALIBRATED:
                calibrate(&self.scales[k], scores + k * self.width, self.width, <Py_ssize_t> y, weight)
        if self.memory is not None:
            (<LabelMemory> self.memory).learn(<Py_ssize_t> y, weight)
        return True

    cdef Stage stage_in(self, double* buffer) noexcept nogil:
        """The parts of a buffer of `stage_length` numbers."""
        cdef Stage at
        cdef Py_ssize_t n = max(self.hedge.n_experts, <Py_ssize_t> LABEL_FEATURES)
        at.u, at.losses, at.t = buffer, buffer + OB_LANES, buffer + 2 * OB_LANES
        at.g = buffer + 3 * OB_LANES
        at.z = at.g + n
        at.q = at.z + n + 1
        at.p = at.q + self.n_classes
        at.logits = at.p + self.n_classes
        at.a = at.logits + self.width
        at.x = at.a + self.width
        at.more = at.x + n * self.width
        return at

    cdef Py_ssize_t stage_length(self) noexcept nogil:
        cdef Py_ssize_t n = max(self.hedge.n_experts, <Py_ssize_t> LABEL_FEATURES)
        cdef Py_ssize_t length = 3 * OB_LANES + 2 * n + 1 + 2 * self.n_classes + (n + 2) * self.width
        return length + max(2 * self.hedge.lanes, self.n_classes)

    cdef bint learn_stages(self, const double* scores, Py_ssize_t y, double weight, double lost,
                           double* buffer) noexcept nogil:
        """The stack and the memory learn a row on which the mixture had the loss `lost`; False on overflow."""
        cdef Stage at = self.stage_in(buffer)
        cdef bint finite = True
        cdef Py_ssize_t c
        if self.watched or self.stack is not None or self.memory is not None:
            self.mixed(scores, self.v, at.p, at.more)
        if self.stack is not None:
            self.find_all_logits(scores, at.x)
            self.differences(self.hedge.n_experts, at.p, &at)
            finite = self.learn_stage(self.stack, scores, y, weight, &lost, &at)
        if finite and self.memory is not None and (<LabelMemory> self.memory).predict(at.x):
            self.differences(LABEL_FEATURES, at.p, &at)
            finite = self.learn_stage(self.memory.stack, NULL, y, weight, &lost, &at)
        elif finite and self.memory is not None and self.phase != LEARN:
            self.memory.stack.pass_by(lost, weight, at.u, at.losses)
            finite = isfinite(self.memory.stack.hedge.totals.loss)
        self.error = sqrt(sqrt(max(lost, 0.0)))  # as of `surprises`
        for c in range(self.n_classes if self.watched else 0):
            self.residuals[c], self.residuals[self.n_classes + c] = (c == y) - at.p[c], c == y
        return finite

    cdef bint learn_stage(self, Stack stack, const double* scores, Py_ssize_t y, double weight, double* lost,
                          Stage* at) noexcept nogil:
        """Learn combinations of a forecast p with the loss `lost`, see `differences`; returns False on overflow.

        In the end p and `lost` are those of the mixture of the forecast and the combinations.
        """
        cdef Py_ssize_t k, c, j, n = stack.n_experts, width = self.width
        cdef double mixed, slope
        cdef const double* rises = at.q + self.n_classes - width  # derivatives of the log probability by the logits
        stack.hedge.weigh(at.u)
        at.losses[0] = lost[0]
        for c in range(self.n_classes):
            at.p[c] *= at.u[0]
        for j in range(stack.n):
            if j == VOTES:
                self.votes(scores, at)
            self.combine(stack, j, at)
            at.losses[1 + j] = -log_softmax(at.a, width, y)
            memset(at.q, 0, self.n_classes * sizeof(double))
            add_softmax(at.a, width, 1.0, at.q)
            for c in range(self.n_classes):
                at.p[c] += at.u[1 + j] * at.q[c]
                at.q[c] = (c == y) - at.q[c]
            if self.phase == JUDGE:
                continue
            slope = 1.0
            for k in range(n):
                at.g[k] = 0.0
                for c in range(width):
                    at.g[k] += at.x[k * width + c] * rises[c]
                slope += stack.b[j, k] * at.g[k]
            if not stack.learn(j, at.g, slope, weight, at.z):
                return False
        lost[0] = mixed = ob_mix_loss(at.u, at.losses, at.t, 1 + stack.n)
        if self.phase == LEARN:
            return True
        for j in range(1 + stack.n):
            at.losses[j] *= weight
        stack.hedge.count(at.losses, weight * mixed, at.u, at.losses, weight * mixed)
        return isfinite(stack.hedge.totals.loss)

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        cdef Stage at = self.stage_in(buffer + self.hedge.lanes)
        out[0] = 1.0
        if self.n_classes == 1:
            return
        self.mixed(scores, buffer, out, at.more)
        if self.stack is not None:
            self.find_all_logits(scores, at.x)
            self.differences(self.hedge.n_experts, out, &at)
            self.mix_stage(self.stack, scores, out, &at)
        if self.memory is not None and (<LabelMemory> self.memory).predict(at.x):
            self.differences(LABEL_FEATURES, out, &at)
            self.mix_stage(self.memory.stack, NULL, out, &at)

    cdef void mix_stage(self, Stack stack, const double* scores, double* p, Stage* at) noexcept nogil:
        """Mix a forecast p with its combinations; as `learn_stage` does."""
        cdef Py_ssize_t c, j
        stack.hedge.weigh(at.u)
        for c in range(self.n_classes):
            p[c] *= at.u[0]
        for j in range(stack.n):
            if j == VOTES:
                self.votes(scores, at)
            self.combine(stack, j, at)
            add_softmax(at.a, self.width, at.u[1 + j], p)

    cdef void find_all_logits(self, const double* scores, double* x) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.hedge.n_experts):
            self.find_logits(k, scores, x + k * self.width)

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
            self.find_all_logits(scores, buffer)
            ob_mix_two(v, buffer, buffer + self.hedge.lanes, &p[1], &p[0], n)
            return
        for c in range(self.n_classes):
            p[c] = 0.0
        for k in range(n):
            self.find_logits(k, scores, buffer)
            add_softmax(buffer, self.width, v[k], p)

    cdef void differences(self, Py_ssize_t n, const double* p, Stage* at) noexcept nogil:
        """The logits of a forecast p, shifted to the largest 0 if there are three or more; x: minus these, of n others.

        x holds the logits of the others before.
        """
        cdef Py_ssize_t k, c, width = self.width
        cdef double most
        cdef double* x = at.x
        if width == 1:
            at.logits[0] = log(max(p[1], TINY)) - log(max(p[0], TINY))
        else:
            most = largest(p, width)
            for c in range(width):
                at.logits[c] = log(max(p[c], TINY)) - log(most)
        for k in range(n):
            most = largest(x, width) if width > 1 else 0.0
            for c in range(width):
                x[c] = min(max(x[c] - most - at.logits[c], -FAR), FAR)
            x += width

    cdef void votes(self, const double* scores, Stage* at) noexcept nogil:
        """What their combination has instead of `differences`: logits of 0, and the experts' votes."""
        cdef Py_ssize_t k, c, width = self.width
        cdef double* x = at.x
        for k in range(self.hedge.n_experts):
            self.find_logits(k, scores, x)
            if width == 1:
                x[0] = tanh(0.5 * VOTE_POWER * x[0])  # the difference of both votes
            else:
                for c in range(width):
                    at.logits[c], x[c] = VOTE_POWER * x[c], 0.0
                add_softmax(at.logits, width, 1.0, x)
            x += width
        memset(at.logits, 0, width * sizeof(double))

    cdef void combine(self, Stack stack, Py_ssize_t j, Stage* at) noexcept nogil:
        """Compute the logits a of a combination."""
        cdef Py_ssize_t k, c
        for c in range(self.width):
            at.a[c] = at.logits[c]
        for k in range(stack.n_experts):
            for c in range(self.width):
                at.a[c] += stack.b[j, k] * at.x[k * self.width + c]
