from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace


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
