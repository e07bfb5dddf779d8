"""Several learners of the same rows: each row is read once and learned by all of them, divided among threads."""

import copy

import numpy as np

cimport cython
from cpython.pyport cimport PY_SSIZE_T_MAX
from libc.math cimport NAN, isfinite
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport ADAPTIVE, CHUNKWISE, Workspace
from onlinebregman._kernels.learners.atomic cimport (
    PROGRESSIVE, AtomicLearner, Block, Foresight, links, loss_of, n_outputs, predict_row, widest
)
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.run cimport LEARNED, LOSS_OVERFLOWED
from onlinebregman._kernels.learners.team cimport Team
from onlinebregman._kernels.losses.loss import NumPyLoss
from onlinebregman._kernels.ops.pointers cimport PyTuple_GET_ITEM
from onlinebregman._kernels.rows.chunk cimport Chunk
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows


cdef class MultiLearner(Team):
    """Learners of the same rows that are one model, with a target for each learner; its loss is the sum of theirs.

    Parameters
    ----------
    learners : list of AtomicLearner
        Of one score and one target each.
    """

    def __cinit__(self, learners, dict state=None):
        self.separate = True
        self.least_divided = 0 if type(self) is MultiLearner else PY_SSIZE_T_MAX
        self.share_map()
        if any([learner.n_scores != 1 for learner in self.learners]):
            raise ValueError(f"learners must have one score each; got {[each.n_scores for each in self.learners]}")
        if all([(<AtomicLearner> learner).traits & CHUNKWISE for learner in self.learners]):
            self.traits |= CHUNKWISE
        self.n_targets = self.n_scores = self.n
        self.n_linked = self.n * n_outputs(self.learners[0], True)
        self.other_n_targets = 1
        self.target_ndim = self.output_ndim = 2

    cdef int share_map(self) except -1:
        """Learn rows by the map of all learners."""
        cdef AtomicLearner learner = self.learners[0]
        self.n_features, self.row_map, self.maps = learner.n_features, learner.row_map, learner.maps
        for learner in self.learners:
            if learner.row_map is not self.row_map:
                raise ValueError("learners must share one map of rows; got different ones")
        self.chunk = Chunk((self.row_map,))
        return 0

    @property
    def cumulative_losses(self):
        """Cumulative loss of each learner, shape (n_learners,)."""
        return np.array([learner.cumulative_loss for learner in self.learners])

    @property
    def cumulative_loss(self):
        return float(self.cumulative_losses.sum())

    @property
    def t(self):
        """See `Learner.t`; learners of later classes have learned fewer rows."""
        return max([learner.t for learner in self.learners])

    @property
    def largest_weight(self):
        """See `Learner.largest_weight`."""
        return max([learner.largest_weight for learner in self.learners])

    @property
    def all_weight_one(self):
        """See `Learner.all_weight_one`."""
        return all([learner.all_weight_one for learner in self.learners])

    @property
    def coef(self):
        return np.vstack([learner.coef for learner in self.learners])

    @property
    def intercept(self):
        return np.hstack([learner.intercept for learner in self.learners])

    @property
    def features(self):
        """The features that all learners with a matrix learn; None: the values of rows."""
        return getattr(self.learners[0], "features", None)

    @property
    def failure(self):
        """See `Learner.failure`."""
        return next((learner.failure for learner in self.learners if learner.failure is not None), None)

    def map_by(self, RowMap row_map):
        """See `AtomicLearner.map_by`; the learners share the map."""
        for learner in self.learners:
            learner.map_by(row_map)
        self.share_map()

    def with_classes(self, n_classes, numbers, Learner prior):
        """Learners of more classes: these for the classes `numbers`, and for each new one a copy of `prior`.

        The learners, and the map of rows, are those of this object.
        """
        known = dict(zip(numbers, self.learners, strict=True))
        more = type(self)([known[k] if k in known else self.newcomer(prior) for k in range(n_classes)])
        more.n_jobs = self.n_jobs
        return more

    cdef Learner newcomer(self, Learner prior):
        """The learner of a new class, whose first row is the next one."""
        cdef Learner learner = copy.deepcopy(prior)
        learner.map_by(self.row_map)
        return learner

    def joined(self, learners, row_map):
        """See `SecondOrderLearner.joined`."""
        of_each = zip(self.learners, *[each.learners for each in learners], strict=True)
        return type(self)([first.joined(others, row_map) for first, *others in of_each])

    def configure(self, **settings):
        """The same for all learners."""
        for learner in self.learners:
            learner.configure(**settings)

    # --- predictions: see `AtomicLearner`; those of all learners are side by side -------------------------------

    cdef object scorer(self, Rows rows, bint linked):
        cdef Scorers scorers = Scorers()
        scorers.linked = linked and links(self.learners[0])
        scorers.each = tuple([(<AtomicLearner> learner).scorer(rows, linked) for learner in self.learners])
        return scorers

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        cdef bint linked = scorer != NULL and (<Scorers> scorer).linked
        cdef Py_ssize_t k, width = n_outputs(self, linked) // self.n
        for k in range(self.n):
            if predict_row(<AtomicLearner> self.parts[k].learner, scorer_of(scorer, k), row, work, linked, scores) != 0:
                scores[0] = NAN  # links of infinite scores may be finite
            scores += width

    # --- a call: see `AtomicLearner` ----------------------------------------------------------------------------

    cdef Foresight foresight(self) noexcept:
        cdef AtomicLearner learner
        cdef Foresight least = PROGRESSIVE
        for learner in self.learners:
            least = min(least, learner.foresight())
        return least

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef Py_ssize_t length
        Team.begin(self, rows, complete)
        if self.n == 1:  # by itself, and not divided
            return 0
        length = self.vector_length(widest(self, rows), True)
        self.lockstep.gather(self.learners, 0, self.n, length)
        return self.divide(rows, length)

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        self.separate, self.chunk.n_targets = block.n_targets > 1, block.n_targets
        return Team.loop(self, rows, block) if self.n_groups == 1 else self.learn_chunks(rows, block)

    cdef const double* targets_of(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        return self.chunk.y + i * self.chunk.n_targets + k * self.separate

    cdef int combine(self, Py_ssize_t i) noexcept nogil:
        """The scores of the model are those of all learners."""
        cdef double* scores = self.block.scores
        if scores != NULL:
            memcpy(scores + self.chunk.number[i] * self.n, &self.chunk_scores[i * self.n], self.n * sizeof(double))
        return LEARNED

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return self.n * (<AtomicLearner> self.parts[0].learner).effort(n)

    cdef void prefetch(self, Rows rows, Py_ssize_t i, void* scorer) noexcept nogil:
        cdef Py_ssize_t q
        for q in range(self.n):
            (<AtomicLearner> self.parts[q].learner).prefetch(rows, i, scorer_of(scorer, q))

    cdef int check_all(self) noexcept nogil:
        cdef Py_ssize_t k
        cdef int status = Team.check_all(self)
        cdef double total = 0.0
        for k in range(self.n):
            total += loss_of(<AtomicLearner> self.parts[k].learner)
        return status if status != LEARNED or isfinite(total) else LOSS_OVERFLOWED

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        """Learn the row with all learners: in lockstep if all of them can, otherwise one after the other."""
        cdef Py_ssize_t k
        cdef int status
        if self.n == self.lockstep.n:
            for k in range(self.n):
                self.lockstep.y[k] = y[self.lockstep.index[k] * self.separate]
            status = self.lockstep.learn_row(row, weight, &k)
            for k in range(self.n if scores != NULL else 0):
                scores[self.lockstep.index[k]] = self.lockstep.a[k]
            return status
        for k in range(self.n):
            status = (<AtomicLearner> self.parts[k].learner).learn_row(
                row, work, y + k * self.separate, weight, NULL if scores == NULL else scores + k
            )
            if status != LEARNED:
                return status
        return LEARNED

    cdef int learn_rows(self, const Row* rows, Py_ssize_t n, Workspace* work, const double** y, const double* weight,
                        double* scores, Py_ssize_t stride, Py_ssize_t* failed) noexcept nogil:
        """Learners with a matrix learn all rows, one learner after the other; of refused rows the first one counts."""
        cdef Py_ssize_t i, k, n_rows = n
        cdef int status, first = LEARNED
        if not self.traits & CHUNKWISE:
            return AtomicLearner.learn_rows(self, rows, n, work, y, weight, scores, stride, failed)
        for k in range(self.n):
            status = (<AtomicLearner> self.parts[k].learner).learn_rows(
                rows, n, work, y, weight, scores + k, stride, failed
            )
            if status != LEARNED:
                first, n = status, failed[0]
            for i in range(n_rows):
                y[i] += self.separate
        failed[0] = n
        return first


@cython.final
@cython.auto_pickle(False)
cdef class Scorers:
    """What several learners predict rows by."""

    cdef tuple each
    cdef bint linked


cdef inline void* scorer_of(void* scorers, Py_ssize_t k) noexcept nogil:
    """The scorer of learner k; NULL: the learner itself."""
    cdef void* scorer = NULL if scorers == NULL else PyTuple_GET_ITEM(<void*> (<Scorers> scorers).each, k)
    return NULL if scorer == <void*> None else scorer


cdef AtomicLearner sole_learner(AtomicLearner learner):
    """The only learner of a MultiLearner of one score; otherwise the learner itself."""
    return learner.learners[0] if type(learner) is MultiLearner and learner.n_scores == 1 else learner


cdef bint learns_chunks(AtomicLearner learner):
    """Whether a learner learns a whole chunk at once, so that its matrix, or its many weights, stay in the cache."""
    cdef Learner each
    if learner.traits & CHUNKWISE:
        return True
    if learner.row_map is None or learner.row_map.n_outputs <= learner.row_map.n_features:
        return False
    for each in learner.learners if isinstance(learner, MultiLearner) else [learner]:
        if not each.traits & ADAPTIVE or isinstance(each.loss, NumPyLoss):  # others may call Python
            return False
    return True
