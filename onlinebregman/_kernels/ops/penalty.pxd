cdef extern from "ops/penalty.h":
    double ob_soft_threshold(double w, double l1) noexcept nogil
    void ob_soft_threshold_row(double* w, const double* stamp, const Py_ssize_t* index, double l1, double l2,
                               Py_ssize_t n) noexcept nogil
    void ob_soft_thresholds(double* w, double l1, Py_ssize_t n) noexcept nogil
    void ob_soft_thresholds_and_ridge(double* w, double l1, double l2, Py_ssize_t n) noexcept nogil
    double ob_entropy_ridge(double w, double l2) noexcept nogil
    double ob_binary_ridge(double w, double l1, double l2) noexcept nogil
