from libc.math cimport log

from onlinebregman._kernels.ops.logistic cimport ob_softplus
from onlinebregman._kernels.ops.state cimport Stateful


cdef struct Edge:             # where a smooth piece of a loss ends, in the direction of the minimum
    double score
    double near               # the derivative on this side; NaN if it could not be computed
    double far                # the derivative on the other side; the same if it is continuous there


cdef class Loss(Stateful):
    cdef readonly bint linear     # whether the derivative is a - y everywhere (of an inner loss: linear in a)
    cdef readonly bint kinked     # whether `kink` may find one
    cdef readonly bint logistic   # whether value and derivatives are those of LogisticLoss
    cdef readonly double drift    # v of the term v b of the intercept b that is added to the loss
    cdef readonly Loss inner      # a smooth loss equal to this one around its minimum; None: the loss itself
    cdef object interrupt         # an exception raised by a loss in Python that ends the call
    cdef double value(self, double a, double y) noexcept nogil
    cdef double derivative(self, double a, double y) noexcept nogil
    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil
    cdef double kink(self, double a, double y) noexcept nogil
    cdef double slope_at_kink(self, double kink, double y) noexcept nogil
    cdef double link(self, double a) noexcept nogil
    cdef double score_of(self, double mean) noexcept nogil
    cdef double curvature(self, double a, double y) noexcept nogil
    cdef void differentiate(self, double a, double y, double* slope, double* curvature) noexcept nogil
    cdef double self_concordance(self, double a) noexcept nogil
    cdef bint admits(self, double y) noexcept nogil


cdef class SquaredLoss(Loss):
    pass


cdef inline double xlogx(double x) noexcept nogil:
    return x * log(x) if x > 0 else 0.0


cdef inline double logistic_value(double a, double y) noexcept nogil:
    cdef double cross = 0.0
    if y > 0:
        cross += y * ob_softplus(-a)
    if y < 1:
        cross += (1.0 - y) * ob_softplus(a)
    if 0 < y < 1:
        cross = cross + xlogx(y) + xlogx(1.0 - y)
    return max(cross, 0.0)
