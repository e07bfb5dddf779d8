from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.matrices.reservoir cimport Percentiles, Reservoir
from onlinebregman._kernels.rows.rows cimport Rows


cdef class Sampler(Reservoir):
    cdef readonly Percentiles bounds, margins
    cdef readonly double n_rows      # learned
    cdef readonly double n_collapsed  # instances without information on the metric
    cdef const double[:, ::1] prior  # metric of the distances; None for the identity
    cdef Py_ssize_t per_row          # instances of each row
    cdef Learner metric              # the learner of rows that come without validation
    cdef bint one_sided, scaled
    # the current call
    cdef Learner learner             # the learner of the instances
    cdef bint again, sums_rates      # whether the rows were learned before; whether rates are summed
    cdef double[:, ::1] instances    # the first `made` are not learned yet
    cdef Rows instance_rows          # the same, as a learner reads them
    cdef double[::1] targets, rates  # of the instances
    cdef Py_ssize_t[::1] sources     # numbers of the rows that instances were made of
    cdef Py_ssize_t made
    cdef list recorded_rates            # of the current part of the call
    cdef Py_ssize_t n_parts          # rows in this part
    cdef readonly double rate_sum    # sum of the rates of the last call
    cdef readonly double refused_target   # target of the instance that could not be learned
    cdef double[::1] difference, image

    cdef Py_ssize_t instance_length(self) noexcept
    cdef double* next_instance(self) noexcept nogil
    cdef int reserve_instances(self) noexcept nogil
    cdef void make(self, double target, double sense, double scale, double weight, Py_ssize_t i) noexcept nogil
    cdef int flush(self) noexcept nogil
    cdef bint end_part(self) noexcept nogil
    cdef double squared(self, const double* z) noexcept nogil
    cdef void measure(self, Percentiles known, const double* distances, Py_ssize_t n) noexcept nogil


cdef double two_sums(const double* a, const double* b, Py_ssize_t n) noexcept nogil


cdef inline void subtract(double* z, const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        z[i] = a[i] - b[i]
