"""The geometry of the matrix Burg gradient of JKD07: LogDet steps whose rate (`MatrixBurgRate`) keeps 0 < W < I."""

import numpy as np

from libc.math cimport INFINITY

from onlinebregman._kernels.geometries.geometry cimport Workspace, scratch
from onlinebregman._kernels.matrices.matrix cimport LogDetGeometry
from onlinebregman._kernels.ops.lapack cimport dpotrf, dpotri
from onlinebregman._kernels.ops.vector cimport ob_dot, ob_symv, ob_syr

# If v'Nv / v'v exceeds this for the direction v = N^(1/2) z that a row moves, W is at its bound, and the step is
# projected onto W <= (1 - 1 / AT_BOUND) I.
cdef double AT_BOUND = 1e8
# Number of steps after which N is recomputed.
cdef Py_ssize_t REFRESH = 1000


def projected_step(W, z, double c, double upper):
    """argmin of D(V, W) + c z'Vz over V <= upper I, for 0 < W <= upper I and c < 0, as (Y, S) with V = W - Y S Y'.

    With G = W^-1 - I / upper >= 0 it is V^-1 = I / upper + (G + c z z')_+, also where W^-1 + c z z' is not positive
    definite (docs/regret.rst). G + c z z' has at most one negative eigenvalue, -m with the eigenvector
    q ~ (G + m)^-1 z, where m is the root of c z'(G + m)^-1 z = -1. With p the direction of z orthogonal to q,
    c z z' + m q q' is a matrix E in the basis B = (p, q), and V = (W^-1 + B E B')^-1 the update of W by rank two. In
    the eigenbasis of W, where G is diagonal, nothing cancels.
    """
    values, vectors = np.linalg.eigh(W)
    values = np.maximum(values, np.finfo(np.float64).eps * values.max())
    gaps, zeta = np.maximum(1.0 / values - 1.0 / upper, 0.0), vectors.T @ z
    squares = -c * zeta * zeta
    least = np.finfo(np.float64).tiny
    m = max(float((squares - gaps).max()), least)  # not above the root: each term is at most 1
    if m == least and (squares / (gaps + m)).sum() < 1.0:  # there is no negative eigenvalue
        Y = (W @ z)[:, np.newaxis]
        return Y, np.array([[c / (1.0 + c * (z @ Y[:, 0]))]])
    for _ in range(100):
        poles = 1.0 / (gaps + m)
        shares = squares * poles  # they sum to 1 at the root
        # Newton's method on 1 / sum of the shares, which is concave in m: from below, it rises to the root
        step = shares.sum() * (shares.sum() - 1.0) / (shares @ poles)
        m += max(step, 0.0)
        if not step > 1e-15 * m:
            break
    shares /= shares.sum()
    q = zeta * poles
    q /= np.linalg.norm(q)
    # p = z - q q'z, which is small where G is small, from differences of gaps
    p = zeta * poles * (gaps - (shares @ (gaps * poles)) / (shares @ poles))
    along, across = float(q @ zeta), float(np.linalg.norm(p))
    E = np.array([[c * across * across, c * across * along], [c * across * along, -float(q @ (gaps * q))]])
    B = vectors @ np.column_stack([p / across if across > 0 else p, q])
    Y = W @ B
    return Y, E @ np.linalg.inv(np.eye(2) + B.T @ Y @ E)


cdef class MatrixBurgGeometry(LogDetGeometry):
    """LogDet divergence on 0 < W < I, for update="gradient" (JKD07, Algorithm 2).

    N = (W^-1 - I)^-1 = (I - W)^-1 W is positive definite exactly where W < I, and (W^-1 + c X)^-1 moves it to
    (N^-1 + c X)^-1: the LogDet step again, whose domain is the algorithm's cap of the rate. W and N are the state.
    """

    def __cinit__(self):
        self.declare("n_projected", &self.n_projected, True)
        self.declare("steps", &self.steps)

    def __init__(self, weights, state=None):
        super().__init__(weights, state)
        d = self.n_features
        self.memory = np.empty(d * d)
        if len(weights) == d:
            self.refresh()

    def _more_rows(self, d):
        return d + 2

    def _laid_out(self, weights):
        return np.vstack([weights, np.zeros_like(weights)])

    @property
    def projected(self):
        """Number of rows whose step was projected because W is at its bound in their direction."""
        return int(self.n_projected)

    cdef double* dual(self) noexcept nogil:
        return &self.weights[self.n_features * self.n_features]

    cdef void refresh(self) noexcept nogil:
        """Recompute N = (I - W)^-1 - I, in which rank-one updates accumulate rounding errors."""
        cdef int d = <int> self.n_features, info
        cdef Py_ssize_t i, n = d * self.n_features
        for i in range(n):
            self.memory[i] = -self.weights[i]
        for i in range(d):
            self.memory[i * (d + 1)] += 1.0
        dpotrf(b"L", &d, &self.memory[0], &d, &info)  # LAPACK's lower triangle is our upper one
        if info == 0:
            dpotri(b"L", &d, &self.memory[0], &d, &info)
        if info != 0:  # W is at its bound up to rounding
            return
        for i in range(n):
            self.dual()[i] = self.memory[i]
        for i in range(d):
            self.dual()[i * (d + 1)] -= 1.0

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef DualInstance* instance = <DualInstance*> work.notes
        LogDetGeometry.load(self, work)
        instance.dual = ob_symv(self.dual(), work.x, scratch(work, 1), self.n_features)
        instance.dual_square = ob_dot(scratch(work, 1), scratch(work, 1), self.n_features)

    cdef bint stays(self, Workspace* work, double c) noexcept nogil:
        cdef DualInstance* instance = <DualInstance*> work.notes
        return c < 0 and instance.dual_square >= AT_BOUND * instance.dual

    cdef void domain(self, Workspace* work, double* lo, double* hi) noexcept nogil:
        cdef DualInstance* instance = <DualInstance*> work.notes
        lo[0] = -INFINITY if self.stays(work, -1.0) or instance.dual <= 0 else -1.0 / instance.dual
        hi[0] = INFINITY

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        """For a projected step the value that gives c^2 |z|^4 / 2, its bound, instead of D(W, W(c))."""
        cdef DualInstance* instance = <DualInstance*> work.notes
        cdef double square
        if not self.stays(work, c):
            return LogDetGeometry.conjugate(self, work, c)
        square = ob_dot(work.x, work.x, self.n_features)
        return 0.5 * c * c * square * square - c * instance.primal.hi

    cdef void project_step(self, Workspace* work, double c) noexcept nogil:
        """W <- argmin of D(V, W) + c z'Vz over V <= (1 - 1 / AT_BOUND) I, or over V <= the largest eigenvalue of W."""
        with gil:
            try:
                W = self.state_weights
                z = np.asarray(<double[:self.n_features]> <double*> work.x).copy()
                upper = max(1.0 - 1.0 / AT_BOUND, np.linalg.eigvalsh(W).max())
                Y, S = projected_step(W, z, c, upper)
                W -= Y @ ((S + S.T) / 2) @ Y.T
                np.asarray(self.weights)[: self.n_features**2] = W.ravel()
            except (MemoryError, ArithmeticError, ValueError) as error:
                self.failure = error
                return
        self.n_projected += 1.0
        if not self.refactor():
            with gil:
                self.failure = ValueError("after it W is not positive definite to float64; lower eta0, or scale rows")
        self.refresh()

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        cdef DualInstance* instance = <DualInstance*> work.notes
        if self.stays(work, c):
            self.project_step(work, c)
            return
        LogDetGeometry.step(self, work, c)
        if instance.dual > 0:
            ob_syr(self.dual(), scratch(work, 1), c / (1.0 + c * instance.dual), self.n_features)
        self.steps += 1.0

    cdef void renormalise(self, Workspace* work) noexcept nogil:
        if self.steps >= max(REFRESH, self.n_features):
            self.refresh()
            self.steps = 0.0
