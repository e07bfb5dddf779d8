from onlinebregman._kernels.learners.hedge cimport Hedge


cdef class RegretHedge(Hedge):
    cdef double[::1] squares  # sums of r_k^2
    cdef double[::1] largest  # |r_k| so far

    cdef double regret_to(self, Py_ssize_t k) noexcept nogil


cdef class PolynomialHedge(RegretHedge):
    cdef double potential(self, Py_ssize_t k, double r) noexcept nogil


cdef class BernsteinHedge(RegretHedge):
    cdef double[::1] spent    # sums of eta_k r_k^2

    cdef double inverse_rate(self, Py_ssize_t k) noexcept nogil
    cdef double exponent(self, Py_ssize_t k) noexcept nogil
    cdef double potential(self) noexcept nogil
