"""Base classes of all learners: a call learns all of its rows or none, in one thread at a time, and can be undone.

A call claims the learner and those that it consists of (one thread at a time), backs up their state and changes what
has to change before the rows (`begin`), learns row after row (`loop`), and keeps the result or restores the backup
(`undo`): see `learn_block`. Each kind of learner implements these.

Numbers that a learner declares (see `State`) are undone, copied, pickled and written to model files by the base class.
What is not declared, such as weights of which few change, a learner handles itself. Settings are applied by the call,
after the backup, so that undoing it undoes them.

If a row would change weights that are not backed up, the call is undone and repeated with all weights backed up.
"""

import numpy as np

cimport cython
from cpython.time cimport time
from libc.math cimport fabs, isfinite

from onlinebregman._kernels.geometries.geometry cimport DENSE, Workspace, free_workspace, make_workspace
from onlinebregman._kernels.learners.run cimport (
    BAD_TARGET, FAILED, LEARNED, LEFT_DOMAIN, LOSS_OVERFLOWED, NEEDS_BACKUP, NEGATIVE, NOT_FINITE, OVERFLOWED, TOO_LARGE
)
from onlinebregman._kernels.learners.transaction cimport (
    WORK_BETWEEN_CHECKS, check_idle, parameters_unchanged, signal_raised, under_way, unnamed, work_between_checks
)
from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.arrays cimport View, empty_float64, float64_array
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows, open_rows, try_rows

cdef double SECONDS_BETWEEN_CHECKS = 0.01
cdef dict UNCHANGED = {}      # the former settings of a call without new ones

# Of each status the reason why a row was refused, a key for the estimator's error message.
cdef dict REASONS = {
    NOT_FINITE: "not finite",
    BAD_TARGET: "bad target",
    LEFT_DOMAIN: "left domain",
    NEGATIVE: "negative",
    OVERFLOWED: "overflowed",
    FAILED: "failed",
    LOSS_OVERFLOWED: "loss overflowed",
    TOO_LARGE: "too large",
}


cdef bint all_positive(const double* weights, Py_ssize_t n) noexcept:
    """Whether all weights are positive and their sum is finite."""
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        if not weights[i] > 0:
            return False
        total += weights[i]
    return isfinite(total)


def are_positive(const double[::1] weights):
    """See `all_positive`."""
    return weights.shape[0] == 0 or all_positive(&weights[0], weights.shape[0])


def check_columns(Py_ssize_t n_columns, Py_ssize_t n_features):
    """Check the width of rows: the estimator's `n_features_in_` may be wrong in a file, or after it was set."""
    if n_columns != n_features:
        raise ValueError(
            f"rows must have {n_features} features, the number in the rows learned before; got {n_columns}"
        )


cdef bint exchange_busy(AtomicLearner learner, bint busy) noexcept:
    """Set whether a thread is learning; returns what was set before. One thread at a time, also without the GIL."""
    cdef bint before
    with cython.critical_section(learner):
        before, learner.busy = learner.busy, busy
    return before


cdef int claim(AtomicLearner learner) except -1:
    """Claim a learner and its members for a call of this thread, all or none of them."""
    cdef Py_ssize_t n = 0
    check_idle(exchange_busy(learner, True))
    for each in learner.members:
        if exchange_busy(<AtomicLearner> each, True):
            release(learner, n)
            check_idle(True)
        n += 1
    return 0


cdef void release(AtomicLearner learner, Py_ssize_t n) noexcept:
    """Release a learner and the first n of its members."""
    cdef Py_ssize_t k
    for k in range(n):
        exchange_busy(<AtomicLearner> learner.members[k], False)
    exchange_busy(learner, False)


cdef inline void keep(AtomicLearner learner) noexcept:
    learner.n_calls += 1
    learner.n_changes += 1
    learner.next_settings = None


cdef int learn_block(AtomicLearner learner, Rows rows, Block* block) except -1:
    """Learn all rows and return LEARNED, or learn none and return the `Status` that says why."""
    cdef int status
    cdef bint complete = False
    cdef RowMap row_map
    cdef AtomicLearner each
    claim(learner)
    block.work.notes = NULL
    try:
        learner.check(rows)
        for row_map in learner.maps:
            row_map.open(rows)
        learner.former = None
        for each in learner.members:
            each.former = None
        while True:
            for row_map in learner.maps:
                row_map.begin(rows)
            learner.begin(rows, complete)
            if block.work.notes == NULL:  # settings of the call may change the length
                make_workspace(&block.work, learner.vector_length(widest(learner, rows), True))
            with nogil:
                status = learner.loop(rows, block)
                if status == LEARNED:
                    status = learner.check_all()
            for row_map in learner.maps:
                if status == LEARNED and not row_map.bounded():
                    status = TOO_LARGE
            error = interruption(learner, True)
            if error is None and status == LEARNED:
                error = signal_raised()  # not after the commit: who is told of an error would learn the rows again
            if error is not None:
                if status != LEARNED and isinstance(error, Exception):
                    error.add_note(f"This was at row {block.failed}.")
                raise error
            if status == LEARNED:
                keep(learner)
                for each in learner.members:
                    keep(each)
                return status
            undo_call(learner)
            if status != NEEDS_BACKUP:
                return status
            complete = True
    except BaseException:
        undo_call(learner)
        raise
    finally:
        free_workspace(&block.work)
        release(learner, len(learner.members))


cdef int undo_call(AtomicLearner learner) except -1:
    """Undo the last call of all learners that are backed up, and of the maps of rows."""
    cdef RowMap row_map
    cdef AtomicLearner each
    for row_map in learner.maps if learner.former is not None else ():
        row_map.undo()
    for each in (learner,) + learner.members:
        if each.former is not None:
            each.undo()
            each.n_changes += 1
    return 0


cdef bint signalled(AtomicLearner learner) noexcept nogil:
    """Whether a signal has raised an exception; checked if enough time has passed."""
    cdef double seconds = time()
    learner.work_left = WORK_BETWEEN_CHECKS
    if fabs(seconds - learner.checked_at) < SECONDS_BETWEEN_CHECKS:
        return False
    with gil:
        learner.checked_at, learner.interrupt = seconds, signal_raised()
        return learner.interrupt is not None


cdef class AtomicLearner(Stateful):
    """Base class: calls that learn, and undoing them; predictions; copies and files."""

    def __cinit__(self, *arguments, **more):
        self.members, self.other_n_targets, self.output_ndim = (), -1, 1
        self.row_map = self.given.pop("row_map", None)
        self.maps = () if self.row_map is None else (self.row_map,)

    def get_state(self):
        """See `Stateful`; it does not depend on how rows were divided into calls."""
        check_idle(self.busy)
        return {"row_map": self.row_map, **self.fields.values()}

    def map_by(self, RowMap row_map):
        """Map rows before they are learned or predicted; called before the first row."""
        self.row_map, self.maps = row_map, () if row_map is None else (row_map,)

    # --- entry points -------------------------------------------------------------------------------------------

    def configure(self, **settings):
        """Set how rows are learned from the next call on; see `apply`. In a transaction that call applies them."""
        claim(self)
        try:
            if self.n_savepoints:
                self.next_settings = {**(self.next_settings or {}), **settings}
            else:
                self.apply(**settings)
        finally:
            release(self, len(self.members))

    def apply(self):
        """Apply settings, its arguments; what may raise an error comes first."""

    def learn(self, X, y=None, const double[::1] sample_weight=None, order=None, scores=None):
        """Learn validated rows, in their order or those in `order`: all of them, or none if one cannot be learned.

        Parameters
        ----------
        X : ndarray or CSR of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,) or (n_rows, n_targets), default=None
            Targets or class numbers; None for learners without targets.
        sample_weight : ndarray of shape (n_rows,), default=None
        order : ndarray of shape (n_learned,), default=None
            Numbers of the rows to learn.
        scores : ndarray of shape (n_rows,) or (n_rows, n_scores), default=None
            Receives each row's scores before it was learned (NaN where its weight is 0).

        Returns
        -------
        None, or (reason, row) of the row that cannot be learned.
        """
        cdef Rows rows = open_rows(X)
        cdef Block block
        cdef const double[::1] targets = None if y is None else y.reshape(-1)
        cdef double[::1] out = None if scores is None else scores.reshape(-1)
        cdef Py_ssize_t n = rows.n_rows
        block.y = NULL if y is None else &targets[0]
        block.n_targets = 0 if y is None else targets.shape[0] // n if n > 0 else self.n_targets
        block.sample_weight = NULL if sample_weight is None else &sample_weight[0]
        block.scores = NULL if scores is None else &out[0]
        if block.n_targets not in (self.n_targets, self.other_n_targets) or \
                (y is not None and targets.shape[0] != n * block.n_targets) or \
                (sample_weight is not None and sample_weight.shape[0] != n) or \
                (scores is not None and out.shape[0] != n * self.n_scores):
            raise ValueError(
                f"y, sample_weight and scores must have {self.n_targets}, 1 and {self.n_scores} numbers for each of "
                f"{n} rows; got shapes {np.shape(y)}, {np.shape(sample_weight)} and {np.shape(scores)}"
            )
        rows.set_order(order)
        status = learn_block(self, rows, &block)
        return None if status == LEARNED else (REASONS[status], block.failed)

    def predict(self, X, bint linked=True):
        """Predictions for validated rows, dense or CSR, or their scores; None if one is not finite."""
        return predict_rows(self, open_rows(X), linked)

    def predict_fast(self, dict attributes, X, bint linked=True):
        """The same for an array of numbers or CSR without validation; None also if that is not safe."""
        cdef Rows rows = fitting_rows(self, attributes, X)
        return None if rows is None else predict_rows(self, rows, linked)

    cpdef bint ready(self, dict attributes):
        """Whether the learner may be called without validation of the parameters of the estimator."""
        return not self.busy and parameters_unchanged(attributes) and not under_way(attributes)

    @property
    def progressive(self):
        """Whether the scores of rows while they are learned are those of a prediction just before; see `Foresight`."""
        return self.foresight() == PROGRESSIVE

    @property
    def predictive(self):
        """Whether those of `score_row` are."""
        return self.foresight() != NONE

    cdef Foresight foresight(self) noexcept:
        return NONE

    def learn_fast(self, dict attributes, X, y=None, sample_weight=None, double[:, ::1] scores=None):
        """Learn a block, or one row, without validation; False if that is not safe, and nothing was learned.

        It is safe if X, y and the weights are arrays of numbers (X may be CSR) or lists, of the right shapes, the
        parameters have not changed since they were validated, and there are no feature names to compare. Values that
        are not finite are found in the predictions, as all weights are positive.

        `scores`, if given, receives the `n_scores` scores of each row before it was learned.
        """
        cdef Rows rows
        cdef View targets
        cdef Block block
        if not self.ready(attributes):
            return False
        rows = fitting_rows(self, attributes, X)
        if rows is None:
            return False
        block.y, block.n_targets, block.scores = NULL, self.n_targets, NULL
        if scores is not None:
            if self.foresight() != PROGRESSIVE or scores.shape[0] != rows.n_rows or scores.shape[1] != self.n_scores:
                return False
            block.scores = &scores[0, 0]
        if self.target_ndim == 0:
            return learn_weighted(self, rows, &block, sample_weight)
        y = float64_array(y, &targets)
        if y is None or targets.ndim != self.target_ndim or targets.shape[0] != rows.n_rows or \
                (targets.ndim == 2 and targets.shape[1] != self.n_targets):
            return False
        block.y = <const double*> targets.at
        return learn_weighted(self, rows, &block, sample_weight)

    # --- a call -------------------------------------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest, bint to_learn) noexcept:
        """The length that the vectors of a workspace must have, to learn rows or to predict them."""
        return 0

    cdef int check(self, Rows rows) except -1:
        """Check the width of rows that are learned or predicted, and that the learner is complete."""
        cdef Py_ssize_t width = row_width(self)
        if rows.n_columns != width:
            check_columns(rows.n_columns, width)
        if self.row_map is not None and self.row_map.n_outputs != self.n_features:
            raise ValueError(f"rows must be mapped to {self.n_features} columns; got {self.row_map.n_outputs}")
        if self.traits & DENSE and rows.indices != NULL:
            raise ValueError("X must be a dense array; got a sparse matrix")
        return 0

    cdef int begin(self, Rows rows, bint complete) except -1:
        """Back up the state: all of it if `complete`, otherwise at least what these rows can change; then apply
        settings, and change what has to change before the rows. An error after the backup undoes the call."""
        self.interrupt, self.work_left = None, work_between_checks()
        self.fields.save()
        former = UNCHANGED
        if self.next_settings is not None:
            former = self.exchange(None)
            self.apply(**self.next_settings)
        self.former = former
        return 0

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        """Learn row after row; returns the `Status` of the first row that cannot be learned, or LEARNED."""
        return learn_rows_of(self, rows, block, self.row_map, call_learn_row)

    # The parts of the loop, also for loops over several learners:

    cdef void prefetch(self, Rows rows, Py_ssize_t i, void* scorer) noexcept nogil:
        """Prefetch the memory that sparse row i needs, to be learned or, by a scorer, predicted."""

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        """About how many numbers are processed to learn a row of n values."""
        return n

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        """Learn a row of positive weight with its targets, so that it can be undone; returns a `Status`.

        `scores`, if not NULL, receives its `n_scores` scores before it was learned.
        """
        return LEARNED

    cdef int learn_rows(self, const Row* rows, Py_ssize_t n, Workspace* work, const double** y, const double* weight,
                        double* scores, Py_ssize_t stride, Py_ssize_t* failed) noexcept nogil:
        """The same for n rows, one after the other; their scores go `stride` numbers apart."""
        cdef Py_ssize_t i
        cdef int status
        for i in range(n):
            failed[0] = i
            status = self.learn_row(&rows[i], work, y[i], weight[i], scores + i * stride)
            if status != LEARNED:
                return status
        return LEARNED

    cdef int check_all(self) noexcept nogil:
        """After the last row: check that everything is finite that was not checked row by row."""
        return LEARNED

    @property
    def cumulative_loss(self):
        """See `loss_of`."""
        return loss_of(self)

    cdef int undo(self) except -1:
        """Restore what `begin` has backed up."""
        if self.former is not UNCHANGED:
            self.exchange(self.former)
        self.fields.restore()
        self.former = None
        return 0

    # --- undoing a call that has returned -----------------------------------------------------------------------

    def savepoint(self):
        """A savepoint, also of members: until `commit`, `rollback` undoes the next call, and drops settings to come."""
        check_idle(self.busy)
        for each in (self, *self.members):
            (<AtomicLearner> each).n_savepoints += 1
        return self.n_calls

    def rollback(self, Py_ssize_t n_calls):
        """Undo everything since the savepoint was made, which must be at most one call that learned."""
        claim(self)
        try:
            if self.n_calls > n_calls + 1:
                raise RuntimeError(
                    "at most one call that learned can be undone; got "
                    f"{self.n_calls - n_calls} calls since the savepoint was made"
                )
            if self.n_calls > n_calls:
                undo_call(self)
            self.n_calls = n_calls
            for each in (self, *self.members):
                (<AtomicLearner> each).next_settings = None
        finally:
            release(self, len(self.members))

    def commit(self):
        """Discard a savepoint; with the last one, discard the backup, and apply settings that no call has applied."""
        cdef AtomicLearner each
        for each in (self, *self.members):
            each.n_savepoints -= 1
            if each.n_savepoints == 0:
                coming, each.former, each.next_settings = each.next_settings, None, None
                if coming is not None:
                    each.configure(**coming)

    cdef dict exchange(self, dict others):
        """The objects that settings replace, by name, which numbers in `fields` are not; replaced by others, if any."""
        return {}

    # --- predictions --------------------------------------------------------------------------------------------

    cdef object scorer(self, Rows rows, bint linked):
        """What `score_row` predicts rows by, if it is not the learner itself."""
        return None

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        """The `n_scores` scores of a row, by the scorer if that is not NULL."""

    cdef void link_row(self, double* scores, double* out) noexcept nogil:
        """If it `LINKS`: compute the predictions of a row from its scores, which are in a workspace's first vector."""
        out[0] = self.loss.link(scores[0])


cdef object predict_rows(AtomicLearner learner, Rows rows, bint linked, scorer=None):
    """Predictions of rows, or their scores unless `linked`, by this scorer or its own; None if one is not finite."""
    cdef Workspace work
    cdef double* out
    cdef bint finite
    cdef RowMap row_map
    cdef Py_ssize_t width = n_outputs(learner, linked), n = rows.n_rows * width
    learner.check(rows)
    scorer = learner.scorer(rows, linked) if scorer is None else scorer
    for row_map in learner.maps:
        row_map.open(rows)
    outputs = empty_float64(n, &out)
    make_workspace(&work, learner.vector_length(widest(learner, rows), False))
    with nogil:
        finite = score_rows_of(learner, rows, NULL if scorer is None else <void*> scorer, &work, linked, out)
        free_workspace(&work)
        finite = finite and ob_nonfinite(out, n) == 0
    error = interruption(learner, False)
    if error is not None:
        raise error
    if not finite:
        return None
    return outputs if learner.output_ndim == 1 else outputs.reshape(-1, width)


cdef object interruption(AtomicLearner learner, bint to_learn):
    """The exception that ended a loop over rows for a reason other than a row, a KeyboardInterrupt or MemoryError.

    It was raised by a loss in Python, which then forgets it, or to learn by a signal or in a step.
    """
    cdef AtomicLearner each
    cdef Py_ssize_t k
    error = None
    for k in range(-1, len(learner.members)):
        each = learner if k < 0 else learner.members[k]
        if to_learn and each.interrupt is not None:
            error = each.interrupt
        if each.loss is not None and each.loss.interrupt is not None:
            error, each.loss.interrupt = each.loss.interrupt, None
    return error


cdef Rows fitting_rows(AtomicLearner learner, dict attributes, X):
    """The rows of X if they need no validation and have the right number of features; None otherwise.

    Names of features were compared, if there are any, before X was opened as `Rows`.
    """
    cdef Rows rows = X if isinstance(X, Rows) else try_rows(X) if unnamed(attributes) else None
    if rows is None or rows.n_rows == 0 or rows.n_columns != row_width(learner):
        return None
    return None if learner.traits & DENSE and rows.indices != NULL else rows


cdef bint learn_weighted(AtomicLearner learner, Rows rows, Block* block, sample_weight) except -1:
    """Learn a block with weights that are not validated; False if nothing was learned."""
    cdef View weights
    block.sample_weight = NULL
    if sample_weight is not None:
        sample_weight = float64_array(sample_weight, &weights)
        if sample_weight is None or weights.ndim != 1 or weights.shape[0] != rows.n_rows or \
                not all_positive(<const double*> weights.at, rows.n_rows):
            return False
        block.sample_weight = <const double*> weights.at
    return learn_block(learner, rows, block) == LEARNED


cdef Py_ssize_t widest(AtomicLearner learner, Rows rows) noexcept:
    """Most values in a row that is learned: of these rows, or of their images."""
    cdef RowMap row_map
    cdef Py_ssize_t most = rows.widest
    for row_map in learner.maps:
        most = max(most, row_map.shape(rows).widest)
    return most
