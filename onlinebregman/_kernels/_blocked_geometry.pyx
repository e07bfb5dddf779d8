"""The LogDet geometry for many features: updates wait until one product with a matrix can make them together.

After m updates W = W_0 - sum_p s_p v_p v_p', and a step needs W_0 z and 2 m vector operations. W_0 z of many rows is one
product, read from the cache and not, like a matrix and a vector, from memory; so is the update of rank m at the end.
"""

import numpy as np

from libc.string cimport memcpy

from onlinebregman._kernels._geometry cimport Row, scratch
from onlinebregman._kernels._matrix_geometry cimport LogDetGeometry

cdef extern from "matrix_ops.h":
    enum:
        OB_PART
        OB_PANEL
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_correct(double* y, const double* v, const double* s, const double* z, Py_ssize_t m,
                    Py_ssize_t d) noexcept nogil
    void ob_times_one(const double* w, const double* z, double* y, double* t, Py_ssize_t d) noexcept nogil
    void ob_times(const double* w, const double* z, double* y, Py_ssize_t k, Py_ssize_t d, double* t) noexcept nogil
    void ob_update(double* w, const double* v, const double* s, Py_ssize_t m, Py_ssize_t d, double* t) noexcept nogil
# So many updates are made together, counted over the stream: how it is cut into calls changes nothing. A triplet may add
# one more. Their vectors and those of as many rows to come fill whole tiles of the product.
cdef enum:
    BLOCK = 64
    VECTORS = BLOCK + 1
    COMING = 66


cdef class BlockedLogDetGeometry(LogDetGeometry):
    """LogDet divergence with updates of rank 64; the numbers of `LogDetGeometry` but for rounding.

    The state is W_0, all of it, then the rows v_p, and the s_p in as many rows as they need; `state.steps` is m.

    Parameters
    ----------
    weights : ndarray of shape (d, d), or (d + more, d)
        The positive definite matrix to start from, or the state; copied.
    """

    cdef double[:, ::1] coming  # z of the next rows,
    cdef double[:, ::1] product  # and W_0 z
    cdef double[::1] room_
    cdef Py_ssize_t n_coming, n_done
    cdef bint multiplied

    def __cinit__(self):
        self.foresees = True

    def __init__(self, weights):
        weights = np.asarray(weights, dtype=np.float64)
        d = weights.shape[1]
        if weights.shape[0] == d:
            whole = np.triu(weights) + np.triu(weights, 1).T
            weights = np.vstack([whole, np.zeros((VECTORS + -(-VECTORS // d), d))])
        super().__init__(weights)
        self.coming, self.product = np.zeros((COMING, d)), np.zeros((COMING, d))
        self.room_ = np.zeros(max((2 * d + 12) * VECTORS, OB_PART * OB_PANEL))

    def _arguments(self):
        d = self.n_features
        state = np.asarray(self.weights).reshape(self.blocks, d).copy()
        state[d + self.state.steps : d + VECTORS] = 0.0  # left from calls that were undone
        return (state,)

    def _to_coef(self, weights):
        d, m = self.n_features, self.state.steps
        weights = weights.reshape(self.blocks, d)
        v, s = weights[d : d + m], weights[d + VECTORS :].ravel()[:m]
        upper = np.triu(weights[:d] - (v.T * s) @ v)
        return upper + np.triu(upper, 1).T

    cdef Py_ssize_t at_rest(self, Py_ssize_t n_rows) noexcept nogil:
        """All but the s_p, if they need not be worked in: vectors beyond the m-th count for nothing."""
        return (self.n_features + VECTORS) * self.n_features if self.state.steps + 2 * n_rows < BLOCK else 0

    cdef void forget(self) noexcept nogil:
        self.n_coming = self.n_done = 0

    cdef Py_ssize_t wants(self) noexcept nogil:
        if self.n_done < self.n_coming:
            return 0
        self.forget()
        return BLOCK - self.state.steps

    cdef Py_ssize_t expect(self, Row* row) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        if row.n > d:
            self.split(row, &self.coming[self.n_coming, 0], &self.coming[self.n_coming + 1, 0])
            self.n_coming += 2
        else:
            memcpy(&self.coming[self.n_coming, 0], row.x, d * sizeof(double))
            self.n_coming += 1
        self.multiplied = False
        return BLOCK - self.state.steps - self.n_coming

    cdef double times(self, Row* row, const double* z, double* v) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        cdef const double* pending = &self.weights[d * d]
        if self.n_done == self.n_coming:
            ob_times_one(&self.weights[0], z, v, scratch(row, 2), d)
        else:
            if not self.multiplied:
                ob_times(&self.weights[0], &self.coming[0, 0], &self.product[0, 0], self.n_coming, d, &self.room_[0])
                self.multiplied = True
            memcpy(v, &self.product[self.n_done, 0], d * sizeof(double))
            self.n_done += 1
        ob_correct(v, pending, pending + VECTORS * d, z, self.state.steps, d)
        return ob_dot(v, z, d)

    cdef void take(self, const double* v, double c) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        if c == 0:
            return
        memcpy(&self.weights[(d + self.state.steps) * d], v, d * sizeof(double))
        self.weights[(d + VECTORS) * d + self.state.steps] = c
        self.state.steps += 1

    cdef void settle(self, Row* row) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        if self.state.steps >= BLOCK:
            ob_update(&self.weights[0], &self.weights[d * d], &self.weights[(d + VECTORS) * d], self.state.steps, d,
                      &self.room_[0])
            self.state.steps = 0
