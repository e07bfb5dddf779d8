"""Densities as outlier detectors: each row is scored by its log-density, and then learned by the density.

The threshold is the nu-quantile of the scores, by steps on the pinball loss in units of their deviation, one over the
root of the number of scores. While there were more outliers lately, or fewer, than chance explains, steps are larger,
in proportion to the excess, and the threshold follows the mean of the scores: the excess is counted as for intervals
(`quantile_tracker`), so that the share of outliers is about nu on any stream, if less soon the smaller nu is. Numbers
of mean deviation d have their nu-quantile between d / (2 nu) below their mean and d / (2 (1 - nu)) above. Of scores
that rise or fall for long, as after all columns have moved, the mean lags behind: the end where the excess leads is
open.

Densities of real numbers learn the values of each column limited to its robust scale, so that an absurd row moves them
no further than the edge of what was seen. If rows are standardised, they are scored as the statistics of the rows
before see them, but learned as their own statistics see them, too, by which no value is more than sqrt(n) deviations of
n rows: the density does not forget, and deviations of few rows are no guide.
"""

import numpy as np

from libc.math cimport fabs, isfinite, sqrt

from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block, call_learn_row, learn_rows_of
from onlinebregman._kernels.learners.density import DensityLearner
from onlinebregman._kernels.learners.team cimport Ensemble
from onlinebregman._kernels.learners.run cimport LEARNED, NOT_FINITE
from onlinebregman._kernels.geometries.geometry cimport DENSE, Workspace
from onlinebregman._kernels.ops.robust cimport ob_robust, ob_robust_count, ob_robust_known, ob_robust_limit
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.rows cimport Row, Rows

# The first rows are only learned: their scores, by a density of few rows, are no guide to those of later ones.
UNSCORED = 10
cdef double FIRST = UNSCORED
cdef double UNKNOWN = 2.0     # rows of which only the scale is learned: any of them may be absurd
cdef double STEP = 0.03       # deviations, over the standard deviation of an outlier's indicator
cdef double MEMORY = 1000.0   # scores, of which the excess is a sum


cdef struct Scored:
    double rows               # learned; those of weight 0 do not count
    double weight             # the sum of the weights of those with a score
    double offset             # the quantile of their scores, once there is one
    double excess             # outliers among the last ones, beyond the fraction nu


cdef class ScoreQuantile(AtomicLearner):
    """The nu-quantile of scores, which are rows of one column.

    Parameters
    ----------
    nu : float
    """

    cdef double nu
    cdef Scored state
    cdef ob_robust scale          # of the scores

    def __init__(self, double nu, state=None):
        self.nu, self.n_features, self.traits = nu, 1, DENSE
        self.fields.add("state", &self.state, sizeof(self.state))
        self.fields.add("scale", &self.scale, sizeof(self.scale))

    @property
    def t(self):
        return int(self.state.rows)

    @property
    def offset(self):
        """The quantile; minus infinity as long as there is no score."""
        return self.state.offset if self.state.weight > 0 else -np.inf

    @offset.setter
    def offset(self, double offset):
        self.state.offset = offset

    cpdef bint ready(self, dict attributes):
        """False, as an estimator's rows are not scores."""
        return False

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        """Learn the score of the next row; one that is not finite only counts as an outlier, if there is an offset."""
        cdef Scored* state = &self.state
        cdef double score = row.x[0], n, share, error, spread, step, chance, before, mean, half
        state.rows += 1.0
        if state.rows <= FIRST or (state.weight == 0 and not isfinite(score)):
            return LEARNED
        if state.weight == 0:
            state.offset = score
        before = self.scale.origin + self.scale.mean
        if isfinite(score):
            ob_robust_count(&self.scale, score)
        n = state.rows - FIRST
        state.weight += weight
        share = n * weight / state.weight  # weights have no units
        error = share * ((not score >= state.offset) - self.nu)
        state.excess += error - state.excess / MEMORY
        spread = sqrt(self.nu * (1.0 - self.nu))
        chance = 1.0 + 2.0 * spread * sqrt(min(n, MEMORY / 2))
        step = 1.0 / sqrt(n)
        mean = self.scale.origin + self.scale.mean
        if fabs(state.excess) > chance:
            step = max(step, STEP / spread * fabs(state.excess) / chance)
            state.offset += mean - before
        state.offset -= self.scale.deviation * error * step
        if ob_robust_known(&self.scale):
            half = self.scale.deviation / 2.0
            if state.excess <= chance:
                state.offset = max(state.offset, mean - half / self.nu)
            if state.excess >= -chance:
                state.offset = min(state.offset, mean + half / (1.0 - self.nu))
        return LEARNED


cdef class OutlierLearner(Ensemble):
    """A density and the quantile of the scores of the rows.

    Parameters
    ----------
    learners : list of one DensityLearner
    quantile : ScoreQuantile
    """

    cdef readonly ScoreQuantile quantile
    cdef AtomicLearner density    # a DensityLearner
    cdef double[::1] scales       # an `ob_robust` of each column of a density of real numbers
    cdef double[::1] limited      # the values of a row that are learned

    def __cinit__(self, learners, ScoreQuantile quantile not None, state=None):
        self.density = self.learners[0]
        if not isinstance(self.density, DensityLearner):
            raise TypeError(f"learners must be one DensityLearner; got {self.density!r}")
        self.change((*self.learners, quantile))
        self.quantile, self.n_scores = quantile, 1
        if self.density.located:
            self.limited = np.empty(self.n_features)
            self.scales = np.zeros(self.n_features * sizeof(ob_robust) // sizeof(double))
            self.fields.vector("scales", self.scales)

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return self.density.effort(n)

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        self.block_rows = <void*> rows
        return learn_rows_of(self, rows, block, None, call_learn_row)

    cdef int learn_row(self, const Row* given, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        """Learn a row that is not mapped yet."""
        cdef int status
        cdef double score
        cdef Row row = given[0], scored = Row(&score, NULL, 1, 0)
        if self.row_map is not None:
            self.row_map.map_row(<Rows> self.block_rows, &row)
        self.density.score_row(NULL, &row, work, &score)
        if self.row_map is not None:
            (<Rows> self.block_rows).fetch(given.number, &row)
        self.limit(&row)
        if self.limited is not None and self.quantile.state.rows < UNKNOWN:
            if ob_nonfinite(given.x, given.n) != 0:
                return NOT_FINITE
            return self.quantile.learn_row(&scored, work, NULL, weight, NULL)
        if self.row_map is not None:
            self.row_map.map_to_learn(<Rows> self.block_rows, weight, &row)
            (<Rows> self.block_rows).fetch(given.number, &row)
            if self.limited is not None:
                row.x = &self.limited[0]
            self.row_map.map_row(<Rows> self.block_rows, &row)
        status = self.density.learn_row(&row, work, NULL, weight, NULL)
        return status if status != LEARNED else self.quantile.learn_row(&scored, work, NULL, weight, NULL)

    cdef int check_all(self) noexcept nogil:
        return self.density.check_all()

    cdef void limit(self, Row* row) noexcept nogil:
        """Limit the values of a row to the scale of their columns; those that are not finite stay, and are refused."""
        cdef ob_robust* scales
        cdef Py_ssize_t k
        if self.limited is None:
            return
        scales = <ob_robust*> &self.scales[0]
        for k in range(row.n):
            self.limited[k] = ob_robust_limit(&scales[k], row.x[k]) if isfinite(row.x[k]) else row.x[k]
        row.x = &self.limited[0]

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        self.density.score_row(scorer, row, work, scores)
