cdef extern from "ops/standardize.h":
    const double OB_LIMIT, OB_ENOUGH, OB_LEAST, OB_BLOCK, OB_CLOSE, OB_SMALL
    void ob_standardize(double* z, const double* x, const double* mean, const double* inverse, double limit,
                        double missing, Py_ssize_t n) noexcept nogil
    void ob_limit(double* z, const double* x, const double* mean, const double* deviation, double limit,
                  double missing, Py_ssize_t n) noexcept nogil
    void ob_centre_and_scale(double* z, const double* x, const double* mean, const double* inverse,
                             Py_ssize_t n) noexcept nogil
    bint ob_count(const double* x, double* mean, double* deviation, double* inverse, double* weights, double* moved,
                  double limit, double h, double enough, double least, Py_ssize_t n) noexcept nogil
    void ob_widen(const double* x, double* low, double* high, Py_ssize_t n) noexcept nogil
    void ob_count_close(const double* x, double* deviation, double* inverse, double* weights, double* moved,
                        double* low, double most, Py_ssize_t n) noexcept nogil
    void ob_sparse_standardize(double* z, const double* x, const Py_ssize_t* index, const double* root, double unit,
                               double limit, Py_ssize_t n) noexcept nogil
    void ob_sparse_count(const double* x, const Py_ssize_t* index, double* state, Py_ssize_t n_columns, double limit,
                         double h, Py_ssize_t n) noexcept nogil
