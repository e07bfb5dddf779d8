# What a learner of matrices is told of an instance besides its row.


cdef inline double aim(double target, double sense, bint one_sided) noexcept nogil:
    """The target; of one that is a bound from below, the other sign."""
    return target * sense if one_sided else target


cdef inline double rate_of(double weight, double scale, bint scaled) noexcept nogil:
    """What the rate is multiplied by."""
    return weight / (scale * scale) if scaled and scale > 0 else weight


cdef inline bint is_collapsed(const double* row, Py_ssize_t d) noexcept nogil:
    """Is a pair of equal rows, or is the dissimilar row of a triplet its anchor? No metric can move these apart."""
    cdef Py_ssize_t j = 0
    while j < d and row[j] == 0:
        j += 1
    return j == d
