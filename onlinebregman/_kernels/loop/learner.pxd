cimport cython

from onlinebregman._kernels.loop.descent cimport Clockwork, Settings
from onlinebregman._kernels.geometries.geometry cimport Geometry, Row, Scalars
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.rows.rows cimport Rows
from onlinebregman._kernels.loop.snapshot cimport Snapshot
from onlinebregman._kernels.loop.solver cimport Score


@cython.final
cdef class Mark:
    cdef Settings settings
    cdef Clockwork clockwork
    cdef Scalars state
    cdef tuple armed, origin
    cdef Loss loss
    cdef double upper
    cdef bint averaging
    cdef double[::1] average_sum, stamp
    cdef Py_ssize_t n_rates, n_calls


@cython.final
cdef class Learner:
    cdef readonly Geometry geometry
    cdef public Loss loss     # of the rows of the next call
    cdef readonly tuple origin  # weights and intercept at which the regret certificate starts; None without one
    cdef Clockwork clockwork
    cdef Settings settings
    cdef tuple armed          # (name, value) of the parameters that were validated and are in force
    cdef list rates           # (row number, rate) whenever the adaptive rate had fallen by a tenth
    cdef object prediction_model
    cdef bint plain           # is it gradient descent on the squared loss and no more?
    cdef Snapshot before      # what a call has to put back if a row cannot be learned
    cdef Clockwork clockwork_before
    cdef Scalars state_before
    cdef Py_ssize_t rates_before
    # A call takes all rows or none; so that it can be undone after it has returned, too, what it takes stays at hand.
    cdef long busy            # is a thread learning?
    cdef Py_ssize_t n_marks   # not committed yet
    cdef Py_ssize_t n_calls
    cdef Rows rows
    cdef const Py_ssize_t[::1] order
    cdef Py_ssize_t patience  # how many numbers may be touched before looking for signals
    cdef object interrupt     # the exception by which a signal ended the loop

    cpdef bint in_force(self, dict attributes)
    cdef object _predict(self, Rows rows, bint linked, bint* finite)
    cdef Geometry _model(self)
    cdef int _learn(self, Rows rows, const double* y, const double* weights, const Py_ssize_t* order,
                    Py_ssize_t* failed, double* scores) except -1
    cdef int _claim(self) except -1
    cdef void _release(self) noexcept
    cdef int _begin(self, Rows rows, bint whole) except -1
    cdef int _go_back(self, Rows rows, const Py_ssize_t* order) except -1
    cdef object _interruption(self)
    cdef void _took(self, Rows rows) noexcept
    cdef bint _interrupted(self, Py_ssize_t work) noexcept nogil
    cdef bint _signalled(self) noexcept nogil
    cdef int _loop(self, Rows rows, const double* y, const double* weights, const Py_ssize_t* order, Row* row,
                   Py_ssize_t* failed, double* scores) noexcept nogil
    cdef void _foretell(self, Rows rows, Py_ssize_t k, const double* weights, const Py_ssize_t* order,
                        Row* row) noexcept nogil
    cdef void _ask_for(self, Rows rows, Py_ssize_t i) noexcept nogil
    cdef int _one(self, Row* row, double y, double weight, double* seen) noexcept nogil
    cdef int _end(self) noexcept nogil
    cdef int _row(self, Geometry geometry, Loss loss, Row* row, double y, double weight, double* seen) noexcept nogil
    cdef void _certify(self, Row* row, Score* score, double y, double eta, double c, double gap,
                       double value) noexcept nogil
    cdef double _capped_rate(self, Geometry geometry, Row* row, double eta, double weight,
                             double residual) noexcept nogil


cdef int make_room(Row* row, Py_ssize_t room) except -1
cdef Rows open_rows(X)
cdef Rows plain_rows(X)
cdef object reason(int status)
