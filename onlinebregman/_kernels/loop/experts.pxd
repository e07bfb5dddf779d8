from onlinebregman._kernels.loop.atomic cimport AtomicLearner
from onlinebregman._kernels.loop.hedge cimport Hedge
from onlinebregman._kernels.losses.loss cimport Loss


cdef class ExpertLearner(AtomicLearner):
    cdef readonly Hedge hedge
    cdef readonly bint gradient    # whether costs are the gradient of the mixture's loss, not the experts' losses
    cdef double[::1] buffer        # of which the following are parts
    cdef double* v                 # weights of the experts
    cdef double* losses            # losses of the experts
    cdef double* costs             # their linear approximations, if `gradient`
    cdef double* work              # working memory of `log_loss`

    cdef int count(self, const double* forecasts, double y, double weight) noexcept nogil
    cdef double compare(self, const double* forecasts, double y) noexcept nogil


cdef class MeanLearner(ExpertLearner):
    cdef readonly Loss loss


cdef class AggregatingLearner(ExpertLearner):
    cdef readonly double lo, hi    # the range of targets

    cdef double forecast(self, const double* forecasts, const double* v, double* work) noexcept nogil


cdef class LogLearner(ExpertLearner):
    cdef readonly bint logarithms


cdef class BrierLearner(ExpertLearner):
    cdef readonly Py_ssize_t n_classes
