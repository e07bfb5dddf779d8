cdef extern from "ops/forward.h":
    void ob_rotate(double* r, double* z, double x, double keep, double gain, Py_ssize_t n) noexcept nogil
    bint ob_rotate_into(double* rotated, const double* r, double* z, double x, double keep, double gain,
                        Py_ssize_t n) noexcept nogil
    void ob_rotate4(double* r, double* z, Py_ssize_t stride, const double* x, const double* keep, const double* gain,
                    Py_ssize_t n) noexcept nogil
    bint ob_differs(const double* z, const double* mean, const double* prior, Py_ssize_t n) noexcept nogil
    void ob_centre(double* z, const double* mean, const double* prior, Py_ssize_t n) noexcept nogil
    void ob_centre_limited(double* z, const double* x, const double* centre, const double* mean,
                           const double* deviation, const double* moved, double limit, double most, double missing,
                           Py_ssize_t n) noexcept nogil
    double ob_prior(double scatter, double mean, double alpha, double total) noexcept nogil
    bint ob_centre_and_count(double* z, double* mean, double* scatter, double* prior, double gamma, double share,
                             double h, double rate, double constant, double total, Py_ssize_t n) noexcept nogil
    double ob_turn(double* u, double* move, double* gain, const double* d, const double* x, const Py_ssize_t* index,
                   Py_ssize_t m, Py_ssize_t one, double* v, double* buffer, Py_ssize_t n, bint measured) noexcept nogil
    double ob_leverage(const double* u, const double* move, const double* gain, const double* d, const double* x,
                       const Py_ssize_t* index, Py_ssize_t m, Py_ssize_t one, Py_ssize_t n) noexcept nogil
    double ob_bierman(double* d, double* f, const double* b, double* e, double h, double gamma, double most,
                      Py_ssize_t n) noexcept nogil
