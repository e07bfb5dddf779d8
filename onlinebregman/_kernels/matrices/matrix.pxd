from onlinebregman._kernels.geometries.geometry cimport Geometry, Row


cdef class MatrixGeometry(Geometry):
    cdef void split(self, Row* row, double* s, double* t) noexcept nogil
    cdef double balance(self, Row* row, double ss, double st, double tt) noexcept nogil


cdef class LogDetGeometry(MatrixGeometry):
    cdef double[::1] examined           # room for a Cholesky factor, once it is needed
    cdef double* inverse_diagonal(self) noexcept nogil
    cdef double* diagonal(self) noexcept nogil
    cdef void load_triplet(self, Row* row) noexcept nogil
    cdef double times(self, Row* row, const double* z, double* v) noexcept nogil
    cdef double times_again(self, Row* row, const double* z, double* v) noexcept nogil
    cdef void take(self, const double* v, double c) noexcept nogil
    cdef void unfold(self, double* matrix) noexcept nogil
    cdef double follow(self, Row* row, const double* z, double* v, double square, double c,
                       double scale) noexcept nogil
    cdef void trust(self, const double* x, const double* y, double c, double above, double below) noexcept nogil
    cdef bint examine(self) noexcept nogil


cdef inline void turn(double* s, double* t, double k, Py_ssize_t n) noexcept nogil:
    """(s, t) <- (k s + t / k) / 2, (k s - t / k) / 2"""
    cdef Py_ssize_t i
    cdef double a, b
    for i in range(n):
        a, b = 0.5 * s[i] * k, 0.5 * t[i] / k
        s[i], t[i] = a + b, a - b
