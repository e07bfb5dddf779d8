from libc.math cimport sqrt

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace
from onlinebregman._kernels.learners.solver cimport Score
from onlinebregman._kernels.ops.state cimport Stateful


cdef class Rule(Stateful):
    cdef double scale, power  # of rates scale / t^power; NaN otherwise
    cdef readonly bint sees_rows   # whether rates depend on rows: `rate` knows them, and not `scheduled`
    cdef readonly object failure   # the exception that a rule in Python raised

    cdef int begin(self, double t, Py_ssize_t n) except -1
    cdef void undo(self) noexcept
    cdef double scheduled(self, double t) noexcept nogil
    cdef double rate(self, Geometry geometry, Workspace* work, const Score* score, double t, double y, double weight,
                     double loss) noexcept nogil


cdef class PowerLaw(Rule):
    pass


cdef Rule rule_of(schedule)


cdef inline double scheduled_rate(Rule rule, double t) noexcept nogil:
    """The rate of row t by a rule that does not see rows; inlined for the package's schedules."""
    if rule.power == 0:
        return rule.scale
    if rule.power == 0.5:
        return rule.scale / sqrt(t)
    if rule.power == 1:
        return rule.scale / t
    return rule.scheduled(t)


cdef struct RateState:
    double radius             # the largest |x| so far: of a value, or the squared norm of an instance
    double mass               # the largest sum of weights where a row is not 0
    double sum_bound          # a given lower bound on what is taken for that sum
    double rate               # the last one
    double noted              # the last one in the history
    double first_rate


cdef class GradientRate(Rule):
    cdef Rule schedule        # an upper bound on the rates
    cdef RateState state
    cdef list history         # (row number, rate) whenever the rate had fallen by a tenth
    cdef Py_ssize_t n_before

    cdef double cap(self, Geometry geometry, Workspace* work, double residual, double intercept_xSx) noexcept nogil


cdef GradientRate gradient_rate(Geometry geometry, Rule schedule)
cdef GradientRate limited(Geometry geometry, GradientRate limit, Rule schedule, double sum_bound)
