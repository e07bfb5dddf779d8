cdef extern from "ops/standardize.h":
    void ob_standardize(double* z, const double* x, const double* mean, const double* root, double unit, double limit,
                        Py_ssize_t n) noexcept nogil
    void ob_centre_and_scale(double* z, const double* x, const double* mean, const double* root, double unit,
                             Py_ssize_t n) noexcept nogil
    void ob_standardize_and_count(double* z, const double* x, double* mean, double* squares, double* root, double unit,
                                  double limit, double h, double share, double total, double least,
                                  Py_ssize_t n) noexcept nogil
    void ob_zero_missing(double* z, const double* x, Py_ssize_t n) noexcept nogil
    void ob_standardize_present(double* z, const double* x, const double* mean, const double* root,
                                const double* weights, double limit, Py_ssize_t n) noexcept nogil
    void ob_standardize_and_count_present(double* z, const double* x, double* mean, double* squares, double* root,
                                          double* weights, double limit, double h, double least,
                                          Py_ssize_t n) noexcept nogil
    void ob_sparse_standardize(double* z, const double* x, const Py_ssize_t* index, const double* root, double unit,
                               double limit, Py_ssize_t n) noexcept nogil
    void ob_sparse_count(const double* x, const Py_ssize_t* index, double* squares, double* root, double h,
                         Py_ssize_t n) noexcept nogil
