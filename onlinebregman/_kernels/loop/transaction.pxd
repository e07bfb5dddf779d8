cdef bint parameters_unchanged(dict attributes)
cdef bint under_way(dict attributes)
cdef Py_ssize_t patience() noexcept
cdef object signal_raised()
cdef int check_idle(bint busy) except -1
