from onlinebregman._kernels.learners.atomic cimport AtomicLearner


cdef class Ensemble(AtomicLearner):
    cdef readonly tuple learners
    cdef Py_ssize_t work_per_row  # numbers read or written to learn a row, as a call found it
    cdef tuple changing       # what a call changes: the learners, and what learns from their scores
    cdef void* block_rows     # the Rows of this call

    cdef int change(self, tuple learners) except -1
