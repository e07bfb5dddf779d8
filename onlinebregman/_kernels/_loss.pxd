cdef class Loss:
    cdef readonly bint linear  # is the link the identity?
    cdef double value(self, double a, double y) noexcept nogil
    cdef double link(self, double a) noexcept nogil
    cdef double link_derivative(self, double a) noexcept nogil


cdef class SquaredLoss(Loss):
    pass
