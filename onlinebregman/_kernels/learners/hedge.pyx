"""Exponential weights on experts, and the bound on the loss of their mixture."""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, isfinite, isnan, log, log1p
from libc.string cimport memcpy, memmove, memset

from onlinebregman._kernels.ops.state cimport Stateful, Undoable
from onlinebregman._kernels.ops.hedge cimport (
    ob_costs, ob_least_cost, ob_least_rise, ob_minus_logs, ob_soft_least, ob_weigh, ob_weigh_after
)
from onlinebregman._kernels.ops.vector cimport OB_LANES, ob_range

cdef enum:
    EVENLY = -1
    SOME = 128                # largest number of rows recorded at even intervals


# A gap below this part of the loss consists of rounding errors; the rate computed from it is meaningless.
cdef double ROUNDING = 1e-12


@cython.final
cdef class History(Stateful):
    """Weights over time: those before each of the last rows, or after rows at even intervals.

    Parameters
    ----------
    n_experts : int
    last : int, default=None
        How many of the last rows are recorded. None: rows at even intervals, doubled whenever there are more than SOME.
    """

    def __cinit__(self, n_experts, last=None, dict state=None):
        self.size, self.arguments = EVENLY if last is None else min(last, 1 << 30), (n_experts, last)
        recorded, self.interval = self.given.pop("weights", np.empty((0, n_experts))), self.given.pop("interval", 1)
        self.n = len(recorded)
        if self.interval < 1 or (last is None and self.n > SOME):
            raise ValueError(
                f"state must have at most {SOME} recorded weights, at intervals of 1 or more rows; "
                f"got {self.n}, at intervals of {self.interval}"
            )
        self.rows = np.empty((SOME if last is None else self.n, n_experts))
        np.asarray(self.rows)[:self.n] = recorded

    def get_state(self):
        """See `Stateful`."""
        return {"weights": self.weights, "interval": self.interval}

    @property
    def last(self):
        return None if self.size == EVENLY else self.size

    @property
    def weights(self):
        """Shape (n_recorded, n_experts); a new array."""
        with cython.critical_section(self):
            first = 0 if self.size == EVENLY else max(self.n - self.size, 0)
            return np.asarray(self.rows)[first:self.n].copy()

    @property
    def t(self):
        """The numbers of rows after which weights were recorded at even intervals, shape (n_recorded,)."""
        return self.interval * np.arange(1, self.n + 1)

    cdef bint due(self, Py_ssize_t t) noexcept nogil:
        """Whether the weights after t rows are recorded."""
        cdef Py_ssize_t k
        if self.size != EVENLY or t % self.interval:
            return False
        if self.n == SOME:  # drop every other row
            self.n //= 2
            self.interval *= 2
            for k in range(self.n):
                memcpy(&self.rows[k, 0], &self.rows[2 * k + 1, 0], self.rows.shape[1] * sizeof(double))
        return t % self.interval == 0

    cdef void record(self, const double* weights) noexcept nogil:
        if self.n == self.rows.shape[0]:  # two times the last rows
            memmove(&self.rows[0, 0], &self.rows[self.n - self.size, 0],
                    self.size * self.rows.shape[1] * sizeof(double))
            self.n = self.size
        memcpy(&self.rows[self.n, 0], weights, self.rows.shape[1] * sizeof(double))
        self.n += 1

    cdef int save(self, Py_ssize_t n_rows) except -1:
        """Save what `restore` restores, and make room; the next call has `n_rows` rows."""
        cdef Py_ssize_t most = self.n + n_rows // self.interval
        self.n_before, self.interval_before, self.rows_before = self.n, self.interval, None
        if self.size == 0:
            self.n = 0  # what was recorded before a gap are not the last rows
            return 0
        if most >= self.rows.shape[0] and self.rows.shape[0] < 2 * <Py_ssize_t> self.size:
            rows = np.empty((min(2 * most, 2 * <Py_ssize_t> self.size), self.rows.shape[1]))
            rows[:self.n] = self.rows[:self.n]
            with cython.critical_section(self):
                self.rows = rows
        if most >= self.rows.shape[0]:
            self.rows_before = self.rows.copy()
        return 0

    cdef void restore(self) noexcept:
        self.n, self.interval = self.n_before, self.interval_before
        if self.rows_before is not None:
            self.rows[...] = self.rows_before


cdef class Hedge(Undoable):
    """Weights v_k ~ prior_k exp(-rate c_k) of K experts, c_k the costs so far, and a bound on the mixture.

    Costs are the experts' losses l_k, or their linear approximations at the mixture (exponentiated gradient). A row
    costs at least the mix loss -ln(sum v_k exp(-rate l_k)) / rate, and these add up to at most L_k - ln(prior_k) / rate
    for every expert. `gap`, the mixability gap, is the loss of the mixture beyond these, so that for any losses

        loss of the mixture  <=  L_k - ln(prior_k) / rate + gap.

    The theorems say when the gap is zero (log loss at rate 1, which is Bayes' rule; losses that are exp-concave at this
    rate) or bound it (rate range^2 / 8 for each row, Hoeffding). At the rate -min ln(prior) / gap, which is ln K / gap
    for equal priors, both last terms are equal (AdaHedge).

    If the costs of a row are others than its losses, as of targets that were clipped, the bound is on costs; that on
    losses is larger by `unlearned`, the sum of the most that the difference of the mixture's and an expert's changes.

    With a share, a part of all weight is redistributed after each row, v <- (1 - share) v + share prior (fixed
    share): costs become -ln(v_k / prior_k) / rate + const. The same bound then holds against every sequence of experts,
    with the logarithm of the prior weight of the sequence. A mixer may multiply the share by an `evenness` of at most
    1, with which only the bound against a single expert holds.

    Weights then remember 1 / share rows. If a window of as many costs less than the gap, this is of other times, as
    before a jump of the targets was learned, and the rate that follows from it would hardly move the weights: the gap
    becomes the mean cost of a row. The weights stay as they are, so that the potential -ln(sum prior_k exp(-rate c_k))
    / rate and the costs c_k, from their least, are multiplied by the same factor: their difference, at most
    -ln(prior_k) / rate, loses `dropped` times this information, which the bound has beside the gap that is forgotten.

    Rows that were predicted together are one round: the costs of them all, at the weights with which all of them were
    predicted, and as many shares as there are rows.

    Parameters
    ----------
    n_experts : int
    rate : float or None, default=None
        None: -min ln(prior) / gap.
    share : float, default=0.0
        At least 0 and below 1.
    prior : ndarray of shape (n_experts,), default=None
        Positive weights of sum 1; equal ones by default.
    history : History, default=None
        Of the weights; by default at even intervals.
    """

    def __cinit__(self, n_experts, rate=None, share=0.0, prior=None, History history=None, dict state=None):
        if n_experts < 1:
            raise ValueError(f"n_experts must be 1 or more; got {n_experts}")
        self.n_experts, self.share, self.evenness = n_experts, share, 1.0
        self.fields.expect("losses", n_experts)
        self.fixed_rate = NAN if rate is None else rate
        self.lanes = (n_experts + OB_LANES - 1) // OB_LANES * OB_LANES
        self.losses, self.costs = np.zeros(n_experts), np.zeros(self.lanes)
        self.buffer, self.ratio, self.neg_log_ratio = np.zeros(self.lanes), np.ones(self.lanes), np.zeros(self.lanes)
        self.held, self.held_costs = -1, np.zeros(self.lanes)
        self.least_prior, self.neg_log_least = 1.0 / n_experts, log(n_experts)
        if prior is not None:
            prior = np.asarray(prior, dtype=np.float64)
            if prior.shape != (n_experts,) or not (prior > 0).all():
                raise ValueError(f"prior must be {n_experts} positive weights; got {prior}")
            np.asarray(self.ratio)[:n_experts] = prior * n_experts
            np.asarray(self.neg_log_ratio)[:n_experts] = -np.log(self.ratio[:n_experts])
            self.prior, self.least_prior = prior, prior.min()
            self.neg_log_least = -log(self.least_prior)
        self.arguments = n_experts, rate, share, prior, None
        self.set_history(History(n_experts) if history is None else history)
        self.fields.vector("losses", self.losses)
        self.fields.vector("costs", self.costs[:n_experts])
        self.fields.add("totals", &self.totals, sizeof(self.totals))

    @property
    def n_rows(self):
        return int(self.totals.rows)

    @property
    def weights(self):
        """The experts' weights, shape (n_experts,)."""
        weights = np.empty(self.lanes)
        cdef double[::1] view = weights
        self.weigh(&view[0])
        return weights[:self.n_experts].copy()

    @property
    def log_weights(self):
        """Their logarithms, also of those that underflow."""
        cdef double[::1] buffer = np.zeros(2 * self.lanes)
        self.weigh(&buffer[0])
        self.find_logs(&buffer[0], &buffer[self.lanes])
        return -np.asarray(buffer)[self.lanes:self.lanes + self.n_experts]

    @property
    def expert_losses(self):
        """The experts' cumulative losses, shape (n_experts,)."""
        return np.asarray(self.losses).copy()

    def regret_bound(self, n_switches=0, prior=None):
        """Bound on the regret to an expert, or to a sequence of experts with `n_switches` switches.

        `prior` is the expert's initial weight; by default the smallest prior weight.
        """
        if n_switches and not self.share:
            return INFINITY
        # a sequence has weight prior, times 1 - share + share prior where it stays, times share prior at each switch
        stays = -log1p(-self.share * (1 - self.least_prior)) * max(self.n_rows - 1 - n_switches, 0)
        switches = n_switches * (self.neg_log_least - log(self.share)) if n_switches else 0.0
        information = stays + switches - log(self.least_prior if prior is None else prior)
        gap = self.totals.gap + self.neg_log_least * self.totals.dropped
        return information * (1 / self.current_rate() + self.totals.dropped) + gap + self.totals.unlearned

    cdef int set_history(self, History history) except -1:
        if history.rows.shape[1] != self.n_experts:
            raise ValueError(f"history must be of {self.n_experts} experts; got {history.rows.shape[1]}")
        self.history, self.arguments = history, (*self.arguments[:4], history)
        return 0

    cdef double current_rate(self) noexcept nogil:
        """The learning rate of the weights; an adaptive one is infinite until the gap is positive."""
        if not isnan(self.fixed_rate):
            return self.fixed_rate
        return self.neg_log_least / self.totals.gap if self.totals.gap > 0 and self.neg_log_least > 0 else INFINITY

    cdef double least(self, double rate) noexcept nogil:
        """The smallest total cost of an expert at this rate; see `OB_TOTAL_COST`."""
        return ob_least_cost(&self.costs[0], &self.neg_log_ratio[0], rate, self.n_experts)

    cdef void weigh(self, double* weights) noexcept nogil:
        """Compute the weights of the next row, an array of length `lanes`."""
        cdef Py_ssize_t k
        cdef double rate = self.current_rate(), best = self.least(rate), total = 0.0
        if rate < INFINITY:
            ob_weigh(weights, &self.costs[0], &self.neg_log_ratio[0], rate, best, self.n_experts)
            return
        for k in range(self.n_experts):
            weights[k] = self.ratio[k] if self.costs[k] == best else 0.0
            total += weights[k]
        for k in range(self.n_experts):
            weights[k] /= total

    cdef void find_logs(self, const double* weights, double* logs) noexcept nogil:
        """Compute -ln of the weights from `weigh`, finite also where they underflow."""
        cdef Py_ssize_t k
        cdef double rate = self.current_rate(), largest = 0.0
        for k in range(self.n_experts):
            largest = max(largest, weights[k])
            logs[k] = -log(weights[k])
        if rate < INFINITY:
            ob_minus_logs(logs, &self.costs[0], &self.neg_log_ratio[0], rate, self.least(rate), largest, self.n_experts)

    cdef double log_loss(self, const double* weights, const double* losses, double* buffer) noexcept nogil:
        """-ln sum v_k exp(-losses_k), the log loss of the mixture; the buffer has 2 `lanes` numbers."""
        self.find_logs(weights, buffer)
        return ob_soft_least(buffer + self.lanes, buffer, losses, self.n_experts)

    cdef void count(self, const double* losses, double loss, double* weights, const double* costs,
                    double cost) noexcept nogil:
        """Count a row with these losses, and costs, of the experts and, with these weights, of the mixture.

        The weights, of length `lanes`, are overwritten.
        """
        cdef Py_ssize_t k
        if self.history.size > 0:
            self.history.record(weights)
        if self.held < 0:
            self.move(weights, costs, cost, 1)
        else:
            self.held += 1
            self.held_cost += cost
            for k in range(self.n_experts):
                self.held_costs[k] += costs[k]
        for k in range(self.n_experts):
            self.losses[k] += losses[k]
        self.totals.loss += loss
        self.totals.rows += 1.0
        if self.history.due(<Py_ssize_t> self.totals.rows):
            self.weigh(&self.buffer[0])
            self.history.record(&self.buffer[0])

    cdef void hold(self) noexcept nogil:
        """Keep the weights as they are, with which the next rows were predicted, until `release`."""
        self.held, self.held_cost = 0, 0.0
        memset(&self.held_costs[0], 0, self.lanes * sizeof(double))

    cdef void release(self) noexcept nogil:
        """Move the weights by the costs of the rows since `hold`."""
        if self.held > 0:
            self.weigh(&self.buffer[0])
            self.move(&self.buffer[0], &self.held_costs[0], self.held_cost, self.held)
        self.held = -1

    cdef void move(self, double* weights, const double* costs, double cost, Py_ssize_t n_rows) noexcept nogil:
        """Move the weights by a round of these costs, and count its gap."""
        cdef Py_ssize_t k
        cdef double rate = self.current_rate(), best = self.least(rate), mixed, largest = 0.0, total = 0.0
        cdef double rise = ob_least_rise(&self.costs[0], &self.neg_log_ratio[0], costs, rate, best, self.n_experts)
        cdef double share = self.evenness * self.share
        cdef double keep = 1.0 - share if n_rows == 1 else (1.0 - share) ** n_rows
        cdef double part = share if n_rows == 1 else 1.0 - keep
        cdef Totals* totals = &self.totals
        cdef bint known = not isnan(self.fixed_rate) or (rate < INFINITY and totals.gap >= ROUNDING * totals.cost)
        # the mix loss, relative to the smallest cost; at an infinite rate the increase of the smallest cost
        mixed = rise
        if rate < INFINITY:  # relative to the largest terms, which do not underflow: the sum is 1 / the largest weight
            for k in range(self.n_experts):
                largest = max(largest, weights[k])
            total = ob_weigh_after(
                weights, &self.costs[0], &self.neg_log_ratio[0], costs, rate, best, rise, self.n_experts
            )
            mixed -= log(total * largest) / rate
        for k in range(self.n_experts):
            self.costs[k] += costs[k]
        totals.gap += max(cost - mixed, 0.0)
        totals.cost += cost
        if self.share > 0 and known:  # raise small weights, and lower the others: the sum does not change
            ob_costs(&self.costs[0], weights, &self.ratio[0], &self.neg_log_ratio[0], keep,
                     part * total / self.n_experts, rate, best + rise, self.n_experts)
            if isnan(self.fixed_rate):
                self.raise_rate(cost, n_rows)

    cdef void raise_rate(self, double cost, Py_ssize_t n_rows) noexcept nogil:
        """Count a round, and raise the rate if the gap is larger than what a window costs."""
        cdef Py_ssize_t k
        cdef Totals* totals = &self.totals
        cdef double part
        totals.recent_rows += n_rows
        totals.recent_cost += cost
        if totals.recent_rows * self.share < 1.0:
            return
        if 0.0 < totals.recent_cost < totals.gap:
            part = totals.recent_cost / totals.recent_rows * n_rows / totals.gap
            totals.dropped += (1.0 - part) / self.current_rate()
            totals.gap *= part
            totals.cost *= part
            for k in range(self.n_experts):
                self.costs[k] *= part
        totals.recent_rows = totals.recent_cost = 0.0

    cdef void forget(self) noexcept nogil:
        """Begin again with the weights of the prior, without a share; the bound has the regret until now beside it."""
        cdef Py_ssize_t k
        self.totals.gap, self.totals.cost, self.totals.unlearned = 0.0, 0.0, -INFINITY
        for k in range(self.n_experts):
            self.costs[k] = 0.0
            self.totals.unlearned = max(self.totals.unlearned, self.totals.loss - self.losses[k])

    cdef void leave_out(self, const double* losses, double loss, const double* costs, double cost) noexcept nogil:
        """Count, for the bound, what of the losses of a row are not costs."""
        cdef Py_ssize_t k
        cdef double most = -INFINITY
        for k in range(self.n_experts):
            most = max(most, (loss - cost) - (losses[k] - costs[k]))
        self.totals.unlearned += most

    cdef bint finite(self) noexcept nogil:
        """Whether the costs of the mixture and of at least one expert are finite so far."""
        cdef double lo = INFINITY, hi = -INFINITY
        ob_range(&self.costs[0], self.n_experts, &lo, &hi)
        return isfinite(self.totals.loss) and isfinite(self.totals.gap) and isfinite(lo) and not isnan(hi)

    cdef int save(self, Py_ssize_t n_rows) except -1:
        self.history.save(n_rows)
        return Undoable.save(self, n_rows)

    cdef void restore(self) noexcept:
        Undoable.restore(self)
        self.history.restore()
        self.held = -1
