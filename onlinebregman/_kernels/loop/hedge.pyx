"""Exponential weights on experts, and the bound on the loss of their mixture."""

import numpy as np

from libc.math cimport INFINITY, NAN, isfinite, isnan, log, log1p
from libc.string cimport memcpy

from onlinebregman._kernels.ops.hedge cimport (
    ob_costs, ob_least_cost, ob_least_rise, ob_minus_logs, ob_soft_least, ob_weigh, ob_weigh_after
)
from onlinebregman._kernels.ops.vector cimport OB_LANES, ob_range

cdef enum:
    LOGGED = 128              # largest number of recorded weight vectors


# A gap below this part of the loss consists of rounding errors; the rate computed from it is meaningless.
cdef double ROUNDING = 1e-12


cdef class Hedge:
    """Weights v_k ~ prior_k exp(-rate c_k) of K experts, c_k the costs so far, and a bound on the mixture.

    Costs are the experts' losses l_k, or their linear approximations at the mixture (exponentiated gradient). A row
    costs at least the mix loss -ln(sum v_k exp(-rate l_k)) / rate, and these add up to at most L_k - ln(prior_k) / rate
    for every expert. `gap` is the loss of the mixture beyond its mix losses, so that for any losses

        loss of the mixture  <=  L_k - ln(prior_k) / rate + gap.

    The theorems say when the gap is zero (log loss at rate 1, which is Bayes' rule; losses that are exp-concave at this
    rate) or bound it (rate range^2 / 8 for each row, Hoeffding). At the rate -min ln(prior) / gap, which is ln K / gap
    for equal priors, both last terms are equal (AdaHedge).

    With a share, a part of all weight is redistributed after each row, v <- (1 - share) v + share prior (fixed
    share): costs become -ln(v_k / prior_k) / rate + const. The same bound then holds against every sequence of experts,
    with the logarithm of the prior weight of the sequence.

    Parameters
    ----------
    n_experts : int
    rate : float or None, default=None
        None: -min ln(prior) / gap.
    share : float, default=0.0
        At least 0 and below 1.
    state : tuple, default=None
        The state of another one, to continue from.
    prior : ndarray of shape (n_experts,), default=None
        Positive weights of sum 1; equal ones by default.
    """

    def __cinit__(self, n_experts, rate=None, share=0.0, state=None, prior=None):
        if n_experts < 1:
            raise ValueError(f"n_experts must be 1 or more; got {n_experts}")
        self.n_experts, self.share = n_experts, share
        self.fixed_rate = NAN if rate is None else rate
        self.lanes = (n_experts + OB_LANES - 1) // OB_LANES * OB_LANES
        self.losses, self.costs, self.before = np.zeros(n_experts), np.zeros(self.lanes), np.empty(2 * n_experts)
        self.buffer, self.ratio, self.neg_log_ratio = np.zeros(self.lanes), np.ones(self.lanes), np.zeros(self.lanes)
        self.least_prior, self.neg_log_least = 1.0 / n_experts, log(n_experts)
        if prior is not None:
            prior = np.asarray(prior, dtype=np.float64)
            if prior.shape != (n_experts,) or not (prior > 0).all():
                raise ValueError(f"prior must be {n_experts} positive weights; got {prior}")
            np.asarray(self.ratio)[:n_experts] = prior * n_experts
            np.asarray(self.neg_log_ratio)[:n_experts] = -np.log(self.ratio[:n_experts])
            self.prior, self.least_prior = prior, prior.min()
            self.neg_log_least = -log(self.least_prior)
        self.log, self.interval = np.empty((LOGGED, n_experts)), 1
        if state is not None:
            losses, costs, self.loss, self.gap, self.n_rows, self.interval, recorded = state
            if self.interval < 1 or len(recorded) > LOGGED:
                raise ValueError(
                    f"state must have at most {LOGGED} recorded weights, at intervals of 1 or more rows; "
                    f"got {len(recorded)}, at intervals of {self.interval}"
                )
            np.asarray(self.losses)[:], np.asarray(self.costs)[:n_experts] = losses, costs
            self.n_logged = len(recorded)
            np.asarray(self.log)[:self.n_logged] = recorded

    def __reduce__(self):
        rate = None if isnan(self.fixed_rate) else self.fixed_rate
        log = np.asarray(self.log)[:self.n_logged].copy()
        state = np.asarray(self.losses).copy(), np.asarray(self.costs)[:self.n_experts].copy(), self.loss, self.gap
        state += self.n_rows, self.interval, log
        return type(self), (self.n_experts, rate, self.share, state, self.prior)

    @property
    def rate(self):
        """The learning rate of the weights; an adaptive one is infinite until `gap` is positive."""
        return self.current_rate()

    @property
    def weights(self):
        """The experts' weights, shape (n_experts,)."""
        cdef double[::1] weights = np.empty(self.lanes)
        self.weigh(&weights[0])
        return np.asarray(weights)[:self.n_experts].copy()

    @property
    def log_weights(self):
        """Their logarithms, also of those that underflow."""
        cdef double[::1] buffer = np.zeros(2 * self.lanes)
        self.weigh(&buffer[0])
        self.find_logs(&buffer[0], &buffer[self.lanes])
        return -np.asarray(buffer)[self.lanes:self.lanes + self.n_experts]

    @property
    def weights_log(self):
        """Numbers of rows, shape (n_logged,), and the weights after each, shape (n_logged, n_experts).

        At even intervals, which are doubled whenever more than LOGGED would be recorded.
        """
        rows = self.interval * np.arange(1, self.n_logged + 1)
        return rows, np.asarray(self.log)[:self.n_logged].copy()

    @property
    def expert_losses(self):
        """The experts' cumulative losses, shape (n_experts,)."""
        return np.asarray(self.losses).copy()

    def learn(self, const double[::1] losses, double loss):
        """Count a row with these losses of the experts and of the mixture."""
        cdef double[::1] buffer = np.zeros(2 * self.lanes)
        np.asarray(buffer)[:self.n_experts] = losses
        self.weigh(&buffer[self.lanes])
        self.count(&buffer[0], &buffer[self.lanes], loss)

    def regret_bound(self, n_switches=0, prior=None):
        """Bound on the regret to an expert, or to a sequence of experts with `n_switches` switches.

        `prior` is the expert's initial weight; by default the smallest prior weight.
        """
        if n_switches and not self.share:
            return INFINITY
        # a sequence has weight prior, times 1 - share + share prior where it stays, times share prior at each switch
        stays = -log1p(-self.share * (1 - self.least_prior)) * max(self.n_rows - 1 - n_switches, 0)
        switches = n_switches * (self.neg_log_least - log(self.share)) if n_switches else 0.0
        return (stays + switches - log(self.least_prior if prior is None else prior)) / self.current_rate() + self.gap

    cdef double current_rate(self) noexcept nogil:
        if not isnan(self.fixed_rate):
            return self.fixed_rate
        return self.neg_log_least / self.gap if self.gap > 0 and self.neg_log_least > 0 else INFINITY

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

    cdef void count(self, const double* losses, double* weights, double loss) noexcept nogil:
        """Count a row with these losses of the experts and, with these weights, of the mixture.

        The weights, of length `lanes`, are overwritten.
        """
        self.move(losses, weights, loss)
        self.add(losses, loss)

    cdef void move(self, const double* costs, double* weights, double cost) noexcept nogil:
        """Update the weights by the costs of the experts and of the mixture on a row; see `count`."""
        cdef Py_ssize_t k
        cdef double rate = self.current_rate(), best = self.least(rate), mixed, largest = 0.0, total = 0.0
        cdef double rise = ob_least_rise(&self.costs[0], &self.neg_log_ratio[0], costs, rate, best, self.n_experts)
        cdef bint known = not isnan(self.fixed_rate) or (rate < INFINITY and self.gap >= ROUNDING * self.loss)
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
        self.gap += max(cost - mixed, 0.0)
        if self.share > 0 and known:  # raise small weights, and lower the others: the sum does not change
            ob_costs(&self.costs[0], weights, &self.ratio[0], &self.neg_log_ratio[0], 1.0 - self.share,
                     self.share * total / self.n_experts, rate, best + rise, self.n_experts)

    cdef void add(self, const double* losses, double loss) noexcept nogil:
        """Add the losses of a row to the cumulative ones."""
        cdef Py_ssize_t k
        for k in range(self.n_experts):
            self.losses[k] += losses[k]
        self.loss += loss
        self.n_rows += 1
        if self.n_rows % self.interval == 0:
            self.record()

    cdef bint finite(self) noexcept nogil:
        """Whether the costs of the mixture and of at least one expert are finite so far."""
        cdef double lo = INFINITY, hi = -INFINITY
        ob_range(&self.costs[0], self.n_experts, &lo, &hi)
        return isfinite(self.loss) and isfinite(self.gap) and isfinite(lo) and not isnan(hi)

    cdef void record(self) noexcept nogil:
        """Record the weights."""
        cdef Py_ssize_t k
        if self.n_logged == LOGGED:  # drop every other one
            self.n_logged //= 2
            self.interval *= 2
            for k in range(self.n_logged):
                memcpy(&self.log[k, 0], &self.log[2 * k + 1, 0], self.n_experts * sizeof(double))
            if self.n_rows % self.interval:
                return
        self.weigh(&self.buffer[0])
        memcpy(&self.log[self.n_logged, 0], &self.buffer[0], self.n_experts * sizeof(double))
        self.n_logged += 1

    cdef void save(self, Py_ssize_t n_rows) noexcept:
        """Save what `restore` restores; the next call has `n_rows` rows."""
        self.n_rows_before, self.n_logged_before, self.interval_before = self.n_rows, self.n_logged, self.interval
        self.log_before = self.log.copy() if self.n_logged + n_rows // self.interval >= LOGGED else None
        memcpy(&self.before[0], &self.losses[0], self.n_experts * sizeof(double))
        memcpy(&self.before[self.n_experts], &self.costs[0], self.n_experts * sizeof(double))
        self.loss_before, self.gap_before = self.loss, self.gap

    cdef void restore(self) noexcept:
        memcpy(&self.losses[0], &self.before[0], self.n_experts * sizeof(double))
        memcpy(&self.costs[0], &self.before[self.n_experts], self.n_experts * sizeof(double))
        self.loss, self.gap = self.loss_before, self.gap_before
        self.n_rows, self.n_logged, self.interval = self.n_rows_before, self.n_logged_before, self.interval_before
        if self.log_before is not None:
            self.log[...] = self.log_before
