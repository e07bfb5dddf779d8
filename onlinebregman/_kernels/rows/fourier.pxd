from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.rows.rows cimport Row

cimport cython


@cython.final
cdef class FourierFeatures(Stateful):
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t n_components
    cdef readonly object frequencies  # omega / (2 pi), a row for each component
    cdef readonly object phases  # b / (2 pi)
    cdef double[:, ::1] omega  # a row of frequencies for each column, as they are added up
    cdef double[::1] b        # the phases

    cdef void apply(self, const Row* row, double* z) noexcept nogil
