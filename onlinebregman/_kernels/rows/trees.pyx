"""Trees that are grown as a stream gets longer: their leaves are indicators of boxes of several columns.

After every 1024 rows, from row 6144 on, a regression tree is grown from the last 2048 rows: in turn from targets, or
slopes of the loss of a constant, and from the residuals of the predictions, or the slopes of their losses, each made
before its row was learned, a step of gradient boosting (Friedman, "Greedy Function Approximation: A Gradient Boosting
Machine", The Annals of Statistics 29, 2001). The first find the large steps, the others what is missing. A node divides
its rows where the sum over both sides of |sum of the residuals|^2 / (weight + 10) is largest. What a leaf adds to a
prediction is learned like the weights of other indicators, from all rows that follow (He et al., "Practical Lessons
from Predicting Clicks on Ads at Facebook", ADKDD 2014), and trees never change, so that weights keep their meaning.

From row 32,768 on, where the others are good, each doubling of the rows brings 16 trees, one after an equal number of
rows: a stream that drifts is followed at any length, by few trees.

Rows are mapped some at a time before their residuals are known; a tree is used from 256 rows after its last one on, so
that it makes no difference how many at a time.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, fabs, isnan
from libc.string cimport memcpy, memset

from onlinebregman._kernels.ops.state cimport Stateful

cdef double PRIOR = 10.0      # rows of residual 0 in each node
cdef double LEAST = 3.0       # rows, of the mean weight, on each side


@cython.final
cdef class Trees(Stateful):
    """Trees, which follow the rows that are learned.

    Parameters
    ----------
    n_features : int
    most : int
        Number of trees, at least 1.
    """

    def __cinit__(self, n_features, most, dict state=None):
        cdef Py_ssize_t d = n_features, n
        self.n_features, self.most = d, most
        self.column, self.cut = np.zeros(self.most * NODES, np.intp), np.full(self.most * NODES, np.inf)
        self.rows, self.weights = np.zeros((KEPT, d)), np.zeros(KEPT)
        self.residuals = np.zeros((KEPT, 2 * RESIDUALS))
        self.order, self.reached = np.zeros(WINDOW, np.intp), np.zeros((WINDOW, d), np.uint8)
        self.cuts, self.sums = np.zeros((d, CUTS)), np.zeros((CUTS + 1, 1 + RESIDUALS))
        if state is None:
            return
        self.given = {}
        column, cut, n = state["column"], np.asarray(state["cut"]), state["seen"]
        places = np.arange(max(n - WINDOW, 0), n) % KEPT
        if np.shape(column) != cut.shape or cut.ndim != 1 or len(cut) % NODES or len(cut) > self.cut.shape[0] or \
                np.any((column < 0) | (column >= d)) or np.isnan(cut).any() or not 0 <= n < 1 << 53:
            raise ValueError(f"trees must have {NODES} nodes each, of {d} columns, and at most {most}; got {cut.shape}")
        self.progress = Progress(len(cut) // NODES, n, n, state["grown"])
        np.asarray(self.column)[: len(cut)], np.asarray(self.cut)[: len(cut)] = column, cut
        for name, kept in (("rows", self.rows), ("residuals", self.residuals), ("weights", self.weights)):
            kept, given = np.asarray(kept), np.asarray(state[name])
            if name == "residuals":  # the last ones may all be 0
                given = given if given.ndim == 3 else given.reshape(-1, 2, 0)
                kept = kept.reshape(KEPT, 2, RESIDUALS)[:, :, : given.shape[2]]
            if given.shape != (len(places), *kept.shape[1:]):
                raise ValueError(f"{name} must be of the last {len(places)} rows; got shape {given.shape}")
            kept[places] = given

    def get_state(self):
        """See `Stateful`: the nodes of all trees, and the last rows with their residuals."""
        cdef Py_ssize_t n = self.progress.n_trees * NODES, seen = self.progress.seen
        places = np.arange(max(seen - WINDOW, 0), seen) % KEPT
        residuals = np.asarray(self.residuals)[places].reshape(-1, 2, RESIDUALS)
        used = residuals.any(axis=(0, 1)).nonzero()[0].max(initial=-1) + 1
        return {
            "rows": np.asarray(self.rows)[places],
            "residuals": residuals[:, :, :used].copy(),
            "weights": np.asarray(self.weights)[places],
            "column": np.array(self.column[:n]),
            "cut": np.array(self.cut[:n]),
            "seen": seen,
            "grown": self.progress.grown,
        }

    @property
    def nodes(self):
        """The column and the cut of each node of the trees that are used, of shape (n_trees, n_nodes) each."""
        cdef Py_ssize_t n = self.live() * NODES
        return np.array(self.column[:n]).reshape(-1, NODES), np.array(self.cut[:n]).reshape(-1, NODES)

    cdef Py_ssize_t live(self) noexcept nogil:
        """The number of trees that are used for the next row."""
        return self.progress.n_trees - (self.progress.n_trees > 0 and self.progress.seen < self.progress.grown + AHEAD)

    cdef void find(self, const double* x, Py_ssize_t* leaves) noexcept nogil:
        """The number of trees, and that of the leaf of a dense row in each; missing values are not less than others."""
        cdef Py_ssize_t k, node, level, start = 0
        leaves[0] = self.live()
        for k in range(leaves[0]):
            node = 0
            for level in range(DEPTH):
                node = 2 * node + 1 + (not x[self.column[start + node]] < self.cut[start + node])
            leaves[1 + k] = node - NODES
            start += NODES

    cdef void learn(self, const double* x, double weight) noexcept nogil:
        """Keep a dense row, of which the residuals follow."""
        cdef Py_ssize_t at = self.progress.seen % KEPT
        memcpy(&self.rows[at, 0], x, self.n_features * sizeof(double))
        memset(&self.residuals[at, 0], 0, 2 * RESIDUALS * sizeof(double))
        self.weights[at] = weight
        self.progress.seen += 1

    cdef void tell(self, const double* residuals, Py_ssize_t n) noexcept nogil:
        """Keep n residuals of each kind of the next row, of many some summed. Grow a tree if it is time."""
        cdef Py_ssize_t k, told, period = PERIOD, at = self.progress.told % KEPT
        for k in range(n):
            self.residuals[at, k % RESIDUALS] += self.weights[at] * residuals[k]
            self.residuals[at, RESIDUALS + k % RESIDUALS] += self.weights[at] * residuals[n + k]
        self.progress.told += 1
        told = self.progress.told + AHEAD
        while told >= SLOWER * period:
            period *= 2
        if told >= FIRST and told % period == 0 and self.progress.n_trees < self.most:
            self.grow()

    # --- a tree -----------------------------------------------------------------------------------------------------

    cdef void grow(self) noexcept nogil:
        """Grow the next tree from the last rows whose residuals are known."""
        cdef Py_ssize_t j, node, middle, start = self.progress.n_trees * NODES
        cdef Py_ssize_t[LEAVES + NODES] first
        cdef Py_ssize_t[LEAVES + NODES] end
        self.measure()
        for j in range(self.n_features):
            self.divide_column(j)
        first[0], end[0] = 0, WINDOW
        for node in range(NODES):
            middle = self.split(start + node, first[node], end[node])
            first[2 * node + 1], end[2 * node + 1] = first[node], middle
            first[2 * node + 2], end[2 * node + 2] = middle, end[node]
        self.progress.n_trees += 1
        self.progress.grown = self.progress.told

    cdef inline Py_ssize_t place(self, Py_ssize_t i) noexcept nogil:
        """Where the i-th row of the window is kept."""
        return (self.progress.told - WINDOW + i) % KEPT

    cdef void measure(self) noexcept nogil:
        """Find which residuals are summed, and in which units, as well as the weights."""
        cdef Py_ssize_t i, k
        cdef double size, largest = 0.0, total = 0.0
        self.first, self.n = RESIDUALS if self.progress.n_trees % 2 == 0 else 0, 0
        for i in range(WINDOW):
            self.order[i] = i
            total += self.weights[self.place(i)] / WINDOW
            for k in range(RESIDUALS):
                size = fabs(self.residuals[self.place(i), self.first + k])
                largest, self.n = max(largest, size), max(self.n, k + 1 if size > 0 else 0)
        self.per_residual, self.per_weight = 1.0 / largest if largest > 0 else 0.0, 1.0 / total

    cdef void divide_column(self, Py_ssize_t j) noexcept nogil:
        """Find the different values of some rows, in order: the cuts; for each row, how many are at most its value."""
        cdef Py_ssize_t i, k, place, n = 0
        cdef double x
        cdef double* cuts = &self.cuts[j, 0]
        for i in range(CUTS):
            x = self.rows[self.place(i * (WINDOW // CUTS)), j]
            place = n
            while place > 0 and not cuts[place - 1] < x:
                place -= 1
            if isnan(x) or (place < n and cuts[place] == x):
                continue
            for k in range(n, place, -1):
                cuts[k] = cuts[k - 1]
            cuts[place] = x
            n += 1
        for k in range(n, CUTS):
            cuts[k] = INFINITY
        for i in range(WINDOW):
            x, place, k = self.rows[self.place(i), j], 0, CUTS // 2
            while k > 0:
                place += 0 if x < cuts[place + k - 1] else k
                k //= 2
            self.reached[i, j] = place + (not x < cuts[place])

    cdef void add_up(self, Py_ssize_t j, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
        """The sums of weights and residuals of rows of a node for each number of cuts of a column."""
        cdef Py_ssize_t i, k, place
        cdef double* sums
        memset(&self.sums[0, 0], 0, (CUTS + 1) * (1 + RESIDUALS) * sizeof(double))
        for i in range(start, end):
            place, sums = self.place(self.order[i]), &self.sums[self.reached[self.order[i], j], 0]
            sums[0] += self.weights[place] * self.per_weight
            for k in range(self.n):
                sums[1 + k] += self.residuals[place, self.first + k] * self.per_residual

    cdef Py_ssize_t split(self, Py_ssize_t node, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
        """Divide the rows of a node as much as is worth it; returns where those of the second child start."""
        cdef Py_ssize_t i, j, k, b, row, best_column = -1, cut = 0
        cdef double gain, best = 0.0
        cdef double[1 + RESIDUALS] all_
        cdef double[1 + RESIDUALS] left
        for j in range(self.n_features if end - start > 1 else 0):
            self.add_up(j, start, end)
            memset(left, 0, (1 + RESIDUALS) * sizeof(double))
            memset(all_, 0, (1 + RESIDUALS) * sizeof(double))
            for b in range(CUTS + 1):
                for k in range(1 + self.n):
                    all_[k] += self.sums[b, k]
            if j == 0:
                best = score(all_, NULL, self.n) * (1.0 + 1e-9)  # more than rounding errors
            for b in range(CUTS):
                for k in range(1 + self.n):
                    left[k] += self.sums[b, k]
                if self.sums[b, 0] == 0 or left[0] < LEAST or all_[0] - left[0] < LEAST:
                    continue
                gain = score(left, NULL, self.n) + score(all_, left, self.n)
                if gain > best:
                    best, best_column, cut = gain, j, b
        if best_column < 0:
            self.column[node], self.cut[node] = 0, INFINITY
            return end
        self.column[node], self.cut[node] = best_column, self.cuts[best_column, cut]
        i = start
        while i < end:
            row = self.order[i]
            if self.reached[row, best_column] <= cut:
                i += 1
            else:
                end -= 1
                self.order[i], self.order[end] = self.order[end], row
        return end

    # --- undoing a call ---------------------------------------------------------------------------------------------

    cdef int begin(self, Py_ssize_t n_rows) except -1:
        """Save what `undo` restores, before a call of so many rows."""
        self.progress.told = self.progress.seen  # of a learner by itself nothing is told
        self.before, self.rows_before = self.progress, None
        if n_rows > PERIOD:
            self.rows_before = self.rows.copy(), self.residuals.copy(), self.weights.copy()
        return 0

    cdef void undo(self) noexcept:
        """Return to the state from before the last call; if that has been done, nothing changes."""
        self.progress = self.before
        if self.rows_before is not None:
            self.rows, self.residuals, self.weights = self.rows_before


cdef inline double score(const double* sums, const double* without, Py_ssize_t n) noexcept nogil:
    """|sum of the residuals|^2 / (weight + PRIOR), of a node without a part of it."""
    cdef Py_ssize_t k
    cdef double total = 0.0, each
    for k in range(1, 1 + n):
        each = sums[k] - (0.0 if without == NULL else without[k])
        total += each * each
    return total / (sums[0] - (0.0 if without == NULL else without[0]) + PRIOR)
