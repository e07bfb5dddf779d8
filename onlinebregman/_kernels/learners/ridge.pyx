"""Ridge regression as the state of a learner: the factor, and the centre of the rows.

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
from libc.math cimport isfinite
from libc.string cimport memcpy, memset

from onlinebregman._kernels.learners.atomic cimport AtomicLearner
from onlinebregman._kernels.learners.atomic import check_columns
from onlinebregman._kernels.learners.factor cimport (
    BATCH, least_pivot, reduce_rows, rotate_rows, solve_factor, start_factor
)
from onlinebregman._kernels.learners.factor import factored, inverse_root, unpacked
from onlinebregman._kernels.ops.forward cimport ob_centre, ob_centre_and_count, ob_differs, ob_prior
from onlinebregman._kernels.rows.fourier cimport FourierFeatures

cdef enum:
    MOST = 1 << 30            # bound on numbers that are squared


cdef class RidgeLearner(AtomicLearner):
    """The base class of `ForwardLearner`.

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
        self.n_targets, self.n_scores, self.chunkwise = self.m, self.m, True
        self.target_ndim = 1 + len(target_shape)
        self.length = self.d * (self.d + 1) // 2 + (self.d + 1) * self.m
        self.size = self.length + (1 + 3 * self.d + self.m if centred else 0)
        self.learned.expect("factor", self.size)
        self.memory = np.zeros(self.size)
        self.factor = &self.memory[0]
        self.free_intercept = fit_intercept and (centred or not penalize_intercept)
        start_factor(self.factor, self.d, self.m, 0.0 if scaled else alpha)
        if centred and not scaled:
            np.asarray(self.memory)[self.size - self.d:] = alpha
        elif self.free_intercept and not centred:
            self.factor[self.length - 2 * self.m - 1] = 0.0
        self.state.degrees_of_freedom = -1.0 if self.free_intercept else 0.0
        self.learned.add("factor", self.factor, self.memory.nbytes)
        self.learned.add("state", &self.state, sizeof(self.state))
        self.configured.add("forward", &self.forward, sizeof(self.forward))
        self.configured.add("residuals", &self.residuals, sizeof(self.residuals))
        self.configured.add("forgetting", &self.gamma, sizeof(self.gamma))

    def with_features(self, n_features, row_map):
        """A learner of more features, which have been 0 in all rows and are at the prior, with this map of rows."""
        cdef RidgeLearner wide = type(self)(n_features, *self.arguments[1:])
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
        cdef RidgeLearner joined = type(self)(*self.arguments)
        centres = [learner.parts()[4] for learner in (self, *learners)]
        origin = next((each for each in centres if self.centred and each[0] > 0), centres[0])

        def sums_of(RidgeLearner learner):
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
        return <double*> self.learned.each[0].before

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
        cdef double n = self.gamma * means[-1], total = n + step.weight, share = 0.0, subtracted = 0.0, nu, left, change
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
            change = z[self.d + q] * subtracted
            z[self.d + q] -= targets[q]
            targets[q] += share * z[self.d + q] - change
        means[-1] = total
        return ob_centre_and_count(
            z, means, targets + self.m, targets + self.m + self.d, self.gamma, share, step.left, self.alpha, total,
            not self.scaled, self.d
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
            if not isfinite(right):
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

    cdef void forget_solution(self) noexcept:
        with cython.critical_section(self):  # without the GIL other threads may be reading it
            self.solution = None

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
