cdef enum Piece:              # how the derivative of a loss goes on from a score towards the minimum
    SMOOTH                    # by a smooth link
    BENDS                     # constant up to an edge, then by a smooth link
    JUMPS                     # constant up to an edge, then 0 or of the other sign


cdef class Loss:
    cdef readonly bint linear     # is the derivative a - y everywhere?
    cdef readonly Loss inner      # the matching loss around the minimum; None: the loss itself
    cdef object interrupt         # Ctrl-C in the middle of a loss in Python
    cdef double value(self, double a, double y) noexcept nogil
    cdef double derivative(self, double a, double y) noexcept nogil
    cdef Piece piece(self, double a, double y, double* edge) noexcept nogil
    cdef double link(self, double a) noexcept nogil
    cdef double curvature(self, double a, double y) noexcept nogil
    cdef double self_concordance(self, double a) noexcept nogil
    cdef bint admits(self, double y) noexcept nogil


cdef class SquaredLoss(Loss):
    pass


cdef class DistanceLoss(SquaredLoss):
    pass


cdef class EpsilonInsensitiveLoss(Loss):
    cdef readonly double epsilon


cdef class HuberLoss(Loss):
    cdef readonly double epsilon


cdef class HingeLoss(Loss):
    cdef readonly double margin
