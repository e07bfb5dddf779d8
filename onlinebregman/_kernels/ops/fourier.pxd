cdef extern from "ops/fourier.h":
    void ob_cosines(double* z, double scale, Py_ssize_t n) noexcept nogil
