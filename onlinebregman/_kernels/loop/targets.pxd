# Targets that are centred online, in regression: their mean and range so far, measured from the first one.

# Rows whose predictions do not depend on centred learners: 0, then the first target, to which all of them are clipped.
cdef enum:
    UNLEARNED = 2


cdef struct TargetStats:      # statistics of the targets so far, in regression
    double weight
    double origin             # the first one; the next three are distances from it
    double mean
    double lo, hi
    double first_loss         # of predicting 0 for the first target rather than the target


cdef inline double from_origin(TargetStats* stats, double y) noexcept nogil:
    """The distance of the next target from the first one."""
    if stats.weight == 0:
        stats.origin = y
    return y - stats.origin


cdef inline void update_stats(TargetStats* stats, double y, double weight) noexcept nogil:
    """Count a target, given as its distance from the first one."""
    stats.weight += weight
    stats.mean += weight / stats.weight * (y - stats.mean)
    stats.lo, stats.hi = min(stats.lo, y), max(stats.hi, y)
