from onlinebregman._kernels.loop.atomic cimport AtomicLearner
from onlinebregman._kernels.loop.hedge cimport Hedge
from onlinebregman._kernels.losses.loss cimport Loss


cdef class ExpertLearner(AtomicLearner):
    cdef readonly Hedge hedge
    cdef readonly bint gradient    # do weights move by the gradient of the mixture's loss, not by the experts' losses?
    cdef double[::1] room          # for what a row costs:
    cdef double* v                 # the weights,
    cdef double* losses            # those of the experts,
    cdef double* costs             # their linear approximations, if weights move by them,
    cdef double* work              # and what else it takes

    cdef int count(self, const double* forecasts, double y, double weight) noexcept nogil
    cdef double compare(self, const double* forecasts, double y) noexcept nogil


cdef class MeanLearner(ExpertLearner):
    cdef readonly Loss loss


cdef class LogLearner(ExpertLearner):
    cdef readonly bint logarithms


cdef class BrierLearner(ExpertLearner):
    cdef readonly Py_ssize_t n_classes
