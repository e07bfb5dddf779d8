from onlinebregman._kernels.geometries.geometry cimport Workspace, Workspaces
from onlinebregman._kernels.loop.abreast cimport Abreast
from onlinebregman._kernels.loop.atomic cimport Block, Ensemble
from onlinebregman._kernels.loop.crew cimport Crew
from onlinebregman._kernels.loop.mixer cimport Mixer
from onlinebregman._kernels.rows.chunk cimport Chunk
from onlinebregman._kernels.rows.rows cimport Rows


cdef struct Part:             # what the loop over rows needs to know of a learner
    void* learner
    const double* book        # its targets for each class, or NULL: the row's target
    Py_ssize_t n_targets
    Py_ssize_t n_scores
    Py_ssize_t start          # where they go


cdef struct Outcome:          # of a task
    int status
    Py_ssize_t row            # of the chunk: the one that could not be learned,
    Py_ssize_t refusing       # and by which learner,
    Py_ssize_t turn           # and when in the row that was


cdef class MixtureLearner(Ensemble):
    cdef readonly Mixer mixer
    cdef readonly tuple books
    cdef readonly Py_ssize_t refusing  # the learner that refused a row of the last call; -1: none, the mixer did
    cdef Py_ssize_t n
    cdef Py_ssize_t n_labels  # in the shortest of the books
    cdef Part* parts
    cdef tuple lone           # the learners; of each that consists of one other, that one
    cdef Abreast abreast      # those that learn abreast in this call,
    cdef Py_ssize_t* single   # others that learn row after row with them,
    cdef Py_ssize_t n_single
    cdef Py_ssize_t* apart    # and those that pass over a chunk by themselves
    cdef Py_ssize_t n_apart
    cdef Outcome* outcomes    # of task 0, which is the first two kinds, and of the tasks of those that are apart
    cdef Chunk chunk
    cdef double[::1] targets  # of its rows,
    cdef double[::1] scores   # and what each learner had said of them
    cdef object n_jobs        # how many threads are asked for
    cdef Crew crew
    cdef Workspaces works     # of its threads,
    cdef Workspace* work      # and of the one that called
    cdef void* block_rows     # the Rows of this call
    cdef Py_ssize_t touched   # numbers, to learn one of them

    cdef void largest_first(self) noexcept
    cdef object predict_rows(self, Rows rows)
    cdef int bind(self, Py_ssize_t length) except -1
    cdef int learn_chunks(self, Rows rows, Block* block) noexcept nogil
    cdef bint unknown(self, const Block* block, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t load(self, Rows rows, const Block* block, Py_ssize_t i) noexcept nogil
    cdef int learn_chunk(self, Block* block) noexcept nogil
    cdef void learn_abreast(self, Workspace* work, Outcome* outcome) noexcept nogil
    cdef int learn_row_abreast(self, Py_ssize_t i, Workspace* work, Outcome* outcome) noexcept nogil
    cdef void learn_apart(self, Py_ssize_t k, Workspace* work, Outcome* outcome) noexcept nogil
