from libc.math cimport exp


cdef struct Calibration:      # p_c ~ sigmoid(slope * score_c + offset), and the precision of the two
    double slope, offset
    double a, b, d            # [[a, b], [b, d]]


cdef inline double sigmoid(double a) noexcept nogil:
    return 1.0 / (1.0 + exp(-a)) if a > 0 else exp(a) / (1.0 + exp(a))


cdef void calibrate(Calibration* s, const double* scores, Py_ssize_t n, Py_ssize_t y, double weight) noexcept nogil
