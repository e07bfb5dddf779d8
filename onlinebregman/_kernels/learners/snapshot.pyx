"""The backup from which a call is undone if one of its rows cannot be learned.

It is a copy of all weights at the start or, if the rows store fewer values than there are weights, a log of each row's
weights before it is learned, undone from its end, so that the cost does not depend on the size of the model.
"""

from libc.stdlib cimport free
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.adaptive cimport AdaptiveGeometry
from onlinebregman._kernels.geometries.geometry cimport ADAPTIVE, COMPLETE, PARTIAL, Geometry, gather_row, scatter_row
from onlinebregman._kernels.ops.pointers cimport resized
from onlinebregman._kernels.ops.row cimport ob_sparse_nonfinite
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.rows cimport Row


cdef class Snapshot:
    """The state of a geometry before a call; its memory is kept for the next one."""

    def __dealloc__(self):
        free(self.saved)
        free(self.columns)

    cdef int save(self, Geometry geometry) except -1:
        """Start a backup: save the numbers of the geometry, but no weights yet."""
        self.complete, self.used, self.logged, self.held = False, 0, 0, None
        return geometry.state.save()

    cdef int hold(self, Geometry geometry) except -1:
        """Before settings change the geometry: keep what they may replace."""
        average = geometry.average
        self.held = geometry.upper, average.active, average.total, average.stamp, geometry.per_feature
        return 0

    cdef int begin(self, Geometry geometry, Py_ssize_t n_rows, Py_ssize_t n_values, bint complete) except -1:
        """Save all weights, or get ready to log those of rows of this number of values in all."""
        cdef Py_ssize_t start = geometry.first_mutable(n_rows) if complete else 0
        cdef Py_ssize_t size = geometry.weights.shape[0] - start if complete else n_values * geometry.per_feature
        self.n_vectors = geometry.moved_vectors(self.vectors)
        size *= self.n_vectors
        if size > self.capacity:
            self.saved, self.capacity = <double*> resized(self.saved, size * sizeof(double)), size
        if not complete and n_values + n_rows > self.room:
            self.columns = <Py_ssize_t*> resized(self.columns, (n_values + n_rows) * sizeof(Py_ssize_t))
            self.room = n_values + n_rows
        self.complete, self.start, self.used, self.logged = complete, start, 0, 0
        geometry.backup = COMPLETE if complete else PARTIAL
        if complete:
            self.move(geometry, NULL, True)
        return 0

    cdef void log(self, Geometry geometry, const Row* row) noexcept nogil:
        """Save the weights of a row before it is learned."""
        self.move(geometry, row, True)
        memcpy(&self.columns[self.logged], row.index, row.n * sizeof(Py_ssize_t))
        self.logged += row.n
        self.columns[self.logged] = row.n
        self.logged += 1

    cdef int restore(self, Geometry geometry) except -1:
        """Restore all that is saved."""
        cdef Row row
        geometry.state.restore()
        self.n_vectors = geometry.moved_vectors(self.vectors)
        if self.complete:
            self.move(geometry, NULL, False)
        while self.logged > 0:
            row.n = self.columns[self.logged - 1]
            self.logged -= 1 + row.n
            row.index = &self.columns[self.logged]
            self.move(geometry, &row, False)
        if self.held is not None:
            average = geometry.average
            geometry.upper, average.active, average.total, average.stamp, per_feature = self.held
            if geometry.traits & ADAPTIVE:
                (<AdaptiveGeometry> geometry).arrange(per_feature)
        return 0

    cdef void move(self, Geometry geometry, const Row* row, bint save) noexcept nogil:
        """Save all weights, or a row's, with the other vectors that steps change; or restore those saved last."""
        cdef Py_ssize_t n = geometry.weights.shape[0] - self.start if row == NULL else geometry.per_feature * row.n
        cdef double* vector
        cdef double* saved
        cdef int k
        if not save:
            self.used -= n * self.n_vectors
        for k in range(self.n_vectors):
            vector, saved = self.vectors[k] + self.start, self.saved + self.used + k * n
            if row == NULL:
                memcpy(saved if save else vector, vector if save else saved, n * sizeof(double))
            elif save:
                gather_row(geometry, row, vector, saved)
            else:
                scatter_row(geometry, row, saved, vector)
        if save:
            self.used += n * self.n_vectors

    cdef bint finite(self, Geometry geometry, const Row* row) noexcept nogil:
        """Whether the weights, all or those of a row, and their sums for averaging are finite."""
        if geometry.average.active and not self.finite_vector(geometry, geometry.average.total, row):
            return False
        return self.finite_vector(geometry, geometry.weights, row)

    cdef bint finite_vector(self, Geometry geometry, double[::1] state, const Row* row) noexcept nogil:
        cdef Py_ssize_t b
        cdef double total = 0.0
        if row == NULL:
            return ob_nonfinite(&state[self.start], state.shape[0] - self.start) == 0
        for b in range(geometry.per_feature):
            total += ob_sparse_nonfinite(&state[b * geometry.n_features], row.index, row.n)
        return total == 0
