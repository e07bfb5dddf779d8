cdef extern from "ops/adaptive_penalty.h":
    double ob_reciprocal(double g, double r, int prior) noexcept nogil
    double ob_flow(double w, double t, double l1, double l2) noexcept nogil
    void ob_shrink(double* w, const double* g, const double* r, int prior, const double* t, double l1, double l2,
                   Py_ssize_t n) noexcept nogil
