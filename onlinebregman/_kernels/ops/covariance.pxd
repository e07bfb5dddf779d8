cdef extern from "ops/covariance.h":
    enum: OB_LAG
    void ob_symmetric_product(const double* p, const double* x, double* v, Py_ssize_t n) noexcept nogil
    void ob_subtract_squares(double* p, const double* v, double scale, Py_ssize_t n) noexcept nogil
