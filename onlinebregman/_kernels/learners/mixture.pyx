"""Learners of the same rows, and a mixer of their scores: all in one pass, see `team`."""

import numpy as np

from cpython.pyport cimport PY_SSIZE_T_MAX
from libc.math cimport INFINITY
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport Workspace, free_workspace, make_workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block, interrupted, weight_of
from onlinebregman._kernels.learners.atomic import check_columns
from onlinebregman._kernels.learners.ensemble cimport Ensemble
from onlinebregman._kernels.learners.links cimport IDENTITY, find_probabilities, link_of, probability
from onlinebregman._kernels.learners.mixer cimport AT_ONCE, JUDGE, LEARN, Mixer
from onlinebregman._kernels.learners.multi_learner cimport learns_chunks, sole_learner
from onlinebregman._kernels.learners.state cimport BAD_TARGET, INTERRUPTED, LEARNED, LOSS_OVERFLOWED, NOT_FINITE
from onlinebregman._kernels.learners.team cimport Part, Team, targets_in
from onlinebregman._kernels.learners.transaction cimport Validated, unnamed
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.arrays cimport empty_float64
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows, row_number

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

    def __cinit__(self, learners, Mixer mixer not None, targets_by_class=None, links=None, dict state=None):
        cdef AtomicLearner learner
        cdef Py_ssize_t k
        cdef const double[:, ::1] table
        self.mixer = mixer
        self.changing = (*self.learners, mixer)
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
        self.n_forecasts, self.targets = self.width, np.empty(self.n_targets)
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
        self.n_forecasts = 0
        for k in range(self.n):
            self.parts[k].link = link_of(self.links[k], known)
            self.n_forecasts += 1 if self.parts[k].link == IDENTITY else 2

    cdef double total_loss(self) noexcept nogil:
        return self.mixer.total_loss()

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
                        not learner.ready(own) or not learner.row_scores_predict():
                    return False
        return Ensemble.ready(self, attributes)

    # --- entry points -------------------------------------------------------------------------------------------

    def predict_fast(self, dict attributes, X, bint linked=True):
        """See `AtomicLearner.predict_fast`; None also if experts are others than those that learned last."""
        cdef Rows rows
        if self.links is not None and not self.ready(attributes):
            return None
        rows = self.fitting_rows(attributes, X)
        return None if rows is None else self.predict_rows(rows, linked)

    cdef object predict_rows(self, Rows rows, bint linked):
        """Outputs for rows, shape (n_rows, n_scores), or the forecasts of experts; None if they are not finite."""
        cdef Py_ssize_t i, width = self.mixer.n_scores if linked else self.n_forecasts
        cdef double* out
        cdef double* scores
        cdef double* forecasts
        cdef RowMap row_map
        cdef Workspace work
        cdef bint finite = True
        memory = empty_float64(self.width + self.n_forecasts + self.mixer.buffer_size(), &scores)
        check_columns(rows.n_columns, self.n_features)
        for row_map in self.maps:
            row_map.open(rows)
        outputs = empty_float64(rows.n_rows * width, &out)
        forecasts = scores if self.links is None else scores + self.width
        self.mixer.weigh(forecasts + self.n_forecasts)
        make_workspace(&work, self.vector_length(self.widest(rows)))
        with nogil:
            for i in range(rows.n_rows):
                finite = self.score(rows, i, &work, scores) < 0  # their probabilities always are
                if not finite:
                    break
                if not linked:
                    self.forecast(scores, &out[i * width])
                    continue
                if self.links is not None:
                    self.forecast(scores, forecasts)
                self.mixer.mix(forecasts, &out[i * width], forecasts + self.n_forecasts)
            free_workspace(&work)
            finite = finite and ob_nonfinite(out, rows.n_rows * width) == 0
        return outputs.reshape(-1, width) if finite else None

    cdef Py_ssize_t score(self, Rows rows, Py_ssize_t i, Workspace* work, double* scores) noexcept nogil:
        """Score row i by all learners; returns one whose scores are not finite, or -1."""
        cdef Py_ssize_t j, k, refusing = -1
        cdef double* own
        cdef Row fetched, row
        rows.fetch(i, &fetched)
        for j in range(self.chunk.n_images):
            row = fetched
            if self.chunk.maps[j] != <void*> None:
                (<RowMap> self.chunk.maps[j]).map_row(rows, &row)
            for k in range(self.n):
                if self.parts[k].image == j:
                    own = scores + self.parts[k].start
                    (<AtomicLearner> self.parts[k].learner).score_row(&row, work, own)
                    if ob_nonfinite(own, self.parts[k].n_scores) != 0:
                        refusing = k
        return refusing

    # --- a call: see `AtomicLearner`; each learner can undo its part ---------------------------------------------

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef Py_ssize_t length = self.vector_length(self.widest(rows))
        Ensemble.begin(self, rows, complete)
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
                self.parts[k].scored_before = not (<AtomicLearner> self.parts[k].learner).scores_predict()
            if not (self.parts[k].chunkwise or self.lockstep.has(k)):
                self.rowwise[self.n_rowwise] = k
                self.n_rowwise += 1
        return 0

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        cdef int status = LEARNED
        self.at = 0
        if self.mixer.delayed:
            status = self.judge(rows, block)
        if status == LEARNED:
            status = self.learn_chunks(rows, block)
        if self.mixer.delayed and not self.mixer.enter(AT_ONCE) and status == LEARNED:
            self.refusing, status = -1, LOSS_OVERFLOWED
        return status if status != LEARNED else self.check_all()

    cdef int judge(self, Rows rows, Block* block) noexcept nogil:
        """The mixer judges the predictions of all rows, made before any of their targets was known."""
        cdef Py_ssize_t i, k
        cdef int status
        cdef double none = 0.0
        cdef double* scores = &self.predicted[0]
        self.mixer.enter(JUDGE)
        for i in range(rows.n_rows):
            k = row_number(rows, i)
            if weight_of(block, k) == 0:
                continue
            if interrupted(self, self.work_per_row):
                return INTERRUPTED
            block.failed, self.refusing = k, -1
            if self.unknown(block, k):
                return BAD_TARGET
            self.refusing = self.score(rows, k, &block.work, scores)
            if self.refusing >= 0:
                return NOT_FINITE
            status = self.mix_row(scores, &none if block.y == NULL else targets_in(block, k), weight_of(block, k))
            if status != LEARNED:
                return status
            scores += self.width
        self.mixer.enter(LEARN)
        return LEARNED

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

    cdef int combine(self, Py_ssize_t i, Block* block) noexcept nogil:
        cdef const double* scores = &self.chunk_scores[i * self.width]
        if self.mixer.delayed:
            scores = &self.predicted[self.at]
            self.at += self.width
        return self.mix_row(scores, self.chunk.y + i * self.n_targets, self.chunk.weight[i])

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
