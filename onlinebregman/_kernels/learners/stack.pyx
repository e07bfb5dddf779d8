"""Linear combinations of experts, mixed with their mixture (stacking): they may be better than the best expert.

With m the mixture and p_k the experts, a combination is m + sum_k b_k (p_k - m): the mixture at b = 0, and any expert
or difference of experts elsewhere. b is learned by ridge regression, see `factor`: for numbers by the forward algorithm
on the residuals of the mixture, in units of its mean squared residual so far; for classes, where m and p_k are
logarithms of probabilities, by on-line Newton steps (Hazan, Agarwal, Kale, "Logarithmic Regret Algorithms for Online
Convex Optimization", Machine Learning 69, 2007), A <- A + g g', b <- b - A^-1 g, which are ridge regression of b.g - 1
on g. One more combination of classes has m = 0 and votes as p_k, which say what an expert expects, but hardly how
certain it is: a weighted majority, for labels some of which are wrong however far a row is from the others.

The mixture and the combinations are experts of a further mixture, so that they cost no more than that.
"""

import numpy as np

from libc.math cimport fabs, isfinite, sqrt
from libc.string cimport memcpy, memset

from onlinebregman._kernels.learners.factor cimport least_pivot, reduce_rows, rotate_rows, solve_factor, start_factor
from onlinebregman._kernels.learners.factor import inverse_root, unpacked
from onlinebregman._kernels.learners.hedge cimport Hedge, History
from onlinebregman._kernels.ops.state cimport Undoable

# (alpha, forgetting factor) of each combination, with A = alpha I at the start: one tracks changes, one does not.
# The last is of votes.
COMBINATIONS = ((0.1, 0.999), (10.0, 1.0), (1.0, 0.999))

# Residuals of the mixture below this part of the range of the targets are rounding errors.
cdef double ROUNDING = 1e-9

# Beyond this a b_k of classes consists of rounding errors, of rows with weights of 1e150: its combination starts again.
cdef double LARGEST = 1e100


cdef class Stack(Undoable):
    """Combinations of experts, and the weights of the mixture of experts and of the combinations, undone by themselves.

    Parameters
    ----------
    n_experts : int
    rate : float or None
        Of the `Hedge`; None for numbers. Of a fixed one all experts and combinations weigh the same at the start.
    share : float
    combinations : sequence of (alpha, forgetting factor), default=None
        None: `COMBINATIONS`, of numbers without votes.
    hedge : Hedge, default=None
    """

    def __cinit__(self, n_experts, rate, share, combinations=None, Hedge hedge=None, dict state=None):
        cdef Py_ssize_t j, length
        if n_experts < 1:
            raise ValueError(f"n_experts must be 1 or more; got {n_experts}")
        if combinations is None:
            combinations = COMBINATIONS[:VOTES] if rate is None else COMBINATIONS
        self.n_experts, self.n = n_experts, len(combinations)
        self.alpha, self.forgetting = np.array(combinations, dtype=np.float64).T.copy()
        self.least = np.array([least_pivot(alpha) for alpha in self.alpha])
        length = n_experts * (n_experts + 1) // 2 + n_experts
        self.fields.expect("factors", self.n * length)
        self.factors, self.b = np.empty((self.n, length)), np.zeros((0 if rate is None else self.n, n_experts))
        self.prior = 1.0 / (1 + self.n) if rate is None else n_experts / <double> (n_experts + self.n)
        self.hedge = Hedge(1 + self.n, rate, share, None, History(1 + self.n, 0)) if hedge is None else hedge
        if self.hedge.n_experts != 1 + self.n:
            raise ValueError(f"hedge must have {1 + self.n} weights; got {self.hedge.n_experts}")
        for j in range(self.n):
            start_factor(&self.factors[j, 0], n_experts, 1, self.alpha[j])
            if hedge is None and rate is not None:
                self.hedge.costs[1 + j] = np.log(n_experts) / rate
        self.known, self.arguments = &self.residuals, (n_experts, rate, share, combinations, self.hedge)
        self.fields.add("factors", &self.factors[0, 0], self.factors.nbytes)
        self.fields.add("residuals", &self.residuals, sizeof(self.residuals))
        if rate is not None:
            self.fields.add("b", &self.b[0, 0], self.b.nbytes)

    @property
    def coef(self):
        """The b_k of each combination, shape (n_combinations, n_experts)."""
        cdef Py_ssize_t j
        cdef double[:, ::1] coef
        if self.b.shape[0]:
            return np.array(self.b)
        coef = np.empty((self.n, self.n_experts))
        for j in range(self.n):
            solve_factor(&self.factors[j, 0], self.n_experts, 1, &coef[j, 0])
        return np.asarray(coef)

    def inverse_roots(self):
        """For each combination R with x'A^-1 x = |R x|^2; see `inverse_root`."""
        factors = [unpacked(np.asarray(values), self.n_experts, 1) for values in self.factors]
        return [
            inverse_root(D, U, gamma, alpha)
            for (D, U, _), alpha, gamma in zip(factors, self.alpha, self.forgetting, strict=True)
        ]

    cdef double scale(self, double target_range) noexcept nogil:
        """The mixture's root mean squared residual so far, for targets of this range; 0 if unknown."""
        if not (target_range > 0 and self.known.weight > 0):
            return 0.0
        return max(sqrt(self.known.squares / self.known.weight), ROUNDING * target_range)

    cdef double ridge(self, Py_ssize_t j, const double* x, double* buffer, double* share) noexcept nogil:
        """b.x, and its share in the forward algorithm's prediction; the buffer has n_experts + 1 numbers."""
        share[0] = 1.0
        memcpy(buffer, x, self.n_experts * sizeof(double))
        reduce_rows(&self.factors[j, 0], self.n_experts, 1, buffer, share, 1, self.forgetting[j], self.least[j])
        return 0.0 - buffer[self.n_experts]

    cdef double predict(self, Py_ssize_t j, const double* x, double* buffer) noexcept nogil:
        """The forward algorithm's prediction for x; the buffer has n_experts + 1 numbers."""
        cdef double share = 0.0, step = self.ridge(j, x, buffer, &share)
        return share * step

    cdef bint learn(self, Py_ssize_t j, const double* x, double y, double weight, double* buffer) noexcept nogil:
        """Learn x and its target; False on overflow. The buffer has n_experts + 1 numbers."""
        cdef Py_ssize_t k
        memcpy(buffer, x, self.n_experts * sizeof(double))
        buffer[self.n_experts] = y
        rotate_rows(&self.factors[j, 0], self.n_experts, 1, buffer, &weight, 1, self.forgetting[j], self.least[j])
        if self.b.shape[0]:
            solve_factor(&self.factors[j, 0], self.n_experts, 1, &self.b[j, 0])
            for k in range(self.n_experts):
                if not fabs(self.b[j, k]) < LARGEST:
                    self.restart(j)
                    return True
        return isfinite(buffer[self.n_experts]) and weight > 0

    cdef void restart(self, Py_ssize_t j) noexcept nogil:
        """Let a combination start again, as the mixture."""
        start_factor(&self.factors[j, 0], self.n_experts, 1, self.alpha[j])
        if self.b.shape[0]:
            memset(&self.b[j, 0], 0, self.n_experts * sizeof(double))

    cdef void pass_by(self, double loss, double weight, double* u, double* losses) noexcept nogil:
        """Count a row on which all predict the same, with this loss; u and `losses` have `lanes` of the hedge."""
        cdef Py_ssize_t j
        self.hedge.weigh(u)
        for j in range(1 + self.n):
            losses[j] = weight * loss
        self.hedge.count(losses, weight * loss, u, losses, weight * loss)

    cdef void hold(self) noexcept nogil:
        """The unit of the residuals stays as it is."""
        self.held, self.known = self.residuals, &self.held

    cdef void release(self) noexcept nogil:
        self.known = &self.residuals
