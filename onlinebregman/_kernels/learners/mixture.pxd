from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.mixer cimport Mixer
from onlinebregman._kernels.learners.team cimport Team
from onlinebregman._kernels.learners.transaction cimport Validated
from onlinebregman._kernels.rows.rows cimport Row, Rows
from onlinebregman._kernels.rows.trees cimport Trees


cdef class MixtureLearner(Team):
    cdef readonly Mixer mixer
    cdef readonly tuple targets_by_class
    cdef readonly tuple links
    cdef Trees trees          # that grow with the stream, or None
    cdef list experts         # the estimators with these learners, if there are links
    cdef Validated bound      # see `set_experts`
    cdef tuple bound_experts
    cdef double[::1] targets  # of the rows of the chunk
    cdef double[:, ::1] by_label  # of several labels: the targets of each learner that has its own
    cdef bint several         # whether targets are indicators of several labels, if learners have their own
    cdef double[::1] predicted  # of rows that were predicted together: the scores of all of them, before the call
    cdef Py_ssize_t at        # the first of those of the next row
    cdef double[::1] forecasts  # to which links map the scores of a row

    cdef int link(self) except -1
    cdef int bind(self, Py_ssize_t length) except -1
    cdef int judge(self, const Row* row, Workspace* work, const double* y, double weight) noexcept nogil
    cdef Py_ssize_t score(self, Rows rows, const Row* fetched, Workspace* work, double* scores) noexcept nogil
    cdef void forecast(self, const double* scores, double* forecasts) noexcept nogil
    cdef int mix_row(self, const double* scores, const double* y, double weight) noexcept nogil
