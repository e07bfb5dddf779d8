"""Learners of the same rows that learn them in chunks, and what combines their scores.

Learners with a matrix learn a whole chunk one after the other, so that the matrix stays in the cache, or at the same
time in several threads; others learn it row by row, in lockstep if they can, and may be divided among threads. Then
their scores are combined row by row. No learner depends on another one, so the results do not depend on how rows are
cut into calls and chunks, nor on the threads.
"""

import numpy as np

from cpython.pyport cimport PY_SSIZE_T_MAX
from libc.stdlib cimport free

from onlinebregman._kernels.geometries.geometry cimport DENSE, Workspace, Workspaces
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block, learn_rows_of, row_width, widest
from onlinebregman._kernels.learners.atomic import check_columns
from onlinebregman._kernels.learners.links cimport IDENTITY
from onlinebregman._kernels.learners.lockstep cimport MAX_PARTS, Lockstep, divided
from onlinebregman._kernels.learners.run cimport BAD_TARGET, LEARNED
from onlinebregman._kernels.learners.thread_pool cimport ThreadPool, n_threads
from onlinebregman._kernels.ops.pointers cimport resized
from onlinebregman._kernels.rows.chunk cimport MAX_CHUNK_WORK, Chunk
from onlinebregman._kernels.rows.rows cimport Row, Rows

cdef enum:
    MAX_CHUNK_ROWS = 256         # that learners with a matrix learn, or that are mapped: see `AHEAD` in `trees`
    MAX_CHUNK_VALUES = 1 << 16   # values of the rows and scores of a chunk
    MIN_PARALLEL_WORK = 1 << 20  # smallest such number of a call with threads, which take 50 us to start


cdef class Ensemble(AtomicLearner):
    """Learners that learn the same rows: either all of them learn the rows of a call, or none.

    Parameters
    ----------
    learners : list of AtomicLearner
        With the same number of features.
    """

    def __cinit__(self, learners, *arguments, **more):
        self.learners = tuple([<AtomicLearner?> learner for learner in learners])
        self.change(self.learners)
        self.arguments = self.learners, *self.arguments[1:]
        if not self.learners:
            raise ValueError("learners must contain at least one learner; got none")
        self.n_features = row_width(self.learners[0])
        for learner in self.learners:
            self.traits |= (<AtomicLearner> learner).traits & DENSE
            check_columns(row_width(learner), self.n_features)

    cdef int change(self, tuple learners) except -1:
        """Set the learners that a call changes."""
        cdef AtomicLearner learner
        self.changing = learners
        self.members = tuple([each for learner in learners for each in (learner, *learner.members)])
        return 0

    @property
    def t(self):
        return self.learners[0].t

    # --- a call: each learner can undo its part -------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest, bint to_learn) noexcept:
        cdef AtomicLearner learner
        cdef Py_ssize_t length = 0
        for learner in self.changing:
            length = max(length, learner.vector_length(widest, to_learn))
        return length

    cdef int check(self, Rows rows) except -1:
        cdef AtomicLearner learner
        AtomicLearner.check(self, rows)
        for learner in self.learners:
            learner.check(rows)
        return 0

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef AtomicLearner learner
        AtomicLearner.begin(self, rows, complete)
        for learner in self.changing:
            learner.begin(rows, complete)
        return 0


cdef class Team(Ensemble):
    """Base class of ensembles that learn chunks of rows: a subclass says what they learn, and combines their scores."""

    def __cinit__(self, learners, *arguments, **more):
        cdef AtomicLearner learner
        cdef Py_ssize_t k
        self.n, self.n_jobs, self.n_groups = len(self.learners), 1, 1
        self.n_labels, self.together = PY_SSIZE_T_MAX, self.learners
        self.parts = <Part*> resized(NULL, self.n * sizeof(Part))
        self.rowwise = <Py_ssize_t*> resized(NULL, 2 * self.n * sizeof(Py_ssize_t))
        self.outcomes = <Outcome*> resized(NULL, (1 + self.n) * sizeof(Outcome))
        self.by_chunks = self.rowwise + self.n
        row_maps = tuple({id(learner.row_map): learner.row_map for learner in self.learners}.values())
        self.maps = tuple([row_map for row_map in row_maps if row_map is not None])
        self.lockstep, self.thread_pool, self.works = Lockstep(self.n), ThreadPool(), Workspaces()
        self.chunk = Chunk(row_maps)
        for k, learner in enumerate(self.learners):
            image = [row_map is learner.row_map for row_map in row_maps].index(True)
            self.parts[k] = Part(
                <void*> learner, NULL, 1, learner.n_scores, self.width, image, False, IDENTITY, False
            )
            self.width += learner.n_scores
        self.chunk_scores = np.empty(self.width)

    def __dealloc__(self):
        free(self.parts)
        free(self.rowwise)
        free(self.outcomes)

    cdef int divide(self, Rows rows, Py_ssize_t length) except -1:
        """Divide learners among threads, if there is enough to do, and rows into chunks, whose arrays are allocated."""
        cdef Py_ssize_t most = 1, n_jobs = 1
        self.chunk.measure(rows)
        self.work_per_row = max(self.effort(widest(self, rows)), 1)  # rows may have no values
        if rows.n_rows > MIN_PARALLEL_WORK // self.work_per_row:
            n_jobs = n_threads(self.n_jobs)
        self.n_groups, self.groups[0], self.locksteps = 1, <void*> self.lockstep, ()
        if n_jobs > 1 and self.lockstep.n == self.n > 3 and self.work_per_row > self.least_divided:
            self.n_groups = min(n_jobs, self.n // 2, MAX_PARTS)
            self.locksteps = divided(self.together, self.n_groups, length, self.groups)
        if self.n_by_chunks > 0 or self.n_groups > 1:  # otherwise chunks of one row are fastest
            most = min(rows.n_rows, MAX_CHUNK_VALUES // (self.chunk.width + self.width))
            most = min(most, MAX_CHUNK_ROWS) if self.n_by_chunks or self.maps else most
            most = max(1, min(most, MAX_CHUNK_WORK // self.work_per_row))
        self.chunk.reserve(rows, most, self.n_targets)
        if self.chunk_scores.shape[0] < most * self.width:
            self.chunk_scores = np.empty(most * self.width)
        n_jobs = min(n_jobs, self.n_groups + self.n_by_chunks)
        self.thread_pool.reserve(n_jobs - 1)
        return self.works.reserve(n_jobs - 1, length)

    # --- the loop -------------------------------------------------------------------------------------------------

    cdef int learn_chunks(self, Rows rows, Block* block) noexcept nogil:
        """The loop over rows, which fill one chunk after the other."""
        cdef int status
        self.block, self.block_rows, self.chunk.n = block, <void*> rows, 0
        self.thread_pool.start()
        status = learn_rows_of(self, rows, block, None, add_to_chunk)
        if status == LEARNED:
            status = self.learn_chunk()
        self.thread_pool.stop()
        return status

    cdef int add_row(self, const Row* row, const double* y, double weight) noexcept nogil:
        """Add a row to the chunk, which is learned if it is full, or an earlier refusal might count."""
        cdef int status
        if self.unknown(y):
            status = self.learn_chunk()
            if status == LEARNED:
                self.refusing, self.block.failed, status = -1, row.number, BAD_TARGET
            return status
        self.chunk.add(<Rows> self.block_rows, row, weight, y)
        return self.learn_chunk() if self.chunk.n == self.chunk.capacity else LEARNED

    cdef bint unknown(self, const double* y) noexcept nogil:
        """Whether a class number is out of range."""
        return self.n_labels < PY_SSIZE_T_MAX and not 0 <= y[0] < self.n_labels

    cdef int learn_chunk(self) noexcept nogil:
        """Every learner learns the rows of the chunk, which is then empty; their scores before that are combined."""
        cdef Py_ssize_t i, k, n = self.chunk.n
        cdef int status = LEARNED
        cdef Outcome* first = &self.outcomes[0]  # the first refusal in the order of rows and learners
        cdef Outcome* other
        if n == 0:
            return LEARNED
        self.find_targets()
        self.thread_pool.run(learn_by, <void*> self, self.n_groups + self.n_by_chunks)
        for k in range(1, self.n_groups + self.n_by_chunks):
            other = &self.outcomes[k]
            if other.status != LEARNED and (first.status == LEARNED or comes_before(other, first)):
                first = other
        self.chunk.n = 0
        for i in range(n if first.status == LEARNED else first.row):
            self.block.failed, self.refusing = self.chunk.number[i], -1
            status = self.combine(i)
            if status != LEARNED:
                return status
        if first.status != LEARNED:
            self.block.failed, self.refusing = self.chunk.number[first.row], first.refusing
        return first.status

    cdef void find_targets(self) noexcept nogil:
        """Find what `targets_of` needs, from the targets of the rows of the chunk."""

    cdef const double* targets_of(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """The targets of learner k for row i of the chunk."""
        return NULL

    cdef int combine(self, Py_ssize_t i) noexcept nogil:
        """Combine the scores of row i of the chunk, which all learners have learned."""
        return LEARNED

    # --- tasks, each of which learns the chunk --------------------------------------------------------------------

    cdef void run_task(self, Py_ssize_t task, Py_ssize_t worker) noexcept nogil:
        """Learn the chunk with a group of learners, or with one that has a matrix."""
        cdef Workspace* work = &self.block.work if worker == 0 else &self.works.each[worker - 1]
        self.outcomes[task].status = LEARNED
        if task < self.n_groups:
            self.learn_rowwise(<Lockstep> self.groups[task], work, &self.outcomes[task])
        else:
            self.learn_by_chunks(self.by_chunks[task - self.n_groups], work, &self.outcomes[task])

    cdef void learn_rowwise(self, Lockstep lockstep, Workspace* work, Outcome* outcome) noexcept nogil:
        """A group of learners without a matrix, and those that learn by themselves, learn the chunk row by row."""
        cdef Py_ssize_t i, j, k
        cdef bint sparse = (<Rows> self.block_rows).indices != NULL
        cdef Outcome own = outcome[0]  # not written there for each row: those of tasks share lines of the cache
        for i in range(self.chunk.n):
            for j in range(lockstep.n + self.n_rowwise if sparse and i + 1 < self.chunk.n else 0):
                k = lockstep.index[j] if j < lockstep.n else self.rowwise[j - lockstep.n]
                (<AtomicLearner> self.parts[k].learner).prefetch(<Rows> self.block_rows, self.chunk.number[i + 1], NULL)
            own.row = i
            own.status = self.learn_row_of_chunk(i, lockstep, work, &own)
            if own.status != LEARNED:
                break
        outcome[0] = own

    cdef int learn_row_of_chunk(self, Py_ssize_t i, Lockstep lockstep, Workspace* work,
                                Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t k
        cdef int status
        cdef double weight = self.chunk.weight[i]
        cdef double* scores = &self.chunk_scores[i * self.width]
        cdef Part* part
        for k in range(self.n):
            if self.parts[k].scored_before:
                (<AtomicLearner> self.parts[k].learner).score_row(
                    NULL, self.chunk.images(self.parts[k].image) + i, work, scores + self.parts[k].start
                )
        for k in range(lockstep.n):
            lockstep.y[k] = self.targets_of(lockstep.index[k], i)[0]
        if lockstep.n > 0:
            outcome.turn = -1
            status = lockstep.learn_row(self.chunk.images(0) + i, weight, &outcome.refusing)
            for k in range(lockstep.n):
                part = &self.parts[lockstep.index[k]]
                if not part.scored_before:
                    scores[part.start] = lockstep.a[k]
            if status != LEARNED:
                return status
        for k in range(self.n_rowwise):
            part = &self.parts[self.rowwise[k]]
            outcome.turn = outcome.refusing = self.rowwise[k]
            status = (<AtomicLearner> part.learner).learn_row(
                self.chunk.images(part.image) + i, work, self.targets_of(self.rowwise[k], i), weight,
                NULL if part.scored_before else scores + part.start,
            )
            if status != LEARNED:
                return status
        return LEARNED

    cdef void learn_by_chunks(self, Py_ssize_t k, Workspace* work, Outcome* outcome) noexcept nogil:
        """A learner with a matrix learns the whole chunk."""
        cdef Py_ssize_t i
        cdef const double* y[MAX_CHUNK_ROWS]
        cdef Part* part = &self.parts[k]
        for i in range(self.chunk.n):
            y[i] = self.targets_of(k, i)
        outcome.turn = outcome.refusing = k
        outcome.status = (<AtomicLearner> part.learner).learn_rows(
            self.chunk.images(part.image), self.chunk.n, work, y, self.chunk.weight, &self.chunk_scores[part.start],
            self.width, &outcome.row,
        )

    cdef int check_all(self) noexcept nogil:
        cdef Py_ssize_t k
        cdef int status
        for k in range(self.n):
            status = (<AtomicLearner> self.parts[k].learner).check_all()
            if status != LEARNED:
                self.refusing = k
                return status
        return LEARNED


cdef void learn_by(void* team, Py_ssize_t task, Py_ssize_t worker) noexcept nogil:
    (<Team> team).run_task(task, worker)


cdef inline int add_to_chunk(AtomicLearner team, const Row* row, Workspace* work, const double* y, double weight,
                             double* scores) noexcept nogil:
    return (<Team> team).add_row(row, y, weight)
