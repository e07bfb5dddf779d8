"""Losses as scalar methods of a score a and a target y; `onlinebregman.losses` is their readable definition.

A matching loss has the derivative h(a) - y with a smooth link h. The others are of pieces: constant derivative away from
the minimum, and around it a jump (hinge, absolute, epsilon-insensitive) or the squared loss (Huber); or the squared loss
on one side of a bound and 0 on the other.
"""

from libc.math cimport INFINITY, exp, expm1, fabs, isfinite, log, log1p, signbit


cdef class Loss:
    def __reduce__(self):
        return type(self), self._arguments()

    def _arguments(self):
        return ()

    cdef double value(self, double a, double y) noexcept nogil:
        return 0.0

    cdef double derivative(self, double a, double y) noexcept nogil:
        """dL/da; at a kink the side on which the prediction is a mistake."""
        return self.link(a) - y

    cdef Piece piece(self, double a, double y, double* edge) noexcept nogil:
        """How the derivative goes on from a; `edge` is the score where a constant piece ends."""
        return SMOOTH

    cdef double link(self, double a) noexcept nogil:
        """The prediction of a target."""
        return a

    cdef double curvature(self, double a, double y) noexcept nogil:
        """d^2L/da^2, h'(a) for a matching loss."""
        return 1.0

    cdef double self_concordance(self, double a) noexcept nogil:
        """A bound on |L'''| / L'' around a."""
        return 0.0

    cdef bint admits(self, double y) noexcept nogil:
        """Is y an admissible target?"""
        return isfinite(y)


cdef class SquaredLoss(Loss):
    """(a - y)^2 / 2, link the identity."""

    def __cinit__(self):
        self.linear = True

    cdef double value(self, double a, double y) noexcept nogil:
        return 0.5 * (a - y) * (a - y)


cdef class DistanceLoss(SquaredLoss):
    """(a - |y|)^2 / 2: both senses of a bound on the side where it does not hold."""

    cdef double value(self, double a, double y) noexcept nogil:
        return 0.5 * (a - fabs(y)) * (a - fabs(y))

    cdef double derivative(self, double a, double y) noexcept nogil:
        return a - fabs(y)


cdef class BoundLoss(Loss):
    """max(a - y, 0)^2 / 2 where y >= 0, max(|y| - a, 0)^2 / 2 where y < 0 or y = -0."""

    def __cinit__(self):
        self.inner = DistanceLoss()

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double gap = self.derivative(a, y)
        return 0.5 * gap * gap

    cdef double derivative(self, double a, double y) noexcept nogil:
        return min(a + y, 0.0) if signbit(y) else max(a - y, 0.0)


cdef inline double softplus(double a) noexcept nogil:
    return max(a, 0.0) + log1p(exp(-fabs(a)))


cdef inline double xlogx(double x) noexcept nogil:
    return x * log(x) if x > 0 else 0.0


cdef class LogisticLoss(Loss):
    """ln(1 + e^a) - y a + y ln y + (1 - y) ln(1 - y), link the sigmoid."""

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double cross = 0.0
        if y > 0:
            cross += y * softplus(-a)
        if y < 1:
            cross += (1.0 - y) * softplus(a)
        return max(cross + xlogx(y) + xlogx(1.0 - y), 0.0)

    cdef double derivative(self, double a, double y) noexcept nogil:
        # as a weighted sum of the errors against 0 and 1: neither loses its digits where h(a) is near y = 0 or 1
        return (1.0 - y) * self.link(a) - y * self.link(-a)

    cdef double link(self, double a) noexcept nogil:
        cdef double e = exp(-fabs(a))
        return (1.0 if a >= 0 else e) / (1.0 + e)

    cdef double curvature(self, double a, double y) noexcept nogil:
        return self.link(a) * self.link(-a)

    cdef double self_concordance(self, double a) noexcept nogil:
        return 1.0

    cdef bint admits(self, double y) noexcept nogil:
        return 0.0 <= y <= 1.0


cdef class PoissonLoss(Loss):
    """e^a - y a + y ln y - y, link the exponential."""

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double gap
        if y <= 0:
            return exp(a)
        gap = a - log(y)
        if fabs(gap) < 1:  # keeps the digits near a = ln y; the direct form those of tiny y and large a
            return max(y * (expm1(gap) - gap), 0.0)
        return max(exp(a) - y - y * gap, 0.0)

    cdef double link(self, double a) noexcept nogil:
        return exp(a)

    cdef double curvature(self, double a, double y) noexcept nogil:
        return exp(a)

    cdef double self_concordance(self, double a) noexcept nogil:
        return 1.0

    cdef bint admits(self, double y) noexcept nogil:
        return 0.0 <= y < INFINITY


cdef class EpsilonInsensitiveLoss(Loss):
    """max(0, |a - y| - epsilon); the absolute loss with epsilon = 0."""

    def __cinit__(self, epsilon=0.0):
        self.epsilon = epsilon
        self.inner = SquaredLoss()

    def _arguments(self):
        return (self.epsilon,)

    cdef double value(self, double a, double y) noexcept nogil:
        return max(fabs(a - y) - self.epsilon, 0.0)

    cdef double derivative(self, double a, double y) noexcept nogil:
        return 1.0 if a - y > self.epsilon else -1.0 if a - y < -self.epsilon else 0.0

    cdef Piece piece(self, double a, double y, double* edge) noexcept nogil:
        edge[0] = y + self.epsilon if a > y else y - self.epsilon
        return JUMPS


cdef class HuberLoss(Loss):
    """(a - y)^2 / 2 up to |a - y| = epsilon, and from there on the tangent."""

    def __cinit__(self, epsilon=1.35):
        self.epsilon = epsilon
        self.inner = SquaredLoss()

    def _arguments(self):
        return (self.epsilon,)

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double gap = fabs(a - y)
        return 0.5 * gap * gap if gap <= self.epsilon else self.epsilon * (gap - 0.5 * self.epsilon)

    cdef double derivative(self, double a, double y) noexcept nogil:
        return min(max(a - y, -self.epsilon), self.epsilon)

    cdef Piece piece(self, double a, double y, double* edge) noexcept nogil:
        if fabs(a - y) <= self.epsilon:
            return SMOOTH
        edge[0] = y + self.epsilon if a > y else y - self.epsilon
        return BENDS


cdef class HingeLoss(Loss):
    """max(0, margin - y a) for y = -1 or 1: the Perceptron's with margin 0, where a score of 0 is a mistake."""

    def __cinit__(self, margin=1.0):
        self.margin = margin
        self.inner = SquaredLoss()

    def _arguments(self):
        return (self.margin,)

    cdef double value(self, double a, double y) noexcept nogil:
        return max(self.margin - y * a, 0.0)

    cdef double derivative(self, double a, double y) noexcept nogil:
        if y * a < self.margin or (self.margin == 0 and y * a == 0):
            return -y
        return 0.0

    cdef Piece piece(self, double a, double y, double* edge) noexcept nogil:
        edge[0] = y * self.margin
        return JUMPS

    cdef double link(self, double a) noexcept nogil:
        return 1.0 if a > 0 else -1.0 if a < 0 else 0.0

    cdef bint admits(self, double y) noexcept nogil:
        return fabs(y) == 1.0
