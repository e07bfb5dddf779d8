from onlinebregman._kernels.learners.mixer cimport Mixer
from onlinebregman._kernels.ops.robust cimport ob_robust

cdef enum Limits:             # what is clipped before it is learned
    NOTHING
    FORECASTS
    ERRORS


cdef class MeanMixer(Mixer):
    cdef int limits
    cdef ob_robust targets    # their scale; with ERRORS for forecasts
    cdef ob_robust errors     # the scale of those of the mixture
    cdef ob_robust held_targets, held_errors  # those at the start of a call of delayed rows
    cdef double lo            # range of the forecasts that count
    cdef double hi
    cdef double least, most   # of a row: forecasts between these are learned as they are,
    cdef double below, above  # and others as one of these

    cdef void look(self) noexcept nogil
    cdef void limit_errors(self, const double* scores, double y) noexcept nogil
    cdef bint some_sleep(self, const double* scores) noexcept nogil
    cdef bint absurd(self, double score) noexcept nogil
