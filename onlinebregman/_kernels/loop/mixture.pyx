"""Learners of the same rows, and the mixture of what they say: all in one pass."""

import numpy as np

from libc.stdlib cimport free, malloc

from onlinebregman._kernels.geometries.geometry cimport (
    Workspace, free_workspace, make_workspace
)
from onlinebregman._kernels.loop.abreast cimport Abreast
from onlinebregman._kernels.loop.atomic cimport AtomicLearner, Block, Ensemble, interrupted, weight_of
from onlinebregman._kernels.loop.atomic import check_columns
from onlinebregman._kernels.loop.learner cimport Learner, reason
from onlinebregman._kernels.loop.mixer cimport Mixer
from onlinebregman._kernels.loop.multi_learner cimport MultiLearner
from onlinebregman._kernels.loop.state cimport BAD_TARGET, INTERRUPTED, LEARNED
from onlinebregman._kernels.rows.rows cimport Row, Rows, open_rows
from onlinebregman._kernels.rows.standardizer cimport fetch_standardized, fetch_to_learn

cdef extern from "ops/vector.h":
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX


cdef class MixtureLearner(Ensemble):
    """Learners of the same number of features that learn the same rows, and a mixer of their scores.

    It is all learners or none that learn the rows of a call.

    Parameters
    ----------
    learners : list of AtomicLearner
    mixer : Mixer
    books : list, default=None
        For each learner an array of shape (n_classes, n_targets) with its targets for the rows of each class, where
        targets are the numbers of classes; None: it learns the targets themselves.
    """

    def __cinit__(self, learners, Mixer mixer not None, books=None):
        cdef AtomicLearner learner
        cdef Py_ssize_t k, start = 0
        cdef const double[:, ::1] book
        self.mixer, self.n = mixer, len(self.learners)
        self.books = (None,) * self.n if books is None else tuple([
            None if given is None else np.array(given, dtype=np.float64).reshape(len(given), -1) for given in books
        ])
        if len(self.books) != self.n:
            raise ValueError(f"there must be a book, or None, for each of {self.n} learners; got {len(self.books)}")
        self.n_targets, self.target_ndim = 1, 1
        self.parts = <Part*> malloc(self.n * sizeof(Part))
        self.single = <Py_ssize_t*> malloc(self.n * sizeof(Py_ssize_t))
        self.abreast = Abreast(self.n)
        if self.parts == NULL or self.single == NULL:
            raise MemoryError()
        self.n_scores, self.n_labels = mixer.n_outputs, PY_SSIZE_T_MAX
        for k, learner in enumerate(self.learners):
            self.parts[k] = Part(<void*> learner, NULL, 1, learner.n_scores, start)
            start += learner.n_scores
            if self.books[k] is not None:
                book = self.books[k]
                self.n_labels = min(self.n_labels, book.shape[0])
                if book.shape[0] == 0 or book.shape[1] < learner.n_targets:
                    raise ValueError(f"a book must have {learner.n_targets} targets a label; got {book.shape[1]}")
                self.parts[k].book, self.parts[k].n_targets = &book[0, 0], book.shape[1]
            elif learner.n_targets > 1 and (not isinstance(learner, MultiLearner) or (<MultiLearner> learner).summed):
                raise ValueError(f"a learner of {learner.n_targets} targets must have a book")
        self.scores = np.empty(sum([learner.n_scores for learner in self.learners]))
        if self.scores.shape[0] != mixer.n_scores:
            raise ValueError(f"the learners have {self.scores.shape[0]} scores, the mixer mixes {mixer.n_scores}")

    def __dealloc__(self):
        free(self.parts)
        free(self.single)

    def __reduce__(self):
        return type(self), (self.learners, self.mixer, self.books)

    cpdef bint in_force(self, dict attributes):
        """Parameters are read when learning starts."""
        return True

    # --- ways in ------------------------------------------------------------------------------------------------

    def learn(self, X, const double[::1] y, const double[::1] sample_weight=None):
        """Learn validated rows with their targets, or the numbers of their classes.

        Returns (reason, row) of what could not be learned, or None. All rows are learned or none.
        """
        cdef Rows rows = open_rows(X)
        cdef Block block
        block.y, block.n_targets, block.scores = &y[0], 1, NULL
        block.sample_weight = NULL if sample_weight is None else &sample_weight[0]
        status = self.learn_block(rows, &block)
        return None if status == LEARNED else (reason(status), block.failed)

    def predict_fast(self, dict attributes, X):
        """What the mixture says of a plain float array or CSR without validation, or None if that is not safe."""
        cdef Rows rows = self.fitting_rows(attributes, X)
        return None if rows is None else self.predict_rows(rows)

    def predict(self, X):
        """What the mixture says of validated rows, shape (n_rows, n_outputs); None if that is not finite."""
        return self.predict_rows(open_rows(X))

    cdef object predict_rows(self, Rows rows):
        cdef Py_ssize_t i, k, width = self.mixer.n_outputs
        cdef double* scores
        cdef double* own
        cdef Row row
        cdef Workspace work
        cdef bint finite
        cdef double[::1] out, room = np.empty(self.scores.shape[0] + self.mixer.room_length())
        check_columns(rows.n_columns, self.n_features)
        if self.standardizer is not None:
            self.standardizer.open(rows)
        answer = np.empty(rows.n_rows * width)
        out, scores = answer, &room[0]
        make_workspace(&work, self.vector_length(rows.widest))
        with nogil:
            for i in range(rows.n_rows):
                fetch_standardized(self.standardizer, rows, i, &row)
                own = scores
                for k in range(self.n):
                    (<AtomicLearner> self.parts[k].learner).score_row(&row, &work, own)
                    own += self.parts[k].n_scores
                self.mixer.mix(scores, &out[i * width], own)
            free_workspace(&work)
            finite = ob_nonfinite(&out[0], out.shape[0]) == 0
        return answer.reshape(-1, width) if finite else None

    # --- a call: see `AtomicLearner`; each learner can undo its part ---------------------------------------------

    cdef int begin(self, Rows rows, bint complete) except -1:
        Ensemble.begin(self, rows, complete)
        self.mixer.save(rows.n_rows)
        self.bind(self.vector_length(rows.widest))
        return 0

    cdef int bind(self, Py_ssize_t length) except -1:
        """Find those that learn abreast."""
        cdef Py_ssize_t k, i = 0
        self.abreast.gather(tuple([alone(learner) for learner in self.learners]), length)
        together = {self.abreast.place[k] for k in range(self.abreast.n)}
        self.n_single = 0
        for k in range(self.n):
            if k not in together:
                self.single[self.n_single] = k
                self.n_single += 1
        return 0

    cdef int undo(self, Rows rows) except -1:
        Ensemble.undo(self, rows)
        self.mixer.go_back()
        return 0

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        cdef Py_ssize_t k, i, length = -1, effort = 0
        cdef int status
        cdef double none = 0.0
        cdef Row row
        for i in range(rows.n_rows):
            block.failed = i
            fetch_to_learn(self.standardizer, rows, i, weight_of(block, i), &row)
            if row.n != length:
                length, effort = row.n, self.effort(row.n)
            if interrupted(self, effort):
                return INTERRUPTED
            for k in range(self.n if rows.indices != NULL else 0):
                (<AtomicLearner> self.parts[k].learner).prefetch(rows, i + 1)
            status = self.learn_row(
                &row, &block.work, &none if block.y == NULL else block.y + i, weight_of(block, i), NULL
            )
            if status != LEARNED:
                return status
        return self.check_all()

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t k, total = 0
        for k in range(self.n):
            total += (<AtomicLearner> self.parts[k].learner).effort(n)
        return total

    cdef int check_all(self) noexcept nogil:
        cdef Py_ssize_t k
        cdef int status
        for k in range(self.n):
            status = (<AtomicLearner> self.parts[k].learner).check_all()
            if status != LEARNED:
                self.refusing = k
                return status
        return LEARNED

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        """Every learner learns the row, and what they had predicted is counted."""
        cdef Py_ssize_t i
        cdef int status
        cdef double target
        cdef Part* part
        if weight == 0:
            return LEARNED
        if self.n_labels < PY_SSIZE_T_MAX and not 0 <= y[0] < self.n_labels:
            self.refusing = -1
            return BAD_TARGET
        target = self.mixer.target(y[0])
        if self.abreast.n > 0:
            status = self.learn_abreast(row, y[0], target, weight)
            if status != LEARNED:
                return status
        for i in range(self.n_single):
            part = &self.parts[self.single[i]]
            status = (<AtomicLearner> part.learner).learn_row(
                row, work, targets_of(part, y[0], &target), weight, &self.scores[part.start]
            )
            if status != LEARNED:
                self.refusing = self.single[i]
                return status
        self.refusing = -1
        return self.mixer.learn(&self.scores[0], y[0], weight)

    cdef int learn_abreast(self, const Row* row, double y, double target, double weight) noexcept nogil:
        cdef Py_ssize_t k
        cdef int status
        for k in range(self.abreast.n):
            self.abreast.y[k] = targets_of(&self.parts[self.abreast.place[k]], y, &target)[0]
        status = self.abreast.learn_row(row, weight, &self.refusing)
        for k in range(self.abreast.n):
            self.scores[self.parts[self.abreast.place[k]].start] = self.abreast.a[k]
        return status


cdef AtomicLearner alone(AtomicLearner learner):
    """The one learner that a learner consists of, or itself."""
    return learner.learners[0] if type(learner) is MultiLearner and learner.n_scores == 1 else learner


cdef inline const double* targets_of(const Part* part, double y, const double* target) noexcept nogil:
    """What a learner is to learn for the target y: what its book says of that class, or `target`."""
    return target if part.book == NULL else part.book + <Py_ssize_t> y * part.n_targets
