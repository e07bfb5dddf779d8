from onlinebregman._kernels.learners.stacked_mixers cimport CentredMixer


cdef struct TargetTotals:           # of the targets so far, as they are learned
    double rows
    double mean
    double spread             # sum (weight y)^2 / (sum weight y)^2
    double largest
    double information        # sum of the curvatures of the loss at the predictions, by which the shift moves


cdef class LinkedMixer(CentredMixer):
    cdef bint limited         # whether absurd targets are
    cdef TargetTotals totals

    cdef bint forget_absurd(self) noexcept nogil
    cdef void recalibrate(self, double mixed, double weight) noexcept nogil
