cdef extern from "ops/entropy.h":
    double ob_sum_log(const double* a, Py_ssize_t n) noexcept nogil
    void ob_entropy_step(double* v, const double* w, const double* e, Py_ssize_t n) noexcept nogil
    double OB_SHORT_REACH
    double ob_entropy_sums(const double* w, const double* x, Py_ssize_t n, bint both,
                           double* square, double* largest) noexcept nogil
    void ob_entropy_moments(const double* w, const double* x, Py_ssize_t n, bint both, double* moment) noexcept nogil
    double ob_entropy_move(double* v, const double* w, const double* x, double c, double reach, Py_ssize_t n,
                           bint both) noexcept nogil
    void ob_product_range(const double* w, const double* x, Py_ssize_t n, double* lo, double* hi) noexcept nogil
    void ob_burg_sums(const double* w, const double* x, double c, Py_ssize_t n,
                      double* dot, double* square) noexcept nogil
    void ob_burg_step(double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_burg_ratios(double* r, const double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    void ob_burg_ratios_near_end(double* r, const double* w, const double* x, double largest, double c,
                               Py_ssize_t n) noexcept nogil
    void ob_quotients(double* v, const double* w, const double* r, Py_ssize_t n) noexcept nogil
    void ob_dot_square(const double* w, const double* x, Py_ssize_t n, double* dot, double* square) noexcept nogil
    double ob_burg_log(const double* w, const double* x, double c, Py_ssize_t n) noexcept nogil
    double ob_burg_mass(const double* w, const double* x, Py_ssize_t n) noexcept nogil
    void ob_binary_moved(double* v, const double* w, const double* e, Py_ssize_t n) noexcept nogil
    void ob_binary_ratios(double* r, const double* w, const double* e, Py_ssize_t n) noexcept nogil
    void ob_binary_sums(const double* w, const double* x, Py_ssize_t n, double* dot, double* square) noexcept nogil
    double ob_sum_outside(const double* w, Py_ssize_t width, Py_ssize_t blocks, const Py_ssize_t* index,
                          Py_ssize_t n) noexcept nogil
    double ob_log_sum_outside(const double* w, const double* depth, Py_ssize_t width, Py_ssize_t blocks,
                              const Py_ssize_t* index, Py_ssize_t n) noexcept nogil
