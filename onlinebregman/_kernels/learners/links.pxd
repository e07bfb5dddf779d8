from libc.math cimport exp, log1p
from scipy.special.cython_special cimport expit


cdef enum Link:
    IDENTITY                  # the score is the forecast
    CLIPPED                   # (score + 1) / 2, within 0 and 1, is the probability of the second of two classes
    SOFTMAX                   # probabilities are the softmax of the scores; for two classes one score, w_1 - w_0
    LOGISTIC                  # the sigmoids of one against the rest, divided by their sum; for two classes the sigmoid
    CALIBRATED                # the same of slope * score + offset, learned by Newton steps on the log losses


cdef struct Calibration:      # p_c ~ sigmoid(slope * score_c + offset), and the precision of the two
    double slope, offset
    double a, b, d            # [[a, b], [b, d]]


cdef Link link_of(name, tuple known) except *


cdef inline double sigmoid(double a) noexcept nogil:
    return 1.0 / (1.0 + exp(-a)) if a > 0 else exp(a) / (1.0 + exp(a))


cdef inline double log_sigmoid(double a) noexcept nogil:
    return -log1p(exp(-a)) if a > 0 else a - log1p(exp(a))


cdef inline double probability(Link link, double score) noexcept nogil:
    """Probability of the one of two classes whose score this is, computed as estimators do."""
    return expit(score) if link == LOGISTIC else (min(max(score, -1.0), 1.0) + 1.0) / 2.0


cdef void calibrate(Calibration* s, const double* scores, Py_ssize_t n, Py_ssize_t y, double weight) noexcept nogil
