from onlinebregman._kernels.ops.state cimport Undoable


cdef struct Errors:           # absolute errors so far
    double n
    double memory             # about how many of the last ones the quantiles are of
    double unit               # their mean, where outliers count little
    double drift              # how much more quantiles than expected the last ones exceeded


cdef class QuantileTracker(Undoable):  # which learns the errors, the quantiles and their misses
    cdef Errors errors
    cdef double[::1] quantiles  # ln of those of the errors, in units: one for each of the LEVELS
    cdef double[::1] excess     # misses beyond the expected ones
    cdef double[::1] radii      # ln of the predicted ones
    cdef bint held              # whether they stay as they are

    cdef void predict(self, double* radii, double most) noexcept nogil
    cdef bint learn(self, double error) noexcept nogil
