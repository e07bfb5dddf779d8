from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.loop.atomic cimport AtomicLearner
from onlinebregman._kernels.rows.fourier cimport FourierFeatures
from onlinebregman._kernels.rows.rows cimport Row

cdef enum:
    LANES = 8                 # vectors of a number for each score are multiples of this long


cdef struct SecondOrderState:  # beside the weights and the metric
    double t                  # rows learned
    double loss               # cumulative loss of the predictions made before each row was learned


cdef class SecondOrderLearner(AtomicLearner):
    cdef readonly double alpha, intercept_alpha  # A before the first row
    cdef readonly bint fit_intercept
    cdef readonly FourierFeatures features
    cdef Py_ssize_t n_inputs  # values of a row as it is learned
    cdef Py_ssize_t d, m, padded  # coordinates, rows of weights, columns of U: in fours, those beyond d are idle
    cdef Py_ssize_t score_length  # length of a vector of scores
    # The weights (m, d), D, the last row's move and gain, and U: four columns at a time, down to the last one's
    # diagonal
    cdef double[::1] memory
    cdef double[::1] spare    # buffer of a pass over U, and zeros
    cdef SecondOrderState state
    cdef bint passed          # whether a row of this call has been processed
    cdef double size          # sum of U's squares then
    # The state before the last call
    cdef bint backed_up       # whether U is saved, too
    cdef double[::1] before
    cdef SecondOrderState state_before
    cdef double gamma, gamma_before  # of the next call

    cdef void set(self, double gamma) noexcept
    cdef int arrange(self, Py_ssize_t m, Py_ssize_t score_length, object memory, object state) except -1
    cdef object weight_rows(self)
    cdef Py_ssize_t vectors(self) noexcept nogil
    cdef object stored(self)
    cdef object turned(self)
    cdef void settle(self, double* memory, double* buffer) noexcept nogil
    cdef Py_ssize_t n_backed_up(self) noexcept nogil
    cdef double* weights(self) noexcept nogil
    cdef double* scale(self) noexcept nogil
    cdef Py_ssize_t eights(self) noexcept nogil
    cdef Py_ssize_t place(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil
    cdef int respond(self, double* a, const double* y, double weight, double q, Workspace* work,
                     double* h) noexcept nogil
    cdef void score(self, const Row* row, double* a) noexcept nogil
    cdef void move(self, const double* v, double* g, double weight) noexcept nogil
