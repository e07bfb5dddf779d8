from onlinebregman._kernels.ops.fields cimport Fields


cdef struct Errors:           # absolute errors so far
    double n
    double mean


cdef class QuantileTracker:
    cdef Fields learned       # the following
    cdef Errors errors
    cdef double[::1] quantiles  # of the errors, in units of their mean: one for each of the LEVELS

    cdef bint learn(self, double error) noexcept nogil
    cdef int save(self) except -1
    cdef void restore(self) noexcept
