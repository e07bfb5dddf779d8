from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.matrices.matrix cimport Instance, LogDetGeometry


cdef struct DualInstance:     # X of the loaded row
    Instance primal
    double dual               # z'Nz
    double dual_square        # |N z|^2


cdef class MatrixBurgGeometry(LogDetGeometry):
    cdef double[::1] memory
    cdef double n_projected   # number of rows whose step was projected
    cdef double steps         # since N was recomputed

    cdef double* dual(self) noexcept nogil
    cdef void refresh(self) noexcept nogil
    cdef bint stays(self, Workspace* work, double c) noexcept nogil
    cdef void project_step(self, Workspace* work, double c) noexcept nogil
