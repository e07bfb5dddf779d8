from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block
from onlinebregman._kernels.learners.ensemble cimport Ensemble
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.lockstep cimport MAX_PARTS, Lockstep
from onlinebregman._kernels.learners.thread_pool cimport ThreadPool
from onlinebregman._kernels.rows.chunk cimport Chunk
from onlinebregman._kernels.rows.rows cimport Rows


cdef struct Part:             # how learners that one thread learns a chunk with, in lockstep, have ended
    int status                # of the first row that one of them refuses
    Py_ssize_t row, refusing  # this row of the chunk, and the learner


cdef class MultiLearner(Ensemble):
    cdef public object n_jobs  # number of threads, as the parameter was given
    cdef readonly tuple locksteps  # of the parts
    cdef void* groups[MAX_PARTS]  # the same
    cdef Part[MAX_PARTS] parts
    cdef Py_ssize_t n_parts   # 0: all learn in this thread
    cdef ThreadPool thread_pool
    cdef Chunk chunk          # of rows that the parts learn
    cdef const Block* block
    cdef bint separate        # whether each learner has its own target
    cdef Py_ssize_t n
    cdef void** members
    cdef Lockstep lockstep      # the learners, if all of them can learn in lockstep

    cdef int share_map(self) except -1
    cdef Learner newcomer(self, Learner prior)
    cdef int divide(self, Rows rows, Py_ssize_t length) except -1
    cdef int learn_in_parts(self, Rows rows, Block* block) noexcept nogil
    cdef void learn_part(self, Part* part, Lockstep lockstep) noexcept nogil


cdef AtomicLearner sole_learner(AtomicLearner learner)
cdef bint learns_chunks(AtomicLearner learner)
