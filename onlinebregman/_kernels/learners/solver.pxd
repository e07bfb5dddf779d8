from libc.math cimport INFINITY

from onlinebregman._kernels.geometries.geometry cimport HAS_POLES, LINEAR, Geometry, Workspace
from onlinebregman._kernels.losses.loss cimport Loss


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


cdef double size_of_score(Geometry geometry, Workspace* work, Score* score, double eta, double largest) noexcept nogil
cdef double implicit_step(Geometry geometry, Loss loss, Workspace* work, Score* score, double eta,
                          double y) noexcept nogil
cdef double line_step(Loss loss, double a, double q, double weight, double y) noexcept nogil
cdef double logistic_step(double start, double xSx, double eta, double y) noexcept nogil
cdef double logistic_step_from(double start, double xSx, double eta, double y, double slope,
                               double curvature) noexcept nogil
cdef double importance_step(Geometry geometry, Loss loss, Workspace* work, Score* score, double eta,
                            double y) noexcept nogil
