from libc.math cimport INFINITY

from onlinebregman._kernels.ops.state cimport State
from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef enum:
    NOTES = 16                # size of a geometry's own struct about a row, in doubles
    SHORT = 40                # vectors up to this length need no memory from the heap
    MOVED = 5                 # most vectors that steps change, see `Geometry.moved_vectors`


cdef enum Trait:              # what is true of a geometry, or of a learner, whatever its rows are
    SIGNED = 1                # weights w+ and w- of each feature, learned on the row (x, -x)
    LINEAR = 2                # w(c).x is linear in c: one Newton step solves the implicit equation
    ADAPTIVE = 4              # S depends on past rows: `adapt` updates it with each row
    HAS_POLES = 8             # c near an end of its `domain` is measured from there, see `count_from`
    MOVES_ALL = 16            # every step moves all weights, even on a sparse row
    QUADRATIC = 32            # the weights are a symmetric matrix W that predicts z'Wz, not w.x
    DENSE = 64               # of a learner: rows must be dense
    CHUNKWISE = 128           # of a learner: it has a matrix and does not call Python, and learns a chunk at once
    LINKS = 256               # of a learner: predictions are not its scores, but links of them


cdef enum Backup:             # of the weights before a call
    PARTIAL                   # of those that rows have values for
    COMPLETE
    MISSED                    # not of all those a step had to move: it did not, and the call is repeated with all


cdef struct Workspace:        # intermediate results about a row; it belongs to the caller
    const Row* row
    double* w                 # the row's weights: the state itself, or a gathered copy (sparse)
    const double* x           # the values that go with them: the row's, or (x, -x) for signed weights
    Py_ssize_t n              # the number of values
    double origin             # c is measured from here: 0, or an end of the domain (see `HAS_POLES`)
    bint in_block             # whether its rows are those that `begin_block` announced
    const Workspace* twin     # of the same row, by a geometry with the same metric that is updated before, or NULL
    void* notes               # a struct defined by the geometry
    double* vectors           # five of `length` values, the last one for the solver
    Py_ssize_t length
    double[NOTES + 5 * SHORT] memory


cdef inline double* scratch(const Workspace* work, int k) noexcept nogil:
    """Working vector 1 or 2; vector 0 holds gathered weights, vector 3 the values (x, -x) of signed weights."""
    return work.vectors + k * work.length


cdef inline void open_workspace(Workspace* work, const Row* row) noexcept nogil:
    """Set the row of the workspace; to be followed by `Geometry.load`."""
    work.row, work.x, work.n, work.origin, work.twin = row, row.x, row.n, 0.0, NULL


cdef inline void find_poles(Workspace* work, double least, double most, double* lo, double* hi) noexcept nogil:
    """The interval of c on which 1 + c mu > 0 for all mu between least <= 0 and most >= 0, relative to the origin."""
    lo[0] = -1.0 / most if most > 0 else -INFINITY
    hi[0] = -1.0 / least if least < 0 else INFINITY
    if work.origin != 0:
        lo[0] -= work.origin  # exactly 0 at the end that c is measured from
        hi[0] -= work.origin


cdef int make_workspace(Workspace* work, Py_ssize_t length) except -1
cdef void free_workspace(Workspace* work) noexcept nogil


cdef class Workspaces:        # for several models that learn a row together
    cdef Workspace* each
    cdef Py_ssize_t n, length  # number of workspaces, and length of their vectors

    cdef void release(self) noexcept
    cdef int reserve(self, Py_ssize_t n, Py_ssize_t length) except -1


cdef class Geometry

cdef void gather_row(Geometry geometry, const Row* row, double* source, double* out) noexcept nogil
cdef void scatter_row(Geometry geometry, const Row* row, double* values, double* target) noexcept nogil


cdef class Average:           # of the weights over time
    cdef readonly bint active
    cdef bint computed        # whether weights are computed from the state, see `value`
    cdef Py_ssize_t first     # the first weight that scores are made of
    cdef double clock
    cdef double[::1] total, stamp  # sum of each weight over time, and the clock at which it was last added to it

    cdef double value(self, Geometry geometry, Py_ssize_t j) noexcept nogil
    cdef double* values(self, Geometry geometry) noexcept nogil
    cdef void add(self, Geometry geometry, const Row* row) noexcept nogil
    cdef void add_all(self, Geometry geometry) noexcept nogil
    cdef void restart(self) noexcept nogil
    cdef double dot(self, Geometry geometry, const Row* row) noexcept nogil
    cdef double dot_from(self, Geometry geometry, const Row* row, Py_ssize_t start) noexcept nogil


cdef class Lazy:              # the proximal steps of a penalty
    cdef readonly bint active  # whether there is a penalty, R(w) = l1 |w|_1 + l2 |w|_2^2 / 2
    cdef readonly bint linearised  # whether its steps are explicit: see `penalise` of `mirror_step`
    cdef bint eager           # whether each row makes the steps of all weights, or those of its own only
    cdef readonly double l1, l2
    cdef double threshold, growth  # the clock, see `composes`
    cdef double pending       # number of rows since all weights made their steps
    cdef double[::1] stamp    # the threshold up to which each weight has made them
    cdef double (*proximal)(double w, double l1, double l2) noexcept nogil  # argmin of D(v, w) + l1 |v| + l2 v^2 / 2
    cdef double (*distance)(double v, double w) noexcept nogil  # D(v, w) of a weight

    cdef bint composes(self, Geometry geometry) noexcept nogil
    cdef bint averages(self, Geometry geometry) noexcept nogil
    cdef void advance(self, double l1, double l2) noexcept nogil
    cdef void step_row(self, Geometry geometry, Workspace* work, double l1, double l2, bint missed) noexcept nogil
    cdef double caught_up(self, Geometry geometry, Py_ssize_t j) noexcept nogil
    cdef void catch_up(self, Geometry geometry, Workspace* work) noexcept nogil
    cdef void catch_up_all(self, Geometry geometry) noexcept nogil
    cdef void shrink(self, Geometry geometry, Workspace* work, double eta) noexcept nogil
    cdef double shrink_all(self, Geometry geometry, double eta, bint tracked) noexcept nogil


cdef class Geometry:
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t per_feature  # weights per feature: 2 for w+ and w-, n_features for a matrix
    cdef Py_ssize_t weight_blocks    # the first of these blocks are weights; the others are the state of a metric
    cdef int traits                  # a set of `Trait`
    cdef public double upper         # largest weight allowed
    cdef readonly object failure     # the exception raised by a geometry in Python
    cdef double[::1] weights
    cdef Py_ssize_t spare            # by how much all vectors of this length can grow in place
    cdef State state                # the numbers that steps change in addition to the weights, see `declare`
    cdef readonly tuple row_sums     # the names of those which are sums over rows
    cdef Backup backup
    cdef readonly Average average
    cdef readonly Lazy lazy           # the penalty

    cdef int declare(self, str name, void* number, bint sums_rows=?, Py_ssize_t size=?) except -1
    cdef Py_ssize_t vector_length(self, Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t first_mutable(self, Py_ssize_t n_rows) noexcept nogil
    cdef void begin_block(self, Rows rows, const double* sample_weight, Workspace* work) noexcept nogil
    cdef void load(self, Workspace* work) noexcept nogil
    cdef void fetch_weights(self, Workspace* work) noexcept nogil
    cdef void store(self, Workspace* work) noexcept nogil
    cdef double dot(self, Workspace* work) noexcept nogil
    cdef void evaluate(self, Workspace* work, double c, double* value, double* slope) noexcept nogil
    cdef void domain(self, Workspace* work, double* lo, double* hi) noexcept nogil
    cdef double adapt(self, Workspace* work, double g, double a, double y, double weight, bint exact,
                      double* slope, double* intercept_xSx) noexcept nogil
    cdef void note_step(self, Workspace* work, double c, double gain) noexcept nogil
    cdef double self_concordance(self, Workspace* work, double slope) noexcept nogil
    cdef double conjugate(self, Workspace* work, double c) noexcept nogil
    cdef void step(self, Workspace* work, double c) noexcept nogil
    cdef void project(self, Workspace* work) noexcept nogil
    cdef bint needs_projection(self) noexcept nogil
    cdef void project_all(self) noexcept nogil
    cdef double scale(self) noexcept nogil
    cdef bint bounded(self) noexcept nogil
    cdef void renormalise(self, Workspace* work) noexcept nogil
    cdef bint may_move_all(self) noexcept nogil
    cdef int moved_vectors(self, double** each) noexcept nogil
