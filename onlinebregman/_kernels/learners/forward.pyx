"""The forward algorithm: online ridge regression; the prediction of a row is a by-product of its update, see `factor`.

After its rotations a row leaves a residual y of weight h. The sum of h y^2 over the rows is twice the minimum of the
penalised loss; in a normal model of variance s^2 / (weight of the row) it is the estimate of s^2 times the degrees of
freedom, one for each row. The pivot of an intercept without a penalty starts at 0. The first row then determines the
intercept: its weight h becomes 0, and its prediction with the query in the matrix is 0.
"""

import numpy as np

cimport cython
from libc.math cimport NAN, isfinite
from libc.string cimport memcpy, memset

from onlinebregman._kernels.geometries.geometry cimport Workspace, free_workspace, make_workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block, interrupted, weight_of
from onlinebregman._kernels.learners.atomic import check_columns
from onlinebregman._kernels.learners.factor cimport (
    BATCH, least_pivot, reduce_rows, rotate_row, rotate_rows, solve_factor, start_factor
)
from onlinebregman._kernels.learners.factor import inverse_root, unpacked
from onlinebregman._kernels.learners.state cimport INTERRUPTED, LEARNED, OVERFLOWED
from onlinebregman._kernels.learners.transaction cimport check_idle
from onlinebregman._kernels.ops.fields cimport Field
from onlinebregman._kernels.ops.vector cimport ob_dot, ob_nonfinite
from onlinebregman._kernels.rows.arrays cimport empty_float64
from onlinebregman._kernels.rows.fourier cimport FourierFeatures
from onlinebregman._kernels.rows.rows cimport Row, Rows, fetch_mapped, fetch_to_learn, open_rows, row_number

cdef enum:
    MOST = 1 << 30            # bound on numbers that are squared


cdef struct ForwardState:     # the state in addition to the factor
    double t                  # rows learned
    double loss               # cumulative loss of the predictions made before each row was learned
    # Like `loss`, but discounted: a row that is n rows old counts gamma^n; so do `hindsight` and `bound`
    double recent
    double hindsight          # min over u of sum h (u.x - y)^2 / 2 + a |u|^2 / 2
    double ridge_rows              # number of rows that were predicted with forward=False
    double bound              # sum of h y^2 / 2 (1 - 1 / (1 + h x'A^-1 x))
    double degrees_of_freedom  # of the residuals: number of rows, minus 1 for a free intercept


@cython.final
cdef class ForwardLearner(AtomicLearner):
    """Learns rows one after the other; predictions include the query in the matrix (forward) or do not (ridge).

    Parameters
    ----------
    n_features : int
    target_shape : tuple
        () for targets of shape (n_samples,), or (n_targets,).
    alpha : float
        a > 0.
    fit_intercept : bool
        Whether rows have one more coordinate, 1.
    features : FourierFeatures or None
        Features to learn instead of the values of the rows.
    penalize_intercept : bool
        Whether the initial A = a I includes the intercept; otherwise its entry is 0.
    """

    cdef readonly tuple target_shape
    cdef readonly double alpha
    cdef readonly bint fit_intercept
    cdef bint free_intercept
    cdef readonly FourierFeatures features
    cdef Py_ssize_t n_inputs  # values of a row as it is learned
    cdef Py_ssize_t d, m      # coordinates and targets of a row
    # d_k, U[k, k+1:], g_k for k = 0, 1, ...: rows of d - k + m numbers; then sums of h y^2 over residuals, of m targets
    cdef double* factor
    cdef ForwardState state
    cdef bint backed_up       # whether the copy in `learned` is the factor before the call
    cdef double[::1] memory   # of one factor, which is swapped with the copy: threads that predict may read either
    cdef Py_ssize_t size      # length of a factor
    cdef Py_ssize_t checked   # number of leading values known to be finite after the last row
    cdef bint forward         # whether predictions of the next call include the query
    cdef double gamma         # its forgetting factor
    cdef object solution      # cached ridge weights of all targets, shape (m, d), or None

    def __cinit__(self, n_features, target_shape, alpha, fit_intercept, FourierFeatures features,
                  bint penalize_intercept, state=None):
        self.n_features, self.target_shape = n_features, target_shape
        self.alpha, self.fit_intercept = alpha, fit_intercept
        self.forward, self.gamma = True, 1.0
        self.features, self.n_inputs = features, n_features if features is None else features.n_components
        self.d, self.m = self.n_inputs + fit_intercept, target_shape[0] if target_shape else 1
        if features is not None:
            check_columns(features.n_features, self.n_features)
        if not (0 < self.n_inputs < MOST and 0 < self.m < MOST):
            raise ValueError(f"numbers of features and targets must be in [1, 2^30); got {self.n_inputs}, {self.m}")
        self.n_targets, self.n_scores, self.chunkwise = self.m, self.m, True
        self.target_ndim = 1 + len(target_shape)
        self.size = self.d * (self.d + 1) // 2 + (self.d + 1) * self.m
        self.memory = np.zeros(self.size)
        self.factor = &self.memory[0]
        self.free_intercept = fit_intercept and not penalize_intercept
        start_factor(self.factor, self.d, self.m, alpha)
        if self.free_intercept:
            self.factor[self.size - 2 * self.m - 1] = 0.0
        self.state.degrees_of_freedom = -1.0 if self.free_intercept else 0.0
        self.learned.add("factor", self.factor, self.memory.nbytes)
        self.learned.add("state", &self.state, sizeof(self.state))
        self.configured.add("forward", &self.forward, sizeof(self.forward))
        self.configured.add("forgetting", &self.gamma, sizeof(self.gamma))
    def with_features(self, n_features, row_map):
        """A learner of more features, which have been 0 in all rows and are at the prior, with this map of rows."""
        cdef ForwardLearner wide = ForwardLearner(n_features, *self.arguments[1:])
        factor = np.array(<double[:self.size]> self.factor)
        d, U, g = unpacked(factor, self.d, self.m)
        place = [k if k < self.n_inputs else n_features for k in range(self.d)]
        D, V, G = np.full(wide.d, self.alpha), np.eye(wide.d), np.zeros((wide.d, self.m))
        D[place], V[np.ix_(place, place)], G[place] = d, U, g
        rows = [np.r_[D[k], V[k, k + 1:], G[k]] for k in range(wide.d)]
        np.asarray(wide.memory)[:] = np.concatenate([*rows, factor[self.size - self.m:]])
        wide.state, wide.forward, wide.gamma = self.state, self.forward, self.gamma
        wide.map_by(row_map)
        return wide

    def joined(self, learners, row_map):
        """A learner of all rows that these learners, copies of this one, have learned: A, b and y'y are added."""
        cdef Py_ssize_t k, i
        cdef ForwardLearner joined

        def sums_of(ForwardLearner learner):
            """(A, b, y'y, state)."""
            factor, state = np.array(<double[:learner.size]> learner.factor), learner.state
            d, U, g = unpacked(factor, self.d, self.m)
            weighted = d[:, np.newaxis] * g
            squares = factor[self.size - self.m:] + (g * weighted).sum(axis=0)
            return U.T @ (d[:, np.newaxis] * U), U.T @ weighted, squares, state

        (A, b, squares, state), others = sums_of(self), [sums_of(learner) for learner in learners]
        states = [other[3] for other in others]
        A, b, squares = (first + sum(other[i] - first for other in others) for i, first in enumerate((A, b, squares)))
        state = {name: value + sum(each[name] - value for each in states) for name, value in state.items()}
        empty = np.diagonal(A) == 0.0  # only of an intercept without a penalty, before the first row
        A[empty, empty] = 1.0
        scale = np.sqrt(np.diagonal(A))
        try:
            lower = np.linalg.cholesky(A / np.multiply.outer(scale, scale)) * scale[:, np.newaxis]
        except np.linalg.LinAlgError:
            raise ValueError(
                "The rows of all shards together leave A = alpha I + sum x x' singular; raise alpha."
            ) from None
        root = np.diagonal(lower)
        d, U, g = root ** 2, lower.T / root[:, np.newaxis], np.linalg.solve(lower, b) / root[:, np.newaxis]
        d[empty] = 0.0
        left = np.maximum(squares - (g * g * d[:, np.newaxis]).sum(axis=0), 0.0)
        factor = np.concatenate([np.r_[d[k], U[k, k + 1:], g[k]] for k in range(self.d)] + [left])
        state["hindsight"] = left.sum() / 2  # the minimum of the penalised loss
        joined = ForwardLearner(*self.arguments)
        np.asarray(joined.memory)[:] = factor
        joined.state, joined.forward, joined.gamma = state, self.forward, self.gamma
        joined.map_by(row_map)
        return joined

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
        left = np.asarray(<double[:self.m]> (self.factor + self.size - self.m))
        with np.errstate(over="ignore"):
            return np.minimum(left / self.state.degrees_of_freedom, np.finfo(np.float64).max)

    @property
    def coef(self):
        return self.solve()[:, :self.n_inputs].reshape(self.target_shape + (self.n_inputs,)).copy()

    @property
    def intercept(self):
        intercept = self.solve()[:, self.n_inputs] if self.fit_intercept else np.zeros(self.m)
        return intercept.copy() if self.target_shape else float(intercept[0])

    def inverse_root(self, double forgetting):
        """R with x'A^-1 x = |R x|^2 for the coordinates x of a row, A including the forgetting factor."""
        D, U, _ = unpacked(np.asarray(<double[:self.size]> self.factor), self.d, self.m)
        return inverse_root(D, U, forgetting, self.alpha)

    # --- entry points -------------------------------------------------------------------------------------------

    def configure(self, *, bint forward, double forgetting):
        """Set how rows are learned and predicted from the next call on."""
        check_idle(self.busy)
        self.forward, self.gamma = forward, forgetting

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
        return self.d + self.m  # a row with its targets; BATCH of them are stored

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

    cdef void forget_solution(self) noexcept:
        with cython.critical_section(self):  # without the GIL other threads may be reading it
            self.solution = None

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
        """Rotate up to BATCH rows into the factor, and count their losses; returns the number of rows learned."""
        cdef Py_ssize_t j, q, width = self.d + self.m
        cdef double* residuals
        cdef double[BATCH] left
        cdef double* copied = <double*> self.learned.each[0].before
        cdef bint finite
        for j in range(n):
            left[j] = weight[j]
            memcpy(z + j * width + self.d, y[j], self.m * sizeof(double))
        if n == 1 and not self.backed_up:
            finite = rotate_row(copied, self.factor, self.d, self.m, z, left, self.gamma, least_pivot(self.alpha))
            self.checked = self.size - self.m if finite else 0
            memcpy(copied + self.size - self.m, self.factor + self.size - self.m, self.m * sizeof(double))
            self.swap()
        else:
            rotate_rows(self.factor, self.d, self.m, z, left, n, self.gamma, least_pivot(self.alpha))
            self.checked = 0
        for j in range(n):
            residuals = z + j * width + self.d
            for q in range(self.m if scores != NULL else 0):
                scores[j * stride + q] = self.prediction(y[j][q], residuals[q], left[j] / weight[j], self.forward)
            if not self.count(residuals, y[j], weight[j], left[j], self.forward):
                return j
        return n

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return self.size

    cdef int check_all(self) noexcept nogil:
        return OVERFLOWED if ob_nonfinite(self.factor + self.checked, self.size - self.checked) else LEARNED

    cdef void score_row(self, const Row* row, Workspace* work, double* scores) noexcept nogil:
        """The predictions with the query in the matrix, or without it."""
        cdef Py_ssize_t q
        cdef double share
        self.load(row, work.vectors)
        self.reduce(work.vectors, &share, 1, self.gamma)
        for q in range(self.m):
            scores[q] = self.prediction(0.0, work.vectors[self.d + q], share, self.forward)

    cdef inline double prediction(self, double y, double residual, double share, bint forward) noexcept nogil:
        """The prediction of a row with target y, whose rotation left this residual and this share of its weight."""
        return (y - residual) * (share if forward else 1.0)

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
        if self.fit_intercept:
            z[self.n_inputs] = 1.0

    cdef bint count(self, const double* residual, const double* y, double weight, double left,
                    bint forward) noexcept nogil:
        """Count the loss of a row that was rotated in; False if it is not finite.

        `hindsight` grows by h (y - x'A^-1 b)^2 / 2 / (1 + h x'A^-1 x), whatever was predicted.
        """
        cdef Py_ssize_t q
        cdef double share = left / weight, prediction, loss
        cdef double* squares = self.factor + self.size - self.m
        self.state.recent *= self.gamma
        self.state.hindsight *= self.gamma
        self.state.bound *= self.gamma
        # the one that a free intercept takes is discounted like the row that determines it, the first
        self.state.degrees_of_freedom = (self.gamma if self.state.t > 0 else 1.0) * self.state.degrees_of_freedom + 1.0
        for q in range(self.m):
            prediction = self.prediction(y[q], residual[q], share, forward)
            loss = 0.5 * weight * (prediction - y[q]) * (prediction - y[q])
            self.state.loss += loss
            self.state.recent += loss
            self.state.hindsight += 0.5 * left * residual[q] * residual[q]
            squares[q] = self.gamma * squares[q] + left * residual[q] * residual[q]
            self.state.bound += 0.5 * weight * y[q] * y[q] * (1.0 - share)
        self.state.t += 1.0
        self.state.ridge_rows += not forward
        if left <= 0 and not (self.free_intercept and self.state.t == 1.0):
            return False
        return isfinite(self.state.loss) and isfinite(self.state.hindsight) and isfinite(self.state.bound)

    cdef object predictions(self, Rows rows, bint forward, double gamma, double[::1] shares=None):
        """Predictions, or None if one is not finite."""
        cdef Py_ssize_t i = 0, j, n, q, m = self.m, width = self.d + self.m
        cdef bint finite, with_shares = shares is not None
        cdef double[BATCH] share
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
                    self.load(&row, z + j * width)
                    if not forward:
                        for q in range(m):
                            out[(i + j) * m + q] = ob_dot(z + j * width, &solution[q, 0], self.d)
                if forward or with_shares:
                    self.reduce(z, share, n, gamma)
                if forward:
                    for j in range(n):
                        for q in range(m):
                            out[(i + j) * m + q] = share[j] * (0.0 - z[j * width + self.d + q])
                for j in range(n if with_shares else 0):
                    shares[i + j] = share[j]
                i += n
            free_workspace(&work)
            finite = ob_nonfinite(out, rows.n_rows * m) == 0
            finite = finite and (not with_shares or ob_nonfinite(&shares[0], shares.shape[0]) == 0)
        if not finite:
            return None
        return predictions.reshape((-1,) + self.target_shape) if self.target_shape else predictions

    cdef void reduce(self, double* z, double* share, Py_ssize_t n, double gamma) noexcept nogil:
        reduce_rows(self.factor, self.d, self.m, z, share, n, gamma, least_pivot(self.alpha))

    cdef object solve(self):
        """The ridge weights, from U w = g."""
        cdef double[:, ::1] w
        with cython.critical_section(self):
            solution = self.solution
        if solution is None:
            solution = np.empty((self.m, self.d))
            w = solution
            solve_factor(self.factor, self.d, self.m, &w[0, 0])
            with cython.critical_section(self):
                self.solution = solution
        return solution
