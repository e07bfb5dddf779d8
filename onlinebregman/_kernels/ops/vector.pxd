cdef extern from "ops/vector.h":
    Py_ssize_t OB_LANES
    void OB_PREFETCH(const void* p) noexcept nogil
    double OB_TINY
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    double ob_dot_signed(const double* a, const double* b, const double* x, Py_ssize_t n) noexcept nogil
    double ob_dot_and_square(const double* w, const double* x, Py_ssize_t n, double* square) noexcept nogil
    void ob_axpy(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_scale_positive(double* w, double c, Py_ssize_t n) noexcept nogil
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil
    double ob_sum(const double* a, Py_ssize_t n) noexcept nogil
    void ob_range(const double* a, Py_ssize_t n, double* lo, double* hi) noexcept nogil
    void ob_multiply(double* p, const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_accumulate(double* total, double* stamp, const double* w, double clock, Py_ssize_t n) noexcept nogil
    void ob_clip(double* w, double upper, Py_ssize_t n) noexcept nogil
    double ob_symv(const double* a, const double* z, double* v, Py_ssize_t n) noexcept nogil
    void ob_syr(double* a, const double* v, double c, Py_ssize_t n) noexcept nogil
