from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner
from onlinebregman._kernels.rows.centre cimport Centre
from onlinebregman._kernels.rows.fourier cimport FourierFeatures
from onlinebregman._kernels.rows.rows cimport Row

cdef enum:
    LANES = 8                 # vectors of scores are padded to a multiple of this length


cdef double LEAST_CURVATURE   # of a loss, in the metric


cdef struct SecondOrderState:  # the state in addition to weights and metric
    double t                  # rows learned
    double loss               # cumulative loss of the predictions made before each row was learned
    double slack              # of the bound on the regret, where there is one
    double prior              # how much of the prior is not forgotten
    double pending            # of features: number of vectors v in A^-1 = scale (P - sum v v')
    double scale
    double most               # largest value on the diagonal of P, now or at first
    double full               # whether P has grown as far as it may: nothing is forgotten


cdef class SecondOrderLearner(AtomicLearner):
    cdef readonly double alpha, intercept_alpha  # A before the first row
    cdef readonly bint fit_intercept
    cdef readonly FourierFeatures features
    cdef readonly Centre centre  # None: rows are learned as they are, or as features
    cdef Py_ssize_t n_inputs  # values of a row as it is learned
    cdef Py_ssize_t d, m, padded  # coordinates, rows of weights, columns of U (or P): a multiple of four (or eight)
    cdef Py_ssize_t score_length  # length of a vector of scores
    # Weights (m, d), D, move and gain of the pending step, and U: blocks of four columns, each down to the diagonal of
    # its last column; of features weights, vectors v, and P
    cdef double[::1] memory
    cdef double[::1] spare    # buffer of a pass over U, and zeros
    cdef Py_ssize_t n_counted  # classes that are counted; 0: scores have no running log odds
    cdef double slope         # of the loss by the probability, as `respond` gives it: 2 for a difference of scores
    cdef double[::1] tally    # weight of each class so far, and the running log odds of each score
    cdef SecondOrderState state
    cdef bint passed          # whether a row of this call has been processed
    cdef double size          # sum of the squares of U at that time
    cdef bint backed_up       # whether U can be restored, too
    cdef double gamma         # the forgetting factor

    cdef int allocate(self, n_features, alpha, fit_intercept, FourierFeatures features, intercept_alpha, Py_ssize_t m,
                      Py_ssize_t score_length, Py_ssize_t n_counted, bint centred=*, bint allow_nan=*) except -1
    cdef object weights_of_columns(self)
    cdef object intercepts(self)
    cdef const Row* image_of(self, const Row* row, Workspace* work, Row* image) noexcept nogil
    cdef int count_columns(self, const double* x, double weight) noexcept nogil
    cdef void move_centre(self) noexcept nogil
    cdef void add_variance(self, Py_ssize_t j, double variance) noexcept nogil
    cdef void add_square(self, const double* x, Py_ssize_t n, double h) noexcept nogil
    cdef object counts(self)
    cdef object log_odds(self)
    cdef bint count(self, double y, const double* g, double weight) noexcept nogil
    cdef object weight_rows(self)
    cdef Py_ssize_t vectors(self) noexcept nogil
    cdef object updated_memory(self)
    cdef double* vector(self, Py_ssize_t r) noexcept nogil
    cdef double most_at_first(self) noexcept nogil
    cdef void subtract_vectors(self) noexcept nogil
    cdef void bound_diagonal(self) noexcept nogil
    cdef double prior_of(self, Py_ssize_t j) noexcept nogil
    cdef double find_product(self, const double* x, double* v) noexcept nogil
    cdef void keep_vector(self, double* v, double q, double h) noexcept nogil
    cdef double leverage(self, const Row* row, double* v) noexcept nogil
    cdef void apply_pending_step(self, double* memory, double* buffer) noexcept nogil
    cdef double* weights(self) noexcept nogil
    cdef double* pivots(self) noexcept nogil
    cdef Py_ssize_t vector_stride(self) noexcept nogil
    cdef Py_ssize_t offset(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil
    cdef int respond(self, double* a, const double* y, double weight, double q, Workspace* work,
                     double* h) noexcept nogil
    cdef void score(self, const Row* row, double* a) noexcept nogil
    cdef void foresee(self, const Row* row, double q, double* a) noexcept nogil
    cdef void move(self, const double* v, double* g, double weight) noexcept nogil
