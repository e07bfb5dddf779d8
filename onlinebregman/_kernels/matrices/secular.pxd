cimport cython


cdef struct Rotation:            # a Givens rotation of rows i and j of Q'
    Py_ssize_t i, j
    double c, s


@cython.final
cdef class Secular:
    cdef Py_ssize_t d, n_poles, n_rotations
    cdef Py_ssize_t k             # number of poles that `rho` moves: all, or 0 if it is below rounding
    cdef bint found               # whether the roots for `rho` have been computed
    cdef double rho, largest      # largest: the largest |eigenvalue|
    cdef Py_ssize_t[::1] order, slot
    cdef double[::1] values       # of diag(g) after the rotations
    cdef double[::1] u, pole, v, w, origin, tau, energy, loewner, row
    cdef object kept
    cdef Rotation* rotations

    cdef void deflate(self, const double* g, const double* u) noexcept nogil
    cdef void solve(self, double rho) noexcept nogil
    cdef void check_energies(self, double total) noexcept nogil
    cdef bint nudge(self, double rho) noexcept nogil
    cdef Py_ssize_t place(self, Py_ssize_t i) noexcept nogil
    cdef void write(self, double* g, double* shift) noexcept nogil
    cdef void energies(self, double* x) noexcept nogil
    cdef void find_vectors(self) noexcept nogil
    cdef void eigenvector(self, Py_ssize_t i, double* out) noexcept nogil
    cdef void rotate(self, double* rows, Py_ssize_t n) noexcept nogil
    cdef void change_basis(self, double* x, double* buffer) noexcept nogil
