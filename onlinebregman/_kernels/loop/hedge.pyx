"""Exponential weights on experts, and what mixing them costs."""

import numpy as np

from libc.math cimport INFINITY, NAN, isnan, log
from libc.string cimport memcpy

cdef extern from "ops/hedge.h":
    Py_ssize_t OB_LANES
    void ob_range(const double* a, Py_ssize_t n, double* lo, double* hi) noexcept nogil
    double ob_least_rise(const double* costs, const double* losses, double best, Py_ssize_t n) noexcept nogil
    void ob_weigh(double* w, const double* costs, double rate, double best, Py_ssize_t n) noexcept nogil
    double ob_weigh_after(double* w, const double* costs, const double* losses, double rate, double best, double rise,
                          Py_ssize_t n) noexcept nogil
    void ob_costs(double* costs, const double* w, double keep, double part, double rate, double best,
                  Py_ssize_t n) noexcept nogil

cdef enum:
    LOGGED = 128              # weights that are kept on record, at most


# A gap below this part of the loss is rounding errors, and the rate that follows from it says nothing.
cdef double ROUNDING = 1e-12


cdef class Hedge:
    """Weights v_k ~ exp(-rate L_k) of K experts with cumulative losses L_k, and the loss of their mixture.

    The mix losses -ln(sum v_k exp(-rate loss_k)) / rate add up to at most min L_k + ln K / rate, and `gap` is the sum
    of how far the mixture's losses were above them, so that for any losses whatsoever

        loss of the mixture  <=  min L_k + ln K / rate + gap.

    At the rate ln K / gap both terms are equal (AdaHedge). Log losses of a mixture of probabilities are the mix losses
    at rate 1: no gap (Bayes).

    With a share, a part of all weight is dealt out again after each row, v <- (1 - share) v + share / K (fixed share).
    The costs -ln(v_k) / rate + const. then take the place of the losses. `experts._weights.ExpertWeights` is the same in
    NumPy, for priors and with the bounds of a share.

    Parameters
    ----------
    n_experts : int
    rate : float or None, default=None
        None: ln K / gap.
    share : float, default=0.0
        At least 0 and below 1.
    state : tuple, default=None
        What another one knows, to go on as it would.
    """

    def __cinit__(self, n_experts, rate=None, share=0.0, state=None):
        if n_experts < 1:
            raise ValueError(f"n_experts must be 1 or more; got {n_experts}")
        self.n_experts, self.share = n_experts, share
        self.fixed_rate = NAN if rate is None else rate
        self.lanes = (n_experts + OB_LANES - 1) // OB_LANES * OB_LANES
        self.losses, self.costs, self.before = np.zeros(n_experts), np.zeros(self.lanes), np.empty(2 * n_experts)
        self.room = np.zeros(self.lanes)
        self.log, self.interval = np.empty((LOGGED, n_experts)), 1
        if state is not None:
            losses, costs, self.loss, self.gap, self.n_rows, self.interval, log = state
            if self.interval < 1 or len(log) > LOGGED:
                raise ValueError(f"weights must be on record {LOGGED} times at most, at intervals of 1 or more rows")
            np.asarray(self.losses)[:], np.asarray(self.costs)[:n_experts] = losses, costs
            self.n_logged = len(log)
            np.asarray(self.log)[:self.n_logged] = log

    def __reduce__(self):
        rate = None if isnan(self.fixed_rate) else self.fixed_rate
        log = np.asarray(self.log)[:self.n_logged].copy()
        state = np.asarray(self.losses).copy(), np.asarray(self.costs)[:self.n_experts].copy(), self.loss, self.gap
        state += self.n_rows, self.interval, log
        return type(self), (self.n_experts, rate, self.share, state)

    @property
    def rate(self):
        """The learning rate of the weights; infinite until a mixture has cost something, if it is adaptive."""
        return self.current_rate()

    @property
    def weights(self):
        """The experts' weights, shape (n_experts,)."""
        cdef double[::1] weights = np.empty(self.lanes)
        self.weigh(&weights[0])
        return np.asarray(weights)[:self.n_experts].copy()

    @property
    def weights_log(self):
        """Numbers of rows, shape (n_logged,), and the weights after each, shape (n_logged, n_experts).

        At even intervals, which are doubled whenever more than LOGGED would be on record.
        """
        rows = self.interval * np.arange(1, self.n_logged + 1)
        return rows, np.asarray(self.log)[:self.n_logged].copy()

    @property
    def expert_losses(self):
        """The experts' cumulative losses, shape (n_experts,)."""
        return np.asarray(self.losses).copy()

    def learn(self, const double[::1] losses, double loss):
        """Count a row on which the experts had these losses, and the mixture this one."""
        cdef double[::1] room = np.zeros(2 * self.lanes)
        np.asarray(room)[:self.n_experts] = losses
        self.weigh(&room[self.lanes])
        self.count(&room[0], &room[self.lanes], loss)

    cdef double current_rate(self) noexcept nogil:
        if not isnan(self.fixed_rate):
            return self.fixed_rate
        return log(<double> self.n_experts) / self.gap if self.gap > 0 else INFINITY

    cdef double least(self) noexcept nogil:
        """The best expert's cost."""
        cdef double lo = INFINITY, hi = -INFINITY
        ob_range(&self.costs[0], self.n_experts, &lo, &hi)
        return lo

    cdef void weigh(self, double* weights) noexcept nogil:
        """The weights of the next row; there is room for `lanes` numbers."""
        cdef Py_ssize_t k
        cdef double best = self.least(), total = 0.0, rate = self.current_rate()
        if rate < INFINITY:
            ob_weigh(weights, &self.costs[0], rate, best, self.n_experts)
            return
        for k in range(self.n_experts):
            weights[k] = 1.0 if self.costs[k] == best else 0.0
            total += weights[k]
        for k in range(self.n_experts):
            weights[k] /= total

    cdef void count(self, const double* losses, double* weights, double loss) noexcept nogil:
        """A row on which the experts had these losses, and by these weights, which are lost, the mixture this one.

        There is room for `lanes` numbers.
        """
        cdef Py_ssize_t k
        cdef double rate = self.current_rate(), best = self.least(), mixed, largest = 0.0, total = 0.0
        cdef double rise = ob_least_rise(&self.costs[0], losses, best, self.n_experts)
        cdef bint known = not isnan(self.fixed_rate) or (rate < INFINITY and self.gap >= ROUNDING * self.loss)
        # the mix loss, relative to the least one; at an infinite rate by how much the best loss rises
        mixed = rise
        if rate < INFINITY:  # relative to the largest terms, which do not underflow: the sum is 1 / the largest weight
            for k in range(self.n_experts):
                largest = max(largest, weights[k])
            total = ob_weigh_after(weights, &self.costs[0], losses, rate, best, rise, self.n_experts)
            mixed -= log(total * largest) / rate
        for k in range(self.n_experts):
            self.losses[k] += losses[k]
            self.costs[k] += losses[k]
        self.loss += loss
        self.gap += max(loss - mixed, 0.0)
        if self.share > 0 and known:
            self.deal_out(weights, total, rate, best + rise)
        self.n_rows += 1
        if self.n_rows % self.interval == 0:
            self.record()

    cdef void deal_out(self, const double* weights, double total, double rate, double best) noexcept nogil:
        """Raise the small weights, at the cost of all: the sum of exp(-rate costs) stays what it is."""
        cdef double part = self.share * total / self.n_experts
        ob_costs(&self.costs[0], weights, 1.0 - self.share, part, rate, best, self.n_experts)

    cdef void record(self) noexcept nogil:
        """Put the weights on record."""
        cdef Py_ssize_t k
        if self.n_logged == LOGGED:  # every other of them is enough
            self.n_logged //= 2
            self.interval *= 2
            for k in range(self.n_logged):
                memcpy(&self.log[k, 0], &self.log[2 * k + 1, 0], self.n_experts * sizeof(double))
            if self.n_rows % self.interval:
                return
        self.weigh(&self.room[0])
        memcpy(&self.log[self.n_logged, 0], &self.room[0], self.n_experts * sizeof(double))
        self.n_logged += 1

    cdef void save(self, Py_ssize_t n_rows) noexcept:
        """Note what `go_back` puts back; `n_rows` rows come next."""
        self.n_rows_before, self.n_logged_before, self.interval_before = self.n_rows, self.n_logged, self.interval
        self.log_before = self.log.copy() if self.n_logged + n_rows // self.interval >= LOGGED else None
        memcpy(&self.before[0], &self.losses[0], self.n_experts * sizeof(double))
        memcpy(&self.before[self.n_experts], &self.costs[0], self.n_experts * sizeof(double))
        self.loss_before, self.gap_before = self.loss, self.gap

    cdef void go_back(self) noexcept:
        memcpy(&self.losses[0], &self.before[0], self.n_experts * sizeof(double))
        memcpy(&self.costs[0], &self.before[self.n_experts], self.n_experts * sizeof(double))
        self.loss, self.gap = self.loss_before, self.gap_before
        self.n_rows, self.n_logged, self.interval = self.n_rows_before, self.n_logged_before, self.interval_before
        if self.log_before is not None:
            self.log[...] = self.log_before
