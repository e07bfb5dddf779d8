from onlinebregman._kernels.learners.hedge cimport Hedge
from onlinebregman._kernels.ops.state cimport Undoable

cdef enum:
    VOTES = 2                 # the number of the combination of votes, which only classes have


cdef struct Residuals:        # of the mixture
    double weight
    double squares


cdef class Stack(Undoable):  # what it learns are the factors and residuals
    cdef readonly Hedge hedge            # of the mixture and the combinations
    cdef readonly double prior           # the mixture's weight at the start
    cdef readonly Py_ssize_t n_experts
    cdef readonly Py_ssize_t n           # combinations
    cdef double[::1] alpha, forgetting, least  # of each
    cdef double[:, ::1] factors          # of each
    cdef double[:, ::1] b                # of each, of classes: those of numbers are never needed alone
    cdef Residuals residuals
    cdef Residuals* known                # those with which the next row is predicted: the same, or those at `hold`
    cdef Residuals held

    cdef void pass_by(self, double loss, double weight, double* u, double* losses) noexcept nogil
    cdef double scale(self, double target_range) noexcept nogil
    cdef double ridge(self, Py_ssize_t j, const double* x, double* buffer, double* share) noexcept nogil
    cdef double predict(self, Py_ssize_t j, const double* x, double* buffer) noexcept nogil
    cdef void restart(self, Py_ssize_t j) noexcept nogil
    cdef bint learn(self, Py_ssize_t j, const double* x, double y, double weight, double* buffer) noexcept nogil
