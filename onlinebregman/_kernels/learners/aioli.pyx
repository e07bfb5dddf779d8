"""AIOLI: logistic regression whose predictions depend on the row as more than a linear function of it.

F is the penalty plus a quadratic surrogate of the loss of each row so far, w its minimum and A its Hessian. The score
of a row x is that of

    argmin_u F(u) + L(u.x, 1) + L(u.x, 0),    which is the root of z = a - q tanh(z / 2),  a = w.x,  q = x'A^-1 x.

Then the row, of weight h, adds to F the h-fold of

    L(z) + L'(z) (u.x - z) + kappa (u.x - z)^2 / 2,    kappa = L''(z) / (1 + max(reach - |z|, 0) / 2),

which is at most L(u.x) for all |u.x| <= reach = radius |x|.
"""

cimport cython
from libc.math cimport INFINITY, NAN, copysign, exp, fabs, isfinite, log1p, sqrt, tanh

from onlinebregman._kernels.geometries.geometry cimport Workspace, scratch
from onlinebregman._kernels.learners.second_order cimport SecondOrderLearner
from onlinebregman._kernels.learners.softmax cimport SoftmaxLearner
from onlinebregman._kernels.learners.state cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED, OVERFLOWED
from onlinebregman._kernels.ops.forward cimport ob_leverage
from onlinebregman._kernels.ops.vector cimport ob_dot
from onlinebregman._kernels.rows.fourier cimport mapped
from onlinebregman._kernels.rows.rows cimport Row, Rows

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
    """Learns rows of two classes, one after the other.

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

    cdef void score_row(self, const Row* row, Workspace* work, double* scores) noexcept nogil:
        cdef Row image
        cdef double* move = self.pivots() + self.padded
        row = mapped(self.features, row, scratch(work, 4), &image)
        self.score(row, scores)
        scores[0] = drawn_to_zero(scores[0], ob_leverage(
            &self.memory[self.vectors()], move, move + self.padded, self.pivots(), row.x, row.index, row.n,
            self.n_inputs if self.fit_intercept else -1, self.padded,
        ))

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
