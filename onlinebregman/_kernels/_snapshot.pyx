"""All or nothing: what a call has to put back if one of its rows cannot be learned."""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from onlinebregman._kernels._geometry cimport Geometry
from onlinebregman._kernels._rows cimport Rows

cdef extern from "vector_ops.h":
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil


cdef class Snapshot:
    """The weights before a call: all of them, or those of the rows' columns if fewer."""

    def __cinit__(self, Geometry geometry, Rows rows, bint whole):
        cdef Py_ssize_t n = geometry.weights.shape[0] if whole else rows.stored * geometry.blocks
        self.geometry, self.rows, self.whole = geometry, rows, whole
        self.saved = <double*> malloc(max((3 if geometry.averaging else 1) * n, 1) * sizeof(double))
        if self.saved == NULL:
            raise MemoryError()
        geometry.backed_up, geometry.blocked = whole, False
        self.move(True)

    def __dealloc__(self):
        free(self.saved)

    cdef void restore(self):
        self.move(False)

    cdef void move(self, bint save):
        cdef double* saved = self.saved
        saved += self.move_vector(&self.geometry.weights[0], saved, save)
        if self.geometry.averaging:
            saved += self.move_vector(&self.geometry.average_sum[0], saved, save)
            self.move_vector(&self.geometry.stamp[0], saved, save)

    cdef Py_ssize_t move_vector(self, double* state, double* saved, bint save) noexcept nogil:
        cdef Py_ssize_t b, k, j, n = self.geometry.weights.shape[0], stored = self.rows.stored
        if self.whole:
            memcpy(saved if save else state, state if save else saved, n * sizeof(double))
            return n
        for b in range(self.geometry.blocks):
            for k in range(stored):
                j = b * self.geometry.n_features + self.rows.column(k)
                if save:
                    saved[b * stored + k] = state[j]
                else:
                    state[j] = saved[b * stored + k]
        return self.geometry.blocks * stored

    cdef bint finite(self) noexcept nogil:
        """Are the weights that may have moved finite?"""
        cdef Py_ssize_t b, k
        cdef double total = 0.0
        if self.whole:
            return ob_nonfinite(&self.geometry.weights[0], self.geometry.weights.shape[0]) == 0
        for b in range(self.geometry.blocks):
            for k in range(self.rows.stored):
                total += 0.0 * self.geometry.weights[b * self.geometry.n_features + self.rows.column(k)]
        return total == 0
