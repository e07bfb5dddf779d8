"""The geometry of any `Divergence` object and any `Loss`, by their own NumPy methods, at the speed of Python."""

import numpy as np

from libc.math cimport INFINITY, NAN, isfinite

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace
from onlinebregman._kernels.losses.loss cimport Edge, Loss
from onlinebregman._kernels.rows.rows cimport Row


cdef class NumPyGeometry(Geometry):
    """Weights moved by the methods of a `Divergence`, and projected by those of a `Constraint`.

    Parameters
    ----------
    weights : ndarray of shape (per_feature * n_features,)
    doubled : bool
    divergence : Divergence
    constraint : Constraint or None
    """

    cdef readonly object divergence
    cdef readonly object constraint
    cdef object x  # the loaded row, dense; x and -x for signed weights
    cdef object w  # and the weights it is asked about

    def __init__(self, weights, doubled, divergence, constraint=None, state=None):
        super().__init__(weights, doubled, state=state)
        self.moves_all = True
        self.divergence = divergence
        self.constraint = constraint

    def _arguments(self):
        return np.asarray(self.weights).copy(), self.doubled, self.divergence, self.constraint

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
                self.x = np.concatenate([values, -values]) if self.doubled else values
                self.w = np.array(self.weights)
                x = self.x
                work.x, work.n = &x[0], x.shape[0]
            except BaseException as error:
                self.failure = error
                work.n = 0

    cdef void store(self, Workspace* work) noexcept nogil:
        pass

    cdef void accumulate(self, const Row* row) noexcept nogil:
        self.accumulate_all()

    cdef void project(self, Workspace* work) noexcept nogil:
        if self.constraint is not None:
            with gil:
                try:
                    np.asarray(self.weights)[:] = self.constraint.project(self.divergence, np.array(self.weights))
                except BaseException as error:
                    self.failure = error

    cdef double score(self, w, x):
        """w.x, for signed weights as (w+ - w-).x: exactly 0 where they are equal."""
        return (w[:self.n_features] - w[self.n_features:]) @ x[:self.n_features] if self.doubled else w @ x

    cdef double dot(self, Workspace* work) noexcept nogil:
        with gil, np.errstate(all="ignore"):  # what is not finite is refused by the learner
            try:
                return self.score(np.asarray(self.weights), np.asarray(<const double[:work.n]> work.x))
            except BaseException as error:
                self.failure = self.failure or error
                return NAN

    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil:
        with gil, np.errstate(all="ignore"):  # a step that is looked at may be far beyond the one that is taken
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
                # D(w, w(c)) = c x.(w - w(c)) - D(w(c), w) holds for a w(c) that was kept off the edge of the domain, too
                return -c * (moved @ self.x) - self.divergence.divergence(moved, self.w)
            except BaseException as error:
                self.failure = error
                return NAN

    cdef void step(self, Workspace* work, double c) noexcept nogil:
        with gil:
            try:
                if not isfinite(c):
                    raise ValueError(f"the step c = {c} is not finite")
                np.asarray(self.weights)[:] = self.divergence.step(self.w, self.x, c)
            except BaseException as error:
                self.failure = error


cdef class NumPyLoss(Loss):
    """Any loss, by the methods of a `Loss` object."""

    cdef readonly object definition

    def __cinit__(self, definition):
        self.definition = definition

    def _arguments(self):
        return (self.definition,)

    cdef double ask(self, str method, tuple arguments) noexcept:
        try:
            return getattr(self.definition, method)(*arguments)
        except (KeyboardInterrupt, MemoryError) as error:
            self.interrupt = error
            return NAN
        except Exception:
            return NAN  # the row is refused as one whose prediction is not finite

    cdef double value(self, double a, double y) noexcept nogil:
        with gil:
            return self.ask("value", (a, y))

    cdef double derivative(self, double a, double y) noexcept nogil:
        with gil:
            return self.ask("derivative", (a, y))

    cdef bint next_edge(self, double a, double y, Edge* edge) noexcept nogil:
        with gil:
            try:
                return self._next_edge(a, y, edge)
            except (KeyboardInterrupt, MemoryError) as error:
                self.interrupt = error
            except Exception:  # no step is found, and the row is refused
                pass
            edge.near = NAN
            return True

    cdef bint _next_edge(self, double a, double y, Edge* edge) except -1:
        edges = np.concatenate([np.ravel(self.definition.kinks(y)), np.ravel(self.definition.bends(y))])
        upwards = self.definition.derivative(a, y) < 0
        ahead = edges[edges >= a] if upwards else edges[edges <= a]
        if ahead.size == 0:
            return False
        edge.score = ahead.min() if upwards else ahead.max()
        left, right = self.definition.subdifferential(edge.score, y)
        edge.near, edge.far = (left, right) if upwards else (right, left)
        return True

    cdef double link(self, double a) noexcept nogil:
        with gil:
            return self.ask("link", (a,))

    cdef double curvature(self, double a, double y) noexcept nogil:
        with gil:
            return self.ask("curvature", (a, y))

    cdef double self_concordance(self, double a) noexcept nogil:
        return INFINITY

    cdef bint admits(self, double y) noexcept nogil:
        with gil:
            try:
                self.definition.check_target(y)
            except ValueError:
                return False
            except BaseException as error:
                self.interrupt = error
                return False
            return True
