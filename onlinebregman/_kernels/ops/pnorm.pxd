cdef extern from "ops/pnorm.h":
    double ob_pow(double x, double y) noexcept nogil
    void ob_power(double* v, const double* theta, double inverse, double exponent, Py_ssize_t n) noexcept nogil
    void ob_power_sums(const double* theta, const double* v, const double* x, double inverse, Py_ssize_t n,
                       double* dot, double* square) noexcept nogil
    double ob_power_total(const double* theta, double inverse, double p, Py_ssize_t n) noexcept nogil
