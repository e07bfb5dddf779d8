from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace


cdef class BurgGeometry(Geometry):
    cdef void ratios(self, Workspace* work, double c, double* r) noexcept nogil
