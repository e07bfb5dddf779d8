from libc.stdint cimport int32_t

cdef extern from "ops/row.h":
    double ob_sparse_dot(const double* w, const Py_ssize_t* index, const double* x, Py_ssize_t n) noexcept nogil
    double ob_gathered_dot(const double* w, const double* x, Py_ssize_t n) noexcept nogil
    void ob_sparse_axpy(double* w, const Py_ssize_t* index, const double* x, double c, Py_ssize_t n) noexcept nogil
    double ob_average_dot(const double* total, const double* stamp, const double* w, double clock, const double* x,
                          Py_ssize_t n) noexcept nogil
    void ob_gather(double* v, const double* w, const Py_ssize_t* index, Py_ssize_t n) noexcept nogil
    Py_ssize_t ob_rank(const double* values, Py_ssize_t n, double x) noexcept nogil
    void ob_scatter(double* w, const double* v, const Py_ssize_t* index, Py_ssize_t n) noexcept nogil
    void ob_gather_4(double* v, const double* w, Py_ssize_t stride, const Py_ssize_t* index,
                     Py_ssize_t n) noexcept nogil
    void ob_scatter_4(double* w, const double* v, Py_ssize_t stride, const Py_ssize_t* index,
                      Py_ssize_t n) noexcept nogil
    double ob_sparse_nonfinite(const double* w, const Py_ssize_t* index, Py_ssize_t n) noexcept nogil
    void ob_widen_values(double* x, const float* a, Py_ssize_t n) noexcept nogil
    void ob_widen_columns(Py_ssize_t* index, const int32_t* a, Py_ssize_t n) noexcept nogil
    void ob_dot4(const double* w0, const double* w1, const double* w2, const double* w3, const double* x, Py_ssize_t n,
                 double* dots) noexcept nogil
    void ob_dots(const double* a, Py_ssize_t width, Py_ssize_t m, const double* x, Py_ssize_t n,
                 double* dots) noexcept nogil
    void ob_axpy4(double* w0, double* w1, double* w2, double* w3, const double* x, const double* c,
                  Py_ssize_t n) noexcept nogil
    bint ob_gather_column(double* x, Py_ssize_t stride, const char* at, Py_ssize_t step, char kind,
                          Py_ssize_t n) noexcept nogil
    void ob_add_rows(double* z, const double* w, const Py_ssize_t* index, const double* x, Py_ssize_t m,
                     Py_ssize_t n) noexcept nogil
