cdef extern from "ops/quantiles.h":
    void ob_find_radii(double* radii, const double* q, double unit, Py_ssize_t n) noexcept nogil
    void ob_move_quantiles(double* q, const double* radii, double error, const double* rise, const double* fall,
                           const double* least, Py_ssize_t n) noexcept nogil
