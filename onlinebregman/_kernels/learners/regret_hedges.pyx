"""Weights on experts that need no rate: ML-Poly and Bernstein online aggregation, with a rate of each expert's own.

They are made of what each expert would have saved in a row, r_k = cost - c_k. Costs are linear in the weights, so that
sum v_k r_k = 0, and the regret to an expert is at most R_k = sum over rows of r_k. Either keeps a potential of all
R_k from growing by more than is counted in `gap`, which bounds each of them:

ML-Poly, eta_k = 1 / (sum r_k^2 + max r^2), the maximum of all experts:

    v_k ~ prior_k eta_k max(R_k, 0),    sum prior_k eta_k max(R_k, 0)^2 <= gap,    R_k <= sqrt(gap / (prior_k eta_k)).

A row adds at most sum prior_k eta_k r_k^2 to the potential, as sum prior_k eta_k max(R_k, 0) r_k = 0.

BOA, eta_k = min(1 / (2 max |r_k|), sqrt(-ln(prior_k) / sum r_k^2)), both with the last row, and S_k = sum of
(r_k - eta_k r_k^2):

    v_k ~ prior_k eta_k exp(eta_k S_k),    sum prior_k exp(eta_k S_k) <= 1 + gap,
    R_k <= (ln(1 + gap) - ln(prior_k)) / eta_k + sum eta_k r_k^2.

At constant rates a row adds nothing to the potential, as exp(x - x^2) <= 1 + x for x >= -1/2. So `gap` is of rates that
decrease, of experts that are behind.

References: P. Gaillard, G. Stoltz, T. van Erven, "A Second-order Bound with Excess Losses", COLT 2014; O. Wintenberger,
"Optimal Learning with Bernstein Online Aggregation", Machine Learning 106, 2017.
"""

import numpy as np

cimport cython
from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, exp, fabs, isfinite, log, log1p, sqrt

from onlinebregman._kernels.learners.hedge cimport Hedge
from onlinebregman._kernels.ops.vector cimport ob_range


cdef class RegretHedge(Hedge):
    """Base class of both: costs are minus regrets; see `Hedge`, of whose arguments `rate` is None and `share` 0."""

    cdef double[::1] squares  # sums of r_k^2
    cdef double[::1] largest  # |r_k| so far
    cdef double[::1] spent    # sums of eta_k r_k^2, by BOA

    def __cinit__(self, n_experts, *arguments, **more):
        self.squares, self.largest, self.spent = np.zeros((3, n_experts))
        self.fields.vector("squares", self.squares)
        self.fields.vector("largest", self.largest)
        self.fields.vector("spent", self.spent)

    def regret_bound(self, n_switches=0, prior=None):
        """Bound on the regret to the expert with which it is largest; there is none to sequences of experts."""
        if n_switches:
            return INFINITY
        return max([self.regret_to(k) for k in range(self.n_experts)]) + self.totals.unlearned

    cdef double regret_to(self, Py_ssize_t k) noexcept nogil:
        """Bound on R_k."""
        return 0.0

    cdef double prior_of(self, Py_ssize_t k) noexcept nogil:
        return self.ratio[k] / self.n_experts

    cdef void add(self, const double* costs, double cost) noexcept nogil:
        """Add a row, or a round of them, to what is known of the experts; one that sleeps saves 0, but for rounding."""
        cdef Py_ssize_t k
        cdef double r, lo = 0.0, hi = 0.0
        ob_range(costs, self.n_experts, &lo, &hi)
        for k in range(self.n_experts):
            r = cost - costs[k]
            if fabs(r) <= self.n_experts * DBL_EPSILON * max(hi, -lo) < INFINITY:
                continue
            self.squares[k] += r * r
            self.largest[k] = max(self.largest[k], fabs(r))
            self.costs[k] -= r

    cdef void forget(self) noexcept nogil:
        Hedge.forget(self)
        self.squares[:] = 0.0
        self.largest[:] = 0.0
        self.spent[:] = 0.0

    cdef bint finite(self) noexcept nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.n_experts):
            total += self.squares[k] + self.largest[k] * self.largest[k]
        return Hedge.finite(self) and isfinite(total)

    cdef void find_logs(self, const double* weights, double* logs) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_experts):
            logs[k] = -log(weights[k])


@cython.final
cdef class PolynomialHedge(RegretHedge):
    """The weights of ML-Poly."""

    cdef double unit(self) noexcept nogil:
        """The largest |r_k| of all experts so far."""
        cdef Py_ssize_t k
        cdef double most = 0.0
        for k in range(self.n_experts):
            most = max(most, self.largest[k])
        return most

    cdef double potential(self, Py_ssize_t k, double r, double unit) noexcept nogil:
        """prior_k eta_k max(r, 0)^2"""
        cdef double positive = max(r, 0.0)
        return self.prior_of(k) * positive * (positive / (self.squares[k] + unit * unit))

    cdef void weigh(self, double* weights) noexcept nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0, unit = self.unit()
        for k in range(self.n_experts):
            weights[k] = self.ratio[k] * max(-self.costs[k], 0.0) / (self.squares[k] + unit * unit) if unit > 0 else 0.0
            total += weights[k]
        for k in range(self.n_experts):
            weights[k] = weights[k] / total if total > 0 else self.prior_of(k)

    cdef void move(self, double* weights, const double* costs, double cost, Py_ssize_t n_rows) noexcept nogil:
        cdef Py_ssize_t k
        cdef double before = self.unit(), unit, growth = 0.0
        for k in range(self.n_experts if before > 0 else 0):
            growth += self.potential(k, fabs(cost - costs[k]), before)
        self.add(costs, cost)
        unit = self.unit()
        if unit > before:  # of a larger unit the potential is what it is
            growth = -self.totals.gap
            for k in range(self.n_experts):
                growth += self.potential(k, -self.costs[k], unit)
        self.totals.gap += growth

    cdef double regret_to(self, Py_ssize_t k) noexcept nogil:
        return sqrt(self.totals.gap / self.prior_of(k) * (self.squares[k] + self.unit() * self.unit()))


@cython.final
cdef class BernsteinHedge(RegretHedge):
    """The weights of Bernstein online aggregation."""

    cdef double information(self, Py_ssize_t k) noexcept nogil:
        """-ln prior_k"""
        return log(<double> self.n_experts) + self.neg_log_ratio[k]

    cdef double inverse_rate(self, Py_ssize_t k) noexcept nogil:
        """1 / eta_k, 0 as long as r_k has always been 0."""
        return max(2.0 * self.largest[k], sqrt(self.squares[k] / self.information(k))) if self.largest[k] > 0 else 0.0

    cdef double exponent(self, Py_ssize_t k) noexcept nogil:
        """eta_k S_k"""
        cdef double inverse = self.inverse_rate(k)
        return -(self.costs[k] + self.spent[k]) / inverse if inverse > 0 else 0.0

    cdef double potential(self) noexcept nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.n_experts):
            total += self.prior_of(k) * exp(self.exponent(k))
        return total

    cdef void weigh(self, double* weights) noexcept nogil:
        cdef Py_ssize_t k
        cdef double inverse, least = INFINITY, most = -INFINITY, total = 0.0
        for k in range(self.n_experts):
            if self.largest[k] > 0:
                least = min(least, self.inverse_rate(k))
        for k in range(self.n_experts):  # an expert that has been the mixture has the largest of the rates
            inverse = self.inverse_rate(k) if self.largest[k] > 0 else least
            weights[k] = self.exponent(k) - self.neg_log_ratio[k] - log(inverse)
            most = max(most, weights[k])
        for k in range(self.n_experts):
            weights[k] = exp(weights[k] - most) if least < INFINITY else self.ratio[k]
            total += weights[k]
        for k in range(self.n_experts):
            weights[k] /= total

    cdef void move(self, double* weights, const double* costs, double cost, Py_ssize_t n_rows) noexcept nogil:
        cdef Py_ssize_t k
        cdef double before = self.potential()
        self.add(costs, cost)
        for k in range(self.n_experts):
            if self.largest[k] > 0:
                self.spent[k] += (cost - costs[k]) / self.inverse_rate(k) * (cost - costs[k])
        self.totals.gap += max(self.potential() - before, 0.0)

    cdef double regret_to(self, Py_ssize_t k) noexcept nogil:
        return (log1p(self.totals.gap) + self.information(k)) * self.inverse_rate(k) + self.spent[k]
