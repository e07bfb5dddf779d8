from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace


cdef struct Instance:         # X of the loaded row
    double score              # tr(W X)
    # Largest and smallest eigenvalue, hi >= 0 >= lo: of X, of W X (LogDet), or bounds on those of X (von Neumann)
    double hi, lo
    bint prepared             # whether it has been deflated (von Neumann)


cdef class MatrixGeometry(Geometry):
    cdef void split(self, const double* x, double* s, double* t) noexcept nogil
    cdef double balance(self, Workspace* work, double ss, double st, double tt) noexcept nogil


cdef class LogDetGeometry(MatrixGeometry):
    cdef double[::1] cholesky_memory    # allocated when a Cholesky factor is needed
    cdef double* inverse_diagonal(self) noexcept nogil
    cdef double* diagonal(self) noexcept nogil
    cdef void load_triplet(self, Workspace* work) noexcept nogil
    cdef double times(self, Workspace* work, const double* z, double* v) noexcept nogil
    cdef double times_again(self, Workspace* work, const double* z, double* v) noexcept nogil
    cdef void subtract(self, const double* v, double c) noexcept nogil
    cdef void unfold(self, double* matrix) noexcept nogil
    cdef double follow(self, Workspace* work, const double* z, double* v, double square, double c,
                       double scale) noexcept nogil
    cdef void update_inverse_diagonal(self, const double* x, const double* y, double c, double above,
                                      double below) noexcept nogil
    cdef bint refactor(self) noexcept nogil


cdef inline void turn(double* s, double* t, double k, Py_ssize_t n) noexcept nogil:
    """(s, t) <- (k s + t / k) / 2, (k s - t / k) / 2"""
    cdef Py_ssize_t i
    cdef double a, b
    for i in range(n):
        a, b = 0.5 * s[i] * k, 0.5 * t[i] / k
        s[i], t[i] = a + b, a - b
