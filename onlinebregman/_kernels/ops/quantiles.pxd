cdef extern from "ops/quantiles.h":
    void ob_move_quantiles(double* q, double unit, double error, const double* rise, const double* fall,
                           const double* least, Py_ssize_t n) noexcept nogil
