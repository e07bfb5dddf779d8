from onlinebregman._kernels.learners.mixer cimport Mixer
from onlinebregman._kernels.learners.stack cimport Stack
from onlinebregman._kernels.ops.robust cimport ob_quantile, ob_robust


cdef struct TargetStats:      # statistics of the targets so far
    double weight
    double origin             # the scale's; the next three are distances from it
    double shift              # what is added to scores: the mean of the targets
    double lo, hi             # the range of predictions
    double offset             # what is added to the prediction of a quantile
    double excess, usual      # of targets above, lately; the offset as that was 0, in deviations from mean residuals
    ob_robust residuals       # without the offset
    ob_quantile quantile
    double first_loss         # of predicting 0, rather than the first target, before any was known


cdef class CentredMixer(Mixer):
    cdef double quantile      # that of the loss; 0: it is another one
    cdef TargetStats stats    # of targets as they are learned
    cdef TargetStats* known   # those with which the next row is predicted: the same, or those at the start of the call
    cdef TargetStats held
    cdef ob_robust scale      # of the targets
    cdef ob_robust held_scale
    cdef double target        # of a row, as it is learned: a distance, like `stats`

    cdef Py_ssize_t stage_length(self) noexcept nogil
    cdef double unit_of(self, Stack stack) noexcept nogil
    cdef void move_offset(self, double slope, double residual, double weight) noexcept nogil
    cdef bint squeeze(self, double* p, Py_ssize_t n, double shift) noexcept nogil
    cdef double cost_of(self, double p) noexcept nogil
    cdef double predict_both(self, const double* scores, const double* v, double* p, double* m) noexcept nogil
    cdef double predict_stage(self, Stack stack, double m, double unit, double* x) noexcept nogil
    cdef double remember(self, double mixed, double* x) noexcept nogil
    cdef bint learn_stack(self, double m, double* mixed, double y, double shift, double weight) noexcept nogil
    cdef bint count_stage(self, Stack stack, double* x, double m, double* mixed, double y, double shift,
                          double weight) noexcept nogil
    cdef bint learn_combinations(self, double m, double unit, double weight) noexcept nogil
    cdef bint learn_stage(self, Stack stack, double* x, double m, double unit, double weight) noexcept nogil
    cdef bint learn_memory(self, double m, double mixed, double y, double shift, double weight) noexcept nogil
