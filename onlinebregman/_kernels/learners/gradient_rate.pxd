from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace
from onlinebregman._kernels.learners.rule cimport Rule


cdef struct RateState:
    double radius             # the largest |x| so far: of a value, or the squared norm of an instance
    double mass               # the largest sum of weights where a row is not 0
    double sum_bound          # a given lower bound on what is taken for that sum
    double rate               # the last one
    double noted              # the last one in the history
    double first_rate


cdef class GradientRate(Rule):
    cdef Rule schedule        # an upper bound on the rates
    cdef RateState state, before
    cdef list history         # (row number, rate) whenever the rate had fallen by a tenth
    cdef Py_ssize_t n_before

    cdef double cap(self, Geometry geometry, Workspace* work, double residual, double intercept_xSx) noexcept nogil
    cdef void return_to(self, RateState state, Py_ssize_t n) noexcept


cdef GradientRate gradient_rate(Geometry geometry, Rule schedule)
