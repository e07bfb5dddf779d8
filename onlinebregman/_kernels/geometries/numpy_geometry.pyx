"""The geometry of any `Divergence` object, by its own NumPy methods, at the speed of Python."""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, isfinite

from onlinebregman._kernels.geometries.geometry cimport MOVES_ALL, SIGNED, Geometry, Lazy, Workspace


cdef class NumPyGeometry(Geometry):
    """Weights moved by the methods of a `Divergence`, shrunk by those of a `Penalty`, projected by a `Constraint`'s.

    Parameters
    ----------
    weights : ndarray of shape (per_feature * n_features,)
    is_signed : bool
    divergence : Divergence
    constraint : Constraint or None
    penalty : Penalty or None
    """

    cdef readonly object divergence
    cdef readonly object constraint
    cdef readonly object penalty
    cdef object x  # the loaded row, dense; (x, -x) for signed weights
    cdef object w  # the weights when it was loaded

    def __init__(self, weights, is_signed, divergence, constraint=None, penalty=None, state=None):
        self.lazy = NumPyLazy()
        super().__init__(weights, is_signed, state=state)
        self.traits |= MOVES_ALL
        self.divergence = divergence
        self.constraint = constraint
        self.penalty = penalty
        self.lazy.active = penalty is not None

    def _arguments(self):
        return np.asarray(self.weights).copy(), self.is_signed, self.divergence, self.constraint, self.penalty

    cdef Py_ssize_t vector_length(self, Py_ssize_t n) noexcept nogil:
        return self.weights.shape[0]

    cdef void load(self, Workspace* work) noexcept nogil:
        cdef Py_ssize_t i
        cdef double[::1] x
        with gil:
            try:
                values = np.zeros(self.n_features)
                x = values
                for i in range(work.n):
                    x[i if work.row.index == NULL else work.row.index[i]] = work.x[i]
                self.x = np.concatenate([values, -values]) if self.traits & SIGNED else values
                self.w = np.array(self.weights)
                x = self.x
                work.x, work.n = &x[0], x.shape[0]
            except BaseException as error:
                self.failure = error
                work.n = 0

    cdef void store(self, Workspace* work) noexcept nogil:
        pass

    cdef void project(self, Workspace* work) noexcept nogil:
        if self.constraint is not None:
            with gil:
                try:
                    np.asarray(self.weights)[:] = self.constraint.project(self.divergence, np.array(self.weights))
                except BaseException as error:
                    self.failure = error

    cdef double score(self, w, x):
        """w.x, for signed weights as (w+ - w-).x: exactly 0 where they are equal."""
        return (w[:self.n_features] - w[self.n_features:]) @ x[:self.n_features] if self.traits & SIGNED else w @ x

    cdef double dot(self, Workspace* work) noexcept nogil:
        with gil, np.errstate(all="ignore"):  # the learner refuses predictions that are not finite
            try:
                return self.score(np.asarray(self.weights), np.asarray(<const double[:work.n]> work.x))
            except BaseException as error:
                self.failure = self.failure or error
                return NAN

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        with gil, np.errstate(all="ignore"):  # a trial step may be much longer than the one that is taken
            try:
                w = self.divergence.step(self.w, self.x, c) if c != 0 else self.w
                value[0] = self.score(w, self.x)
                slope[0] = max(self.x @ self.divergence.hessian_inverse(w, self.x), 0.0)
            except BaseException as error:
                self.failure = error
                value[0] = slope[0] = NAN

    cdef void domain(self, Workspace* work, double* lo, double* hi) noexcept nogil:
        lo[0], hi[0] = -INFINITY, INFINITY
        with gil:
            try:
                lo[0], hi[0] = self.divergence.step_range(self.w, self.x)
            except BaseException as error:
                self.failure = error

    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil:
        return INFINITY

    cdef double conjugate(self, Workspace* work, double c) noexcept nogil:
        with gil:
            try:
                moved = self.divergence.step(self.w, self.x, c)
                # D(w, w(c)) = c x.(w - w(c)) - D(w(c), w) also holds if w(c) was kept off the boundary of the domain
                return -c * (moved @ self.x) - self.divergence.divergence(moved, self.w)
            except BaseException as error:
                self.failure = error
                return NAN

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        with gil:
            try:
                if not isfinite(c):
                    raise ValueError(f"the step must be finite; got c = {c}")
                np.asarray(self.weights)[:] = self.divergence.step(self.w, self.x, c)
            except BaseException as error:
                self.failure = error


@cython.final
cdef class NumPyLazy(Lazy):

    cdef double shrink_all(self, Geometry geometry, double eta, bint tracked) noexcept nogil:
        with gil:
            return proximal_step(geometry, eta, tracked)


cdef double proximal_step(NumPyGeometry geometry, double eta, bint tracked):
    cdef double total = 0.0
    try:
        w = np.array(geometry.weights)
        np.asarray(geometry.weights)[:] = v = geometry.penalty.prox(geometry.divergence, w, eta)
        if tracked:
            total = eta * geometry.penalty.value(v) + geometry.divergence.divergence(v, w)
    except BaseException as error:
        geometry.failure = geometry.failure or error
    geometry.project(NULL)
    return total
