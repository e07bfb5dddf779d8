from onlinebregman._kernels.learners.atomic cimport AtomicLearner
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.team cimport Team


cdef class MultiLearner(Team):
    cdef bint separate        # whether each learner has its own target

    cdef int share_map(self) except -1
    cdef Learner newcomer(self, Learner prior)


cdef AtomicLearner sole_learner(AtomicLearner learner)
cdef bint learns_chunks(AtomicLearner learner)
