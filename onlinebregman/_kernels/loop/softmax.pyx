"""The forward algorithm carried to the log loss: implicit softmax steps in one second-order metric for all classes.

The weights W, one row w_c for each class, and a positive definite matrix A move by

    W' = argmin sum_c (u_c - w_c)' A (u_c - w_c) / 2 + weight * L(U x, y),     A' = gamma A + weight * h x x',

with L the log loss of softmax and h its curvature at W'. With v = A^-1 x, q = x'v and a = W x the step is
W' = W - weight * g v', and the scores z = W'x and g are the solution of k equations, found by Newton's method:

    z = a - weight * q g,    g = softmax(z) - e_y.

For two classes w_1 = -w_0, and one row of weights holds their difference w_1 - w_0: the logistic step in A / 2.

A^-1 = U D U' is kept, U unit upper triangular and D diagonal, and moves by Bierman's rank-one update (G. J. Bierman,
"Measurement updating using the U-D factorization", Automatica 12, 1976). With f = U'x, b = D f and u_j column j of U

    e_j = e_(j-1) + h b_j f_j,   D_j' = D_j e_(j-1) / (e_j gamma),   u_j' = u_j - (h f_j / e_(j-1)) v,   v += b_j u_j,

from e = gamma and v = 0 on, which is A^-1 x in the end. D stays positive, so A^-1 stays positive definite whatever the
data; scaling a feature scales a row of U, so badly scaled features cost no digits. The step in v by the old column is a
Givens rotation without square roots that keeps all of v: four columns go side by side, as in `forward`.
"""

import copy

import numpy as np

cimport cython
from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, NAN, isfinite
from libc.string cimport memcpy, memset

from onlinebregman._kernels.geometries.geometry cimport Workspace, free_workspace, make_workspace, scratch
from onlinebregman._kernels.loop.atomic cimport AtomicLearner, Block, interrupted, weight_of
from onlinebregman._kernels.loop.learner cimport reason
from onlinebregman._kernels.loop.state cimport INTERRUPTED, LEARNED, LOSS_OVERFLOWED, OVERFLOWED
from onlinebregman._kernels.loop.transaction cimport check_idle
from onlinebregman._kernels.rows.fourier cimport FourierFeatures, mapped
from onlinebregman._kernels.rows.rows cimport Row, Rows, open_rows
from onlinebregman._kernels.rows.standardizer cimport fetch_standardized, fetch_to_learn

cdef extern from "ops/row.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_dot4(const double* w0, const double* w1, const double* w2, const double* w3, const double* x, Py_ssize_t n,
                 double* dots) noexcept nogil
    double ob_sparse_dot(const double* w, const Py_ssize_t* index, const double* x, Py_ssize_t n) noexcept nogil
    void ob_axpy4(double* w0, double* w1, double* w2, double* w3, const double* x, const double* c,
                  Py_ssize_t n) noexcept nogil
    void ob_axpy(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_multiply(double* p, const double* a, const double* b, Py_ssize_t n) noexcept nogil
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil

cdef extern from "ops/forward.h":
    double ob_bierman(double* d, double* f, const double* b, double* e, double h, double gamma, double most,
                      Py_ssize_t n) noexcept nogil
    void ob_rotate4(double* r, double* z, Py_ssize_t stride, const double* x, const double* keep, const double* gain,
                    Py_ssize_t n) noexcept nogil

cdef extern from "ops/softmax.h":
    double OB_NO_CLASS
    ctypedef struct ob_softmax:  # of the scores of n classes
        Py_ssize_t classes, n, y
        double* e
    void ob_softmax_of(ob_softmax* p, const double* z) noexcept nogil
    double ob_softmax_loss(const ob_softmax* p, const double* z) noexcept nogil
    void ob_softmax_probabilities(const ob_softmax* p, double* s) noexcept nogil
    void ob_softmax_slopes(const ob_softmax* p, double* g) noexcept nogil
    double ob_softmax_curvature(const ob_softmax* p) noexcept nogil
    void ob_softmax_implicit(ob_softmax* p, const double* a, double q, double* room) noexcept nogil

cdef enum:
    BATCH = 4                 # columns of U that are rotated side by side
    LANES = 8                 # vectors of a number for each class are multiples of this long

cdef double LEAST_CURVATURE = 1e-6
# Where no row comes, forgetting makes D grow without end: not beyond this.
cdef double LARGEST = 1e100
cdef double[BATCH] KEEP = [1.0, 1.0, 1.0, 1.0]


cdef struct SoftmaxState:     # beside the weights and the metric
    double t                  # rows learned
    double loss               # cumulative loss of the predictions made before each row was learned


@cython.final
cdef class SoftmaxLearner(AtomicLearner):
    """Learns rows with the numbers of their classes, one after the other.

    Parameters
    ----------
    n_features : int
    n_classes : int
        At least 2.
    alpha : float
        A = alpha I before the first row.
    fit_intercept : bool
        Whether rows have one more coordinate, 1: the last one.
    memory : ndarray, default=None
        The weights and the metric of another learner, to go on as it would,
    state : dict, default=None
        its `SoftmaxState`,
    standardizer : Standardizer, default=None
        and what rows are standardised by.
    forgetting : float, default=1.0
        Of the next call, unless it says otherwise.
    features : FourierFeatures, default=None
        Learn these of the rows, and not their values.
    intercept_alpha : float, default=None
        What A has for the intercept before the first row; alpha if left out.
    """

    cdef readonly Py_ssize_t n_classes
    cdef readonly double alpha, intercept_alpha
    cdef readonly bint fit_intercept
    cdef readonly FourierFeatures features
    cdef Py_ssize_t n_inputs  # values of a row as it is learned
    cdef Py_ssize_t n_lanes   # a score for each class, and what fills up a register
    cdef Py_ssize_t d, m, padded  # coordinates, rows of weights, columns of U: in fours, those beyond d are idle
    cdef double[::1] memory   # the weights (m, d), D, and U: four columns at a time, down to the last one's diagonal
    cdef SoftmaxState state
    # What the last call has to put back
    cdef double[::1] before
    cdef SoftmaxState state_before
    cdef double gamma         # of the next call

    def __cinit__(self, n_features, n_classes, alpha, fit_intercept, memory=None, state=None, standardizer=None,
                  forgetting=1.0, FourierFeatures features=None, intercept_alpha=None):
        cdef Py_ssize_t j
        self.standardizer = standardizer
        self.n_features, self.n_classes = n_features, n_classes
        self.alpha, self.fit_intercept, self.gamma = alpha, fit_intercept, forgetting
        self.intercept_alpha = alpha if intercept_alpha is None else intercept_alpha
        self.features, self.n_inputs = features, n_features if features is None else features.n_components
        self.d, self.m = self.n_inputs + fit_intercept, n_classes if n_classes > 2 else 1
        self.padded = (self.d + BATCH - 1) // BATCH * BATCH
        self.n_lanes = (self.n_classes + LANES - 1) // LANES * LANES
        self.n_targets, self.target_ndim, self.n_scores = 1, 1, self.m
        self.memory, self.before = np.zeros(self.m * self.d + self.padded + self.start_of(self.padded)), None
        for j in range(self.padded):
            self.scale()[j] = 1.0 / self.alpha
            self.column(j)[j] = 1.0
        if self.fit_intercept:
            self.scale()[self.n_inputs] = 1.0 / self.intercept_alpha
        if memory is not None:
            np.asarray(self.memory)[:] = memory
            self.state = state

    def __reduce__(self):
        check_idle(self.busy)
        arguments = self.n_features, self.n_classes, self.alpha, self.fit_intercept
        state = np.asarray(self.memory).copy(), self.state, self.standardizer, self.gamma, self.features
        return type(self), (*arguments, *state, self.intercept_alpha)

    def with_classes(self, n_classes, numbers):
        """A learner of more classes that goes on as this one would: of weights 0, but for those of `numbers`, its own.

        What they have in common, the metric, is that of all rows so far.
        """
        cdef SoftmaxLearner learner
        cdef Py_ssize_t length = self.m * self.d
        check_idle(self.busy)
        learner = SoftmaxLearner(
            self.n_features, n_classes, self.alpha, self.fit_intercept, standardizer=copy.deepcopy(self.standardizer),
            forgetting=self.gamma, features=self.features, intercept_alpha=self.intercept_alpha,
        )
        weights = self.weight_rows()
        learner.weight_rows()[numbers] = np.vstack([-0.5 * weights, 0.5 * weights]) if self.m == 1 else weights
        np.asarray(learner.memory)[learner.m * learner.d:] = self.memory[length:]
        learner.state = self.state
        return learner

    def joined(self, learners, standardizer):
        """A learner of what each of these, copies of this one, has learned beyond it.

        Each is a normal model of the weights, of precision A_s: A = A_1 + sum (A_s - A_1), and A w adds up alike.
        """
        cdef Py_ssize_t j, n = self.padded
        cdef SoftmaxLearner learner
        cdef double* column
        arguments = self.__reduce__()[1]
        first, others = np.linalg.inv(self.covariance), [np.linalg.inv(each.covariance) for each in learners]
        before, after = self.__reduce__()[1][5], [each.__reduce__()[1][5] for each in learners]
        pull = first @ (<SoftmaxLearner> self).weight_rows().T
        pull = pull + sum(A @ (<SoftmaxLearner> each).weight_rows().T - pull for A, each in zip(others, learners))
        A = first + sum(other - first for other in others)
        state = {name: value + sum(each[name] - value for each in after) for name, value in before.items()}
        learner = type(self)(*arguments[:4], arguments[4], state, standardizer, *arguments[7:])
        learner.weight_rows()[:] = np.linalg.solve(A, pull).T
        # A^-1 = U D U' with U = R^-1 of A = R' R, its rows divided by those of the diagonal
        root = np.linalg.inv(np.linalg.cholesky(A)).T
        for j in range(self.d):
            learner.scale()[j] = root[j, j] ** 2
            values = np.zeros(n)
            values[:self.d] = root[:, j] / root[j, j]
            column = learner.column(j)
            for k in range(j - j % BATCH + BATCH):
                column[k] = values[k]
        return learner

    @property
    def t(self):
        return int(self.state.t)

    @property
    def cumulative_loss(self):
        return self.state.loss

    @property
    def coef(self):
        return self.weight_rows()[:, :self.n_inputs].copy()

    @property
    def intercept(self):
        return self.weight_rows()[:, self.n_inputs].copy() if self.fit_intercept else np.zeros(self.m)

    @property
    def covariance(self):
        """A^-1."""
        cdef Py_ssize_t j, k, n = self.padded
        cdef double[:, ::1] columns = np.zeros((n, n))
        for j in range(n):
            for k in range(j + 1):
                columns[j, k] = self.column(j)[k]
        scale = np.asarray(self.memory)[self.m * self.d:self.m * self.d + n]
        return (np.asarray(columns).T @ (scale[:, np.newaxis] * np.asarray(columns)))[:self.d, :self.d]

    cdef object weight_rows(self):
        return np.asarray(self.memory)[:self.m * self.d].reshape(self.m, self.d)

    # --- what is where in the memory ----------------------------------------------------------------------------

    cdef inline double* weights(self) noexcept nogil:
        return &self.memory[0]

    cdef inline double* scale(self) noexcept nogil:
        """D"""
        return &self.memory[self.m * self.d]

    cdef inline Py_ssize_t start_of(self, Py_ssize_t j) noexcept nogil:
        """Where column j of U starts, if it is the first of four: each four take four times as much as they are long."""
        return j * (j + BATCH) // 2

    cdef inline double* column(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t first = j - j % BATCH
        return self.scale() + self.padded + self.start_of(first) + (j - first) * (first + BATCH)

    # --- ways in ------------------------------------------------------------------------------------------------

    cpdef bint in_force(self, dict attributes):
        value = attributes.get("forgetting")
        return type(value) is float and 0.0 < value <= 1.0 and attributes.get("handle_unknown") in ("error", "add")

    cdef void read(self, dict attributes) noexcept:
        self.gamma = attributes["forgetting"]

    def learn(self, X, const double[::1] y, const double[::1] sample_weight, double forgetting):
        """Learn validated rows with the numbers of their classes; all of them, or none if one overflows.

        Returns (reason, row) of the one that does, or None.
        """
        cdef Rows rows = open_rows(X)
        cdef Block block
        check_idle(self.busy)
        self.gamma = forgetting
        block.y, block.n_targets, block.scores = &y[0], 1, NULL
        block.sample_weight = NULL if sample_weight is None else &sample_weight[0]
        status = self.learn_block(rows, &block)
        return None if status == LEARNED else (reason(status), block.failed)

    def predict_fast(self, dict attributes, X, bint linked):
        """Scores or probabilities for a plain float array or CSR without validation, or None if that is not safe."""
        cdef Rows rows = self.fitting_rows(attributes, X)
        return None if rows is None else self.predict_rows(rows, linked)

    def predict(self, X, bint linked):
        """Scores of validated rows, or `linked`, the probabilities; None if a score is not finite."""
        return self.predict_rows(open_rows(X), linked)

    # --- a call: see `AtomicLearner` ----------------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest) noexcept:
        return 2 * max(self.padded, self.n_lanes)

    cdef int begin(self, Rows rows, bint complete) except -1:
        AtomicLearner.begin(self, rows, complete)
        if self.before is None:
            self.before = np.empty(self.memory.shape[0])
        memcpy(&self.before[0], &self.memory[0], self.memory.shape[0] * sizeof(double))
        self.state_before = self.state
        return 0

    cdef int undo(self, Rows rows) except -1:
        memcpy(&self.memory[0], &self.before[0], self.memory.shape[0] * sizeof(double))
        self.state = self.state_before
        return 0

    cdef void keep(self, Rows rows) noexcept:
        AtomicLearner.keep(self, None)

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        cdef Py_ssize_t i
        cdef int status
        cdef Row row
        for i in range(rows.n_rows):
            block.failed = i
            if interrupted(self, self.effort(row.n)):
                return INTERRUPTED
            fetch_to_learn(self.standardizer, rows, i, weight_of(block, i), &row)
            status = self.learn_row(&row, &block.work, block.y + i, weight_of(block, i), NULL)
            if status != LEARNED:
                return status
        return self.check_all()

    cdef Py_ssize_t effort(self, Py_ssize_t n) noexcept nogil:
        return self.memory.shape[0]

    cdef int check_all(self) noexcept nogil:
        return OVERFLOWED if ob_nonfinite(&self.memory[0], self.memory.shape[0]) else LEARNED

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        cdef double* f = scratch(work, 0)
        cdef double* gain = f + self.padded
        cdef double* v = scratch(work, 1)
        cdef double* sums = v + self.padded
        cdef double* a = scratch(work, 2)
        cdef double* g = a  # once the scores have done their work
        cdef double q, h
        cdef ob_softmax p
        cdef Row image
        cdef Py_ssize_t c
        if weight == 0:
            for c in range(self.m if scores != NULL else 0):
                scores[c] = NAN
            return LEARNED
        p.classes, p.n, p.y, p.e = self.n_classes, self.n_lanes, <Py_ssize_t> y[0], a + self.n_lanes
        row = mapped(self.features, row, scratch(work, 4), &image)
        self.score(row, a)
        if scores != NULL:
            memcpy(scores, a, self.m * sizeof(double))
        self.open_row(&p, a)
        self.state.t += 1.0
        self.state.loss += weight * ob_softmax_loss(&p, a)
        if not isfinite(self.state.loss):
            return LOSS_OVERFLOWED
        self.project(row, f)
        ob_multiply(gain, f, self.scale(), self.padded)
        q = weight * ob_dot(gain, f, self.padded)
        if not q < INFINITY:
            return OVERFLOWED
        ob_softmax_implicit(&p, a, q, scratch(work, 3))
        ob_softmax_slopes(&p, g)
        h = weight * max(ob_softmax_curvature(&p), LEAST_CURVATURE)
        if not ob_bierman(self.scale(), f, gain, sums, h, self.gamma, LARGEST, self.padded) >= DBL_MIN:
            return OVERFLOWED
        self.turn(f, gain, v)
        if self.m == 1:
            g[0] = g[1] - g[0]
        self.move(v, g, weight)
        return LEARNED

    cdef void score_row(self, const Row* row, Workspace* work, double* scores) noexcept nogil:
        cdef Row image
        self.score(mapped(self.features, row, scratch(work, 4), &image), scores)

    cdef void open_row(self, ob_softmax* p, double* a) noexcept nogil:
        """Turn to the classes' scores a: of two classes the first one's is minus the second's, half of what W x says."""
        cdef Py_ssize_t c
        for c in range(p.classes, p.n):
            a[c] = OB_NO_CLASS
        if self.m == 1:
            a[1] = 0.5 * a[0]
            a[0] = -a[1]
        ob_softmax_of(p, a)

    cdef void score(self, const Row* row, double* a) noexcept nogil:
        """a = W x"""
        cdef Py_ssize_t c = 0
        cdef double* w = self.weights()
        if row.index == NULL:
            while c + 4 <= self.m:
                ob_dot4(w, w + self.d, w + 2 * self.d, w + 3 * self.d, row.x, row.n, a + c)
                w += 4 * self.d
                c += 4
        while c < self.m:
            a[c] = ob_dot(w, row.x, row.n) if row.index == NULL else ob_sparse_dot(w, row.index, row.x, row.n)
            w += self.d
            c += 1
        if self.fit_intercept:
            for c in range(self.m):
                a[c] += self.weights()[c * self.d + self.n_inputs]

    cdef void move(self, const double* v, double* g, double weight) noexcept nogil:
        """W -= weight * g v'"""
        cdef Py_ssize_t c = 0
        cdef double* w = self.weights()
        while c < self.m:
            g[c] *= weight
            c += 1
        c = 0
        while c + 4 <= self.m:
            ob_axpy4(w, w + self.d, w + 2 * self.d, w + 3 * self.d, v, g + c, self.d)
            w += 4 * self.d
            c += 4
        while c < self.m:
            ob_axpy(w, v, g[c], self.d)
            w += self.d
            c += 1

    cdef void project(self, const Row* row, double* f) noexcept nogil:
        """f = U'x, for the 1 of the intercept as well: it meets the last coordinate alone."""
        cdef Py_ssize_t j = 0, k, n, seen = 0
        cdef double* u = self.column(0)
        while j < self.padded:
            n = j + BATCH
            if row.index == NULL:
                ob_dot4(u, u + n, u + 2 * n, u + 3 * n, row.x, min(n, row.n), f + j)
            else:
                while seen < row.n and row.index[seen] < n:
                    seen += 1
                for k in range(BATCH):
                    f[j + k] = ob_sparse_dot(u + k * n, row.index, row.x, seen)
            u += BATCH * n
            j = n
        if self.fit_intercept:
            f[self.n_inputs] += 1.0

    cdef void turn(self, const double* move, const double* gain, double* v) noexcept nogil:
        """u_j -= move_j v, v += gain_j u_j for column after column of U, from v = 0 on."""
        cdef Py_ssize_t j = 0, n
        cdef double* u = self.column(0)
        memset(v, 0, self.padded * sizeof(double))
        while j < self.padded:
            n = j + BATCH
            ob_rotate4(v, u, n, move + j, KEEP, gain + j, n)
            u += BATCH * n
            j = n

    cdef object predict_rows(self, Rows rows, bint linked):
        """Scores, shape (n_rows, 1 or n_classes), or probabilities of all classes; None if a score is not finite."""
        cdef Py_ssize_t i, width = self.n_classes if linked else self.m
        cdef bint finite = True
        cdef double[::1] out
        cdef double* a
        cdef Row row
        cdef Workspace work
        cdef ob_softmax p
        if self.standardizer is not None:
            self.standardizer.open(rows)
        answer = np.empty(rows.n_rows * width)
        out = answer
        make_workspace(&work, self.n_lanes if self.features is None else max(self.n_lanes, self.n_inputs))
        with nogil:
            for i in range(rows.n_rows):
                fetch_standardized(self.standardizer, rows, i, &row)
                a = work.vectors if linked else &out[i * width]
                self.score_row(&row, &work, a)
                finite = finite and ob_nonfinite(a, self.m) == 0
                if linked:
                    p.classes, p.n, p.y, p.e = width, self.n_lanes, 0, a + self.n_lanes
                    self.open_row(&p, a)
                    ob_softmax_probabilities(&p, p.e)
                    memcpy(&out[i * width], p.e, width * sizeof(double))
            free_workspace(&work)
        return answer.reshape(-1, width) if finite else None
