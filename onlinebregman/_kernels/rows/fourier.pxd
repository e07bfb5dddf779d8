from onlinebregman._kernels.rows.rows cimport Row

cimport cython


@cython.final
cdef class FourierFeatures:
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t n_components
    cdef double[:, ::1] frequencies  # in turns, of each component a row
    cdef double[::1] phases

    cdef void apply(self, const Row* row, double* z) noexcept nogil


cdef inline const Row* mapped(FourierFeatures features, const Row* row, double* z, Row* image) noexcept nogil:
    """The row as it is learned: its features in z, in a row of their own; or as it comes."""
    if features is None:
        return row
    features.apply(row, z)
    image.x, image.index, image.n = z, NULL, features.n_components
    return image
