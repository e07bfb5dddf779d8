from onlinebregman._kernels.geometries.geometry cimport Geometry
from onlinebregman._kernels.loop.state cimport RunState, Settings
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.rows.rows cimport Row

cdef bint is_descent(Geometry geometry, Loss loss, Settings* settings)
cdef int descend(RunState* run, Settings* settings, double* w, const Row* row, double y, double weight,
                 double* prior_score) noexcept nogil
cdef double descent_step(RunState* run, Settings* settings, double a, double slope, double y, double weight,
                         double* prior_score, int* status) noexcept nogil
