from libc.stdint cimport int32_t, uint32_t

from onlinebregman._kernels.loop.atomic cimport AtomicLearner, Block

cdef extern from "ops/mt19937.h":
    ctypedef struct ob_twister:
        uint32_t[624] key
        int32_t pos


cdef enum Wish:               # what a loop without the interpreter's lock asks the interpreter for
    ROOM                      # room for more rows,
    COUNTS                    # or more classes,
    BACKUP                    # a copy of the rows that are remembered,
    RATES                     # to note the rates of instances, and
    RATE_SUM                  # to sum them up,
    METRIC                    # the present metric: see `Sampler` and `NeighborTriplets`


cdef class Reservoir(AtomicLearner):
    cdef ob_twister random
    cdef double[:, ::1] kept         # rows, with room behind them,
    cdef Py_ssize_t[::1] of_class    # and their classes
    cdef Py_ssize_t[::1] counts      # rows of each class so far
    cdef Py_ssize_t n, n_classes, size, width  # rows kept, classes, rows kept of each at most, values of a row
    cdef readonly Py_ssize_t n_changes  # calls that have changed what is remembered, or undone that
    # of the call under way: what to go back to
    cdef ob_twister random_before
    cdef Py_ssize_t n_before, n_classes_before
    cdef Py_ssize_t[::1] counts_before
    cdef Py_ssize_t replaced         # the place of the first row that was replaced, -1 for none,
    cdef double[::1] replaced_row    # which was this;
    cdef bint backed_up              # from the second one on, all rows
    cdef double[:, ::1] kept_before, spare

    cdef int allocate(self, Py_ssize_t n_features, Py_ssize_t width, Py_ssize_t size, random, kept) except -1
    cdef int note(self) except -1
    cdef bint asked(self, int wish) noexcept nogil
    cdef int answer(self, int wish) except -1
    cdef int take_in(self, const double* x, Py_ssize_t number, double weight, Py_ssize_t i, Block* block) noexcept nogil
    cdef int finish(self, Block* block) noexcept nogil
    cdef bint remember(self, const double* row, Py_ssize_t number) noexcept nogil
    cdef Py_ssize_t draw(self, Py_ssize_t n) noexcept nogil
