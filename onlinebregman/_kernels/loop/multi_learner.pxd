from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.loop.atomic cimport Ensemble
from onlinebregman._kernels.loop.descent cimport Descent
from onlinebregman._kernels.rows.rows cimport Row


cdef class MultiLearner(Ensemble):
    cdef bint summed
    cdef bint separate        # is there a target for each learner, or one for all?
    cdef Py_ssize_t n
    cdef void** members
    cdef Descent* descents    # of learners that descend
    cdef double* room         # for their steps
    cdef bint descend         # do all?

    cdef void bind(self) noexcept
