"""What all learners share: a call learns all of its rows or none, in one thread at a time, and can be undone.

A call takes these turns, of which each kind of learner says `begin`, `loop`, `undo` and `keep`:

    claim the learner; note what to go back to; learn row after row; keep it, or go back; release the learner.

Where one row turns out to move weights that are not backed up, the call goes back and begins again with all backed up.
"""

from cpython.buffer cimport PyBuffer_Release
from libc.math cimport isfinite

from onlinebregman._kernels.geometries.geometry cimport Workspace, free_workspace, make_workspace
from onlinebregman._kernels.loop.state cimport LEARNED, NEEDS_BACKUP, TOO_LARGE
from onlinebregman._kernels.loop.transaction cimport check_idle, patience, signal_raised, under_way
from onlinebregman._kernels.rows.rows cimport Row, Rows, hold_doubles, try_rows
from onlinebregman._kernels.rows.standardizer cimport Standardizer

cdef extern from "loop/claim.h":
    bint ob_claim(long* flag) noexcept nogil
    void ob_release(long* flag) noexcept nogil


cdef int note_weights(dict attributes, const double* weights, Py_ssize_t n) except -1:
    """For the bounds of an estimator with these attributes, and of those it consists of: how heavy rows were."""
    cdef double largest = 0.0
    cdef bint counted = True  # as rows of weight 1, or not at all
    cdef Py_ssize_t i
    for i in range(n):
        largest = max(largest, weights[i])
        counted = counted and (weights[i] == 0 or weights[i] == 1)
    if "_largest_weight" in attributes:
        attributes["_largest_weight"] = max(attributes["_largest_weight"], largest)
    if "_all_weight_one" in attributes:
        attributes["_all_weight_one"] = attributes["_all_weight_one"] and counted
    for estimator in attributes.get("estimators_", ()):
        note_weights(vars(estimator), weights, n)
    return 0


cdef bint all_positive(const double* weights, Py_ssize_t n) noexcept:
    """Are they positive numbers with a finite sum?"""
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        if not weights[i] > 0:
            return False
        total += weights[i]
    return isfinite(total)


def are_positive(const double[::1] weights):
    """Are they positive numbers with a finite sum?"""
    return weights.shape[0] == 0 or all_positive(&weights[0], weights.shape[0])


def note_weights_of(estimator, const double[::1] weights):
    """See `note_weights`."""
    if weights is not None and weights.shape[0] > 0:
        note_weights(vars(estimator), &weights[0], weights.shape[0])


def check_columns(Py_ssize_t n_columns, Py_ssize_t n_features):
    """What an estimator says of its features may be another number: in a file, or where attributes were set."""
    if n_columns != n_features:
        raise ValueError(f"rows must have {n_features} features, as those that were learned; got {n_columns}")


cdef class Mark:
    """What a learner can go back to."""


cdef class AtomicLearner:
    """Learns rows as their loop says."""

    def standardize_by(self, Standardizer standardizer):
        """Learn and predict standardised rows; before the first one."""
        self.standardizer = standardizer

    # --- ways in ------------------------------------------------------------------------------------------------

    cpdef bint in_force(self, dict attributes):
        """Are the estimator's attributes the very parameters this learner goes by, or ones that it can `read`?"""
        return False

    cdef void read(self, dict attributes) noexcept:
        """Take over what the attributes say about the next call."""

    @property
    def progressive(self):
        """See `scores_predict`."""
        return self.scores_predict()

    cdef bint scores_predict(self) noexcept:
        """Are the scores of rows that are learned those that a prediction before would have had, to the last digit?"""
        return False

    def learn_fast(self, dict attributes, X, y=None, sample_weight=None, double[:, ::1] scores=None):
        """Learn a block, or one row, without validation; False if that is not safe and nothing was learned.

        Safe means: X, y and weights are plain arrays of numbers, or lists (or X is CSR), of the right shape, the
        parameters are the ones in force, and there are no feature names to compare. What is not finite shows up in the
        predictions, as all weights are positive.

        `scores`, if given, receives the `n_scores` scores of each row before it was learned.
        """
        cdef Rows rows
        cdef Py_buffer targets
        cdef Block block
        if self.busy or not self.in_force(attributes) or under_way(attributes):
            return False
        rows = self.fitting_rows(attributes, X)
        if rows is None:
            return False
        block.y, block.n_targets, block.scores = NULL, self.n_targets, NULL
        if scores is not None:
            if not self.scores_predict() or scores.shape[0] != rows.n_rows or scores.shape[1] != self.n_scores:
                return False
            block.scores = &scores[0, 0]
        if self.target_ndim == 0:
            return self.learn_weighted(attributes, rows, &block, sample_weight)
        if not hold_doubles(y, &targets):
            return False
        try:
            if targets.ndim != self.target_ndim or targets.shape[0] != rows.n_rows or \
                    (targets.ndim == 2 and targets.shape[1] != self.n_targets):
                return False
            block.y = <const double*> targets.buf
            return self.learn_weighted(attributes, rows, &block, sample_weight)
        finally:
            PyBuffer_Release(&targets)

    cdef bint learn_weighted(self, dict attributes, Rows rows, Block* block, sample_weight) except -1:
        """Learn a block with these weights, which are not validated; False if nothing was learned."""
        cdef Py_buffer weights
        block.sample_weight = NULL
        if sample_weight is None:
            self.read(attributes)
            return self.learn_block(rows, block) == LEARNED
        if not hold_doubles(sample_weight, &weights):
            return False
        try:
            block.sample_weight = <const double*> weights.buf
            if weights.ndim != 1 or weights.shape[0] != rows.n_rows or \
                    not all_positive(block.sample_weight, rows.n_rows):
                return False
            self.read(attributes)
            if self.learn_block(rows, block) != LEARNED:
                return False
            note_weights(attributes, block.sample_weight, rows.n_rows)
            return True
        finally:
            PyBuffer_Release(&weights)

    cdef Rows fitting_rows(self, dict attributes, X):
        """The rows of X if they can be read as they are, without validation, and have the model's features; or None."""
        cdef Rows rows
        if "feature_names_in_" in attributes:
            return None
        rows = try_rows(X)
        return rows if rows is not None and rows.n_rows > 0 and rows.n_columns == self.n_features else None

    # --- a call -------------------------------------------------------------------------------------------------

    cdef int learn_block(self, Rows rows, Block* block) except -1:
        """Learn all of the rows and return LEARNED, or none, and say why."""
        cdef int status
        cdef bint complete = False
        self.claim()
        block.work.notes = NULL
        try:
            if self.standardizer is not None:
                self.standardizer.open(rows)
            make_workspace(&block.work, self.vector_length(rows.widest))
            while True:
                if self.standardizer is not None:
                    self.standardizer.begin(rows)
                self.begin(rows, complete)
                with nogil:
                    status = self.loop(rows, block)
                if status == LEARNED and self.standardizer is not None and not self.standardizer.bounded():
                    status = TOO_LARGE
                error = self.interruption()
                if status != LEARNED or error is not None:
                    self.take_back(rows)
                if error is not None:
                    raise error
                if status == LEARNED:
                    self.keep(rows)
                if status != NEEDS_BACKUP:
                    return status
                complete = True
        finally:
            free_workspace(&block.work)
            self.release()

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest) noexcept:
        """How long the vectors of the workspace have to be."""
        return 0

    cdef int claim(self) except -1:
        if not ob_claim(&self.busy):
            check_idle(self.busy)
        return 0

    cdef void release(self) noexcept:
        ob_release(&self.busy)

    cdef int begin(self, Rows rows, bint complete) except -1:
        """Note what to go back to: all of it, or what these rows can touch."""
        self.interrupt, self.patience = None, patience()
        return 0

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        """Learn row after row; the status of the first that cannot be learned, or LEARNED."""
        return LEARNED

    # The turns of a loop, for who learns the same rows by several learners:

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        """About how many numbers are touched by learning a row of n values."""
        return n

    cdef void prefetch(self, Rows rows, Py_ssize_t k) noexcept nogil:
        """Have what the k-th row needs brought near."""

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        """Learn a row of these targets in such a way that it can be undone; the `Status`.

        `scores`, if not NULL, receives its `n_scores` scores before it was learned (NaN where its weight is 0).
        """
        return LEARNED

    cdef int learn_rows(self, const Row* rows, Py_ssize_t n, Workspace* work, const double** y, const double* weight,
                        double* scores, Py_ssize_t stride, Py_ssize_t* failed) noexcept nogil:
        """The same for n rows of positive weight, one after the other; their scores go `stride` numbers apart."""
        cdef Py_ssize_t i
        cdef int status
        for i in range(n):
            failed[0] = i
            status = self.learn_row(&rows[i], work, y[i], weight[i], scores + i * stride)
            if status != LEARNED:
                return status
        return LEARNED

    cdef int check_all(self) noexcept nogil:
        """After the last row: what was not looked at row by row has to be finite, too."""
        return LEARNED

    cdef void score_row(self, const Row* row, Workspace* work, double* scores) noexcept nogil:
        """The `n_scores` scores of a row."""

    cdef int undo(self, Rows rows) except -1:
        """Go back to what `begin` noted."""
        return 0

    cdef int take_back(self, Rows rows) except -1:
        """The same for everything that the call has changed."""
        self.undo(rows)
        if self.standardizer is not None:
            self.standardizer.undo()
        return 0

    cdef void keep(self, Rows rows) noexcept:
        """All rows have been learned."""
        self.n_calls += 1
        self.rows = rows if self.n_marks else None

    cdef object interruption(self):
        """The exception that ended the loop and is not about a row: Ctrl-C, or memory that ran out."""
        return self.interrupt

    cdef bint signalled(self) noexcept nogil:
        """Has a signal raised an exception?"""
        with gil:
            self.patience, self.interrupt = patience(), signal_raised()
            return self.interrupt is not None

    # --- undoing a call that has returned -----------------------------------------------------------------------

    def mark(self):
        """What `go_back` needs to undo changes of the settings and the next call that learns; `commit` forgets it."""
        cdef Mark mark
        check_idle(self.busy)
        mark = self.make_mark()
        mark.n_calls = self.n_calls
        self.n_marks += 1
        return mark

    def go_back(self, Mark mark not None):
        """Undo what happened since the mark was made: one call that learned at most."""
        self.claim()
        try:
            if self.n_calls > mark.n_calls + 1:
                raise RuntimeError(f"{self.n_calls - mark.n_calls} calls have learned since the mark was made")
            if self.n_calls > mark.n_calls:
                self.take_back(self.rows)
            self.return_to(mark)
            self.n_calls = mark.n_calls
        finally:
            self.release()

    def commit(self):
        """Let go of what the last mark kept at hand."""
        self.n_marks -= 1
        if self.n_marks == 0:
            self.rows = None

    cdef Mark make_mark(self):
        return Mark()

    cdef int return_to(self, Mark mark) except -1:
        """Put back the settings, and what else the mark has noted."""
        return 0


cdef class Ensemble(AtomicLearner):
    """Learners of the same number of features that learn the same rows: all of them the rows of a call, or none.

    Parameters
    ----------
    learners : list of AtomicLearner
        They share what rows are standardised by.
    """

    def __cinit__(self, learners, *arguments, **more):
        self.learners = tuple([<AtomicLearner?> learner for learner in learners])
        if not self.learners:
            raise ValueError("at least one learner is needed")
        self.n_features, self.standardizer = self.learners[0].n_features, self.learners[0].standardizer
        if any([learner.standardizer is not self.standardizer for learner in self.learners]):
            raise ValueError("learners of the same rows share what rows are standardised by")
        for learner in self.learners:
            check_columns(learner.n_features, self.n_features)

    @property
    def t(self):
        return self.learners[0].t

    # --- a call: each learner can undo its part -------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest) noexcept:
        cdef AtomicLearner learner
        cdef Py_ssize_t length = 0
        for learner in self.learners:
            length = max(length, learner.vector_length(widest))
        return length

    cdef int claim(self) except -1:
        cdef AtomicLearner learner
        cdef Py_ssize_t claimed = 0
        AtomicLearner.claim(self)
        try:
            for learner in self.learners:
                learner.claim()
                claimed += 1
        except BaseException:
            for learner in self.learners[:claimed]:
                learner.release()
            AtomicLearner.release(self)
            raise
        return 0

    cdef void release(self) noexcept:
        cdef AtomicLearner learner
        for learner in self.learners:
            learner.release()
        AtomicLearner.release(self)

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef AtomicLearner learner
        AtomicLearner.begin(self, rows, complete)
        for learner in self.learners:
            learner.begin(rows, complete)
        return 0

    cdef int undo(self, Rows rows) except -1:
        cdef AtomicLearner learner
        for learner in self.learners:
            learner.undo(rows)
        return 0

    cdef void keep(self, Rows rows) noexcept:
        cdef AtomicLearner learner
        for learner in self.learners:
            learner.keep(rows)
        AtomicLearner.keep(self, rows)

    cdef object interruption(self):
        cdef AtomicLearner learner
        for learner in self.learners:
            error = learner.interruption()
            if error is not None:
                return error
        return self.interrupt
