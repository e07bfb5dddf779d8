from onlinebregman._kernels.geometries.geometry cimport Geometry
from onlinebregman._kernels.learners.atomic cimport AtomicLearner
from onlinebregman._kernels.learners.descent cimport Descent
from onlinebregman._kernels.learners.rule cimport GradientRate, Rule
from onlinebregman._kernels.learners.snapshot cimport Snapshot
from onlinebregman._kernels.learners.run cimport RunState, Settings


cdef class Learner(AtomicLearner):
    cdef readonly Geometry geometry
    cdef readonly tuple origin  # weights and intercept at which the regret certificate starts; None without one
    cdef readonly RunState run
    cdef Settings settings
    cdef Rule rule
    cdef readonly GradientRate limit  # the rule of update="gradient", kept with all it has seen; None before
    cdef object prediction_model
    cdef Descent descent      # during a call; without a `run` unless its steps are gradient descent, see `is_descent`
    cdef Snapshot before      # the backup from the start of a call

