from onlinebregman._kernels._geometry cimport Geometry, Row, Scalars
from onlinebregman._kernels._loss cimport Loss
from onlinebregman._kernels._rows cimport Rows
from onlinebregman._kernels._snapshot cimport Snapshot
from onlinebregman._kernels._solver cimport Score


cdef enum Update:
    EXPLICIT
    IMPLICIT
    IMPORTANCE
    GRADIENT


cdef enum Status:
    LEARNED
    NOT_FINITE      # the row's prediction is not finite
    BAD_TARGET      # the loss does not admit the target
    LEFT_DOMAIN     # the explicit step leaves the geometry's domain
    NEGATIVE        # the papers' gradient step needs x >= 0 and y >= 0
    OVERFLOWED      # the step or the weights are not finite any more
    BLOCKED         # the geometry has to move all weights, and they are not all backed up
    FAILED          # a geometry in Python raised an exception


cdef struct Settings:
    int update
    bint fit_intercept
    bint track_regret
    double rate_scale         # rate of row t: rate_scale / t^rate_power
    double rate_power
    double average_from       # the row from which weights are averaged


cdef struct Clockwork:        # the learner's state beside its geometry
    double t                  # rows learned
    double intercept
    double intercept_sum      # averaging
    double averaged           # steps averaged over
    double loss               # cumulative loss, each row's taken before it was learned
    double moves              # rows that moved the weights
    double weighted_loss      # regret certificate: the sum of eta L
    double slack              # and S of its inequality


cdef class Learner:
    cdef readonly Geometry geometry
    cdef readonly Loss loss
    cdef readonly tuple origin  # weights and intercept at which the regret certificate starts; None without one
    cdef Clockwork clockwork
    cdef Settings settings
    cdef tuple armed          # (name, value) of the parameters that were validated and are in force
    cdef list rates           # (row number, rate) whenever the adaptive rate changed
    cdef object prediction_model
    cdef Snapshot before      # what a call has to put back if a row cannot be learned
    cdef Clockwork clockwork_before
    cdef Scalars state_before
    cdef Py_ssize_t rates_before

    cpdef bint in_force(self, dict attributes)
    cdef object _predict(self, Rows rows, bint linked, bint* finite)
    cdef Geometry _model(self)
    cdef int _learn(self, Rows rows, const double* y, const double* weights, const Py_ssize_t* order,
                    Py_ssize_t* failed, double* scores) except -1
    cdef int _begin(self, Rows rows, bint whole) except -1
    cdef int _go_back(self) except -1
    cdef int _loop(self, Rows rows, const double* y, const double* weights, const Py_ssize_t* order, Row* row,
                   Py_ssize_t* failed, double* scores) noexcept nogil
    cdef int _row(self, Geometry geometry, Loss loss, Row* row, double y, double weight, double* seen) noexcept nogil
    cdef double _slack(self, Row* row, Score* score, double y, double eta, double c, double gap,
                       double value) noexcept nogil
    cdef double _rate(self, double t) noexcept nogil
    cdef double _capped_rate(self, Geometry geometry, Row* row, double eta, double weight,
                             double residual) noexcept nogil


cdef int make_room(Row* row, Py_ssize_t room) except -1
cdef Rows open_rows(X)
cdef Rows plain_rows(X)
cdef object reason(int status)
