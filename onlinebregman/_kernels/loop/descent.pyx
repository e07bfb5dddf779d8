"""Gradient descent on the squared or the logistic loss: a dot product, a scalar and a weighted sum, without asking
anybody; on dense rows four learners in one pass.

The same numbers as by the learner's way for any geometry and loss, which takes longer to ask than a short row to learn.
"""

from libc.math cimport INFINITY, isfinite

from onlinebregman._kernels.geometries.euclidean cimport EuclideanGeometry
from onlinebregman._kernels.geometries.geometry cimport Geometry
from onlinebregman._kernels.loop.state cimport (
    BAD_TARGET, EXPLICIT, IMPLICIT, LEARNED, LOSS_OVERFLOWED, NOT_FINITE, OVERFLOWED, RunState, Settings, count,
    add_slack, linear_step, rate
)
from onlinebregman._kernels.loop.solver cimport logistic_step
from onlinebregman._kernels.losses.loss cimport Loss, SquaredLoss, logistic_value
from onlinebregman._kernels.rows.rows cimport Row

cdef extern from "ops/row.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    double ob_dot_and_square(const double* w, const double* x, Py_ssize_t n, double* square) noexcept nogil
    void ob_dot4(const double* w0, const double* w1, const double* w2, const double* w3, const double* x, Py_ssize_t n,
                 double* dots) noexcept nogil
    void ob_axpy(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_axpy4(double* w0, double* w1, double* w2, double* w3, const double* x, const double* c,
                  Py_ssize_t n) noexcept nogil
    double ob_sparse_dot(const double* w, const Py_ssize_t* index, const double* x, Py_ssize_t n) noexcept nogil
    void ob_sparse_axpy(double* w, const Py_ssize_t* index, const double* x, double c, Py_ssize_t n) noexcept nogil


cdef bint is_descent(Geometry geometry, Loss loss, Settings* settings):
    """Do these learn by such steps, and is there nothing beside them?"""
    cdef EuclideanGeometry euclidean
    if type(geometry) is not EuclideanGeometry or not (type(loss) is SquaredLoss or loss.logistic):
        return False
    if settings.update != IMPLICIT and (settings.update != EXPLICIT or loss.logistic):
        return False
    if loss.logistic and settings.track_regret:
        return False
    euclidean = geometry
    return not (
        euclidean.doubled
        or euclidean.averaging
        or euclidean.penalised
        or euclidean.upper < INFINITY
        or euclidean.radius < INFINITY
    )


cdef int descend(const Descent* learner, const Row* row, double y, double weight, double* prior_score) noexcept nogil:
    """Predict a row, dense or sparse, and learn it."""
    cdef double a, slope, c
    cdef int status
    if row.index == NULL:
        a = ob_dot_and_square(learner.w, row.x, row.n, &slope)
    else:
        a, slope = ob_sparse_dot(learner.w, row.index, row.x, row.n), ob_dot(row.x, row.x, row.n)
    c = descent_step(learner, a, slope, y, weight, prior_score, &status)
    if status != LEARNED:
        return status
    if row.index == NULL:
        ob_axpy(learner.w, row.x, c, row.n)
    else:
        ob_sparse_axpy(learner.w, row.index, row.x, c, row.n)
    return LEARNED


cdef int descend_together(const Descent* learners, Py_ssize_t n, const Row* row, const double* y, bint separate,
                          double weight, double* scores, double* room, Py_ssize_t* refusing) noexcept nogil:
    """The same for a dense row and n learners, with a target for each (`separate`) or one for all; `room` holds 2 n
    numbers, and `refusing` is the learner to whom the status goes back."""
    cdef Py_ssize_t k, in_fours = n - n % 4
    cdef const Descent* m = learners
    cdef double* dots = room
    cdef double* steps = room + n
    cdef double slope = ob_dot(row.x, row.x, row.n)
    cdef int status
    for k in range(0, in_fours, 4):
        ob_dot4(m[k].w, m[k + 1].w, m[k + 2].w, m[k + 3].w, row.x, row.n, dots + k)
    for k in range(in_fours, n):
        dots[k] = ob_dot(m[k].w, row.x, row.n)
    for k in range(n):
        steps[k] = descent_step(
            &m[k], dots[k], slope, y[k * separate], weight, NULL if scores == NULL else scores + k, &status
        )
        if status != LEARNED:
            refusing[0] = k
            return status
    for k in range(0, in_fours, 4):
        ob_axpy4(m[k].w, m[k + 1].w, m[k + 2].w, m[k + 3].w, row.x, steps + k, row.n)
    for k in range(in_fours, n):
        ob_axpy(m[k].w, row.x, steps[k], row.n)
    return LEARNED


cdef inline double descent_step(const Descent* learner, double a, double slope, double y, double weight,
                                double* prior_score, int* status) noexcept nogil:
    """The step c from a = w.x and slope = x.x, and everything else but the passes over the row."""
    cdef RunState* run = learner.run
    cdef Settings* settings = learner.settings
    cdef double base = rate(settings, run.t + 1.0), eta = weight * base, bias = settings.fit_intercept, c, value
    cdef bint admitted = isfinite(y)
    a += run.intercept
    slope += bias
    if learner.logistic:
        c, value, admitted = logistic_step(a, slope, eta, y), logistic_value(a, y), 0.0 <= y <= 1.0
    else:
        c = linear_step(a - y, slope, eta) if settings.update == IMPLICIT else eta * (a - y)
        value = 0.5 * (a - y) * (a - y)
    if not admitted or not isfinite(c + (run.loss + weight * value)):
        status[0] = NOT_FINITE if not isfinite(a) else BAD_TARGET if not admitted else LOSS_OVERFLOWED
        if status[0] == LOSS_OVERFLOWED and not isfinite(c):
            status[0] = OVERFLOWED
        return c
    status[0] = LEARNED
    if prior_score != NULL:
        prior_score[0] = a
    if settings.track_regret:
        run.weighted_loss += eta * value
        add_slack(run, 0.5 * c * slope * (eta * (a - y)), base)  # what S comes to, for both steps on the squared loss
        if not isfinite(run.weighted_loss + run.slack):
            status[0] = LOSS_OVERFLOWED
    count(run, weight * value, c, bias)
    return c
