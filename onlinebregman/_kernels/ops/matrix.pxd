cdef extern from "ops/matrix.h":
    enum:
        OB_PART
        OB_PANEL
    void ob_times_one(const double* w, const double* z, double* y, double* t, Py_ssize_t d) noexcept nogil
    void ob_times(const double* w, const double* z, double* y, Py_ssize_t k, Py_ssize_t d, double* t) noexcept nogil
    void ob_correct(double* y, const double* v, const double* s, const double* z, Py_ssize_t m,
                    Py_ssize_t d) noexcept nogil
    void ob_update(double* w, const double* v, const double* s, Py_ssize_t m, Py_ssize_t d, double* t) noexcept nogil
    void ob_take_squares(double* w, const double* v, double c, Py_ssize_t n) noexcept nogil
    bint ob_any_below(const double* w, const double* first, double part, Py_ssize_t n) noexcept nogil
    double ob_inverse_diagonal(double* q, const double* w, const double* x, const double* y, double c, Py_ssize_t n,
                               double* size) noexcept nogil
