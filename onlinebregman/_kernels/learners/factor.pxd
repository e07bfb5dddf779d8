cdef enum:
    BATCH = 4                 # number of rows that are rotated in together

cdef double least_pivot(double alpha) noexcept nogil
cdef void start_factor(double* r, Py_ssize_t d, Py_ssize_t m, double alpha) noexcept nogil
cdef void rotate_rows(double* r, Py_ssize_t d, Py_ssize_t m, double* z, double* weight, Py_ssize_t n,
                      double gamma, double least) noexcept nogil
cdef bint rotate_row(double* rotated, const double* r, Py_ssize_t d, Py_ssize_t m, double* z, double* weight,
                     double gamma, double least) noexcept nogil
cdef void reduce_rows(const double* r, Py_ssize_t d, Py_ssize_t m, double* z, double* share, Py_ssize_t n,
                      double gamma, double least) noexcept nogil
cdef void solve_factor(const double* r, Py_ssize_t d, Py_ssize_t m, double* w) noexcept nogil
cdef void free_coordinate(double* r, Py_ssize_t d, Py_ssize_t m, Py_ssize_t j, double* z) noexcept nogil
