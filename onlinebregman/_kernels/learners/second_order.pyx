"""Second-order steps in one pass: the implicit step on a convex loss of linear scores, in a metric built from the rows.

The weights W, one row for each of m scores, and a positive definite matrix A move by

    W' = argmin sum_c (u_c - w_c)' A (u_c - w_c) / 2 + weight * L(U x, y),     A' = gamma A + weight * h x x',

with h the curvature of L at W'x. With v = A^-1 x and q = x'v the step is W' = W - weight * g v', g the slopes of L at
the new scores: m equations in m numbers, which each kind of learner solves in its own way (`respond`).

A^-1 = U D U' is kept, U unit upper triangular and D diagonal, and moves by Bierman's rank-one update (G. J. Bierman,
"Measurement updating using the U-D factorization", Automatica 12, 1976). With f = U'x, b = D f and u_j column j of U

    e_j = e_(j-1) + h b_j f_j,   D_j' = D_j e_(j-1) / (e_j gamma),   u_j' = u_j - (h f_j / e_(j-1)) v,   v += b_j u_j,

from e = gamma and v = 0 on, which is A^-1 x in the end. D stays positive, so A^-1 stays positive definite whatever the
data; scaling a feature scales a row of U, so badly scaled features cost no digits. The step in v by the old column is a
Givens rotation without square roots; four columns are processed together, in aligned tiles of memory.

Scores of classes have a part beside U x, the running log odds o: L is the loss of o + U x. It moves by itself, with n_c
the weight of class c so far and g_c = p_c - y_c after the step, as ln (n_c + 2) does where p are the classes' shares:

    o_c' = o_c - sgn(g_c) ln (1 + |g_c| / (n_c + 2)),    n_c' = gamma n_c + y_c.

Without it early rows, predicted as 1 / k, would hold the intercept of a rare class back: each has the curvature of
hundreds of later ones. Where x says what the class is, g is small, and o stays.

With a `Centre` c, rows are (1, z), z the differences of columns from c, so that no prediction depends on where a column
stands. The intercept b comes first: then c moves to c + m by a change of the first row of U alone, as T U, with b' = b
+ w'm, for A^-1 -> T A^-1 T', T = [1 m'; 0 I]; the prior of b moves along. b + w'm is right if targets moved with the
column, b if they did not. Where a column jumps nobody knows, so that the variance of b grows by the square of w'm.

The columns of U are updated for one row while they are read for the next one, so that there is one pass over U for each
row. The update for the last row of a call remains pending, and a call with one row can be undone without a copy of U.

Random features are bounded, and may be many. For them A^-1 = s (P - sum v v') is kept, s a number, of up to eight
vectors v that are then subtracted together, so that P is read for each row but only written for each eighth one. With
v = A^-1 x / s and q = x'v a row makes

    v <- v / sqrt(q + gamma / (s h)),    s <- s / gamma.

For a matching loss of one score, the score z = w'.x after a step and the slope g there solve one equation, by the
solver of all implicit steps:

    z = a - weight * q g,    g = L'(z, y) = h(z) - y with the link h.

For the squared loss this is online ridge regression.
"""

import numpy as np

cimport cython
from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, fabs, isfinite, log1p, sqrt
from libc.string cimport memcpy, memset

from onlinebregman._kernels.geometries.geometry cimport CHUNKWISE, LINKS, Workspace, scratch
from onlinebregman._kernels.learners.atomic cimport AtomicLearner
from onlinebregman._kernels.learners.atomic import check_columns
from onlinebregman._kernels.learners.factor import loses
from onlinebregman._kernels.learners.solver cimport line_step
from onlinebregman._kernels.learners.run cimport BAD_TARGET, LEARNED, LOSS_OVERFLOWED, NEEDS_BACKUP, OVERFLOWED
from onlinebregman._kernels.learners.transaction cimport check_idle
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.losses.loss import NumPyLoss
from onlinebregman._kernels.ops.covariance cimport OB_LAG, ob_subtract_squares, ob_symmetric_product
from onlinebregman._kernels.ops.forward cimport ob_bierman, ob_leverage, ob_turn
from onlinebregman._kernels.ops.state import aligned
from onlinebregman._kernels.ops.row cimport ob_axpy4, ob_dots, ob_sparse_dot
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_dot, ob_nonfinite
from onlinebregman._kernels.rows.centre cimport Centre
from onlinebregman._kernels.rows.fourier cimport FourierFeatures
from onlinebregman._kernels.rows.rows cimport Row, Rows, filled

cdef enum:
    BATCH = 4                 # columns of U that are processed together
    LIMIT = 1 << 30           # bound on sizes, which are squared

# Bound on D times alpha: with forgetting and no new information D and its rounding errors would grow without bound.
cdef double LARGEST = 1e10
# The same on the diagonal of P, whose rounding errors are those of the largest values that it has had; what these make
# of q is less than this part of such a value
cdef double LARGEST_OF_P = 1e8
cdef double ROUNDING = 1e-14
cdef double LEAST_CURVATURE = 1e-6
# Added to the weight of each class.
cdef double PSEUDO_COUNT = 2.0
# A row of negative weight is not taken off if less than this part of its direction remains.
cdef double LEAST_LEFT = 1e-6
# Numbers below this do not overflow by rounding errors.
cdef double FINITE = 1e300


cdef inline double log_step(double g, double weight, double counted) noexcept nogil:
    cdef double step = log1p(weight * fabs(g) / (counted + PSEUDO_COUNT))
    return step if g > 0 else -step


cdef class SecondOrderLearner(AtomicLearner):
    """Base class; a subclass calls `allocate`, and solves for the step of its loss in `respond`."""

    def __cinit__(self, *arguments, **more):
        if type(self) is SecondOrderLearner:
            raise TypeError("SecondOrderLearner must be created with the arguments of a subclass; got the base class")

    cdef int allocate(self, n_features, alpha, fit_intercept, FourierFeatures features, intercept_alpha, Py_ssize_t m,
                      Py_ssize_t score_length, Py_ssize_t n_counted, bint centred=False,
                      bint allow_nan=False) except -1:
        """Called at the end of a constructor, with its arguments: weights for m scores.

        `score_length` is the length of a vector of scores, padding included. Without classes to count, or an intercept,
        scores have no log odds. `allow_nan`: whether NaN in centred rows is a missing value, which counts as the mean.
        """
        cdef Py_ssize_t j
        self.n_features, self.features, self.fit_intercept = n_features, features, fit_intercept
        self.alpha, self.intercept_alpha, self.gamma = alpha, intercept_alpha, 1.0
        self.n_inputs = self.n_features if self.features is None else self.features.n_components
        if self.features is not None:
            check_columns(self.features.n_features, self.n_features)
        if not (0 < self.n_inputs < LIMIT and 0 < m < LIMIT):
            raise ValueError(f"numbers of features and scores must be in [1, 2^30); got {self.n_inputs} and {m}")
        if centred:
            if not fit_intercept or features is not None:
                raise ValueError("centred rows need an intercept, and no features")
            self.centre = Centre(n_features, sqrt(self.alpha), allow_nan)
        self.d, self.m, self.score_length = self.n_inputs + self.fit_intercept, m, score_length
        self.padded = (self.d + BATCH - 1) // BATCH * BATCH if self.features is None else (self.d + 7) // 8 * 8
        self.n_targets, self.target_ndim, self.n_scores, self.traits = 1, 1, m, CHUNKWISE
        self.fields.expect("memory", self.vectors() + self.offset(self.padded, 0))
        self.spare = np.zeros(4 * self.vector_stride())
        j = 7 - (self.vectors() + 7) % 8  # so that U begins a cache line
        self.memory = aligned((), size=j + self.vectors() + self.offset(self.padded, 0))[j:]
        for j in range(self.padded if self.features is None else 0):
            self.pivots()[j] = 1.0 / self.alpha
            self.memory[self.vectors() + self.offset(j, j)] = 1.0
        if self.features is not None:
            for j in range(self.d):
                self.memory[self.vectors() + self.offset(j, j)] = 1.0 / self.prior_of(j)
            self.state.most = self.most_at_first()
        elif self.fit_intercept:
            self.pivots()[0 if centred else self.n_inputs] = 1.0 / self.intercept_alpha
        self.fields.vector("memory", self.memory)
        self.state.prior = self.state.scale = 1.0
        self.fields.add("state", &self.state, sizeof(self.state))
        if not (0 <= self.state.pending <= OB_LAG and self.state.pending % 1 == 0):
            raise ValueError(f"the number of pending vectors must be in [0, {OB_LAG}]; got {self.state.pending}")
        self.total_loss = &self.state.loss
        self.fields.add("forgetting", &self.gamma, sizeof(self.gamma))
        self.n_counted, self.slope = n_counted if self.fit_intercept else 0, 1.0
        self.tally = np.zeros(self.n_counted + self.m)
        if self.n_counted:
            self.fields.vector("tally", self.tally)
        if centred:
            self.fields.vector("columns", self.centre.memory)
        return 0

    def get_state(self):
        """See `AtomicLearner`: the pending step, which rows in one call would not have left, is made."""
        check_idle(self.busy)
        self.subtract_vectors()
        return {**AtomicLearner.get_state(self), "memory": self.updated_memory()}

    def with_features(self, n_features, row_map):
        """A learner of more features, which have been 0 in all rows and are at the prior, with this map of rows."""
        cdef SecondOrderLearner wide = type(self)(n_features, *self.arguments[1:])
        cdef double[::1] memory = self.updated_memory()
        cdef Py_ssize_t j, k
        cdef Py_ssize_t last = self.d if self.centre is not None else self.n_inputs
        cdef Py_ssize_t[::1] place = np.array([j if j < last else n_features for j in range(self.d)], np.intp)
        wide.weight_rows()[:, place] = np.asarray(memory)[:self.m * self.d].reshape(self.m, self.d)
        for j in range(self.d):
            wide.pivots()[place[j]] = memory[self.m * self.d + j]
            for k in range(j + 1):
                entry = memory[self.vectors() + self.offset(j, k)]
                wide.memory[wide.vectors() + wide.offset(place[j], place[k])] = entry
        wide.state, wide.gamma = self.state, self.gamma
        wide.tally[:] = self.tally
        if self.centre is not None:
            wide.centre.widen(self.centre)
        wide.map_by(row_map)
        return wide

    def joined(self, learners, row_map):
        """A learner of all rows that the given learners, copies of this one, have learned.

        Each is a normal model of the weights with precision A_s: A = A_1 + sum (A_s - A_1), and likewise for A w.
        """
        cdef Py_ssize_t j, n = self.padded
        cdef SecondOrderLearner learner = type(self)(*self.arguments)
        before, after = self.state, [(<SecondOrderLearner> each).state for each in learners]
        if self.centre is not None:
            learner.centre.join(self.centre, [(<SecondOrderLearner> each).centre for each in learners])
        first, others = self.natural(learner), [(<SecondOrderLearner> other).natural(learner) for other in learners]
        if loses(first[0], [other[0] for other in others]):  # then it counts once for each of them
            first = [0.0 * part for part in first]
        A, Aw = (part + sum(each - part for each in parts) for part, *parts in zip(first, *others, strict=True))
        learner.gamma = self.gamma
        learner.map_by(row_map)
        learner.state = {name: value + sum(run[name] - value for run in after) for name, value in before.items()}
        learner.weight_rows()[:] = np.linalg.solve(A, Aw).T
        tallies = [np.asarray((<SecondOrderLearner> each).tally) - self.tally for each in learners]
        shares = [tally[:self.n_counted].sum() for tally in tallies]
        learner.tally[:] = self.tally
        if sum(shares) > 0:  # log odds are averaged
            learner.counts()[:] += sum(tally[:self.n_counted] for tally in tallies)
            np.asarray(learner.tally)[self.n_counted:] += np.average(tallies, 0, shares)[self.n_counted:]
        if self.features is not None:
            learner.state.pending, learner.state.scale, learner.state.full = 0.0, 1.0, 0.0
            learner.state.most = self.most_at_first()
            C = np.linalg.inv(A)
            for j in range(self.d):
                learner.state.most = max(learner.state.most, C[j, j])
                for k in range(j // 8 * 8 + 8 if j // 8 * 8 + 8 < self.d else self.d):
                    learner.memory[learner.vectors() + learner.offset(j, k)] = C[k, j]
            return learner
        # A^-1 = U D U' with U = R^-1 of A = R' R, its rows divided by those of the diagonal
        root = np.linalg.inv(np.linalg.cholesky(A)).T
        for j in range(self.d):
            learner.pivots()[j] = root[j, j] ** 2
            values = np.zeros(n)
            values[:self.d] = root[:, j] / root[j, j]
            for k in range(j + 1):
                learner.memory[learner.vectors() + learner.offset(j, k)] = values[k]
        return learner

    def natural(self, SecondOrderLearner joined):
        """A and A w', about the centre of another learner."""
        C, W = self.covariance, self.weight_rows()
        if self.centre is not None:
            T = np.eye(self.d)
            T[0, 1:] = self.centre.used * (joined.centre.at - self.centre.at)
            C, W = T @ C @ T.T, W @ T.T
        A = np.linalg.inv(C)
        return A, A @ W.T

    @property
    def t(self):
        return int(self.state.t)

    @property
    def covariance(self):
        """A^-1."""
        cdef Py_ssize_t j, k, n = self.padded
        cdef double[:, ::1] columns = np.zeros((n, n))
        cdef double[::1] memory = self.updated_memory()
        if self.features is not None:
            for j in range(n):
                for k in range(j + 1):
                    columns[j, k] = columns[k, j] = memory[self.vectors() + self.offset(j, k)]
            v = np.asarray(memory)[self.m * self.d:self.vectors()].reshape(-1, n)[:int(self.state.pending)]
            return self.state.scale * (np.asarray(columns) - v.T @ v)[:self.d, :self.d]
        for j in range(n):
            for k in range(j + 1):
                columns[j, k] = memory[self.vectors() + self.offset(j, k)]
        scale = np.asarray(memory)[self.m * self.d:self.m * self.d + n]
        return (np.asarray(columns).T @ (scale[:, np.newaxis] * np.asarray(columns)))[:self.d, :self.d]

    cdef object weight_rows(self):
        return np.asarray(self.memory)[:self.m * self.d].reshape(self.m, self.d)

    cdef object weights_of_columns(self):
        first = self.centre is not None
        return self.weight_rows()[:, first:first + self.n_inputs].copy()

    cdef object intercepts(self):
        """Of each score, for rows as they are."""
        if not self.fit_intercept:
            return np.zeros(self.m)
        if self.centre is None:
            return self.weight_rows()[:, self.n_inputs] + self.log_odds()
        return self.weight_rows()[:, 0] + self.log_odds() - self.weights_of_columns() @ self.centre.at

    cdef object counts(self):
        return np.asarray(self.tally)[:self.n_counted]

    cdef object log_odds(self):
        """Of each score."""
        return np.array(self.tally)[self.n_counted:]

    cdef bint count(self, double y, const double* g, double weight) noexcept nogil:
        """Move the log odds by a row of class y, of two the share of the second, and count it; False on overflow."""
        cdef Py_ssize_t c, n = self.n_counted
        cdef double* odds = &self.tally[n]
        cdef double total = 0.0
        if self.m == 1 and n == 2:
            for c in range(2):
                odds[0] -= log_step(g[0] / self.slope, weight, self.tally[c])
        else:
            for c in range(n):
                odds[c] -= log_step(g[c], weight, self.tally[c])
        for c in range(n):
            self.tally[c] = self.gamma * self.tally[c] + weight * (
                <double> (c == y) if n != 2 else y if c == 1 else 1.0 - y
            )
            total += self.tally[c]
        return isfinite(total)

    # --- layout of the memory: weights, D, move, gain, and U ------------------------------------------------------

    cdef Py_ssize_t vectors(self) noexcept nogil:
        """Offset of U, or P, in the memory."""
        return self.m * self.d + (3 if self.features is None else OB_LAG) * self.padded

    cdef double* weights(self) noexcept nogil:
        return &self.memory[0]

    cdef double* pivots(self) noexcept nogil:
        """D"""
        return &self.memory[self.m * self.d]

    cdef Py_ssize_t vector_stride(self) noexcept nogil:
        """Length of a vector that is multiplied by U: d rounded up to a multiple of eight."""
        return (self.padded + 7) // 8 * 8

    cdef Py_ssize_t offset(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil:
        """Offset of U[k, j]: blocks of four columns, each in tiles of eight rows; of P see `ops/covariance.h`."""
        cdef Py_ssize_t four = j // BATCH, pair = four // 2 + 1, eight = j // 8
        if self.features is not None:
            return 32 * eight * (eight + 1) + k // 8 * 64 + j % 8 * 8 + k % 8
        return 4 * 8 * pair * (pair - 1 + four % 2) + k // 8 * 32 + j % BATCH * 8 + k % 8

    cdef object updated_memory(self):
        """A copy of the memory in which the pending step of U is applied."""
        cdef double[::1] memory = np.asarray(self.memory).copy(), buffer = np.zeros(4 * self.vector_stride())
        if self.features is None:
            self.apply_pending_step(&memory[0], &buffer[0])
        return np.asarray(memory)

    cdef void apply_pending_step(self, double* memory, double* buffer) noexcept nogil:
        """Apply the pending step of the last row to U, by a row of zeros; `buffer` holds working vectors."""
        cdef double* d = memory + self.m * self.d
        cdef double* move = d + self.padded
        cdef Py_ssize_t n = self.padded, length = self.vector_stride()
        cdef double* row = buffer + 3 * length
        ob_turn(memory + self.vectors(), move, move + n, d, row, NULL, n, -1, buffer, buffer + length, n, False)
        memset(move, 0, 2 * n * sizeof(double))

    # --- of features ----------------------------------------------------------------------------------------------

    cdef double* vector(self, Py_ssize_t r) noexcept nogil:
        """The r-th vector v."""
        return &self.memory[self.m * self.d + r * self.padded]

    cdef double prior_of(self, Py_ssize_t j) noexcept nogil:
        return self.intercept_alpha if j == self.n_inputs else self.alpha

    cdef double most_at_first(self) noexcept nogil:
        """The largest value of P before the first row."""
        return 1.0 / min(self.alpha, self.intercept_alpha if self.fit_intercept else self.alpha)

    cdef void subtract_vectors(self) noexcept nogil:
        """Subtract their squares from P, if there are as many as are subtracted together."""
        if self.state.pending < OB_LAG:
            return
        ob_subtract_squares(&self.memory[self.vectors()], self.vector(0), self.state.scale, self.padded)
        memset(self.vector(0), 0, OB_LAG * self.padded * sizeof(double))
        self.state.pending, self.state.scale = 0.0, 1.0
        self.bound_diagonal()

    cdef void bound_diagonal(self) noexcept nogil:
        """Where nothing is learned for long, a value that forgetting has made large becomes half of the largest one, as
        by a row of that coordinate alone; if there are too many, nothing is forgotten."""
        cdef Py_ssize_t j, k, r
        cdef double* P = &self.memory[self.vectors()]
        cdef double* v
        cdef double c, size
        self.state.most, self.state.full = self.most_at_first(), 0.0
        for j in range(self.d):
            size = P[self.offset(j, j)]
            self.state.most = max(self.state.most, size)
            if size * self.prior_of(j) > 2.0 * LARGEST_OF_P:
                self.state.full = 1.0
            if size * self.prior_of(j) > LARGEST_OF_P and self.state.pending < OB_LAG // 2:
                r = <Py_ssize_t> self.state.pending
                v = self.vector(r)
                for k in range(self.padded):
                    v[k] = P[self.offset(max(j, k), min(j, k))]
                for k in range(r):
                    ob_axpy(v, self.vector(k), self.vector(k)[j], self.padded)
                c = (1.0 - 0.5 * LARGEST_OF_P / (size * self.prior_of(j))) / size
                for k in range(self.padded):
                    v[k] *= sqrt(c)
                self.state.pending += 1.0

    cdef double find_product(self, const double* x, double* v) noexcept nogil:
        """v = A^-1 x / scale; returns x'v, or what rounding errors may make of 0, if that is more."""
        cdef Py_ssize_t r
        cdef double t, q
        ob_symmetric_product(&self.memory[self.vectors()], x, v, self.padded)
        q = ob_dot(x, v, self.padded)
        for r in range(<Py_ssize_t> self.state.pending):
            t = ob_dot(self.vector(r), x, self.padded)
            q -= t * t
            ob_axpy(v, self.vector(r), t, self.padded)
        t = ROUNDING * self.state.most * ob_dot(x, x, self.padded)
        return t if q < t else q

    cdef void keep_vector(self, double* v, double q, double h) noexcept nogil:
        """Keep v = A^-1 x / scale of a row of curvature h, with q = x'A^-1 x."""
        cdef double size = sqrt(self.state.scale / (q + (self.gamma if self.state.full == 0 else 1.0) / h))
        cdef Py_ssize_t k
        for k in range(self.padded):
            v[k] *= size
        self.state.pending += 1.0
        if self.state.full == 0:
            self.state.scale /= self.gamma

    cdef double leverage(self, const Row* row, double* v) noexcept nogil:
        """x'A^-1 x of a row as it is learned; v is a buffer."""
        cdef double* move = self.pivots() + self.padded
        if self.features is not None:
            return self.state.scale * self.find_product(row.x, v)
        return ob_leverage(
            &self.memory[self.vectors()], move, move + self.padded, self.pivots(), row.x, row.index, row.n,
            self.n_inputs if self.fit_intercept else -1, self.padded,
        )

    # --- the centre of the rows -----------------------------------------------------------------------------------

    cdef const Row* image_of(self, const Row* row, Workspace* work, Row* image) noexcept nogil:
        """The row as it is learned, (1, z), or its features."""
        cdef double* z = scratch(work, 4)
        if self.features is None and self.centre is None:
            return row
        image.x, image.index, image.n, image.number = z, NULL, self.n_inputs, row.number
        if self.centre is not None:
            self.centre.centre(filled(row, scratch(work, 0), self.n_inputs), z + 1)
            z[0], image.n = 1.0, self.d
            return image
        self.features.apply(row, z)
        memset(z + self.n_inputs, 0, (self.padded - self.n_inputs) * sizeof(double))  # for products with P
        if self.fit_intercept:
            z[self.n_inputs] = 1.0
        return image

    cdef int count_columns(self, const double* x, double weight) noexcept nogil:
        """Count a row that was learned; the centre moves if it is time."""
        self.state.prior *= self.gamma
        if self.centre.count(x, weight):
            if not self.backed_up:
                return NEEDS_BACKUP
            self.move_centre()
        return LEARNED

    cdef void move_centre(self) noexcept nogil:
        cdef Py_ssize_t c, j, k
        cdef double* w = self.weights()
        cdef double* U = &self.memory[self.vectors()]
        cdef double* x = &self.spare[3 * self.vector_stride()]  # (1, -m)
        cdef double step, jump, variance = 0.0, prior = self.state.prior * self.intercept_alpha
        self.apply_pending_step(&self.memory[0], &self.spare[0])
        self.centre.move(x + 1)
        for c in range(self.m):
            jump = 0.0
            for j in range(1, self.d):
                step = w[c * self.d + j] * x[j]
                w[c * self.d] -= step
                jump += step if self.centre.jumps(j - 1, x[j]) else 0.0
            variance += jump * jump
        for j in range(1, self.d):
            for k in range(1, j + 1):
                U[self.offset(j, 0)] -= x[k] * U[self.offset(j, k)]
        if variance > 0:
            self.pivots()[0] += variance
            self.state.prior = 0.0
        if self.state.prior > 0:
            self.centre.move_origin(x + 1)
            x[0] = 1.0
            self.add_square(x, 1, prior)
            self.add_square(x, self.d, -prior)
        memset(x, 0, self.d * sizeof(double))
        self.apply_pending_step(&self.memory[0], &self.spare[0])
        for j in range(1, self.d):
            step = self.centre.variance_to_add(j - 1)
            if 0 < step < FINITE * self.alpha:
                self.add_variance(j, step / self.alpha)

    cdef void add_variance(self, Py_ssize_t j, double variance) noexcept nogil:
        """Add to the variance of coordinate j (Agee and Turner's update of U D U'); no step of U is pending."""
        cdef Py_ssize_t i, k
        cdef double* D = self.pivots()
        cdef double* U = &self.memory[self.vectors()]
        cdef double* a = &self.spare[3 * self.vector_stride()]  # zeros
        cdef double pivot, gain
        a[j] = 1.0
        for k in range(j, -1, -1):
            pivot = D[k] + variance * a[k] * a[k]
            gain = variance * a[k] / pivot
            for i in range(k):
                a[i] -= a[k] * U[self.offset(k, i)]
                U[self.offset(k, i)] += gain * a[i]
            variance *= D[k] / pivot
            D[k], a[k] = pivot, 0.0

    cdef void add_square(self, const double* x, Py_ssize_t n, double h) noexcept nogil:
        """Add h (u.x)^2 / 2, x of n values, to what each row of weights minimises, if that is well conditioned."""
        cdef Py_ssize_t c
        cdef double* f = self.pivots() + self.padded
        cdef double* gain = f + self.padded
        cdef double* v = &self.spare[0]
        cdef double* w
        cdef double q
        ob_turn(&self.memory[self.vectors()], f, gain, self.pivots(), x, NULL, n, -1, v, v + self.vector_stride(),
                self.padded, False)
        q = ob_dot(gain, f, self.padded)
        if not h * q > LEAST_LEFT - 1.0:
            memset(f, 0, 2 * self.padded * sizeof(double))
            return
        ob_bierman(self.pivots(), f, gain, v + self.vector_stride(), h, 1.0, LARGEST / self.alpha, self.padded)
        for c in range(self.m):
            w = self.weights() + c * self.d
            ob_axpy(w, v, h / (1.0 + h * q) * ob_dot(w, x, n), self.d)

    # --- entry points -------------------------------------------------------------------------------------------

    def apply(self, *, double forgetting):
        """Set the forgetting factor of the rows."""
        self.gamma = forgetting

    # --- a call: see `AtomicLearner` ----------------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest, bint to_learn) noexcept:
        if to_learn:
            return 3 * max(self.vector_stride(), self.score_length)
        return max(self.score_length, 0 if self.centre is None and self.features is None else self.vector_stride())

    cdef int begin(self, Rows rows, bint complete) except -1:
        """With one row U only changes by the pending step, and P by the vectors, which need not be undone."""
        cdef Py_ssize_t changing = self.vectors() if self.features is None else self.m * self.d
        self.backed_up = complete or rows.n_rows > 1
        self.passed, self.size = False, 0.0
        self.subtract_vectors()
        # the first field is the memory
        self.fields.each[0].changing = sizeof(double) * (self.memory.shape[0] if self.backed_up else changing)
        return AtomicLearner.begin(self, rows, complete)

    cdef int undo(self) except -1:
        AtomicLearner.undo(self)
        if self.passed and not self.backed_up and self.features is not None:
            memset(self.vector(<Py_ssize_t> self.state.pending), 0, self.padded * sizeof(double))
        elif self.passed and not self.backed_up:
            memset(self.pivots() + self.padded, 0, 2 * self.padded * sizeof(double))
        return 0

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return self.memory.shape[0]

    cdef int check_all(self) noexcept nogil:
        """Check that all vectors are finite, and U after the pending step: by a bound, or by applying the step."""
        cdef double* move = self.pivots() + self.padded
        cdef double* gain = move + self.padded
        cdef double most
        if self.features is not None:
            if not (self.state.most * self.state.scale < FINITE):
                return OVERFLOWED
            return OVERFLOWED if ob_nonfinite(
                &self.memory[0], self.memory.shape[0] if self.backed_up else self.vectors()
            ) else LEARNED
        if ob_nonfinite(&self.memory[0], self.vectors()):
            return OVERFLOWED
        most = ob_dot(move, move, self.padded) * ob_dot(gain, gain, self.padded) * self.padded  # (move sum |gain|)^2
        if not self.backed_up:
            return LEARNED if self.size < FINITE and most < FINITE and self.size * most < FINITE else NEEDS_BACKUP
        self.apply_pending_step(&self.memory[0], &self.spare[0])
        return OVERFLOWED if ob_nonfinite(&self.memory[0], self.memory.shape[0]) else LEARNED

    cdef int respond(self, double* a, const double* y, double weight, double q, Workspace* work,
                     double* h) noexcept nogil:
        """Replace the scores a of a row by g, the slopes of its loss after the step; set h, the curvature there.

        The loss is added to the state. q is x'A^-1 x; the working vectors from the fourth on are free. This is the step
        of a single score, on `loss`, in the metric A / slope.
        """
        cdef double c, z
        if not self.loss.admits(y[0]):
            return BAD_TARGET
        self.state.loss += weight * self.loss.value(a[0], y[0])
        if not isfinite(self.state.loss):
            return LOSS_OVERFLOWED
        q *= self.slope
        if not weight * q < INFINITY:
            return OVERFLOWED
        c = line_step(self.loss, a[0], q, weight, y[0])
        z = a[0] - c * q
        h[0] = max(self.slope * self.loss.curvature(z, y[0]), LEAST_CURVATURE)
        a[0] = self.slope * c / weight
        return LEARNED if isfinite(c) and h[0] < INFINITY else OVERFLOWED

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        cdef double* f = self.pivots() + self.padded  # U'x; before the pass over U: move, gain of the last row
        cdef double* gain = f + self.padded
        cdef double* v = scratch(work, 1)
        cdef double* buffer = v + self.vector_stride()
        cdef double* a = scratch(work, 2)
        cdef double h, q
        cdef Row image
        cdef const Row* given = row
        cdef int status
        if self.centre is not None:
            self.centre.begin(filled(given, scratch(work, 0), self.n_inputs))
        row = self.image_of(row, work, &image)
        self.score(row, a)
        self.passed = True
        if self.features is not None:
            self.subtract_vectors()
            v = self.vector(<Py_ssize_t> self.state.pending)
            q = self.state.scale * self.find_product(row.x, v)
        else:
            self.size = ob_turn(
                &self.memory[self.vectors()], f, gain, self.pivots(), row.x, row.index, row.n,
                self.n_inputs if self.fit_intercept and self.centre is None else -1, v, buffer, self.padded,
                not self.backed_up,
            )
            q = ob_dot(gain, f, self.padded)
        self.foresee(row, q, a)
        if scores != NULL:
            memcpy(scores, a, self.m * sizeof(double))
        self.state.t += 1.0
        status = self.respond(a, y, weight, q, work, &h)
        if status != LEARNED:
            return status
        if self.features is None and not ob_bierman(
            self.pivots(), f, gain, buffer, weight * h, self.gamma, LARGEST / self.alpha, self.padded
        ) >= DBL_MIN:
            return OVERFLOWED
        if self.n_counted and not self.count(y[0], a, weight):
            return OVERFLOWED
        self.move(v, a, weight if self.features is None else weight * self.state.scale)
        if self.features is not None:
            self.keep_vector(v, q, weight * h)
        if self.centre is None:
            return LEARNED
        return self.count_columns(filled(given, scratch(work, 0), self.n_inputs), weight)

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        cdef Row image
        self.score(self.image_of(row, work, &image), scores)

    cdef void score(self, const Row* row, double* a) noexcept nogil:
        """a = W x + o"""
        cdef Py_ssize_t c, n = self.n_counted
        if row.index == NULL:
            ob_dots(self.weights(), self.d, self.m, row.x, row.n, a)
        for c in range(self.m if row.index != NULL else 0):
            a[c] = ob_sparse_dot(self.weights() + c * self.d, row.index, row.x, row.n)
        if self.fit_intercept and self.centre is None:
            for c in range(self.m):
                a[c] += self.weights()[c * self.d + self.n_inputs]
        for c in range(self.m if n else 0):
            a[c] += self.tally[n + c]

    cdef void foresee(self, const Row* row, double q, double* a) noexcept nogil:
        """Replace the scores a = W x by those of the prediction, where these are others; q is x'A^-1 x."""

    cdef void move(self, const double* v, double* g, double weight) noexcept nogil:
        """W -= weight * g v'"""
        cdef Py_ssize_t c
        cdef double* w = self.weights()
        for c in range(self.m):
            g[c] *= weight
        c = 0
        while c + 4 <= self.m:
            ob_axpy4(w, w + self.d, w + 2 * self.d, w + 3 * self.d, v, g + c, self.d)
            w += 4 * self.d
            c += 4
        while c < self.m:
            ob_axpy(w, v, g[c], self.d)
            w += self.d
            c += 1


@cython.final
cdef class MatchingLearner(SecondOrderLearner):
    """Learns rows with one target each, one after the other.

    Parameters
    ----------
    n_features : int
    loss : Loss
        Smooth and convex.
    alpha : float
        A = alpha I before the first row.
    fit_intercept : bool
        Whether rows have one more coordinate, 1: the last one.
    features : FourierFeatures or None
        Features to learn instead of the values of the rows.
    intercept_alpha : float
        The entry of A for the intercept before the first row.
    centred, allow_nan : bool, default=False
        Whether rows are centred, and NaN in them is a missing value.
    """

    def __cinit__(self, n_features, Loss loss not None, alpha, fit_intercept, FourierFeatures features, intercept_alpha,
                  *more):
        cdef tuple flags = (*more, False, False)  # centred, allow_nan; or a state in the place of one
        self.loss = loss
        self.allocate(
            n_features, alpha, fit_intercept, features, intercept_alpha, 1, LANES, 2 if loss.logistic else 0,
            flags[0] is True, flags[1] is True,
        )
        self.traits = LINKS if isinstance(loss, NumPyLoss) else LINKS | CHUNKWISE

    @property
    def coef(self):
        return self.weights_of_columns()[0]

    @property
    def intercept(self):
        return float(self.intercepts()[0])
