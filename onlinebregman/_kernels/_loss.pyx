"""Matching losses as scalar methods: L(a, y) = D_H(a, h^-1(y)) with link h = H', so that dL/da = h(a) - y."""


cdef class Loss:
    cdef double value(self, double a, double y) noexcept nogil:
        return 0.0

    cdef double link(self, double a) noexcept nogil:
        return a

    cdef double link_derivative(self, double a) noexcept nogil:
        return 1.0


cdef class SquaredLoss(Loss):
    """(a - y)^2 / 2, link the identity."""

    def __cinit__(self):
        self.linear = True

    cdef double value(self, double a, double y) noexcept nogil:
        return 0.5 * (a - y) * (a - y)
