"""Learners of the same rows as one learner."""

from onlinebregman._kernels.geometries.geometry cimport DENSE
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, row_width, with_members
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
        self.changing, self.members = learners, with_members(learners)
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
