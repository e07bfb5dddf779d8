"""The forward algorithm: ridge regression kept as a triangular factor that rows are rotated into.

The state A = a I + sum h x x', b = sum h x y of weighted rows is held as A = U'D U and b = U'D g with U unit upper
triangular and D diagonal, so that the ridge weights A^-1 b solve U w = g. A row z = (x, y) of weight h goes in by
Givens rotations without square roots (W. M. Gentleman, J. Inst. Maths Applics 12, 1973). With r the k-th row of (U, g),
and x_k, z, h what the rotations before have left of the row:

    d' = d_k + h x_k^2,    r' = (d_k / d') r + (h x_k / d') z,    z' = z - x_k r,    h' = (d_k / d') h.

At the end y has become y - x'A^-1 b and h has become h / (1 + h x'A^-1 x): the prediction comes with the update. D only
grows, so A stays positive definite whatever the data. The update is backward stable, and scaling a feature scales a
column of U, so badly scaled features cost no digits. One row costs O(d^2), a prediction half of that.
"""

import numpy as np

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from onlinebregman._kernels.geometries.geometry cimport Row
from onlinebregman._kernels.loop.learner cimport open_rows, plain_rows
from onlinebregman._kernels.rows.rows cimport Rows, is_aligned
from onlinebregman._kernels.loop.transaction cimport check_idle, patience, signal_raised, under_way

cdef extern from "loop/claim.h":
    bint ob_claim(long* flag) noexcept nogil
    void ob_release(long* flag) noexcept nogil

cdef extern from "ops/vector.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_axpy(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil

cdef extern from "ops/forward.h":
    void ob_rotate(double* r, double* z, double x, double keep, double gain, Py_ssize_t n) noexcept nogil
    void ob_rotate4(double* r, double* z, Py_ssize_t stride, const double* x, const double* keep, const double* gain,
                    Py_ssize_t n) noexcept nogil

cdef type ndarray = np.ndarray

cdef enum:
    BATCH = 4                 # rows that are rotated in side by side


cdef struct Tally:            # beside the factor
    double t                  # rows learned
    double loss               # cumulative loss of the predictions made before each row was learned
    double hindsight          # min over u of sum h (u.x - y)^2 / 2 + a |u|^2 / 2
    double ridge              # rows that the ridge prediction was made for
    double bound              # sum of h y^2 / 2 (1 - 1 / (1 + h x'A^-1 x))


cdef class ForwardLearner:
    """Learns rows one after the other, and predicts with or without the query in the matrix.

    Parameters
    ----------
    n_features : int
    target_shape : tuple
        () for targets of shape (n_samples,), or (n_targets,).
    alpha : float
        a > 0.
    fit_intercept : bool
        Whether rows have one more coordinate, 1.
    factor : ndarray, default=None
        The factor of another learner, to go on as it would,
    tally : dict, default=None
        and its `Tally`.
    """

    cdef readonly Py_ssize_t n_features
    cdef readonly tuple target_shape
    cdef readonly double alpha
    cdef readonly bint fit_intercept
    cdef Py_ssize_t d, m      # coordinates and targets of a row
    cdef double[::1] factor   # d_k, U[k, k+1:], g_k for k = 0, 1, ...: rows of d - k + m numbers
    cdef Tally tally
    # What the last call has to put back: the factor, and the tally of the time; behind it the rows at work.
    cdef double[::1] before
    cdef Tally tally_before
    cdef Py_ssize_t n_calls, patience
    cdef long busy            # is a thread learning?
    cdef object interrupt     # the exception by which a signal ended the loop
    cdef object solution      # ridge weights of all targets, shape (m, d), once they were asked for

    def __cinit__(self, n_features, target_shape, alpha, fit_intercept, factor=None, tally=None):
        cdef Py_ssize_t k, start = 0
        self.n_features, self.target_shape = n_features, target_shape
        self.alpha, self.fit_intercept = alpha, fit_intercept
        self.d, self.m = n_features + fit_intercept, target_shape[0] if target_shape else 1
        self.factor, self.before = np.zeros(self.d * (self.d + 1) // 2 + self.d * self.m), None
        for k in range(self.d):
            self.factor[start] = alpha
            start += self.d + self.m - k
        if factor is not None:
            np.asarray(self.factor)[:] = factor
            self.tally = tally

    def __reduce__(self):
        check_idle(self.busy)
        arguments = self.n_features, self.target_shape, self.alpha, self.fit_intercept
        return type(self), (*arguments, np.asarray(self.factor).copy(), self.tally)

    @property
    def t(self):
        return int(self.tally.t)

    @property
    def cumulative_loss(self):
        return self.tally.loss

    @property
    def regret(self):
        return self.tally.loss - self.tally.hindsight

    @property
    def regret_bound(self):
        return self.tally.bound

    @property
    def n_ridge(self):
        """Rows that were predicted without the query in the matrix before they were learned: beyond the bound."""
        return int(self.tally.ridge)

    @property
    def coef(self):
        return self.solve()[:, :self.n_features].reshape(self.target_shape + (self.n_features,)).copy()

    @property
    def intercept(self):
        intercept = self.solve()[:, self.n_features] if self.fit_intercept else np.zeros(self.m)
        return intercept.copy() if self.target_shape else float(intercept[0])

    # --- ways in ------------------------------------------------------------------------------------------------

    def learn_fast(self, dict attributes, X, y):
        """Learn a block, or one row, without validation; False if that is not safe and nothing was learned.

        Safe means: X and y are plain arrays (or X is CSR) of the right type and shape, the estimator's `forward` is
        valid, and there are no feature names to compare. What is not finite shows up in the predictions.
        """
        cdef Rows rows
        cdef Py_buffer targets
        cdef bint done = False
        forward = attributes.get("forward")
        if type(y) is not ndarray or type(forward) is not bool or "feature_names_in_" in attributes:
            return False
        if self.busy or under_way(attributes):
            return False
        rows = self.rows_like_mine(X)
        if rows is None:
            return False
        try:
            PyObject_GetBuffer(y, &targets, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
        except (BufferError, ValueError):
            return False
        try:
            done = (
                targets.format == b"d"
                and is_aligned(&targets)
                and targets.ndim == 1 + len(self.target_shape)
                and targets.shape[0] == rows.n_rows
                and targets.shape[targets.ndim - 1] == (self.m if self.target_shape else rows.n_rows)
                and self._learn(rows, <const double*> targets.buf, NULL, forward) < 0
            )
        finally:
            PyBuffer_Release(&targets)
        return done

    def learn(self, X, const double[::1] y, const double[::1] sample_weight, bint forward):
        """Learn validated rows with their targets, one row's after the other's; all of them, or none if one overflows.

        Returns the number of the row that does, or -1.
        """
        return self._learn(open_rows(X), &y[0], NULL if sample_weight is None else &sample_weight[0], forward)

    def predict_fast(self, dict attributes, X):
        """Predictions for a plain float array or CSR without validation, or None if that is not safe."""
        cdef Rows rows
        forward = attributes.get("forward")
        if type(forward) is not bool or "feature_names_in_" in attributes:
            return None
        rows = self.rows_like_mine(X)
        return None if rows is None else self._predict(rows, forward)

    def predict(self, X, bint forward):
        """Predictions for validated rows, dense or CSR; None if one is not finite."""
        return self._predict(open_rows(X), forward)

    cdef Rows rows_like_mine(self, X):
        """The rows of X if they are plain and as wide as the model's, else None."""
        cdef Rows rows = plain_rows(X)
        return rows if rows is not None and rows.n_rows > 0 and rows.n_columns == self.n_features else None

    # --- one thread, all or nothing -----------------------------------------------------------------------------

    def mark(self):
        """What `go_back` needs to undo the next call that learns."""
        check_idle(self.busy)
        return self.n_calls

    def go_back(self, Py_ssize_t mark):
        """Undo what was learned since the mark was made: by one call at most."""
        check_idle(self.busy)
        if self.n_calls > mark + 1:
            raise RuntimeError(f"{self.n_calls - mark} calls have learned since the mark was made")
        if self.n_calls > mark:
            self._go_back()
            self.n_calls, self.solution = mark, None

    def commit(self):
        """Nothing has to be let go of."""

    # --- the work -----------------------------------------------------------------------------------------------

    cdef Py_ssize_t _learn(self, Rows rows, const double* y, const double* weights, bint forward) except -2:
        """Number of the row that overflows, and nothing changed; -1 if all was learned."""
        cdef Py_ssize_t failed, size = self.factor.shape[0]
        if not ob_claim(&self.busy):
            check_idle(self.busy)
        try:
            if self.before is None:
                self.before = np.empty(size + BATCH * (self.d + self.m))
            self.tally_before, self.interrupt, self.patience = self.tally, None, patience()
            with nogil:
                memcpy(&self.before[0], &self.factor[0], size * sizeof(double))
                failed = self._loop(rows, y, weights, forward, &self.before[size])
                if failed < 0 and ob_nonfinite(&self.factor[0], size) != 0:
                    failed = rows.n_rows - 1
                if failed >= 0:
                    self._go_back()
            if self.interrupt is not None:
                raise self.interrupt
            if failed < 0:
                self.n_calls += 1
                self.solution = None
            return failed
        finally:
            ob_release(&self.busy)

    cdef void _go_back(self) noexcept nogil:
        memcpy(&self.factor[0], &self.before[0], self.factor.shape[0] * sizeof(double))
        self.tally = self.tally_before

    cdef bint _signalled(self) noexcept nogil:
        with gil:
            self.patience, self.interrupt = patience(), signal_raised()
            return self.interrupt is not None

    cdef Py_ssize_t _loop(self, Rows rows, const double* y, const double* weights, bint forward,
                          double* z) noexcept nogil:
        """Take up to BATCH rows of positive weight at a time, rotate them in, and book what is left of them."""
        cdef Py_ssize_t i = 0, j, n, width = self.d + self.m
        cdef Py_ssize_t[BATCH] number
        cdef double[BATCH] weight, left
        while i < rows.n_rows:
            n = 0
            while i < rows.n_rows and n < BATCH:
                weight[n] = left[n] = 1.0 if weights == NULL else weights[i]
                if weight[n] != 0:
                    self.load(rows, i, z + n * width)
                    memcpy(z + n * width + self.d, y + i * self.m, self.m * sizeof(double))
                    number[n] = i
                    n += 1
                i += 1
            self.rotate(z, left, n)
            self.patience -= n * self.factor.shape[0]
            if self.patience < 0 and self._signalled():
                return i - n
            for j in range(n):
                if not self.book(z + j * width + self.d, y + number[j] * self.m, weight[j], left[j], forward):
                    return number[j]
        return -1

    cdef void load(self, Rows rows, Py_ssize_t i, double* z) noexcept nogil:
        """Row i as (x, 1)."""
        cdef Row row
        cdef Py_ssize_t k
        rows.fetch(i, &row)
        if row.index == NULL:
            memcpy(z, row.x, row.n * sizeof(double))
        else:
            memset(z, 0, self.n_features * sizeof(double))
            for k in range(row.n):
                z[row.index[k]] = row.x[k]
        if self.fit_intercept:
            z[self.n_features] = 1.0

    cdef void rotate(self, double* z, double* weight, Py_ssize_t n) noexcept nogil:
        """Rotate n rows (x, y) into the factor: side by side, to the same numbers as one after the other."""
        cdef Py_ssize_t j, k, width = self.d + self.m
        cdef double[BATCH] x, keep, gain
        cdef double pivot
        cdef bint full
        cdef double* r = &self.factor[0]
        for k in range(self.d):
            full = n == BATCH
            for j in range(n):
                x[j] = z[j * width + k]
                full = full and x[j] != 0
                pivot = r[0] + weight[j] * x[j] * x[j]
                keep[j], gain[j] = r[0] / pivot, weight[j] * x[j] / pivot
                r[0] = pivot
                weight[j] *= keep[j]
            if full:
                ob_rotate4(r + 1, z + k + 1, width, x, keep, gain, width - k - 1)
            else:
                for j in range(n):
                    if x[j] != 0:  # a sparse row starts at its first value
                        ob_rotate(r + 1, z + j * width + k + 1, x[j], keep[j], gain[j], width - k - 1)
            r += width - k

    cdef bint book(self, const double* residual, const double* y, double weight, double left,
                   bint forward) noexcept nogil:
        """Count a row that was rotated in; False if it was not finite.

        Hindsight's loss grows by h (y - x'A^-1 b)^2 / 2 / (1 + h x'A^-1 x), whatever was predicted.
        """
        cdef Py_ssize_t q
        cdef double share = left / weight, prediction
        for q in range(self.m):
            prediction = (y[q] - residual[q]) * (share if forward else 1.0)
            self.tally.loss += 0.5 * weight * (prediction - y[q]) * (prediction - y[q])
            self.tally.hindsight += 0.5 * left * residual[q] * residual[q]
            self.tally.bound += 0.5 * weight * y[q] * y[q] * (1.0 - share)
        self.tally.t += 1.0
        self.tally.ridge += not forward
        return left > 0 and isfinite(self.tally.loss) and isfinite(self.tally.hindsight) and isfinite(self.tally.bound)

    cdef object _predict(self, Rows rows, bint forward):
        """Predictions, or None if one is not finite."""
        cdef Py_ssize_t i = 0, j, n, q, m = self.m, width = self.d + self.m
        cdef bint finite
        cdef double[BATCH] share
        cdef double[::1] out
        cdef double[:, ::1] solution = None if forward else self.solve()
        cdef double* z
        predictions = np.empty(rows.n_rows * m)
        out = predictions
        z = <double*> malloc(BATCH * width * sizeof(double))
        if z == NULL:
            raise MemoryError()
        with nogil:
            while i < rows.n_rows:
                n = min(rows.n_rows - i, BATCH)
                for j in range(n):
                    self.load(rows, i + j, z + j * width)
                if forward:
                    self.reduce(z, share, n)
                for j in range(n):
                    for q in range(m):
                        if forward:
                            out[(i + j) * m + q] = share[j] * (0.0 - z[j * width + self.d + q])
                        else:
                            out[(i + j) * m + q] = ob_dot(z + j * width, &solution[q, 0], self.d)
                i += n
            free(z)
            finite = ob_nonfinite(&out[0], out.shape[0]) == 0
        if not finite:
            return None
        return predictions.reshape((-1,) + self.target_shape) if self.target_shape else predictions

    cdef void reduce(self, double* z, double* share, Py_ssize_t n) noexcept nogil:
        """What the rotations would leave of n rows (x, 0) of weight 1, each by itself; the factor stays as it is.

        That is -x'A^-1 b in the place of the 0, and share = 1 / (1 + x'A^-1 x).
        """
        cdef Py_ssize_t j, k, width = self.d + self.m
        cdef double x
        cdef double* r = &self.factor[0]
        for j in range(n):
            memset(z + j * width + self.d, 0, self.m * sizeof(double))
            share[j] = 1.0
        for k in range(self.d):
            for j in range(n):
                x = z[j * width + k]
                if x != 0:
                    share[j] *= r[0] / (r[0] + share[j] * x * x)
                    ob_axpy(z + j * width + k + 1, r + 1, x, width - k - 1)
            r += width - k

    cdef object solve(self):
        """The ridge weights, from U w = g."""
        cdef double[:, ::1] w
        cdef double* r
        cdef Py_ssize_t k, q, n
        if self.solution is None:
            solution = np.empty((self.m, self.d))
            w = solution
            r = &self.factor[0] + self.factor.shape[0]
            for k in range(self.d - 1, -1, -1):
                n = self.d - k - 1  # what U[k] has beyond its diagonal
                r -= 1 + n + self.m
                for q in range(self.m):
                    w[q, k] = r[1 + n + q] - (ob_dot(r + 1, &w[q, k] + 1, n) if n else 0.0)
            self.solution = solution
        return self.solution
