from onlinebregman._kernels.loop.calibration cimport Calibration
from onlinebregman._kernels.loop.hedge cimport Hedge
from onlinebregman._kernels.loop.stack cimport Stack
from onlinebregman._kernels.loop.targets cimport TargetStats
from onlinebregman._kernels.losses.loss cimport Loss


cdef class Mixer:
    cdef readonly Hedge hedge
    cdef readonly Stack stack           # of combinations in addition to the mixture, or None
    cdef readonly Py_ssize_t n_scores   # of all learners together
    cdef readonly Py_ssize_t n_outputs  # of the mixture
    cdef double[::1] buffer             # for `learn`

    cdef Py_ssize_t buffer_size(self) noexcept nogil
    cdef void find_targets(self, const double* y, const double* weight, Py_ssize_t n, double* targets) noexcept nogil
    cdef int learn(self, double* scores, double y, double weight) noexcept nogil
    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil
    cdef void save(self, Py_ssize_t n_rows) noexcept
    cdef void restore(self) noexcept


cdef class Unmixed(Mixer):
    pass


cdef class ScoreMixer(Mixer):
    cdef readonly Loss loss
    cdef readonly bint centred
    cdef TargetStats stats, stats_before

    cdef double prediction_of(self, double score) noexcept nogil
    cdef double mean(self, const double* scores, double* v, double* p) noexcept nogil
    cdef double combine(self, double m, const double* p, double scale, double* u, double* q, double* x,
                        double* buffer) noexcept nogil


cdef struct Expert:
    int kind                  # the `Link`
    Calibration scale


cdef class ProbabilityMixer(Mixer):
    cdef readonly Py_ssize_t n_classes
    cdef Py_ssize_t width     # scores of an expert
    cdef readonly tuple links
    cdef Expert* experts
    cdef Expert* experts_before

    cdef void mixed(self, const double* scores, const double* v, double* p, double* buffer) noexcept nogil
    cdef bint learn_stack(self, const double* scores, Py_ssize_t y, double weight, double lost,
                          double* buffer) noexcept nogil
    cdef void differences(self, const double* scores, const double* p, double* logits, double* x) noexcept nogil
    cdef void combine(self, Py_ssize_t j, const double* logits, const double* x, double* coef,
                      double* out) noexcept nogil
    cdef void scale(self, const double* scores, double* scaled) noexcept nogil
