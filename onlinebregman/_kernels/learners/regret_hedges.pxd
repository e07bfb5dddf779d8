from onlinebregman._kernels.learners.hedge cimport Hedge


cdef class RegretHedge(Hedge):
    cdef double[::1] squares  # sums of r_k^2
    cdef double[::1] largest  # |r_k| so far

    cdef double regret_to(self, Py_ssize_t k) noexcept nogil
    cdef double prior_of(self, Py_ssize_t k) noexcept nogil
    cdef void add(self, const double* costs, double cost) noexcept nogil


cdef class PolynomialHedge(RegretHedge):
    cdef double unit(self) noexcept nogil
    cdef double potential(self, Py_ssize_t k, double r, double unit) noexcept nogil


cdef class BernsteinHedge(RegretHedge):
    cdef double[::1] spent    # sums of eta_k r_k^2

    cdef double information(self, Py_ssize_t k) noexcept nogil
    cdef double inverse_rate(self, Py_ssize_t k) noexcept nogil
    cdef double exponent(self, Py_ssize_t k) noexcept nogil
    cdef double potential(self) noexcept nogil
