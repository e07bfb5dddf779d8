from libc.math cimport exp, fabs, log, log1p


cdef struct Edge:             # where a smooth piece of a loss ends, on the way down
    double score
    double near               # the derivative on this side; NaN if it could not be found
    double far                # and on the other side; of the same size where the derivative bends and does not jump


cdef class Loss:
    cdef readonly bint linear     # is the derivative a - y everywhere? Of an inner loss: is it a straight line?
    cdef readonly bint logistic   # are value and derivatives those of LogisticLoss?
    cdef readonly Loss inner      # a smooth loss that goes on as this one does around the minimum; None: the loss itself
    cdef object interrupt         # Ctrl-C in the middle of a loss in Python
    cdef double value(self, double a, double y) noexcept nogil
    cdef double derivative(self, double a, double y) noexcept nogil
    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil
    cdef double link(self, double a) noexcept nogil
    cdef double curvature(self, double a, double y) noexcept nogil
    cdef void differentiate(self, double a, double y, double* slope, double* curvature) noexcept nogil
    cdef double self_concordance(self, double a) noexcept nogil
    cdef bint admits(self, double y) noexcept nogil


cdef class SquaredLoss(Loss):
    pass


cdef inline void logistic_derivatives(double a, double y, double* slope, double* curvature) noexcept nogil:
    """Those of ln(1 + e^a) - y a."""
    cdef double e = exp(-fabs(a))
    cdef double above = (1.0 if a >= 0 else e) / (1.0 + e), below = (1.0 if a <= 0 else e) / (1.0 + e)
    # as a weighted sum of the errors against 0 and 1: neither loses its digits where h(a) is near y = 0 or 1
    slope[0] = (1.0 - y) * above - y * below
    curvature[0] = above * below


cdef inline double softplus(double a) noexcept nogil:
    return max(a, 0.0) + log1p(exp(-fabs(a)))


cdef inline double xlogx(double x) noexcept nogil:
    return x * log(x) if x > 0 else 0.0


cdef inline double logistic_value(double a, double y) noexcept nogil:
    cdef double cross = 0.0
    if y > 0:
        cross += y * softplus(-a)
    if y < 1:
        cross += (1.0 - y) * softplus(a)
    if 0 < y < 1:
        cross = cross + xlogx(y) + xlogx(1.0 - y)
    return max(cross, 0.0)
