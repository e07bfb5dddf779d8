cdef extern from "ops/spectral.h":
    Py_ssize_t OB_SPARE
    void ob_close_poles(double* pole, double* w, Py_ssize_t k, double total) noexcept nogil
    void ob_secular(const double* pole, const double* w, Py_ssize_t k, double growth, double* origin, double* tau,
                    double* energy) noexcept nogil
    void ob_loewner(const double* pole, const double* u, Py_ssize_t k, const double* origin, const double* tau,
                    double* v) noexcept nogil
    void ob_eigenvector(const double* pole, const double* v, Py_ssize_t k, double origin, double tau,
                        double* out) noexcept nogil
    void ob_rotate_pair(double* a, double* b, double c, double s, Py_ssize_t n) noexcept nogil
    double ob_mean_square(const double* g, const double* p, const double* q, const double* x, Py_ssize_t vectors,
                          Py_ssize_t positive, Py_ssize_t stride, Py_ssize_t n) noexcept nogil
    double ob_weighted_square(const double* p, const double* u, Py_ssize_t n) noexcept nogil
    void ob_gather_dot(const double* a, const Py_ssize_t* index, const double* z, Py_ssize_t nonzeros, Py_ssize_t n,
                       double* out) noexcept nogil
