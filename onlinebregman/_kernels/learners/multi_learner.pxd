from onlinebregman._kernels.learners.lockstep cimport Lockstep
from onlinebregman._kernels.learners.ensemble cimport Ensemble
from onlinebregman._kernels.learners.learner cimport Learner


cdef class MultiLearner(Ensemble):
    cdef bint separate        # whether each learner has its own target
    cdef Py_ssize_t n
    cdef void** members
    cdef Lockstep lockstep      # the learners, if all of them can learn in lockstep

    cdef int share_map(self) except -1
    cdef Learner newcomer(self, Learner prior)
