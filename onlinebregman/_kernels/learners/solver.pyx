"""The scalar c of implicit and importance-invariant steps f(w') = f(w) - c x.

Along w(c) the row's score a(c) = w(c).x + intercept - intercept_xSx c falls at the rate x'Sx + intercept_xSx. The
implicit step is the root of c = eta L'(a(c)); the importance-invariant step is the flow dc/ds = L'(a(c)), c(0) = 0, at
time s = eta.

Near a pole of w(c), where the domain of c ends, c itself has too few significant digits; there a root is found as its
distance from that end. In all functions below c is relative to `work.origin`, which is 0 elsewhere.
"""

import numpy as np

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN, copysign, exp, expm1, fabs, isfinite, isinf, isnan, log1p, nextafter, sqrt

from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry

from onlinebregman._kernels.geometries.geometry cimport ADAPTIVE, HAS_POLES, LINEAR, Geometry, Workspace, scratch
from onlinebregman._kernels.losses.loss cimport Edge, Loss, SquaredLoss
from onlinebregman._kernels.ops.adaptive cimport ob_size_of_terms
from onlinebregman._kernels.ops.logistic cimport ob_logistic_derivatives, ob_logistic_step


cdef inline bint converged(Geometry geometry, Loss loss, Workspace* work, Score* score, double a, double slope,
                           double c, double step) noexcept nogil:
    """Whether a Newton step from c, with L'(a(c)) replaced by its tangent, is exact up to rounding.

    Its error is at most half |psi''/psi'| step^2 for psi = L'(a(c)); geometry and loss bound this ratio.
    """
    cdef double error, self_concordance = geometry.self_concordance(work, slope)
    if slope + score.intercept_xSx > 0:
        self_concordance += loss.self_concordance(a) * (slope + score.intercept_xSx)
    # no bound is known, or it underflowed
    if self_concordance == INFINITY or (slope < 1e-300 and not geometry.traits & LINEAR):
        return fabs(step) <= 1e-10 * fabs(c)
    error = self_concordance * fabs(step)
    return error <= 0.1 and error * fabs(step) <= 1e-15 * fabs(c + step)


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
    """`newton` for this case, without method calls: slower than `ob_logistic_step`, but it always converges."""
    cdef double a = start, c, lo, hi, psi, rise, step, slope, curvature, error
    cdef double last = INFINITY, before = INFINITY
    cdef int iteration
    ob_logistic_derivatives(a, y, &slope, &curvature)
    c = explicit_step(eta, slope)
    if c == 0 or isnan(c):
        return c
    lo, hi = min((1.0 + 1e-15) * c, 0.0), max((1.0 + 1e-15) * c, 0.0)
    c, psi = 0.0, -eta * slope
    for iteration in range(200):
        rise = 1.0 + eta * curvature * xSx
        step = -psi / rise if isfinite(rise) and isfinite(psi) else NAN
        error = xSx * fabs(step)  # the third derivative is at most the second
        if error <= 0.1 and error * fabs(step) <= 1e-15 * fabs(c + step):
            return c + step
        if not lo < c + step < hi or not fabs(step) <= 0.5 * before:
            step = middle(lo, hi) - c
            if not lo < c + step < hi:
                return c + step
        before, last = last, fabs(step)
        c += step
        a = start - c * xSx
        ob_logistic_derivatives(a, y, &slope, &curvature)
        psi = c - eta * slope
        if psi > 0:
            hi = c
        else:
            lo = c
    return c


cdef inline bint count_from(Geometry geometry, Workspace* work, double end) noexcept nogil:
    """If the geometry has poles, measure c from this end of its domain from now on; returns whether it does."""
    if geometry.traits & HAS_POLES:
        work.origin = end
    return geometry.traits & HAS_POLES != 0


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


cdef inline double beyond(Edge* edge) noexcept nogil:
    """The first score behind an edge."""
    return nextafter(edge.score, -INFINITY if edge.near > 0 else INFINITY)


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


cdef Geometry LINE = EuclideanGeometry(np.zeros(1))  # w(c).x is linear in c


cdef double line_step(Loss loss, double a, double q, double weight, double y) noexcept nogil:
    """The c = weight L'(a - q c) of a second-order step, with q = x'A^-1 x."""
    cdef Score score
    cdef Workspace work
    score.intercept, score.intercept_xSx, score.a, score.xSx, work.origin = 0.0, 0.0, a, q, 0.0
    return implicit_step(LINE, loss, &work, &score, weight, y)


cdef double importance_step(Geometry geometry, Loss loss, Workspace* work, Score* score, double eta,
                            double y) noexcept nogil:
    """c(eta) of the flow dc/ds = L'(a(c)), c(0) = 0."""
    cdef Edge edge
    cdef double speed = loss.derivative(score.a, y), c
    if eta * speed == 0:
        return 0.0
    if loss.next_edge(score.a, y, &edge):
        if isnan(edge.near):
            return NAN
        c = eta * speed
        if edge.near == speed and not reaches(geometry, work, score, c, edge.score):
            return c  # constant up to the edge
        if edge.near == speed and not edge.near * edge.far > 0:
            return to_edge(geometry, work, score, edge.score, c)  # where the flow ends
        if edge.near == speed and loss.inner is not None:
            c = to_edge(geometry, work, score, edge.score, c)
            return carried(geometry, loss.inner, work, score, c, eta - (work.origin + c) / speed, y)
    if loss.inner is None:
        return carried(geometry, loss, work, score, 0.0, eta, y)
    return carried(geometry, loss.inner, work, score, 0.0, eta, y)


cdef double carried(Geometry geometry, Loss loss, Workspace* work, Score* score, double c, double time,
                    double y) noexcept nogil:
    """`flow`, repeated with c measured from the end of its domain if it ends near there, or at once if it gets there in
    a negligible part of the time."""
    cdef double speed = loss.derivative(score.a, y), reached, end, low_end, high_end
    if work.origin == 0:
        geometry.domain(work, &low_end, &high_end)
        end = low_end if speed < 0 else high_end
        if not fabs(time * speed) > 1e15 * fabs(end) or not count_from(geometry, work, end):
            reached = flow(geometry, loss, work, score, c, time, y)
            if fabs(reached - end) >= BESIDE * fabs(end) or isinf(end) or not count_from(geometry, work, end):
                return reached
        c -= end
    return flow(geometry, loss, work, score, c, time, y)


# Gauss-Kronrod with 7 and 15 points on [0, 1]: the nodes from 0 to 1/2, their weights, and the Gauss weights of every
# other node.
cdef double[8] NODES = [
    0.004272314439593680, 0.025446043828620738, 0.067567788320115464, 0.129234407200302780, 0.206956382266154432,
    0.297077424311301417, 0.396107522496050773, 0.5,
]
cdef double[8] KRONROD = [
    0.011467661005264612, 0.031546046314989276, 0.052395005161125092, 0.070326629857762959, 0.084502363319633952,
    0.095175289032392705, 0.102216470037649446, 0.104741070542363914,
]
cdef double[4] GAUSS = [0.064742483084434847, 0.139852695744638334, 0.190915025252559472, 0.208979591836734694]


cdef struct Panel:            # the integral over a piece of the flow
    double time               # the duration of the flow; NaN if the piece leaves the domain or crosses a fixed point
    double error              # difference of two quadratures, as an error of the c at the end
    double end                # g at the last node


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


cdef inline double elapsed(double decay, double r) noexcept nogil:
    """(1 - exp(-decay r)) / decay."""
    return -expm1(-decay * r) / decay if fabs(decay * r) > 1e-17 else r


cdef void follow(Geometry geometry, Loss loss, Workspace* work, Score* score, double start, double r, double g,
                 double decay, double y, Panel* panel) noexcept nogil:
    """Integrate dt = c'(r) / g(c(r)) dr along c(r) = start + g elapsed(decay, r)."""
    cdef double total = 0.0, coarse = 0.0, node, c, a, slope, speed, ratio, lo, hi
    cdef int k, i
    geometry.domain(work, &lo, &hi)
    panel.time, panel.error, panel.end = NAN, INFINITY, g
    if not lo < start + g * elapsed(decay, r) < hi:  # the last node lies before r
        return
    for k in range(15):
        i = min(k, 14 - k)
        node = r * (NODES[i] if k < 8 else 1.0 - NODES[i])
        c = start + g * elapsed(decay, node)
        if not lo < c < hi:
            return
        evaluate_score(geometry, work, score, c, &a, &slope)
        speed = loss.derivative(a, y)
        panel.end = speed
        ratio = g * exp(-decay * node) / speed
        if not ratio > 0 or (k == 0 and not 0.5 < ratio < 2.0):  # or a boundary layer that the other nodes would miss
            ratio = NAN
        total += KRONROD[i] * ratio
        if i % 2:
            coarse += GAUSS[i // 2] * ratio
    if isfinite(total):
        panel.time, panel.error = r * total, fabs(r * (total - coarse) * panel.end)


cdef inline double elapsing(double decay, double s) noexcept nogil:
    """The inverse of `elapsed`: r with (1 - exp(-decay r)) / decay = s."""
    return -log1p(-decay * s) / decay if fabs(decay * s) > 1e-17 else s


cdef double c_of_edge(Geometry geometry, Loss loss, Workspace* work, Score* score, double a, double bound, double y,
                      Edge* edge) noexcept nogil:
    """The c of the next edge beyond the score a that the flow passes between 0 and `bound`; NaN if there is none.

    Near a pole, where c is measured from the pole, none is searched for.
    """
    cdef double lo, hi
    if work.origin != 0 or not loss.next_edge(a, y, edge) or not fabs(edge.near) > 0:
        return NAN
    geometry.domain(work, &lo, &hi)
    bound = max(min(bound, (1.0 - 2.0 * BESIDE) * hi), (1.0 - 2.0 * BESIDE) * lo)
    if not reaches(geometry, work, score, bound, edge.score):
        return NAN
    return to_edge(geometry, work, score, edge.score, bound)


cdef double flow(Geometry geometry, Loss loss, Workspace* work, Score* score, double c, double time,
                 double y) noexcept nogil:
    """The flow dc/ds = g(c), g(c) = L'(a(c)), at `time` after starting at c; NaN where it cannot be followed.

    It has a closed form where g is linear. Otherwise the closed form of the linearised flow, c(r) at its own time r, is
    a change of variables in which the true time has ds/dr = c'(r) / g(c(r)) near 1. This is integrated over panels
    until the linear form is exact for the rest of the time, or the flow has stopped up to rounding. Panels end at the
    edges of the loss.
    """
    cdef Edge edge
    cdef bint at_edge
    cdef double a, slope, g, curvature, decay, move, next_c, next_a, next_slope, next_g, rounding, edge_c
    cdef double r = time, last_r, last_g = INFINITY, terms = size_of_terms(geometry, work) + fabs(score.intercept)
    cdef Panel panel
    cdef int iteration
    evaluate_score(geometry, work, score, c, &a, &slope)
    g = loss.derivative(a, y)
    edge_c = c_of_edge(geometry, loss, work, score, a, c + time * g, y, &edge)
    for iteration in range(300 if work.origin == 0 else 3000):  # near a pole a panel may only halve c
        curvature = loss.curvature(a, y)
        decay = curvature * (slope + score.intercept_xSx)
        rounding = 4e-16 * max(fabs(a), terms) * curvature  # errors of g
        if not isfinite(g) or not isfinite(decay):
            return NAN
        move = g * elapsed(decay, time)
        if converged(geometry, loss, work, score, a, slope, c, move):
            return c + move
        if c == 0 and decay * time > 1e20:
            # L' is huge: begin with the implicit step of a rate s, which lies on the flow, at a time of at most s
            c = root(geometry, loss, work, score, 1.0, 1e-17 * time, y, 1e-17 * time * g)
            evaluate_score(geometry, work, score, c, &a, &slope)
            g = loss.derivative(a, y)
            continue
        last_r, r = r, time if fabs(time) < 4.0 * fabs(r) else copysign(4.0 * r, time)
        if fabs(last_g - g) < 1e-3 * fabs(g) * min(decay * fabs(last_r), 1.0):
            decay = 0.0  # the score is at the end of its range, and the slope consists of rounding errors
        if decay * fabs(r) > 8.0:
            r = copysign(8.0 / decay, r)
        while True:
            move = g * elapsed(decay, r)
            at_edge = time > 0 and fabs(move) >= fabs(edge_c - c)
            if at_edge:
                next_c, next_g, move = edge_c, edge.near, edge_c - c
                r = elapsing(decay, move / g)
                if fabs(move) <= 4e-16 * fabs(c):
                    panel.time = 0.0
                    break
            if fabs(g) <= rounding or fabs(move) <= 1e-16 * fabs(c) or \
                    (work.origin == 0 and fabs(r) <= 1e-30 * fabs(time)):  # near a pole the flow can be this fast
                return c  # the flow has stopped
            follow(geometry, loss, work, score, c, r, g, decay, y, &panel)
            if not at_edge:
                next_c = c + move
            if (panel.error <= 1e-11 * fabs(next_c) + rounding * fabs(r) or fabs(panel.time) <= 1e-14 * fabs(time)) \
                    and fabs(panel.time) <= 16.0 * fabs(time):
                evaluate_score(geometry, work, score, next_c, &next_a, &next_slope)
                if not at_edge:
                    next_g = loss.derivative(next_a, y)
                if next_g / panel.end > 0.5:  # otherwise there is a boundary layer that the nodes miss at the end
                    break
            r *= 0.25
        time -= panel.time
        if at_edge and time > 0:
            if not edge.near * edge.far > 0:
                return edge_c
            evaluate_score(geometry, work, score, edge_c, &next_a, &next_slope)
            next_a, next_g = beyond(&edge), edge.far
            edge_c = c_of_edge(geometry, loss, work, score, next_a, next_c + time * next_g, y, &edge)
        c, a, slope, last_g, g = next_c, next_a, next_slope, g, next_g
    return c  # only rounding errors around a fixed point take so many panels
