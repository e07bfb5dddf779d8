"""Experts whose forecasts are the columns of X: losses of the experts and of their mixture, and updates of weights."""

import numpy as np

cimport cython
from libc.math cimport INFINITY, exp, isfinite, log
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.loop.atomic cimport AtomicLearner, Block, reason
from onlinebregman._kernels.loop.atomic import check_columns
from onlinebregman._kernels.loop.hedge cimport Hedge
from onlinebregman._kernels.loop.state cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED
from onlinebregman._kernels.loop.transaction cimport check_idle
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.rows.rows cimport Row, Rows, open_rows

cdef extern from "ops/hedge.h":
    double ob_log_odds_of_ends(const double* w, const double* z, double* t, Py_ssize_t n) noexcept nogil

cdef double SMALLEST = 708.0  # -ln of the smallest mixture that p_k are divided by


cdef class ExpertLearner(AtomicLearner):
    """Base class of mixtures; a subclass computes the losses of a row.

    Parameters
    ----------
    hedge : Hedge
        The weights.
    gradient : bool
        Whether weights move by the gradient of the mixture's loss ("eg"), not by the experts' losses ("average").
    """

    def __cinit__(self, Hedge hedge not None, bint gradient, *arguments):
        cdef Py_ssize_t lanes = hedge.lanes
        if type(self) is ExpertLearner:
            raise TypeError("ExpertLearner must be a subclass, which defines the loss; got the base class")
        self.hedge, self.gradient = hedge, gradient
        self.buffer = np.zeros(5 * lanes)
        self.v, self.losses, self.costs = &self.buffer[0], &self.buffer[lanes], &self.buffer[2 * lanes]
        self.work = &self.buffer[3 * lanes]
        self.n_features, self.n_targets, self.target_ndim, self.n_scores = hedge.n_experts, 1, 1, hedge.n_experts

    def _arguments(self):
        return ()

    def __reduce__(self):
        check_idle(self.busy)
        return type(self), (self.hedge, self.gradient, *self._arguments())

    cdef Rows fitting_rows(self, dict attributes, X):
        cdef Rows rows = AtomicLearner.fitting_rows(self, attributes, X)
        return rows if rows is not None and rows.indices == NULL else None

    def learn(self, X, const double[::1] y=None, const double[::1] sample_weight=None, double[:, ::1] weights=None):
        """Count rows of validated forecasts, all of them or none.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        y, sample_weight : ndarray of shape (n_rows,), default=None
        weights : ndarray of shape (n_rows, n_experts), default=None
            Receives the experts' weights before each row, but for rows of weight 0.

        Returns
        -------
        (reason, row) of what could not be learned, or None.
        """
        cdef Rows rows = open_rows(X)
        cdef Block block
        if (y is None and self.target_ndim > 0) or (y is not None and y.shape[0] != rows.n_rows) or \
                (sample_weight is not None and sample_weight.shape[0] != rows.n_rows):
            raise ValueError(f"y and sample_weight must have one entry for each of {rows.n_rows} rows")
        if weights is not None and (weights.shape[0] != rows.n_rows or weights.shape[1] != self.hedge.n_experts):
            raise ValueError(
                f"weights must have shape ({rows.n_rows}, {self.hedge.n_experts}); "
                f"got ({weights.shape[0]}, {weights.shape[1]})"
            )
        block.y, block.n_targets = NULL if y is None else &y[0], self.n_targets
        block.sample_weight = NULL if sample_weight is None else &sample_weight[0]
        block.scores = NULL if weights is None else &weights[0, 0]
        status = self.learn_block(rows, &block)
        return None if status == LEARNED else (reason(status), block.failed)

    cdef int begin(self, Rows rows, bint complete) except -1:
        AtomicLearner.begin(self, rows, complete)
        check_columns(rows.n_columns, self.n_features)
        if rows.indices != NULL:
            raise ValueError("X must be a dense array of forecasts; got a sparse matrix")
        self.hedge.save(rows.n_rows)
        return 0

    cdef int undo(self, Rows rows) except -1:
        self.hedge.restore()
        return 0

    cdef void keep(self, Rows rows) noexcept:
        AtomicLearner.keep(self, None)

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        """`scores`, if not NULL, receives the weights of the experts before the row, unless its weight is 0."""
        if weight == 0:
            return LEARNED
        self.hedge.weigh(self.v)
        if scores != NULL:
            memcpy(scores, self.v, self.n_scores * sizeof(double))
        return self.count(row.x, 0.0 if y == NULL else y[0], weight)

    cdef int count(self, const double* forecasts, double y, double weight) noexcept nogil:
        """Count a row of forecasts, with the weights in `v`; returns the `Status`."""
        cdef Py_ssize_t k
        cdef double loss = self.compare(forecasts, y), cost = 0.0
        if not isfinite(loss):
            return BAD_TARGET
        for k in range(self.hedge.n_experts):
            self.losses[k] *= weight
            self.costs[k] *= weight
            cost += self.v[k] * self.costs[k]
        if self.gradient:
            self.hedge.move(self.costs, self.v, cost)
        else:
            self.hedge.move(self.losses, self.v, weight * loss)
        self.hedge.add(self.losses, weight * loss)
        return LEARNED if self.hedge.finite() else LOSS_OVERFLOWED

    cdef double compare(self, const double* forecasts, double y) noexcept nogil:
        """The mixture's loss, not finite if the row must be refused.

        Also computes the losses of the experts and, if `gradient`, the gradient with respect to the weights.
        """
        return 0.0


@cython.final
cdef class MeanLearner(ExpertLearner):
    """Real-valued forecasts: the mixture's forecast is their weighted mean.

    Parameters
    ----------
    hedge : Hedge
    gradient : bool
    loss : Loss
    """

    def __cinit__(self, hedge, gradient, Loss loss not None):
        self.loss = loss

    def _arguments(self):
        return (self.loss,)

    cdef double compare(self, const double* forecasts, double y) noexcept nogil:
        cdef Py_ssize_t k
        cdef double mean = 0.0, slope
        for k in range(self.hedge.n_experts):
            mean += self.v[k] * forecasts[k]
        slope = self.loss.derivative(mean, y) if self.gradient else 0.0
        for k in range(self.hedge.n_experts):
            self.losses[k], self.costs[k] = self.loss.value(forecasts[k], y), slope * forecasts[k]
            if not isfinite(self.losses[k]):
                return INFINITY
        return self.loss.value(mean, y)


@cython.final
cdef class AggregatingLearner(ExpertLearner):
    """Forecasts of targets in [lo, hi], by the Aggregating Algorithm for the squared loss; forecasts are clipped.

    With B = hi - lo, the generalised prediction g(y) = -ln(sum v_k exp(-rate (p_k - y)^2 / 2)) / rate is at the rate
    4 / B^2 at least the loss of the forecast

        a = (lo + hi) / 2 + (g(lo) - g(hi)) / B,

    for all y in [lo, hi]. At the same or a lower rate of the weights, g(y) is at most their mix loss.

    Parameters
    ----------
    hedge : Hedge
    gradient : bool
        False.
    lo, hi : float
    """

    def __cinit__(self, hedge, gradient, double lo, double hi):
        if gradient or not lo < hi:
            raise ValueError(f"gradient must be False, and lo below hi; got {gradient}, {lo} and {hi}")
        self.lo, self.hi = lo, hi

    def _arguments(self):
        return self.lo, self.hi

    def predict(self, const double[:, ::1] forecasts):
        """The mixture's forecasts for rows of the experts' forecasts."""
        cdef Py_ssize_t i
        cdef double[::1] buffer = np.zeros(3 * self.hedge.lanes), mixed = np.empty(forecasts.shape[0])
        check_columns(forecasts.shape[1], self.n_features)
        self.hedge.weigh(&buffer[0])
        for i in range(forecasts.shape[0]):
            mixed[i] = self.forecast(&forecasts[i, 0], &buffer[0], &buffer[self.hedge.lanes])
        return np.asarray(mixed)

    cdef double forecast(self, const double* forecasts, const double* v, double* work) noexcept nogil:
        """The mixture's forecast; `work` has 2 `lanes` numbers."""
        cdef Py_ssize_t k
        cdef double middle = self.lo + (self.hi - self.lo) / 2, half = (self.hi - self.lo) / 2
        for k in range(self.hedge.n_experts):
            work[k] = min(max((forecasts[k] - middle) / half, -1.0), 1.0)
        return middle + half / 2 * ob_log_odds_of_ends(v, work, work + self.hedge.lanes, self.hedge.n_experts)

    cdef double compare(self, const double* forecasts, double y) noexcept nogil:
        cdef Py_ssize_t k
        if not self.lo <= y <= self.hi:
            return INFINITY
        for k in range(self.hedge.n_experts):
            if not isfinite(forecasts[k]):
                return INFINITY
            self.losses[k] = (min(max(forecasts[k], self.lo), self.hi) - y) ** 2 / 2
        return (self.forecast(forecasts, self.v, self.work) - y) ** 2 / 2


@cython.final
cdef class LogLearner(ExpertLearner):
    """Probabilities, densities or price relatives p_k: the mixture's is their mean, and the loss -ln of that.

    Parameters
    ----------
    hedge : Hedge
    gradient : bool
    logarithms : bool
        Whether rows are ln p_k.
    """

    def __cinit__(self, hedge, gradient, bint logarithms):
        self.logarithms, self.target_ndim, self.n_targets = logarithms, 0, 0

    def _arguments(self):
        return (self.logarithms,)

    cdef double compare(self, const double* forecasts, double y) noexcept nogil:
        cdef Py_ssize_t k
        cdef double loss
        for k in range(self.hedge.n_experts):
            self.losses[k] = -(forecasts[k] if self.logarithms else log(forecasts[k]))
        loss = self.hedge.log_loss(self.v, self.losses, self.work)
        if self.gradient and loss > SMALLEST:
            return INFINITY
        for k in range(self.hedge.n_experts if self.gradient else 0):
            self.costs[k] = -exp(loss - self.losses[k])
        return loss


@cython.final
cdef class BrierLearner(ExpertLearner):
    """Probabilities of classes: the mixture's are their means, and the loss half the squared distance from the truth.

    Rows are the probabilities of all classes by the first expert, then by the next; targets are numbers of classes.

    Parameters
    ----------
    hedge : Hedge
    gradient : bool
    n_classes : int
    """

    def __cinit__(self, hedge, gradient, Py_ssize_t n_classes):
        if n_classes < 1:
            raise ValueError(f"n_classes must be 1 or more; got {n_classes}")
        self.n_classes, self.n_features = n_classes, <object> self.hedge.n_experts * n_classes  # or OverflowError

    def _arguments(self):
        return (self.n_classes,)

    cdef double compare(self, const double* forecasts, double y) noexcept nogil:
        cdef Py_ssize_t k, c
        cdef const double* p
        cdef double loss = 0.0, truth, mixed
        for k in range(self.hedge.n_experts):
            self.losses[k] = self.costs[k] = 0.0
        for c in range(self.n_classes):
            truth, mixed, p = <double> (y == c), 0.0, forecasts + c
            for k in range(self.hedge.n_experts):
                mixed += self.v[k] * p[k * self.n_classes]
            mixed -= truth
            loss += mixed * mixed / 2
            for k in range(self.hedge.n_experts):
                self.losses[k] += (p[k * self.n_classes] - truth) ** 2 / 2
                self.costs[k] += mixed * p[k * self.n_classes]
        return loss
