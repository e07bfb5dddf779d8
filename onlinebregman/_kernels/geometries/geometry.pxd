cdef struct Row:              # a row, and the working memory of whoever asks about it
    const double* x           # the values
    const Py_ssize_t* index   # their columns, strictly increasing; NULL for a dense row
    Py_ssize_t n              # how many values
    Py_ssize_t stored         # how many columns; half of n once a signed geometry has made it the row (x, -x)
    bint foretold             # was the geometry told to expect it?
    double* buffer            # five vectors of `room` values, the last one for the solver
    Py_ssize_t room
    # what `load` finds out
    double* w                 # the row's weights: the state itself, or a gathered copy (sparse)
    double a                  # z'Wz (matrices)
    double lo, hi             # range of the values (binary entropy), or of w x (Burg)
    double end                # what c is counted from: 0, or an end of the domain (see count_from)
    double rest               # unnormalised weight outside the row (simplex); -1 before it is known
    # relative entropy: w(c) where it was worked out last
    double* v                 # exp(-shift) w(centre)
    double centre, shift
    double[6] moment          # sums of v x^k
    double reach              # how far from the centre the moments serve; -1 if only moment[0] is known
    double largest            # largest |x|, found out by dot(row) and peek(row, 0)


cdef struct Scalars:          # the state beside the weights
    double total              # sum of the unnormalised weights (simplex)
    # Burg's gradient: the largest |x| and the largest sum of weights that rows have met, the bound on it that is given,
    # the rate, and the one that was noted last
    double radius, mass, sum_bound, rate, noted
    double confined_to        # the upper bound that all weights are known to keep (Burg)
    double clock              # averaging: how long a weight now standing still has stood, counted from its stamp
    double summed             # the largest total since it was last summed afresh (simplex)
    Py_ssize_t steps          # sparse steps since then


cdef inline double* scratch(Row* row, int k) noexcept nogil:
    """Working vector 1 or 2; vector 0 holds gathered weights, vector 3 the row (x, -x) of signed weights."""
    return row.buffer + k * row.room


cdef class Geometry:
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t blocks  # weights per feature: 2 for w+ and w-, n_features for a matrix
    cdef readonly bint doubled       # weights w+ and w- per feature, learned on the row (x, -x); blocks is 2
    cdef readonly bint linear        # is w(c).x linear in c? Then one Newton step solves the implicit equation
    cdef readonly bint foresees      # does it want to see dense rows before they are learned?
    cdef readonly bint whole         # does every step move all weights, whatever the row?
    cdef readonly bint quadratic     # a symmetric matrix W, which predicts z'Wz and not w.x?
    cdef public double upper         # largest weight
    cdef readonly object failure     # the exception by which a geometry in Python refused a row
    cdef double[::1] weights
    cdef Scalars state
    # A step on all weights at once is refused (`blocked`) while only some are backed up; the caller backs up and repeats.
    cdef bint backed_up, blocked
    # averaging: sum of the weights over time, and the clock at which each was last added to it
    cdef readonly bint averaging
    cdef double[::1] average_sum
    cdef double[::1] stamp

    cdef Py_ssize_t room(self, Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t at_rest(self, Py_ssize_t n_rows) noexcept nogil
    cdef void forget(self) noexcept nogil
    cdef Py_ssize_t wants(self) noexcept nogil
    cdef Py_ssize_t expect(self, Row* row) noexcept nogil
    cdef void load(self, Row* row) noexcept nogil
    cdef void fetch_weights(self, Row* row) noexcept nogil
    cdef void store(self, Row* row) noexcept nogil
    cdef double dot(self, Row* row) noexcept nogil
    cdef void peek(self, Row* row, double c, double* value, double* slope) noexcept nogil
    cdef void domain(self, Row* row, double* lo, double* hi) noexcept nogil
    cdef bint count_from(self, Row* row, double end) noexcept nogil
    cdef double sharpness(self, Row* row, double slope) noexcept nogil
    cdef double conjugate(self, Row* row, double c) noexcept nogil
    cdef void step(self, Row* row, double c) noexcept nogil
    cdef void project(self, Row* row) noexcept nogil
    cdef double rate_cap(self, Row* row, double residual, double bias) noexcept nogil
    cdef bint unsettled(self) noexcept nogil
    cdef void confine(self) noexcept nogil
    cdef double scale(self) noexcept nogil
    cdef bint bounded(self) noexcept nogil
    cdef void settle(self, Row* row) noexcept nogil
    cdef void accumulate(self, Row* row) noexcept nogil
    cdef void accumulate_all(self) noexcept nogil
    cdef double averaged_dot(self, Row* row) noexcept nogil
    cdef double averaged_block_dot(self, Row* row, Py_ssize_t start) noexcept nogil
    cdef void gather(self, Row* row, double[::1] source, double* out) noexcept nogil
    cdef void scatter(self, Row* row, double* values, double[::1] target) noexcept nogil


cdef class EuclideanGeometry(Geometry):
    cdef public double radius           # of the ball around 0 that holds the weights
    cdef bint in_place(self, Row* row) noexcept nogil
