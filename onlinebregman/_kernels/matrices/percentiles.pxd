cdef class Percentiles:
    cdef readonly bint measured      # on the stream, or given
    cdef double[::1] percents
    cdef Py_ssize_t least            # distances wanted before the first look
    cdef double[::1] found           # the values,
    cdef bint known                  # if there are any
    cdef double next_look
    cdef double[::1] sample          # of distances,
    cdef Py_ssize_t n, size, seen    # how many it holds, holds at most, and came
    # of the call under way: what to go back to, once the sample has changed
    cdef bint saved, known_before
    cdef double[::1] sample_before, found_before, room
    cdef double look_before
    cdef Py_ssize_t n_before, seen_before

    cdef void begin(self) noexcept nogil
    cdef void save(self) noexcept nogil
    cdef void undo(self) noexcept nogil
    cdef void put(self, Py_ssize_t slot, double value) noexcept nogil
    cdef bint is_due(self) noexcept nogil
    cdef void look(self) noexcept nogil
