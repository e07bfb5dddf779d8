"""Densities as outlier detectors: each row is scored by its log-density, and then learned by the density.

A quantile of the scores is the intercept of a linear model without features. If rows are standardised, they are scored
as the statistics of the rows before see them, but learned as their own statistics see them, too, by which no value is
more than sqrt(n) deviations of n rows: the density does not forget, and deviations of few rows are no guide.
"""

from libc.math cimport INFINITY, isfinite

from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block, interrupted, weight_of
from onlinebregman._kernels.learners.density cimport DensityLearner
from onlinebregman._kernels.learners.ensemble cimport Ensemble
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.state cimport INTERRUPTED, LEARNED
from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.ops.robust cimport ob_robust, ob_robust_count
from onlinebregman._kernels.rows.rows cimport Row, Rows, fetch_mapped, fetch_to_learn, row_number

# The first rows are only learned: their scores, by a density of few rows, are no guide to those of later ones.
UNSCORED = 10
cdef double FIRST = UNSCORED


cdef struct Scored:
    double rows               # learned; those of weight 0 do not count
    double lowest             # the lowest finite score, or infinity


cdef class OutlierLearner(Ensemble):
    """A density and the quantile of the scores of the rows.

    Parameters
    ----------
    learners : list of one AtomicLearner
        The density; or `quantile`, for scores in place of rows.
    quantile : Learner
        With an intercept, a quantile loss, and one feature, which is 0.
    state : dict, default=None
        The rest of the state of another one, to continue from it.
    """

    cdef readonly Learner quantile
    cdef DensityLearner density   # None: rows are scores
    cdef Scored state
    cdef ob_robust scale          # of the scores

    def __cinit__(self, learners, Learner quantile not None, state=None):
        if isinstance(self.learners[0], DensityLearner):
            self.density, self.changing = self.learners[0], (*self.learners, quantile)
        elif self.learners[0] is not quantile or quantile.n_features != 1:
            raise TypeError("learners must be a density, or the quantile of one feature")
        self.quantile, self.n_scores, self.state.lowest = quantile, 1, INFINITY
        self.learned.add("state", &self.state, sizeof(self.state))
        self.learned.add("scale", &self.scale, sizeof(self.scale))

    @property
    def t(self):
        return int(self.state.rows)

    cdef Rows fitting_rows(self, dict attributes, X):
        """None also without a density, as an estimator's rows are not scores."""
        return None if self.density is None else Ensemble.fitting_rows(self, attributes, X)

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return 1 if self.density is None else self.density.effort(n)

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        cdef Py_ssize_t k, i
        cdef int status
        cdef double score, weight
        cdef Row row
        for k in range(rows.n_rows):
            i = block.failed = row_number(rows, k)
            weight = weight_of(block, i)
            if weight == 0:
                continue
            if interrupted(self, self.effort(rows.widest)):
                return INTERRUPTED
            fetch_mapped(self.row_map, rows, i, &row)
            status = LEARNED
            if self.density is None:
                score = row.x[0]
            elif self.row_map is None:
                status = self.density.learn_row(&row, &block.work, NULL, weight, &score)
            else:
                self.density.score_row(&row, &block.work, &score)
                fetch_to_learn(self.row_map, rows, i, weight, &row)
                fetch_mapped(self.row_map, rows, i, &row)
                status = self.density.learn_row(&row, &block.work, NULL, weight, NULL)
            if status == LEARNED:
                status = self.learn_score(score, weight, &block.work)
            if status != LEARNED:
                return status
        if self.density is not None and self.density.check_all() != LEARNED:
            return self.density.check_all()
        return self.quantile.check_all()

    cdef int learn_score(self, double score, double weight, Workspace* work) noexcept nogil:
        """Learn the score that a row had; one that is not finite counts as the lowest before, if there is any."""
        cdef double nothing = 0.0, distance
        cdef Row row = Row(&nothing, NULL, 1, 0)
        self.state.rows += 1.0
        if self.state.rows <= FIRST:
            return LEARNED
        if isfinite(score):
            self.state.lowest = min(self.state.lowest, score)
            distance = ob_robust_count(&self.scale, score)
            if distance != score - self.scale.origin:  # a single row must not change the units of the steps
                score = self.scale.origin + distance
        elif isfinite(self.state.lowest):
            score = self.state.lowest
        else:
            return LEARNED
        return self.quantile.learn_row(&row, work, &score, weight, NULL)

    cdef void score_row(self, const Row* row, Workspace* work, double* scores) noexcept nogil:
        if self.density is None:
            scores[0] = row.x[0]
        else:
            self.density.score_row(row, work, scores)
