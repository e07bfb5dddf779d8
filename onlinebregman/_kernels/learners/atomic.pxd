from libc.math cimport NAN

from onlinebregman._kernels.geometries.geometry cimport LINKS, Workspace
from onlinebregman._kernels.learners.run cimport INTERRUPTED, LEARNED
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.ops.vector cimport OB_PREFETCH
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows, fetch_mapped, fetch_to_learn, row_number, shape_of


cdef struct Block:            # the arguments of a call besides its rows, and its workspace
    const double* y           # targets, `n_targets` for each row
    Py_ssize_t n_targets
    const double* sample_weight  # NULL: 1 for each
    double* scores            # NULL, or an array for each row's scores before it is learned
    Py_ssize_t failed         # number of the row that could not be learned
    Workspace work


cdef inline const double* targets_in(const Block* block, Py_ssize_t i) noexcept nogil:
    """The targets of row i; NULL if there are none."""
    return NULL if block.y == NULL else block.y + i * block.n_targets


cdef enum Foresight:          # which scores equal, bit for bit, those of a prediction just before
    NONE
    SCORED                    # those of `score_row`, which does not call Python
    PROGRESSIVE               # also those of rows while they are learned


cdef class AtomicLearner(Stateful):
    cdef tuple members        # the other learners that its calls change, and those that these consist of
    cdef public Loss loss     # used by the next call; None: it has no loss of its own
    cdef dict next_settings   # settings that the next call applies after its backup, see `configure`; or None
    cdef dict former          # the objects that they replaced in the last call; None before it is backed up
    cdef readonly Py_ssize_t n_features  # columns of what is learned: of rows, or of their images
    cdef Py_ssize_t n_targets, other_n_targets  # numbers of targets that a row may have
    cdef int target_ndim      # 0: no targets; 1: one for each row; 2: `n_targets`
    cdef readonly Py_ssize_t n_scores  # number of scores of a row
    cdef Py_ssize_t n_linked, n_unlinked  # numbers of a row's predictions, and of their scores; 0: n_scores
    cdef int output_ndim      # 1: one prediction for each row; 2: as many as `n_outputs`
    cdef long busy            # whether a thread is learning
    cdef Py_ssize_t n_savepoints   # number of savepoints that are not committed yet
    cdef Py_ssize_t n_calls   # number of calls that have learned
    cdef readonly Py_ssize_t n_changes  # number of calls that have learned or were undone
    cdef Py_ssize_t work_left  # numbers that may be processed before the next look at the clock
    cdef double checked_at    # when signals were checked for, in seconds
    cdef object interrupt     # the exception by which a signal, or a step, ended the loop
    cdef int traits           # a set of `Trait`
    cdef const double* total_loss  # where `loss_of` finds it, or NULL
    cdef readonly RowMap row_map  # whose images of rows are learned; None: rows are learned as they come
    cdef tuple maps           # of the learner, or of the learners that it consists of

    cpdef bint ready(self, dict attributes)
    cdef Foresight foresight(self) noexcept
    cdef Py_ssize_t vector_length(self, Py_ssize_t widest, bint to_learn) noexcept
    cdef int check(self, Rows rows) except -1
    cdef int begin(self, Rows rows, bint complete) except -1
    cdef int loop(self, Rows rows, Block* block) noexcept nogil
    cdef void prefetch(self, Rows rows, Py_ssize_t i, void* scorer) noexcept nogil
    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil
    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil
    cdef int learn_rows(self, const Row* rows, Py_ssize_t n, Workspace* work, const double** y, const double* weight,
                        double* scores, Py_ssize_t stride, Py_ssize_t* failed) noexcept nogil
    cdef int check_all(self) noexcept nogil
    cdef object scorer(self, Rows rows, bint linked)
    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil
    cdef void link_row(self, double* scores, double* out) noexcept nogil
    cdef int undo(self) except -1
    cdef dict exchange(self, dict others)


cdef dict REASONS
cdef int claim(AtomicLearner learner) except -1
cdef void release(AtomicLearner learner, Py_ssize_t n) noexcept
cdef Rows fitting_rows(AtomicLearner learner, dict attributes, X)
cdef Py_ssize_t widest(AtomicLearner learner, Rows rows) noexcept
cdef int learn_block(AtomicLearner learner, Rows rows, Block* block) except -1
cdef object predict_rows(AtomicLearner learner, Rows rows, bint linked, scorer=*)
cdef bint signalled(AtomicLearner learner) noexcept nogil


cdef inline Py_ssize_t row_width(AtomicLearner learner) noexcept nogil:
    """The number of columns of rows, before they are mapped."""
    return learner.n_features if learner.row_map is None else learner.row_map.n_features


cdef inline Py_ssize_t n_outputs(AtomicLearner learner, bint linked) noexcept nogil:
    """Number of predictions, or scores, of a row."""
    return (learner.n_linked if linked else learner.n_unlinked) or learner.n_scores


cdef inline double loss_of(AtomicLearner learner) noexcept nogil:
    """The sum of weight * loss over all rows, each predicted before it was learned; 0 without a loss."""
    return 0.0 if learner.total_loss == NULL else learner.total_loss[0]


cdef inline bint interrupted(AtomicLearner learner, Py_ssize_t work) noexcept nogil:
    """Whether a signal has raised an exception; the clock is looked at whenever enough numbers have been processed."""
    learner.work_left -= work + 1
    return learner.work_left < 0 and signalled(learner)


ctypedef int (*LearnRow)(AtomicLearner learner, const Row* row, Workspace* work, const double* y, double weight,
                         double* scores) noexcept nogil


cdef inline int call_learn_row(AtomicLearner learner, const Row* row, Workspace* work, const double* y, double weight,
                               double* scores) noexcept nogil:
    return learner.learn_row(row, work, y, weight, scores)


cdef inline int learn_rows_of(AtomicLearner learner, Rows rows, Block* block, RowMap row_map,
                              LearnRow learn_row) noexcept nogil:
    """The loop over rows: see `AtomicLearner.loop`. A `learn_row` known to the compiler is inlined.

    Rows of weight 0 are not learned; their scores are NaN.
    """
    cdef Py_ssize_t k, i, q, effort = learner.effort(shape_of(row_map, rows).widest)
    cdef int status
    cdef double weight
    cdef double* scores
    cdef Row row
    for k in range(rows.n_rows):
        i = block.failed = row_number(rows, k)
        if rows.order != NULL:
            rows.prefetch_coming(k)
            if block.n_targets == 1 and k + rows.lead < rows.n_rows:
                OB_PREFETCH(block.y + rows.order[k + rows.lead])
        if rows.indices != NULL and k + 1 < rows.n_rows:
            learner.prefetch(rows, row_number(rows, k + 1), NULL)
        if interrupted(learner, effort):
            return INTERRUPTED
        weight = 1.0 if block.sample_weight == NULL else block.sample_weight[i]
        fetch_to_learn(row_map, rows, i, weight, &row)
        scores = NULL if block.scores == NULL else block.scores + i * learner.n_scores
        if weight == 0:
            for q in range(learner.n_scores if scores != NULL else 0):
                scores[q] = NAN
            continue
        status = learn_row(learner, &row, &block.work, targets_in(block, i), weight, scores)
        if status != LEARNED:
            return status
    return LEARNED


cdef inline bint links(AtomicLearner learner) noexcept nogil:
    """Whether its predictions are not its scores."""
    return learner.traits & LINKS and (learner.loss is None or not learner.loss.linear)


cdef inline double predict_row(AtomicLearner learner, void* scorer, const Row* row, Workspace* work, bint linked,
                               double* out) noexcept nogil:
    """Scores of a row, or links of them; returns 0 if these are of finite scores, otherwise NaN."""
    cdef double total = 0.0
    cdef Py_ssize_t k
    if not linked:
        learner.score_row(scorer, row, work, out)
        return 0.0
    learner.score_row(scorer, row, work, work.vectors)
    for k in range(learner.n_scores):
        total += 0.0 * work.vectors[k]  # links of infinite scores may be finite
    learner.link_row(work.vectors, out)
    return total


cdef inline bint score_rows_of(AtomicLearner learner, Rows rows, void* scorer, Workspace* work, bint linked,
                               double* out) noexcept nogil:
    """The loop over rows that are predicted; False if scores of predictions are not finite."""
    cdef Py_ssize_t i, width = n_outputs(learner, linked)
    cdef double total = 0.0
    cdef Row row
    linked = linked and links(learner)
    for i in range(rows.n_rows):
        fetch_mapped(learner.row_map, rows, i, &row)
        if rows.indices != NULL and i + 1 < rows.n_rows:
            learner.prefetch(rows, i + 1, scorer)
        total += predict_row(learner, scorer, &row, work, linked, out + i * width)
    return total == 0
