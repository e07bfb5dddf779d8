"""The squared Euclidean geometry: gradient descent, in a ball if one is given; and averages of weights, read as one."""

cimport cython
from libc.math cimport INFINITY, isfinite, ldexp, sqrt

from onlinebregman._kernels.geometries.geometry cimport LINEAR, SIGNED, Average, Geometry, Lazy, Workspace
from onlinebregman._kernels.ops.penalty cimport (
    ob_soft_threshold, ob_soft_threshold_row, ob_soft_thresholds, ob_soft_thresholds_and_ridge
)
from onlinebregman._kernels.ops.row cimport ob_gathered_dot, ob_sparse_axpy, ob_sparse_dot
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_clip, ob_dot, ob_dot_and_square


cdef double euclidean_proximal(double w, double l1, double l2) noexcept nogil:
    return ob_soft_threshold(w, l1) / (1.0 + l2)


cdef double euclidean_distance(double v, double w) noexcept nogil:
    return 0.5 * (v - w) * (v - w)


cdef inline bint in_place(EuclideanGeometry geometry, Workspace* work) noexcept nogil:
    return work.row.index != NULL and work.w == &geometry.weights[0]


@cython.final
cdef class EuclideanLazy(Lazy):

    cdef bint composes(self, Geometry geometry) noexcept nogil:
        return (<EuclideanGeometry> geometry).radius == INFINITY  # the ball needs all weights at each row

    cdef bint averages(self, Geometry geometry) noexcept nogil:
        return self.composes(geometry) and self.l1 == 0 and geometry.upper >= 0

    cdef void step_row(self, Geometry geometry, Workspace* work, double l1, double l2, bint missed) noexcept nogil:
        cdef Py_ssize_t b
        for b in range(geometry.per_feature):
            ob_soft_threshold_row(
                work.w + b * work.row.n, &self.stamp[b * geometry.n_features] if missed else NULL, work.row.index, l1,
                l2, work.row.n,
            )

    cdef double shrink_all(self, Geometry geometry, double eta, bint tracked) noexcept nogil:
        cdef double l1 = eta * self.l1, l2 = eta * self.l2
        cdef double* w = &geometry.weights[0]
        cdef Py_ssize_t n = geometry.weights.shape[0]
        if tracked:
            return Lazy.shrink_all(self, geometry, eta, tracked)
        if l2 == 0:
            ob_soft_thresholds(w, l1, n)
        else:
            ob_soft_thresholds_and_ridge(w, l1, l2, n)
        if geometry.upper < INFINITY:
            ob_clip(w, geometry.upper, n)
        return 0.0


cdef class EuclideanGeometry(Geometry):
    """w(c) = w - c x, S = I.

    With a `radius`, each step is followed by the projection onto the ball norm(w) <= radius.
    """

    def __init__(self, weights, is_signed=False, upper=INFINITY, radius=INFINITY, state=None):
        self.radius = radius
        super().__init__(weights, is_signed, upper, state)

    def __cinit__(self):
        self.traits |= LINEAR
        self.lazy = EuclideanLazy()
        self.lazy.proximal, self.lazy.distance = euclidean_proximal, euclidean_distance

    def _arguments(self):
        return super()._arguments() + (self.radius,)

    cdef void fetch_weights(self, Workspace* work) noexcept nogil:
        if work.row.index == NULL or self.traits & SIGNED or self.upper < INFINITY or self.lazy.active:
            Geometry.fetch_weights(self, work)
        else:
            work.w = &self.weights[0]  # a sparse row is learned in place

    cdef void store(self, Workspace* work) noexcept nogil:
        if not in_place(self, work):
            Geometry.store(self, work)

    cdef double dot(self, Workspace* work) noexcept nogil:
        if in_place(self, work):
            return ob_sparse_dot(work.w, work.row.index, work.x, work.n)
        return Geometry.dot(self, work)

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        if in_place(self, work):
            value[0], slope[0] = ob_sparse_dot(work.w, work.row.index, work.x, work.n), ob_dot(work.x, work.x, work.n)
        else:
            value[0] = ob_dot_and_square(work.w, work.x, work.n, slope)
            if self.traits & SIGNED:
                value[0] = Geometry.dot(self, work)

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        if in_place(self, work):
            ob_sparse_axpy(work.w, work.row.index, work.x, c, work.n)
        else:
            ob_axpy(work.w, work.x, c, work.n)

    cdef void renormalise(self, Workspace* work) noexcept nogil:
        """The projection onto the ball."""
        cdef Py_ssize_t i, n = self.weights.shape[0]
        cdef double total, share  # share: the factor of the projection
        if self.radius == INFINITY:
            return
        total = ob_dot(&self.weights[0], &self.weights[0], n)
        share = self.radius / sqrt(total)
        if total == INFINITY:
            total = 0.0
            for i in range(n):
                total += ldexp(self.weights[i], -600) ** 2
            share = ldexp(self.radius / sqrt(total), -600)
        if share >= 1.0:
            return
        if not self.may_move_all():
            return
        for i in range(n):
            self.weights[i] *= share


cdef class AveragedGeometry(Geometry):
    """A view of the averages of weights that a geometry stores, computed only for the row that they predict.

    It only has `load` and `dot`. Scores are bit for bit those of a Euclidean geometry with the averaged weights.

    Parameters
    ----------
    source : Geometry
    average_over : float
        The number of steps.
    """

    cdef double average_over

    def __init__(self, Geometry source not None, double average_over):
        cdef Average own = self.average, average = source.average
        self.weights, own.total, own.stamp, own.clock = source.weights, average.total, average.stamp, average.clock
        self.n_features, self.per_feature = source.n_features, source.per_feature
        self.traits = source.traits & SIGNED
        self.average_over = average_over
        own.active = own.total is not None and own.stamp is not None  # another thread may discard them

    def __reduce__(self):
        raise TypeError("a view of averaged weights cannot be pickled")

    cdef double mean(self, Py_ssize_t j) noexcept nogil:
        """Like `average_of`, for one weight."""
        cdef double total = self.average.total[j], time = self.average.clock - self.average.stamp[j]
        cdef double w = self.weights[j], mean = (total + w * time) / self.average_over
        return mean if isfinite(mean) else total / self.average_over + w * (time / self.average_over)

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef Py_ssize_t i, j
        work.w = work.vectors
        for i in range(work.n):
            j = i if work.row.index == NULL else work.row.index[i]
            work.w[i] = self.mean(j)
            if self.traits & SIGNED:
                work.w[i] -= self.mean(self.n_features + j)

    cdef double dot(self, Workspace* work) noexcept nogil:
        if work.row.index == NULL:
            return ob_dot(work.w, work.x, work.n)
        return ob_gathered_dot(work.w, work.x, work.n)
