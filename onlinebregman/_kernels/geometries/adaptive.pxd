from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace


cdef class AdaptiveGeometry(Geometry):
    cdef bint tracking                  # whether the last block is the sum of c x, for the regret certificate
    cdef int blocks                     # number of blocks of the state without that one
    cdef bint prior                     # whether h = (1 + g) / r^2, and h w is kept where the largest |x| grows
    cdef readonly tuple box             # lower and upper bounds that the weights are clipped to, or None
    cdef double[::1] low, high          # the same, as memory views

    cdef double reciprocal(self, Py_ssize_t j) noexcept nogil
    cdef double* block(self, Workspace* work, int number, int place) noexcept nogil
    cdef void put_back(self, Workspace* work, int number, double* values) noexcept nogil
    cdef double take_in(self, Workspace* work, double s, double weight, bint intercept, double* slope,
                        double* bias) noexcept nogil


cdef inline double* block_of(AdaptiveGeometry geometry, Workspace* work, int number, int place) noexcept nogil:
    """`block`, without a call where the row is dense."""
    if work.row.index == NULL:
        return &geometry.weights[number * geometry.n_features]
    return geometry.block(work, number, place)


cdef inline void keep_block(AdaptiveGeometry geometry, Workspace* work, int number, double* values) noexcept nogil:
    """`put_back`, without one."""
    if work.row.index != NULL:
        geometry.put_back(work, number, values)


cdef class AdaGradGeometry(AdaptiveGeometry):
    pass


cdef class NormalisedGeometry(AdaptiveGeometry):
    cdef readonly bint located          # have scores the units of the target?
    cdef readonly bint by_deviation     # does the rate go with the targets' deviation?
    cdef double reach(self, Workspace* work) noexcept nogil


cdef class NormalisedAdaGradGeometry(NormalisedGeometry):
    pass


cdef class DiagonalNewtonGeometry(NormalisedGeometry):
    cdef readonly double curvature
