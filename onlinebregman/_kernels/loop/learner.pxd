cimport cython

from onlinebregman._kernels.geometries.geometry cimport Geometry, GeometryState
from onlinebregman._kernels.loop.atomic cimport AtomicLearner, Savepoint
from onlinebregman._kernels.loop.descent cimport Descent
from onlinebregman._kernels.loop.snapshot cimport Snapshot
from onlinebregman._kernels.loop.state cimport RunState, Settings
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.rows.rows cimport Rows


@cython.final
cdef class LearnerSavepoint(Savepoint):
    cdef Settings settings
    cdef RunState run
    cdef GeometryState state
    cdef tuple origin
    cdef object schedule
    cdef Loss loss
    cdef double upper
    cdef bint averaging
    cdef double[::1] average_sum, stamp, depth
    cdef Py_ssize_t n_rates
    cdef Py_ssize_t per_feature


cdef class Learner(AtomicLearner):
    cdef readonly Geometry geometry
    cdef public Loss loss     # used by the next call
    cdef readonly tuple origin  # weights and intercept at which the regret certificate starts; None without one
    cdef RunState run
    cdef Settings settings
    cdef object schedule      # the user's own, or None
    cdef const double[::1] own_rates  # of the rows of a call, by that schedule
    cdef list rates           # (row number, rate) whenever the adaptive rate had fallen by a tenth
    cdef object prediction_model
    cdef bint descends        # whether it makes gradient descent steps, see `is_descent`
    cdef Descent descent      # valid during a call
    cdef Snapshot before      # the backup from the start of a call
    cdef RunState run_before
    cdef GeometryState state_before
    cdef Py_ssize_t rates_before

    cdef int list_rates(self, Py_ssize_t n) except -1
    cdef object predict_rows(self, Rows rows, bint linked, bint* finite)
    cdef Geometry model(self, bint dense)
