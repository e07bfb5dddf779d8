"""What the scores of several learners of the same rows amount to: one prediction, and what it costs.

The experts are mixed by exponential weights on the losses they had, see `hedge`.

ScoreMixer: every score is an expert's, and the mixture's score is their weighted mean. With a loss that is convex in the
score the mixture's loss is at most that of the weighted losses.

ProbabilityMixer: every learner is an expert, whose scores say how probable the classes are; the mixture's probabilities
are the weighted mean of theirs. Under log loss at rate 1 that is Bayes' rule: the mixture's log loss is at most that of
the best expert + ln K.
"""

import numpy as np

from libc.math cimport INFINITY, exp, isfinite, log, log1p
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from onlinebregman._kernels.loop.hedge cimport Hedge
from onlinebregman._kernels.loop.state cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED
from onlinebregman._kernels.losses.loss cimport Loss

cdef extern from "ops/hedge.h":
    double ob_mix_loss(const double* w, const double* losses, double* t, Py_ssize_t n) noexcept nogil
    void ob_log_losses(double* losses, const double* a, double sign, Py_ssize_t n) noexcept nogil
    void ob_mix_two(const double* w, const double* a, double* t, double* above, double* below,
                    Py_ssize_t n) noexcept nogil

cdef enum Link:
    SOFTMAX                   # probabilities are the softmax of the scores; of two classes there is one, w_1 - w_0
    LOGISTIC                  # the sigmoids of one against the rest, divided by their sum
    CALIBRATED                # the same of slope * score + offset, learned by Newton steps on the log losses

LINKS = {"softmax": SOFTMAX, "logistic": LOGISTIC, "calibrated": CALIBRATED}


cdef class Mixer:
    """Experts' scores of a row, mixed."""

    def __cinit__(self, *arguments, **more):
        if not (arguments or more):  # by __new__ alone
            raise TypeError(f"{type(self).__name__} needs arguments")

    cdef Py_ssize_t room_length(self) noexcept nogil:
        """How many numbers `mix` needs room for."""
        return 0 if self.hedge is None else self.hedge.lanes

    cdef double target(self, double y) noexcept nogil:
        """What learners are to learn for the target y."""
        return y

    cdef int learn(self, double* scores, double y, double weight) noexcept nogil:
        """Count the losses of a row's scores, as they were before it was learned; the `Status`."""
        return LEARNED

    cdef void mix(self, const double* scores, double* out, double* room) noexcept nogil:
        """The mixture's outputs for a row's scores."""

    cdef void save(self, Py_ssize_t n_rows) noexcept:
        """Note what `go_back` puts back; `n_rows` rows come next."""
        if self.hedge is not None:
            self.hedge.save(n_rows)

    cdef void go_back(self) noexcept:
        if self.hedge is not None:
            self.hedge.go_back()


cdef class Unmixed(Mixer):
    """Leaves scores as they are.

    Parameters
    ----------
    n_scores : int
    """

    def __cinit__(self, n_scores):
        self.n_scores = self.n_outputs = n_scores

    def __reduce__(self):
        return type(self), (self.n_scores,)

    cdef void mix(self, const double* scores, double* out, double* room) noexcept nogil:
        memcpy(out, scores, self.n_scores * sizeof(double))


cdef class ScoreMixer(Mixer):
    """The weighted mean of scores.

    Parameters
    ----------
    hedge : Hedge
        Of one expert for each score.
    loss : Loss
    centred : bool, default=False
        Whether learners learn targets minus their mean so far, and scores are kept within the range of targets so far.
    state : dict, default=None
        What is known of the targets, of another mixer, to go on as it would.
    """

    def __cinit__(self, Hedge hedge not None, Loss loss not None, centred=False, state=None):
        self.hedge, self.loss, self.centred = hedge, loss, centred
        self.n_scores, self.n_outputs = hedge.n_experts, 1
        self.room = np.zeros(3 * hedge.lanes)
        self.seen = Targets(0.0, 0.0, INFINITY, -INFINITY)
        if state is not None:
            self.seen = state

    def __reduce__(self):
        return type(self), (self.hedge, self.loss, self.centred, self.seen)

    cdef double target(self, double y) noexcept nogil:
        return y - self.seen.mean if self.centred else y

    cdef double within(self, double score) noexcept nogil:
        """The expert's prediction that goes with a score."""
        if not self.centred:
            return score
        return min(max(score + self.seen.mean, self.seen.lo), self.seen.hi) if self.seen.weight > 0 else 0.0

    cdef int learn(self, double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, n = self.hedge.n_experts
        cdef double mixed = 0.0, score
        cdef double* v = &self.room[0]
        cdef double* losses = v + self.hedge.lanes
        self.hedge.weigh(v)
        for k in range(n):
            score = self.within(scores[k])
            mixed += v[k] * score
            losses[k] = weight * self.loss.value(score, y)
        self.hedge.count(losses, v, weight * self.loss.value(mixed, y))
        if self.centred:
            self.seen.weight += weight
            self.seen.mean += weight / self.seen.weight * (y - self.seen.mean)
            self.seen.lo, self.seen.hi = min(self.seen.lo, y), max(self.seen.hi, y)
        return LEARNED if isfinite(self.hedge.loss) and isfinite(self.hedge.gap) else LOSS_OVERFLOWED

    cdef void mix(self, const double* scores, double* out, double* room) noexcept nogil:
        cdef Py_ssize_t k
        cdef double mixed = 0.0
        self.hedge.weigh(room)
        for k in range(self.hedge.n_experts):
            mixed += room[k] * self.within(scores[k])
        out[0] = mixed

    cdef void save(self, Py_ssize_t n_rows) noexcept:
        Mixer.save(self, n_rows)
        self.seen_before = self.seen

    cdef void go_back(self) noexcept:
        Mixer.go_back(self)
        self.seen = self.seen_before


cdef inline double log_sigmoid(double a) noexcept nogil:
    return -log1p(exp(-a)) if a > 0 else a - log1p(exp(a))


cdef inline double sigmoid(double a) noexcept nogil:
    return 1.0 / (1.0 + exp(-a)) if a > 0 else exp(a) / (1.0 + exp(a))


cdef class ProbabilityMixer(Mixer):
    """The weighted mean of the probabilities of classes.

    Parameters
    ----------
    hedge : Hedge
        Of one expert for each learner, at rate 1.
    n_classes : int
        At least 2.
    links : sequence of {"softmax", "logistic", "calibrated"}
        How each expert's scores, one for two classes and else one for each, become probabilities.
    state : list of dict, default=None
        The experts of another mixer, to go on as it would.
    """

    def __cinit__(self, Hedge hedge not None, n_classes, links, state=None):
        cdef Py_ssize_t k, n = 1 if n_classes == 2 else n_classes
        self.hedge, self.n_classes, self.links = hedge, n_classes, tuple(links)
        if n_classes < 2:
            raise ValueError(f"n_classes must be 2 or more; got {n_classes}")
        if len(self.links) != hedge.n_experts:
            raise ValueError(f"{hedge.n_experts} experts, but {len(self.links)} links")
        if state is not None and len(state) != hedge.n_experts:
            raise ValueError(f"there must be a state of each of {hedge.n_experts} experts; got {len(state)}")
        self.n_scores, self.n_outputs = n * hedge.n_experts, n_classes
        self.room = np.zeros(3 * hedge.lanes)
        self.experts = <Expert*> malloc(hedge.n_experts * sizeof(Expert))
        self.experts_before = <Expert*> malloc(hedge.n_experts * sizeof(Expert))
        if self.experts == NULL or self.experts_before == NULL:
            raise MemoryError()
        for k, link in enumerate(self.links):
            self.experts[k] = Expert(k * n, n, LINKS[link], Calibration(1.0, 0.0, 1.0, 0.0, 1.0))
            if state is not None:
                self.experts[k].scale = (<list?> state)[k]

    def __dealloc__(self):
        free(self.experts)
        free(self.experts_before)

    def __reduce__(self):
        state = [self.experts[k].scale for k in range(self.hedge.n_experts)]
        return type(self), (self.hedge, self.n_classes, self.links, state)

    cdef Py_ssize_t room_length(self) noexcept nogil:
        return self.hedge.lanes + max(2 * self.hedge.lanes, self.n_classes)

    cdef int learn(self, double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, label = <Py_ssize_t> y, n = self.hedge.n_experts
        cdef Py_ssize_t lanes = self.hedge.lanes
        cdef double mixed
        cdef double* v = &self.room[0]
        cdef double* losses = v + lanes
        cdef double* scaled = losses + lanes
        if not 0 <= label < self.n_classes:
            return BAD_TARGET
        self.hedge.weigh(v)
        if self.n_classes == 2:
            self.scale(scores, scaled)
            ob_log_losses(losses, scaled, 1.0 if label else -1.0, n)
        else:
            for k in range(n):
                losses[k] = -self.log_probability(&self.experts[k], scores, label)
        mixed = ob_mix_loss(v, losses, scaled, n)
        for k in range(n):
            losses[k] *= weight
        self.hedge.count(losses, v, weight * mixed)
        for k in range(n):
            if self.experts[k].kind == CALIBRATED:
                calibrate(&self.experts[k].scale, scores + self.experts[k].start, self.experts[k].n, label, weight)
        return LEARNED if isfinite(self.hedge.loss) and isfinite(self.hedge.gap) else LOSS_OVERFLOWED

    cdef void mix(self, const double* scores, double* out, double* room) noexcept nogil:
        cdef Py_ssize_t k, c, n = self.hedge.n_experts, lanes = self.hedge.lanes
        self.hedge.weigh(room)
        if self.n_classes == 2:
            self.scale(scores, room + lanes)
            ob_mix_two(room, room + lanes, room + 2 * lanes, &out[1], &out[0], n)
            return
        for c in range(self.n_classes):
            out[c] = 0.0
        for k in range(n):
            self.add_probabilities(&self.experts[k], scores, room[k], out, room + lanes)

    cdef void scale(self, const double* scores, double* scaled) noexcept nogil:
        """The experts' calibrated scores of two classes."""
        cdef Py_ssize_t k
        for k in range(self.hedge.n_experts):
            scaled[k] = self.experts[k].scale.slope * scores[k] + self.experts[k].scale.offset

    cdef double log_probability(self, const Expert* expert, const double* scores, Py_ssize_t y) noexcept nogil:
        """ln p(y) of three classes or more by an expert."""
        cdef const double* a = scores + expert.start
        cdef const Calibration* s = &expert.scale
        cdef double most = -INFINITY, total = 0.0
        cdef Py_ssize_t c
        if expert.kind == SOFTMAX:
            for c in range(expert.n):
                most = max(most, a[c])
            for c in range(expert.n):
                total += exp(a[c] - most)
            return a[y] - most - log(total)
        for c in range(expert.n):
            most = max(most, s.slope * a[c] + s.offset)
        most = log_sigmoid(most)
        for c in range(expert.n):
            total += exp(log_sigmoid(s.slope * a[c] + s.offset) - most)
        return log_sigmoid(s.slope * a[y] + s.offset) - most - log(total)

    cdef void add_probabilities(self, const Expert* expert, const double* scores, double weight, double* p,
                                double* room) noexcept nogil:
        """Add an expert's probabilities of three classes or more, times its weight."""
        cdef const double* a = scores + expert.start
        cdef const Calibration* s = &expert.scale
        cdef double most = -INFINITY, total = 0.0
        cdef Py_ssize_t c
        for c in range(expert.n):
            room[c] = a[c] if expert.kind == SOFTMAX else log_sigmoid(s.slope * a[c] + s.offset)
            most = max(most, room[c])
        for c in range(expert.n):
            room[c] = exp(room[c] - most)
            total += room[c]
        for c in range(expert.n):
            p[c] += weight * room[c] / total

    cdef void save(self, Py_ssize_t n_rows) noexcept:
        Mixer.save(self, n_rows)
        memcpy(self.experts_before, self.experts, self.hedge.n_experts * sizeof(Expert))

    cdef void go_back(self) noexcept:
        Mixer.go_back(self)
        memcpy(self.experts, self.experts_before, self.hedge.n_experts * sizeof(Expert))


cdef void calibrate(Calibration* s, const double* scores, Py_ssize_t n, Py_ssize_t y, double weight) noexcept nogil:
    """One Newton step on the log losses of the classes against the rest, by all curvature there was so far."""
    cdef Py_ssize_t c
    cdef double p, g, h, g_slope = 0.0, g_offset = 0.0, det, a
    for c in range(n):
        a = scores[c]
        p = sigmoid(s.slope * a + s.offset)
        g, h = weight * (p - <double> (y == (c if n > 1 else 1))), weight * p * (1.0 - p)
        g_slope += g * a
        g_offset += g
        s.a += h * a * a
        s.b += h * a
        s.d += h
    det = s.a * s.d - s.b * s.b
    s.slope -= (s.d * g_slope - s.b * g_offset) / det
    s.offset -= (s.a * g_offset - s.b * g_slope) / det
