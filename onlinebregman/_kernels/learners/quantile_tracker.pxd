from onlinebregman._kernels.ops.fields cimport Undoable


cdef struct Errors:           # absolute errors so far
    double n
    double mean


cdef class QuantileTracker(Undoable):  # which learns the errors and quantiles
    cdef Errors errors
    cdef double[::1] quantiles  # of the errors, in units of their mean: one for each of the LEVELS

    cdef double[::1] radii      # predicted ones
    cdef bint held              # whether they stay as they are

    cdef void predict(self) noexcept nogil
    cdef void hold(self) noexcept nogil
    cdef void release(self) noexcept nogil
    cdef bint learn(self, double error) noexcept nogil
