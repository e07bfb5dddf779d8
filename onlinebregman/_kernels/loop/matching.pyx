"""The forward algorithm for matching losses: implicit second-order steps on a loss of one score.

The score z = w'.x after a step and the slope g there solve one equation, by the solver of all implicit steps:

    z = a - weight * q g,    g = L'(z, y) = h(z) - y with the link h.

For the squared loss this is online ridge regression.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, isfinite

from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace, free_workspace, make_workspace
from onlinebregman._kernels.loop.atomic import check_columns
from onlinebregman._kernels.loop.second_order cimport LANES, SecondOrderLearner
from onlinebregman._kernels.loop.solver cimport Score, implicit_step
from onlinebregman._kernels.loop.state cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED, OVERFLOWED
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.losses.numpy_loss import NumPyLoss
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.fourier cimport FourierFeatures
from onlinebregman._kernels.rows.rows cimport Row, Rows, open_rows
from onlinebregman._kernels.rows.standardizer cimport fetch_standardized

cdef double LEAST_CURVATURE = 1e-6
cdef Geometry LINE = EuclideanGeometry(np.zeros(1))  # for the solver: w(c).x is linear in c


@cython.final
cdef class MatchingLearner(SecondOrderLearner):
    """Learns rows with one target each, one after the other.

    Parameters
    ----------
    n_features : int
    loss : Loss
        Smooth and convex.
    alpha : float
        A = alpha I before the first row.
    fit_intercept : bool
        Whether rows have one more coordinate, 1: the last one.
    memory : ndarray, default=None
        The weights and the metric of another learner to continue from.
    state : dict, default=None
        Its `SecondOrderState`.
    standardizer : Standardizer, default=None
        Standardises rows before they are learned.
    forgetting : float, default=1.0
        The forgetting factor until a call sets another one.
    features : FourierFeatures, default=None
        Features to learn instead of the values of the rows.
    intercept_alpha : float, default=None
        The entry of A for the intercept before the first row; None: alpha.
    """

    cdef readonly Loss loss

    def __cinit__(self, n_features, Loss loss not None, alpha, fit_intercept, memory=None, state=None,
                  standardizer=None, forgetting=1.0, FourierFeatures features=None, intercept_alpha=None):
        self.standardizer, self.loss = standardizer, loss
        self.n_features, self.alpha, self.fit_intercept, self.gamma = n_features, alpha, fit_intercept, forgetting
        self.intercept_alpha = alpha if intercept_alpha is None else intercept_alpha
        self.features = features
        self.allocate(1, LANES, memory, state)
        self.chunkwise = not isinstance(loss, NumPyLoss)

    def __reduce__(self):
        return type(self), (self.n_features, self.loss, self.alpha, self.fit_intercept, *self._state_arguments())

    @property
    def coef(self):
        return self.weight_rows()[0, :self.n_inputs].copy()

    @property
    def intercept(self):
        return float(self.weight_rows()[0, self.n_inputs]) if self.fit_intercept else 0.0

    # --- entry points -------------------------------------------------------------------------------------------

    def predict_fast(self, dict attributes, X):
        """Predictions for an array of floats or CSR without validation, or None if that is not safe."""
        cdef Rows rows = self.fitting_rows(attributes, X)
        return None if rows is None else self.predict_rows(rows)

    def predict(self, X):
        """Predictions for validated rows, dense or CSR; None if one is not finite."""
        return self.predict_rows(open_rows(X))

    # --- a row --------------------------------------------------------------------------------------------------

    cdef int respond(self, double* a, const double* y, double weight, double q, Workspace* work,
                     double* h) noexcept nogil:
        cdef Score score
        cdef double c, z
        if not self.loss.admits(y[0]):
            return BAD_TARGET
        self.state.loss += weight * self.loss.value(a[0], y[0])
        if not isfinite(self.state.loss):
            return LOSS_OVERFLOWED
        if not q < INFINITY:
            return OVERFLOWED
        score.intercept, score.bias, score.a, score.slope, work.origin = 0.0, 0.0, a[0], q, 0.0
        c = implicit_step(LINE, self.loss, work, &score, weight, y[0])
        z = a[0] - c * q
        h[0] = max(self.loss.curvature(z, y[0]), LEAST_CURVATURE)
        a[0] = c / weight
        return LEARNED if isfinite(c) and h[0] < INFINITY else OVERFLOWED

    cdef int begin(self, Rows rows, bint complete) except -1:
        self.loss.interrupt = None
        return SecondOrderLearner.begin(self, rows, complete)

    cdef object interruption(self):
        error = self.loss.interrupt
        failed = error is not None and (not isinstance(error, Exception) or isinstance(error, MemoryError))
        return error if failed else self.interrupt

    cdef object predict_rows(self, Rows rows):
        """Predictions h(w.x), or None if one is not finite."""
        cdef Py_ssize_t i
        cdef bint finite = True
        cdef double[::1] out
        cdef Row row
        cdef Workspace work
        check_columns(rows.n_columns, self.n_features)
        if self.standardizer is not None:
            self.standardizer.open(rows)
        predictions = np.empty(rows.n_rows)
        out = predictions
        make_workspace(&work, self.n_inputs)
        with nogil:
            for i in range(rows.n_rows):
                fetch_standardized(self.standardizer, rows, i, &row)
                self.score_row(&row, &work, &out[i])
                finite = finite and isfinite(out[i])
                out[i] = self.loss.link(out[i])
            finite = finite and ob_nonfinite(&out[0], rows.n_rows) == 0
            free_workspace(&work)
        if self.loss.interrupt is not None:
            error, self.loss.interrupt = self.loss.interrupt, None
            raise error
        return predictions if finite else None
