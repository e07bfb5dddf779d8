from libc.stdint cimport uint64_t


cdef inline double uniform(uint64_t n) noexcept nogil:
    """The n-th of fixed numbers that look independent and uniform in [0, 1): SplitMix64 (Steele, Lea, Flood, 2014)."""
    cdef uint64_t z = n * 0x9E3779B97F4A7C15ULL
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
    return <double> ((z ^ (z >> 31)) >> 11) * 2.0 ** -53
