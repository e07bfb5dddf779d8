"""The scalar c of importance-invariant steps f(w') = f(w) - c x: the flow dc/ds = L'(a(c)), c(0) = 0, at time s = eta.

A row of weight h, at h times the rate, then has the effect of h rows of weight 1. Scores a(c), and how c is measured,
are those of `solver`.

N. Karampatziakis, J. Langford, "Online Importance Weight Aware Updates", UAI 2011.
"""

from libc.math cimport INFINITY, NAN, copysign, exp, expm1, fabs, isfinite, isinf, isnan, log1p

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace
from onlinebregman._kernels.learners.solver cimport (
    BESIDE, Score, beyond, converged, count_from, evaluate_score, reaches, root, size_of_terms, to_edge
)
from onlinebregman._kernels.losses.loss cimport Edge, Loss


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
