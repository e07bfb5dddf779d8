from libc.stdint cimport int32_t, uint32_t

cdef extern from "ops/mt19937.h":
    ctypedef struct ob_twister:
        uint32_t[624] key
        int32_t pos
    double ob_next_uniform(ob_twister* state) noexcept nogil
