"""Densities learned row by row: each row is predicted by a member of the family, and then learned.

Sums are of rows minus an `origin`, to avoid cancellation: the first row for Gaussians, 0 for other families.

Of Gaussians mean and covariance are learned. A row x of weight h, after rows of total weight n, adds
n h / (n + h) s s' with s = x - their mean. The scatter that includes the prior, from whose inverse or diagonal rows are
predicted, grows likewise, with s = x - the predicted mean. Rows that are only predicted share a Cholesky factor of that
scatter, which is more accurate than the inverse if the features are far from the scale of the prior.
"""

import numpy as np

cimport cython
from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, NAN, exp, floor, isfinite, isnan, log, log1p, pi
from libc.string cimport memcpy
from scipy.special.cython_special cimport gammaln, xlog1py, xlogy

from onlinebregman._kernels.geometries.geometry cimport DENSE, Workspace, scratch
from onlinebregman._kernels.learners.atomic cimport PROGRESSIVE, AtomicLearner, Foresight
from onlinebregman._kernels.learners.run cimport LEARNED, LEFT_DOMAIN, OVERFLOWED
from onlinebregman._kernels.matrices.symmetric import mirrored
from onlinebregman._kernels.ops.entropy cimport ob_sum_log
from onlinebregman._kernels.ops.state import vector_of
from onlinebregman._kernels.ops.lapack cimport dpotrf, dpotri
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_nonfinite, ob_symv, ob_syr
from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef struct DensityState:
    double rows               # number of rows learned
    double weight             # sum of their weights
    double loss               # the sum of weight * -ln P(x), each row predicted before it was learned
    double log_det            # of the scatter with the prior (a Gaussian of any covariance)
    # Of an exponential family:
    double base               # sum of weight * -ln P_0(x - origin)
    double quadratic          # sum of quadratic costs, for the regret bound of a Gaussian
    double radius             # max |x - mu_1|^2 / variance
    double unweighted         # 1 if all rows had weight 1


cdef class DensityLearner(AtomicLearner):
    """Base class of densities.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Of the prior.
    """

    cdef double[::1] memory   # origin, total = sum of weight * (x - origin), and further statistics of a subclass
    cdef readonly DensityState state
    cdef double[::1] mean
    cdef readonly bint located  # whether the first row is the origin

    def __cinit__(self, *arguments, **more):
        if not arguments and not more or type(self) is DensityLearner:
            raise TypeError("DensityLearner must be created with the arguments of a subclass, which hold the prior")

    cdef int allocate(self, mean, Py_ssize_t more) except -1:
        self.mean = np.array(mean, dtype=np.float64)
        self.n_features, self.n_scores, self.traits = self.mean.shape[0], 1, DENSE
        if self.n_features == 0:
            raise ValueError("mean must have 1 feature or more; got an empty array")
        self.memory, self.state.unweighted = np.zeros(2 * self.n_features + more), 1.0
        return 0

    cdef int declare(self) except -1:
        """Called at the end of a constructor."""
        self.total_loss = &self.state.loss
        self.fields.vector("memory", self.memory)
        return self.fields.add("state", &self.state, sizeof(self.state))

    def replaced(self, memory, **state):
        """A learner with the same prior, with this memory and these parts of the state."""
        cdef DensityLearner learner = type(self)(*self.arguments)
        np.asarray(learner.memory)[:] = memory
        learner.state = {**self.state, **state}
        return learner

    @property
    def t(self):
        return int(self.state.rows)

    @property
    def weight(self):
        return self.state.weight

    @property
    def origin(self):
        return np.asarray(self.memory)[:self.n_features].copy()

    @property
    def total(self):
        """The sum of weight * (x - origin)."""
        return np.asarray(self.memory)[self.n_features:2 * self.n_features].copy()

    cdef Foresight foresight(self) noexcept:
        return PROGRESSIVE

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest, bint to_learn) noexcept:
        return self.n_features

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        cdef int status
        cdef double log_density
        if self.located and self.state.rows == 0:
            memcpy(&self.memory[0], row.x, self.n_features * sizeof(double))
        status = self.predict_and_learn(row.x, weight, work, &log_density if scores == NULL else scores)
        self.state.rows += 1.0
        self.state.weight += weight
        if weight != 1:
            self.state.unweighted = 0.0
        return OVERFLOWED if status == LEARNED and not isfinite(self.state.loss) else status

    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work,
                               double* log_density) noexcept nogil:
        """Add the row's loss to that of the state, and the row to what has been learned.

        `log_density` receives its log-density, as a row of weight 1.
        """
        return LEARNED


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

    In NumPy they are density/_families.py and density/_strategies.py.

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

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
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


cdef Py_ssize_t REFRESH = 1024  # rows after which the inverse of a scatter is recomputed
cdef double LARGE_STEP = 18.0   # and growth of its ln det by one row: a rank-one step then loses half of the digits


cdef class GaussianLearner(DensityLearner):
    """Mean and covariance.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
    k1 : float
        Weight of the prior in predictions, as a number of rows.
    covariance : ndarray
        Of the prior, in the form of the subclass.
    """

    cdef readonly double k1
    cdef double[::1] covariance

    def __init__(self, mean, double k1, covariance, state=None):
        if np.size(covariance) != np.size(mean) ** (2 if isinstance(self, FullGaussianLearner) else 1):
            raise ValueError(f"covariance must be for {np.size(mean)} features; got {np.size(covariance)} numbers")
        self.allocate(mean, 2 * np.size(covariance))
        self.k1, self.located = k1, True
        self.covariance = np.array(covariance, dtype=np.float64).ravel()
        self.start()
        self.declare()

    cdef int start(self) except -1:
        """Initialise the statistics for predictions from the prior."""
        return 0

    cdef double* own(self) noexcept nogil:
        """The scatter of the rows without the prior."""
        return &self.memory[2 * self.n_features]

    cdef double* predicted(self) noexcept nogil:
        """The scatter with the prior, in the form that predictions use."""
        return &self.memory[2 * self.n_features + self.covariance.shape[0]]

    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work,
                               double* log_density) noexcept nogil:
        cdef Py_ssize_t i, d = self.n_features
        cdef double* origin = &self.memory[0]
        cdef double* total = &self.memory[d]
        cdef double* step = scratch(work, 0)
        cdef double* innovation = self.innovation(x, work)
        cdef double n = self.state.weight, k = self.k1 + n, after = n + weight, u, log_det, distance
        for i in range(d):
            u = x[i] - origin[i]
            step[i] = u - total[i] / max(n, DBL_MIN)  # x - the mean of the rows before
            total[i] += weight * u
        self.measure(innovation, work, &log_det, &distance)
        log_density[0] = self.log_density(log_det, distance)
        self.absorb(step, n * weight / after, innovation, k * weight / (self.k1 + after), distance, work)
        self.state.loss -= weight * log_density[0]
        return LEARNED

    cdef double* innovation(self, const double* x, Workspace* work) noexcept nogil:
        """The difference of a row from the predicted mean."""
        cdef Py_ssize_t i
        cdef double* origin = &self.memory[0]
        cdef double* total = &self.memory[self.n_features]
        cdef double* difference = scratch(work, 1)
        for i in range(self.n_features):
            difference[i] = x[i] - origin[i] - (self.k1 * (self.mean[i] - origin[i]) + total[i]) / \
                (self.k1 + self.state.weight)
        return difference

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        cdef double* innovation = self.innovation(row.x, work)
        cdef double log_det, distance
        self.measure(innovation, work, &log_det, &distance)
        scores[0] = self.log_density(log_det, distance)

    cdef double log_density(self, double log_det, double distance) noexcept nogil:
        """Of a row with this `distance` from the predicted mean, see `measure`."""
        cdef double k = self.k1 + self.state.weight
        return -(log_det - self.n_features * log(k / (2.0 * pi)) + k * distance) / 2.0

    cdef void measure(self, const double* innovation, Workspace* work, double* log_det,
                      double* distance) noexcept nogil:
        """ln det and innovation' scatter^-1 innovation, of the scatter with the prior."""

    cdef void absorb(self, const double* step, double gain, const double* innovation, double weight, double distance,
                     Workspace* work) noexcept nogil:
        """own += gain step^2, and the scatter with the prior += weight innovation^2, which was measured just before."""

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
                "prior_covariance must be positive definite in float64; got a matrix without a Cholesky factor; "
                "scale the features (sklearn.preprocessing.StandardScaler), or add a multiple of the identity."
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

    cdef object both_triangles(self, double* upper):
        return mirrored(np.asarray(<double[:self.n_features, :self.n_features]> upper))

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return 2 * n * n

    cdef int predict_and_learn(self, const double* x, double weight, Workspace* work,
                               double* log_density) noexcept nogil:
        cdef double before = self.state.log_det
        GaussianLearner.predict_and_learn(self, x, weight, work, log_density)
        if not isfinite(self.state.log_det):
            return OVERFLOWED
        if self.state.log_det - before > LARGE_STEP or <Py_ssize_t> (self.state.rows + 1.0) % REFRESH == 0:
            return LEARNED if self.refresh(weight) else OVERFLOWED
        return LEARNED

    cdef void measure(self, const double* innovation, Workspace* work, double* log_det,
                      double* distance) noexcept nogil:
        distance[0] = ob_symv(self.predicted(), innovation, scratch(work, 2), self.n_features)
        log_det[0] = self.state.log_det

    cdef void absorb(self, const double* step, double gain, const double* innovation, double weight, double distance,
                     Workspace* work) noexcept nogil:
        cdef double growth = weight * distance
        ob_syr(self.own(), step, -gain, self.n_features)
        ob_syr(self.predicted(), scratch(work, 2), weight / (1.0 + growth), self.n_features)
        self.state.log_det += log1p(growth)

    cdef bint refresh(self, double weight) noexcept nogil:
        """Recompute the inverse, so that rounding errors do not add up; `weight` is that of the last row."""
        self.total_scatter(self.state.weight + weight, self.predicted())
        return self.factorise()

    cdef void total_scatter(self, double n, double* upper) noexcept nogil:
        """The scatter with the prior, of rows of total weight n."""
        cdef Py_ssize_t i, j, d = self.n_features
        cdef double* total = &self.memory[d]
        cdef double share = self.k1 * n / (self.k1 + n), some = max(n, DBL_MIN), offset
        for i in range(d):
            offset = self.mean[i] - self.memory[i] - total[i] / some
            for j in range(i, d):
                upper[i * d + j] = self.k1 * self.covariance[i * d + j] + self.own()[i * d + j] + \
                    share * (offset * (self.mean[j] - self.memory[j] - total[j] / some))

    cdef bint factorise(self) noexcept nogil:
        """Replace the scatter by its inverse, and set the log-determinant; False if it is singular."""
        cdef int d = <int> self.n_features, info
        cdef double* a = self.predicted()
        cdef double log_det = cholesky(a, d)
        if isnan(log_det):
            return False
        self.state.log_det = log_det
        dpotri(b"L", &d, a, &d, &info)
        return info == 0 and isfinite(log_det)

    cdef object scorer(self, Rows rows, bint linked):
        cdef Factor factor = Factor()
        factor.upper = np.empty(self.n_features * self.n_features)
        self.total_scatter(self.state.weight, &factor.upper[0])
        factor.log_det = cholesky(&factor.upper[0], <int> self.n_features)
        return factor

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        cdef Py_ssize_t i, d = self.n_features
        cdef double distance = 0.0
        cdef double* white
        cdef const double* upper
        if scorer == NULL:
            GaussianLearner.score_row(self, scorer, row, work, scores)
            return
        upper, white = &(<Factor> scorer).upper[0], self.innovation(row.x, work)
        for i in range(d):
            white[i] /= upper[i * d + i]
            distance += white[i] * white[i]
            if i + 1 < d:
                ob_axpy(white + i + 1, upper + i * d + i + 1, white[i], d - i - 1)
        scores[0] = self.log_density((<Factor> scorer).log_det, distance)


@cython.final
@cython.auto_pickle(False)
cdef class Factor:
    """A Cholesky factor of the scatter with the prior."""

    cdef double[::1] upper
    cdef double log_det           # of the scatter; NaN if it is singular


cdef double cholesky(double* a, int d) noexcept nogil:
    """Replace an upper triangle by that of its Cholesky factor; returns ln det, or NaN if it is not definite."""
    cdef int info
    cdef double log_det = 0.0
    cdef Py_ssize_t i
    dpotrf(b"L", &d, a, &d, &info)  # LAPACK's lower triangle is our upper one
    if info != 0:
        return NAN
    for i in range(d):
        log_det += log(a[i * (d + 1)])
    return 2.0 * log_det


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

    cdef void measure(self, const double* innovation, Workspace* work, double* log_det,
                      double* distance) noexcept nogil:
        cdef Py_ssize_t i
        cdef double* whole = self.predicted()
        cdef double smallest = INFINITY
        for i in range(self.n_features):
            smallest = min(smallest, whole[i])
        if smallest >= DBL_MIN:
            log_det[0] = ob_sum_log(whole, self.n_features)
        else:
            log_det[0] = 0.0
            for i in range(self.n_features):
                log_det[0] += log(whole[i])
        distance[0] = 0.0
        for i in range(self.n_features):
            distance[0] += innovation[i] * innovation[i] / whole[i]

    cdef void absorb(self, const double* step, double gain, const double* innovation, double weight, double distance,
                     Workspace* work) noexcept nogil:
        cdef Py_ssize_t i
        cdef double* own = self.own()
        cdef double* whole = self.predicted()
        for i in range(self.n_features):
            own[i] += gain * (step[i] * step[i])
            whole[i] += weight * (innovation[i] * innovation[i])
