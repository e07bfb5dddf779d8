cdef extern from "ops/exp.h":
    double ob_exp1(double z) noexcept nogil
    void ob_exp(double* e, const double* x, double c, double shift, Py_ssize_t n) noexcept nogil
    void ob_exp_from(double* e, const double* x, double c, double origin, double shift, Py_ssize_t n) noexcept nogil
    void ob_cosines(double* z, double scale, Py_ssize_t n) noexcept nogil
