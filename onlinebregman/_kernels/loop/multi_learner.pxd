from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.loop.atomic cimport Ensemble
from onlinebregman._kernels.rows.rows cimport Row


cdef struct Member:           # what the loop over rows needs to know of a learner
    void* learner
    double* weights


cdef class MultiLearner(Ensemble):
    cdef bint summed
    cdef bint separate        # is there a target for each learner, or one for all?
    cdef Py_ssize_t n
    cdef Member* members
    cdef double* dots         # of the row, each learner's w.x,
    cdef double* steps        # and its step c
    cdef bint descend         # do all learn by gradient descent on the squared loss?

    cdef void bind(self) noexcept
    cdef int descend_together(self, const Row* row, const double* y, double weight, double* scores) noexcept nogil
