"""Exponential families, a coordinate at a time; in NumPy they are density/_families.py and density/_strategies.py."""

import numpy as np

from libc.math cimport NAN, exp, floor, isfinite, log, log1p
from scipy.special.cython_special cimport gammaln, xlog1py, xlogy

from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.density cimport DensityLearner
from onlinebregman._kernels.learners.state cimport LEARNED, LEFT_DOMAIN, OVERFLOWED
from onlinebregman._kernels.ops.fields import vector_of
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.rows cimport Row


cdef enum Family:
    GAUSSIAN
    BERNOULLI
    POISSON
    GAMMA

cdef enum Rule:               # prediction strategies, as named in density/_strategies.py
    INCREMENTAL_OFFLINE
    FORWARD
    LAST_STEP_BERNOULLI
    GAUSSIAN_MINIMAX

FAMILIES = {"gaussian": GAUSSIAN, "bernoulli": BERNOULLI, "poisson": POISSON, "gamma": GAMMA}
RULES = {
    "IncrementalOffline": INCREMENTAL_OFFLINE, "Forward": FORWARD,
    "LastStepBernoulli": LAST_STEP_BERNOULLI, "GaussianMinimax": GAUSSIAN_MINIMAX,
}


cdef inline double growth(double count, double h) noexcept nogil:
    """((count + h) ln(count + h) - count ln count) / h, without cancellation."""
    cdef double some = max(count, 1e-290)  # 0 ln 0 = 0
    return log(count + h) + some / h * log1p(h / some)


cdef class ExponentialFamilyLearner(DensityLearner):
    """Coordinates that are independent members of one exponential family.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
    k : float
        Weight of the prior, as a number of rows.
    family : {"gaussian", "bernoulli", "poisson", "gamma"}
    rule : {"IncrementalOffline", "Forward", "LastStepBernoulli", "GaussianMinimax"}
    variance : ndarray of shape (n_features,)
        Of a Gaussian; 1 for others.
    shape : float
        Of "gamma".
    rates : ndarray or None
        alpha of "GaussianMinimax".
    """

    cdef double k, shape, constant
    cdef Family family
    cdef Rule rule
    cdef double[::1] variance, log_scale
    cdef double[::1] rates

    def __init__(self, mean, double k, family, rule, variance, double shape, rates, state=None):
        self.allocate(mean, 0)
        self.k, self.shape = k, shape
        self.family, self.rule = FAMILIES[family], RULES[rule]
        self.located = self.family == GAUSSIAN
        self.variance = vector_of(variance, self.n_features)
        with np.errstate(over="ignore"):  # what overflows shows in the losses
            self.log_scale = np.log(2 * np.pi * np.asarray(self.variance)) / 2
        self.constant = shape * log(shape) - gammaln(shape)
        self.rates = None if rates is None else np.array(rates)
        self.declare()

    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work,
                               double* log_density) noexcept nogil:
        cdef Py_ssize_t i, d = self.n_features, t = <Py_ssize_t> self.state.rows
        cdef double* origin = &self.memory[0]
        cdef double* total = &self.memory[d]
        cdef double rate = 0.0, u, first, square = 0.0, known = 0.0, log_base = 0.0, base
        if self.rule == GAUSSIAN_MINIMAX:
            if self.rates is None or not 0 <= t < self.rates.shape[0] or weight != 1:
                return LEFT_DOMAIN
            rate = self.rates[t]
        log_density[0] = 0.0
        for i in range(d):
            if not self.admits(x[i]):
                return LEFT_DOMAIN
            u, first = x[i] - origin[i], self.mean[i] - origin[i]
            log_density[0] += self.log_density(i, u, self.predict(first, total[i], 1.0, rate), &base)
            if weight != 1:  # the loss of a weighted row
                known += self.log_density(i, u, self.predict(first, total[i], weight, rate), &base)
            log_base += base
            square += (u - first) * (u - first) / self.variance[i]
            total[i] += weight * u
        self.state.loss -= weight * (log_density[0] if weight == 1 else known)
        self.state.base += -weight * log_base
        self.state.quadratic += weight * weight * square / (self.k + (self.state.weight + weight))
        self.state.radius = max(self.state.radius, square)
        return LEARNED if isfinite(self.state.base) and isfinite(self.state.quadratic) and \
            ob_nonfinite(total, d) == 0 else OVERFLOWED

    cdef void score_row(self, const Row* row, Workspace* work, double* scores) noexcept nogil:
        cdef Py_ssize_t i
        cdef double* origin = &self.memory[0]
        cdef double* total = &self.memory[self.n_features]
        cdef double rate = 0.0, mu, base
        if self.rule == GAUSSIAN_MINIMAX:
            if self.rates is None or self.rates.shape[0] == 0:
                scores[0] = NAN
                return
            rate = self.rates[min(<Py_ssize_t> self.state.rows, self.rates.shape[0] - 1)]
        scores[0] = 0.0
        for i in range(self.n_features):
            mu = self.predict(self.mean[i] - origin[i], total[i], 1.0, rate)
            scores[0] += self.log_density(i, row.x[i] - origin[i], mu, &base) if self.admits(row.x[i]) else NAN

    cdef inline bint admits(self, double x) noexcept nogil:
        """Whether x is a value of the family."""
        if self.family == GAUSSIAN:
            return isfinite(x)
        if self.family == BERNOULLI:
            return 0.0 <= x <= 1.0
        if self.family == POISSON:
            return isfinite(x) and x >= 0 and x == floor(x)
        return isfinite(x) and (x >= 0 if self.shape == 1 else x > 0)

    cdef inline double predict(self, double mean, double total, double h, double rate) noexcept nogil:
        """mu_t of a coordinate, from the prior mean and the sum of the rows before."""
        cdef double weight = self.state.weight, ones, a
        if self.rule == INCREMENTAL_OFFLINE:
            return (self.k * mean + total) / (self.k + weight)
        if self.rule == FORWARD:
            return ((self.k + h) * mean + total) / (self.k + h + weight)
        if self.rule == GAUSSIAN_MINIMAX:
            return mean + rate * (total - weight * mean)
        ones = self.k * mean + total
        a = growth(ones, h) - growth(max(self.k + weight - ones, 0.0), h)
        return 1.0 / (1.0 + exp(-a))

    cdef inline double log_density(self, Py_ssize_t i, double x, double mu, double* base) noexcept nogil:
        """ln P(x | mu) of coordinate i, and ln P_0(x)."""
        if self.family == GAUSSIAN:
            base[0] = -(x * x) / (2.0 * self.variance[i]) - self.log_scale[i]
            return -((x - mu) * (x - mu)) / (2.0 * self.variance[i]) - self.log_scale[i]
        if self.family == BERNOULLI:
            base[0] = 0.0
            return xlogy(x, mu) + xlog1py(1.0 - x, -mu)
        if self.family == POISSON:
            base[0] = -gammaln(x + 1.0)
            return xlogy(x, mu) - mu + base[0]
        base[0] = self.constant + xlogy(self.shape - 1.0, x)
        mu = base[0] - self.shape * (log(mu) + x / mu)
        base[0] -= self.shape
        return mu
