"""Base classes of all learners: a call learns all of its rows or none, in one thread at a time, and can be undone.

A call claims the learner (one thread at a time), backs up its state (`begin`), changes what has to change before the
rows (`prepare`), learns row after row (`loop`), keeps the result (`keep`) or restores the backup (`undo`), and releases
the learner. Each kind of learner implements these.

Numbers that a learner declares (see `State`) are undone, copied, pickled and written to model files by the base class.
What is not declared, such as weights of which few change, a learner handles itself. Settings are applied by the call,
after the backup, so that undoing it undoes them.

If a row would change weights that are not backed up, the call is undone and repeated with all weights backed up.
"""

import numpy as np

from libc.math cimport fabs, isfinite

from onlinebregman._kernels.geometries.geometry cimport DENSE, Workspace, free_workspace, make_workspace
from onlinebregman._kernels.learners.state cimport (
    BAD_TARGET, FAILED, LEARNED, LEFT_DOMAIN, LOSS_OVERFLOWED, NEEDS_BACKUP, NEGATIVE, NOT_FINITE, OVERFLOWED, TOO_LARGE
)
from onlinebregman._kernels.learners.transaction cimport (
    WORK_BETWEEN_CHECKS, check_idle, parameters_unchanged, signal_raised, under_way, unnamed, work_between_checks
)
from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.arrays cimport View, empty_float64, float64_array
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows, open_rows, try_rows

cdef extern from "learners/claim.h":
    bint ob_claim(long* flag) noexcept nogil
    void ob_release(long* flag) noexcept nogil

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int timespec_get(timespec* at, int base)
    enum: TIME_UTC

cdef double SECONDS_BETWEEN_CHECKS = 0.01

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


cdef object reason(int status):
    """The reason why a row was refused, a key for the estimator's error message."""
    return REASONS[status]


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


cdef int learn_block(AtomicLearner learner, Rows rows, Block* block) except -1:
    """Learn all rows and return LEARNED, or learn none and return the `Status` that says why."""
    cdef int status
    cdef bint complete = False
    cdef RowMap row_map
    learner.claim()
    block.work.notes = NULL
    try:
        learner.check(rows)
        for row_map in learner.maps:
            row_map.open(rows)
        while True:
            for row_map in learner.maps:
                row_map.begin(rows)
            learner.begin(rows, complete)
            if block.work.notes == NULL:  # settings of the call may change the length
                make_workspace(&block.work, learner.vector_length(learner.widest(rows)))
            learner.prepare()
            with nogil:
                status = learner.loop(rows, block)
            for row_map in learner.maps:
                if status == LEARNED and not row_map.bounded():
                    status = TOO_LARGE
            error = learner.interruption()
            if error is None and status == LEARNED:
                error = signal_raised()  # not after the commit: who is told of an error would learn the rows again
            if status != LEARNED or error is not None:
                undo_call(learner, rows)
            if error is not None:
                if status != LEARNED and isinstance(error, Exception):
                    error.add_note(f"This was at row {block.failed}.")
                raise error
            if status == LEARNED:
                learner.keep(rows)
            if status != NEEDS_BACKUP:
                return status
            complete = True
    finally:
        free_workspace(&block.work)
        learner.release()


cdef int undo_call(AtomicLearner learner, Rows rows) except -1:
    """Undo the call: `undo`, and the same for the maps of rows."""
    cdef RowMap row_map
    learner.undo(rows)
    for row_map in learner.maps:
        row_map.undo()
    return 0


cdef bint signalled(AtomicLearner learner) noexcept nogil:
    """Whether a signal has raised an exception; checked if enough time has passed."""
    cdef timespec now
    cdef double seconds
    timespec_get(&now, TIME_UTC)
    seconds = now.tv_sec + 1e-9 * now.tv_nsec
    learner.work_left = WORK_BETWEEN_CHECKS
    if fabs(seconds - learner.checked_at) < SECONDS_BETWEEN_CHECKS:
        return False
    with gil:
        learner.checked_at, learner.interrupt = seconds, signal_raised()
        return learner.interrupt is not None


cdef class AtomicLearner(Stateful):
    """Base class: calls that learn, and undoing them; predictions; copies and files."""

    def __cinit__(self, *arguments, **more):
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
        self.claim()
        try:
            if self.n_savepoints:
                self.next_settings = {**(self.next_settings or {}), **settings}
            else:
                self.apply(**settings)
        finally:
            self.release()

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
        if not self.takes(block.n_targets) or (y is not None and targets.shape[0] != n * block.n_targets) or \
                (sample_weight is not None and sample_weight.shape[0] != n) or \
                (scores is not None and out.shape[0] != n * self.n_scores):
            raise ValueError(
                f"y, sample_weight and scores must have {self.n_targets}, 1 and {self.n_scores} numbers for each of "
                f"{n} rows; got shapes {np.shape(y)}, {np.shape(sample_weight)} and {np.shape(scores)}"
            )
        rows.set_order(order)
        status = learn_block(self, rows, &block)
        return None if status == LEARNED else (reason(status), block.failed)

    cdef bint takes(self, Py_ssize_t n_targets) noexcept:
        """Whether rows may come with this number of targets each."""
        return n_targets == self.n_targets

    def predict(self, X, bint linked=True):
        """Predictions for validated rows, dense or CSR, or their scores; None if one is not finite."""
        return self.predict_rows(open_rows(X), linked)

    def predict_fast(self, dict attributes, X, bint linked=True):
        """The same for an array of numbers or CSR without validation; None also if that is not safe."""
        cdef Rows rows = self.fitting_rows(attributes, X)
        return None if rows is None else self.predict_rows(rows, linked)

    cpdef bint ready(self, dict attributes):
        """Whether the learner may be called without validation of the parameters of the estimator."""
        return not self.busy and parameters_unchanged(attributes) and not under_way(attributes)

    @property
    def progressive(self):
        """See `scores_predict`."""
        return self.scores_predict()

    cdef bint scores_predict(self) noexcept:
        """Whether the scores of rows while they are learned equal, bit for bit, those of a prediction just before."""
        return False

    @property
    def predictive(self):
        """See `row_scores_predict`."""
        return self.row_scores_predict()

    cdef bint row_scores_predict(self) noexcept:
        """Whether `score_row` computes the scores of a prediction, without calling Python."""
        return self.scores_predict()

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
        rows = self.fitting_rows(attributes, X)
        if rows is None:
            return False
        block.y, block.n_targets, block.scores = NULL, self.n_targets, NULL
        if scores is not None:
            if not self.scores_predict() or scores.shape[0] != rows.n_rows or scores.shape[1] != self.n_scores:
                return False
            block.scores = &scores[0, 0]
        if self.target_ndim == 0:
            return self.learn_weighted(rows, &block, sample_weight)
        y = float64_array(y, &targets)
        if y is None or targets.ndim != self.target_ndim or targets.shape[0] != rows.n_rows or \
                (targets.ndim == 2 and targets.shape[1] != self.n_targets):
            return False
        block.y = <const double*> targets.at
        return self.learn_weighted(rows, &block, sample_weight)

    cdef bint learn_weighted(self, Rows rows, Block* block, sample_weight) except -1:
        """Learn a block with weights that are not validated; False if nothing was learned."""
        cdef View weights
        block.sample_weight = NULL
        if sample_weight is None:
            return learn_block(self, rows, block) == LEARNED
        sample_weight = float64_array(sample_weight, &weights)
        if sample_weight is None or weights.ndim != 1 or weights.shape[0] != rows.n_rows or \
                not all_positive(<const double*> weights.at, rows.n_rows):
            return False
        block.sample_weight = <const double*> weights.at
        return learn_block(self, rows, block) == LEARNED

    cdef Rows fitting_rows(self, dict attributes, X):
        """The rows of X if they need no validation and have the right number of features; None otherwise.

        Names of features were compared, if there are any, before X was opened as `Rows`.
        """
        cdef Rows rows = X if isinstance(X, Rows) else try_rows(X) if unnamed(attributes) else None
        if rows is None or rows.n_rows == 0 or rows.n_columns != row_width(self):
            return None
        return None if self.traits & DENSE and rows.indices != NULL else rows

    # --- a call -------------------------------------------------------------------------------------------------

    cdef Py_ssize_t widest(self, Rows rows) noexcept:
        """Most values in a row that is learned: of these rows, or of their images."""
        cdef RowMap row_map
        cdef Py_ssize_t widest = rows.widest
        for row_map in self.maps:
            widest = max(widest, row_map.shape(rows).widest)
        return widest

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest) noexcept:
        """The length that the vectors of the workspace must have."""
        return 0

    cdef int claim(self) except -1:
        if not ob_claim(&self.busy):
            check_idle(self.busy)
        return 0

    cdef void release(self) noexcept:
        ob_release(&self.busy)

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
        """Back up the state: all of it if `complete`, otherwise at least what these rows can change.

        Then settings are applied. Else the state stays, as it may raise after other learners of the rows have begun.
        """
        self.interrupt, self.work_left, self.former = None, work_between_checks(), None
        self.fields.save()
        if self.next_settings is not None:
            self.former = self.objects()
            self.apply(**self.next_settings)
        return 0

    cdef void prepare(self) noexcept:
        """Change what has to change before the rows are learned; called when all that can raise is done."""

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        """Learn row after row; returns the `Status` of the first row that cannot be learned, or LEARNED."""
        return learn_rows_of(self, rows, block, call_learn_row)

    # The parts of the loop, also for loops over several learners:

    cdef void look_ahead(self, Rows rows, Block* block, Py_ssize_t k) noexcept nogil:
        """Called before the k-th row is fetched, if rows are sparse or it `LOOKS_AHEAD`: prepare for the next ones."""
        if k + 1 < rows.n_rows:
            self.prefetch(rows, row_number(rows, k + 1))

    cdef void prefetch(self, Rows rows, Py_ssize_t i) noexcept nogil:
        """Prefetch the memory that row i needs."""

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        """About how many numbers are processed to learn a row of n values."""
        return n

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        """Learn a row with its targets, so that it can be undone; returns a `Status`.

        `scores`, if not NULL, receives its `n_scores` scores before it was learned (NaN if its weight is 0).
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
        """After the last row: check that everything is finite that was not checked row by row."""
        return LEARNED

    @property
    def cumulative_loss(self):
        """See `total_loss`."""
        return self.total_loss()

    cdef double total_loss(self) noexcept nogil:
        """The sum of weight * loss over all rows, each predicted before it was learned; 0 without a loss."""
        return 0.0

    cdef void score_row(self, const Row* row, Workspace* work, double* scores) noexcept nogil:
        """The `n_scores` scores of a row."""

    cdef int undo(self, Rows rows) except -1:
        """Restore what `begin` has backed up."""
        if self.former is not None:
            self.set_objects(self.former)
        self.fields.restore()
        return 0

    cdef void keep(self, Rows rows) noexcept:
        """Called when all rows have been learned."""
        self.n_calls += 1
        self.rows, self.next_settings = rows if self.n_savepoints else None, None

    cdef object interruption(self):
        """The exception that ended the loop for a reason other than a row: KeyboardInterrupt or MemoryError."""
        return self.interrupt

    # --- undoing a call that has returned -----------------------------------------------------------------------

    def savepoint(self):
        """A savepoint: until `commit`, `rollback` undoes the next call that learns, and drops settings to come."""
        check_idle(self.busy)
        self.n_savepoints += 1
        return self.n_calls

    def rollback(self, Py_ssize_t n_calls):
        """Undo everything since the savepoint was made, which must be at most one call that learned."""
        self.claim()
        try:
            if self.n_calls > n_calls + 1:
                raise RuntimeError(
                    "at most one call that learned can be undone; got "
                    f"{self.n_calls - n_calls} calls since the savepoint was made"
                )
            if self.n_calls > n_calls:
                undo_call(self, self.rows)
            self.next_settings, self.n_calls = None, n_calls
        finally:
            self.release()

    def commit(self):
        """Discard a savepoint; with the last one, discard the backup, and apply settings that no call has applied."""
        self.n_savepoints -= 1
        if self.n_savepoints == 0:
            coming, self.rows, self.former, self.next_settings = self.next_settings, None, None, None
            if coming is not None:
                self.configure(**coming)

    cdef dict objects(self):
        """The objects that settings replace, by name, which numbers in `fields` are not."""
        return {}

    cdef int set_objects(self, dict objects) except -1:
        """Replace them by a result of `objects`."""
        return 0

    # --- predictions --------------------------------------------------------------------------------------------

    cdef object predict_rows(self, Rows rows, bint linked):
        """Predictions of rows, or their scores unless `linked`; None if one is not finite."""
        cdef Workspace work
        cdef double* out
        cdef bint finite
        cdef Py_ssize_t n = rows.n_rows * self.n_outputs(linked)
        self.check(rows)
        scorer = self.scorer(rows)
        if self.row_map is not None:
            self.row_map.open(rows)
        outputs = empty_float64(n, &out)
        make_workspace(&work, self.scoring_length(self.widest(rows)))
        with nogil:
            finite = self.score_rows(rows, <void*> scorer, &work, linked, out) and ob_nonfinite(out, n) == 0
            free_workspace(&work)
        error = self.link_error()
        if error is not None:
            raise error
        return outputs if finite else None

    cdef object scorer(self, Rows rows):
        """What computes the scores of rows, if it is not the learner itself."""
        return None

    cdef Py_ssize_t n_outputs(self, bint linked) noexcept nogil:
        """Number of predictions, or scores, of a row."""
        return self.n_scores

    cdef Py_ssize_t scoring_length(self, Py_ssize_t widest) noexcept:
        """The length that the vectors of a workspace for predictions must have."""
        return self.vector_length(widest)

    cdef bint score_rows(self, Rows rows, void* scorer, Workspace* work, bint linked, double* out) noexcept nogil:
        """Compute predictions, or scores; False if scores of predictions are not finite."""
        return score_rows_of(self, rows, scorer, work, linked, out, call_score_row)

    cdef void prefetch_to_score(self, Rows rows, void* scorer, Py_ssize_t i) noexcept nogil:
        """Prefetch the memory that the scores of sparse row i need."""

    cdef void link_row(self, double* scores, double* out) noexcept nogil:
        """Compute the predictions of a row from its scores, which are in a workspace's first vector: here the same."""
        cdef Py_ssize_t k
        for k in range(self.n_scores):
            out[k] = scores[k]

    cdef object link_error(self):
        """The exception that a link in Python has raised, or None."""
        return None
