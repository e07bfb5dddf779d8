"""What the scores of several learners of the same rows amount to: one prediction, and what it costs.

The experts are mixed by exponential weights on the losses they had, see `hedge`.

ScoreMixer: every score is an expert's, and the mixture's score is their weighted mean. With a loss that is convex in
the score the mixture's loss is at most that of the weighted losses.

ProbabilityMixer: every learner is an expert, whose scores say how probable the classes are; the mixture's probabilities
are the weighted mean of theirs. Under log loss at rate 1 that is Bayes' rule: the mixture's log loss is at most that of
the best expert + ln K.

Either may have a `stack` of combinations of the experts beside their mixture, and mix those with it.
"""

import numpy as np

from libc.math cimport INFINITY, exp, isfinite, log, log1p
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from onlinebregman._kernels.loop.hedge cimport Hedge
from onlinebregman._kernels.loop.state cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED
from onlinebregman._kernels.loop.stack cimport Stack
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

cdef double TINY = 1e-300     # of probabilities whose logarithms are taken
cdef double FAR = 10.0        # experts differ from the mixture by this much at most, for combinations of them

LINKS = {"softmax": SOFTMAX, "logistic": LOGISTIC, "calibrated": CALIBRATED}


cdef class Mixer:
    """Experts' scores of a row, mixed."""

    def __cinit__(self, *arguments, **more):
        if not (arguments or more):  # by __new__ alone
            raise TypeError(f"{type(self).__name__} needs arguments")

    cdef Py_ssize_t room_length(self) noexcept nogil:
        """How many numbers `mix` needs room for."""
        return 0 if self.hedge is None else self.hedge.lanes

    cdef void find_targets(self, const double* y, const double* weight, Py_ssize_t n, double* targets) noexcept nogil:
        """What learners are to learn for the targets y of the next n rows."""
        memcpy(targets, y, n * sizeof(double))

    cdef int learn(self, double* scores, double y, double weight) noexcept nogil:
        """Count the losses of a row's scores, as they were before it was learned; the `Status`."""
        return LEARNED

    cdef void mix(self, const double* scores, double* out, double* room) noexcept nogil:
        """The mixture's outputs for a row's scores."""

    cdef void save(self, Py_ssize_t n_rows) noexcept:
        """Note what `go_back` puts back; `n_rows` rows come next."""
        if self.hedge is not None:
            self.hedge.save(n_rows)
        if self.stack is not None:
            self.stack.save(n_rows)

    cdef void go_back(self) noexcept:
        if self.hedge is not None:
            self.hedge.go_back()
        if self.stack is not None:
            self.stack.go_back()


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


cdef inline void see(Targets* seen, double y, double weight) noexcept nogil:
    seen.weight += weight
    seen.mean += weight / seen.weight * (y - seen.mean)
    seen.lo, seen.hi = min(seen.lo, y), max(seen.hi, y)


cdef class ScoreMixer(Mixer):
    """The weighted mean of scores.

    Parameters
    ----------
    hedge : Hedge
        Of one expert for each score.
    loss : Loss
    centred : bool, default=False
        Whether learners learn targets minus their mean so far, and scores are kept within the range of targets so far.
    stack : Stack, default=None
        Of combinations of scores that are centred.
    state : dict, default=None
        What is known of the targets, of another mixer, to go on as it would.
    """

    def __cinit__(self, Hedge hedge not None, Loss loss not None, centred=False, Stack stack=None, state=None):
        self.hedge, self.loss, self.centred, self.stack = hedge, loss, centred, stack
        self.n_scores, self.n_outputs = hedge.n_experts, 1
        if stack is not None and not (centred and stack.n_experts == hedge.n_experts):
            raise ValueError(f"combinations must be of {hedge.n_experts} centred experts; got {stack.n_experts}")
        self.room = np.zeros(hedge.lanes + self.room_length())
        self.seen = Targets(0.0, 0.0, INFINITY, -INFINITY)
        if state is not None:
            self.seen = state

    def __reduce__(self):
        return type(self), (self.hedge, self.loss, self.centred, self.stack, self.seen)

    cdef Py_ssize_t room_length(self) noexcept nogil:
        cdef Py_ssize_t n = self.hedge.n_experts
        return self.hedge.lanes + n + (0 if self.stack is None else 2 * n + 1 + 2 * self.stack.hedge.lanes)

    cdef void find_targets(self, const double* y, const double* weight, Py_ssize_t n, double* targets) noexcept nogil:
        cdef Py_ssize_t i
        cdef Targets seen = self.seen
        for i in range(n):
            targets[i] = y[i] - seen.mean if self.centred else y[i]
            see(&seen, y[i], weight[i])

    cdef double within(self, double score) noexcept nogil:
        """The expert's prediction that goes with a score."""
        if not self.centred:
            return score
        return min(max(score + self.seen.mean, self.seen.lo), self.seen.hi) if self.seen.weight > 0 else 0.0

    cdef double mean(self, const double* scores, double* v, double* p) noexcept nogil:
        """The mixture's prediction, with the weights and the experts' predictions."""
        cdef Py_ssize_t k
        cdef double m = 0.0
        self.hedge.weigh(v)
        for k in range(self.hedge.n_experts):
            p[k] = self.within(scores[k])
            m += v[k] * p[k]
        return m

    cdef double combine(self, double m, const double* p, double scale, double* u, double* q, double* x,
                        double* room) noexcept nogil:
        """The prediction of mixture and combinations, with their weights u, their predictions q, and the x to learn."""
        cdef Py_ssize_t k, j
        cdef double mixed
        self.stack.hedge.weigh(u)
        mixed, q[0] = u[0] * m, m
        for k in range(self.hedge.n_experts):
            x[k] = (p[k] - m) / scale if scale > 0 else 0.0
        for j in range(self.stack.n):
            q[1 + j] = m
            if scale > 0:
                q[1 + j] = min(max(m + scale * self.stack.predict(j, x, room), self.seen.lo), self.seen.hi)
            mixed += u[1 + j] * q[1 + j]
        return mixed

    cdef int learn(self, double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, j, n = self.hedge.n_experts
        cdef double mixed, m, scale
        cdef double* v = &self.room[0]
        cdef double* losses = v + self.hedge.lanes
        cdef double* p = losses + self.hedge.lanes
        cdef double* x = p + n
        cdef double* room = x + n
        cdef double* u
        cdef double* q
        m = self.mean(scores, v, p)
        if self.stack is not None:
            u = room + n + 1
            q = u + self.stack.hedge.lanes
            scale = self.stack.scale(self.seen.hi - self.seen.lo)
            mixed = self.combine(m, p, scale, u, q, x, room)
            for j in range(1 + self.stack.n):
                q[j] = weight * self.loss.value(q[j], y)
            self.stack.hedge.count(q, u, weight * self.loss.value(mixed, y))
            for j in range(self.stack.n if scale > 0 else 0):
                if not self.stack.learn(j, x, (y - m) / scale, weight, room):
                    return LOSS_OVERFLOWED
            if self.seen.weight > 0:
                self.stack.seen.weight += weight
                self.stack.seen.squares += weight * (y - m) * (y - m)
            if not (isfinite(self.stack.hedge.loss) and isfinite(self.stack.seen.squares)):
                return LOSS_OVERFLOWED
        for k in range(n):
            losses[k] = weight * self.loss.value(p[k], y)
        self.hedge.count(losses, v, weight * self.loss.value(m, y))
        if self.centred:
            see(&self.seen, y, weight)
        return LEARNED if isfinite(self.hedge.loss) and isfinite(self.hedge.gap) else LOSS_OVERFLOWED

    cdef void mix(self, const double* scores, double* out, double* room) noexcept nogil:
        cdef Py_ssize_t n = self.hedge.n_experts
        cdef double* p = room + self.hedge.lanes
        cdef double* x = p + n
        cdef double* u
        cdef double scale
        out[0] = self.mean(scores, room, p)
        if self.stack is not None:
            u = x + 2 * n + 1
            scale = self.stack.scale(self.seen.hi - self.seen.lo)
            out[0] = self.combine(out[0], p, scale, u, u + self.stack.hedge.lanes, x, x + n)

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


# Probabilities of classes go with `width` logits: one for two classes, log p_1 - log p_0, else log p_c + any constant.


cdef inline void find_logits(const Expert* expert, const double* scores, Py_ssize_t width, double* a) noexcept nogil:
    """Those of an expert's probabilities, by its scores."""
    cdef Py_ssize_t c
    for c in range(width):
        a[c] = expert.scale.slope * scores[c] + expert.scale.offset
        if width > 1 and expert.kind != SOFTMAX:
            a[c] = log_sigmoid(a[c])


cdef inline double largest(const double* a, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t c
    cdef double most = a[0]
    for c in range(1, n):
        most = max(most, a[c])
    return most


cdef double log_softmax(const double* a, Py_ssize_t width, Py_ssize_t y) noexcept nogil:
    """ln p_y by these logits."""
    cdef double most, total = 0.0
    cdef Py_ssize_t c
    if width == 1:
        return log_sigmoid(a[0] if y else -a[0])
    most = largest(a, width)
    for c in range(width):
        total += exp(a[c] - most)
    return a[y] - most - log(total)


cdef void add_softmax(double* a, Py_ssize_t width, double weight, double* p) noexcept nogil:
    """Add the probabilities by these logits, times a weight; they are not kept."""
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
    stack : Stack, default=None
        Of combinations of the logarithms of the experts' probabilities.
    state : list of dict, default=None
        The experts of another mixer, to go on as it would.
    """

    def __cinit__(self, Hedge hedge not None, n_classes, links, Stack stack=None, state=None):
        cdef Py_ssize_t k, n = 1 if n_classes == 2 else n_classes
        self.hedge, self.n_classes, self.links, self.stack = hedge, n_classes, tuple(links), stack
        if n_classes < 2:
            raise ValueError(f"n_classes must be 2 or more; got {n_classes}")
        if len(self.links) != hedge.n_experts:
            raise ValueError(f"{hedge.n_experts} experts, but {len(self.links)} links")
        if state is not None and len(state) != hedge.n_experts:
            raise ValueError(f"there must be a state of each of {hedge.n_experts} experts; got {len(state)}")
        if stack is not None and stack.n_experts != hedge.n_experts:
            raise ValueError(f"combinations must be of {hedge.n_experts} experts; got {stack.n_experts}")
        self.width, self.n_scores, self.n_outputs = n, n * hedge.n_experts, n_classes
        self.room = np.zeros(
            2 * hedge.lanes + max(hedge.lanes, n_classes)
            + (0 if stack is None else 3 * hedge.n_experts + 1 + n_classes + 2 * stack.hedge.lanes + self.room_length())
        )
        self.experts = <Expert*> malloc(hedge.n_experts * sizeof(Expert))
        self.experts_before = <Expert*> malloc(hedge.n_experts * sizeof(Expert))
        if self.experts == NULL or self.experts_before == NULL:
            raise MemoryError()
        for k, link in enumerate(self.links):
            self.experts[k] = Expert(LINKS[link], Calibration(1.0, 0.0, 1.0, 0.0, 1.0))
            if state is not None:
                self.experts[k].scale = (<list?> state)[k]

    def __dealloc__(self):
        free(self.experts)
        free(self.experts_before)

    def __reduce__(self):
        state = [self.experts[k].scale for k in range(self.hedge.n_experts)]
        return type(self), (self.hedge, self.n_classes, self.links, self.stack, state)

    cdef Py_ssize_t room_length(self) noexcept nogil:
        cdef Py_ssize_t lanes = self.hedge.lanes, length = lanes + max(2 * lanes, self.n_classes)
        return length if self.stack is None else length + (lanes + 2) * self.width + lanes + self.stack.hedge.lanes

    cdef int learn(self, double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, label = <Py_ssize_t> y, n = self.hedge.n_experts, lanes = self.hedge.lanes
        cdef double mixed
        cdef double* v = &self.room[0]
        cdef double* losses = v + lanes
        cdef double* a = losses + lanes
        cdef double* room = a + max(lanes, self.n_classes)
        if not 0 <= label < self.n_classes:
            return BAD_TARGET
        self.hedge.weigh(v)
        if self.n_classes == 2:
            self.scale(scores, a)
            ob_log_losses(losses, a, 1.0 if label else -1.0, n)
        else:
            for k in range(n):
                find_logits(&self.experts[k], scores + k * self.width, self.width, a)
                losses[k] = -log_softmax(a, self.width, label)
        mixed = ob_mix_loss(v, losses, a, n)
        if self.stack is not None and not self.learn_stack(scores, label, weight, mixed, room):
            return LOSS_OVERFLOWED
        for k in range(n):
            losses[k] *= weight
        self.hedge.count(losses, v, weight * mixed)
        for k in range(n):
            if self.experts[k].kind == CALIBRATED:
                calibrate(&self.experts[k].scale, scores + k * self.width, self.width, label, weight)
        return LEARNED if isfinite(self.hedge.loss) and isfinite(self.hedge.gap) else LOSS_OVERFLOWED

    cdef bint learn_stack(self, const double* scores, Py_ssize_t y, double weight, double lost,
                          double* room) noexcept nogil:
        """The combinations learn a row on which the mixture lost this much, by the weights in `self.room`; False if
        that overflows."""
        cdef Py_ssize_t k, c, j, n = self.hedge.n_experts, width = self.width
        cdef double mixed, slope
        cdef double* u = room                       # weights and losses of mixture and combinations, and room for them
        cdef double* losses = u + self.stack.hedge.lanes
        cdef double* t = losses + self.stack.hedge.lanes
        cdef double* coef = t + self.stack.hedge.lanes
        cdef double* g = coef + n
        cdef double* z = g + n
        cdef double* p = z + n + 1
        cdef double* rises = p + self.n_classes - width  # of the log probability with each logit
        cdef double* logits = p + self.n_classes
        cdef double* a = logits + width
        cdef double* x = a + width
        self.mixed(scores, &self.room[0], p, x + n * width)
        self.differences(scores, p, logits, x)
        self.stack.hedge.weigh(u)
        losses[0] = lost
        for j in range(self.stack.n):
            self.combine(j, logits, x, coef, a)
            losses[1 + j] = -log_softmax(a, width, y)
            for c in range(self.n_classes):
                p[c] = c == y
            add_softmax(a, width, -1.0, p)
            slope = 1.0
            for k in range(n):
                g[k] = 0.0
                for c in range(width):
                    g[k] += x[k * width + c] * rises[c]
                slope += coef[k] * g[k]
            if not self.stack.learn(j, g, slope, weight, z):
                return False
        mixed = ob_mix_loss(u, losses, t, 1 + self.stack.n)
        for j in range(1 + self.stack.n):
            losses[j] *= weight
        self.stack.hedge.count(losses, u, weight * mixed)
        return isfinite(self.stack.hedge.loss)

    cdef void mix(self, const double* scores, double* out, double* room) noexcept nogil:
        cdef Py_ssize_t c, j, n = self.hedge.n_experts, lanes = self.hedge.lanes
        cdef double* more = room + lanes
        cdef double* logits = more + max(2 * lanes, self.n_classes)
        cdef double* a = logits + self.width
        cdef double* x = a + self.width
        cdef double* coef = x + n * self.width
        cdef double* u = coef + n
        self.hedge.weigh(room)
        self.mixed(scores, room, out, more)
        if self.stack is None:
            return
        self.differences(scores, out, logits, x)
        self.stack.hedge.weigh(u)
        for c in range(self.n_classes):
            out[c] *= u[0]
        for j in range(self.stack.n):
            self.combine(j, logits, x, coef, a)
            add_softmax(a, self.width, u[1 + j], out)

    cdef void mixed(self, const double* scores, const double* v, double* p, double* room) noexcept nogil:
        """The weighted mean of the experts' probabilities."""
        cdef Py_ssize_t k, c, n = self.hedge.n_experts
        if self.n_classes == 2:
            self.scale(scores, room)
            ob_mix_two(v, room, room + self.hedge.lanes, &p[1], &p[0], n)
            return
        for c in range(self.n_classes):
            p[c] = 0.0
        for k in range(n):
            find_logits(&self.experts[k], scores + k * self.width, self.width, room)
            add_softmax(room, self.width, v[k], p)

    cdef void differences(self, const double* scores, const double* p, double* logits, double* x) noexcept nogil:
        """The mixture's logits, the largest of three or more 0, and each expert's less these."""
        cdef Py_ssize_t k, c, width = self.width
        cdef double most
        if width == 1:
            logits[0] = log(max(p[1], TINY)) - log(max(p[0], TINY))
        else:
            most = largest(p, width)
            for c in range(width):
                logits[c] = log(max(p[c], TINY)) - log(most)
        for k in range(self.hedge.n_experts):
            find_logits(&self.experts[k], scores + k * width, width, x)
            most = largest(x, width) if width > 1 else 0.0
            for c in range(width):
                x[c] = min(max(x[c] - most - logits[c], -FAR), FAR)
            x += width

    cdef void combine(self, Py_ssize_t j, const double* logits, const double* x, double* coef,
                      double* out) noexcept nogil:
        """The logits of a combination, and its coefficients."""
        cdef Py_ssize_t k, c
        self.stack.solve(j, coef)
        for c in range(self.width):
            out[c] = logits[c]
        for k in range(self.hedge.n_experts):
            for c in range(self.width):
                out[c] += coef[k] * x[k * self.width + c]

    cdef void scale(self, const double* scores, double* scaled) noexcept nogil:
        """The experts' logits of two classes."""
        cdef Py_ssize_t k
        for k in range(self.hedge.n_experts):
            find_logits(&self.experts[k], scores + k, 1, scaled + k)

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
