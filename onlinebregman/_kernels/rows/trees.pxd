from onlinebregman._kernels.ops.state cimport Stateful

cimport cython

cdef enum:
    DEPTH = 6
    LEAVES = 1 << DEPTH      # of a tree
    NODES = LEAVES - 1       # that divide rows; the children of node i are 2 i + 1 and 2 i + 2
    FIRST = 6 << 10          # rows before the first tree
    PERIOD = 1 << 10         # rows from one tree to the next, at first
    SLOWER = 32              # periods in the rows so far from which on the period is doubled
    WINDOW = 1 << 11         # rows that a tree is grown from
    AHEAD = 256              # how many rows may be mapped before the residual of the first of them is known
    KEPT = WINDOW + PERIOD   # rows, so that those of a tree are still there after a call of PERIOD rows was undone
    RESIDUALS = 8            # of a row, of each of both kinds
    CUTS = 64                # places where nodes may divide a column


cdef struct Progress:
    Py_ssize_t n_trees
    Py_ssize_t seen          # rows so far
    Py_ssize_t told          # those of which the residuals are known
    Py_ssize_t grown         # how many of these there were when the last tree was grown


@cython.final
cdef class Trees(Stateful):
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t most  # trees
    cdef readonly Progress progress
    cdef Progress before       # what `undo` restores, with copies of the rows if the call might overwrite those needed
    cdef tuple rows_before
    cdef Py_ssize_t[::1] column  # of each node of each tree
    cdef double[::1] cut       # rows whose value is less go to the first child
    # Of the last rows, each at its number modulo KEPT:
    cdef double[:, ::1] rows
    cdef double[:, ::1] residuals  # those of the predictions, then those of a constant
    cdef double[::1] weights
    # Work of `grow`, of the rows of its window: their places in the order of nodes, the numbers of cuts that are at
    # most their values, the cuts, sums of weights and residuals for each number, and by what these are multiplied
    cdef Py_ssize_t[::1] order
    cdef unsigned char[:, ::1] reached
    cdef double[:, ::1] cuts
    cdef double[:, ::1] sums
    cdef double per_residual, per_weight
    cdef Py_ssize_t first, n   # the residuals of the kind that the tree is grown from, up to the last that is not 0

    cdef Py_ssize_t live(self) noexcept nogil
    cdef void find(self, const double* x, Py_ssize_t* leaves) noexcept nogil
    cdef void learn(self, const double* x, double weight) noexcept nogil
    cdef void tell(self, const double* residuals, Py_ssize_t n) noexcept nogil
    cdef void grow(self) noexcept nogil
    cdef Py_ssize_t place(self, Py_ssize_t i) noexcept nogil
    cdef void measure(self) noexcept nogil
    cdef void divide_column(self, Py_ssize_t j) noexcept nogil
    cdef Py_ssize_t split(self, Py_ssize_t node, Py_ssize_t start, Py_ssize_t end) noexcept nogil
    cdef void add_up(self, Py_ssize_t j, Py_ssize_t start, Py_ssize_t end) noexcept nogil
    cdef int begin(self, Py_ssize_t n_rows) except -1
    cdef void undo(self) noexcept
