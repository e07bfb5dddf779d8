cdef extern from "ops/quantiles.h":
    void ob_find_radii(double* radii, const double* q, const double* excess, const double* spread, double root,
                       double step, const double* wider, double unit, double most, Py_ssize_t n) noexcept nogil
    Py_ssize_t ob_move_quantiles(double* q, double* excess, const double* radii, double error, const double* levels,
                                 const double* rates, double rate, double step, const double* spread, double root,
                                 const double* least, Py_ssize_t n) noexcept nogil
