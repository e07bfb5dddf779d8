from onlinebregman._kernels.learners.atomic cimport AtomicLearner
from onlinebregman._kernels.rows.fourier cimport FourierFeatures


cdef struct ForwardState:     # the state in addition to the factor
    double t                  # rows learned
    double loss               # cumulative loss of the predictions made before each row was learned
    # Like `loss`, but discounted: a row that is n rows old counts gamma^n; so do `hindsight` and `bound`
    double recent
    double hindsight          # min over u of sum h (u.x - y)^2 / 2 + a |u|^2 / 2
    double ridge_rows         # number of rows that were predicted with forward=False
    double bound              # of recent - hindsight
    double weight             # of all rows, if it is centred; not discounted
    double degrees_of_freedom  # of the residuals: number of rows, minus 1 for a free intercept


cdef struct Step:             # of a row
    double weight
    double nu                 # what is left of its weight by a free intercept
    double left               # and in the end
    bint foreseen             # whether it had to be predicted beforehand


cdef class RidgeLearner(AtomicLearner):
    cdef readonly tuple target_shape
    cdef readonly double alpha
    cdef readonly bint fit_intercept
    cdef readonly bint centred, scaled
    cdef bint free_intercept
    cdef readonly FourierFeatures features
    cdef Py_ssize_t n_inputs  # values of a row as it is learned
    cdef Py_ssize_t d, m      # coordinates and targets of a row
    # d_k, U[k, k+1:], g_k for k = 0, 1, ...: rows of d - k + m numbers; then sums of h y^2 of residuals, of m targets.
    # If it is centred: the weight n of the rows, the means of columns and targets, and scatter and prior of the columns
    cdef double* factor
    cdef ForwardState state
    cdef double[::1] memory   # of one factor, which is swapped with the copy: threads that predict may read either
    cdef Py_ssize_t length, size  # of a factor, and with its centre
    cdef bint backed_up       # whether the copy in `learned` is the factor before the call
    cdef Py_ssize_t checked   # number of leading values known to be finite after the last row
    cdef bint forward         # whether predictions of the next call include the query
    cdef double gamma         # its forgetting factor
    cdef bint residuals       # whether its targets are differences from the mean of all before
    cdef object solution      # cached ridge weights of all targets, shape (m, d), or None

    cdef object set_parts(self, D, U, g, left, centre)
    cdef double* copied(self) noexcept nogil
    cdef double nu_of(self, double n, double weight) noexcept nogil
    cdef bint is_new(self, const double* z) noexcept nogil
    cdef void subtract_means(self, double* z) noexcept nogil
    cdef bint centre(self, double* z, Step* step, double* target_means, double* spare) noexcept nogil
    cdef bint correct_prior(self, double* z) noexcept nogil
    cdef double prediction(self, double y, double residual, double share, bint forward) noexcept nogil
    cdef double mean_of(self, Py_ssize_t q) noexcept nogil
    cdef void reduce(self, double* z, double* share, Py_ssize_t n, double gamma) noexcept nogil
    cdef void forget_solution(self) noexcept
    cdef object solve(self)
