"""A rank-one change of an eigendecomposition: deflation, the roots of a secular equation, and the eigenvectors.

The eigenvectors are computed from a vector for which the computed roots are exact (Gu and Eisenstat, SIAM J. Matrix
Anal. Appl. 15, 1994), so that they are orthogonal up to rounding even if roots are close. Deflation is that of LAPACK's
dlaed2.
"""

import numpy as np

cimport cython
from libc.float cimport DBL_EPSILON
from libc.math cimport fabs, sqrt
from libc.string cimport memcpy

from onlinebregman._kernels.ops.spectral cimport (
    OB_SPARE, ob_close_poles, ob_eigenvector, ob_loewner, ob_rotate_pair, ob_secular
)
from onlinebregman._kernels.ops.vector cimport ob_dot


ROTATIONS = np.dtype([("i", np.intp), ("j", np.intp), ("c", float), ("s", float)])
cdef double SMALLEST = 1e-80     # for changes of eigenvalues below this, squares of differences would underflow


@cython.final
cdef class Secular:
    """A rank-one change diag(g) + rho u u': its deflation, and the remaining poles and roots.

    Where an entry of u is zero up to rounding, the eigenvalue does not change; if two eigenvalues are equal up to
    rounding, a rotation makes one such entry zero. The other k poles are in ascending order of sign(rho) g, and `slot`
    holds their indices.
    """

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
