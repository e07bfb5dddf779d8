from onlinebregman._kernels.geometries.geometry cimport Workspace, Workspaces
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block
from onlinebregman._kernels.learners.links cimport Link
from onlinebregman._kernels.learners.lockstep cimport MAX_PARTS, Lockstep
from onlinebregman._kernels.learners.thread_pool cimport ThreadPool
from onlinebregman._kernels.rows.chunk cimport Chunk
from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef struct Part:             # a learner, as the loop over rows uses it
    void* learner
    const double* targets_by_class  # shape (n_classes, n_targets); NULL: it learns the target itself
    Py_ssize_t n_targets
    Py_ssize_t n_scores
    Py_ssize_t start          # index of its first score among those of all learners
    Py_ssize_t image          # which image of a row it learns
    bint chunkwise            # whether it learns a whole chunk at once
    Link link                 # of an expert
    bint scored_before        # whether an expert is scored in a separate pass before it learns the row


cdef struct Outcome:          # result of a task
    int status
    Py_ssize_t row            # index in the chunk of the row that could not be learned
    Py_ssize_t refusing       # index of the learner that refused it
    Py_ssize_t turn           # position of that learner in the order within a row


cdef inline bint comes_before(const Outcome* a, const Outcome* b) noexcept nogil:
    return a.row < b.row or (a.row == b.row and a.turn < b.turn)


cdef class Ensemble(AtomicLearner):
    cdef readonly tuple learners
    cdef Py_ssize_t work_per_row  # numbers read or written to learn a row, as a call found it
    cdef tuple changing       # what a call changes: the learners, and what learns from their scores
    cdef void* block_rows     # the Rows of this call

    cdef int change(self, tuple learners) except -1


cdef class Team(Ensemble):
    cdef readonly Py_ssize_t refusing  # the learner that refused a row of the last call; -1: what combines scores did
    cdef Py_ssize_t n
    cdef Py_ssize_t n_labels  # smallest number of classes of targets by class
    cdef Part* parts
    cdef tuple together       # learners of the first image without a matrix, which may learn in lockstep; None: others
    cdef Lockstep lockstep      # learners that learn each row together in this call
    cdef readonly tuple locksteps  # the same learners divided among threads, if these are all
    cdef void* groups[MAX_PARTS]  # the same, or the first one
    cdef Py_ssize_t n_groups
    cdef Py_ssize_t least_divided  # work of a row whose learners in lockstep are divided: more than this
    cdef Py_ssize_t* rowwise  # other learners that learn row by row
    cdef Py_ssize_t n_rowwise
    cdef Py_ssize_t* by_chunks  # learners that learn a whole chunk each
    cdef Py_ssize_t n_by_chunks
    cdef Outcome* outcomes    # of each group, the first with the second kind, then of each learner of the third
    cdef Chunk chunk
    cdef double[::1] chunk_scores  # of each learner, before it learned the row
    cdef Py_ssize_t width     # their number in a row
    cdef public object n_jobs  # number of threads, as the parameter was given
    cdef ThreadPool thread_pool
    cdef Workspaces works     # of the other threads
    cdef Block* block         # of this call

    cdef int divide(self, Rows rows, Py_ssize_t length) except -1
    cdef int learn_chunks(self, Rows rows, Block* block) noexcept nogil
    cdef int add_row(self, const Row* row, const double* y, double weight) noexcept nogil
    cdef bint unknown(self, const double* y) noexcept nogil
    cdef int learn_chunk(self) noexcept nogil
    cdef void find_targets(self) noexcept nogil
    cdef const double* targets_of(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil
    cdef int combine(self, Py_ssize_t i) noexcept nogil
    cdef void run_task(self, Py_ssize_t task, Py_ssize_t worker) noexcept nogil
    cdef void learn_rowwise(self, Lockstep lockstep, Workspace* work, Outcome* outcome) noexcept nogil
    cdef int learn_row_of_chunk(self, Py_ssize_t i, Lockstep lockstep, Workspace* work,
                                Outcome* outcome) noexcept nogil
    cdef void learn_by_chunks(self, Py_ssize_t k, Workspace* work, Outcome* outcome) noexcept nogil
