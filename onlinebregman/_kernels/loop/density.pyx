"""Densities learned row by row: each row is predicted by a member of the family, and then learned.

Rows less an `origin` are near zero where a family may be shifted: the first row for Gaussians, 0 for the others.
"""

import numpy as np

from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, exp, floor, isfinite, log, log1p, pi, sqrt
from libc.string cimport memcpy
from scipy.linalg.cython_lapack cimport dpotrf, dpotri
from scipy.special.cython_special cimport gammaln, xlog1py, xlogy

from onlinebregman._kernels.geometries.geometry cimport Workspace, scratch
from onlinebregman._kernels.loop.atomic cimport AtomicLearner, Block, interrupted, weight_of
from onlinebregman._kernels.loop.state cimport INTERRUPTED, LEARNED, LEFT_DOMAIN, OVERFLOWED
from onlinebregman._kernels.loop.transaction cimport check_idle
from onlinebregman._kernels.loop.transaction import holds
from onlinebregman._kernels.rows.rows cimport Row, Rows, open_rows

cdef extern from "ops/vector.h":
    double ob_symv(const double* a, const double* z, double* v, Py_ssize_t n) noexcept nogil
    void ob_syr(double* a, const double* v, double c, Py_ssize_t n) noexcept nogil
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil

cdef extern from "ops/entropy.h":
    double ob_sum_log(const double* a, Py_ssize_t n) noexcept nogil

cdef Py_ssize_t REFRESH = 1024  # rows until the inverse of a scatter is computed afresh


cdef struct DensityState:
    double rows               # learned
    double weight             # the sum of theirs
    double loss               # the sum of weight * -ln P(x), each row predicted before it was learned
    double log_det            # of the scatter with the prior (a Gaussian of any covariance)
    # Of an exponential family:
    double base               # sum of weight * -ln P_0(x - origin)
    double quadratic          # the quadratic costs that the regret bound of a Gaussian adds up
    double radius             # max |x - mu_1|^2 / variance
    double unweighted         # have all rows had weight 1?


cdef class DensityLearner(AtomicLearner):
    """What the densities share.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Of the prior.
    memory : ndarray, default=None
        What another learner has learned, to go on as it would,
    state : dict, default=None
        and its `DensityState`.
    """

    cdef double[::1] memory   # origin, total = sum of weight * (x - origin), and what else a density learns
    cdef double[::1] memory_before
    cdef DensityState state, state_before
    cdef double[::1] mean
    cdef bint located         # is the first row the origin?

    cdef int allocate(self, mean, Py_ssize_t more) except -1:
        self.mean = np.array(mean, dtype=np.float64)
        self.n_features = len(mean)
        self.memory, self.memory_before = np.zeros(2 * self.n_features + more), None
        self.state.unweighted = 1.0
        return 0

    cdef int go_on_from(self, memory, state) except -1:
        if memory is not None:
            np.asarray(self.memory)[:] = memory
            self.state = state
        return 0

    def __reduce__(self):
        check_idle(self.busy)
        return type(self), (*self._arguments(), np.asarray(self.memory).copy(), self.state)

    @property
    def rows(self):
        return int(self.state.rows)

    @property
    def weight(self):
        return self.state.weight

    @property
    def loss(self):
        return self.state.loss

    @property
    def base(self):
        return self.state.base

    @property
    def quadratic(self):
        return self.state.quadratic

    @property
    def radius(self):
        return self.state.radius

    @property
    def unweighted(self):
        return self.state.unweighted != 0

    @property
    def origin(self):
        return np.asarray(self.memory)[:self.n_features].copy()

    @property
    def total(self):
        """The sum of weight * (x - origin)."""
        return np.asarray(self.memory)[self.n_features:2 * self.n_features].copy()

    cpdef bint in_force(self, dict attributes):
        parameters = attributes["_validated"].parameters
        return len(parameters) > 0 and holds(attributes, parameters)

    cdef Rows fitting_rows(self, dict attributes, X):
        cdef Rows rows = AtomicLearner.fitting_rows(self, attributes, X)
        return rows if rows is not None and rows.indices == NULL else None

    def learn(self, X, const double[::1] sample_weight=None):
        """Learn validated rows, all of them or none; the number of the first that cannot be learned, or None."""
        cdef Rows rows = open_rows(X)
        cdef Block block
        check_idle(self.busy)
        block.y, block.n_targets = NULL, 0
        block.sample_weight = NULL if sample_weight is None else &sample_weight[0]
        return None if self.learn_block(rows, &block) == LEARNED else block.failed

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest) noexcept:
        return self.n_features

    cdef int begin(self, Rows rows, bint complete) except -1:
        AtomicLearner.begin(self, rows, complete)
        if self.memory_before is None:
            self.memory_before = np.empty(self.memory.shape[0])
        memcpy(&self.memory_before[0], &self.memory[0], self.memory.shape[0] * sizeof(double))
        self.state_before = self.state
        return 0

    cdef int undo(self, Rows rows) except -1:
        memcpy(&self.memory[0], &self.memory_before[0], self.memory.shape[0] * sizeof(double))
        self.state = self.state_before
        return 0

    cdef void keep(self, Rows rows) noexcept:
        AtomicLearner.keep(self, None)

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        cdef Row row
        cdef Py_ssize_t i
        cdef int status
        for i in range(rows.n_rows):
            block.failed = i
            rows.fetch(i, &row)
            status = self.learn_row(&row, &block.work, NULL, weight_of(block, i), NULL)
            if status != LEARNED:
                return status
            if interrupted(self, self.effort(row.n)):
                return INTERRUPTED
        return self.check_all()

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        cdef int status
        if weight == 0:
            return LEARNED
        if self.located and self.state.rows == 0:
            memcpy(&self.memory[0], row.x, self.n_features * sizeof(double))
        status = self.predict_and_learn(row.x, weight, work)
        self.state.rows += 1.0
        self.state.weight += weight
        if weight != 1:
            self.state.unweighted = 0.0
        if status == LEARNED and not isfinite(self.state.loss):
            return OVERFLOWED
        return status

    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work) noexcept nogil:
        """Add the row's loss to that of the state, and the row to what has been learned."""
        return LEARNED


# --- Gaussians ----------------------------------------------------------------------------------------------------

cdef class GaussianLearner(DensityLearner):
    """Mean and covariance. The scatter of rows about their mean grows by a square a row:

        own += n h / (n + h) s s',    s = x less the mean of the rows before.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
    k1 : float
        Rows that the prior counts for in predictions.
    covariance : ndarray
        Of the prior, as the subclass takes it.
    """

    cdef readonly double k1
    cdef double[::1] covariance

    def __init__(self, mean, double k1, covariance, memory=None, state=None):
        self.allocate(mean, 2 * covariance.size)
        self.k1, self.located = k1, True
        self.covariance = np.array(covariance, dtype=np.float64).ravel()
        if memory is None:
            self.start()
        self.go_on_from(memory, state)

    def _arguments(self):
        return np.asarray(self.mean), self.k1, np.asarray(self.covariance)

    cdef int start(self) except -1:
        """Turn the prior into what predictions need of it."""
        return 0

    cdef double* own(self) noexcept nogil:
        """The scatter of the rows alone, to which any prior can be added without cancellation."""
        return &self.memory[2 * self.n_features]

    cdef double* predicted(self) noexcept nogil:
        """What predictions need of the one with the prior."""
        return &self.memory[2 * self.n_features + self.covariance.shape[0]]

    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work) noexcept nogil:
        cdef Py_ssize_t i, d = self.n_features
        cdef double* origin = &self.memory[0]
        cdef double* total = &self.memory[d]
        cdef double* step = scratch(work, 0)
        cdef double* surprise = scratch(work, 1)
        cdef double n = self.state.weight, k = self.k1 + n, after = n + weight, u, log_det, distance
        for i in range(d):
            u = x[i] - origin[i]
            step[i] = u - total[i] / max(n, DBL_MIN)  # from the mean of the rows before
            surprise[i] = u - (self.k1 * (self.mean[i] - origin[i]) + total[i]) / k  # and from what was predicted
            total[i] += weight * u
        self.absorb(step, n * weight / after, surprise, k * weight / (self.k1 + after), work, &log_det, &distance)
        self.state.loss += weight * (log_det - d * log(k / (2.0 * pi)) + k * distance) / 2.0
        return LEARNED

    cdef void absorb(self, const double* step, double gain, const double* surprise, double weight, Workspace* work,
                     double* log_det, double* distance) noexcept nogil:
        """own += gain step^2, and the scatter with the prior += weight surprise^2.

        Gives, of the latter before the row, ln det and surprise' scatter^-1 surprise.
        """

    cdef int check_all(self) noexcept nogil:
        return OVERFLOWED if ob_nonfinite(&self.memory[0], self.memory.shape[0]) else LEARNED


cdef class FullGaussianLearner(GaussianLearner):
    """Any covariance, shape (n_features, n_features): by the inverse of the scatter with the prior.

    Matrices are upper triangles.
    """

    cdef int start(self) except -1:
        cdef Py_ssize_t i
        for i in range(self.covariance.shape[0]):
            self.predicted()[i] = self.k1 * self.covariance[i]
        if not self.factorise():
            raise ValueError(
                "prior_covariance, times the rows that the prior counts for, is not positive definite in float64; scale "
                "the features (sklearn.preprocessing.StandardScaler), or add a multiple of the identity."
            )
        return 0

    @property
    def scatter(self):
        """The scatter of the rows alone, shape (n_features, n_features)."""
        return self.both_triangles(self.own())

    @property
    def inverse(self):
        """The inverse of the scatter with the prior, shape (n_features, n_features)."""
        return self.both_triangles(self.predicted())

    cdef object both_triangles(self, const double* upper):
        cdef Py_ssize_t i, j, d = self.n_features
        cdef double[:, ::1] matrix = np.empty((d, d))
        for i in range(d):
            for j in range(i, d):
                matrix[i, j] = matrix[j, i] = upper[i * d + j]
        return np.asarray(matrix)

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return 2 * n * n

    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work) noexcept nogil:
        GaussianLearner.predict_and_learn(self, x, weight, work)
        if not isfinite(self.state.log_det):
            return OVERFLOWED
        if <Py_ssize_t> (self.state.rows + 1.0) % REFRESH == 0:
            return LEARNED if self.refresh(weight) else OVERFLOWED
        return LEARNED

    cdef void absorb(self, const double* step, double gain, const double* surprise, double weight, Workspace* work,
                     double* log_det, double* distance) noexcept nogil:
        cdef double* v = scratch(work, 2)
        cdef double growth
        ob_syr(self.own(), step, -gain, self.n_features)
        distance[0] = ob_symv(self.predicted(), surprise, v, self.n_features)
        growth = weight * distance[0]
        ob_syr(self.predicted(), v, weight / (1.0 + growth), self.n_features)
        log_det[0] = self.state.log_det
        self.state.log_det += log1p(growth)

    cdef bint refresh(self, double weight) noexcept nogil:
        """The inverse from the scatter with the prior, so that rounding errors do not add up; the last row's weight."""
        cdef Py_ssize_t i, j, d = self.n_features
        cdef double* total = &self.memory[d]
        cdef double* inverse = self.predicted()
        cdef double n = self.state.weight + weight, share = self.k1 * n / (self.k1 + n), gap
        for i in range(d):
            gap = self.mean[i] - self.memory[i] - total[i] / n
            for j in range(i, d):
                inverse[i * d + j] = self.k1 * self.covariance[i * d + j] + self.own()[i * d + j] + \
                    share * (gap * (self.mean[j] - self.memory[j] - total[j] / n))
        return self.factorise()

    cdef bint factorise(self) noexcept nogil:
        """Put the inverse of the scatter in its place, and note its log-determinant; False if it is singular."""
        cdef int d = <int> self.n_features, info
        cdef double log_det = 0.0
        cdef Py_ssize_t i
        cdef double* a = self.predicted()
        dpotrf(b"L", &d, a, &d, &info)  # LAPACK's lower triangle is our upper one
        if info != 0:
            return False
        for i in range(d):
            log_det += log(a[i * (d + 1)])
        self.state.log_det = 2.0 * log_det
        dpotri(b"L", &d, a, &d, &info)
        return info == 0 and isfinite(log_det)


cdef class DiagonalGaussianLearner(GaussianLearner):
    """Features independent of each other; covariances are vectors of variances, shape (n_features,)."""

    cdef int start(self) except -1:
        cdef Py_ssize_t i
        for i in range(self.n_features):
            self.predicted()[i] = self.k1 * self.covariance[i]
        return 0

    @property
    def scatter(self):
        """The scatter of the rows alone, shape (n_features,)."""
        return np.asarray(self.memory)[2 * self.n_features:3 * self.n_features].copy()

    cdef void absorb(self, const double* step, double gain, const double* surprise, double weight, Workspace* work,
                     double* log_det, double* distance) noexcept nogil:
        cdef Py_ssize_t i
        cdef double* own = self.own()
        cdef double* whole = self.predicted()
        cdef double square, smallest = INFINITY, total = 0.0
        for i in range(self.n_features):
            smallest = min(smallest, whole[i])
        if smallest >= DBL_MIN:
            log_det[0] = ob_sum_log(whole, self.n_features)
        else:
            log_det[0] = 0.0
            for i in range(self.n_features):
                log_det[0] += log(whole[i])
        for i in range(self.n_features):
            square = surprise[i] * surprise[i]
            total += square / whole[i]
            own[i] += gain * (step[i] * step[i])
            whole[i] += weight * square
        distance[0] = total


# --- Exponential families, a coordinate at a time -----------------------------------------------------------------

cdef enum Family:
    GAUSSIAN
    BERNOULLI
    POISSON
    GAMMA

cdef enum Rule:               # what is predicted: the rows of this name in density/_strategies.py
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
        Rows that the prior counts for.
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
    cdef tuple names

    def __init__(self, mean, double k, family, rule, variance, double shape=1.0, rates=None, memory=None,
                 state=None):
        self.allocate(mean, 0)
        self.k, self.shape, self.names = k, shape, (family, rule)
        self.family, self.rule = FAMILIES[family], RULES[rule]
        self.located = self.family == GAUSSIAN
        self.variance = np.array(variance, dtype=np.float64)
        with np.errstate(over="ignore"):  # what overflows shows in the losses
            self.log_scale = np.log(2 * np.pi * np.asarray(self.variance)) / 2
        self.constant = shape * log(shape) - gammaln(shape)
        self.rates = None if rates is None else np.array(rates)
        self.go_on_from(memory, state)

    def _arguments(self):
        rates = None if self.rates is None else np.asarray(self.rates)
        return np.asarray(self.mean), self.k, *self.names, np.asarray(self.variance), self.shape, rates

    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work) noexcept nogil:
        cdef Py_ssize_t i, d = self.n_features, t = <Py_ssize_t> self.state.rows
        cdef double* origin = &self.memory[0]
        cdef double* total = &self.memory[d]
        cdef double rate = 0.0, u, first, square = 0.0, log_density = 0.0, log_base = 0.0, value, base
        if self.rule == GAUSSIAN_MINIMAX:
            if t >= self.rates.shape[0] or weight != 1:
                return LEFT_DOMAIN
            rate = self.rates[t]
        for i in range(d):
            if not self.admits(x[i]):
                return LEFT_DOMAIN
            u, first = x[i] - origin[i], self.mean[i] - origin[i]
            value = self.log_density(i, u, self.predict(first, total[i], weight, rate), &base)
            log_density += value
            log_base += base
            square += (u - first) * (u - first) / self.variance[i]
            total[i] += weight * u
        self.state.loss += -weight * log_density
        self.state.base += -weight * log_base
        self.state.quadratic += weight * weight * square / (self.k + (self.state.weight + weight))
        self.state.radius = max(self.state.radius, square)
        return LEARNED if isfinite(self.state.base) and isfinite(self.state.quadratic) and \
            ob_nonfinite(total, d) == 0 else OVERFLOWED

    cdef inline bint admits(self, double x) noexcept nogil:
        """Has the family such values?"""
        if self.family == GAUSSIAN:
            return isfinite(x)
        if self.family == BERNOULLI:
            return 0.0 <= x <= 1.0
        if self.family == POISSON:
            return isfinite(x) and x >= 0 and x == floor(x)
        return isfinite(x) and (x >= 0 if self.shape == 1 else x > 0)

    cdef inline double predict(self, double mean, double total, double h, double rate) noexcept nogil:
        """mu_t, of a coordinate with this mean of the prior and this sum of the rows before."""
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
