from onlinebregman._kernels.learners.atomic cimport AtomicLearner


cdef class Ensemble(AtomicLearner):
    cdef readonly tuple learners
    cdef tuple changing       # what a call changes: the learners, and what learns from their scores
