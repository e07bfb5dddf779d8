"""The von Neumann geometry on instances of low rank: each step is a rank-one change of an eigendecomposition.

The state of W = exp(G) is G, which every step changes by -c z z', and its eigenvalues g and eigenvectors Q. A row z is
u = Q'z in that basis, and G - c z z' = Q (diag(g) - c u u') Q': the eigenvalues of the matrix in brackets are the roots
of a secular equation, its eigenvectors follow from them, and one matrix product updates Q.

The eigenvectors are computed from a vector for which the computed roots are exact (Gu and Eisenstat, SIAM J. Matrix
Anal. Appl. 15, 1994), so that they are orthogonal up to rounding even if roots are close. Deflation is that of LAPACK's
dlaed2.
"""

import numpy as np

cimport cython
from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, NAN, exp, expm1, fabs, log, log1p, sqrt
from libc.string cimport memcpy, memset

from onlinebregman._kernels.geometries.geometry cimport (
    MOVES_ALL, QUADRATIC, Geometry, Workspace, free_workspace, make_workspace, open_workspace, scratch
)
from onlinebregman._kernels.matrices.matrix cimport Instance
from onlinebregman._kernels.matrices.symmetric import mirrored
from onlinebregman._kernels.ops.exp cimport ob_exp
from onlinebregman._kernels.ops.lapack cimport dgemm, dsyevd
from onlinebregman._kernels.ops.row cimport ob_dots
from onlinebregman._kernels.ops.spectral cimport (
    OB_SPARE, ob_close_poles, ob_eigenvector, ob_gather_dot, ob_loewner, ob_mean_square, ob_rotate_pair,
    ob_secular, ob_weighted_square
)
from onlinebregman._kernels.ops.vector cimport ob_axpy, ob_dot, ob_syr
from onlinebregman._kernels.rows.rows cimport Row


cdef struct Rotation:            # a Givens rotation of rows i and j of Q'
    Py_ssize_t i, j
    double c, s


ROTATIONS = np.dtype([("i", np.intp), ("j", np.intp), ("c", float), ("s", float)])
cdef double SMALLEST = 1e-80     # for changes of eigenvalues below this, squares of differences would underflow


@cython.final
cdef class Secular:
    """A rank-one change diag(g) + rho u u': its deflation, and the remaining poles and roots.

    Where an entry of u is zero up to rounding, the eigenvalue does not change; if two eigenvalues are equal up to
    rounding, a rotation makes one such entry zero. The other k poles are in ascending order of sign(rho) g, and `slot`
    holds their indices.
    """

    cdef Py_ssize_t d, n_poles, n_rotations
    cdef Py_ssize_t k             # number of poles that `rho` moves: all, or 0 if it is below rounding
    cdef bint found               # whether the roots for `rho` have been computed
    cdef double rho, largest      # largest: the largest |eigenvalue|
    cdef Py_ssize_t[::1] order, slot
    cdef double[::1] values       # of diag(g) after the rotations
    cdef double[::1] u, pole, v, w, origin, tau, energy, loewner, row
    cdef object kept
    cdef Rotation* rotations

    def __cinit__(self, Py_ssize_t d):
        self.d = d
        self.order, self.slot = np.empty((2, d), dtype=np.intp)
        self.kept = np.empty(d, dtype=ROTATIONS)
        self.values, self.u, self.pole, self.v, self.w, self.origin, self.tau, self.energy, self.loewner, self.row = (
            np.zeros((10, d + OB_SPARE))
        )
        cdef Py_ssize_t address = self.kept.ctypes.data
        self.rotations = <Rotation*> address

    cdef void deflate(self, const double* g, const double* u) noexcept nogil:
        """Set diag(g) and u, and deflate."""
        cdef Py_ssize_t d = self.d, i, j, k, last = -1
        cdef double length = sqrt(ob_dot(u, u, d)), tolerance, t, c, s
        cdef Py_ssize_t* order = &self.order[0]
        self.n_poles = self.n_rotations = 0
        self.found = False
        self.largest = 0.0
        for i in range(d):
            j = i
            while j > 0 and g[order[j - 1]] > g[i]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
            self.largest = max(self.largest, fabs(g[i]))
            self.values[i] = g[i]
            self.u[i] = u[i]
        tolerance = 8.0 * DBL_EPSILON * self.largest
        for k in range(d):
            j = order[k]
            if fabs(u[j]) <= DBL_EPSILON * length or u[j] * u[j] == 0:
                self.u[j] = 0.0
                continue
            if last >= 0:
                t = self.u[last] * self.u[last] + self.u[j] * self.u[j]
                if (self.values[j] - self.values[last]) * fabs(self.u[last] * self.u[j]) <= tolerance * t:
                    t = sqrt(t)
                    c, s = self.u[j] / t, self.u[last] / t
                    # row j becomes c row j + s row last, which takes all of u
                    self.rotations[self.n_rotations] = Rotation(j, last, c, s)
                    self.n_rotations += 1
                    self.u[j], self.u[last] = t, 0.0
                    t = self.values[last]
                    self.values[last] = t * c * c + self.values[j] * s * s
                    self.values[j] = t * s * s + self.values[j] * c * c
                    self.slot[self.n_poles - 1] = j
                    last = j
                    continue
            self.slot[self.n_poles] = last = j
            self.n_poles += 1

    cdef void solve(self, double rho) noexcept nogil:
        """Compute the roots for diag(g) + rho u u'."""
        cdef Py_ssize_t i, j, k = self.n_poles
        cdef double total = 0.0, length = sqrt(fabs(rho))
        cdef double growth = rho / self.rho - 1.0 if self.found else 0.0
        if self.found and rho == self.rho:
            return
        self.rho, self.k = rho, k
        for i in range(k):
            j = self.place(i)
            self.pole[i] = self.values[j] if rho > 0 else -self.values[j]
            self.v[i] = length * self.u[j]
            self.w[i] = self.v[i] * self.v[i]
            total += self.w[i]
        self.found = total > max(DBL_EPSILON * self.largest, SMALLEST)
        if not self.found:
            self.k = 0
            return
        ob_close_poles(&self.pole[0], &self.w[0], k, total)
        ob_secular(
            &self.pole[0], &self.w[0], k, growth if -0.5 < growth < 1.0 else 0.0, &self.origin[0], &self.tau[0],
            &self.energy[0]
        )
        self.check_energies(total)

    cdef void check_energies(self, double total) noexcept nogil:
        """The energies must sum to u'u. If they do not, some roots are too near to poles: recompute them without u."""
        cdef Py_ssize_t i, j, k = self.k
        cdef double found = 0.0, part
        for i in range(k):
            found += self.energy[i]
        if fabs(found - total) <= 1e-13 * total:
            return
        self.find_vectors()
        for i in range(k):
            found = 0.0
            for j in range(k):
                part = self.loewner[j] / ((self.pole[j] - self.origin[i]) - self.tau[i])
                found += part * part
            self.energy[i] = 1.0 / found

    cdef bint nudge(self, double rho) noexcept nogil:
        """Move the roots to a nearby rho by their derivatives; False if that is not exact up to rounding."""
        cdef Py_ssize_t i
        cdef double growth = rho / self.rho - 1.0 if self.found else 1.0, margin
        if not fabs(growth) < 1e-4:
            return False
        for i in range(self.k):
            margin = min(fabs(self.tau[i]), (self.pole[i + 1] - self.pole[i]) - fabs(self.tau[i]))
            if not fabs(growth * self.energy[i]) <= 1e-8 * margin:
                return False
        for i in range(self.k):
            self.tau[i] += growth * self.energy[i]
        self.rho = rho
        return True

    cdef Py_ssize_t place(self, Py_ssize_t i) noexcept nogil:
        """The index of root i in diag(g)."""
        return self.slot[i if self.rho > 0 else self.k - 1 - i]

    cdef void write(self, double* g, double* shift) noexcept nogil:
        """Write the new eigenvalues to g, and add their changes to `shift`."""
        cdef Py_ssize_t i, j
        cdef double sign = 1.0 if self.rho > 0 else -1.0
        for i in range(self.d):
            shift[i] += self.values[i] - g[i]
            g[i] = self.values[i]
        for i in range(self.k):
            j = self.place(i)
            shift[j] += sign * ((self.origin[i] - self.pole[i]) + self.tau[i])
            g[j] = sign * (self.origin[i] + self.tau[i])

    cdef void energies(self, double* x) noexcept nogil:
        """Write u in the new basis, up to signs, to x."""
        cdef Py_ssize_t i
        cdef double scale = sqrt(fabs(self.rho))
        memcpy(x, &self.u[0], self.d * sizeof(double))
        for i in range(self.k):
            x[self.place(i)] = sqrt(self.energy[i]) / scale

    cdef void find_vectors(self) noexcept nogil:
        if self.k:
            ob_loewner(
                &self.pole[0], &self.v[0], self.k, &self.origin[0], &self.tau[0], &self.loewner[0]
            )

    cdef void eigenvector(self, Py_ssize_t i, double* out) noexcept nogil:
        ob_eigenvector(&self.pole[0], &self.loewner[0], self.k, self.origin[i], self.tau[i], out)

    cdef void rotate(self, double* rows, Py_ssize_t n) noexcept nogil:
        """Apply the rotations to rows of n values each."""
        cdef Py_ssize_t i
        for i in range(self.n_rotations):
            ob_rotate_pair(
                rows + self.rotations[i].i * n, rows + self.rotations[i].j * n, self.rotations[i].c,
                self.rotations[i].s, n
            )

    cdef void change_basis(self, double* x, double* buffer) noexcept nogil:
        """Transform a vector x from the old basis to the new one; after `find_vectors`."""
        cdef Py_ssize_t i
        self.rotate(x, 1)
        for i in range(self.k):
            buffer[i] = x[self.place(i)]
        for i in range(self.k):
            self.eigenvector(i, &self.row[0])
            x[self.place(i)] = ob_dot(&self.row[0], buffer, self.k)


cdef Py_ssize_t REFRESH = 500    # number of steps after which the eigendecomposition of G is recomputed
cdef double LARGEST = 1e100      # bound on |c z z'|: beyond it, differences of eigenvalues have no digits


cdef class VonNeumannGeometry(Geometry):
    """Von Neumann divergence: W(c) = exp(log W - c X), normalised to the trace `trace` if that is given.

    A row z of d values is the instance X = z z', and its prediction is z'Wz = tr(W X). A row (z_1, z_2) of 2 d values
    is X = z_1 z_1' - z_2 z_2'; in general the first `positive` parts of a row have a positive sign. While `matrices` is
    set, a row is a symmetric X, and a step costs an eigendecomposition.

    Parameters
    ----------
    log_prior : ndarray of shape (d, d)
        Logarithm of the W to start from; with `trace`, up to a multiple of the identity.
    trace : float or None, default=None
    """

    cdef readonly double trace   # 0 if it is not given
    cdef double steps            # number of steps
    cdef public Py_ssize_t positive
    cdef public bint matrices
    cdef Secular secular
    # along W(c): eigenvalues of log W(c) and W(c), the roots of the latter, the changes of log W's; memory for LAPACK
    cdef double[::1] g_line, p_line, q_line, shift, work
    cdef int[::1] integers

    def __cinit__(self):
        self.declare("steps", &self.steps)

    def __init__(self, log_prior, trace=None, state=None):
        cdef Py_ssize_t d = len(log_prior)
        if np.shape(log_prior) != (d, d):
            raise ValueError(f"log_prior must be a square matrix; got shape {np.shape(log_prior)}")
        self.per_feature = 2 * d + 2
        super().__init__(np.concatenate([np.zeros(2 * d + d * d), np.asarray(log_prior, dtype=np.float64).ravel()]))
        self.trace = 0.0 if trace is None else trace
        self.positive = 1
        self.traits |= MOVES_ALL | QUADRATIC
        self.secular = Secular(d)
        self.work = np.zeros(3 * d * d + 16 * d + 16)
        self.integers = np.zeros(3 + 5 * d, dtype=np.intc)
        self.g_line, self.p_line, self.q_line, self.shift = np.zeros((4, d + OB_SPARE))
        if state is None:
            self.refresh()
        self._resume(state)

    def _arguments(self):
        return np.zeros((self.n_features, self.n_features)), self.trace or None

    def get_state(self):
        return {**super().get_state(), "spectrum": np.array(self.weights)}

    def set_state(self, state):
        super().set_state(state)
        np.asarray(self.weights)[:] = state["spectrum"]

    # --- the state: g, p = exp(g) scaled, Q' (rows are eigenvectors), the upper triangle of G ----------------------

    cdef inline double* eigenvalues(self) noexcept nogil:
        return &self.weights[self.n_features]

    cdef inline double* vectors(self) noexcept nogil:
        return &self.weights[2 * self.n_features]

    cdef inline double* logarithm(self) noexcept nogil:
        return &self.weights[(2 + self.n_features) * self.n_features]

    @property
    def factor(self):
        """L of shape (d, d) with W = L L', columns from the smallest eigenvalue to the largest."""
        cdef Py_ssize_t d = self.n_features
        values, vectors = np.asarray(<double[:d]> self.eigenvalues()), np.asarray(<double[:d, :d]> self.vectors())
        order = np.argsort(values, kind="stable")
        return (vectors[order] * np.sqrt(values[order])[:, np.newaxis]).T

    @property
    def log_coef(self):
        """log W, shape (d, d)."""
        d = self.n_features
        logarithm = mirrored(np.asarray(self.weights)[(2 + d) * d:].reshape(d, d))
        logarithm.flat[::d + 1] += self.log_scale
        return logarithm

    @property
    def log_values(self):
        """Eigenvalues of log W, ascending."""
        return np.sort(np.asarray(self.weights)[:self.n_features]) + self.log_scale

    @property
    def log_scale(self):
        """The difference of the eigenvalues of log W and G."""
        return log(self.trace) - log_sum_exp(&self.weights[0], self.n_features) if self.trace else 0.0

    @property
    def state_weights(self):
        return self.log_coef  # a step is linear in log W

    def coef(self, average_over=0.0):
        factor = self.factor
        return factor @ factor.T

    def evaluate_row(self, const double[::1] x, double c):
        """tr(W(c) X), minus its derivative in c, and `conjugate`, for one row x."""
        cdef Row row = Row(&x[0], NULL, x.shape[0], 0)
        cdef Workspace work
        cdef double value, slope, gained
        make_workspace(&work, self.vector_length(row.n))
        with nogil:
            open_workspace(&work, &row)
            self.load(&work)
            self.evaluate(&work, c, &value, &slope)
            gained = self.conjugate(&work, c)
            free_workspace(&work)
        return value, slope, gained

    def move(self, const double[::1] x, double c):
        """W <- W(c) for one row x; returns `conjugate`."""
        cdef Row row = Row(&x[0], NULL, x.shape[0], 0)
        cdef Workspace work
        cdef double gained = 0.0
        make_workspace(&work, self.vector_length(row.n))
        with nogil:
            open_workspace(&work, &row)
            self.load(&work)
            if not (self.matrices and self.trace):
                gained = self.conjugate(&work, c)
            self.step(&work, c)
            free_workspace(&work)
        if self.matrices and self.trace and c != 0:
            gained = -self.trace * self.log_scale  # G was log W before the step
        return gained

    cdef void scale_weights(self, const double* g, double* p) noexcept nogil:
        """The eigenvalues of W from those of G."""
        cdef Py_ssize_t d = self.n_features, i
        cdef double largest = 0.0, total = 0.0
        if self.trace:
            largest = g[0]
            for i in range(1, d):
                largest = max(largest, g[i])
        ob_exp(p, g, -1.0, largest, d)
        if self.trace:
            for i in range(d):
                total += p[i]
            for i in range(d):
                p[i] *= self.trace / total

    cdef void refresh(self) noexcept nogil:
        """Recompute eigenvalues and eigenvectors from G; with a given trace, G is first set to log W."""
        cdef Py_ssize_t d = self.n_features, i
        cdef double scale = 0.0
        if self.trace and self.steps:
            scale = log(self.trace) - log_sum_exp(&self.weights[0], d)
        for i in range(d):
            self.logarithm()[i * (d + 1)] += scale
        memcpy(self.vectors(), self.logarithm(), d * d * sizeof(double))
        self.decompose(self.vectors(), &self.weights[0])
        self.scale_weights(&self.weights[0], self.eigenvalues())

    cdef void decompose(self, double* a, double* values) noexcept nogil:
        """Eigenvalues of a symmetric matrix of which the upper triangle is given, eigenvectors in its rows."""
        cdef int d = self.n_features, n_work = self.work.shape[0] - d * d, integers = self.integers.shape[0], info = 0
        dsyevd("V", "L", &d, a, &d, values, &self.work[d * d], &n_work, &self.integers[0], &integers, &info)
        if info != 0:
            values[0] = NAN  # the row is then refused as an overflow

    # --- rows ------------------------------------------------------------------------------------------------------

    cdef Py_ssize_t vector_length(self, Py_ssize_t n) noexcept nogil:
        return max((n + self.n_features - 1) // self.n_features, 2) * (self.n_features + OB_SPARE)

    cdef inline Py_ssize_t parts(self, Workspace* work) noexcept nogil:
        if work.row.index == NULL:
            return work.n // self.n_features
        return 2 if work.n and work.row.index[work.n - 1] >= self.n_features else 1

    cdef inline double sign(self, Py_ssize_t part) noexcept nogil:
        return 1.0 if part < self.positive else -1.0

    cdef void nonzeros(self, Workspace* work, Py_ssize_t part, Py_ssize_t* start, Py_ssize_t* end) noexcept nogil:
        """The range of the values of a sparse row that belong to a part."""
        start[0] = 0
        while start[0] < work.n and work.row.index[start[0]] < part * self.n_features:
            start[0] += 1
        end[0] = start[0]
        while end[0] < work.n and work.row.index[end[0]] < (part + 1) * self.n_features:
            end[0] += 1

    cdef void rotate_part(self, Workspace* work, Py_ssize_t part, double* u) noexcept nogil:
        """u = Q'z for a part z of a row."""
        cdef Py_ssize_t d = self.n_features, start, end
        if work.row.index == NULL:
            ob_dots(self.vectors(), d, d, work.x + part * d, d, u)
        else:
            self.nonzeros(work, part, &start, &end)
            ob_gather_dot(self.vectors() - part * d, work.row.index + start, work.x + start, end - start, d, u)

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        cdef Py_ssize_t d = self.n_features, part
        cdef double* u
        cdef double norm
        work.w = work.vectors
        instance.score = instance.lo = instance.hi = 0.0
        instance.prepared = False
        if self.matrices:
            self.rotate_matrix(work, self.vectors())
            for part in range(d):
                instance.score += self.eigenvalues()[part] * self.rotated()[part * (d + 1)]
            instance.hi = sqrt(ob_dot(work.x, work.x, d * d))
            instance.lo = -instance.hi
            return
        for part in range(self.parts(work)):
            u = work.w + part * d
            self.rotate_part(work, part, u)
            instance.score += self.sign(part) * ob_weighted_square(self.eigenvalues(), u, d)
            norm = ob_dot(u, u, d)
            if part < self.positive:
                instance.hi += norm
            else:
                instance.lo -= norm

    cdef void store(self, Workspace* work) noexcept nogil:
        pass

    cdef double dot(self, Workspace* work) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        if work.w == NULL:  # W has moved since the row was loaded
            self.load(work)
        return instance.score

    cdef void domain(self, Workspace* work, double* lo, double* hi) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        hi[0] = LARGEST / (instance.hi - instance.lo) if instance.hi > instance.lo else INFINITY
        lo[0] = -hi[0]

    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        return instance.hi - instance.lo  # of X's eigenvalues

    cdef void walk(self, Workspace* work, double c, double* x) noexcept nogil:
        """Compute the eigenvalues of G - c X and the parts x of the row in its eigenbasis, without eigenvectors."""
        cdef Instance* instance = <Instance*> work.notes
        cdef Py_ssize_t d = self.n_features, stride = d + OB_SPARE, part, other, parts = self.parts(work)
        memcpy(&self.g_line[0], &self.weights[0], d * sizeof(double))
        memset(&self.shift[0], 0, d * sizeof(double))
        memset(x, 0, parts * stride * sizeof(double))
        for part in range(parts):
            memcpy(x + part * stride, work.w + part * d, d * sizeof(double))
        if c == 0:
            return
        for part in range(parts):
            if parts > 1 or not instance.prepared:
                self.secular.deflate(&self.g_line[0], x + part * stride)
                instance.prepared = parts == 1
            self.secular.solve(-c * self.sign(part))
            self.secular.write(&self.g_line[0], &self.shift[0])
            if parts == 1:
                self.secular.energies(x)
                return
            self.secular.find_vectors()
            for other in range(parts):
                self.secular.change_basis(x + other * stride, &self.work[0])

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef Py_ssize_t d = self.n_features, stride = d + OB_SPARE, part, i
        cdef double* x = scratch(work, 1)
        if self.matrices:
            self.evaluate_matrix(work, c, value, slope)
            return
        self.walk(work, c, x)
        self.scale_weights(&self.g_line[0], &self.p_line[0])
        for i in range(d):
            self.q_line[i] = sqrt(self.p_line[i])
        value[0] = 0.0
        for part in range(self.parts(work)):
            value[0] += self.sign(part) * ob_weighted_square(&self.p_line[0], x + part * stride, d)
        slope[0] = ob_mean_square(
            &self.g_line[0], &self.p_line[0], &self.q_line[0], x, self.parts(work), self.positive, stride, d
        )
        if self.trace:
            slope[0] = max(slope[0] - value[0] * (value[0] / self.trace), 0.0)

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        """tr W(c) - tr W, or trace (ln tr exp(G - c X) - ln tr exp G) with a given trace."""
        cdef Py_ssize_t d = self.n_features, i
        cdef double total = 0.0, largest = 0.0
        if self.matrices:
            self.walk_matrix(work, c)
        else:
            self.walk(work, c, scratch(work, 1))
        for i in range(d):
            largest = max(largest, fabs(self.shift[i]))
            total += self.eigenvalues()[i] * expm1(self.shift[i])
        if not self.trace:
            return total
        if largest < 1:
            return self.trace * log1p(total / self.trace)
        return self.trace * (log_sum_exp(&self.g_line[0], d) - log_sum_exp(&self.weights[0], d))

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        cdef Instance* instance = <Instance*> work.notes
        cdef Py_ssize_t part, parts = self.parts(work)
        if c == 0:
            return
        if self.matrices:
            ob_axpy(self.logarithm(), work.x, c, self.n_features * self.n_features)
            self.steps += 1
            self.refresh()
            work.w = NULL
            return
        for part in range(parts):
            if part > 0:
                self.rotate_part(work, part, work.w)
            if parts > 1 or not instance.prepared:
                self.secular.deflate(&self.weights[0], work.w)
            if not self.secular.nudge(-c * self.sign(part)):
                self.secular.solve(-c * self.sign(part))
            self.update_vectors()
            self.secular.write(&self.weights[0], &self.shift[0])
            self.subtract(work, part, c * self.sign(part))
        self.steps += 1
        if self.steps % REFRESH == 0:
            self.refresh()
        else:
            self.scale_weights(&self.weights[0], self.eigenvalues())
        work.w = NULL

    cdef void update_vectors(self) noexcept nogil:
        """Q <- Q times the eigenvectors of the rank-one change."""
        cdef Py_ssize_t i, width = self.n_features * sizeof(double)
        cdef int d = self.n_features, k = self.secular.k
        cdef double one = 1.0, zero = 0.0
        cdef double* q = self.vectors()
        cdef double* rotation = &self.work[0]
        cdef double* old = &self.work[d * d]
        cdef double* new = &self.work[2 * d * d]
        self.secular.rotate(q, d)
        if k < 2:
            return
        self.secular.find_vectors()
        for i in range(k):
            self.secular.eigenvector(i, rotation + i * k)
            memcpy(old + i * d, q + self.secular.place(i) * d, width)
        dgemm("N", "N", &d, &k, &k, &one, old, &d, rotation, &k, &zero, new, &d)
        for i in range(k):
            memcpy(q + self.secular.place(i) * d, new + i * d, width)

    cdef void subtract(self, Workspace* work, Py_ssize_t part, double c) noexcept nogil:
        """G -= c z z' for a part of a row."""
        cdef Py_ssize_t d = self.n_features, i, j, start, end
        cdef double* g = self.logarithm()
        if work.row.index == NULL:
            ob_syr(g, work.x + part * d, c, d)
            return
        self.nonzeros(work, part, &start, &end)
        for i in range(start, end):
            for j in range(i, end):
                g[(work.row.index[i] - part * d) * d + work.row.index[j] - part * d] -= c * work.x[i] * work.x[j]

    # --- symmetric matrices as rows --------------------------------------------------------------------------------

    cdef inline double* rotated(self) noexcept nogil:
        return &self.work[2 * self.n_features * self.n_features]

    cdef void rotate_matrix(self, Workspace* work, double* vectors) noexcept nogil:
        """V'XV for eigenvectors V."""
        cdef int d = self.n_features
        cdef double one = 1.0, zero = 0.0
        cdef double* half = &self.work[d * d]
        dgemm("N", "N", &d, &d, &d, &one, work.x, &d, vectors, &d, &zero, half, &d)
        dgemm("T", "N", &d, &d, &d, &one, vectors, &d, half, &d, &zero, self.rotated(), &d)

    cdef void walk_matrix(self, Workspace* work, double c) noexcept nogil:
        """Compute the eigenvalues of G - c X, their changes, and the eigenvectors, in `work`."""
        cdef Py_ssize_t d = self.n_features, i
        memcpy(&self.g_line[0], &self.weights[0], d * sizeof(double))
        memcpy(&self.work[0], self.vectors() if c == 0 else self.logarithm(), d * d * sizeof(double))
        if c != 0:
            ob_axpy(&self.work[0], work.x, c, d * d)
            self.decompose(&self.work[0], &self.g_line[0])
        for i in range(d):
            self.shift[i] = self.g_line[i] - self.weights[i]

    cdef void evaluate_matrix(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        cdef Py_ssize_t d = self.n_features, i, j
        cdef double* x = self.rotated()
        self.walk_matrix(work, c)
        self.rotate_matrix(work, &self.work[0])
        self.scale_weights(&self.g_line[0], &self.p_line[0])
        value[0] = slope[0] = 0.0
        for i in range(d):
            value[0] += self.p_line[i] * x[i * (d + 1)]
            slope[0] += self.p_line[i] * x[i * (d + 1)] * x[i * (d + 1)]
            for j in range(i):
                slope[0] += 2.0 * x[i * d + j] * x[i * d + j] * logarithmic_mean(
                    self.p_line[i], self.p_line[j], self.g_line[i] - self.g_line[j]
                )
        if self.trace:
            slope[0] = max(slope[0] - value[0] * (value[0] / self.trace), 0.0)


cdef inline double logarithmic_mean(double p, double q, double gap) noexcept nogil:
    """(p - q) / (ln p - ln q) from the difference of the logarithms."""
    if fabs(gap) < 0.06:
        return sqrt(p * q) * (1.0 + gap * gap / 24.0 * (1.0 + gap * gap / 80.0 * (1.0 + gap * gap / 168.0)))
    return (p - q) / gap


cdef double log_sum_exp(const double* g, Py_ssize_t n) noexcept nogil:
    cdef double largest = -INFINITY, total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        largest = max(largest, g[i])
    for i in range(n):
        total += exp(g[i] - largest)
    return largest + log(total)
