"""Maximum entropy over a finite domain: passes over its points, rounds of scaling, and Newton's method.

The features f lie in [0, 1], (value - low) * per_span, computed block by block. q ~ exp(lambda.f) on the support; the
loss is L(lambda) = ln Z - lambda.Ehat + alpha |lambda|_1.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, expm1, fabs, isfinite, isnan, log, log1p, sqrt
from libc.string cimport memcpy, memset
from numpy.linalg import LinAlgError

from onlinebregman._kernels.ops.exp cimport ob_exp
from onlinebregman._kernels.ops.lapack cimport dgemv, dpotrf, dpotrs, dsyrk
from onlinebregman._kernels.ops.vector cimport ob_sum
from onlinebregman._kernels.rows.table cimport Table, TableView, row_of

cdef enum:
    BLOCK = 65536  # numbers processed at once: they stay in the cache

cdef int ONE = 1
cdef double UNIT = 1.0, ZERO = 0.0


cdef struct Domain:
    Table values
    Py_ssize_t n_rows  # of a block
    int n
    const double* low
    const double* per_span
    const unsigned char* support  # or NULL
    double* block
    double* scores
    double* q


cdef struct Moments:
    double log_z
    double* expected
    double* covariance  # upper triangle by columns, or NULL


cdef class Pass:
    """The arrays that a pass over the domain reads, and its working memory."""

    cdef Domain domain
    cdef TableView view
    cdef const double[::1] low, per_span
    cdef const unsigned char[::1] support
    cdef double[::1] memory

    def __cinit__(self, values, low, per_span, support):
        cdef Domain* f = &self.domain
        self.low, self.per_span = low, per_span
        if not (values.shape[0] > 0 and values.shape[1] == self.low.shape[0] == self.per_span.shape[0] > 0):
            raise ValueError(f"features must have {len(low)} columns, one for each entry of low; got {values.shape}")
        self.view = TableView(values)
        f.values = self.view.table
        f.n = <int> self.low.shape[0]
        f.low, f.per_span, f.support = &self.low[0], &self.per_span[0], NULL
        if support is not None:
            self.support = support.view(np.uint8)
            if self.support.shape[0] != f.values.n_rows:
                raise ValueError(f"the support must have {f.values.n_rows} points; got {self.support.shape[0]}")
            f.support = &self.support[0]
        f.n_rows = min(max(BLOCK // f.n, 64), f.values.n_rows)
        self.memory = np.empty(f.n_rows * (f.n + 2))
        f.block = &self.memory[0]
        f.scores = f.block + f.n_rows * f.n
        f.q = f.scores + f.n_rows

    cdef const double* of_features(self, const double[::1] vector) except NULL:
        if vector.shape[0] != self.domain.n:
            raise ValueError(f"vectors must have {self.domain.n} numbers, one for each feature; got {vector.shape[0]}")
        return &vector[0]


cdef void read_block(const Domain* f, Py_ssize_t start, Py_ssize_t rows) noexcept nogil:
    """Features of these points, row by row."""
    cdef Py_ssize_t i, j, n = f.n
    cdef double* out
    cdef const double* x
    for i in range(rows):
        out = f.block + i * n
        x = row_of(&f.values, start + i, out)
        for j in range(n):
            out[j] = (x[j] - f.low[j]) * f.per_span[j]


cdef int find_moments(const Domain* f, const double* multipliers, Moments* found) except -1 nogil:
    """ln Z, E_q[f], and the covariance of f unless its pointer is NULL."""
    cdef Py_ssize_t i, j, k, start, rows
    cdef int n = f.n, n_rows, squares = n * n if found.covariance != NULL else 0
    cdef double top = -INFINITY, mass = 0.0, peak, shrink, root
    cdef double* g = f.scores
    cdef double* q = f.q
    memset(found.expected, 0, n * sizeof(double))
    if squares:
        memset(found.covariance, 0, squares * sizeof(double))
    for k in range((f.values.n_rows + f.n_rows - 1) // f.n_rows):
        start = k * f.n_rows
        rows = min(f.n_rows, f.values.n_rows - start)
        n_rows = <int> rows
        read_block(f, start, rows)
        dgemv("T", &n, &n_rows, &UNIT, f.block, &n, <double*> multipliers, &ONE, &ZERO, g, &ONE)
        peak = -INFINITY
        for i in range(rows):
            if f.support != NULL and not f.support[start + i]:
                g[i] = -INFINITY
            peak = g[i] if g[i] > peak or isnan(g[i]) else peak
        if peak == -INFINITY:
            continue
        if peak > top or isnan(peak):
            shrink = 0.0
            if mass > 0:
                ob_exp(&shrink, &top, -1.0, peak, 1)
            top, mass = peak, mass * shrink
            for i in range(n):
                found.expected[i] *= shrink
            for i in range(squares):
                found.covariance[i] *= shrink
        ob_exp(q, g, -1.0, top, rows)
        mass += ob_sum(q, rows)
        dgemv("N", &n, &n_rows, &UNIT, f.block, &n, q, &ONE, &UNIT, found.expected, &ONE)
        if squares:
            for i in range(rows):
                root = sqrt(q[i])
                for j in range(n):
                    f.block[i * n + j] *= root
            dsyrk("U", "N", &n, &n_rows, &UNIT, f.block, &n, &UNIT, found.covariance, &n)
    found.log_z = top + log(mass)
    for i in range(n):
        found.expected[i] /= mass
    if squares:
        for i in range(n):
            for j in range(i + 1):
                found.covariance[i * n + j] = found.covariance[i * n + j] / mass - found.expected[i] * found.expected[j]
    if f.values.n_rows > f.n_rows:  # a pass may take long
        with gil:
            PyErr_CheckSignals()
    return 0


def moments(values, low, per_span, support, const double[::1] multipliers):
    """ln Z, and the expectations of the features, of q ~ exp(multipliers . features): one pass.

    Parameters
    ----------
    values : ndarray of shape (n_points, n_features), of float64 or float32
        Features before they are scaled.
    low, per_span : ndarray of shape (n_features,)
        Their smallest values, and 1 over their ranges.
    support : ndarray of bool of shape (n_points,), or None
        Where q may be positive; None for all points.
    multipliers : ndarray of shape (n_features,)

    Returns
    -------
    log_z : float
    expected : ndarray of shape (n_features,)
    """
    cdef Pass points = Pass(values, low, per_span, support)
    expected = np.empty(points.domain.n)
    cdef double[::1] out = expected
    cdef Moments found = Moments(0.0, &out[0], NULL)
    cdef const double* slopes = points.of_features(multipliers)
    with nogil:
        find_moments(&points.domain, slopes, &found)
    return found.log_z, expected


cdef double gain(double empirical, double expected, double* ratio) noexcept nogil:
    """ratio = ln(Ehat / E); returns the part Ehat ln(Ehat / E) - Ehat + E of a relative entropy."""
    cdef double difference = empirical - expected
    if not (empirical > 0 and expected > 0):
        ratio[0] = 0.0
    elif fabs(difference) < 0.5 * expected:  # without cancellation
        ratio[0] = log1p(difference / expected)
    else:
        ratio[0] = log(empirical) - log(expected)
    return max(empirical * ratio[0] - difference, 0.0)


cdef double scale(Py_ssize_t n, double C, const double* empirical, double alpha, const double* expected,
                  const double* multipliers, double* step) noexcept nogil:
    """Compute the steps of a round of scaling of features / C; returns a lower bound on the decrease of the loss."""
    cdef Py_ssize_t j
    cdef double decrease = 0.0, dummy, now, up, down, change = 0.0, empirical_sum = 0.0, expected_sum = 0.0
    if alpha > 0:
        for j in range(n):
            now, step[j] = C * multipliers[j], 0.0
            if expected[j] > 0:
                up = log(max(empirical[j] - alpha, 0.0) / expected[j])
                down = log((empirical[j] + alpha) / expected[j])
                step[j] = up if now + up > 0 else down if now + down < 0 else -now
            change += expected[j] * expm1(step[j]) - step[j] * empirical[j] + alpha * (fabs(now + step[j]) - fabs(now))
            step[j] /= C
        return max(-change / C, 0.0)
    for j in range(n):
        decrease += gain(empirical[j], expected[j], &step[j])
        empirical_sum += empirical[j]
        expected_sum += expected[j]
    decrease = decrease / C + gain(1 - empirical_sum / C, 1 - expected_sum / C, &dummy)
    for j in range(n):
        step[j] = (step[j] - dummy) / C
    return decrease


def scaling_step(double C, const double[::1] empirical, double alpha, const double[::1] expected,
                 const double[::1] multipliers):
    """The step of all multipliers in a round of iterative scaling, and a lower bound on the decrease of the loss.

    Parameters
    ----------
    C : float
        Divisor of the features, above their largest sum over a point.
    empirical : ndarray of shape (n_features,)
        Ehat[f].
    alpha : float
        Penalty.
    expected, multipliers : ndarray of shape (n_features,)
        E_q[f], and the multipliers of q.

    Returns
    -------
    step : ndarray of shape (n_features,)
    decrease : float
    """
    step = np.empty(empirical.shape[0])
    cdef double[::1] out = step
    if not out.shape[0] == expected.shape[0] == multipliers.shape[0] > 0:
        raise ValueError(f"expected and multipliers must have {out.shape[0]} numbers, one for each feature")
    decrease = scale(empirical.shape[0], C, &empirical[0], alpha, &expected[0], &multipliers[0], &out[0])
    return step, decrease


cdef double penalised_loss(Py_ssize_t n, double log_z, const double* multipliers, const double* empirical,
                           double alpha) noexcept nogil:
    cdef Py_ssize_t j
    cdef double value = log_z
    for j in range(n):
        value += alpha * fabs(multipliers[j]) - multipliers[j] * empirical[j]
    return value


cdef int factorise(int n, const double* hessian, double damping, double* factor) except -1 nogil:
    """R with R'R = H + damping."""
    cdef int i, failed = 0
    cdef double widest = 0.0, ridge
    memcpy(factor, hessian, n * n * sizeof(double))
    for i in range(n):
        widest = max(widest, hessian[i * n + i])
    ridge = 1e-12 * widest + 1e-15 + damping  # H is singular if features are dependent or constant
    for i in range(n):
        factor[i * n + i] += ridge
    dpotrf("U", &n, factor, &n, &failed)
    for i in range(n):
        failed = failed or not isfinite(factor[i * n + i])
    if failed:
        raise LinAlgError("the covariance of the features is not positive definite to float64; scale them")
    return 0


def newton(values, low, per_span, support, double log_size, double C, const double[::1] empirical, double alpha, start,
           double tol, Py_ssize_t max_iter, penalised_optimum):
    """Newton steps, whose Hessian is the covariance of the features, until the predicted decrease is at most `tol`.

    Parameters
    ----------
    values, low, per_span, support :
        See `moments`.
    log_size : float
        Loss of multipliers 0, which are the start if the loss of `start` is larger.
    C, empirical, alpha :
        See `scaling_step`.
    start : ndarray of shape (n_features,)
    tol : float
        0: `max_iter` steps, or until the loss in float64 does not decrease.
    max_iter : int
    penalised_optimum : callable
        Minimises the second-order model plus the penalty, given the multipliers, the slope, R with H = R'R, and alpha;
        called if alpha > 0.

    Returns
    -------
    multipliers : ndarray of shape (n_features,)
    n_iter : int
    log_z : float
    expected : ndarray of shape (n_features,)
    """
    cdef Pass points = Pass(values, low, per_span, support)
    cdef bint warm = False
    cdef int i, failed = 0, n = points.domain.n
    cdef const double[::1] optimum
    found = np.array([start, np.empty(n)])
    cdef double[:, ::1] out = found
    cdef double[::1] memory = np.empty(4 * n + 3 * n * n)
    cdef double* now = &out[0, 0]
    cdef double* slope = &memory[0]
    cdef double* step = slope + n
    cdef double* trial = step + n
    cdef double* factor = trial + 2 * n
    cdef Moments at = Moments(0.0, &out[1, 0], factor + n * n), tried = Moments(0.0, trial + n, factor + 2 * n * n)
    cdef const double* empirical_means = points.of_features(empirical)
    cdef double value, tried_value, predicted_decrease, part, widest, damping = 0.0
    cdef Py_ssize_t n_iter = 0
    with nogil:
        find_moments(&points.domain, now, &at)
        value = penalised_loss(n, at.log_z, now, empirical_means, alpha)
        for i in range(n):
            warm = warm or now[i] != 0
        if warm and not value <= log_size:  # the warm start is worse than multipliers of 0
            memset(now, 0, n * sizeof(double))
            find_moments(&points.domain, now, &at)
            value = at.log_z
        while n_iter < max_iter:
            widest = predicted_decrease = 0.0
            for i in range(n):
                widest = max(widest, at.covariance[i * n + i])
                slope[i] = at.expected[i] - empirical[i]
            factorise(n, at.covariance, damping, factor)
            if alpha > 0:
                with gil:
                    optimum = penalised_optimum(found[0], np.asarray(<double[:n]> slope),
                                                np.asarray(<double[:n, :n]> factor).T, alpha)
                for i in range(n):
                    step[i] = optimum[i] - now[i]
            else:
                for i in range(n):
                    step[i] = -slope[i]
                dpotrs("U", &n, &ONE, factor, &n, step, &n, &failed)
            for i in range(n):
                predicted_decrease -= slope[i] * step[i] + alpha * (fabs(now[i] + step[i]) - fabs(now[i]))
            if predicted_decrease <= 1e-15 * max(fabs(value), 1.0):  # below the resolution of float64
                break
            n_iter += 1
            part = 1.0
            while part > 1e-3:
                for i in range(n):
                    trial[i] = now[i] + part * step[i]
                find_moments(&points.domain, trial, &tried)
                tried_value = penalised_loss(n, tried.log_z, trial, empirical_means, alpha)
                if tried_value <= value - 1e-4 * part * predicted_decrease:
                    break
                part /= 2
            else:
                if damping > n:  # larger than any Hessian
                    n_iter -= 1
                    break
                damping = max(100 * damping, widest, 1e-6)
                continue
            memcpy(now, trial, n * sizeof(double))
            memcpy(at.expected, tried.expected, n * sizeof(double))
            at.covariance, tried.covariance = tried.covariance, at.covariance
            at.log_z, value = tried.log_z, tried_value
            damping = damping / 10 if part == 1.0 else max(100 * damping, 1e-10 * widest)
            # with a penalty and large multipliers the predicted decrease may be too large: scaling gives another bound
            if predicted_decrease <= tol or (
                alpha > 0 and tol > 0 and scale(n, C, empirical_means, alpha, at.expected, now, step) <= 1e-5 * tol
            ):
                break
    return found[0], n_iter, at.log_z, found[1]


def observe(values, const Py_ssize_t[::1] points, const double[::1] weights, const double[::1] origin, seen,
            double weight, observed):
    """The smallest and largest observed features, and their mean minus an origin, after further observations.

    Parameters
    ----------
    values : ndarray of shape (n_points, n_features), of float64 or float32
        Features of the domain.
    points : ndarray of intp of shape (n_samples,)
        Numbers of the observed points.
    weights : ndarray of shape (n_samples,)
    origin : ndarray of shape (n_features,)
    seen : tuple of two ndarrays of shape (n_features,), or None
        Least and largest features before.
    weight : float
        Weight of all observations before.
    observed : ndarray of shape (n_features,), or None
        Mean minus the origin before.

    Returns
    -------
    seen : tuple of two ndarrays
        The same object if nothing is smaller or larger.
    weight : float
    observed : ndarray of shape (n_features,)
    """
    cdef TableView view = TableView(values)
    cdef Py_ssize_t i, j, n = view.table.n_columns
    ends = np.array([np.full(n, np.inf), np.full(n, -np.inf)] if seen is None else seen)
    mean, row = np.zeros(n) if observed is None else np.array(observed), np.empty(n)
    cdef double[:, ::1] out = ends
    cdef double[::1] total = mean, buffer = row
    cdef const double* x
    cdef double before = weight
    cdef bint wider = seen is None
    if not (origin.shape[0] == out.shape[1] == total.shape[0] == n and points.shape[0] == weights.shape[0]):
        raise ValueError(f"there must be {n} features, and one weight for each point")
    for i in range(points.shape[0]):
        if not 0 <= points[i] < view.table.n_rows:
            raise ValueError(f"numbers of points must be below {view.table.n_rows}; got {points[i]}")
    with nogil:
        for j in range(n):
            total[j] *= before
        for i in range(points.shape[0]):
            x = row_of(&view.table, points[i], &buffer[0])
            weight += weights[i]
            for j in range(n):
                if x[j] < out[0, j]:
                    out[0, j], wider = x[j], True
                if x[j] > out[1, j]:
                    out[1, j], wider = x[j], True
                total[j] += weights[i] * (x[j] - origin[j])
        for j in range(n):
            total[j] /= weight
    return (tuple(ends) if wider else seen), weight, mean
