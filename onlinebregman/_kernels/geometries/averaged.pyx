"""The averaged weights of a geometry, computed only for the row that they predict."""

from libc.math cimport isfinite

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace
from onlinebregman._kernels.ops.row cimport ob_gathered_dot
from onlinebregman._kernels.ops.vector cimport ob_dot


cdef class AveragedGeometry(Geometry):
    """A view of the averaged weights of a geometry that stores its weights; it only has `load` and `dot`.

    Scores are bit for bit those of a Euclidean geometry with the averaged weights.

    Parameters
    ----------
    source : Geometry
    average_over : float
        The number of steps.
    """

    cdef double average_over

    def __init__(self, Geometry source not None, double average_over):
        self.weights, self.average_sum, self.stamp = source.weights, source.average_sum, source.stamp
        self.n_features, self.per_feature, self.is_signed = source.n_features, source.per_feature, source.is_signed
        self.clock, self.average_over = source.clock, average_over
        self.averaging = self.average_sum is not None and self.stamp is not None  # another thread may discard them

    def __reduce__(self):
        raise TypeError("a view of averaged weights cannot be pickled")

    cdef double average(self, Py_ssize_t j) noexcept nogil:
        """Like `average_of`, for one weight."""
        cdef double time = self.clock - self.stamp[j], w = self.weights[j]
        cdef double average = (self.average_sum[j] + w * time) / self.average_over
        if isfinite(average):
            return average
        return self.average_sum[j] / self.average_over + w * (time / self.average_over)

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef Py_ssize_t i, j
        work.w = work.vectors
        for i in range(work.n):
            j = i if work.row.index == NULL else work.row.index[i]
            work.w[i] = self.average(j)
            if self.is_signed:
                work.w[i] -= self.average(self.n_features + j)

    cdef double dot(self, Workspace* work) noexcept nogil:
        if work.row.index == NULL:
            return ob_dot(work.w, work.x, work.n)
        return ob_gathered_dot(work.w, work.x, work.n)
