from libc.stdint cimport uint64_t

from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block
from onlinebregman._kernels.ops.state cimport Undoable


cdef enum:
    SIZE = 1000               # largest of a sample of distances


cdef enum Request:            # what a loop without the GIL acquires it for
    CAPACITY                  # to enlarge the arrays of stored rows
    COUNTS                    # to enlarge the array of class counts
    BACKUP                    # to copy the stored rows
    RATES                     # to record the rates of instances, see `Sampler`
    RATE_SUM                  # to sum the recorded rates
    METRIC                    # to read the current metric, see `NeighborTriplets`


cdef class Reservoir(AtomicLearner):
    cdef uint64_t random             # how many of the random numbers come before the first
    cdef double drawn                # how many have been drawn
    cdef double[:, ::1] kept         # stored rows: the first n
    cdef Py_ssize_t[::1] of_class    # their classes
    cdef Py_ssize_t[::1] counts      # rows of each class so far
    cdef Py_ssize_t n, n_classes, size, width  # stored rows, classes, largest number stored of each, values of a row
    cdef Block* block                # of the current call
    # what grows with the stream, before the current call
    cdef Py_ssize_t n_before, n_classes_before
    cdef Py_ssize_t[::1] counts_before
    cdef Py_ssize_t replaced         # index of the first row that was replaced, or -1
    cdef double[::1] replaced_row    # its values
    cdef double[:, ::1] kept_before  # all rows, from the second replacement on; or None
    cdef double[:, ::1] spare        # memory for the next copy, as new memory takes longer than the copy itself

    cdef int allocate(self, Py_ssize_t n_features, Py_ssize_t width, Py_ssize_t size, random) except -1
    cdef int save(self) except -1
    cdef bint request(self, int what) noexcept nogil
    cdef int fulfil(self, int what) except -1
    cdef int learn_labelled(self, const double* x, Py_ssize_t number, double weight, Py_ssize_t i) noexcept nogil
    cdef bint store(self, const double* row, Py_ssize_t number) noexcept nogil
    cdef Py_ssize_t draw(self, Py_ssize_t n) noexcept nogil


cdef class Percentiles(Undoable):
    cdef readonly bint measured      # on the stream, or given
    cdef double[::1] percents
    cdef Py_ssize_t least            # smallest number of distances for the first estimate
    cdef double[::1] found           # the percentiles
    cdef double known                # whether they have been computed
    cdef double next_update
    cdef double[::1] sample, buffer  # of distances
    cdef double n, n_distances       # size of the sample, and distances so far

    cdef void update(self) noexcept nogil


cdef double quantile(double* a, Py_ssize_t n, double q) noexcept nogil
