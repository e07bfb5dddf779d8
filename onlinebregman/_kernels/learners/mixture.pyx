"""Learners of the same rows, and a mixer of their scores: all in one pass, see `team`."""

import numpy as np

cimport cython
from cpython.pyport cimport PY_SSIZE_T_MAX
from libc.math cimport INFINITY, NAN
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.atomic cimport (
    NONE, PROGRESSIVE, AtomicLearner, Block, learn_rows_of, widest
)
from onlinebregman._kernels.learners.links cimport IDENTITY, find_probabilities, link_of, probability
from onlinebregman._kernels.learners.mixer cimport AT_ONCE, JUDGE, LEARN, Mixer
from onlinebregman._kernels.learners.multi_learner cimport learns_chunks, sole_learner
from onlinebregman._kernels.learners.run cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED, NOT_FINITE
from onlinebregman._kernels.learners.team cimport Part, Team
from onlinebregman._kernels.learners.transaction cimport Validated, unnamed
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.arrays cimport empty_float64
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows
from onlinebregman._kernels.rows.thresholds import ThresholdMap
from onlinebregman._kernels.rows.trees cimport Trees

MIN_PARALLEL_ROW = 512        # work of a row whose learners in lockstep are divided


cdef class MixtureLearner(Team):
    """Learners of the same number of features that learn the same rows, and a mixer of their scores.

    A call changes all learners or none.

    Parameters
    ----------
    learners : list of AtomicLearner
    mixer : Mixer
    targets_by_class : list, default=None
        For each learner an array of shape (n_classes, n_targets), its targets for the rows of each class, if y holds
        class numbers; of several labels, if y holds indicators, shape (2, n_labels), its target where a label is absent
        and where it is present; None: it learns y itself.
    links : list of {"identity", "logistic", "clipped"}, default=None
        Of experts that may also learn by themselves: how each one's score is mapped to a forecast, which the mixer
        learns. The forecasts equal, bit for bit, those of the experts just before the row.
    """

    cdef readonly Mixer mixer
    cdef readonly tuple targets_by_class
    cdef readonly tuple links
    cdef Trees trees          # that grow with the stream, from the residuals of the mixer; or None
    cdef list experts         # the estimators with these learners, if there are links
    cdef Validated bound      # see `set_experts`
    cdef tuple bound_experts
    cdef double[::1] targets  # of the rows of the chunk
    cdef double[:, ::1] by_label  # of several labels: the targets of each learner that has its own
    cdef bint several         # whether targets are indicators of several labels, if learners have their own
    cdef double[::1] predicted  # of rows that were predicted together: the scores of all of them, before the call
    cdef Py_ssize_t at        # the first of those of the next row
    cdef double[::1] forecasts  # to which links map the scores of a row

    def __cinit__(self, learners, Mixer mixer not None, targets_by_class=None, links=None, dict state=None):
        cdef AtomicLearner learner
        cdef Py_ssize_t k
        cdef const double[:, ::1] table
        self.mixer = mixer
        self.trees = next((each.bins.trees for each in self.maps if isinstance(each, ThresholdMap)), None)
        for each in (mixer, *mixer.members):
            (<Mixer> each).watched = self.trees is not None
        self.change((*self.learners, mixer))
        self.output_ndim = 2
        self.links = None if links is None else tuple(links)
        self.targets_by_class = (None,) * self.n if targets_by_class is None else tuple([
            None if each is None else np.array(each, dtype=np.float64).reshape(len(each), -1)
            for each in targets_by_class
        ])
        if len(self.targets_by_class) != self.n:
            raise ValueError(
                f"targets_by_class must have one entry for each of {self.n} learners; got {len(self.targets_by_class)}"
            )
        self.arguments = self.learners, mixer, self.targets_by_class, self.links
        self.n_targets = max(1, mixer.n_targets)
        own = any([table is not None for table in self.targets_by_class])
        self.several = own and mixer.target_ndim == 2
        self.target_ndim = 1 if own and not self.several else mixer.target_ndim
        self.n_scores = mixer.n_scores
        for k, learner in enumerate(self.learners):
            self.parts[k].chunkwise = learns_chunks(learner)
            if self.targets_by_class[k] is not None:
                table = self.targets_by_class[k]
                self.n_labels = self.n_labels if self.several else min(self.n_labels, table.shape[0])
                if table.shape[0] < 1 + self.several or table.shape[1] < learner.n_targets:
                    raise ValueError(
                        f"targets_by_class[{k}] must have {learner.n_targets} targets for each class; "
                        f"got shape ({table.shape[0]}, {table.shape[1]})"
                    )
                self.parts[k].targets_by_class, self.parts[k].n_targets = &table[0, 0], table.shape[1]
            elif learner.n_targets > self.n_targets:
                raise ValueError(f"targets_by_class[{k}] must be an array for {learner.n_targets} targets; got None")
        efforts = [(-learner.effort(0), k) for k, learner in enumerate(self.learners) if self.parts[k].chunkwise]
        for _, k in sorted(efforts):  # the order in which threads take them
            self.by_chunks[self.n_by_chunks] = k
            self.n_by_chunks += 1
        self.together = tuple([
            None if self.parts[k].chunkwise or self.parts[k].image != 0 else sole_learner(learner)
            for k, learner in enumerate(self.learners)
        ])
        self.n_unlinked, self.targets = self.width, np.empty(self.n_targets)
        self.least_divided = MIN_PARALLEL_ROW if links is None else PY_SSIZE_T_MAX
        self.forecasts = np.empty(mixer.n_features)
        if self.links is not None:
            self.link()
        elif self.width != mixer.n_features:
            raise ValueError(f"learners must have {mixer.n_features} scores, as the mixer expects; got {self.width}")

    cdef int link(self) except -1:
        """Set the links of the learners."""
        cdef Py_ssize_t k
        cdef tuple known = ("logistic", "clipped", "identity")[:2 if self.mixer.n_features > self.n else 3]
        if not len(self.links) == self.width == self.n or self.mixer.n_features not in (self.n, 2 * self.n):
            raise ValueError(
                f"links and forecasts must be those of {self.n} learners of one score; "
                f"got {len(self.links)} links and {self.mixer.n_features} forecasts"
            )
        self.n_unlinked = 0  # numbers, or probabilities of both classes
        for k in range(self.n):
            self.parts[k].link = link_of(self.links[k], known)
            self.n_unlinked += 1 if self.parts[k].link == IDENTITY else 2

    @property
    def cumulative_loss(self):
        return self.mixer.cumulative_loss

    def set_experts(self, list experts not None, Validated bound not None, bound_experts):
        """Set the estimators with these learners, and what must still be the same for `ready`, a copy of which is not.

        Parameters
        ----------
        experts : list
            As the estimator holds it.
        bound : Validated
            Its attributes with this list and the mixer.
        bound_experts : sequence of Validated
            For each expert the attributes with its learner, and with other ways to change a row.
        """
        self.experts, self.bound, self.bound_experts = experts, bound, tuple(bound_experts)
        if not len(experts) == len(self.bound_experts) == self.n:
            raise ValueError(f"experts must be {self.n}, one for each learner; got {len(experts)}")

    cpdef bint ready(self, dict attributes):
        """Whether the learners are those of the estimator, or still those of its experts, and all of them are ready."""
        cdef AtomicLearner learner
        cdef dict own
        cdef Py_ssize_t k
        if self.links is not None:  # experts may have learned elsewhere in between, or have got other learners
            if self.bound is None or not self.bound.are_those_of(attributes) or len(self.experts) != self.n:
                return False
            for k in range(self.n):
                learner, own = self.learners[k], vars(self.experts[k])
                if not (<Validated> self.bound_experts[k]).are_those_of(own) or not unnamed(own) or \
                        not learner.ready(own) or learner.foresight() == NONE:
                    return False
        return Team.ready(self, attributes)

    # --- entry points -------------------------------------------------------------------------------------------

    def predict_fast(self, dict attributes, X, bint linked=True):
        """See `AtomicLearner.predict_fast`; None also if experts are others than those that learned last."""
        if self.links is not None and not self.ready(attributes):
            return None
        return Team.predict_fast(self, attributes, X, linked)

    # --- predictions: see `AtomicLearner` -----------------------------------------------------------------------

    cdef object scorer(self, Rows rows, bint linked):
        cdef Blend blend = Blend()
        blend.rows, blend.linked = rows, linked
        blend.memory = empty_float64(self.width + self.n_unlinked + self.mixer.buffer_size(), &blend.scores)
        blend.forecasts = blend.scores if self.links is None else blend.scores + self.width
        self.mixer.weigh(blend.forecasts + self.n_unlinked)
        return blend

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        cdef double* own = (<Blend> scorer).scores
        cdef double* forecasts = (<Blend> scorer).forecasts
        if self.score((<Blend> scorer).rows, row, work, own) >= 0:  # the probabilities of its scores might be finite
            scores[0] = NAN
        elif not (<Blend> scorer).linked:
            self.forecast(own, scores)
        else:
            if self.links is not None:
                self.forecast(own, forecasts)
            self.mixer.mix(forecasts, scores, forecasts + self.n_unlinked)

    cdef Py_ssize_t score(self, Rows rows, const Row* fetched, Workspace* work, double* scores) noexcept nogil:
        """Score a row by all learners; returns one whose scores are not finite, or -1."""
        cdef Py_ssize_t j, k, refusing = -1
        cdef double* own
        cdef Row row
        for j in range(self.chunk.n_images):
            row = fetched[0]
            if self.chunk.maps[j] != <void*> None:
                (<RowMap> self.chunk.maps[j]).map_row(rows, &row)
            for k in range(self.n):
                if self.parts[k].image == j:
                    own = scores + self.parts[k].start
                    (<AtomicLearner> self.parts[k].learner).score_row(NULL, &row, work, own)
                    if ob_nonfinite(own, self.parts[k].n_scores) != 0:
                        refusing = k
        return refusing

    # --- a call: see `AtomicLearner`; each learner can undo its part ---------------------------------------------

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef Py_ssize_t length = self.vector_length(widest(self, rows), True)
        Team.begin(self, rows, complete)
        self.bind(length)
        self.divide(rows, length)
        if self.targets.shape[0] < self.chunk.capacity * self.n_targets:
            self.targets = np.empty(self.chunk.capacity * self.n_targets)
        if self.several and (self.by_label is None or self.by_label.shape[1] < self.targets.shape[0]):
            self.by_label = np.empty((self.n, self.targets.shape[0]))
        self.predicted = np.empty(rows.n_rows * self.width) if self.mixer.delayed else None
        return 0

    cdef int bind(self, Py_ssize_t length) except -1:
        """Divide the learners without a matrix into those that learn the first image in lockstep, and the others.

        Experts whose scores while they learn are not exactly predictions are scored in a separate pass.
        """
        cdef Py_ssize_t k
        self.lockstep.gather(self.together, 0, self.n, length)
        self.n_rowwise = 0
        for k in range(self.n):
            if self.links is not None:
                self.parts[k].scored_before = (<AtomicLearner> self.parts[k].learner).foresight() != PROGRESSIVE
            if not (self.parts[k].chunkwise or self.lockstep.has(k)):
                self.rowwise[self.n_rowwise] = k
                self.n_rowwise += 1
        return 0

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        cdef int status = LEARNED
        self.at, self.block_rows = 0, <void*> rows
        if self.mixer.delayed:
            self.mixer.enter(JUDGE)
            status = learn_rows_of(self, rows, block, None, judge_row)
            self.at = 0
            if status == LEARNED:
                self.mixer.enter(LEARN)
        if status == LEARNED:
            status = self.learn_chunks(rows, block)
        if self.mixer.delayed and not self.mixer.enter(AT_ONCE) and status == LEARNED:
            self.refusing, status = -1, LOSS_OVERFLOWED
        return status

    cdef int judge(self, const Row* row, Workspace* work, const double* y, double weight) noexcept nogil:
        """The mixer judges the prediction of a row, made before any target of the call was known."""
        cdef double none = 0.0
        cdef double* scores = &self.predicted[self.at]
        self.refusing = -1
        if self.unknown(y):
            return BAD_TARGET
        self.refusing = self.score(<Rows> self.block_rows, row, work, scores)
        if self.refusing >= 0:
            return NOT_FINITE
        self.at += self.width
        return self.mix_row(scores, &none if y == NULL else y, weight)

    cdef void find_targets(self) noexcept nogil:
        cdef Py_ssize_t i, k, start
        self.mixer.find_targets(self.chunk.y, self.chunk.weight, self.chunk.n, self.n_targets, &self.targets[0])
        for k in range(self.n if self.several else 0):
            for i in range(self.chunk.n * self.n_targets if self.parts[k].targets_by_class != NULL else 0):
                start = self.parts[k].n_targets if self.targets[i] != 0 else 0
                self.by_label[k, i] = self.parts[k].targets_by_class[start + i % self.n_targets]

    cdef const double* targets_of(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """The mixer's targets, or those of the learner for the class or the labels."""
        cdef Part* part = &self.parts[k]
        if part.targets_by_class == NULL:
            return &self.targets[i * self.n_targets]
        if self.several:
            return &self.by_label[k, i * self.n_targets]
        return part.targets_by_class + <Py_ssize_t> self.chunk.y[i * self.n_targets] * part.n_targets

    cdef int combine(self, Py_ssize_t i) noexcept nogil:
        cdef int status
        cdef const double* scores = &self.chunk_scores[i * self.width]
        if self.mixer.delayed:
            scores = &self.predicted[self.at]
            self.at += self.width
        status = self.mix_row(scores, self.chunk.y + i * self.n_targets, self.chunk.weight[i])
        if status == LEARNED and self.trees is not None:
            self.trees.tell(&self.mixer.residuals[0], self.mixer.n_scores)
        return status

    cdef int mix_row(self, const double* scores, const double* y, double weight) noexcept nogil:
        """The mixer learns the scores of a row, or the forecasts to which they are linked."""
        cdef Py_ssize_t k
        cdef double* forecasts = &self.forecasts[0]
        if self.links is None:
            return self.mixer.learn_targets(scores, y, weight)
        for k in range(self.n):
            if not scores[k] < INFINITY:  # other invalid values are refused by the loss
                return BAD_TARGET
            if self.mixer.n_features > self.n:
                find_probabilities(self.parts[k].link, scores[k], forecasts + 2 * k)
            elif self.parts[k].link == IDENTITY:
                forecasts[k] = scores[k]
            else:
                forecasts[k] = probability(self.parts[k].link, scores[k] if y[0] else -scores[k])
        return self.mixer.learn_targets(forecasts, y, weight)

    cdef void forecast(self, const double* scores, double* forecasts) noexcept nogil:
        """The forecasts of experts from their scores: numbers, or the probabilities of both classes."""
        cdef Py_ssize_t k
        if self.links is None:
            memcpy(forecasts, scores, self.width * sizeof(double))
            return
        for k in range(self.n):
            forecasts[0] = scores[k]
            if self.parts[k].link != IDENTITY:
                find_probabilities(self.parts[k].link, scores[k], forecasts)
            forecasts += 1 if self.parts[k].link == IDENTITY else 2

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t k, total = 0
        for k in range(self.n):
            total += (<AtomicLearner> self.parts[k].learner).effort(self.chunk.widths[self.parts[k].image])
        return total


@cython.final
@cython.auto_pickle(False)
cdef class Blend:
    """What a mixture predicts rows by."""

    cdef Rows rows
    cdef bint linked          # whether forecasts are mixed
    cdef object memory        # of the following arrays
    cdef double* scores
    cdef double* forecasts    # and behind them the buffer of the mixer


cdef inline int judge_row(AtomicLearner mixture, const Row* row, Workspace* work, const double* y, double weight,
                          double* scores) noexcept nogil:
    return (<MixtureLearner> mixture).judge(row, work, y, weight)
