"""The forward algorithm: online ridge regression; the prediction of a row is a by-product of its update, see `factor`.

After its rotations a row leaves a residual y of weight h. The sum of h y^2 over the rows is twice the minimum of the
penalised loss; in a normal model of variance s^2 / (weight of the row) it is the estimate of s^2 times the degrees of
freedom, one for each row. The pivot of an intercept without a penalty starts at 0. The first row then determines the
intercept: its weight h becomes 0, and its prediction with the query in the matrix is 0.
"""

import numpy as np

cimport cython
from libc.math cimport NAN, fabs, isfinite
from libc.string cimport memcpy, memset

from onlinebregman._kernels.geometries.geometry cimport Workspace, free_workspace, make_workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block, interrupted, weight_of
from onlinebregman._kernels.learners.factor cimport BATCH, least_pivot, rotate_row, rotate_rows
from onlinebregman._kernels.learners.ridge cimport RidgeLearner, Step
from onlinebregman._kernels.learners.state cimport INTERRUPTED, LEARNED, OVERFLOWED
from onlinebregman._kernels.learners.transaction cimport check_idle
from onlinebregman._kernels.ops.fields cimport Field
from onlinebregman._kernels.ops.vector cimport ob_dot, ob_nonfinite
from onlinebregman._kernels.rows.arrays cimport empty_float64
from onlinebregman._kernels.rows.rows cimport Row, Rows, fetch_mapped, fetch_to_learn, open_rows, row_number


@cython.final
cdef class ForwardLearner(RidgeLearner):
    """Learns rows one after the other; predictions include the query in the matrix (forward) or do not (ridge).

    See `RidgeLearner` for its parameters.
    """

    @property
    def t(self):
        return int(self.state.t)

    cdef double total_loss(self) noexcept nogil:
        return self.state.loss

    @property
    def regret(self):
        return self.state.recent - self.state.hindsight

    @property
    def regret_bound(self):
        return self.state.bound

    @property
    def n_ridge(self):
        """Number of rows that were predicted with forward=False, for which there is no bound."""
        return int(self.state.ridge_rows)

    @property
    def degrees_of_freedom(self):
        return self.state.degrees_of_freedom

    @property
    def noise_variance(self):
        """Estimated from the residuals of each target; infinite without degrees of freedom."""
        if self.state.degrees_of_freedom <= 0:
            return np.full(self.m, np.inf)
        left = np.asarray(<double[:self.m]> (self.factor + self.length - self.m))
        with np.errstate(over="ignore"):
            return np.minimum(left / self.state.degrees_of_freedom, np.finfo(np.float64).max)

    # --- entry points -------------------------------------------------------------------------------------------

    def configure(self, *, bint forward, double forgetting, bint residuals=False):
        """Set how rows are learned and predicted from the next call on.

        `residuals`: targets are differences from the mean of all targets before, and so are predictions.
        """
        check_idle(self.busy)
        self.forward, self.gamma, self.residuals = forward, forgetting, residuals

    def predict_fast(self, dict attributes, X, forward=True, forgetting=1.0):
        """Predictions for an array of floats or CSR without validation, or None if that is not safe."""
        cdef Rows rows = self.fitting_rows(attributes, X)
        if rows is None or type(forward) is not bool or type(forgetting) is not float or not 0.0 < forgetting <= 1.0:
            return None
        return self.predictions(rows, forward, forgetting)

    def predict(self, X, bint forward=True, double forgetting=1.0, double[::1] shares=None):
        """Predictions for validated rows, dense or CSR; None if one is not finite.

        `shares`, if given, receives 1 / (1 + x'A^-1 x) of each row, A including the forgetting factor.
        """
        return self.predictions(open_rows(X), forward, forgetting, shares)

    # --- a call: see `AtomicLearner` ----------------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest) noexcept:
        # A row with its targets, of which BATCH are stored; then means of targets and predictions, and a further row
        return self.d + 4 * self.m

    cdef int begin(self, Rows rows, bint complete) except -1:
        self.backed_up = rows.n_rows > 1  # one row is rotated into a copy
        self.learned.each[0].changing = self.size * sizeof(double) if self.backed_up else 0
        self.checked = 0
        return AtomicLearner.begin(self, rows, complete)

    cdef int undo(self, Rows rows) except -1:
        AtomicLearner.undo(self, rows)
        self.forget_solution()
        return 0

    cdef void swap(self) noexcept nogil:
        """Make the copy of the factor the current one; then the former one is the copy."""
        cdef Field* field = &self.learned.each[0]
        field.at, field.before = field.before, field.at
        self.factor = <double*> field.at
        field.changing, self.backed_up = field.size, True

    cdef void keep(self, Rows rows) noexcept:
        AtomicLearner.keep(self, rows)
        self.forget_solution()

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        """Learn up to BATCH rows of positive weight at a time."""
        cdef Py_ssize_t k = 0, i, learned, n, width = self.d + self.m
        cdef Py_ssize_t[BATCH] number
        cdef double[BATCH] weight
        cdef const double* y[BATCH]
        cdef double* z = block.work.vectors
        cdef Row row
        while k < rows.n_rows:
            n = 0
            while k < rows.n_rows and n < BATCH:
                i = row_number(rows, k)
                weight[n] = weight_of(block, i)
                if weight[n] != 0:
                    fetch_to_learn(self.row_map, rows, i, weight[n], &row)
                    self.load(&row, z + n * width)
                    number[n], y[n] = i, block.y + i * self.m
                    n += 1
                k += 1
            learned = self.learn_loaded(z, n, y, weight, NULL, 0)
            if interrupted(self, n * self.effort(row.n)):
                return INTERRUPTED
            if learned < n:
                block.failed = number[learned]
                return OVERFLOWED
        block.failed = row_number(rows, rows.n_rows - 1)
        return self.check_all()

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        cdef Py_ssize_t q
        if weight == 0:
            for q in range(self.m if scores != NULL else 0):
                scores[q] = NAN
            return LEARNED
        if scores != NULL and self.forward and weight != 1:
            self.score_row(row, work, scores)  # a row is predicted as one of weight 1
            scores = NULL
        self.load(row, work.vectors)
        return LEARNED if self.learn_loaded(work.vectors, 1, &y, &weight, scores, 0) == 1 else OVERFLOWED

    cdef int learn_rows(self, const Row* rows, Py_ssize_t n, Workspace* work, const double** y, const double* weight,
                        double* scores, Py_ssize_t stride, Py_ssize_t* failed) noexcept nogil:
        cdef Py_ssize_t i = 0, learned, some
        while i < n:
            some = 0
            while some < min(n - i, BATCH) and (weight[i + some] == 1 or not self.forward):
                self.load(&rows[i + some], work.vectors + some * (self.d + self.m))
                some += 1
            if some > 0:
                learned = self.learn_loaded(work.vectors, some, y + i, weight + i, scores + i * stride, stride)
            else:
                some = 1
                learned = self.learn_row(&rows[i], work, y[i], weight[i], scores + i * stride) == LEARNED
            if learned < some:
                failed[0] = i + learned
                return OVERFLOWED
            i += some
        return LEARNED

    cdef Py_ssize_t learn_loaded(self, double* z, Py_ssize_t n, const double** y, const double* weight, double* scores,
                                 Py_ssize_t stride) noexcept nogil:
        """Learn up to BATCH rows; returns how many were learned. They are rotated into the factor together, as long as
        no prior changes between them."""
        cdef Py_ssize_t i = 0, k, width = self.d + self.m
        cdef double* means = z + BATCH * width
        cdef bint off
        cdef Step[BATCH] step
        memset(means, 0, n * self.m * sizeof(double))
        while i < n:
            k, off = i, False
            if n == 1 and not self.backed_up:
                memcpy(self.copied() + self.length, self.factor + self.length,
                       (self.size - self.length) * sizeof(double))
            while k < n and not off:
                memcpy(z + k * width + self.d, y[k], self.m * sizeof(double))
                step[k] = Step(weight[k], 1.0, weight[k], False)
                if self.centred:
                    step[k].foreseen = self.is_new(z + k * width)
                    if step[k].foreseen and k > i:
                        break
                    off = self.centre(z + k * width, &step[k], means + k * self.m, z + BATCH * (width + 2 * self.m))
                k += 1
            self.rotate(z + i * width, &step[i], k - i, n == 1)
            while i < k:
                if not self.count(z + i * width + self.d, y[i], means + i * self.m, &step[i],
                                  NULL if scores == NULL else scores + i * stride):
                    return i
                i += 1
            if off and not self.correct_prior(z + BATCH * (width + 2 * self.m)):
                return k - 1
        return n

    cdef void rotate(self, double* z, Step* step, Py_ssize_t n, bint alone) noexcept nogil:
        """Rotate rows into the factor; one that is `alone` into its copy, unless there is another backup."""
        cdef double[BATCH] left
        cdef Py_ssize_t j
        cdef double least = 0.0 if self.centred else least_pivot(self.alpha)
        cdef bint finite
        cdef double* copied = self.copied()
        for j in range(n):
            left[j] = step[j].left
        self.checked = 0
        if alone and not self.backed_up:
            finite = rotate_row(copied, self.factor, self.d, self.m, z, left, self.gamma, least)
            self.checked = self.length - self.m if finite else 0
            memcpy(copied + self.length - self.m, self.factor + self.length - self.m, self.m * sizeof(double))
            self.swap()
        else:
            rotate_rows(self.factor, self.d, self.m, z, left, n, self.gamma, least)
        for j in range(n):
            step[j].left = left[j]

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return self.size

    cdef int check_all(self) noexcept nogil:
        return OVERFLOWED if ob_nonfinite(self.factor + self.checked, self.size - self.checked) else LEARNED

    cdef void score_row(self, const Row* row, Workspace* work, double* scores) noexcept nogil:
        """The predictions with the query in the matrix, or without it."""
        cdef Py_ssize_t q
        cdef double left, share = self.query(row, work.vectors, &left, self.gamma)
        self.reduce(work.vectors, &left, 1, self.gamma)
        for q in range(self.m):
            scores[q] = self.mean_of(q) + self.prediction(
                0.0, work.vectors[self.d + q], left / share if share > 0 else 0.0, self.forward
            )

    cdef inline double query(self, const Row* row, double* z, double* left, double gamma) noexcept nogil:
        """Load a row of weight 1 as it is predicted; what is left of its weight by the intercept, also in `left`."""
        self.load(row, z)
        left[0] = 1.0
        if self.centred:
            self.subtract_means(z)
            left[0] = self.nu_of(gamma * self.factor[self.length], 1.0)
        return left[0]

    cdef void load(self, const Row* row, double* z) noexcept nogil:
        """Write a row as (x, 1)."""
        cdef Py_ssize_t k
        if self.features is not None:
            self.features.apply(row, z)
        elif row.index == NULL:
            memcpy(z, row.x, row.n * sizeof(double))
        else:
            memset(z, 0, self.n_inputs * sizeof(double))
            for k in range(row.n):
                z[row.index[k]] = row.x[k]
        if self.d > self.n_inputs:
            z[self.n_inputs] = 1.0

    cdef bint count(self, const double* residual, const double* y, const double* means, const Step* step,
                    double* scores) noexcept nogil:
        """Count the loss of a row that was rotated in; False if it is not finite. Its scores are what was predicted.

        With s = 1 + nu h x'A^-1 x, `hindsight` grows by nu h (v - x'A^-1 b)^2 / (2 s), whatever was predicted. By the
        forward prediction a from the mean the loss exceeds that by h / 2 times, nu being 1 unless it is centred,

            (1 - nu / s) v^2 - 2 (1 - nu) a v + (1 - nu s) a^2 <= (1 - nu / s) v^2 + (1 - nu) (2 |a v| + a^2).
        """
        cdef Py_ssize_t q
        cdef double share = step.left / step.weight, without = 0.0 if step.foreseen else step.nu
        cdef double h = step.weight, v, a, loss
        cdef double* squares = self.factor + self.length - self.m
        self.state.recent *= self.gamma
        self.state.hindsight *= self.gamma
        self.state.bound *= self.gamma
        # the one that a free intercept takes is discounted like the row that determines it, the first
        self.state.degrees_of_freedom = (self.gamma if self.state.t > 0 else 1.0) * self.state.degrees_of_freedom + 1.0
        for q in range(self.m):
            v = y[q] - means[q]
            if step.foreseen:
                a = means[BATCH * self.m + q]
            else:
                a = self.prediction(v, residual[q], step.left / (h * step.nu), self.forward)
            if scores != NULL:
                scores[q] = means[q] + a
            loss = 0.5 * h * (a - v) * (a - v)
            self.state.loss += loss
            self.state.recent += loss
            self.state.hindsight += 0.5 * step.left * residual[q] * residual[q]
            squares[q] = self.gamma * squares[q] + step.left * residual[q] * residual[q]
            self.state.bound += 0.5 * h * (v * v * (1.0 - share) + (1.0 - without) * (2.0 * fabs(a * v) + a * a))
        self.state.t += 1.0
        self.state.ridge_rows += not self.forward
        # a free intercept takes the weight of the first row, unless nothing of that is left for it
        if step.left <= 0 and not (step.foreseen or self.free_intercept and squares[-self.m - 1] > 0):
            return False
        return isfinite(self.state.loss) and isfinite(self.state.hindsight) and isfinite(self.state.bound)

    cdef object predictions(self, Rows rows, bint forward, double gamma, double[::1] shares=None):
        """Predictions, or None if one is not finite."""
        cdef Py_ssize_t i = 0, j, n, q, m = self.m, width = self.d + self.m
        cdef bint finite, with_shares = shares is not None
        cdef double[BATCH] share
        cdef double nu = 1.0
        cdef double* out
        cdef double[:, ::1] solution = None if forward else self.solve()
        cdef double* z
        cdef Row row
        cdef Workspace work
        self.check(rows)
        if self.row_map is not None:
            self.row_map.open(rows)
        predictions = empty_float64(rows.n_rows * m, &out)
        make_workspace(&work, width)
        z = work.vectors
        with nogil:
            while i < rows.n_rows:
                n = min(rows.n_rows - i, BATCH)
                for j in range(n):
                    fetch_mapped(self.row_map, rows, i + j, &row)
                    nu = self.query(&row, z + j * width, share + j, gamma)
                    if not forward:
                        for q in range(m):
                            out[(i + j) * m + q] = self.mean_of(q) + ob_dot(z + j * width, &solution[q, 0], self.d)
                if forward or with_shares:
                    self.reduce(z, share, n, gamma)
                if forward:
                    for j in range(n):
                        for q in range(m):
                            out[(i + j) * m + q] = self.mean_of(q) + self.prediction(
                                0.0, z[j * width + self.d + q], share[j] / nu if nu > 0 else 0.0, forward
                            )
                for j in range(n if with_shares else 0):
                    shares[i + j] = share[j]
                i += n
            free_workspace(&work)
            finite = ob_nonfinite(out, rows.n_rows * m) == 0
            finite = finite and (not with_shares or ob_nonfinite(&shares[0], shares.shape[0]) == 0)
        if not finite:
            return None
        return predictions.reshape((-1,) + self.target_shape) if self.target_shape else predictions
