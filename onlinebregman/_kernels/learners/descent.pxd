from libc.math cimport isfinite

from onlinebregman._kernels.geometries.geometry cimport Geometry
from onlinebregman._kernels.learners.rule cimport Rule
from onlinebregman._kernels.learners.run cimport (
    BAD_TARGET, IMPLICIT, LEARNED, LOSS_OVERFLOWED, NOT_FINITE, OVERFLOWED, RunState, Settings, add_slack, count,
    linear_step
)
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.rows.rows cimport Row


cdef struct Descent:          # the state of a learner that makes gradient descent steps
    RunState* run
    Settings* settings
    void* rule                # a Rule that does not see rows
    double* w
    bint logistic             # whether the loss is the logistic or the squared one


cdef bint is_descent(Geometry geometry, Loss loss, Rule rule, Settings* settings)
cdef int descend(const Descent* learner, const Row* row, double y, double weight, double* prior_score) noexcept nogil


cdef inline double squared_step(const Settings* settings, double a, double xSx, double eta, double y) noexcept nogil:
    """The step c on the squared loss."""
    return linear_step(a - y, xSx, eta) if settings.update == IMPLICIT else eta * (a - y)


cdef inline int record_step(const Descent* learner, double a, double xSx, double base, double y, double weight,
                            double c, double value, double* prior_score) noexcept nogil:
    """Check a step c and update the state except for the weights. The rate is weight times `base`."""
    cdef RunState* run = learner.run
    cdef Settings* settings = learner.settings
    cdef double eta = weight * base
    cdef bint admitted = 0.0 <= y <= 1.0 if learner.logistic else isfinite(y)
    if not admitted or not isfinite(c + (run.loss + weight * value)):
        if not isfinite(a):
            return NOT_FINITE
        return BAD_TARGET if not admitted else LOSS_OVERFLOWED if isfinite(c) else OVERFLOWED
    if prior_score != NULL:
        prior_score[0] = a
    if settings.track_regret:
        run.weighted_loss += eta * value
        add_slack(run, 0.5 * c * xSx * (eta * (a - y)), base)  # the term of S, for both steps on the squared loss
        if not isfinite(run.weighted_loss + run.slack):
            return LOSS_OVERFLOWED
    count(run, weight, weight * value, c, settings.fit_intercept)
    return LEARNED
