# Targets and rates of instances of matrix learners.


cdef inline double signed_target(double target, double sense, bint one_sided) noexcept nogil:
    """The target, multiplied by its sense if targets are bounds."""
    return target * sense if one_sided else target


cdef inline double rate_of(double weight, double scale, bint scaled) noexcept nogil:
    """The factor of the rate."""
    return weight / (scale * scale) if scaled and scale > 0 else weight


cdef inline bint is_collapsed(const double* row, Py_ssize_t d) noexcept nogil:
    """Whether a pair is of equal rows, or a triplet's dissimilar row is its anchor: no metric can separate these."""
    cdef Py_ssize_t j = 0
    while j < d and row[j] == 0:
        j += 1
    return j == d
