"""Mixers: the weights of experts, learned from rows of their scores, and the prediction of their mixture.

Scores are the columns of X, or computed in Python, or those of learners of the same rows, see `mixture`. The weights
are exponential weights on the experts' cumulative losses, see `hedge`; a mixer computes the losses of the experts and
of their mixture.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, exp, fabs, isfinite, isinf, isnan, log
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport DENSE, Workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block
from onlinebregman._kernels.learners.atomic import check_columns
from onlinebregman._kernels.learners.hedge cimport Hedge, History
from onlinebregman._kernels.learners.run cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED
from onlinebregman._kernels.ops.state cimport Undoable
from onlinebregman._kernels.ops.hedge cimport ob_log_odds_of_ends, ob_soft_least
from onlinebregman._kernels.ops.pointers cimport PyTuple_GET_ITEM
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.rows cimport Row, Rows

cdef double FAR = 3.0         # halves of the range from its middle, beyond which a forecast is absurd
cdef double SMALLEST = 708.0  # -ln of the smallest mixture that p_k are divided by


cdef class Mixer(AtomicLearner):
    """Base class: a learner of weights, whose rows are scores of experts; a subclass computes the losses of a row."""

    def __cinit__(self, *arguments):
        if type(self) is Mixer:
            raise TypeError("Mixer must be created with the arguments of a subclass, which defines the loss")
        self.n_targets, self.target_ndim, self.traits = 1, 1, DENSE
        self.stacks, self.undoable, self.residuals = (), (), np.zeros(2)

    cdef int allocate(self, Hedge hedge, n_features, Py_ssize_t n_scores, Py_ssize_t more=0) except -1:
        cdef Py_ssize_t lanes = hedge.lanes
        self.hedge, self.n_features, self.n_scores = hedge, n_features, n_scores
        stacks = self.stack, None if self.memory is None else self.memory.stack
        self.stacks = tuple([stack for stack in stacks if stack is not None])
        parts = hedge, *self.stacks, *[stack.hedge for stack in self.stacks], self.memory, self.tracker
        self.undoable = tuple([part for part in parts if part is not None])
        self.n_undoable = len(self.undoable)
        self.buffer, self.residuals = np.zeros(5 * lanes + more), np.zeros(2 * n_scores)
        self.v, self.losses, self.costs = &self.buffer[0], &self.buffer[lanes], &self.buffer[2 * lanes]
        self.work = &self.buffer[3 * lanes]
        return 0

    def apply(self, *, bint delayed, bint ordered=True, history=None):
        """Apply settings.

        Parameters
        ----------
        delayed : bool
            Whether the rows of a call were predicted together.
        ordered : bool, default=True
            Whether rows follow each other, so that what was before is remembered.
        history : int, default=None
            How many of the last weights are recorded; None: as before.
        """
        self.delayed = delayed
        self.arrange(ordered)
        if history is not None and history != self.hedge.history.last:
            self.hedge.set_history(History(self.hedge.n_experts, history, self.hedge.history.get_state()))

    cdef void arrange(self, bint ordered) noexcept nogil:
        if self.memory is not None:
            self.memory.arrange(ordered)

    cdef dict exchange(self, dict others):
        held = {"delayed": bool(self.delayed), "history": None if self.hedge is None else self.hedge.history}
        if others is not None:
            self.delayed = others["delayed"]
            if self.hedge is not None:
                self.hedge.set_history(others["history"])
        return held

    @property
    def mixer(self):
        """Itself, as of a `MixtureLearner`."""
        return self

    @property
    def cumulative_loss(self):
        """That of the mixture; with a stack that of its mixture with the combinations, and so on with a memory."""
        cdef Hedge last = (self, *self.stacks)[len(self.stacks)].hedge
        return self.first_loss() + last.totals.loss

    @property
    def expert_losses(self):
        """The experts' cumulative losses, shape (n_experts,)."""
        return self.first_loss() + self.hedge.expert_losses

    def regret_bound(self):
        """Bound on the mixture's loss minus that of the best expert."""
        bound = self.hedge.regret_bound()
        for stack in self.stacks:
            bound += stack.hedge.regret_bound(prior=stack.prior)
        return bound

    # --- rows of scores -------------------------------------------------------------------------------------------

    def predict(self, const double[:, ::1] scores):
        """The mixture's outputs for rows of scores, shape (n_rows, n_scores)."""
        cdef Py_ssize_t i
        cdef double[::1] buffer = np.empty(self.buffer_size())
        cdef double[:, ::1] out = np.empty((scores.shape[0], self.n_scores))
        check_columns(scores.shape[1], self.n_features)
        self.weigh(&buffer[0])
        for i in range(scores.shape[0]):
            self.mix(&scores[i, 0], &out[i, 0], &buffer[0])
        return np.asarray(out)

    # --- a call: see `AtomicLearner`, by itself or with the learners of the scores ----------------------------------

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef Undoable part
        AtomicLearner.begin(self, rows, complete)
        for part in self.undoable:
            part.save(rows.n_rows)
        return 0

    cdef int undo(self) except -1:
        cdef Undoable part
        for part in self.undoable:
            part.restore()
        AtomicLearner.undo(self)
        self.enter(AT_ONCE)
        return 0

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        """Rows that are `delayed` were all predicted, by the experts and the mixture, before any target was known."""
        cdef int status
        if not self.delayed:
            return AtomicLearner.loop(self, rows, block)
        self.enter(JUDGE)
        status = AtomicLearner.loop(self, rows, block)
        if status == LEARNED:
            self.enter(LEARN)
            status = AtomicLearner.loop(self, rows, block)
        return status if self.enter(AT_ONCE) or status != LEARNED else LOSS_OVERFLOWED

    cdef bint enter(self, Phase phase) noexcept nogil:
        """Begin a phase of a call; returns whether all sums are finite.

        From `JUDGE` on all that predictions depend on stays as it is. The weights then move by the losses of all rows.
        """
        cdef Py_ssize_t k
        for k in range(self.n_undoable):
            if phase == JUDGE:
                (<Undoable> PyTuple_GET_ITEM(<void*> self.undoable, k)).hold()
            elif phase == AT_ONCE:
                (<Undoable> PyTuple_GET_ITEM(<void*> self.undoable, k)).release()
        self.phase = phase
        if self.memory is not None and not self.memory.stack.hedge.finite():
            return False
        return self.hedge.finite() and (self.stack is None or self.stack.hedge.finite())

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        cdef double none = 0.0
        return self.learn_targets(row.x, &none if y == NULL else y, weight)

    cdef int learn_scores(self, const double* scores, double y, double weight) noexcept nogil:
        """Count a row of scores, computed before the experts learned it, and learn it; returns the `Status`."""
        cdef Py_ssize_t k, n = self.hedge.n_experts
        cdef double loss, cost = 0.0
        cdef double* costs
        self.hedge.weigh(self.v)
        self.clipped = False
        loss = self.compare(scores, y, weight)
        if not isfinite(loss):
            return BAD_TARGET
        if self.phase != LEARN:
            costs = self.costs if self.gradient or self.clipped else self.losses
            for k in range(n):
                self.losses[k] *= weight
            for k in range(n if costs == self.costs else 0):
                costs[k] *= weight
                cost += self.v[k] * costs[k]
            if not self.gradient:
                cost = weight * (self.cost if self.clipped else loss)
            if self.clipped:
                self.hedge.leave_out(self.losses, weight * loss, costs, cost)
            self.hedge.count(self.losses, weight * loss, self.v, costs, cost)
            if self.tracker is not None and self.error >= 0 and not self.tracker.learn(self.error):
                return LOSS_OVERFLOWED
        if self.phase != JUDGE and not self.settle(scores, y, weight):
            return LOSS_OVERFLOWED
        return LEARNED if self.hedge.finite() else LOSS_OVERFLOWED

    cdef bint some_sleep(self, const double* scores) noexcept nogil:
        """Whether all forecasts that are not finite are NaN, of experts that sleep, and there are others."""
        cdef Py_ssize_t k, awake = 0
        for k in range(self.hedge.n_experts):
            if isinf(scores[k]):
                return False
            awake += not isnan(scores[k])
        return awake > 0

    # --- what a subclass computes -----------------------------------------------------------------------------------

    cdef double first_loss(self) noexcept nogil:
        """Part of the loss that the mixture and all experts have in common, which the hedge does not count."""
        return 0.0

    cdef void find_targets(self, const double* y, const double* weight, Py_ssize_t n, Py_ssize_t stride,
                           double* targets) noexcept nogil:
        """The targets that learners get for the targets y of the next n rows, both `stride` numbers apart."""
        cdef Py_ssize_t i
        for i in range(n):
            targets[i * stride] = y[i * stride]

    cdef int learn_targets(self, const double* scores, const double* y, double weight) noexcept nogil:
        """`learn_scores`, with as many targets as there are outputs."""
        return self.learn_scores(scores, y[0], weight)

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        """The mixture's loss on a row as one of weight 1, with the weights `v`; not finite if it must be refused.

        Also computes the losses of the experts, if `gradient` the gradient with respect to the weights, with a
        `tracker` the error, if `watched` the residuals, and if it sets `clipped`, the costs and the `cost` that are
        learned. Counts, unless in the phase `LEARN`, and learns, unless it is to `JUDGE`, with the `stack`.
        """
        return 0.0

    cdef bint settle(self, const double* scores, double y, double weight) noexcept nogil:
        """Learn from a row what else there is, after the weights, unless it is to `JUDGE`; whether it is finite."""
        return True

    cdef Py_ssize_t buffer_size(self) noexcept nogil:
        """Length of the buffer of `mix`."""
        return self.hedge.lanes

    cdef void weigh(self, double* buffer) noexcept nogil:
        """Prepare a buffer for `mix`, which begins with the weights."""
        self.hedge.weigh(buffer)

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        """Compute the mixture's outputs for a row of scores; by default NaN, where estimators do that in Python."""
        cdef Py_ssize_t k
        for k in range(self.n_scores):
            out[k] = NAN


@cython.final
cdef class Unmixed(Mixer):
    """Returns the scores unchanged.

    Parameters
    ----------
    n_scores : int
    """

    cumulative_loss = 0.0

    def __cinit__(self, n_scores, state=None):
        self.n_features = self.n_scores = n_scores

    cdef bint enter(self, Phase phase) noexcept nogil:
        return True

    cdef int learn_scores(self, const double* scores, double y, double weight) noexcept nogil:
        return LEARNED

    cdef Py_ssize_t buffer_size(self) noexcept nogil:
        return 0

    cdef void weigh(self, double* buffer) noexcept nogil:
        pass

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        memcpy(out, scores, self.n_scores * sizeof(double))


@cython.final
cdef class OutputsMixer(Mixer):
    """A mixer for each output; each learner has one score for each of them.

    Parameters
    ----------
    mixers : list of Mixer
        Of learners with one score, and with the same number of scores of their own.
    """

    cdef readonly tuple mixers          # of each output
    cdef Py_ssize_t n                   # their number
    cdef double[::1] row                # scores of one output

    def __cinit__(self, mixers, state=None):
        cdef Mixer mixer
        self.mixers = self.members = tuple([<Mixer?> mixer for mixer in mixers])
        self.n = self.n_targets = len(self.mixers)
        self.target_ndim = 2
        if len({(mixer.n_features, mixer.n_scores) for mixer in self.mixers}) != 1:
            raise ValueError(f"mixers must be of the same numbers of experts and scores; got {self.mixers}")
        self.n_scores = self.n * self.mixers[0].n_scores
        self.n_features = self.n * self.mixers[0].n_features
        self.row, self.residuals = np.empty(self.mixers[0].n_features), np.zeros(2 * self.n_scores)

    cdef void arrange(self, bint ordered) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n):
            (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).arrange(ordered)

    @property
    def cumulative_loss(self):
        """The sum of the mixtures' losses."""
        return sum([mixer.cumulative_loss for mixer in self.mixers])

    @property
    def expert_losses(self):
        """The experts' cumulative losses, shape (n_outputs, n_experts)."""
        return np.stack([mixer.expert_losses for mixer in self.mixers])

    def regret_bound(self):
        """The sum of the bounds of all outputs."""
        return sum([mixer.regret_bound() for mixer in self.mixers])

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef Mixer mixer
        Mixer.begin(self, rows, complete)
        for mixer in self.mixers:
            mixer.begin(rows, complete)
        return 0

    cdef bint enter(self, Phase phase) noexcept nogil:
        cdef Py_ssize_t k
        cdef bint finite = True
        for k in range(self.n):
            finite = (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).enter(phase) and finite
        return finite

    cdef void find_targets(self, const double* y, const double* weight, Py_ssize_t n, Py_ssize_t stride,
                           double* targets) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n):
            (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).find_targets(y + k, weight, n, stride, targets + k)

    cdef void gather(self, const double* scores, Py_ssize_t output, double* row) noexcept nogil:
        """The experts' scores of one output."""
        cdef Py_ssize_t j
        for j in range(self.row.shape[0]):
            row[j] = scores[j * self.n + output]

    cdef int learn_targets(self, const double* scores, const double* y, double weight) noexcept nogil:
        cdef Py_ssize_t k, n = self.n_scores // self.n
        cdef int status
        cdef const double* of_output
        for k in range(self.n):
            self.gather(scores, k, &self.row[0])
            status = (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).learn_scores(&self.row[0], y[k], weight)
            if status != LEARNED:
                return status
            of_output = &(<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).residuals[0]
            memcpy(&self.residuals[k * n], of_output, n * sizeof(double))
            memcpy(&self.residuals[self.n_scores + k * n], of_output + n, n * sizeof(double))
        return LEARNED

    cdef Py_ssize_t buffer_size(self) noexcept nogil:
        cdef Py_ssize_t k, size = self.row.shape[0]
        for k in range(self.n):
            size += (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).buffer_size()
        return size

    cdef void weigh(self, double* buffer) noexcept nogil:
        cdef Py_ssize_t k
        buffer += self.row.shape[0]
        for k in range(self.n):
            (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).weigh(buffer)
            buffer += (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).buffer_size()

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        cdef Py_ssize_t k
        cdef double* row = buffer
        buffer += self.row.shape[0]
        for k in range(self.n):
            self.gather(scores, k, row)
            (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).mix(row, out, buffer)
            out += (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).n_scores
            buffer += (<Mixer> PyTuple_GET_ITEM(<void*> self.mixers, k)).buffer_size()


@cython.final
cdef class AggregatingMixer(Mixer):
    """Forecasts of targets in [lo, hi], by the Aggregating Algorithm for the squared loss; forecasts are clipped.

    With B = hi - lo, the generalised prediction g(y) = -ln(sum v_k exp(-rate (p_k - y)^2 / 2)) / rate is at the rate
    4 / B^2 at least the loss of the forecast

        a = (lo + hi) / 2 + (g(lo) - g(hi)) / B,

    for all y in [lo, hi]. At the same or a lower rate of the weights, g(y) is at most their mix loss.

    Experts whose forecasts are farther than B from the range, if not all are, or NaN, have no weight in the row, and
    learn the mixture's loss: weights and bound are those of experts that sleep.

    Parameters
    ----------
    hedge : Hedge
    lo, hi : float
    """

    cdef readonly double lo, hi         # the range of targets

    def __cinit__(self, Hedge hedge not None, double lo, double hi, state=None):
        if not lo < hi:
            raise ValueError(f"lo must be below hi; got {lo} and {hi}")
        self.lo, self.hi = lo, hi
        self.allocate(hedge, hedge.n_experts, 1)

    cdef Py_ssize_t buffer_size(self) noexcept nogil:
        return 3 * self.hedge.lanes

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        out[0] = self.forecast(scores, buffer, buffer + self.hedge.lanes)

    cdef double forecast(self, const double* forecasts, double* v, double* work) noexcept nogil:
        """The mixture's forecast; `work` has 2 `lanes` numbers, of which the first are inf or forecasts."""
        cdef Py_ssize_t k, near = 0
        cdef double middle = self.lo + (self.hi - self.lo) / 2, half = (self.hi - self.lo) / 2
        for k in range(self.hedge.n_experts):
            work[k] = (forecasts[k] - middle) / half
            near += fabs(work[k]) <= FAR
        for k in range(self.hedge.n_experts):
            work[k] = min(max(work[k], -1.0), 1.0) if fabs(work[k]) <= (FAR if near > 0 else INFINITY) else INFINITY
            v[k] = max(v[k], 0.0 if near == self.hedge.n_experts else 1e-300)  # the others' may be 0
        return middle + half / 2 * ob_log_odds_of_ends(v, work, work + self.hedge.lanes, self.hedge.n_experts)

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k
        if not self.lo <= y <= self.hi or not self.some_sleep(scores):
            return INFINITY
        self.cost = (self.forecast(scores, self.v, self.work) - y) ** 2 / 2
        for k in range(self.hedge.n_experts):
            self.losses[k] = self.cost if isnan(scores[k]) else (min(max(scores[k], self.lo), self.hi) - y) ** 2 / 2
            self.costs[k] = self.losses[k] if self.work[k] < INFINITY else self.cost
            self.clipped = self.clipped or self.work[k] == INFINITY
        return self.cost


@cython.final
cdef class LogMixer(Mixer):
    """Probabilities or densities p_k: the mixture's is their mean, and the loss -ln of that.

    Parameters
    ----------
    hedge : Hedge
    gradient : bool
        See `MeanMixer`.
    logarithms : bool
        Whether rows are ln p_k.
    """

    cdef readonly bint logarithms

    def __cinit__(self, Hedge hedge not None, bint gradient, bint logarithms, state=None):
        self.gradient, self.logarithms = gradient, logarithms
        self.allocate(hedge, hedge.n_experts, 1)
        self.target_ndim, self.n_targets, self.other_n_targets = 0, 0, 1  # class numbers, which it does not need

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k
        cdef double loss
        for k in range(self.hedge.n_experts):
            self.losses[k] = -(scores[k] if self.logarithms else log(scores[k]))
        loss = self.hedge.log_loss(self.v, self.losses, self.work)
        if not isfinite(loss):
            loss = self.loss_of_some()
        if self.gradient and loss > SMALLEST:
            return INFINITY
        for k in range(self.hedge.n_experts if self.gradient else 0):
            self.costs[k] = -exp(loss - self.losses[k])
        return loss

    cdef double loss_of_some(self) noexcept nogil:
        """The mixture's loss where experts whose loss is NaN sleep, which have the same; NaN if all do.

        The others have equal weights if the sum of theirs is 0. The loss of a single one is the same to the last digit.
        """
        cdef Py_ssize_t k, n = self.hedge.n_experts, awake = 0
        cdef double loss
        for k in range(n):
            self.costs[k] = 0.0
            if isnan(self.losses[k]):
                self.losses[k] = self.costs[k] = INFINITY
            awake += self.costs[k] == 0
        loss = self.hedge.log_loss(self.v, self.losses, self.work) - self.hedge.log_loss(self.v, self.costs, self.work)
        if isnan(loss) or awake == 1:
            loss = ob_soft_least(self.work, self.costs, self.losses, n) + log(awake)
        for k in range(n):
            if self.costs[k] == INFINITY:
                self.losses[k] = loss
        return loss


@cython.final
cdef class BrierMixer(Mixer):
    """Probabilities of classes: the mixture's are their means, and the loss half the squared distance from the truth.

    Rows are the probabilities of all classes by the first expert, then by the next; targets are numbers of classes.

    Parameters
    ----------
    hedge : Hedge
    gradient : bool
        See `MeanMixer`.
    n_classes : int
    """

    cdef readonly Py_ssize_t n_classes

    def __cinit__(self, Hedge hedge not None, bint gradient, Py_ssize_t n_classes, state=None):
        if n_classes < 1:
            raise ValueError(f"n_classes must be 1 or more; got {n_classes}")
        self.gradient, self.n_classes = gradient, n_classes
        self.allocate(hedge, <object> hedge.n_experts * n_classes, n_classes)  # or OverflowError

    cdef double compare(self, const double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k, c, n = self.hedge.n_experts, awake = 0
        cdef double* v = self.work
        cdef const double* p
        cdef double loss = 0.0, total = 0.0, truth, mixed, forecast
        for k in range(n):
            self.losses[k] = self.costs[k] = v[k] = 0.0
            if not isnan(scores[k * self.n_classes]):
                awake, v[k], total = awake + 1, self.v[k], total + self.v[k]
        for k in range(n if awake < n else 0):  # the others sleep
            v[k] = v[k] / total if total > 0 else 1.0 / awake
        for c in range(self.n_classes):
            truth, mixed, p = <double> (y == c), 0.0, scores + c
            for k in range(n):
                mixed += 0.0 if isnan(p[k * self.n_classes]) else v[k] * p[k * self.n_classes]
            loss += (mixed - truth) ** 2 / 2
            for k in range(n):
                forecast = mixed if isnan(p[k * self.n_classes]) else p[k * self.n_classes]
                self.losses[k] += (forecast - truth) ** 2 / 2
                self.costs[k] += (mixed - truth) * forecast
        return loss if awake > 0 else NAN
