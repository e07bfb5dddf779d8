cdef extern from "ops/columns.h":
    bint ob_gather_column(double* x, Py_ssize_t stride, const char* at, Py_ssize_t step, char kind,
                          Py_ssize_t n) noexcept nogil
