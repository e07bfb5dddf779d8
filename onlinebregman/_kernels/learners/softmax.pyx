"""The forward algorithm for the log loss: implicit softmax steps in one second-order metric for all classes.

The scores z = W'x after a step and the slopes g there solve k equations, by Newton's method:

    z = a - weight * q g,    g = softmax(z) - e_y,    a = W x + o.

For two classes w_1 = -w_0, and only the difference w_1 - w_0 is stored: the logistic step in the metric A / 2.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, copysign, exp, fabs, isfinite, log1p, sqrt, tanh
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport LINKS, Workspace, scratch
from onlinebregman._kernels.learners.second_order cimport LANES, LEAST_CURVATURE, SecondOrderLearner
from onlinebregman._kernels.learners.run cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED, OVERFLOWED
from onlinebregman._kernels.learners.transaction cimport check_idle
from onlinebregman._kernels.losses.loss import LogisticLoss
from onlinebregman._kernels.ops.softmax cimport (
    OB_NO_CLASS, ob_softmax, ob_softmax_curvature, ob_softmax_implicit, ob_softmax_loss, ob_softmax_of,
    ob_softmax_probabilities, ob_softmax_slopes
)
from onlinebregman._kernels.ops.vector cimport ob_dot
from onlinebregman._kernels.rows.fourier cimport FourierFeatures
from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef class SoftmaxLearner(SecondOrderLearner):
    """Learns rows with the numbers of their classes, one after the other.

    Parameters
    ----------
    n_features : int
    n_classes : int
        At least 1.
    alpha : float
        A = alpha I before the first row.
    fit_intercept : bool
        Whether rows have one more coordinate, 1: the last one.
    features : FourierFeatures or None
        Features to learn instead of the values of the rows.
    intercept_alpha : float
        The entry of A for the intercept before the first row.
    separate : bool, default=False
        Whether two classes have a row of weights each, like any other number of classes.
    centred, allow_nan : bool, default=False
        Whether rows are centred, and NaN in them is a missing value.
    """

    cdef readonly Py_ssize_t n_classes
    cdef Py_ssize_t n_lanes   # the number of scores, padded to whole registers
    cdef bint halved          # whether two classes share one row of weights, w_1 - w_0

    def __cinit__(self, n_features, n_classes, alpha, fit_intercept, FourierFeatures features, intercept_alpha, *more):
        cdef bint plain = type(self) is SoftmaxLearner
        # separate, centred, allow_nan; or a state in the place of one. What a subclass has is something else
        cdef tuple flags = (*more, False, False, False) if plain else (False, False, False)
        if n_classes < 1:
            raise ValueError(f"n_classes must be 1 or more; got {n_classes}")
        self.n_classes = self.n_linked = n_classes
        self.n_lanes = (n_classes + LANES - 1) // LANES * LANES
        self.halved = n_classes == 2 and flags[0] is not True
        self.allocate(
            n_features, alpha, fit_intercept, features, intercept_alpha, 1 if self.halved else n_classes, self.n_lanes,
            n_classes if plain else 0, flags[1] is True, flags[2] is True,
        )
        self.slope, self.output_ndim = 2.0 if self.halved else 1.0, 2
        self.loss = LogisticLoss() if self.halved else None
        self.traits |= LINKS

    def with_classes(self, n_classes, numbers):
        """A copy with more classes: this learner's weights for the classes `numbers`, weights 0 for the new ones.

        The metric, which all classes share, is copied, the map of rows is that of this learner.
        """
        cdef SoftmaxLearner learner
        cdef Py_ssize_t length = self.m * self.d
        check_idle(self.busy)
        learner = SoftmaxLearner(self.n_features, n_classes, *self.arguments[2:])
        learner.gamma = self.gamma
        learner.map_by(self.row_map)
        weights = self.weight_rows()
        if not learner.halved:  # the weights of a class by itself are 0
            learner.weight_rows()[numbers] = np.vstack([-0.5 * weights, 0.5 * weights]) if self.halved else weights
        np.asarray(learner.memory)[learner.m * learner.d:] = self.memory[length:]
        learner.state = self.state
        if self.centre is not None:
            learner.centre.memory[:] = self.centre.memory
        if self.n_counted:
            learner.counts()[numbers] = self.counts()
        if self.n_counted and not learner.halved:
            odds = np.r_[0.0, self.log_odds()] if self.halved else self.log_odds()
            np.asarray(learner.tally)[n_classes:][numbers] = odds - odds.mean()
        return learner

    @property
    def coef(self):
        return self.weights_of_columns()

    @property
    def intercept(self):
        return self.intercepts()

    # --- a row --------------------------------------------------------------------------------------------------

    cdef int respond(self, double* a, const double* y, double weight, double q, Workspace* work,
                     double* h) noexcept nogil:
        cdef ob_softmax p
        if not 0 <= y[0] < self.n_classes:
            return BAD_TARGET
        if self.halved:
            return SecondOrderLearner.respond(self, a, y, weight, q, work, h)
        self.open_row(&p, a, <Py_ssize_t> y[0])
        self.state.loss += weight * ob_softmax_loss(&p, a)
        if not isfinite(self.state.loss):
            return LOSS_OVERFLOWED
        q *= weight
        if not q < INFINITY:
            return OVERFLOWED
        ob_softmax_implicit(&p, a, q, scratch(work, 3))
        ob_softmax_slopes(&p, a)
        h[0] = max(ob_softmax_curvature(&p), LEAST_CURVATURE) if p.classes > 1 else LEAST_CURVATURE
        return LEARNED

    cdef void open_row(self, ob_softmax* p, double* a, Py_ssize_t y) noexcept nogil:
        """Set up the softmax of the scores a for a class; of two they are -a/2 and a/2, a being the stored score."""
        cdef Py_ssize_t c
        p.classes, p.n, p.y, p.e = self.n_classes, self.n_lanes, y, a + self.n_lanes
        for c in range(p.classes, p.n):
            a[c] = OB_NO_CLASS
        if self.halved:
            a[1] = 0.5 * a[0]
            a[0] = -a[1]
        ob_softmax_of(p, a)

    # --- predictions: see `AtomicLearner` -----------------------------------------------------------------------

    cdef void link_row(self, double* scores, double* out) noexcept nogil:
        cdef ob_softmax p
        self.open_row(&p, scores, 0)
        ob_softmax_probabilities(&p, p.e)
        memcpy(out, p.e, self.n_classes * sizeof(double))


cdef enum:
    STEPS = 100               # bound on Newton steps; 36 are enough, most of them where a is nearly q


cdef double drawn_to_zero(double a, double q) noexcept nogil:
    """The root of z = a - q tanh(z / 2).

    For a > 0 the residual is concave in z: Newton's steps increase from any start below the root up to it.
    """
    cdef double size = fabs(a), z, t, following
    cdef int step
    if not q < INFINITY:
        return NAN
    z = max(size / (1.0 + q / 2), size - q)
    for step in range(STEPS):
        t = tanh(z / 2)
        following = z - (z - size + q * t) / (1.0 + q * (1.0 - t * t) / 2)
        if not following > z:
            break
        z = following
    return copysign(z, a)


@cython.final
cdef class AioliLearner(SoftmaxLearner):
    """AIOLI: logistic regression whose predictions depend on the row as more than a linear function of it.

    F is the penalty plus a quadratic surrogate of the loss of each row so far, w its minimum and A its Hessian. The
    score of a row x is that of

        argmin_u F(u) + L(u.x, 1) + L(u.x, 0),    which is the root of z = a - q tanh(z / 2),  a = w.x,  q = x'A^-1 x.

    Then the row, of weight h, adds to F the h-fold of

        L(z) + L'(z) (u.x - z) + kappa (u.x - z)^2 / 2,    kappa = L''(z) / (1 + max(reach - |z|, 0) / 2),

    which is at most L(u.x) for all |u.x| <= reach = radius |x|.

    Parameters
    ----------
    n_features : int
    n_classes : int
        2.
    alpha : float
        A = alpha I before the first row.
    fit_intercept : bool
    features, intercept_alpha
        See `SoftmaxLearner`.
    radius : float
        Bound on the norm of the weights that the surrogates are accurate for.
    """

    cdef readonly double radius
    cdef double reach         # of the row that is learned

    def __cinit__(self, n_features, n_classes, alpha, fit_intercept, features, intercept_alpha, double radius,
                  state=None):
        if n_classes != 2:
            raise ValueError(f"n_classes must be 2; got {n_classes}")
        self.radius = radius

    @property
    def slack(self):
        """What the losses exceed the minimum of F by; infinite if the past was forgotten."""
        return self.state.slack

    cdef int begin(self, Rows rows, bint complete) except -1:
        """Back up U as well: then no step stays pending, on whose rounding errors predictions would depend."""
        return SecondOrderLearner.begin(self, rows, True)

    cdef void foresee(self, const Row* row, double q, double* a) noexcept nogil:
        self.reach = self.radius * sqrt(ob_dot(row.x, row.x, row.n) + self.fit_intercept)
        a[0] = drawn_to_zero(a[0], q)

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        cdef Row image
        row = self.image_of(row, work, &image)
        self.score(row, scores)
        scores[0] = drawn_to_zero(scores[0], self.leverage(row, scratch(work, 1)))

    cdef int respond(self, double* a, const double* y, double weight, double q, Workspace* work,
                     double* h) noexcept nogil:
        cdef double sign, margin, odds, right, wrong, forward, curved
        if not 0 <= y[0] < 2:
            return BAD_TARGET
        if not q < INFINITY:
            return OVERFLOWED
        sign = 1.0 if y[0] == 1 else -1.0
        margin = sign * a[0]
        odds = exp(-fabs(margin))
        self.state.loss += weight * (max(-margin, 0.0) + log1p(odds))
        if not isfinite(self.state.loss):
            return LOSS_OVERFLOWED
        right, wrong = 1.0 / (1.0 + odds), odds / (1.0 + odds)  # probabilities of the label, and of the other one
        if margin < 0:
            right, wrong = wrong, right
        h[0] = right * wrong / (1.0 + max(self.reach - fabs(margin), 0.0) / 2)
        curved, forward = weight * h[0] * q, right - wrong
        # the minimum of F moves along A^-1 x by -(the slope at a of F and of the surrogate) / (1 + curved)
        a[0] = sign * (h[0] * q * forward - wrong) / (1.0 + curved)
        # the loss minus the increase of the minimum of F
        self.state.slack += q / 2 * ((forward + weight * wrong) ** 2 / (1.0 + curved) - forward * forward)
        if self.gamma < 1:
            self.state.slack = INFINITY
        return LEARNED if isfinite(a[0]) else OVERFLOWED
