from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef enum:
    NOTES = 16                # what a geometry can note about a row, in doubles
    SHORT = 40                # vectors up to here need no memory from the heap


cdef struct Workspace:        # what a geometry works out about a row, in the memory of whoever asks about it
    const Row* row
    double* w                 # the row's weights: the state itself, or a gathered copy (sparse)
    const double* x           # the values that go with them: the row's, or (x, -x) for signed weights
    Py_ssize_t n              # how many values
    double origin             # what c is counted from: 0, or an end of the domain (see count_from)
    bint in_block             # is the row one of those that `begin_block` was told of?
    void* notes               # what else the geometry notes, in a struct of its own
    double* vectors           # five of `length` values, the last one for the solver
    Py_ssize_t length
    double[NOTES + 5 * SHORT] memory


cdef struct GeometryState:    # the state beside the weights
    double total              # sum of the unnormalised weights (simplex), or of powers (p-norm)
    # Burg's gradient: the largest |x| and the largest sum of weights that rows have met, the bound on it that is given,
    # the rate, the one that was noted last and the first one, and the rows whose step was left out (matrices)
    double radius, mass, sum_bound, rate, noted, first_rate, left_out
    double unit               # of the powers (p-norm)
    double confined_to        # the upper bound that all weights are known to keep (Burg)
    double clock              # averaging: how long a weight now standing still has stood, counted from its stamp
    double summed             # the largest total since it was last summed afresh (simplex)
    # geometries that adapt: the intercept's sum; rows and the sum of their z^2; the targets, as weight, mean and sum of
    # squares; the intercept's bets; and of the regret certificate the sum of c, and of c (w.x) - c^2 x'Sx / 2
    double bias_sum, bias_pull, bias_wealth, bias_size, rows, norms, target_weight, target_mean, target_spread
    double pulled, gained
    Py_ssize_t steps          # since something was last computed afresh; updates that wait (blocked LogDet)
    double l1, l2             # the penalty R(w) = l1 |w|_1 + l2 |w|_2^2 / 2,
    double threshold, growth  # the clock of its proximal steps,
    bint lagging              # and whether there are weights that have not made all of them: see `composes`


cdef inline double* scratch(Workspace* work, int k) noexcept nogil:
    """Working vector 1 or 2; vector 0 holds gathered weights, vector 3 the values (x, -x) of signed weights."""
    return work.vectors + k * work.length


cdef inline void open_workspace(Workspace* work, const Row* row) noexcept nogil:
    """Turn to a row; `Geometry.load` comes next."""
    work.row, work.x, work.n, work.origin = row, row.x, row.n, 0.0


cdef int make_workspace(Workspace* work, Py_ssize_t length) except -1
cdef void free_workspace(Workspace* work) noexcept nogil


cdef class Workspaces:        # with memory, for several models that learn a row at once
    cdef Workspace* each
    cdef Py_ssize_t n, length  # so many, for vectors of this length

    cdef void release(self) noexcept
    cdef int reserve(self, Py_ssize_t n, Py_ssize_t length) except -1


cdef class Geometry:
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t per_feature  # weights per feature: 2 for w+ and w-, n_features for a matrix
    cdef Py_ssize_t weight_blocks    # of which are weights, the first ones; the others are what a metric follows from
    cdef readonly bint doubled       # weights w+ and w- per feature, learned on the row (x, -x); per_feature is 2
    cdef readonly bint linear        # is w(c).x linear in c? Then one Newton step solves the implicit equation
    cdef readonly bint adaptive      # does S follow from the rows, so that `adapt` takes each in before it is learned?
    cdef readonly bint looks_ahead   # does it want to see dense rows before they are learned (`begin_block`)?
    cdef readonly bint moves_all     # does every step move all weights, whatever the row?
    cdef readonly bint quadratic     # a symmetric matrix W, which predicts z'Wz and not w.x?
    cdef public double upper         # largest weight
    cdef readonly object failure     # the exception by which a geometry in Python refused a row
    cdef double[::1] weights
    cdef Py_ssize_t spare            # how many more may follow in the same memory, as in all vectors of their length
    cdef GeometryState state
    # While only some weights are backed up, a step on all of them is not made but sets `needs_backup`; the caller backs
    # all up and repeats.
    cdef bint backed_up, needs_backup
    # averaging: sum of the weights over time, and the clock at which each was last added to it
    cdef readonly bint averaging
    cdef double[::1] average_sum
    cdef double[::1] stamp
    # penalty: is there one; are its proximal steps made for all weights, row by row (else for those of a row alone);
    # and the threshold at which each weight had made them all
    cdef readonly bint penalised
    cdef bint eager
    cdef double[::1] threshold_stamp

    cdef void arrange(self, Py_ssize_t per_feature) noexcept
    cdef Py_ssize_t vector_length(self, Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t first_mutable(self, Py_ssize_t n_rows) noexcept nogil
    cdef void begin_block(self, Rows rows, Py_ssize_t k, const double* sample_weight) noexcept nogil
    cdef void load(self, Workspace* work) noexcept nogil
    cdef void fetch_weights(self, Workspace* work) noexcept nogil
    cdef void store(self, Workspace* work) noexcept nogil
    cdef double dot(self, Workspace* work) noexcept nogil
    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil
    cdef void domain(self, Workspace* work, double* lo, double* hi) noexcept nogil
    cdef double adapt(self, Workspace* work, double g, double y, double weight, bint exact, double* slope,
                      double* bias) noexcept nogil
    cdef void note_step(self, Workspace* work, double c, double gain) noexcept nogil
    cdef bint count_from(self, Workspace* work, double end) noexcept nogil
    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil
    cdef double conjugate(self, Workspace* work, double c) noexcept nogil
    cdef void step(self, Workspace* work, double c) noexcept nogil
    cdef void project(self, Workspace* work) noexcept nogil
    cdef bint composes(self) noexcept nogil
    cdef void advance(self, double l1, double l2) noexcept nogil
    cdef double proximal(self, Py_ssize_t j, double w, double l1, double l2) noexcept nogil
    cdef double distance(self, Py_ssize_t j, double v, double w) noexcept nogil
    cdef void proximal_row(self, Workspace* work, double l1, double l2, bint missed) noexcept nogil
    cdef double confined(self, Py_ssize_t j, double w) noexcept nogil
    cdef double caught_up(self, Py_ssize_t j) noexcept nogil
    cdef void catch_up(self, Workspace* work) noexcept nogil
    cdef void settle(self) noexcept nogil
    cdef void shrink(self, Workspace* work, double eta) noexcept nogil
    cdef double shrink_all(self, double eta, bint tracked) noexcept nogil
    cdef double rate_cap(self, Workspace* work, double residual, double bias) noexcept nogil
    cdef bint needs_projection(self) noexcept nogil
    cdef void project_all(self) noexcept nogil
    cdef double scale(self) noexcept nogil
    cdef bint bounded(self) noexcept nogil
    cdef void renormalise(self, Workspace* work) noexcept nogil
    cdef void accumulate(self, const Row* row) noexcept nogil
    cdef void accumulate_all(self) noexcept nogil
    cdef double averaged_dot(self, const Row* row) noexcept nogil
    cdef double averaged_dot_from(self, const Row* row, Py_ssize_t start) noexcept nogil
    cdef void gather(self, const Row* row, double[::1] source, double* out) noexcept nogil
    cdef void scatter(self, const Row* row, double* values, double[::1] target) noexcept nogil
