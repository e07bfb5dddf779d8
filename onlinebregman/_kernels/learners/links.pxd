# Links: what scores of models say, numbers or probabilities of classes.
#
# Scores that are not log odds, such as those of the hinge loss, are calibrated: a sigmoid is learned by on-line Newton
# steps on the log losses of one class against the rest, with the sum of all curvatures so far.

from libc.math cimport exp, fabs, isfinite, log, log1p
from scipy.special.cython_special cimport expit

cdef enum:
    FAR = 10                  # limit of logits that a step moves to the other side of 0


cdef enum Link:
    IDENTITY                  # the score is the forecast
    CLIPPED                   # (score + 1) / 2, within 0 and 1, is the probability of the second of two classes
    SOFTMAX                   # probabilities are the softmax of the scores; for two classes one score, w_1 - w_0
    LOGISTIC                  # the sigmoids of one against the rest, divided by their sum; for two classes the sigmoid
    CALIBRATED                # the same of slope * score + offset, learned by Newton steps on the log losses


cdef struct Calibration:      # p_c ~ sigmoid(slope * score_c + offset), and the precision of the two
    double slope, offset
    double a, b, d            # [[a, b], [b, d]]


cdef inline Link link_of(name, tuple known) except *:
    """The link of this name, which must be one of those that are known."""
    if name not in known:
        raise ValueError(f"links must be of {', '.join(known)}; got {name!r}")
    cdef int place = ("identity", "clipped", "softmax", "logistic", "calibrated").index(name)
    return <Link> place


cdef inline double sigmoid(double a) noexcept nogil:
    return 1.0 / (1.0 + exp(-a)) if a > 0 else exp(a) / (1.0 + exp(a))


cdef inline double log_sigmoid(double a) noexcept nogil:
    return -log1p(exp(-a)) if a > 0 else a - log1p(exp(a))


cdef inline double probability(Link link, double score) noexcept nogil:
    """Probability of the one of two classes whose score this is, computed as estimators do."""
    return expit(score) if link == LOGISTIC else (min(max(score, -1.0), 1.0) + 1.0) / 2.0


cdef inline void find_probabilities(Link link, double score, double* p) noexcept nogil:
    """Those of both classes, by the score of the second."""
    p[0], p[1] = probability(link, -score), probability(link, score)


cdef inline void calibrate(Calibration* s, const double* scores, Py_ssize_t n, Py_ssize_t y,
                           double weight) noexcept nogil:
    """One step, on a row of class y with n scores: one for two classes, else one for each class.

    A score far on the wrong side has no curvature; the step is shortened so that no logit of the row exceeds FAR on the
    other side of 0. Scores whose squares overflow are ignored.
    """
    cdef Py_ssize_t c
    cdef double p, g, h, g_slope = 0.0, g_offset = 0.0, det, a, slope, offset, logit, part = 1.0
    cdef Calibration before = s[0]
    for c in range(n):
        a = scores[c]
        p = sigmoid(s.slope * a + s.offset)
        g, h = weight * (p - <double> (y == (c if n > 1 else 1))), weight * p * (1.0 - p)
        g_slope += g * a
        g_offset += g
        s.a += h * a * a
        s.b += h * a
        s.d += h
    det = s.a * s.d - s.b * s.b
    slope, offset = (s.d * g_slope - s.b * g_offset) / det, (s.a * g_offset - s.b * g_slope) / det
    for c in range(n):
        logit = s.slope * scores[c] + s.offset
        part = min(part, (fabs(logit) + FAR) / fabs(slope * scores[c] + offset))
    s.slope -= part * slope
    s.offset -= part * offset
    if not (isfinite(det) and isfinite(s.slope) and isfinite(s.offset)):
        s[0] = before


# Probabilities of classes go with `width` logits: one for two classes, log p_1 - log p_0, else log p_c + any constant.


cdef inline double largest(const double* a, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t c
    cdef double most = a[0]
    for c in range(1, n):
        most = max(most, a[c])
    return most


cdef inline double log_softmax(const double* a, Py_ssize_t width, Py_ssize_t y) noexcept nogil:
    """ln p_y from logits."""
    cdef double most, total = 0.0
    cdef Py_ssize_t c
    if width == 1:
        return log_sigmoid(a[0] if y else -a[0])
    most = largest(a, width)
    for c in range(width):
        total += exp(a[c] - most)
    return a[y] - most - log(total)


cdef inline void add_softmax(double* a, Py_ssize_t width, double weight, double* p) noexcept nogil:
    """Add the probabilities from logits, times a weight; the logits are overwritten."""
    cdef double most, total = 0.0
    cdef Py_ssize_t c
    if width == 1:
        p[1] += weight * sigmoid(a[0])
        p[0] += weight * sigmoid(-a[0])
        return
    most = largest(a, width)
    for c in range(width):
        a[c] = exp(a[c] - most)
        total += a[c]
    for c in range(width):
        p[c] += weight * a[c] / total
