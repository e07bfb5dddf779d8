"""The LogDet geometry for many features: rank-one updates are collected and applied together, as a matrix product.

After m updates W = W_0 - sum_p s_p v_p v_p', and a step needs W_0 z and 2 m vector operations. W_0 z for many rows is a
matrix product, which works in the cache, while a product of matrix and vector reads all of W_0 from memory; so is the
update of rank m at the end.
"""

import numpy as np

from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport MISSED, Workspace, scratch
from onlinebregman._kernels.matrices.matrix cimport LogDetGeometry
from onlinebregman._kernels.matrices.symmetric import mirrored
from onlinebregman._kernels.ops.matrix cimport (
    OB_PANEL, OB_PART, ob_any_below, ob_correct, ob_take_squares, ob_times, ob_times_one, ob_update
)
from onlinebregman._kernels.ops.vector cimport ob_dot
from onlinebregman._kernels.rows.rows cimport Row, Rows, row_number

# This many updates are applied together, counted over the stream, so that the result does not depend on how it is cut
# into calls. A triplet may add one more. The sizes are multiples of the tiles of the product.
cdef enum:
    BLOCK = 64
    VECTORS = BLOCK + 1
    COMING = 66
# They are applied sooner if a diagonal entry falls below this fraction of that of W_0, as it then has few digits left.
cdef double LOST = 1e-6


cdef class BlockedLogDetGeometry(LogDetGeometry):
    """LogDet divergence with updates of rank 64; equal to `LogDetGeometry` up to rounding.

    The state is W_0 (both triangles), then the rows v_p, the s_p in as many rows as they need, and the diagonals of
    W_0, W^-1 and W.

    Parameters
    ----------
    weights : ndarray of shape (d, d), or (d + more, d)
        The positive definite matrix to start from, or the state; copied.
    """

    cdef int n_updates       # m
    cdef double[:, ::1] coming  # z of the next rows,
    cdef double[:, ::1] product  # and W_0 z
    cdef double[::1] memory
    cdef void* rows         # the Rows of this block,
    cdef const double* sample_weight
    cdef Py_ssize_t k       # and how many of them have been loaded
    cdef Py_ssize_t n_coming, n_done
    cdef bint multiplied
    cdef bint base_unsaved  # whether W_0 is not backed up

    def __cinit__(self):
        self.declare("n_updates", &self.n_updates, False, sizeof(int))

    def __init__(self, weights, state=None):
        super().__init__(weights, state)
        d = self.n_features
        self.coming, self.product = np.zeros((COMING, d)), np.zeros((COMING, d))
        self.memory = np.zeros(max((2 * d + 12) * VECTORS, OB_PART * OB_PANEL))

    def _more_rows(self, d):
        return VECTORS + -(-VECTORS // max(d, 1)) + 3

    def set_state(self, state):
        super().set_state(state)
        if not 0 <= self.n_updates < BLOCK:
            raise ValueError(f"the number of pending updates must be from 0 to {BLOCK - 1}; got {self.n_updates}")

    def _laid_out(self, weights):
        d = len(weights)
        return np.vstack([mirrored(weights), np.zeros((VECTORS + -(-VECTORS // d), d)), weights.diagonal()])

    def _arguments(self):
        (state,) = super()._arguments()
        d = self.n_features
        state[d + self.n_updates : d + VECTORS] = 0.0  # left from calls that were undone
        return (state,)

    def _to_coef(self, weights):
        d, m = self.n_features, self.n_updates
        weights = weights.reshape(self.per_feature, d)
        v, s = weights[d : d + m], weights[d + VECTORS :].ravel()[:m]
        return mirrored(weights[:d] - (v.T * s) @ v)

    cdef Py_ssize_t first_mutable(self, Py_ssize_t n_rows) noexcept nogil:
        """If the updates will not be applied, the s_p and the diagonals: the content of unused v_p does not matter.

        If they have to be applied after all, the call is repeated with W_0 backed up.
        """
        self.base_unsaved = self.n_updates + 2 * n_rows < BLOCK and self.backup != MISSED
        return (self.n_features + VECTORS) * self.n_features if self.base_unsaved else 0

    cdef void begin_block(self, Rows rows, const double* sample_weight, Workspace* work) noexcept nogil:
        self.rows, self.sample_weight, self.k, work.in_block = <void*> rows, sample_weight, 0, True
        self.n_coming = self.n_done = 0

    cdef void load(self, Workspace* work) noexcept nogil:
        if work.in_block:
            while row_number(<Rows> self.rows, self.k) != work.row.number:  # rows of weight 0 are not loaded
                self.k += 1
            if self.n_done == self.n_coming:
                self.collect(<Rows> self.rows)
            self.k += 1
        LogDetGeometry.load(self, work)

    cdef void collect(self, Rows rows) noexcept nogil:
        """Collect row k and the next ones, as many as updates still fit in."""
        cdef Py_ssize_t d = self.n_features, k = self.k, i
        cdef Row row
        self.n_coming = self.n_done = 0
        self.multiplied = False
        while k < rows.n_rows and self.n_coming < BLOCK - self.n_updates:
            i = row_number(rows, k)
            k += 1
            if self.sample_weight != NULL and self.sample_weight[i] == 0:
                continue
            rows.fetch(i, &row)
            if row.n > d:
                self.split(row.x, &self.coming[self.n_coming, 0], &self.coming[self.n_coming + 1, 0])
                self.n_coming += 2
            else:
                memcpy(&self.coming[self.n_coming, 0], row.x, d * sizeof(double))
                self.n_coming += 1
        rows.fetch(row_number(rows, self.k), &row)  # its values may have been where those of later rows are put

    cdef double times(self, Workspace* work, const double* z, double* v) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        cdef const double* pending = &self.weights[d * d]
        if not work.in_block or self.n_done == self.n_coming:
            ob_times_one(&self.weights[0], z, v, scratch(work, 2), d)
        else:
            if not self.multiplied:
                ob_times(&self.weights[0], &self.coming[0, 0], &self.product[0, 0], self.n_coming, d, &self.memory[0])
                self.multiplied = True
            memcpy(v, &self.product[self.n_done, 0], d * sizeof(double))
            self.n_done += 1
        ob_correct(v, pending, pending + VECTORS * d, z, self.n_updates, d)
        return ob_dot(v, z, d)

    cdef double times_again(self, Workspace* work, const double* z, double* v) noexcept nogil:
        self.apply_updates()  # W_0 minus the updates would have lost the same digits as the last part
        if self.backup == MISSED:
            return 0.0
        ob_times_one(&self.weights[0], z, v, scratch(work, 2), self.n_features)
        return ob_dot(v, z, self.n_features)

    cdef void subtract(self, const double* v, double c) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        if c == 0 or self.backup == MISSED:
            return
        memcpy(&self.weights[(d + self.n_updates) * d], v, d * sizeof(double))
        self.weights[(d + VECTORS) * d + self.n_updates] = c
        self.n_updates += 1
        ob_take_squares(self.diagonal(), v, c, d)

    cdef double* first_diagonal(self) noexcept nogil:
        return &self.weights[(self.per_feature - 3) * self.n_features]

    cdef void update(self, double* matrix) noexcept nogil:
        ob_update(matrix, &self.weights[self.n_features * self.n_features],
                  &self.weights[(self.n_features + VECTORS) * self.n_features], self.n_updates, self.n_features,
                  &self.memory[0])

    cdef void unfold(self, double* matrix) noexcept nogil:
        LogDetGeometry.unfold(self, matrix)
        self.update(matrix)

    cdef void apply_updates(self) noexcept nogil:
        """Apply all updates, W_0 <- W, if W_0 is backed up."""
        cdef Py_ssize_t d = self.n_features, i
        if self.base_unsaved:
            self.backup = MISSED
            return
        self.update(&self.weights[0])
        self.n_updates = 0
        self.n_coming = self.n_done = 0
        for i in range(d):
            self.first_diagonal()[i] = self.diagonal()[i] = self.weights[i * (d + 1)]

    cdef void renormalise(self, Workspace* work) noexcept nogil:
        if self.backup != MISSED and (self.n_updates >= BLOCK or ob_any_below(
                self.diagonal(), self.first_diagonal(), LOST, self.n_features)):
            self.apply_updates()
