"""Gradient descent on the squared loss: a dot product, a quotient and a weighted sum, without asking anybody.

The same numbers as by the learner's way for any geometry and loss, which takes longer to ask than a short row to learn.
"""

from libc.math cimport INFINITY, isfinite

from onlinebregman._kernels.geometries.euclidean cimport EuclideanGeometry
from onlinebregman._kernels.geometries.geometry cimport Geometry
from onlinebregman._kernels.loop.state cimport (
    BAD_TARGET, EXPLICIT, IMPLICIT, LEARNED, LOSS_OVERFLOWED, NOT_FINITE, OVERFLOWED, RunState, Settings, count,
    add_slack, linear_step, rate
)
from onlinebregman._kernels.losses.loss cimport Loss, SquaredLoss
from onlinebregman._kernels.rows.rows cimport Row

cdef extern from "ops/row.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    double ob_dot_and_square(const double* w, const double* x, Py_ssize_t n, double* square) noexcept nogil
    void ob_axpy(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    double ob_sparse_dot(const double* w, const Py_ssize_t* index, const double* x, Py_ssize_t n) noexcept nogil
    void ob_sparse_axpy(double* w, const Py_ssize_t* index, const double* x, double c, Py_ssize_t n) noexcept nogil


cdef bint is_descent(Geometry geometry, Loss loss, Settings* settings):
    """Do these learn by such steps, and is there nothing beside them?"""
    cdef EuclideanGeometry euclidean
    if type(geometry) is not EuclideanGeometry or type(loss) is not SquaredLoss:
        return False
    if settings.update != IMPLICIT and settings.update != EXPLICIT:
        return False
    euclidean = geometry
    return not (
        euclidean.doubled
        or euclidean.averaging
        or euclidean.penalised
        or euclidean.upper < INFINITY
        or euclidean.radius < INFINITY
    )


cdef int descend(RunState* run, Settings* settings, double* w, const Row* row, double y, double weight,
                 double* prior_score) noexcept nogil:
    """Predict a row, dense or sparse, and learn it."""
    cdef double a, slope, c
    cdef int status
    if row.index == NULL:
        a = ob_dot_and_square(w, row.x, row.n, &slope)
    else:
        a, slope = ob_sparse_dot(w, row.index, row.x, row.n), ob_dot(row.x, row.x, row.n)
    c = descent_step(run, settings, a, slope, y, weight, prior_score, &status)
    if status != LEARNED:
        return status
    if row.index == NULL:
        ob_axpy(w, row.x, c, row.n)
    else:
        ob_sparse_axpy(w, row.index, row.x, c, row.n)
    return LEARNED


cdef double descent_step(RunState* run, Settings* settings, double a, double slope, double y, double weight,
                         double* prior_score, int* status) noexcept nogil:
    """The step c from a = w.x and slope = x.x, and everything else but the passes over the row."""
    cdef double base = rate(settings, run.t + 1.0), eta = weight * base, bias = settings.fit_intercept, c, value
    a += run.intercept
    slope += bias
    c = linear_step(a - y, slope, eta) if settings.update == IMPLICIT else eta * (a - y)
    value = 0.5 * (a - y) * (a - y)
    if not isfinite(c + (run.loss + weight * value)):
        status[0] = NOT_FINITE if not isfinite(a) else BAD_TARGET if not isfinite(y) else LOSS_OVERFLOWED
        if status[0] == LOSS_OVERFLOWED and not isfinite(c):
            status[0] = OVERFLOWED
        return c
    status[0] = LEARNED
    if prior_score != NULL:
        prior_score[0] = a
    if settings.track_regret:
        run.weighted_loss += eta * value
        add_slack(run, 0.5 * c * slope * (eta * (a - y)), base)  # what S comes to, for both steps
        if not isfinite(run.weighted_loss + run.slack):
            status[0] = LOSS_OVERFLOWED
    count(run, weight * value, c, bias)
    return c
