"""Step-size rules: the learning rate of each row, of a row of weight 1.

Most know the number of the row only. One that `sees_rows` is asked for `rate` when the row has been predicted: it may
depend on the score, the target and the loss, and may keep a state, which it can undo.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, pow

from onlinebregman._kernels.geometries.entropy import BurgGeometry
from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace
from onlinebregman._kernels.learners.solver cimport Score
from onlinebregman._kernels.matrices.matrix_burg cimport DualInstance, MatrixBurgGeometry
from onlinebregman._kernels.ops.entropy cimport ob_burg_mass
from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.ops.vector cimport ob_dot, ob_range


cdef Rule rule_of(schedule):
    """The compiled rule of a `Schedule` of `onlinebregman.schedules`."""
    if schedule.sees_norm:
        return PassiveAggressive(schedule.C, schedule.largest, schedule.smoothing)
    if schedule.offset != 0:
        return ShiftedPowerLaw(schedule.scale, schedule.power, schedule.offset)
    if schedule.sees_loss:
        return LossRates(schedule)
    return PowerLaw(schedule.scale, schedule.power) if schedule.is_power_law else OwnRates(schedule)


cdef class Rule(Stateful):
    """Base class: the contract of step-size rules."""

    def __cinit__(self, *arguments, **more):
        self.scale = self.power = NAN

    def next_rate(self, double t):
        """The rate of row t, as far as it is known before the row."""
        return self.scheduled(t)

    cdef int begin(self, double t, Py_ssize_t n) except -1:
        """Called before n rows, from the t-th on; back up the state."""
        self.failure = None
        return 0

    cdef void undo(self) noexcept:
        """Restore what `begin` has backed up."""

    cdef double scheduled(self, double t) noexcept nogil:
        """The rate of row t; NaN if the rule must see the row."""
        return NAN

    cdef double rate(self, Geometry geometry, Workspace* work, const Score* score, double t, double y, double weight,
                     double loss) noexcept nogil:
        """The rate of row t, which the workspace holds, with its score, target, weight and loss (that of weight 1).

        -1 if the step is not defined for the row. NaN if there is no rate, because it underflows or with a `failure`.
        """
        return scheduled_rate(self, t)


@cython.final
cdef class PowerLaw(Rule):
    """scale / t^power, the rates of the package's schedules."""

    def __cinit__(self, double scale, double power):
        self.scale, self.power = scale, power

    def next_rate(self, double t):
        return scheduled_rate(self, t)

    cdef double scheduled(self, double t) noexcept nogil:
        return self.scale / pow(t, self.power)


@cython.final
cdef class ShiftedPowerLaw(Rule):
    """scale / (t + offset)^power."""

    cdef double numerator, exponent, offset

    def __cinit__(self, double scale, double power, double offset):
        self.numerator, self.exponent, self.offset = scale, power, offset

    cdef double scheduled(self, double t) noexcept nogil:
        return self.numerator / pow(t + self.offset, self.exponent)


@cython.final
cdef class PassiveAggressive(Rule):
    """min(largest, L / (|x|^2 + smoothing)) for a row of loss L; C where there is none, and no step."""

    cdef double C, largest, smoothing

    def __cinit__(self, double C, double largest, double smoothing):
        self.C, self.largest, self.smoothing, self.sees_rows = C, largest, smoothing, True

    cdef double rate(self, Geometry geometry, Workspace* work, const Score* score, double t, double y, double weight,
                     double loss) noexcept nogil:
        cdef double a, square
        if loss == 0:
            return self.C
        geometry.evaluate(work, 0.0, &a, &square)
        return min(self.largest, loss / (square + self.smoothing))


@cython.final
cdef class OwnRates(Rule):
    """The rates of a `Schedule` of the user's own, which is called once for all rows of a call."""

    cdef object schedule
    cdef const double[::1] listed  # rates of the rows from t on
    cdef double t

    def __cinit__(self, schedule):
        self.schedule = schedule

    def next_rate(self, double t):
        return self.schedule.rates(t, 1)[0]

    cdef int begin(self, double t, Py_ssize_t n) except -1:
        self.listed, self.t = self.schedule.rates(t, n), t
        if self.listed.shape[0] != n:
            raise ValueError(f"{self.schedule!r} must give {n} rates for {n} rows; got {self.listed.shape[0]}")
        return 0

    cdef double scheduled(self, double t) noexcept nogil:
        return self.listed[<Py_ssize_t> (t - self.t)]


@cython.final
cdef class LossRates(Rule):
    """The rates of a `LossSchedule` of the user's own, which is called for each row with its loss."""

    cdef object schedule

    def __cinit__(self, schedule):
        self.schedule, self.sees_rows = schedule, True

    cdef double rate(self, Geometry geometry, Workspace* work, const Score* score, double t, double y, double weight,
                     double loss) noexcept nogil:
        with gil:
            try:
                return self.schedule.checked_rate(t, loss)
            except BaseException as error:
                self.failure = error
        return NAN


# A step goes at most this fraction of the way to the bound, measured in N^-1 = W^-1 - I.
cdef double STRICTLY_INSIDE = 0.9


cdef GradientRate gradient_rate(Geometry geometry, Rule schedule):
    """The rule of a geometry for the Burg gradient."""
    if isinstance(geometry, MatrixBurgGeometry):
        return MatrixBurgRate(schedule)
    if isinstance(geometry, BurgGeometry):
        return BurgRate(schedule)
    raise ValueError(f"update='gradient' is for the geometries of JKD07; got a {type(geometry).__name__}")


cdef GradientRate limited(Geometry geometry, GradientRate limit, Rule schedule, double sum_bound):
    """The same, with what the one before, if there was one, has seen."""
    cdef GradientRate rule = gradient_rate(geometry, schedule)
    if limit is not None:
        rule.state, rule.history = limit.state, list(limit.history)
    rule.state.sum_bound = sum_bound
    return rule


cdef class GradientRate(Rule):
    """The rates of the Burg gradient (JKD07), for explicit steps on the squared loss: they never increase.

    Each row has a largest rate, its `cap`, which a subclass defines: with it the proof of the loss bound holds, see
    docs/regret.rst.

    Parameters
    ----------
    schedule : Rule
        An upper bound on the rates.
    """

    def __cinit__(self, Rule schedule not None, dict state=None):
        self.schedule, self.history = schedule, list(self.given.pop("history", ()))
        self.sees_rows, self.state.rate, self.state.noted, self.n_before = True, INFINITY, INFINITY, -1
        self.fields.add("rates", &self.state, sizeof(self.state), tuple(self.state))

    def get_state(self):
        """See `Stateful`."""
        return {**self.fields.values(), "history": list(self.history)}

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
        self.n_before = len(self.history)
        self.fields.save()
        return self.schedule.begin(t, n)

    cdef void undo(self) noexcept:
        if self.n_before >= 0:  # the call has begun
            self.schedule.undo()
            self.fields.restore()
            del self.history[self.n_before:]

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
