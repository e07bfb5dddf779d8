"""The rates of the Burg gradient (JKD07), for explicit steps on the squared loss: they never increase.

Each row has a largest rate, its `cap`, with which the proof of the loss bound holds; see docs/regret.rst.
"""

cimport cython
from libc.math cimport INFINITY, NAN

import numpy as np

from onlinebregman._kernels.geometries.burg cimport BurgGeometry
from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace
from onlinebregman._kernels.learners.rule cimport Rule, scheduled_rate
from onlinebregman._kernels.learners.solver cimport Score
from onlinebregman._kernels.matrices.matrix_burg cimport DualInstance, MatrixBurgGeometry
from onlinebregman._kernels.ops.entropy cimport ob_burg_mass
from onlinebregman._kernels.ops.vector cimport ob_dot, ob_range

# A step goes at most this fraction of the way to the bound, measured in N^-1 = W^-1 - I.
cdef double STRICTLY_INSIDE = 0.9


cdef GradientRate gradient_rate(Geometry geometry, Rule schedule):
    """The rule of a geometry."""
    if isinstance(geometry, MatrixBurgGeometry):
        return MatrixBurgRate(schedule)
    if isinstance(geometry, BurgGeometry):
        return BurgRate(schedule)
    raise ValueError(f"update='gradient' is for the geometries of JKD07; got a {type(geometry).__name__}")


cdef class GradientRate(Rule):
    """Base class; a subclass defines `cap`.

    Parameters
    ----------
    schedule : Rule
        An upper bound on the rates.
    state : dict, default=None
        That of another rule to continue from, with its history.
    history : list, default=()
    """

    def __cinit__(self, Rule schedule not None, state=None, history=()):
        self.schedule, self.history, self.sees_rows = schedule, list(history), True
        if state is not None:
            self.state = state
        else:
            self.state.rate = self.state.noted = INFINITY

    def __reduce__(self):
        return type(self), (self.schedule, self.state, list(self.history))

    @property
    def sum_bound(self):
        """A lower bound on what the rate takes for the sum of the weights."""
        return self.state.sum_bound

    @sum_bound.setter
    def sum_bound(self, double bound):
        self.state.sum_bound = bound

    @property
    def range(self):
        """The first rate, which is the largest, and the last, the smallest; (0, inf) before the first."""
        return self.state.first_rate, self.state.rate

    @property
    def falls(self):
        """(row number, rate) where the rate had fallen by a tenth since the last entry."""
        return np.array(self.history, dtype=np.float64).reshape(-1, 2)

    def next_rate(self, double t):
        return min(self.schedule.next_rate(t), self.state.rate)

    cdef int begin(self, double t, Py_ssize_t n) except -1:
        Rule.begin(self, t, n)
        self.schedule.begin(t, n)
        self.before, self.n_before = self.state, len(self.history)
        return 0

    cdef void undo(self) noexcept:
        self.schedule.undo()
        self.return_to(self.before, self.n_before)

    cdef void return_to(self, RateState state, Py_ssize_t n) noexcept:
        """Return to an earlier state, when the history had n entries."""
        self.state = state
        del self.history[n:]

    cdef double cap(self, Geometry geometry, Workspace* work, double residual, double intercept_xSx) noexcept nogil:
        """The largest rate of a row of residual a - y; -1 where the step is not defined.

        `intercept_xSx` is 1 if an intercept moves with the weights, else 0.
        """
        return INFINITY

    cdef double rate(self, Geometry geometry, Workspace* work, const Score* score, double t, double y, double weight,
                     double loss) noexcept nogil:
        cdef double cap = self.cap(geometry, work, score.a - y, score.intercept_xSx), eta
        if cap < 0 or y < 0:
            return -1.0
        if self.schedule.sees_rows:
            eta = self.schedule.rate(geometry, work, score, t, y, weight, loss)
            if self.schedule.failure is not None:
                with gil:
                    self.failure = self.schedule.failure
                return NAN
        else:
            eta = scheduled_rate(self.schedule, t)
        eta = min(eta, self.state.rate)
        if cap / weight < eta:
            eta = cap / weight
            if eta <= 0.9 * self.state.noted:  # a factor of 0.9 limits the history to some thousand entries
                self.state.noted = eta
                with gil:
                    self.history.append((t, eta))
        self.state.rate = eta
        if self.state.first_rate == 0 and cap < INFINITY:  # a row of zeros does not limit the rate
            self.state.first_rate = eta
        return eta if eta > 0 else NAN  # it would stay 0


@cython.final
cdef class BurgRate(GradientRate):
    """Algorithm 1: 1 / (2 m B R^2), with B the geometry's `upper`.

    R and m are running maxima: of the features, and of the sum of the weights where a row is not 0. An intercept is one
    more coordinate, of curvature 1: 1 / (2 (m B R^2 + 1)).
    """

    cdef double cap(self, Geometry geometry, Workspace* work, double residual, double intercept_xSx) noexcept nogil:
        cdef double lo = 0.0, hi = 0.0, steepness
        ob_range(work.x, work.n, &lo, &hi)
        if lo < 0:
            return -1.0
        self.state.radius = max(self.state.radius, hi)
        self.state.mass = max(self.state.mass, ob_burg_mass(work.w, work.x, work.n))
        steepness = max(self.state.mass, self.state.sum_bound) * geometry.upper * self.state.radius * self.state.radius
        steepness += intercept_xSx
        return 0.5 / steepness if steepness > 0 else INFINITY


@cython.final
cdef class MatrixBurgRate(GradientRate):
    """Algorithm 2: 1 / (2 R^4) with R the largest norm(z) so far, and where W grows, the rate that keeps it below I."""

    cdef double cap(self, Geometry geometry, Workspace* work, double residual, double intercept_xSx) noexcept nogil:
        cdef DualInstance* instance = <DualInstance*> work.notes
        cdef double cap
        self.state.radius = max(self.state.radius, ob_dot(work.x, work.x, geometry.n_features))
        if self.state.radius == 0:
            return INFINITY
        cap = 1.0 / (2.0 * self.state.radius * self.state.radius)
        if residual < 0 and instance.dual > 0 and not (<MatrixBurgGeometry> geometry).stays(work, residual):
            cap = min(cap, STRICTLY_INSIDE / (-residual * instance.dual))
        return cap
