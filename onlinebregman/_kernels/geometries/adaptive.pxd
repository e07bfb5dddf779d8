from libc.math cimport fabs, sqrt

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace, scratch
from onlinebregman._kernels.ops.robust cimport (
    ob_quantile, ob_quantile_unit, ob_robust, ob_robust_known, ob_robust_limit
)
from onlinebregman._kernels.ops.row cimport ob_gather, ob_scatter


cdef class AdaptiveGeometry(Geometry):
    cdef bint tracking                  # whether the last block is the sum of c x, for the regret certificate
    cdef int blocks                     # number of blocks of the state without that one
    cdef bint prior                     # whether h = (1 + g) / r^2, and h w is kept where the largest |x| grows
    cdef readonly tuple box             # lower and upper bounds that the weights are clipped to, or None
    cdef double[::1] low, high          # the same, as memory views
    cdef double intercept_sum           # the sum that the intercept's h is computed from
    cdef double pulled, gained          # sums of c and of c (w.x) - c^2 x'Sx / 2, for the regret certificate

    cdef void arrange(self, Py_ssize_t per_feature) noexcept
    cdef double confined(self, Py_ssize_t j, double w) noexcept nogil
    cdef double reciprocal(self, Py_ssize_t j) noexcept nogil
    cdef void flow_row(self, Workspace* work, const double* t, double l1, double l2) noexcept nogil
    cdef double flow_all(self, double l1, double l2, bint tracked) noexcept nogil
    cdef double update_metric(self, Workspace* work, double s, double weight, bint intercept, double* slope,
                              double* intercept_xSx) noexcept nogil


cdef inline double* block_of(AdaptiveGeometry geometry, Workspace* work, int number, int place) noexcept nogil:
    """The row's values of a block: the block itself, or gathered into a working vector (sparse)."""
    cdef double* source = &geometry.weights[number * geometry.n_features]
    if work.row.index == NULL:
        return source
    ob_gather(scratch(work, place), source, work.row.index, work.row.n)
    return scratch(work, place)


cdef inline void store_block(AdaptiveGeometry geometry, Workspace* work, int number, double* values) noexcept nogil:
    if work.row.index != NULL:
        ob_scatter(&geometry.weights[number * geometry.n_features], values, work.row.index, work.row.n)


cdef class NormalisedGeometry(AdaptiveGeometry):
    cdef readonly bint located          # whether scores have the units of the target
    cdef readonly int by_deviation      # by which deviation of the targets the rate is
    cdef double counted, of_class       # weight of the rows, and of those of the class
    cdef double target_weight, target_mean, target_spread  # of the targets, and their sum of squared deviations
    cdef ob_robust targets              # their scale
    cdef ob_quantile quantile
    cdef double update_largest(self, Workspace* work) noexcept nogil


cdef inline double unit_of_steps(NormalisedGeometry self, double g, double a, double y, double weight) noexcept nogil:
    """The standard deviation of the targets so far, y included, see `by_deviation`; |y| while all of them are equal."""
    cdef double learned = ob_robust_limit(&self.targets, y) if self.by_deviation >= 2 else y
    cdef double residual = learned - self.target_mean, unit
    self.target_weight += weight
    self.target_mean += residual * (weight / self.target_weight)
    self.target_spread += weight * residual * (learned - self.target_mean)
    unit = sqrt(self.target_spread / self.target_weight) if self.target_spread > 0 else fabs(learned)
    if ob_robust_known(&self.targets):
        unit = min(unit, 2.0 * self.targets.deviation)
    return unit if self.by_deviation < 3 else ob_quantile_unit(&self.quantile, g, fabs(a - y), unit)


cdef class DiagonalNewtonGeometry(NormalisedGeometry):
    cdef readonly double curvature
    cdef public bint of_classes        # whether k is that of the share of a class so far
    cdef readonly bint flat            # whether the loss is 0 on an interval, where rows have no curvature
