cdef class Percentiles:
    cdef readonly bint measured      # on the stream, or given
    cdef double[::1] percents
    cdef Py_ssize_t least            # smallest number of distances for the first estimate
    cdef double[::1] found           # the percentiles
    cdef bint known                  # whether they have been computed
    cdef double next_update
    cdef double[::1] sample          # of distances
    cdef Py_ssize_t n, size, n_distances    # size of the sample, its largest size, and distances so far
    # the state before the current call, saved when the sample first changes
    cdef bint saved, known_before
    cdef double[::1] sample_before, found_before, buffer
    cdef double next_update_before
    cdef Py_ssize_t n_before, n_distances_before

    cdef void begin(self) noexcept nogil
    cdef void save(self) noexcept nogil
    cdef void undo(self) noexcept nogil
    cdef void put(self, Py_ssize_t slot, double value) noexcept nogil
    cdef bint is_due(self) noexcept nogil
    cdef void update(self) noexcept nogil


cdef double quantile(double* a, Py_ssize_t n, double q) noexcept nogil
