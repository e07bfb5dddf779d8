# Learning a row with any geometry and loss: predict it, find the scalar c, and step to w(c).
#
# The functions are inline, in a .pxd: for short rows calls between modules would take a noticeable part of the time.

from libc.math cimport INFINITY, fabs, isfinite, ldexp

from onlinebregman._kernels.geometries.geometry cimport (
    ADAPTIVE, HAS_POLES, LINEAR, MISSED, QUADRATIC, Geometry, Workspace
)
from onlinebregman._kernels.learners.flow cimport importance_step
from onlinebregman._kernels.learners.rule cimport Rule, scheduled_rate
from onlinebregman._kernels.learners.solver cimport Score, find_domain, implicit_step, logistic_step_from, size_of_score
from onlinebregman._kernels.learners.run cimport (
    BAD_TARGET, EXPLICIT, FAILED, IMPORTANCE, INTERRUPTED, LEARNED, LEFT_DOMAIN, LOSS_OVERFLOWED,
    NEEDS_BACKUP, NEGATIVE, NOT_FINITE, OVERFLOWED, RunState, Settings, add_slack, count, linear_step
)
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.ops.adaptive cimport OB_KINK_ROUNDING
from onlinebregman._kernels.ops.logistic cimport ob_logistic_derivatives


cdef inline int mirror_step(Geometry geometry, Loss loss, Rule rule, const Settings* settings, RunState* run,
                            Workspace* work, double y, double weight, double* prior_score) noexcept nogil:
    """Predict the row of the workspace and learn it; nothing is changed if the prediction is not finite.

    Returns a `Status`.
    """
    cdef int update = settings.update, traits = geometry.traits, status
    cdef double c, eta, lo, hi, divergence = 0.0, value, predicted, dloss, curvature
    cdef bint settled
    cdef Score score
    status = predict_row(geometry, settings, run, work, &score, &predicted)
    if status != LEARNED:
        return status
    if not loss.admits(y):
        return BAD_TARGET
    if prior_score != NULL:
        prior_score[0] = predicted

    if rule.sees_rows:
        eta = rule.rate(geometry, work, &score, run.t + 1.0, y, weight, loss.value(score.a, y))
        if not eta > 0:
            return rate_status(rule, eta)
    else:
        eta = scheduled_rate(rule, run.t + 1.0)
    settled = loss.kinked and (traits & ADAPTIVE or update == EXPLICIT)
    settled = settled and on_kink(geometry, loss, run, work, &score, eta, y)
    value = loss.value(score.a, y)
    # the step c of f(w') = f(w) - c x
    if geometry.average.active:
        geometry.average.add(geometry, work.row)
    if traits & ADAPTIVE:
        if loss.logistic:
            ob_logistic_derivatives(score.a, y, &dloss, &curvature)
        elif settled and update != EXPLICIT:
            dloss = loss.slope_at_kink(score.a, y)
        else:
            dloss = loss.derivative(score.a, y)
        eta *= geometry.adapt(work, dloss, score.a, y, weight, update != EXPLICIT, &score.xSx, &score.intercept_xSx)
    if update == EXPLICIT:
        c = weight * eta * loss.derivative(score.a, y)
        find_domain(geometry, work, &score, fabs(c), &lo, &hi)
        # beyond the end of its domain a weight is infinite, and is projected onto its upper bound
        if isfinite(c) and not lo < c < hi and not (geometry.upper < INFINITY and not geometry.lazy.active):
            return LEFT_DOMAIN
    elif update == IMPORTANCE:
        c = importance_step(geometry, loss, work, &score, weight * eta, y)
    elif traits & ADAPTIVE and loss.logistic:
        c = logistic_step_from(score.a, score.xSx + score.intercept_xSx, weight * eta, y, dloss, curvature)
    elif traits & LINEAR and loss.linear:
        c = linear_step(score.a - y, score.xSx + score.intercept_xSx, weight * eta)
    else:
        c = implicit_step(geometry, loss, work, &score, weight * eta, y)
    if not isfinite(c):
        return OVERFLOWED

    if settings.track_regret:
        divergence = divergence_to(geometry, work, &score, c)
    geometry.step(work, c)
    c += work.origin
    if settings.track_regret:
        certify(geometry, loss, update, run, work, &score, y, weight, eta, c, divergence, value)
    value = weight * (loss.value(predicted, y) if averages(geometry, run) else value)
    return end_step(geometry, settings, run, work, weight, eta, c, score.intercept_xSx, value, loss.drift)


cdef inline int rate_status(Rule rule, double eta) noexcept nogil:
    """The `Status` of a row without a rate: see `Rule.rate`."""
    if rule.failure is not None:
        return INTERRUPTED
    return NEGATIVE if eta < 0 else OVERFLOWED


cdef inline bint on_kink(Geometry geometry, Loss loss, RunState* run, Workspace* work, Score* score, double eta,
                         double y) noexcept nogil:
    """Whether a score is a kink up to rounding; if so, set it to the kink.

    At a kink the slope jumps, and with it an explicit step and the metric of an adaptive geometry. Exact steps end on
    kinks, where the next equal row begins. (They do not jump themselves: there rounding errors remain rounding errors.)
    """
    cdef double kink = loss.kink(score.a, y), distance = fabs(score.a - kink), largest = run.largest_score, size
    run.largest_score = max(largest, fabs(score.a))
    # others are far, unless terms are 1e6 times as large as any score: saves most rows the sum of the terms
    if not (distance <= 1e-6 * max(largest, fabs(kink)) or fabs(score.a) > largest):
        return False
    size = fabs(kink) + size_of_score(geometry, work, score, eta, largest)
    if not (distance <= OB_KINK_ROUNDING * size and size < INFINITY):
        return False
    score.a = kink
    return True


cdef inline bint averages(Geometry geometry, const RunState* run) noexcept nogil:
    """Whether `predict` uses averaged weights."""
    return run.averaged > 0 and not geometry.traits & QUADRATIC


cdef inline int predict_row(Geometry geometry, const Settings* settings, const RunState* run, Workspace* work,
                            Score* score, double* predicted) noexcept nogil:
    """The score of the row of the workspace by the learning weights, and the score that `predict` would use."""
    cdef int traits = geometry.traits
    if averages(geometry, run):
        predicted[0] = (geometry.average.dot(geometry, work.row) + run.intercept_sum) / run.averaged
    geometry.load(work)
    if geometry.lazy.active:
        geometry.lazy.catch_up(geometry, work)
    score.intercept, score.intercept_xSx = run.intercept, settings.fit_intercept
    if settings.update != EXPLICIT or traits & HAS_POLES or (traits & LINEAR and settings.track_regret):
        geometry.evaluate(work, 0.0, &score.a, &score.xSx)
    else:
        score.a = geometry.dot(work)
    score.a += run.intercept
    if geometry.failure is not None:
        return FAILED
    if not averages(geometry, run):
        predicted[0] = score.a
    if not isfinite(score.a):
        return NOT_FINITE
    if not isfinite(predicted[0]):  # the weights are finite, their sum is not
        return OVERFLOWED
    return LEARNED


cdef inline int end_step(Geometry geometry, const Settings* settings, RunState* run, Workspace* work,
                         double weight, double eta, double c, double intercept_xSx, double loss,
                         double drift) noexcept nogil:
    """Finish a row after the step c: the penalty or the projection, and the statistics of the run.

    A loss with a term drift * b of the intercept b moves it, too, by a step of its own.
    """
    if geometry.lazy.active:
        penalise(geometry, settings, run, work, eta, c)
    else:
        geometry.project(work)
        geometry.store(work)
    geometry.renormalise(work)
    if geometry.backup == MISSED:
        return NEEDS_BACKUP
    if geometry.failure is not None:
        return FAILED
    count(run, weight, loss, c, intercept_xSx)
    if drift != 0:
        run.intercept -= weight * eta * intercept_xSx * drift
    if not isfinite(run.loss + run.weighted_loss + run.slack):
        return LOSS_OVERFLOWED
    if run.t >= settings.average_from:
        run.averaged += 1.0
        run.intercept_sum += run.intercept
        geometry.average.clock += 1.0 / geometry.lazy.growth if geometry.lazy.pending else geometry.scale()
    return LEARNED


cdef inline void penalise(Geometry geometry, const Settings* settings, RunState* run, Workspace* work,
                          double eta, double c) noexcept nogil:
    """The proximal step of the penalty, then the projection: D(u, .) falls by eta (R(w'') - R(u)) + D(w'', w').

    The explicit step of an L2 penalty, w'' = (1 - eta l2) w - c x, is the proximal one of a row of rate eta / (1 - eta
    l2), the intercept excepted. Where it would overshoot 0, it ends there, up to 2^-50 w.
    """
    cdef double decrease, longer
    if geometry.lazy.linearised:
        eta = min(eta, (1.0 - ldexp(1.0, -50)) / geometry.lazy.l2)
        longer = 1.0 / (1.0 - eta * geometry.lazy.l2)
        geometry.step(work, c * (longer - 1.0))
        eta *= longer
    if not geometry.lazy.eager:
        geometry.lazy.shrink(geometry, work, eta)
        return
    geometry.store(work)
    decrease = geometry.lazy.shrink_all(geometry, eta, settings.track_regret)
    if settings.track_regret:
        add_slack(run, -decrease, eta)
        run.rate_sum += eta
        run.plain_rows += 1.0


cdef inline double divergence_to(Geometry geometry, Workspace* work, Score* score, double c) noexcept nogil:
    """D(w, w(c)), the intercept included."""
    cdef double step = work.origin + c
    if geometry.traits & LINEAR:
        return 0.5 * c * c * (score.xSx + score.intercept_xSx)
    return geometry.conjugate(work, c) + step * (score.a - score.intercept) + 0.5 * score.intercept_xSx * step * step


cdef inline void certify(Geometry geometry, Loss loss, int update, RunState* run, Workspace* work, Score* score,
                         double y, double weight, double rate, double c, double divergence,
                         double value) noexcept nogil:
    """Add a step to both sides of the certificate; the divergence is D(w, w(c)), and the weights are already w(c)."""
    cdef double a, decrease, eta = weight * rate
    run.weighted_loss += eta * value
    if geometry.traits & ADAPTIVE:
        geometry.note_step(work, c, c * score.a - divergence)
    if update == EXPLICIT:
        add_slack(run, divergence, rate)
        return
    if geometry.traits & LINEAR:
        a = score.a - c * (score.xSx + score.intercept_xSx)
    else:
        a = geometry.dot(work) + score.intercept - score.intercept_xSx * c
    decrease = eta * (value - loss.value(a, y))
    add_slack(run, decrease if update == IMPORTANCE else decrease + divergence - c * (score.a - a), rate)
