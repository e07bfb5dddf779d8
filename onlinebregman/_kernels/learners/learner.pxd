cimport cython

from onlinebregman._kernels.geometries.geometry cimport Geometry
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Savepoint
from onlinebregman._kernels.learners.descent cimport Descent
from onlinebregman._kernels.learners.rule cimport GradientRate, RateState, Rule
from onlinebregman._kernels.learners.snapshot cimport Snapshot
from onlinebregman._kernels.learners.state cimport RunState, Settings
from onlinebregman._kernels.losses.loss cimport Loss


@cython.final
cdef class LearnerSavepoint(Savepoint):
    cdef Settings settings
    cdef RunState run
    cdef bytes state          # of the geometry
    cdef tuple origin
    cdef Rule rule
    cdef GradientRate limit
    cdef Rule schedule        # of `limit`, with its state and the length of its history
    cdef RateState limit_state
    cdef Py_ssize_t n_falls
    cdef Loss loss
    cdef double upper
    cdef bint averaging
    cdef double[::1] average_sum, stamp
    cdef Py_ssize_t per_feature


cdef class Learner(AtomicLearner):
    cdef readonly Geometry geometry
    cdef public Loss loss     # used by the next call
    cdef readonly tuple origin  # weights and intercept at which the regret certificate starts; None without one
    cdef readonly RunState run
    cdef Settings settings
    cdef Rule rule
    cdef readonly GradientRate limit  # the rule of update="gradient", kept with all it has seen; None before
    cdef object prediction_model
    cdef bint descends        # whether it makes gradient descent steps, see `is_descent`
    cdef Descent descent      # valid during a call
    cdef Snapshot before      # the backup from the start of a call

    cdef int check_rule(self) except -1
    cdef double current_intercept(self) noexcept nogil
    cdef Geometry model(self, bint dense)
