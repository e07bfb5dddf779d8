cdef extern from "ops/robust.h":
    enum:
        OB_FIRST
    ctypedef struct ob_robust:
        double n                  # numbers so far
        double moves              # those that differ from the usual one
        double origin             # of distances, which all of the following are
        double mean
        double deviation
        double lo                 # the interval of the last number: beyond it, the nearest of these is learned
        double hi

    bint ob_robust_known(const ob_robust* s) noexcept nogil
    double ob_robust_clip(const ob_robust* s, double distance) noexcept nogil
    void ob_robust_look(ob_robust* s) noexcept nogil
    double ob_robust_count(ob_robust* s, double y) noexcept nogil
    double ob_robust_limit(ob_robust* s, double y) noexcept nogil

    ctypedef struct ob_quantile:
        double depth, slope, trend

    double ob_quantile_unit(ob_quantile* s, double slope, double distance, double most) noexcept nogil
