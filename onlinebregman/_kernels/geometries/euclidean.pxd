from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace


cdef class EuclideanGeometry(Geometry):
    cdef public double radius           # of the ball around 0 that holds the weights
    cdef bint in_place(self, Workspace* work) noexcept nogil
