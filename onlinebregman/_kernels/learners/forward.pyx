"""The forward algorithm: online ridge regression; the prediction of a row is a by-product of its update, see `factor`.

After its rotations a row leaves a residual y of weight h. The sum of h y^2 over the rows is twice the minimum of the
penalised loss; in a normal model of variance s^2 / (weight of the row) it is the estimate of s^2 times the degrees of
freedom, one for each row. The pivot of an intercept without a penalty starts at 0. The first row then determines the
intercept: its weight h becomes 0, and its prediction with the query in the matrix is 0.

Centred, the factor is of sums about the running means, as Welford's rule adds them up: with n the weight of the rows
before and z, v the differences of a row (x, y) of weight h from their means,

    A += nu h z z',    b += nu h z v,    nu = n / (n + h),

which is what is left of the rows of (x, 1) after an intercept without a penalty. The forward prediction includes the
query in A only, and is the mean of the targets where nothing else is known. In units of the columns, the prior of w_j
is alpha s_j^2, s_j^2 the variance of the column so far; the factor has it up to a factor of two, and is corrected by
the row e_j with target 0 whenever it is further off. Both decisions and sums then have the units of the columns, so
that no prediction depends on them. Until a column varies it has neither prior nor weight; the first row that varies in
one is fitted exactly and predicted beforehand, without that column.
"""

import numpy as np

cimport cython
from libc.math cimport fabs, isfinite
from libc.string cimport memcpy, memset

from onlinebregman._kernels.geometries.geometry cimport CHUNKWISE, Workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block, fitting_rows, learn_rows_of, predict_rows
from onlinebregman._kernels.learners.atomic import check_columns
from onlinebregman._kernels.learners.factor cimport (
    BATCH, free_coordinate, least_pivot, reduce_rows, rotate_row, rotate_rows, solve_factor, start_factor
)
from onlinebregman._kernels.learners.factor import factored, inverse_root, loses, unpacked
from onlinebregman._kernels.learners.run cimport LEARNED, OVERFLOWED
from onlinebregman._kernels.ops.state cimport Field
from onlinebregman._kernels.ops.forward cimport ob_centre, ob_centre_and_count, ob_differs, ob_prior
from onlinebregman._kernels.ops.vector cimport ob_dot, ob_nonfinite
from onlinebregman._kernels.rows.fourier cimport FourierFeatures
from onlinebregman._kernels.rows.rows cimport Row, Rows, filled, open_rows


cdef struct ForwardState:     # the state in addition to the factor
    double t                  # rows learned
    double loss               # cumulative loss of the predictions made before each row was learned
    # Like `loss`, but discounted: a row that is n rows old counts gamma^n; so do `hindsight` and `bound`
    double recent
    double hindsight          # min over u of sum h (u.x - y)^2 / 2 + a |u|^2 / 2
    double ridge_rows         # number of rows that were predicted with forward=False
    double bound              # of recent - hindsight
    double weight             # of all rows, if it is centred; not discounted
    double degrees_of_freedom  # of the residuals: number of rows, minus 1 for a free intercept

cdef struct Step:             # of a row
    double weight
    double nu                 # what is left of its weight by a free intercept
    double left               # and in the end
    bint foreseen             # whether it had to be predicted beforehand


cdef enum:
    MOST = 1 << 30            # bound on numbers that are squared


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
    centred : bool
        Whether the factor is of centred sums; the intercept, if there is one, then has no penalty.
    scaled : bool
        Whether the prior is in the units of the columns; requires `centred`.
    """

    cdef readonly tuple target_shape
    cdef readonly double alpha
    cdef readonly bint fit_intercept
    cdef readonly bint centred, scaled
    cdef bint free_intercept
    cdef readonly FourierFeatures features
    cdef Py_ssize_t n_inputs  # values of a row as it is learned
    cdef Py_ssize_t d, m      # coordinates and targets of a row
    # d_k, U[k, k+1:], g_k for k = 0, 1, ...: rows of d - k + m numbers; then sums of h y^2 of residuals, of m targets.
    # If it is centred: the weight n of the rows, the means of columns and targets, and scatter and prior of the columns
    cdef double* factor
    cdef readonly ForwardState state
    cdef double[::1] memory   # of one factor, which is swapped with the copy: threads that predict may read either
    cdef Py_ssize_t length, size  # of a factor, and with its centre
    cdef bint backed_up       # whether the copy in `fields` is the factor before the call
    cdef Py_ssize_t checked   # number of leading values known to be finite after the last row
    cdef bint forward         # whether predictions of the next call include the query
    cdef double gamma         # its forgetting factor
    cdef bint residuals       # whether its targets are differences from the mean of all before
    cdef tuple solution       # cached ridge weights of all targets, shape (m, d), and `n_changes` at the time; or None
    # Rows of a block that are loaded, to be learned together
    cdef Py_ssize_t n_loaded
    cdef Py_ssize_t[BATCH] number
    cdef double[BATCH] weight
    cdef const double* targets[BATCH]
    cdef Py_ssize_t refused   # the number of one that could not be learned, or -1

    def __cinit__(self, n_features, target_shape, alpha, fit_intercept, FourierFeatures features,
                  bint penalize_intercept, bint centred, bint scaled, state=None):
        self.n_features, self.target_shape = n_features, target_shape
        self.alpha, self.fit_intercept = alpha, fit_intercept
        self.forward, self.gamma = True, 1.0
        self.features, self.n_inputs = features, n_features if features is None else features.n_components
        self.centred, self.scaled = centred, scaled
        self.d = self.n_inputs + (fit_intercept and not centred)
        self.m = target_shape[0] if target_shape else 1
        if features is not None:
            check_columns(features.n_features, self.n_features)
        if not (0 < self.n_inputs < MOST and 0 < self.m < MOST):
            raise ValueError(f"numbers of features and targets must be in [1, 2^30); got {self.n_inputs}, {self.m}")
        self.n_targets, self.n_scores, self.traits = self.m, self.m, CHUNKWISE
        self.target_ndim = self.output_ndim = 1 + len(target_shape)
        self.length = self.d * (self.d + 1) // 2 + (self.d + 1) * self.m
        self.size = self.length + (1 + 3 * self.d + self.m if centred else 0)
        self.fields.expect("factor", self.size)
        self.memory = np.zeros(self.size)
        self.factor = &self.memory[0]
        self.free_intercept = fit_intercept and (centred or not penalize_intercept)
        start_factor(self.factor, self.d, self.m, 0.0 if scaled else alpha)
        if centred and not scaled:
            np.asarray(self.memory)[self.size - self.d:] = alpha
        elif self.free_intercept and not centred:
            self.factor[self.length - 2 * self.m - 1] = 0.0
        self.state.degrees_of_freedom = -1.0 if self.free_intercept else 0.0
        self.fields.vector("factor", self.memory)
        self.fields.add("state", &self.state, sizeof(self.state))
        self.total_loss = &self.state.loss
        self.fields.add("forward", &self.forward, sizeof(self.forward))
        self.fields.add("residuals", &self.residuals, sizeof(self.residuals))
        self.fields.add("forgetting", &self.gamma, sizeof(self.gamma))

    def with_features(self, n_features, row_map):
        """A learner of more features, which have been 0 in all rows and are at the prior, with this map of rows."""
        cdef ForwardLearner wide = ForwardLearner(n_features, *self.arguments[1:])
        d, U, g, left, centre = self.parts()
        place = [k if k < self.n_inputs else n_features for k in range(self.d)]
        D, V, G = np.full(wide.d, 0.0 if self.scaled else self.alpha), np.eye(wide.d), np.zeros((wide.d, self.m))
        D[place], V[np.ix_(place, place)], G[place] = d, U, g
        if centre is not None:
            n, means, targets, *others = centre
            more = np.zeros(n_features - self.n_features)
            centre = n, np.r_[means, more], targets, *(np.r_[each, more] for each in others)
        wide.set_parts(D, V, G, left, centre)
        wide.state, wide.forward, wide.gamma, wide.residuals = self.state, self.forward, self.gamma, self.residuals
        wide.map_by(row_map)
        return wide

    def parts(self):
        """D, U, g and the squares of residuals; and if it is centred (n, means, those of targets, scatter, prior)."""
        cdef Py_ssize_t d = self.d
        values = np.array(<double[:self.size]> self.factor)
        rest = values[self.length + 1:]
        centre = (values[self.length], *np.split(rest, [d, d + self.m, 2 * d + self.m])) if self.centred else None
        return *unpacked(values, d, self.m), values[self.length - self.m:self.length], centre

    cdef object set_parts(self, D, U, g, left, centre):
        """Set them, before the first row."""
        rows = [np.r_[D[k], U[k, k + 1:], g[k]] for k in range(self.d)]
        np.asarray(self.memory)[:] = np.concatenate([*rows, left, *map(np.atleast_1d, centre or ())])

    def joined(self, learners, row_map):
        """A learner of all rows that these learners, copies of this one, have learned: A, b and y'y are added.

        Centred sums are those about the means of all rows: sums about 0, as if these were rows of (x - c, y - c, 1).
        """
        cdef ForwardLearner joined = ForwardLearner(*self.arguments)
        centres = [learner.parts()[4] for learner in (self, *learners)]
        origin = next((each for each in centres if self.centred and each[0] > 0), centres[0])

        def sums_of(ForwardLearner learner):
            """(S, state), S = sum (x, y) (x, y)' and the prior, or sum (x - c, y - c, 1) (x - c, y - c, 1)'."""
            D, U, g, left, centre = learner.parts()
            V = np.hstack([U, g])
            S = V.T @ (D[:, np.newaxis] * V)
            S[range(self.d, self.d + self.m), range(self.d, self.d + self.m)] += left
            if centre is None:
                return S, learner.state
            S[range(self.d), range(self.d)] -= centre[4]
            offset = np.r_[np.r_[centre[1:3]] - np.r_[origin[1:3]], 1.0]  # 0 without an intercept
            return np.pad(S, (0, 1)) + centre[0] * np.outer(offset, offset), learner.state

        (S, state), others = sums_of(self), [sums_of(learner) for learner in learners]
        if loses(S, [other[0] for other in others]):  # then it counts once for each of them
            S = 0.0 * S
        S = S + sum(other[0] - S for other in others)
        state = {name: value + sum(each[1][name] - value for each in others) for name, value in state.items()}
        centre = None
        if self.centred:
            n = S[-1, -1]
            offset = S[-1, :-1] / n if n > 0 else S[-1, :-1]
            S = S[:-1, :-1] - n * np.outer(offset, offset)
            means = np.r_[origin[1:3]] + offset
            scatter = np.maximum(np.diagonal(S)[:self.d], 0.0)
            prior = max(centres, key=lambda each: each[0])[4]  # kept where it is right up to a factor of two
            if self.scaled:
                right = np.array([ob_prior(s, mean, self.alpha, n) for s, mean in zip(scatter, means)])
                prior = np.where((right > 2.0 * prior) | (2.0 * right < prior), right, prior)
            constant = np.flatnonzero(prior == 0.0)
            S[constant] = S[:, constant] = 0.0
            S[range(self.d), range(self.d)] += prior
            centre = n, means[:self.d], means[self.d:], scatter, prior
        D, U, g, left = factored(S, self.d)
        state["hindsight"] = left.sum() / 2  # the minimum of the penalised loss
        joined.set_parts(D, U, g, left, centre)
        joined.state, joined.forward, joined.gamma, joined.residuals = state, self.forward, self.gamma, self.residuals
        joined.map_by(row_map)
        return joined

    @property
    def t(self):
        return int(self.state.t)

    @property
    def noise_variance(self):
        """Estimated from the residuals of each target; infinite without degrees of freedom."""
        if self.state.degrees_of_freedom <= 0:
            return np.full(self.m, np.inf)
        left = np.asarray(<double[:self.m]> (self.factor + self.length - self.m))
        with np.errstate(over="ignore"):
            return np.minimum(left / self.state.degrees_of_freedom, np.finfo(np.float64).max)

    @property
    def coef(self):
        return self.solve()[:, :self.n_inputs].reshape(self.target_shape + (self.n_inputs,)).copy()

    @property
    def intercept(self):
        intercept = np.zeros(self.m)
        if self.centred:
            intercept = self.target_mean - self.solve() @ self.mean
        elif self.fit_intercept:
            intercept = self.solve()[:, self.n_inputs].copy()
        return intercept if self.target_shape else float(intercept[0])

    @property
    def n_samples_seen(self):
        """Total weight of the rows in the means; with forgetting, of recent ones."""
        return self.parts()[4][0]

    @property
    def mean(self):
        """Means of the columns, of a centred learner."""
        return self.parts()[4][1]

    @property
    def target_mean(self):
        return self.parts()[4][2]

    @property
    def scale(self):
        """Deviations of the columns, 1 for constant ones."""
        n, _, _, scatter, prior = self.parts()[4]
        return np.where((scatter > 0) & (prior > 0), np.sqrt(scatter / max(n, 1e-300)), 1.0)

    def inverse_root(self, double forgetting):
        """R with x'A^-1 x = |R x|^2 for the coordinates x of a row, A including the forgetting factor.

        If it is centred, x is the difference from the means, and |R x|^2 = nu x'A^-1 x.
        """
        D, U, _, _, centre = self.parts()
        if centre is None:
            return inverse_root(D, U, forgetting, self.alpha)
        n = forgetting * centre[0]
        return inverse_root(np.where(D > 0, D, np.inf), U, forgetting, 0.0) * np.sqrt(self.nu_of(n, 1.0))

    # --- rows -----------------------------------------------------------------------------------------------------

    cdef double* copied(self) noexcept nogil:
        """The copy of memory from before the call."""
        return <double*> self.fields.each[0].before

    cdef double nu_of(self, double n, double weight) noexcept nogil:
        """What is left of the weight of a row by the intercept, after rows of weight n."""
        return 1.0 if not self.fit_intercept else n / (n + weight) if n > 0 else 0.0

    cdef bint is_new(self, const double* z) noexcept nogil:
        """Whether the row is the first one, or the first that varies in some column."""
        cdef const double* means = self.factor + self.length + 1
        return means[-1] == 0 or ob_differs(z, means, means + 2 * self.d + self.m, self.d)

    cdef void subtract_means(self, double* z) noexcept nogil:
        """Centre a row as it is predicted."""
        cdef const double* means = self.factor + self.length + 1
        ob_centre(z, means, means + 2 * self.d + self.m, self.d)

    cdef bint centre(self, double* z, Step* step, double* target_means, double* spare) noexcept nogil:
        """Subtract the means from a row and its targets, and add it to the centre; whether a prior has to change.

        A row that is new is predicted, into the place after its means of targets, as long as that can be done.
        """
        cdef Py_ssize_t q
        cdef double* at = self.factor if self.backed_up else self.copied()
        cdef double* means = at + self.length + 1
        cdef double* targets = means + self.d
        cdef double n = self.gamma * means[-1], total = n + step.weight, share = 0.0, subtracted = 0.0, nu, left
        self.state.weight += step.weight
        if self.fit_intercept:
            share = step.weight / total
            if self.residuals:  # means of targets are differences from the mean that was subtracted, which moved, too
                subtracted = share if self.gamma == 1 else step.weight / self.state.weight
        nu = self.nu_of(n, step.weight)
        memcpy(target_means, targets, self.m * sizeof(double))
        if step.foreseen:
            memcpy(spare, z, self.d * sizeof(double))
            self.subtract_means(spare)
            left = step.weight * nu
            self.reduce(spare, &left, 1, self.gamma)
            for q in range(self.m):
                target_means[BATCH * self.m + q] = self.prediction(
                    0.0, spare[self.d + q], left / (step.weight * nu) if nu > 0 else 0.0, self.forward
                )
        step.nu, step.left = nu, step.weight * nu
        for q in range(self.m):
            targets[q] += share * (z[self.d + q] - targets[q]) - z[self.d + q] * subtracted
            z[self.d + q] -= target_means[q]
        means[-1] = total
        return ob_centre_and_count(
            z, means, targets + self.m, targets + self.m + self.d, self.gamma, share, step.left,
            self.alpha / total if self.scaled else 0.0, 0.0 if self.scaled else self.alpha, total, self.d
        )

    cdef bint correct_prior(self, double* z) noexcept nogil:
        """Add rows e_j with targets 0 where the prior is by more than a factor of two not what it should be; False if
        that is not finite."""
        cdef Py_ssize_t j, q
        cdef double* means = self.factor + self.length + 1
        cdef double* scatter = means + self.d + self.m
        cdef double* prior = scatter + self.d
        cdef double* squares = self.factor + self.length - self.m
        cdef double right, next_prior, left, change
        self.checked = 0
        for j in range(self.d):
            right = ob_prior(scatter[j], means[j], self.alpha, means[-1]) if self.scaled else self.alpha
            if not isfinite(right + prior[j]):  # of a file it may be infinite, and would stay so
                return False
            if not (right > 2.0 * prior[j] or 0.0 < 2.0 * right < prior[j]):
                continue
            while prior[j] != right:  # taking off half of it at most keeps what is left of a row of negative weight
                next_prior = max(right, 0.5 * prior[j])
                left = next_prior - prior[j]
                prior[j] = next_prior
                memset(z, 0, (self.d + self.m) * sizeof(double))
                z[j] = 1.0
                rotate_rows(self.factor, self.d, self.m, z, &left, 1, 1.0, 0.0)
                for q in range(self.m):
                    change = left * z[self.d + q] * z[self.d + q]
                    squares[q] = max(squares[q] + change, 0.0)
                    self.state.hindsight += 0.5 * change
                    self.state.bound -= 0.5 * min(change, 0.0)
        return True

    cdef double prediction(self, double y, double residual, double share, bint forward) noexcept nogil:
        """The prediction of a row with target y, whose rotation left this residual and this share of its weight."""
        return (y - residual) * (share if forward else 1.0)

    cdef double mean_of(self, Py_ssize_t q) noexcept nogil:
        """The prediction where nothing but the mean is known."""
        return self.factor[self.length + 1 + self.d + q] if self.centred else 0.0

    cdef void reduce(self, double* z, double* share, Py_ssize_t n, double gamma) noexcept nogil:
        """See `reduce_rows`."""
        cdef double least = 0.0 if self.centred else least_pivot(self.alpha)
        reduce_rows(self.factor, self.d, self.m, z, share, n, gamma, least)

    cdef object solve(self):
        """The ridge weights, from U w = g."""
        cdef double[:, ::1] w
        with cython.critical_section(self):  # without the GIL other threads may be setting it
            known = self.solution
        if known is None or known[1] != self.n_changes:
            known = np.empty((self.m, self.d)), self.n_changes
            w = known[0]
            solve_factor(self.factor, self.d, self.m, &w[0, 0])
            with cython.critical_section(self):
                self.solution = known
        return known[0]

    # --- entry points -------------------------------------------------------------------------------------------

    def apply(self, *, bint forward, double forgetting, bint residuals=False):
        """`residuals`: targets are differences from the mean of all targets before, and so are predictions."""
        self.forward, self.gamma, self.residuals = forward, forgetting, residuals

    def predict_fast(self, dict attributes, X, forward=True, forgetting=1.0):
        """Predictions for an array of floats or CSR without validation, or None if that is not safe."""
        cdef Rows rows = fitting_rows(self, attributes, X)
        if rows is None or type(forward) is not bool or type(forgetting) is not float or not 0.0 < forgetting <= 1.0:
            return None
        return self.predictions(rows, forward, forgetting)

    def predict(self, X, bint forward=True, double forgetting=1.0, double[::1] shares=None):
        """Predictions for validated rows, dense or CSR; None if one is not finite.

        `shares`, if given, receives 1 / (1 + x'A^-1 x) of each row, A including the forgetting factor.
        """
        return self.predictions(open_rows(X), forward, forgetting, shares)

    # --- a call: see `AtomicLearner` ----------------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest, bint to_learn) noexcept:
        # A row with its targets, of which BATCH are stored; then means of targets and predictions, and a further row
        return self.d + 4 * self.m

    cdef int begin(self, Rows rows, bint complete) except -1:
        self.backed_up = rows.n_rows > 1  # one row is rotated into a copy
        # the first field is the factor
        self.fields.each[0].changing = self.size * sizeof(double) if self.backed_up else 0
        self.checked = 0
        return AtomicLearner.begin(self, rows, complete)

    cdef void swap(self) noexcept nogil:
        """Make the copy of the factor the current one; then the former one is the copy."""
        cdef Field* field = &self.fields.each[0]
        field.at, field.before = field.before, field.at
        self.factor = <double*> field.at
        field.changing, self.backed_up = field.size, True

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        """Learn up to BATCH rows of positive weight at a time."""
        cdef int status
        self.n_loaded, self.refused = 0, -1
        status = learn_rows_of(self, rows, block, self.row_map, load_or_learn)
        if status == LEARNED:
            status = self.learn_batch(&block.work)
        if self.refused >= 0:
            block.failed = self.refused
        return status

    cdef int add_to_batch(self, const Row* row, Workspace* work, const double* y, double weight) noexcept nogil:
        cdef Py_ssize_t n = self.n_loaded
        cdef int status
        self.load(row, work.vectors + n * (self.d + self.m))
        self.number[n], self.targets[n], self.weight[n], self.n_loaded = row.number, y, weight, n + 1
        if self.scaled and self.fit_intercept and self.row_map is not None and self.row_map.begun:
            status = self.learn_batch(work)
            if status == LEARNED:
                self.begin_columns(weight, work.vectors)
            return status
        return LEARNED if n + 1 < BATCH else self.learn_batch(work)

    cdef void begin_columns(self, double weight, double* z) noexcept nogil:
        """Begin again with the weights of columns that begin again with the last row, and with the intercept."""
        cdef Py_ssize_t j
        cdef double* means = self.factor + self.length + 1
        cdef double* scatter = means + self.d + self.m
        cdef double* prior = scatter + self.d
        cdef double share
        cdef bint found = False
        for j in range(self.d):
            if prior[j] > 0 and self.row_map.begins(j, weight, &means[j]):
                free_coordinate(self.factor, self.d, self.m, j, z)
                scatter[j] = prior[j] = 0.0
                found = True
        if found and weight < means[-1]:
            share = weight / means[-1]
            for j in range(self.d):
                scatter[j] *= share
            means[-1] = weight

    cdef int learn_batch(self, Workspace* work) noexcept nogil:
        cdef Py_ssize_t n = self.n_loaded, learned
        self.n_loaded = 0
        learned = self.learn_loaded(work.vectors, n, self.targets, self.weight, NULL, 0)
        if learned == n:
            return LEARNED
        self.refused = self.number[learned]
        return OVERFLOWED

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        if scores != NULL and self.forward and weight != 1:
            self.score_row(NULL, row, work, scores)  # a row is predicted as one of weight 1
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

    cdef void score_row(self, void* scorer, const Row* row, Workspace* work, double* scores) noexcept nogil:
        """The predictions with the query in the matrix, or without it; by a `Query`, up to BATCH rows at a time."""
        cdef Py_ssize_t n, q
        cdef double left, share
        if scorer != NULL:
            n = (<Query> scorer).n
            (<Query> scorer).nu = self.query(
                row, work.vectors + n * (self.d + self.m), &(<Query> scorer).share[n], (<Query> scorer).gamma
            )
            (<Query> scorer).n, (<Query> scorer).to_come = n + 1, (<Query> scorer).to_come - 1
            if n + 1 == BATCH or (<Query> scorer).to_come == 0:
                self.answer(<Query> scorer, work.vectors, scores - n * self.m)
            return
        share = self.query(row, work.vectors, &left, self.gamma)
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
        if self.features is not None:
            self.features.apply(row, z)
        elif row.index == NULL:
            memcpy(z, row.x, row.n * sizeof(double))
        else:
            filled(row, z, self.n_inputs)
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

    cdef void answer(self, Query query, double* z, double* out) noexcept nogil:
        """The predictions of the rows that are loaded."""
        cdef Py_ssize_t j, q, m = self.m, width = self.d + m
        if not query.forward:
            for j in range(query.n):
                for q in range(m):
                    out[j * m + q] = self.mean_of(q) + ob_dot(z + j * width, &query.solution[q, 0], self.d)
        if query.forward or query.shares != NULL:
            self.reduce(z, query.share, query.n, query.gamma)
        for j in range(query.n):
            for q in range(m if query.forward else 0):
                out[j * m + q] = self.mean_of(q) + self.prediction(
                    0.0, z[j * width + self.d + q], query.share[j] / query.nu if query.nu > 0 else 0.0, True
                )
            if query.shares != NULL:
                query.shares[0] = query.share[j]
                query.shares += 1
        query.n = 0

    cdef object predictions(self, Rows rows, bint forward, double gamma, double[::1] shares=None):
        """Predictions, or None if one is not finite."""
        cdef Query query = Query()
        query.forward, query.gamma, query.to_come, query.shares = forward, gamma, rows.n_rows, NULL
        if not forward:
            query.solution = self.solve()
        if shares is not None and rows.n_rows > 0:
            query.shares = &shares[0]
        outputs = predict_rows(self, rows, False, query)
        return None if shares is not None and not np.isfinite(shares).all() else outputs


@cython.final
@cython.auto_pickle(False)
cdef class Query:
    """How rows are predicted, and those that are loaded, to be predicted together."""

    cdef bint forward
    cdef double gamma
    cdef double[:, ::1] solution  # without the query in the matrix
    cdef double* shares           # where those of the next row go, or NULL
    cdef Py_ssize_t n, to_come    # number of rows that are loaded, and of those that are not yet
    cdef double[BATCH] share      # what is left of the weights of those that are loaded
    cdef double nu                # and of that of a row by the intercept


cdef inline int load_or_learn(AtomicLearner learner, const Row* row, Workspace* work, const double* y, double weight,
                              double* scores) noexcept nogil:
    return (<ForwardLearner> learner).add_to_batch(row, work, y, weight)
