cdef extern from "ops/logistic.h":
    Py_ssize_t OB_LOCKSTEP
    double ob_softplus(double a) noexcept nogil
    # of ln(1 + e^a) - y a
    void ob_logistic_derivatives(double a, double y, double* slope, double* curvature) noexcept nogil
    double ob_logistic_step(double start, double xSx, double eta, double y, double slope,
                            double curvature) noexcept nogil
    void ob_logistic_steps(double* c, const double* start, const double* xSx, const double* eta, const double* y,
                           const double* slope, const double* curvature, Py_ssize_t n) noexcept nogil
    void ob_logistic_losses(double* value, double* slope, double* curvature, const double* a, const double* y,
                            Py_ssize_t n) noexcept nogil
