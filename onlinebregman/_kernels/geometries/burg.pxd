from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace


cdef class BurgGeometry(Geometry):
    cdef double confined_to   # the upper bound that all weights are known to satisfy
    cdef void ratios(self, Workspace* work, double c, double* r) noexcept nogil
