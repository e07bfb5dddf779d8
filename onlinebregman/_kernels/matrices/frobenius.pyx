"""The squared Frobenius geometry on positive semidefinite matrices: linear steps, projected by one eigenpair."""

import numpy as np

from libc.math cimport fabs, frexp, isfinite, ldexp, sqrt
from libc.string cimport memset

from onlinebregman._kernels.geometries.geometry cimport LINEAR, Workspace, scratch
from onlinebregman._kernels.matrices.matrix cimport Instance, MatrixGeometry, turn
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_dot, ob_symv, ob_syr

# Error of the eigenvalues relative to the largest one, about that of rounding W.
cdef double ROUNDING = 1e-15
# When the trace has fallen to this fraction, the rounding errors of the larger W are projected away.
cdef double FALLEN = 1e-2
# A step larger than this, relative to W, removes all of W in the direction of the row.
cdef double ALL = 1e60


cdef class FrobeniusGeometry(MatrixGeometry):
    """Squared Frobenius distance: W(c) = W - c X, S = norm_F(X)^2, followed by the projection onto the cone.

    X = x x' - y y' with x'x = hi, y'y = -lo and x'y = 0; a pair has x = z, y = 0. From a positive semidefinite W at
    most one eigenvalue turns negative, by -c x x' (c > 0) or c y y' (c < 0), and is set to zero.

    W is positive semidefinite in float64: no W_ii is negative, and no eigenvalue below -1e-12 times the largest one.
    """

    cdef double largest_trace  # since all negative eigenvalues were last set to zero
    cdef double[::1] memory  # a basis of up to d + 1 vectors, alpha, beta, s and r

    def __init__(self, weights, state=None):
        super().__init__(weights, state)
        self.memory = np.empty((self.n_features + 5) * self.n_features)

    def __cinit__(self):
        self.traits |= LINEAR
        self.declare("largest_trace", &self.largest_trace)

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        cdef Py_ssize_t d = self.n_features
        cdef double* t
        instance.lo = 0.0
        if work.n == d:
            work.w = <double*> work.x
            instance.hi = ob_dot(work.x, work.x, d)
            instance.score = ob_symv(&self.weights[0], work.x, work.vectors, d)
            if instance.score < 0:  # a rounding error
                instance.score = 0.0
            return
        work.w = scratch(work, 1)  # x, and behind it y
        t = work.w + d
        self.split(work.x, work.w, t)
        ob_symv(&self.weights[0], t, work.vectors, d)
        instance.score = ob_dot(work.w, work.vectors, d)
        turn(work.w, t, self.balance(work, ob_dot(work.w, work.w, d), ob_dot(work.w, t, d), ob_dot(t, t, d)), d)

    cdef double dot(self, Workspace* work) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        return instance.score

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        value[0], slope[0] = instance.score, instance.hi * instance.hi + instance.lo * instance.lo

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        cdef double* y = work.w + self.n_features
        if c == 0:
            return
        if c > 0:
            if instance.lo < 0:
                ob_syr(&self.weights[0], y, -c, self.n_features)
            if instance.hi > 0:
                self.subtract(work.w, instance.hi, c)
        else:
            if instance.hi > 0:
                ob_syr(&self.weights[0], work.w, c, self.n_features)
            if instance.lo < 0:
                self.subtract(y, -instance.lo, -c)

    cdef void subtract(self, const double* x, double square, double c) noexcept nogil:
        """W <- P(W - c x x'), c > 0.

        With q = x / norm(x) and taken = c x'x the negative eigenvalue theta is the root of taken q'(W - theta)^-1 q =
        1, and its vector (W - theta)^-1 q. Both lie in the Krylov space of q, where W is tridiagonal, T = [alpha,
        beta]. A basis of k vectors gives q'W^-1 q as a growing sum, and the rest as r'W^-1 r with r the residual of
        W^-1 q. While the sum is below 1 / taken,

            smallest eigenvalue  >=  -taken r'r / (1 - taken sum),

        which ends the search if there is no negative eigenvalue. Otherwise the basis grows until the residual of the
        smallest eigenvalue of T - taken e_1 e_1' in W is a rounding error.
        """
        cdef Py_ssize_t d = self.n_features, k, j
        cdef double* q = &self.memory[0]
        cdef double* w
        cdef double* alpha = q + (d + 1) * d
        cdef double* beta = alpha + d
        cdef double* s = beta + d
        cdef double before = self.trace(), scale = power_of_four(before)  # by a power of two: W may be of any size
        cdef double taken = min(c * square / scale, ALL), pivot = 1.0, rest = 1.0, total = 0.0, size = 0.0, gap = taken
        cdef bint negative = False
        if before == 0 or not isfinite(before):  # W = 0 stays 0; an overflow is reported later
            return
        self.largest_trace = max(self.largest_trace, before)
        for j in range(d):
            q[j] = x[j] / sqrt(square)
        for k in range(d):
            w = q + (k + 1) * d
            alpha[k] = ob_symv(&self.weights[0], q + k * d, w, d) / scale
            for j in range(d):
                w[j] /= scale
            ob_axpy(w, q + k * d, alpha[k], d)
            if k > 0:
                ob_axpy(w, q + (k - 1) * d, beta[k - 1], d)
            for j in range(k + 1):  # reorthogonalise
                ob_axpy(w, q + j * d, ob_dot(w, q + j * d, d), d)
            beta[k] = sqrt(ob_dot(w, w, d))
            size = max(size, fabs(alpha[k]) + beta[k] + (beta[k - 1] if k > 0 else 0.0))
            if not negative:
                pivot = alpha[k] - beta[k - 1] * (beta[k - 1] / pivot) if k > 0 else alpha[k]
                negative = not pivot > 0 or taken * (total + rest / pivot) > 1.0
            if negative:
                if beta[k] * smallest_eigenpair(alpha, beta, k + 1, size, taken, &gap, s) <= ROUNDING * size:
                    break
            else:
                total += rest / pivot
                rest *= beta[k] / pivot * (beta[k] / pivot)
                if taken * rest <= ROUNDING * size * (1.0 - taken * total):
                    break
            if beta[k] <= ROUNDING * size or k + 1 == d:
                break
            for j in range(d):
                w[j] /= beta[k]
        if negative:
            self.subtract_eigenpair(q, k + 1, s, gap, gap - taken, scale)
        else:
            ob_syr(&self.weights[0], x, c, d)
        self.drop_negative()
        if self.trace() < FALLEN * self.largest_trace:
            self.project_all()

    cdef double trace(self) noexcept nogil:
        cdef Py_ssize_t i
        cdef double total = 0.0
        for i in range(self.n_features):
            total += self.weights[i * (self.n_features + 1)]
        return total

    cdef void drop_negative(self) noexcept nogil:
        """Set rows and columns to 0 whose diagonal has become negative by rounding errors."""
        cdef Py_ssize_t d = self.n_features, i, j
        for i in range(d):
            if self.weights[i * (d + 1)] < 0:
                for j in range(i):
                    self.weights[j * d + i] = 0.0
                for j in range(i, d):
                    self.weights[i * d + j] = 0.0

    cdef void project_all(self) noexcept nogil:
        """Set negative eigenvalues, which are all rounding errors, to zero."""
        with gil:
            try:
                values, vectors = np.linalg.eigh(self.state_weights)
                np.asarray(self.weights)[:] = ((vectors * np.maximum(values, 0.0)) @ vectors.T).ravel()
            except (ArithmeticError, ValueError, MemoryError) as error:
                self.failure = error
        self.largest_trace = self.trace()

    cdef void subtract_eigenpair(self, double* q, Py_ssize_t k, const double* s, double gap, double theta,
                       double scale) noexcept nogil:
        """W - taken q q' - theta v v' for v = s_1 q + p, in a form in which a large taken = gap - theta cancels:

            W + q r' + r q' - theta p p',    r = -theta s_1 p - (gap - theta p'p) / 2 q.

        gap, theta and r are in units of `scale`.
        """
        cdef Py_ssize_t d = self.n_features, j
        cdef double* p = q + k * d
        cdef double* r = &self.memory[(d + 4) * d]
        cdef double norm
        memset(p, 0, d * sizeof(double))
        memset(r, 0, d * sizeof(double))
        for j in range(1, k):
            ob_axpy(p, q + j * d, -s[j], d)
        ob_axpy(r, p, theta * s[0], d)
        ob_axpy(r, q, 0.5 * (gap - theta * ob_dot(p, p, d)), d)
        ob_syr(&self.weights[0], p, scale * theta, d)
        norm = sqrt(ob_dot(r, r, d))
        if norm > 0:
            turn(q, r, sqrt(norm), d)
            ob_syr(&self.weights[0], q, -2.0 * scale, d)
            ob_syr(&self.weights[0], r, 2.0 * scale, d)


cdef double power_of_four(double size) noexcept nogil:
    """A power of four of about this size: division by it or by its square root does not round."""
    cdef int exponent = 0
    frexp(size, &exponent)
    return ldexp(1.0, exponent - (exponent & 1))


cdef double smallest_eigenpair(const double* alpha, const double* beta, Py_ssize_t k, double size, double taken,
                               double* gap, double* s) noexcept nogil:
    """Find gap = theta + taken, theta the only negative eigenvalue of T - taken e_1 e_1', for T of size k.

    By Newton's method from above: from theta a rounding error below 0, or from the gap of a smaller k. The function is
    the first pivot of T - taken e_1 e_1' - theta, eliminated from the last row up, which is decreasing and concave.
    Sets the unit eigenvector s and returns |s_k|.
    """
    cdef Py_ssize_t i, iteration
    cdef double pivot, slope, ratio, move, norm = 1.0
    gap[0] = min(gap[0], taken - ROUNDING * size)
    for iteration in range(100):
        pivot, slope = (alpha[k - 1] + taken if k > 1 else alpha[0]) - gap[0], -1.0
        for i in range(k - 2, -1, -1):
            s[i + 1] = ratio = beta[i] / max(pivot, 1e-16 * size)
            pivot = (alpha[i] + taken if i > 0 else alpha[0]) - gap[0] - beta[i] * ratio
            slope = -1.0 + ratio * ratio * slope
        move = pivot / slope
        gap[0] -= max(move, 0.0)
        if not move > 1e-16 * size:
            break
    s[0] = 1.0
    for i in range(1, k):
        s[i] *= -s[i - 1]
        norm += s[i] * s[i]
    norm = sqrt(norm)
    for i in range(k):
        s[i] /= norm
    return fabs(s[k - 1])
