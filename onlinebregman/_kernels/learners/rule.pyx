"""Step-size rules: the learning rate of each row, of a row of weight 1.

Most know the number of the row only. One that `sees_rows` is asked for `rate` when the row has been predicted: it may
depend on the score, the target and the loss, and may keep a state, which it can undo.
"""

cimport cython
from libc.math cimport NAN, pow

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace
from onlinebregman._kernels.learners.solver cimport Score


cdef Rule rule_of(schedule):
    """The compiled rule of a `Schedule` of `onlinebregman.schedules`."""
    if schedule.sees_norm:
        return PassiveAggressive(schedule.C, schedule.largest, schedule.smoothing)
    if schedule.offset != 0:
        return ShiftedPowerLaw(schedule.scale, schedule.power, schedule.offset)
    if schedule.sees_loss:
        return LossRates(schedule)
    return PowerLaw(schedule.scale, schedule.power) if schedule.is_power_law else OwnRates(schedule)


cdef class Rule:
    """Base class: the contract of step-size rules."""

    def __cinit__(self):
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

    def __reduce__(self):
        return type(self), (self.scale, self.power)

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

    def __reduce__(self):
        return type(self), (self.numerator, self.exponent, self.offset)

    cdef double scheduled(self, double t) noexcept nogil:
        return self.numerator / pow(t + self.offset, self.exponent)


@cython.final
cdef class PassiveAggressive(Rule):
    """min(largest, L / (|x|^2 + smoothing)) for a row of loss L; C where there is none, and no step."""

    cdef double C, largest, smoothing

    def __cinit__(self, double C, double largest, double smoothing):
        self.C, self.largest, self.smoothing, self.sees_rows = C, largest, smoothing, True

    def __reduce__(self):
        return type(self), (self.C, self.largest, self.smoothing)

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

    def __reduce__(self):
        return type(self), (self.schedule,)

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

    def __reduce__(self):
        return type(self), (self.schedule,)

    cdef double rate(self, Geometry geometry, Workspace* work, const Score* score, double t, double y, double weight,
                     double loss) noexcept nogil:
        with gil:
            try:
                return self.schedule.checked_rate(t, loss)
            except BaseException as error:
                self.failure = error
        return NAN
