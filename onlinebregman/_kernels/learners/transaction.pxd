cdef bint parameters_unchanged(dict attributes)
cdef bint unnamed(dict attributes)
cdef bint under_way(dict attributes)
cdef enum:
    WORK_BETWEEN_CHECKS = 1 << 13  # numbers processed between two looks at the clock: at least some microseconds

cdef Py_ssize_t work_between_checks() noexcept
cdef object signal_raised()
cdef int check_idle(bint busy) except -1


cdef class Validated:
    cdef tuple names, values  # of the parameters; no values in a copy
    cdef list contents        # what may change in place in the values, and copies of it
    cdef bint named           # whether names of features have to be compared

    cpdef bint are_those_of(self, dict attributes)
