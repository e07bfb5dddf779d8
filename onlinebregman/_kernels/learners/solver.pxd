from libc.math cimport INFINITY, fabs, nextafter

from onlinebregman._kernels.geometries.geometry cimport HAS_POLES, LINEAR, Geometry, Workspace
from onlinebregman._kernels.losses.loss cimport Edge, Loss


cdef struct Score:            # a row's score a(c) = w(c).x + intercept - intercept_xSx c
    double intercept
    double intercept_xSx      # the square of the intercept's feature if it moves, too, else 0
    double a                  # the score at c = 0
    double xSx                # x'Sx at c = 0


cdef inline void find_domain(Geometry geometry, Workspace* work, Score* score, double most, double* lo,
                             double* hi) noexcept nogil:
    """An open interval of c whose ends are those of the domain, unless both are at least twice as far as `most`.

    A divergence with poles is a barrier, whose domain contains Dikin's ellipsoid, c^2 x'Sx < 1.
    """
    if geometry.traits & HAS_POLES and work.origin == 0 and score.xSx > 1e-280 and most * most * score.xSx <= 0.25:
        lo[0], hi[0] = -INFINITY, INFINITY
    else:
        geometry.domain(work, lo, hi)


cdef inline void evaluate_score(Geometry geometry, Workspace* work, Score* score, double c, double* a,
                                double* slope) noexcept nogil:
    """a(c), and x'Sx there."""
    if geometry.traits & LINEAR:
        slope[0] = score.xSx
        a[0] = score.a - c * (slope[0] + score.intercept_xSx)
    else:
        geometry.evaluate(work, c, a, slope)
        a[0] += score.intercept - score.intercept_xSx * (work.origin + c)


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


cdef inline bint count_from(Geometry geometry, Workspace* work, double end) noexcept nogil:
    """If the geometry has poles, measure c from this end of its domain from now on; returns whether it does."""
    if geometry.traits & HAS_POLES:
        work.origin = end
    return geometry.traits & HAS_POLES != 0


cdef inline double beyond(Edge* edge) noexcept nogil:
    """The first score behind an edge."""
    return nextafter(edge.score, -INFINITY if edge.near > 0 else INFINITY)


cdef double BESIDE
cdef double root(Geometry geometry, Loss loss, Workspace* work, Score* score, double keep, double eta, double y,
                 double bound) noexcept nogil
cdef bint reaches(Geometry geometry, Workspace* work, Score* score, double c, double edge) noexcept nogil
cdef double to_edge(Geometry geometry, Workspace* work, Score* score, double edge, double bound) noexcept nogil
cdef double size_of_terms(Geometry geometry, Workspace* work) noexcept nogil
cdef double size_of_score(Geometry geometry, Workspace* work, Score* score, double eta, double largest) noexcept nogil
cdef double implicit_step(Geometry geometry, Loss loss, Workspace* work, Score* score, double eta,
                          double y) noexcept nogil
cdef double line_step(Loss loss, double a, double q, double weight, double y) noexcept nogil
cdef double logistic_step(double start, double xSx, double eta, double y) noexcept nogil
cdef double logistic_step_from(double start, double xSx, double eta, double y, double slope,
                               double curvature) noexcept nogil
