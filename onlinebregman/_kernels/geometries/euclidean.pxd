from onlinebregman._kernels.geometries.geometry cimport Geometry


cdef class EuclideanGeometry(Geometry):
    cdef public double radius           # of the ball around 0 that holds the weights
