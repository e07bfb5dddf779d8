"""Losses as scalar methods of a score a and a target y; `onlinebregman.losses` is their readable definition.

A matching loss has the derivative h(a) - y with a smooth link h. The others are piecewise: away from the minimum the
derivative is constant, and around it the derivative jumps (hinge, absolute, quantile, epsilon-insensitive) or the loss
is a squared one (Huber, modified Huber); or the loss is squared on one side of a bound and 0 on the other.
"""

import numpy as np

from libc.math cimport INFINITY, NAN, copysign, exp, expm1, fabs, isfinite, log, log1p, pow, signbit

from onlinebregman._kernels.ops.logistic cimport ob_logistic_derivatives
from onlinebregman._kernels.ops.state cimport Stateful


cdef class Loss(Stateful):
    cdef double value(self, double a, double y) noexcept nogil:
        return 0.0

    cdef double derivative(self, double a, double y) noexcept nogil:
        """dL/da; at a kink the derivative of the side on which the prediction is a mistake."""
        return self.link(a) - y

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        """Find the next edge from a in the direction of the minimum, where the derivative jumps or starts to change."""
        return False

    cdef double kink(self, double a, double y) noexcept nogil:
        """The kink nearest to the score a, or the end of an interval without loss; NaN if there is none."""
        return NAN

    cdef double slope_at_kink(self, double kink, double y) noexcept nogil:
        """The subgradient nearest to 0 there."""
        return 0.0

    cdef double link(self, double a) noexcept nogil:
        """The prediction of a target."""
        return a

    cdef double score_of(self, double mean) noexcept nogil:
        """The score of the constant prediction that fits targets of this mean; NaN if it is not known."""
        return NAN

    cdef double curvature(self, double a, double y) noexcept nogil:
        """d^2L/da^2; h'(a) for a matching loss."""
        return 1.0

    cdef void differentiate(self, double a, double y, double* slope, double* curvature) noexcept nogil:
        """Both derivatives at once, bit for bit those of the two methods."""
        slope[0], curvature[0] = self.derivative(a, y), self.curvature(a, y)

    cdef double self_concordance(self, double a) noexcept nogil:
        """A bound on |L'''| / L'' around a."""
        return 0.0

    cdef bint admits(self, double y) noexcept nogil:
        """Whether y is a valid target."""
        return isfinite(y)


cdef inline bint jump(Edge* edge, double score, double slope) noexcept nogil:
    """Set an edge: the derivative is constant up to this score, and 0 or of the other sign behind it."""
    edge.score, edge.near, edge.far = score, slope, 0.0
    return True


cdef inline bint bend(Edge* edge, double score, double slope) noexcept nogil:
    """Set an edge: the derivative is constant up to this score, and that of the inner loss behind it."""
    edge.score, edge.near, edge.far = score, slope, slope
    return True


cdef class SquaredLoss(Loss):
    """(a - y)^2 / 2, link the identity."""

    def __cinit__(self):
        self.linear = True

    cdef double value(self, double a, double y) noexcept nogil:
        return 0.5 * (a - y) * (a - y)

    cdef double derivative(self, double a, double y) noexcept nogil:
        return a - y

    cdef void differentiate(self, double a, double y, double* slope, double* curvature) noexcept nogil:
        slope[0], curvature[0] = a - y, 1.0  # one method call: for short rows calls take much of the time


cdef class TwiceSquaredLoss(SquaredLoss):
    """(a - y)^2, link the identity."""

    cdef double value(self, double a, double y) noexcept nogil:
        return (a - y) * (a - y)

    cdef double derivative(self, double a, double y) noexcept nogil:
        return 2.0 * (a - y)

    cdef double curvature(self, double a, double y) noexcept nogil:
        return 2.0

    cdef void differentiate(self, double a, double y, double* slope, double* curvature) noexcept nogil:
        slope[0], curvature[0] = 2.0 * (a - y), 2.0


cdef class DistanceLoss(SquaredLoss):
    """(a - |y|)^2 / 2: the loss of a violated bound, see `BoundLoss`."""

    cdef double value(self, double a, double y) noexcept nogil:
        return 0.5 * (a - fabs(y)) * (a - fabs(y))

    cdef double derivative(self, double a, double y) noexcept nogil:
        return a - fabs(y)

    cdef void differentiate(self, double a, double y, double* slope, double* curvature) noexcept nogil:
        slope[0], curvature[0] = a - fabs(y), 1.0


cdef class BoundLoss(Loss):
    """max(a - y, 0)^2 / 2 where y >= 0, max(|y| - a, 0)^2 / 2 where y < 0 or y = -0."""

    def __cinit__(self):
        self.inner, self.kinked = DistanceLoss(), True

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double residual = self.derivative(a, y)
        return 0.5 * residual * residual

    cdef double derivative(self, double a, double y) noexcept nogil:
        return min(a + y, 0.0) if signbit(y) else max(a - y, 0.0)

    cdef double kink(self, double a, double y) noexcept nogil:
        return fabs(y)


cdef class LogisticLoss(Loss):
    """ln(1 + e^a) - y a + y ln y + (1 - y) ln(1 - y), link the sigmoid."""

    def __cinit__(self):
        self.logistic = True

    cdef double value(self, double a, double y) noexcept nogil:
        return logistic_value(a, y)

    cdef double derivative(self, double a, double y) noexcept nogil:
        cdef double slope, curvature
        self.differentiate(a, y, &slope, &curvature)
        return slope

    cdef void differentiate(self, double a, double y, double* slope, double* curvature) noexcept nogil:
        ob_logistic_derivatives(a, y, slope, curvature)

    cdef double link(self, double a) noexcept nogil:
        cdef double e = exp(-fabs(a))
        return (1.0 if a >= 0 else e) / (1.0 + e)

    cdef double score_of(self, double mean) noexcept nogil:
        return log(mean) - log1p(-mean)

    cdef double curvature(self, double a, double y) noexcept nogil:
        cdef double slope, curvature
        self.differentiate(a, y, &slope, &curvature)
        return curvature

    cdef double self_concordance(self, double a) noexcept nogil:
        return 1.0

    cdef bint admits(self, double y) noexcept nogil:
        return 0.0 <= y <= 1.0


cdef class LogLinkLoss(Loss):
    """Base class for positive means; link the exponential."""

    cdef double link(self, double a) noexcept nogil:
        return exp(a)

    cdef double score_of(self, double mean) noexcept nogil:
        return log(mean)


cdef class PoissonLoss(LogLinkLoss):
    """e^a - y a + y ln y - y, link the exponential."""

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double gap
        if y <= 0:
            return exp(a)
        gap = a - log(y)
        if fabs(gap) < 1:  # accurate near a = ln y; the direct form is accurate for tiny y and large a
            return max(y * (expm1(gap) - gap), 0.0)
        return max(exp(a) - y - y * gap, 0.0)

    cdef double curvature(self, double a, double y) noexcept nogil:
        return exp(a)

    cdef double self_concordance(self, double a) noexcept nogil:
        return 1.0

    cdef bint admits(self, double y) noexcept nogil:
        return 0.0 <= y < INFINITY


cdef inline double growth(double s, double g) noexcept nogil:
    """(e^(s g) - 1) / s; g for s = 0."""
    return expm1(s * g) / s if s != 0 else g


cdef class TweedieLoss(LogLinkLoss):
    """y^(2 - p) (growth(2 - p, g) - growth(1 - p, g)) for g = a - ln y, link the exponential; p from 1 to 2."""

    cdef readonly double power
    cdef double up, down      # 2 - p and p - 1

    def __cinit__(self, power=1.5):
        self.power, self.up, self.down = power, 2.0 - power, power - 1.0

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double gap, size, value
        if y <= 0:
            return exp(self.up * a) / self.up
        gap, size = a - log(y), pow(y, self.up)
        if fabs(gap) <= 1:  # accurate near a = ln y; the direct form is accurate for tiny y and large a
            return max(size * (growth(self.up, gap) - growth(-self.down, gap)), 0.0)
        value = (exp(self.up * a) - size) / self.up if self.up > 0 else gap
        value += (self.falling(a, y) - size) / self.down if self.down > 0 else -y * gap
        return max(value, 0.0)

    cdef double falling(self, double a, double y) noexcept nogil:
        return y * exp(-self.down * a) if y > 0 else 0.0

    cdef double derivative(self, double a, double y) noexcept nogil:
        return exp(self.up * a) - self.falling(a, y)

    cdef double curvature(self, double a, double y) noexcept nogil:
        return self.up * exp(self.up * a) + self.down * self.falling(a, y)

    cdef double self_concordance(self, double a) noexcept nogil:
        return max(self.up, self.down)

    cdef bint admits(self, double y) noexcept nogil:
        return (y > 0 or (y == 0 and self.power < 2)) and y < INFINITY


cdef class EpsilonInsensitiveLoss(Loss):
    """max(0, |a - y| - epsilon); the absolute loss with epsilon = 0."""

    cdef readonly double epsilon

    def __cinit__(self, epsilon=0.0):
        self.epsilon, self.kinked = epsilon, True

    cdef double value(self, double a, double y) noexcept nogil:
        return max(fabs(a - y) - self.epsilon, 0.0)

    cdef double derivative(self, double a, double y) noexcept nogil:
        return 1.0 if a > y + self.epsilon else -1.0 if a < y - self.epsilon else 0.0

    cdef double kink(self, double a, double y) noexcept nogil:
        return y + copysign(self.epsilon, a - y)

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        return jump(edge, self.kink(a, y), self.derivative(a, y))


cdef class SquaredEpsilonInsensitiveLoss(EpsilonInsensitiveLoss):
    """max(0, |a - y| - epsilon)^2."""

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double excess = max(fabs(a - y) - self.epsilon, 0.0)
        return excess * excess

    cdef double derivative(self, double a, double y) noexcept nogil:
        return 2.0 * (max(a - y - self.epsilon, 0.0) - max(y - a - self.epsilon, 0.0))

    cdef double curvature(self, double a, double y) noexcept nogil:
        return 2.0 if fabs(a - y) > self.epsilon else 0.0

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        return False


cdef class QuantileLoss(Loss):
    """quantile (y - a) below y, (1 - quantile) (a - y) above."""

    cdef readonly double quantile

    def __cinit__(self, quantile=0.5):
        self.quantile, self.kinked = quantile, True

    cdef double value(self, double a, double y) noexcept nogil:
        return (1.0 - self.quantile) * (a - y) if a > y else self.quantile * (y - a)

    cdef double derivative(self, double a, double y) noexcept nogil:
        return 1.0 - self.quantile if a > y else -self.quantile if a < y else 0.0

    cdef double kink(self, double a, double y) noexcept nogil:
        return y

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        return jump(edge, y, self.derivative(a, y))


cdef class HuberLoss(Loss):
    """(a - y)^2 / 2 up to |a - y| = epsilon, and its tangent beyond."""

    cdef readonly double epsilon

    def __cinit__(self, epsilon=1.35):
        self.epsilon = epsilon
        self.inner = SquaredLoss()

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double residual = fabs(a - y)
        if residual <= self.epsilon:
            return 0.5 * residual * residual
        return self.epsilon * (residual - 0.5 * self.epsilon)

    cdef double derivative(self, double a, double y) noexcept nogil:
        return min(max(a - y, -self.epsilon), self.epsilon)

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        if fabs(a - y) <= self.epsilon:
            return False
        return bend(edge, y + self.epsilon if a > y else y - self.epsilon, self.derivative(a, y))


cdef class MarginLoss(Loss):
    """Base class for labels y = -1 or 1; link the sign of the score."""

    def __cinit__(self, *arguments, **more):
        self.kinked = True

    cdef double kink(self, double a, double y) noexcept nogil:
        return y

    cdef double link(self, double a) noexcept nogil:
        return 1.0 if a > 0 else -1.0 if a < 0 else 0.0

    cdef bint admits(self, double y) noexcept nogil:
        return fabs(y) == 1.0


cdef class HingeLoss(MarginLoss):
    """max(0, margin - y a) for y = -1 or 1; with margin 0 the Perceptron's, for which a score of 0 is a mistake."""

    cdef readonly double margin

    def __cinit__(self, margin=1.0, drift=0.0):
        self.margin, self.drift = margin, drift

    cdef double value(self, double a, double y) noexcept nogil:
        return max(self.margin - y * a, 0.0)

    cdef double derivative(self, double a, double y) noexcept nogil:
        return -y if y * a < self.margin or (self.margin == 0 and y * a == 0) else 0.0

    cdef double kink(self, double a, double y) noexcept nogil:
        return y * self.margin

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        return jump(edge, y * self.margin, self.derivative(a, y))


cdef class SquaredHingeLoss(MarginLoss):
    """max(0, 1 - y a)^2 for y = -1 or 1."""

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double hinge = max(1.0 - y * a, 0.0)
        return hinge * hinge

    cdef double derivative(self, double a, double y) noexcept nogil:
        return 2.0 * (a - y) if y * a < 1.0 else 0.0

    cdef double curvature(self, double a, double y) noexcept nogil:
        return 2.0 if y * a < 1.0 else 0.0


cdef class ModifiedHuberLoss(MarginLoss):
    """The squared hinge down to y a = -1, and its tangent -4 y a below; link the score clipped to [-1, 1]."""

    def __cinit__(self):
        self.inner = TwiceSquaredLoss()

    cdef double value(self, double a, double y) noexcept nogil:
        cdef double hinge = max(1.0 - y * a, 0.0)
        return hinge * hinge if hinge <= 2.0 else 4.0 * (hinge - 1.0)

    cdef double derivative(self, double a, double y) noexcept nogil:
        return min(max(2.0 * (a - y), -2.0 - 2.0 * y), 2.0 - 2.0 * y)

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        return y * a < -1.0 and bend(edge, -y, self.derivative(a, y))

    cdef double link(self, double a) noexcept nogil:
        return min(max(a, -1.0), 1.0)


cdef class NumPyLoss(Loss):
    """Any `Loss` object as a compiled loss, which calls its NumPy methods, at the speed of Python."""

    cdef readonly object definition

    def __cinit__(self, definition):
        self.definition, self.kinked = definition, definition._kinked

    cdef double call(self, str method, tuple arguments) noexcept:
        if self.interrupt is not None:
            return NAN  # so that the loop ends
        try:
            return getattr(self.definition, method)(*arguments)
        except (ArithmeticError, ValueError):
            return NAN  # there is no such number, as where `math.exp` overflows at a trial step
        except BaseException as error:
            self.interrupt = error
            return NAN

    cdef double value(self, double a, double y) noexcept nogil:
        with gil:
            return self.call("value", (a, y))

    cdef double derivative(self, double a, double y) noexcept nogil:
        with gil:
            return self.call("derivative", (a, y))

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        with gil:
            try:
                return self._next_edge(a, y, edge)
            except (ArithmeticError, ValueError):  # then no step is found, and the row is refused
                pass
            except BaseException as error:
                self.interrupt = error
            edge.near = NAN
            return True

    cdef bint _next_edge(self, double a, double y, Edge* edge) except -1:
        edges = np.concatenate([np.ravel(self.definition.kinks(y)), np.ravel(self.definition.bends(y))])
        upwards = self.definition.derivative(a, y) < 0
        ahead = edges[edges >= a] if upwards else edges[edges <= a]
        if ahead.size == 0:
            return False
        edge.score = ahead.min() if upwards else ahead.max()
        left, right = self.definition.subdifferential(edge.score, y)
        edge.near, edge.far = (left, right) if upwards else (right, left)
        return True

    cdef double kink(self, double a, double y) noexcept nogil:
        with gil:
            return self.call("_nearest_kink", (a, y))

    cdef double slope_at_kink(self, double kink, double y) noexcept nogil:
        with gil:
            return self.call("_slope_at_kink", (kink, y))

    cdef double link(self, double a) noexcept nogil:
        if not isfinite(a):  # there is no prediction
            return NAN
        with gil:
            return self.call("link", (a,))

    cdef double curvature(self, double a, double y) noexcept nogil:
        with gil:
            return self.call("curvature", (a, y))

    cdef double self_concordance(self, double a) noexcept nogil:
        return INFINITY

    cdef bint admits(self, double y) noexcept nogil:
        with gil:
            try:
                self.definition.check_target(y)
            except ValueError:
                return False
            except BaseException as error:
                self.interrupt = error
                return False
            return True
