from onlinebregman._kernels.learners.second_order cimport SecondOrderLearner
from onlinebregman._kernels.ops.softmax cimport ob_softmax


cdef class SoftmaxLearner(SecondOrderLearner):
    cdef readonly Py_ssize_t n_classes
    cdef Py_ssize_t n_lanes   # the number of scores, padded to whole registers
    cdef bint halved          # whether two classes share one row of weights, w_1 - w_0

    cdef void open_row(self, ob_softmax* p, double* a) noexcept nogil
