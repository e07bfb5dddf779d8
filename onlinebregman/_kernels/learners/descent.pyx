"""Gradient descent on the squared or the logistic loss: a dot product, a scalar and a weighted sum, without method
calls. `lockstep` does so for several learners at a time.

The result is bit for bit that of the general path for any geometry and loss, whose method calls take longer than a
short row itself.
"""

from libc.math cimport INFINITY

from onlinebregman._kernels.geometries.euclidean cimport EuclideanGeometry
from onlinebregman._kernels.geometries.geometry cimport SIGNED, Geometry
from onlinebregman._kernels.learners.rule cimport Rule, scheduled_rate
from onlinebregman._kernels.learners.run cimport EXPLICIT, IMPLICIT, LEARNED, Settings
from onlinebregman._kernels.learners.solver cimport logistic_step
from onlinebregman._kernels.losses.loss cimport Loss, SquaredLoss, logistic_value
from onlinebregman._kernels.ops.row cimport ob_sparse_axpy, ob_sparse_dot
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_dot, ob_dot_and_square
from onlinebregman._kernels.rows.rows cimport Row


cdef bint is_descent(Geometry geometry, Loss loss, Rule rule, Settings* settings):
    """Whether such a learner only makes these steps: without penalty, projection or averaging."""
    cdef EuclideanGeometry euclidean
    if type(geometry) is not EuclideanGeometry or not (type(loss) is SquaredLoss or loss.logistic):
        return False
    if settings.update != IMPLICIT and (settings.update != EXPLICIT or loss.logistic):
        return False
    if rule.sees_rows or (loss.logistic and settings.track_regret):
        return False
    euclidean = geometry
    return not (
        euclidean.traits & SIGNED
        or euclidean.average.active
        or euclidean.lazy.active
        or euclidean.upper < INFINITY
        or euclidean.radius < INFINITY
    )


cdef int descend(const Descent* learner, const Row* row, double y, double weight, double* prior_score) noexcept nogil:
    """Predict a row, dense or sparse, and learn it."""
    cdef double a, xSx, c, value, base = scheduled_rate(<Rule> learner.rule, learner.run.t + 1.0)
    cdef int status
    if row.index == NULL:
        a = ob_dot_and_square(learner.w, row.x, row.n, &xSx)
    else:
        a, xSx = ob_sparse_dot(learner.w, row.index, row.x, row.n), ob_dot(row.x, row.x, row.n)
    a += learner.run.intercept
    xSx += learner.settings.fit_intercept
    if learner.logistic:
        c, value = logistic_step(a, xSx, weight * base, y), logistic_value(a, y)
    else:
        c, value = squared_step(learner.settings, a, xSx, weight * base, y), 0.5 * (a - y) * (a - y)
    status = record_step(learner, a, xSx, base, y, weight, c, value, prior_score)
    if status != LEARNED:
        return status
    if row.index == NULL:
        ob_axpy(learner.w, row.x, c, row.n)
    else:
        ob_sparse_axpy(learner.w, row.index, row.x, c, row.n)
    return LEARNED
