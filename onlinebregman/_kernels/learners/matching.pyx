"""The forward algorithm for matching losses: implicit second-order steps on a loss of one score.

The score z = w'.x after a step and the slope g there solve one equation, by the solver of all implicit steps:

    z = a - weight * q g,    g = L'(z, y) = h(z) - y with the link h.

For the squared loss this is online ridge regression.
"""

cimport cython
from libc.math cimport INFINITY, isfinite

from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.second_order cimport LANES, LEAST_CURVATURE, SecondOrderLearner
from onlinebregman._kernels.learners.solver cimport line_step
from onlinebregman._kernels.learners.state cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED, OVERFLOWED
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.losses.loss import NumPyLoss
from onlinebregman._kernels.rows.fourier cimport FourierFeatures
from onlinebregman._kernels.rows.rows cimport Rows


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
    features : FourierFeatures or None
        Features to learn instead of the values of the rows.
    intercept_alpha : float
        The entry of A for the intercept before the first row.
    centred, allow_nan : bool, default=False
        Whether rows are centred, and NaN in them is a missing value.
    """

    cdef readonly Loss loss

    def __cinit__(self, n_features, Loss loss not None, alpha, fit_intercept, FourierFeatures features, intercept_alpha,
                  *more):
        cdef tuple flags = (*more, False, False)
        self.loss = loss
        self.allocate(
            n_features, alpha, fit_intercept, features, intercept_alpha, 1, LANES, 2 if loss.logistic else 0,
            flags[0] is True, flags[1] is True,
        )
        self.chunkwise = not isinstance(loss, NumPyLoss)

    @property
    def coef(self):
        return self.weights_of_columns()[0]

    @property
    def intercept(self):
        return float(self.intercepts()[0])

    # --- a row --------------------------------------------------------------------------------------------------

    cdef int respond(self, double* a, const double* y, double weight, double q, Workspace* work,
                     double* h) noexcept nogil:
        cdef double c, z
        if not self.loss.admits(y[0]):
            return BAD_TARGET
        self.state.loss += weight * self.loss.value(a[0], y[0])
        if not isfinite(self.state.loss):
            return LOSS_OVERFLOWED
        if not q < INFINITY:
            return OVERFLOWED
        c = line_step(self.loss, a[0], q, weight, y[0])
        z = a[0] - c * q
        h[0] = max(self.loss.curvature(z, y[0]), LEAST_CURVATURE)
        a[0] = c / weight
        return LEARNED if isfinite(c) and h[0] < INFINITY else OVERFLOWED

    cdef int begin(self, Rows rows, bint complete) except -1:
        self.loss.interrupt = None
        return SecondOrderLearner.begin(self, rows, complete)

    cdef object interruption(self):
        return self.interrupt if self.loss.interrupt is None else self.link_error()

    cdef void link_row(self, double* scores, double* out) noexcept nogil:
        out[0] = self.loss.link(scores[0])

    cdef object link_error(self):
        error, self.loss.interrupt = self.loss.interrupt, None
        return error
