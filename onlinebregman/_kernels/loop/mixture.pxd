from onlinebregman._kernels.loop.abreast cimport Abreast
from onlinebregman._kernels.loop.atomic cimport Ensemble
from onlinebregman._kernels.loop.mixer cimport Mixer
from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef struct Part:             # what the loop over rows needs to know of a learner
    void* learner
    const double* book        # its targets for each class, or NULL: the row's target
    Py_ssize_t n_targets
    Py_ssize_t n_scores
    Py_ssize_t start          # where they go


cdef class MixtureLearner(Ensemble):
    cdef readonly Mixer mixer
    cdef readonly tuple books
    cdef readonly Py_ssize_t refusing  # the learner that refused a row of the last call; -1: none, the mixer did
    cdef Py_ssize_t n
    cdef Py_ssize_t n_labels  # in the shortest of the books
    cdef Part* parts
    cdef Abreast abreast      # those that learn abreast in this call,
    cdef Py_ssize_t* single   # and the others
    cdef Py_ssize_t n_single
    cdef double[::1] scores   # of the row that is learned

    cdef object predict_rows(self, Rows rows)
    cdef int bind(self, Py_ssize_t length) except -1
    cdef int learn_abreast(self, const Row* row, double y, double target, double weight) noexcept nogil
