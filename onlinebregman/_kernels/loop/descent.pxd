from onlinebregman._kernels.geometries.geometry cimport Geometry
from onlinebregman._kernels.loop.state cimport RunState, Settings
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.rows.rows cimport Row


cdef struct Descent:          # a learner that descends
    RunState* run
    Settings* settings
    double* w
    bint logistic             # on the logistic loss, or on the squared one?


cdef bint is_descent(Geometry geometry, Loss loss, Settings* settings)
cdef int descend(const Descent* learner, const Row* row, double y, double weight, double* prior_score) noexcept nogil
cdef int descend_together(const Descent* learners, Py_ssize_t n, const Row* row, const double* y, bint separate,
                          double weight, double* scores, double* room, Py_ssize_t* refusing) noexcept nogil
