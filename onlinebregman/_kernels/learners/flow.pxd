from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace
from onlinebregman._kernels.learners.solver cimport Score
from onlinebregman._kernels.losses.loss cimport Loss

cdef double importance_step(Geometry geometry, Loss loss, Workspace* work, Score* score, double eta,
                            double y) noexcept nogil
