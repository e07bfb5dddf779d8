"""The scalar c of implicit steps f(w') = f(w) - c x; see `flow` for importance-invariant ones.

Along w(c) the row's score a(c) = w(c).x + intercept - intercept_xSx c falls at the rate x'Sx + intercept_xSx. The
implicit step is the root of c = eta L'(a(c)), by safeguarded Newton.

Near a pole of w(c), where the domain of c ends, c itself has too few significant digits; there a root is found as its
distance from that end. In all functions below c is relative to `work.origin`, which is 0 elsewhere.
"""

import numpy as np

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN, copysign, fabs, isfinite, isinf, isnan, sqrt

from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.losses.loss import LogisticLoss

from onlinebregman._kernels.geometries.geometry cimport ADAPTIVE, LINEAR, Geometry, Workspace, scratch
from onlinebregman._kernels.losses.loss cimport Edge, Loss, SquaredLoss
from onlinebregman._kernels.ops.adaptive cimport ob_size_of_terms
from onlinebregman._kernels.ops.logistic cimport ob_logistic_derivatives, ob_logistic_step


cdef Geometry LINE = EuclideanGeometry(np.zeros(1))  # w(c).x is linear in c
cdef Loss LOGISTIC = LogisticLoss()


cdef inline void load_line(Workspace* work, Score* score, double a, double xSx) noexcept nogil:
    """The score a - c xSx."""
    score.intercept, score.intercept_xSx, score.a, score.xSx, work.origin = 0.0, 0.0, a, xSx, 0.0


# Within this relative distance from an end of its domain, c is measured from there: it has lost three digits.
cdef double BESIDE = 1e-3


cdef inline double middle(double lo, double hi) noexcept nogil:
    """The middle of a bracket on one side of 0: the geometric mean while the ends differ by orders of magnitude."""
    cdef double far = hi if hi > -lo else lo, near = lo if hi > -lo else hi
    if fabs(near) < 1e-3 * fabs(far):
        return copysign(sqrt(max(fabs(near), 1e-16 * fabs(far))) * sqrt(fabs(far)), far)
    return lo + 0.5 * (hi - lo)


cdef double root(Geometry geometry, Loss loss, Workspace* work, Score* score, double keep, double eta, double y,
                 double bound) noexcept nogil:
    """The c between 0 and `bound` with keep c = eta L'(a(c)).

    keep is 1, or 0 to find the c at which L' = 0. The bracket is intersected with the geometry's domain.
    """
    cdef double a = score.a, slope = score.xSx, c, lo, hi, low_end, high_end
    cdef double psi = -eta * loss.derivative(a, y)
    if psi == 0:
        return 0.0
    if geometry.traits & LINEAR and loss.linear:
        return -psi / (keep + eta * loss.curvature(a, y) * (slope + score.intercept_xSx))
    find_domain(geometry, work, score, fabs(bound), &low_end, &high_end)
    lo, hi = min((1.0 + 1e-15) * bound, 0.0), max((1.0 + 1e-15) * bound, 0.0)  # `bound` itself may be the root
    lo, hi = max(lo, low_end), min(hi, high_end)
    c = newton(geometry, loss, work, score, keep, eta, y, 0.0, a, slope, lo, hi)
    if work.origin != 0 or not near_end(geometry, work, c, low_end, high_end):
        return c
    lo, hi = min(-4.0 * BESIDE * work.origin, 0.0), max(-4.0 * BESIDE * work.origin, 0.0)
    c = c - work.origin if lo < c - work.origin < hi else middle(lo, hi)
    evaluate_score(geometry, work, score, c, &a, &slope)
    return newton(geometry, loss, work, score, keep, eta, y, c, a, slope, lo, hi)


cdef double logistic_step(double start, double xSx, double eta, double y) noexcept nogil:
    """The implicit step on the logistic loss for a score that falls in a straight line, a(c) = start - c xSx."""
    cdef double slope, curvature
    ob_logistic_derivatives(start, y, &slope, &curvature)
    return logistic_step_from(start, xSx, eta, y, slope, curvature)


cdef double logistic_step_from(double start, double xSx, double eta, double y, double slope,
                               double curvature) noexcept nogil:
    """The same, with slope and curvature of the loss at the start."""
    cdef double c = ob_logistic_step(start, xSx, eta, y, slope, curvature)
    return logistic_newton(start, xSx, eta, y) if isnan(c) else c


cdef double logistic_newton(double start, double xSx, double eta, double y) noexcept nogil:
    """`root` for this case: slower than `ob_logistic_step`, but it always converges."""
    cdef double slope, curvature, c
    cdef Score score
    cdef Workspace work
    ob_logistic_derivatives(start, y, &slope, &curvature)
    c = explicit_step(eta, slope)
    if c == 0 or isnan(c):
        return c
    load_line(&work, &score, start, xSx)
    return root(LINE, LOGISTIC, &work, &score, 1.0, eta, y, c)


cdef bint near_end(Geometry geometry, Workspace* work, double c, double low_end, double high_end) noexcept nogil:
    """Whether c is so near to an end of its domain that it has to be measured from there; if so, it is from now on."""
    cdef double end = low_end if c < 0 else high_end
    return fabs(c - end) < BESIDE * fabs(end) and count_from(geometry, work, end)


cdef double newton(Geometry geometry, Loss loss, Workspace* work, Score* score, double keep, double eta, double y,
                   double c, double a, double slope, double lo, double hi) noexcept nogil:
    """The root between lo and hi of psi(c) = keep c - eta L'(a(c)), an increasing function, by safeguarded Newton.

    It starts at c, where the score is `a` and x'Sx is `slope`.
    """
    cdef double psi, rise, step, loss_slope, curvature
    cdef double last, before  # sizes of the last two steps
    cdef int iteration
    last = before = INFINITY
    loss.differentiate(a, y, &loss_slope, &curvature)
    psi = keep * (work.origin + c) - eta * loss_slope
    for iteration in range(200):
        rise = keep + eta * curvature * (slope + score.intercept_xSx)
        step = -psi / rise if isfinite(rise) and isfinite(psi) else NAN
        if converged(geometry, loss, work, score, a, slope, c, step):
            return c + step
        # halve the bracket if Newton leaves it, overflows, or is slow (along an exponential its steps hardly shrink)
        if not lo < c + step < hi or not fabs(step) <= 0.5 * before:
            step = middle(lo, hi) - c
            if not lo < c + step < hi:
                return c + step
        before, last = last, fabs(step)
        c += step
        evaluate_score(geometry, work, score, c, &a, &slope)
        loss.differentiate(a, y, &loss_slope, &curvature)
        psi = keep * (work.origin + c) - eta * loss_slope
        if psi > 0:
            hi = c
        else:
            lo = c
    return c


cdef bint reaches(Geometry geometry, Workspace* work, Score* score, double c, double edge) noexcept nogil:
    """Whether the score passes the edge between 0 and c. At an end of the geometry's domain it passes every edge."""
    cdef double lo, hi, a, slope
    geometry.domain(work, &lo, &hi)
    if not lo < c < hi:
        return True
    evaluate_score(geometry, work, score, c, &a, &slope)
    return a < edge if c > 0 else a > edge


cdef SquaredLoss TO_EDGE = SquaredLoss()


cdef double to_edge(Geometry geometry, Workspace* work, Score* score, double edge, double bound) noexcept nogil:
    """The c between 0 and `bound` at which the score is at an edge: the minimum of (a - edge)^2 / 2."""
    return root(geometry, TO_EDGE, work, score, 0.0, 1.0, edge, bound)


cdef inline double explicit_step(double eta, double slope) noexcept nogil:
    """eta L', limited to finite numbers: where it overflows, the root of the implicit step is nearer."""
    cdef double c = eta * slope
    return copysign(DBL_MAX, c) if isinf(c) else c


cdef double implicit_step(Geometry geometry, Loss loss, Workspace* work, Score* score, double eta,
                          double y) noexcept nogil:
    """The root of c = eta L'(a(c)), or the kink at which eta L' jumps over c."""
    cdef Edge edge
    cdef double a, slope, c
    if geometry.traits & LINEAR and loss.logistic:
        return logistic_step(score.a, score.xSx + score.intercept_xSx, eta, y)
    a, slope = score.a, loss.derivative(score.a, y)
    c = explicit_step(eta, slope)
    if c == 0 or isnan(c):
        return c
    while loss.next_edge(a, y, &edge):
        if isnan(edge.near):
            return NAN
        if (edge.near > 0) != (slope > 0):  # the minimum of the loss, beyond which the root is not, comes before
            break
        if not reaches(geometry, work, score, explicit_step(eta, edge.near), edge.score):
            if edge.near == slope:
                return c  # the derivative is constant up to the edge
            break
        if edge.near == edge.far:
            break
        if not edge.near * edge.far > 0 or not reaches(geometry, work, score, explicit_step(eta, edge.far), edge.score):
            return to_edge(geometry, work, score, edge.score, c)
        a, slope = beyond(&edge), edge.far
        c = explicit_step(eta, slope)
    if loss.inner is None:
        return root(geometry, loss, work, score, 1.0, eta, y, c)
    return root(geometry, loss.inner, work, score, 1.0, eta, y, c)


cdef double line_step(Loss loss, double a, double q, double weight, double y) noexcept nogil:
    """The c = weight L'(a - q c) of a second-order step, with q = x'A^-1 x."""
    cdef Score score
    cdef Workspace work
    load_line(&work, &score, a, q)
    return implicit_step(LINE, loss, &work, &score, weight, y)


cdef double size_of_terms(Geometry geometry, Workspace* work) noexcept nogil:
    """An estimate of sum |w_i x_i|, which may be much larger than |w.x|; exact for positive weights."""
    cdef const double* x = work.x
    cdef double* other = scratch(work, 4)  # reserved for the solver
    cdef double size
    cdef Py_ssize_t i
    work.x = other
    for i in range(work.n):
        other[i] = fabs(x[i])
    size = fabs(geometry.dot(work))
    for i in range(1, work.n, 2):
        other[i] = -other[i]
    size = max(size, fabs(geometry.dot(work)))
    work.x = x
    return size


cdef double size_of_score(Geometry geometry, Workspace* work, Score* score, double eta, double largest) noexcept nogil:
    """What the rounding errors of a score are relative to: the sum of its |terms|, and a step of the rate eta.

    Small weights may be what is left of steps that have cancelled. A step counts up to the largest score so far, as the
    steps of other rows may have been much smaller.
    """
    cdef double size, a, slope
    if geometry.traits & ADAPTIVE:
        return ob_size_of_terms(work.w, work.x, work.n) + fabs(score.intercept)
    size = size_of_terms(geometry, work) + fabs(score.intercept)
    geometry.evaluate(work, 0.0, &a, &slope)
    return size + min(eta * (slope + score.intercept_xSx), largest)
