"""Learners of the same rows as one learner."""

from onlinebregman._kernels.geometries.geometry cimport DENSE
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, row_width
from onlinebregman._kernels.learners.atomic import check_columns
from onlinebregman._kernels.rows.rows cimport Rows


cdef class Ensemble(AtomicLearner):
    """Learners that learn the same rows: either all of them learn the rows of a call, or none.

    Parameters
    ----------
    learners : list of AtomicLearner
        With the same number of features.
    """

    def __cinit__(self, learners, *arguments, **more):
        self.learners = self.changing = tuple([<AtomicLearner?> learner for learner in learners])
        self.arguments = self.learners, *self.arguments[1:]
        if not self.learners:
            raise ValueError("learners must contain at least one learner; got none")
        self.n_features = row_width(self.learners[0])
        for learner in self.learners:
            self.traits |= (<AtomicLearner> learner).traits & DENSE
            check_columns(row_width(learner), self.n_features)

    @property
    def t(self):
        return self.learners[0].t

    # --- a call: each learner can undo its part -------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest) noexcept:
        cdef AtomicLearner learner
        cdef Py_ssize_t length = 0
        for learner in self.changing:
            length = max(length, learner.vector_length(widest))
        return length

    cdef int claim(self) except -1:
        cdef AtomicLearner learner
        cdef Py_ssize_t claimed = 0
        AtomicLearner.claim(self)
        try:
            for learner in self.changing:
                learner.claim()
                claimed += 1
        except BaseException:
            for learner in self.changing[:claimed]:
                learner.release()
            AtomicLearner.release(self)
            raise
        return 0

    cdef void release(self) noexcept:
        cdef AtomicLearner learner
        for learner in self.changing:
            learner.release()
        AtomicLearner.release(self)

    cdef int check(self, Rows rows) except -1:
        cdef AtomicLearner learner
        AtomicLearner.check(self, rows)
        for learner in self.learners:
            learner.check(rows)
        return 0

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef AtomicLearner learner
        cdef Py_ssize_t begun = 0
        AtomicLearner.begin(self, rows, complete)
        try:
            for learner in self.changing:
                learner.begin(rows, complete)
                begun += 1
        except BaseException:
            for learner in self.changing[:begun]:
                if learner.former is not None:
                    learner.undo(rows)
            for learner in self.changing:
                learner.next_settings = None
            raise
        return 0

    cdef void prepare(self) noexcept:
        cdef AtomicLearner learner
        for learner in self.changing:
            learner.prepare()

    cdef int undo(self, Rows rows) except -1:
        cdef AtomicLearner learner
        AtomicLearner.undo(self, rows)
        for learner in self.changing:
            learner.undo(rows)
            learner.next_settings = None
        return 0

    cdef void keep(self, Rows rows) noexcept:
        cdef AtomicLearner learner
        for learner in self.changing:
            learner.keep(rows)
        AtomicLearner.keep(self, rows)

    cdef object interruption(self):
        cdef AtomicLearner learner
        first = None
        for learner in self.changing:
            error = learner.interruption()  # of each, as that forgets it
            if first is None:
                first = error
        return self.interrupt if first is None else first
