cdef struct Edge:             # where a smooth piece of a loss ends, on the way down
    double score
    double near               # the derivative on this side; NaN if it could not be found
    double far                # and on the other side; of the same size where the derivative bends and does not jump


cdef class Loss:
    cdef readonly bint linear     # is the derivative a - y everywhere? Of an inner loss: is it a straight line?
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

