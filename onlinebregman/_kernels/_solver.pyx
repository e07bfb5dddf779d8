"""The scalar c of a step f(w') = f(w) - c x that looks beyond the point it starts from.

Along w(c) the row's score a(c) = w(c).x + intercept - bias c falls at the rate x'Sx + bias. The implicit step is the
root of c = eta L'(a(c)), the importance-invariant one the time eta of the flow dc/ds = L'(a(c)).
"""

from libc.math cimport INFINITY, NAN, exp, expm1, fabs, isfinite

from onlinebregman._kernels._geometry cimport Geometry, Row
from onlinebregman._kernels._loss cimport BENDS, JUMPS, SMOOTH, Loss, Piece


cdef inline void look(Geometry geometry, Row* row, Score* score, double c, double* a, double* slope) noexcept nogil:
    """a(c), and x'Sx there."""
    if geometry.linear:
        slope[0] = score.slope
        a[0] = score.a - c * (slope[0] + score.bias)
    else:
        geometry.peek(row, c, a, slope)
        a[0] += score.intercept - score.bias * c


cdef double root(Geometry geometry, Loss loss, Row* row, Score* score, double keep, double eta, double y,
                 double bound) noexcept nogil:
    """The c between 0 and `bound` with keep c = eta (h(a(c)) - y), by safeguarded Newton.

    psi(c) = keep c + eta (y - h(a(c))) increases; keep is 1, or 0 to bring the score to h(a) = y. The geometry's domain
    cuts the bracket where it ends before `bound`.
    """
    cdef double a = score.a, slope = score.slope
    cdef double c = 0.0, lo, hi, low_end, high_end, psi, rise, step, error, sharpness
    cdef double last, before  # sizes of the last two steps
    cdef int iteration
    psi = eta * (y - loss.link(a))
    if psi == 0:
        return 0.0
    step = -psi / (keep + eta * loss.link_derivative(a) * (slope + score.bias))
    if geometry.linear and loss.linear:
        return step
    lo, hi = min(bound, 0.0), max(bound, 0.0)
    geometry.domain(row, &low_end, &high_end)
    lo, hi = max(lo, low_end), min(hi, high_end)
    last = before = hi - lo
    for iteration in range(200):
        # a Newton step leaves an error of half psi''/psi' times its square, and geometry and loss bound that ratio
        sharpness = geometry.sharpness(row, slope)
        if slope + score.bias > 0:
            sharpness += loss.sharpness(a) * (slope + score.bias)
        error = sharpness * fabs(step)
        if error <= 0.1 and error * fabs(step) <= 1e-15 * fabs(c + step):
            return c + step
        if sharpness == INFINITY and fabs(step) <= 1e-10 * fabs(c):  # no bound is known: after a step this small
            return c + step
        # halve the bracket where Newton leaves it, overflows, or creeps (down an exponential its steps hardly shrink)
        if not lo < c + step < hi or not fabs(step) <= 0.5 * before:
            step = lo + 0.5 * (hi - lo) - c
            if not lo < c + step < hi:
                return c + step
        before, last = last, fabs(step)
        c += step
        look(geometry, row, score, c, &a, &slope)
        psi = keep * c + eta * (y - loss.link(a))
        if psi > 0:
            hi = c
        else:
            lo = c
        rise = keep + eta * loss.link_derivative(a) * (slope + score.bias)
        step = -psi / rise if isfinite(rise) and isfinite(psi) else NAN
    return c


cdef inline bint passes(double a, double start, double edge) noexcept nogil:
    """Has the score gone from `start` beyond the edge?"""
    return a < edge if start > edge else a > edge


cdef bint reaches(Geometry geometry, Row* row, Score* score, double c, double edge) noexcept nogil:
    """Does the score pass the edge on the way to c? At the end of the geometry's domain it passes every edge."""
    cdef double lo, hi, a, slope
    geometry.domain(row, &lo, &hi)
    if not lo < c < hi:
        return True
    look(geometry, row, score, c, &a, &slope)
    return passes(a, score.a, edge)


cdef double implicit_step(Geometry geometry, Loss loss, Row* row, Score* score, double eta, double y) noexcept nogil:
    """The root of c = eta L'(a(c))."""
    cdef double edge = 0.0
    cdef double c = eta * loss.derivative(score.a, y)
    cdef Piece piece
    if c == 0:
        return 0.0
    piece = loss.piece(score.a, y, &edge)
    if piece == SMOOTH:
        if loss.inner is None:
            return root(geometry, loss, row, score, 1.0, eta, y, c)
        return root(geometry, loss.inner, row, score, 1.0, eta, y, c)
    if not reaches(geometry, row, score, c, edge):
        return c
    if piece == BENDS:
        return root(geometry, loss.inner, row, score, 1.0, eta, y, c)
    return root(geometry, loss.inner, row, score, 0.0, 1.0, edge, c)


cdef double importance_step(Geometry geometry, Loss loss, Row* row, Score* score, double eta, double y) noexcept nogil:
    """c(eta) of the flow dc/ds = L'(a(c)), c(0) = 0."""
    cdef double edge = 0.0, speed = loss.derivative(score.a, y), c
    cdef Piece piece
    if speed == 0:
        return 0.0
    piece = loss.piece(score.a, y, &edge)
    if piece == SMOOTH:
        if loss.inner is None:
            return flow(geometry, loss, row, score, 0.0, eta, y)
        return flow(geometry, loss.inner, row, score, 0.0, eta, y)
    c = eta * speed
    if not reaches(geometry, row, score, c, edge):
        return c
    c = root(geometry, loss.inner, row, score, 0.0, 1.0, edge, c)
    if piece == JUMPS:
        return c  # the derivative changes its sign at the edge, or ends: the flow rests there
    return flow(geometry, loss.inner, row, score, c, eta - c / speed, y)


# Gauss-Kronrod, 7 and 15 points on [-1, 1]: nodes from the outermost in, their weights, and the weights of every other.
cdef double[8] NODES = [
    0.991455371120812639206854697526329, 0.949107912342758524526189684047851, 0.864864423359769072789712788640926,
    0.741531185599394439863864773280788, 0.586087235467691130294144238258730, 0.405845151377397166906606412076961,
    0.207784955007898467600689403773245, 0.0,
]
cdef double[8] KRONROD = [
    0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518,
    0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
    0.204432940075298892414161999234649, 0.209482141084727828012999174891714,
]
cdef double[4] GAUSS = [
    0.129484966168869693270611432679082, 0.279705391489276667901467771423780, 0.381830050505118944950369775488975,
    0.417959183673469387755102040816327,
]


cdef double flow(Geometry geometry, Loss loss, Row* row, Score* score, double c, double time, double y) noexcept nogil:
    """Where the flow dc/ds = g(c), g(c) = h(a(c)) - y, is after `time`, from c on.

    In closed form for linear geometry and loss. Otherwise that closed form of the linearised flow, c(r) at its own time
    r, is a change of variables in which the true time ds/dr = c'(r) / g(c(r)) is nearly 1: it is integrated over panels
    until the time is used up, or the flow is at rest to rounding.
    """
    cdef double a, slope, g, decay, r, s, gap, lo, hi
    cdef int panel
    geometry.domain(row, &lo, &hi)
    r = time
    for panel in range(1000):
        look(geometry, row, score, c, &a, &slope)
        g = loss.link(a) - y
        decay = loss.link_derivative(a) * (slope + score.bias)
        if not isfinite(g) or not isfinite(decay) or not isfinite(time):
            return NAN
        if fabs(g) <= 4e-16 * (fabs(loss.link(a)) + fabs(y)) or fabs(time * g) <= 1e-16 * fabs(c):
            return c
        if geometry.linear and loss.linear:
            return c + g * elapsed(decay, time)
        r = time if panel == 0 or fabs(time) < 2.0 * fabs(r) else (2.0 * r if time * r > 0 else -2.0 * r)
        if decay * fabs(r) > 8.0:
            r = 8.0 / decay if r > 0 else -8.0 / decay
        while True:
            s = panel_time(geometry, loss, row, score, c, r, g, decay, y, lo, hi, &gap)
            if gap <= 1e-11 * fabs(s) or fabs(r) <= 1e-12 * fabs(time):
                break
            r *= 0.25
        c += g * elapsed(decay, r)
        time -= s  # NaN where the flow cannot be followed; it then is the answer
    return c if isfinite(time) else NAN


cdef inline double elapsed(double decay, double r) noexcept nogil:
    """(1 - exp(-decay r)) / decay."""
    return r if decay == 0 else -expm1(-decay * r) / decay


cdef double panel_time(Geometry geometry, Loss loss, Row* row, Score* score, double start, double r, double g,
                       double decay, double y, double lo, double hi, double* gap) noexcept nogil:
    """The flow's time over a panel of length r of the linearised time; `gap` is how far two quadratures are apart."""
    cdef double total = 0.0, coarse = 0.0, node, c, a, slope, speed, ratio
    cdef int i, side
    gap[0] = INFINITY
    for i in range(8):
        for side in range(2 if i < 7 else 1):
            node = 0.5 * r * (1.0 + (NODES[i] if side else -NODES[i]))
            c = start + g * elapsed(decay, node)
            if not lo < c < hi:
                return NAN
            look(geometry, row, score, c, &a, &slope)
            speed = loss.link(a) - y
            ratio = g * exp(-decay * node) / speed
            if not ratio > 0 or not isfinite(ratio):
                return NAN
            total += KRONROD[i] * ratio
            if i % 2:
                coarse += GAUSS[i // 2] * ratio
    total *= 0.5 * r
    gap[0] = fabs(total - 0.5 * r * coarse)
    return total
