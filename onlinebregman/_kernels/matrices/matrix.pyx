"""Matrix geometries: the prediction is tr(W X) for an instance X of rank one or two, and a step is a low-rank update.

A row z of d values is a pair, X = z z'. A row (p, q) of 2 d values is a triplet, X = p p' - q q': if p and q are the
differences of an anchor to two other rows, tr(W X) is the difference of the two squared distances.

Only the upper triangle of the symmetric state W, shape (d, d), is kept up to date.
"""

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from libc.math cimport fabs, isfinite, log, log1p, sqrt
from libc.string cimport memcpy, memset

from onlinebregman._kernels.geometries.geometry cimport HAS_POLES, MISSED, Workspace, find_poles, scratch
from onlinebregman._kernels.matrices.symmetric import mirrored
from onlinebregman._kernels.ops.matrix cimport ob_inverse_diagonal, ob_take_squares
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_dot, ob_symv, ob_syr

cdef double EPS = 2.220446049250313e-16
# A step that shrinks z'Wz more than this, as 1 + c z'Wz, is made in parts.
cdef double PART = 65536.0
# A diagonal below this is about to underflow.
cdef double LEAST = 1e-290
# If rounding may have changed the condition of W by more than this fraction, W is checked by its Cholesky factor.
cdef double DOUBT = 1e-2


def checked_diagonals(weights):
    """The diagonals of W^-1 and of W, as two rows.

    Raises a ValueError unless W is positive definite in float64: the smallest eigenvalue of the balanced matrix
    W_ij / sqrt(W_ii W_jj) must be certain to exceed 10 d eps, d being its size.
    """
    d = len(weights)
    diagonal = weights.diagonal()
    if (diagonal >= LEAST).all():
        scale = np.sqrt(diagonal)
        balanced = mirrored(weights) / scale / scale[:, None]
        try:
            half = solve_triangular(cholesky(balanced, lower=True), np.eye(d), lower=True)
        except (LinAlgError, ValueError):
            half = np.full((d, d), np.inf)
        inverse = np.einsum("ij,ij->j", half, half)
        if is_sound(inverse.sum(), d):
            return np.vstack([inverse / diagonal, diagonal])
    raise ValueError(
        f"the eigenvalues of W_ij / sqrt(W_ii W_jj) must be above {10 * d * EPS:.1g}, so that rounding errors do not "
        f"change their signs; got a matrix of size {d} that is not positive definite to float64. Add a multiple of its "
        "diagonal."
    )


cdef bint is_sound(double condition, Py_ssize_t d) noexcept nogil:
    """Whether a matrix with ones on its diagonal and this trace of its inverse is positive definite in float64."""
    return condition * (10.0 * d * EPS) < 1.0


cdef class MatrixGeometry(Geometry):
    """Base class for symmetric matrices: storage of the upper triangle, and the decomposition of triplets.

    Parameters
    ----------
    weights : ndarray of shape (d, d)
        The symmetric matrix to start from; copied.
    """

    def __init__(self, weights, state=None):
        weights = np.asarray(weights)
        if weights.ndim != 2 or weights.shape[0] != weights.shape[1] + self._more_rows(weights.shape[1]):
            raise ValueError(f"weights must be a square matrix, or a saved state; got shape {weights.shape}")
        self.per_feature = weights.shape[0]
        super().__init__(weights, state=state)

    def _more_rows(self, d):
        """Number of rows of the state in addition to those of the matrix."""
        return 0

    def _arguments(self):
        return (np.asarray(self.weights).reshape(self.n_features, self.n_features).copy(),)

    @property
    def state_weights(self):
        """W; a new array."""
        return self._to_coef(np.asarray(self.weights))

    def _to_coef(self, weights):
        return mirrored(weights[: self.n_features**2].reshape(self.n_features, self.n_features))

    cdef Py_ssize_t vector_length(self, Py_ssize_t n) noexcept nogil:
        return n

    cdef void split(self, const double* x, double* s, double* t) noexcept nogil:
        """s = p + q and t = p - q, so that X = (s t' + t s') / 2 without cancellation if p and q are close."""
        cdef Py_ssize_t i, d = self.n_features
        for i in range(d):
            s[i] = x[i] + x[d + i]
            t[i] = x[i] - x[d + i]

    cdef double balance(self, Workspace* work, double ss, double st, double tt) noexcept nogil:
        """Set hi and lo, the eigenvalues of X in an inner product, from the inner products of s and t.

        Returns the scale k for which x = (k s + t / k) / 2 and y = (k s - t / k) / 2 have X = x x' - y y', x'x = hi,
        y'y = -lo and x'y = 0.
        """
        cdef Instance* instance = <Instance*> work.notes
        cdef double length
        if ss <= 0 or tt <= 0 or ss * tt == 0:  # X = 0 up to rounding errors
            instance.hi = instance.lo = 0.0
            return 1.0
        length = sqrt(ss * tt)
        instance.hi, instance.lo = 0.5 * max(length + st, 0.0), -0.5 * max(length - st, 0.0)
        return sqrt(sqrt(tt / ss))


cdef inline double ratio(Workspace* work, double mu, double c) noexcept nogil:
    """1 + c mu, by which a step divides an eigenvalue mu of W X.

    If c is measured from the pole -1 / largest, it is computed without cancellation for mu near the largest.
    """
    cdef Instance* instance = <Instance*> work.notes
    cdef double largest
    if work.origin == 0:
        return 1.0 + c * mu
    largest = instance.hi if work.origin < 0 else instance.lo
    return (largest - mu) / largest + c * mu


cdef class LogDetGeometry(MatrixGeometry):
    """LogDet divergence: W(c) = (W^-1 + c X)^-1.

    On the eigenvalues mu of W X, hi >= 0 >= lo, this is the Burg geometry: tr(W(c) X) = sum mu / (1 + c mu),
    S = sum mu^2 / (1 + c mu)^2. A pair has hi = z'Wz and lo = 0. A triplet is X = x x' - y y' with x'Wx = hi,
    y'Wy = -lo and x'Wy = 0, so that its step is that of two pairs,

        W(c) = W - c / (1 + c hi) v v' + c / (1 + c lo) u u',    v = W x, u = W y.

    A step after which W is not positive definite in float64 is refused. The last two rows of the state are the
    diagonals q of W^-1, to which a step adds c (x_i^2 - y_i^2), and w of W. With R the matrix balanced to ones on its
    diagonal,

        kappa = tr R^-1 = sum w_i q_i,    1 / kappa <= smallest eigenvalue of R <= d / kappa,

    which costs O(d) a step. The rounding errors of a step, relative to sqrt(w_i w_j), may change q by kappa times their
    size: q is raised by as much, and if that is not small, W is checked by its Cholesky factor.

    Parameters
    ----------
    weights : ndarray of shape (d, d), or (d + more, d)
        The positive definite matrix to start from, or the state; copied.
    """

    def __cinit__(self):
        self.traits |= HAS_POLES

    def __init__(self, weights, state=None):
        weights = np.asarray(weights, dtype=np.float64)
        if weights.ndim == 2 and weights.shape[0] == weights.shape[1]:
            weights = np.vstack([self._laid_out(weights), checked_diagonals(weights)])
        super().__init__(weights, state)
        self.cholesky_memory = None

    def _more_rows(self, d):
        return 2

    def _laid_out(self, weights):
        """The state for a matrix, without the two diagonals."""
        return weights

    def _arguments(self):
        return (np.asarray(self.weights).reshape(self.per_feature, self.n_features).copy(),)

    cdef double* inverse_diagonal(self) noexcept nogil:
        return &self.weights[(self.per_feature - 2) * self.n_features]

    cdef double* diagonal(self) noexcept nogil:
        return &self.weights[(self.per_feature - 1) * self.n_features]

    cdef double times(self, Workspace* work, const double* z, double* v) noexcept nogil:
        """Compute v = W z, and return z'W z."""
        return ob_symv(&self.weights[0], z, v, self.n_features)

    cdef double times_again(self, Workspace* work, const double* z, double* v) noexcept nogil:
        """`times` after a part of a step; 0 if the call has to be repeated with a backup."""
        return ob_symv(&self.weights[0], z, v, self.n_features)

    cdef void subtract(self, const double* v, double c) noexcept nogil:
        """W -= c v v'"""
        ob_syr(&self.weights[0], v, c, self.n_features)
        ob_take_squares(self.diagonal(), v, c, self.n_features)

    cdef void unfold(self, double* matrix) noexcept nogil:
        """Write the upper triangle of W."""
        memcpy(matrix, &self.weights[0], self.n_features * self.n_features * sizeof(double))

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        work.w = work.vectors  # v, and behind it u
        instance.lo = 0.0
        if work.n > self.n_features:
            self.load_triplet(work)
            return
        instance.hi = self.times(work, work.x, work.w)
        if instance.hi <= 0:  # z = 0 up to rounding errors
            instance.hi = 0.0

    cdef void load_triplet(self, Workspace* work) noexcept nogil:
        cdef Py_ssize_t d = self.n_features
        cdef double* s = scratch(work, 1)  # x in the end, and behind it y
        cdef double* t = s + d
        cdef double ss, tt, k
        self.split(work.x, s, t)
        ss, tt = self.times(work, s, work.w), self.times(work, t, work.w + d)
        k = self.balance(work, ss, ob_dot(s, work.w + d, d), tt)
        turn(work.w, work.w + d, k, d)
        turn(s, t, k, d)

    cdef double dot(self, Workspace* work) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        return instance.hi + instance.lo

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        cdef double hi = instance.hi / ratio(work, instance.hi, c), lo = instance.lo / ratio(work, instance.lo, c)
        value[0], slope[0] = hi + lo, hi * hi + lo * lo

    cdef void domain(self, Workspace* work, double* lo, double* hi) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        find_poles(work, instance.lo, instance.hi, lo, hi)

    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil:
        return 2.0 * sqrt(slope)

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        if work.origin == 0:
            return -log1p(c * instance.hi) - log1p(c * instance.lo)
        return -log(ratio(work, instance.hi, c)) - log(ratio(work, instance.lo, c))

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        cdef Py_ssize_t d = self.n_features
        cdef bint triplet = work.n > d
        cdef const double* x = scratch(work, 1) if triplet else work.x
        cdef const double* y = x + d if triplet else NULL
        cdef double hi = instance.hi, lo = instance.lo, above = ratio(work, hi, c), below = ratio(work, lo, c)
        c += work.origin
        if c == 0 or not (hi > 0 or lo < 0):
            return
        if hi > 0:
            instance.hi = self.follow(work, x, work.w, hi, c, above)
        if lo < 0:
            if c * hi > PART:  # W y has lost digits
                lo = -self.times_again(work, y, work.w + d)
            instance.lo = -self.follow(work, y, work.w + d, -lo, -c, below)
        if self.backup != MISSED:
            self.update_inverse_diagonal(x, y if lo < 0 else NULL, c, above, below)

    cdef double follow(self, Workspace* work, const double* z, double* v, double square, double c,
                       double scale) noexcept nogil:
        """W <- (W^-1 + c z z')^-1 from v = W z, square = z'v and scale = 1 + c square; returns the new z'Wz.

        A large c is applied in parts, with W z recomputed for each: an update that makes W much smaller loses
        digits, and a new W z does not have that error.
        """
        cdef double part
        cdef int i
        for i in range(100):
            if not c * square > PART:
                break
            part = PART / square
            self.subtract(v, part / (1.0 + PART))
            c -= part
            square = self.times_again(work, z, v)
            scale = 1.0 + c * square
        if not square > 0:  # the call is repeated, or digits are lost and W is checked next
            return 0.0
        self.subtract(v, c / scale)
        return square / scale

    cdef void update_inverse_diagonal(self, const double* x, const double* y, double c, double above,
                                      double below) noexcept nogil:
        """After a step with these ratios on x and y: update q, check W if rounding may have made it indefinite, and
        set `failure` if it has."""
        cdef Py_ssize_t d = self.n_features
        cdef double* q = self.inverse_diagonal()
        cdef double size = 0.0, factor, doubt
        cdef Py_ssize_t i
        cdef double condition = ob_inverse_diagonal(q, self.diagonal(), x, y, c, d, &size)
        factor = max(above, 1.0 / above) * max(below, 1.0 / below)
        doubt = 4.0 * EPS * sqrt(<double> d) * factor * (1.0 + fabs(c) * size) * condition
        if doubt <= DOUBT and condition >= 0.9 * d and is_sound(condition, d):
            for i in range(d):
                q[i] += doubt * q[i]
        elif not self.refactor():
            with gil:
                self.failure = ValueError(
                    "after it W is not positive definite to float64, as steps or features are of too different sizes; "
                    "lower eta0, or scale features and targets (sklearn.preprocessing.StandardScaler)"
                )

    cdef bint refactor(self) noexcept nogil:
        """Compute the diagonals from the Cholesky factor of W; False if W is not positive definite in float64.

        A W that is not finite is reported later.
        """
        cdef Py_ssize_t d = self.n_features, i, j
        cdef double* q = self.inverse_diagonal()
        cdef double* w = self.diagonal()
        cdef double* r
        cdef double condition = 0.0
        with gil:
            try:
                if self.cholesky_memory is None:
                    self.cholesky_memory = np.empty((d + 1) * d)
            except MemoryError as error:
                self.failure = error
                return True
        r = &self.cholesky_memory[0]
        self.unfold(r)
        for i in range(d):
            w[i] = r[i * (d + 1)]
            if not isfinite(w[i]):
                return True
            if not w[i] >= LEAST:
                return False
        for i in range(d):
            for j in range(i, d):
                r[i * d + j] = r[i * d + j] / sqrt(w[i]) / sqrt(w[j])
        if not invert_factor(r, r + d * d, d):
            return False
        for i in range(d):
            q[i] = ob_dot(r + i * (d + 1), r + i * (d + 1), d - i)
            condition += q[i]
            q[i] /= w[i]
        return is_sound(condition, d)


cdef bint invert_factor(double* a, double* buffer, Py_ssize_t d) noexcept nogil:
    """The upper triangle of A <- U^-1 with A = U'U; False if there is no such U.

    Not by LAPACK, as starting its threads in the middle of the loop would take longer than a small factor.
    """
    cdef Py_ssize_t i, k
    cdef double lost
    for k in range(d):
        if not (a[k * (d + 1)] > 0 and isfinite(a[k * (d + 1)])):
            return False
        lost = 1.0 - 1.0 / sqrt(a[k * (d + 1)])
        for i in range(k * (d + 1), (k + 1) * d):
            a[i] -= lost * a[i]
        for i in range(k + 1, d):
            ob_axpy(a + i * (d + 1), a + k * d + i, a[k * d + i], d - i)
    for i in range(d - 1, -1, -1):
        memset(buffer, 0, d * sizeof(double))
        buffer[i] = 1.0
        for k in range(i + 1, d):
            ob_axpy(buffer + k, a + k * (d + 1), a[i * d + k], d - k)
        for k in range(d - 1, i - 1, -1):
            a[i * d + k] = buffer[k] / a[i * (d + 1)]
    return True
