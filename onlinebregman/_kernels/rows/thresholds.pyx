"""Rows as indicators of bins: of each column at three resolutions, and of pairs of columns at the two coarser ones.

At a resolution of b bins, the first b different values of a column get a bin each. If there are more, the bins are the
intervals that begin at these values. When a column has had 4, 8, 16, ... values, each bin that holds more than twice as
many of them as two neighbours together is split at its median, and the neighbours are united, as long as there are such
bins. The numbers of values are estimated from a uniform sample of the column.

A bin keeps its number, and with it the weights that were learned for it: where bins lie matters less than that they do
not move. They depend on the order of a column's values alone, which no increasing function changes, not on other
columns, weights of rows, or how rows are divided into calls. A missing value (NaN) has a bin of its own.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, isinf, isnan, nextafter
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memmove

from onlinebregman._kernels.ops.row cimport ob_rank
from onlinebregman._kernels.ops.state cimport Stateful
from onlinebregman._kernels.ops.uniform cimport uniform
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows, Shape, open_rows
from onlinebregman._kernels.rows.trees cimport LEAVES, Trees

cdef enum:
    COARSE = 6               # bins at each resolution
    MEDIUM = 12
    FINE = 64
    RESOLUTIONS = 3
    OF_PAIRS = 2             # resolutions of pairs of columns, the first ones
    ALL_BINS = COARSE + MEDIUM + FINE
    WIDTH = ALL_BINS + RESOLUTIONS  # indicators of a column, with one of missing values at each resolution
    SAMPLE = 256             # values of a column that are kept, to tell where bins have to be split
    PAIR = (COARSE + 1) * (COARSE + 1) + (MEDIUM + 1) * (MEDIUM + 1)  # indicators


cdef struct Column:          # what is known of a column; the bins of all resolutions, one after the other
    int64_t kept             # values in the sample
    int64_t[RESOLUTIONS] different  # values counted so far, at most one more than there are bins
    int64_t[ALL_BINS] number   # of each bin, in the order of the values
    double[ALL_BINS] lower   # the bins' least values, in order; infinite where there is no bin yet
    double[SAMPLE] sample    # in order


BINS = (COARSE, MEDIUM, FINE)
BINS_OF_PAIRS = BINS[:OF_PAIRS]
COLUMN = np.dtype([
    ("kept", np.int64), ("different", np.int64, RESOLUTIONS), ("number", np.int64, ALL_BINS),
    ("lower", np.float64, ALL_BINS), ("sample", np.float64, SAMPLE),
])

cdef Py_ssize_t[RESOLUTIONS] SIZE = BINS
cdef Py_ssize_t[RESOLUTIONS] START = [0, COARSE, COARSE + MEDIUM]  # of each resolution among the bins of a column


def parts_of_pairs(n_features, size, n_parts, random_state):
    """Parts of all pairs of columns, drawn at random: arrays of shape (size, 2), at most `n_parts`, in order.

    If there are less than n_parts * size pairs, some are in several parts; if there are at most `size`, all are in one.
    """
    total = n_features * (n_features - 1) // 2
    if total <= size:
        size, n_parts = total, 1
    drawn = np.random.default_rng(random_state).choice(total, min(total, n_parts * size), replace=False)
    return [pairs_of(np.sort(part), n_features) for part in np.resize(drawn, (n_parts, size))]


def pairs_of(rank, n_features):
    """The pairs of columns of these ranks in lexicographic order, shape (n, 2)."""
    firsts = np.cumsum(np.arange(n_features)[::-1])  # pairs whose first column is 0, or at most 1, ...
    first = np.searchsorted(firsts, rank, side="right")
    return np.column_stack([first, rank - firsts[first] + n_features]).astype(np.intp).reshape(-1, 2)


def columns_of(n_features, state):
    """The columns of a map made of arrays of their parts, which may be those of a damaged file."""
    if np.shape(state["kept"]) != (n_features,):
        raise ValueError(f"kept must be of shape {(n_features,)}; got {np.shape(state['kept'])}")
    columns = np.zeros(n_features, COLUMN)
    bounds = {"kept": SAMPLE, "different": [size + 1 for size in BINS], "number": np.repeat(BINS, BINS) - 1}
    for name in COLUMN.names:
        part = np.asarray(state[name])
        if part.shape != columns[name].shape:
            raise ValueError(f"{name} must be of shape {columns[name].shape}; got {part.shape}")
        if name in bounds and np.any((part < 0) | (part > bounds[name])):
            raise ValueError(f"{name} must be from 0 to {np.max(bounds[name])}, or less; got {part.tolist()}")
        columns[name] = part
    return columns


@cython.final
cdef class Bins(Stateful):
    """The bins of all columns, which follow the rows that are learned; maps of the same rows share them.

    Parameters
    ----------
    n_features : int
    n_trees : int, default=0
        Most trees that are grown from these rows.
    """

    cdef readonly Py_ssize_t n_features
    cdef object array         # of the columns
    cdef Column[::1] columns  # the same
    cdef readonly Trees trees  # or None
    cdef int64_t[::1] counted  # values of each column so far
    # What `undo` restores: the columns that the call has changed, of which copies are made when they change
    cdef Column[::1] before
    cdef int64_t[::1] counted_before
    cdef int64_t[::1] saved_in  # the last call in which a column was saved
    cdef int64_t call

    def __cinit__(self, n_features, dict state=None, n_trees=0):
        cdef Py_ssize_t d = n_features
        self.trees = self.given.pop("trees", Trees(d, n_trees) if n_trees else None)
        if state is None:
            columns, counted = np.zeros(d, COLUMN), np.zeros(d, np.int64)
            columns["lower"] = INFINITY
        else:
            columns, counted = columns_of(d, state), np.array(state["counted"], np.int64)
            self.given = {}
            if counted.shape != (d,) or np.any(columns["kept"] != np.minimum(counted, SAMPLE)) or np.any(counted >> 53):
                raise ValueError(f"each column must keep {SAMPLE} values, or all that were counted; got {counted}")
        self.n_features, self.array, self.columns = d, columns, columns
        self.before = np.empty(d, COLUMN)
        self.counted, self.counted_before, self.saved_in = counted, counted.copy(), np.zeros(d, np.int64)

    def get_state(self):
        """See `Stateful`: the parts of the columns, see `Column`, the number of values of each, and trees, if any."""
        state = {name: self.array[name].copy() for name in COLUMN.names} | {"counted": np.array(self.counted)}
        return state if self.trees is None else state | {"trees": self.trees}

    cdef void find(self, const Row* row, Py_ssize_t* bins) noexcept nogil:
        """The bins of the values of a dense row, at all resolutions of the first column, then of the next; leaves."""
        cdef Py_ssize_t j, k
        for j in range(self.n_features):
            for k in range(RESOLUTIONS):
                bins[RESOLUTIONS * j + k] = bin_of(&self.columns[j], k, row.x[j])
        if self.trees is not None:
            self.trees.find(row.x, bins + RESOLUTIONS * self.n_features)

    cdef void learn(self, const Row* row, double weight) noexcept nogil:
        """Count a dense row."""
        if self.trees is not None:
            self.trees.learn(row.x, weight)
        cdef Py_ssize_t j, k
        cdef int64_t n
        cdef double x, position
        for j in range(self.n_features):
            x = row.x[j] + 0.0  # not -0.0
            if isnan(x):
                continue
            for k in range(RESOLUTIONS):
                if is_new(&self.columns[j], k, x):
                    add_value(self.to_change(j), k, x)
            self.counted[j] += 1
            n = self.counted[j]
            position = uniform(n) * n
            if position < SAMPLE or self.columns[j].kept < SAMPLE:
                sample(self.to_change(j), <Py_ssize_t> position, x)
            if n >= 4 and n & (n - 1) == 0:
                for k in range(RESOLUTIONS):
                    if self.columns[j].different[k] > SIZE[k]:
                        balance(self.to_change(j), k)

    # --- undoing a call ---------------------------------------------------------------------------------------------

    cdef int begin(self, Py_ssize_t n_rows) except -1:
        self.call += 1
        memcpy(&self.counted_before[0], &self.counted[0], self.n_features * sizeof(int64_t))
        return 0 if self.trees is None else self.trees.begin(n_rows)

    cdef Column* to_change(self, Py_ssize_t j) noexcept nogil:
        """A column that is going to change: saved, if it was not yet in this call."""
        if self.saved_in[j] != self.call:
            self.before[j], self.saved_in[j] = self.columns[j], self.call
        return &self.columns[j]

    cdef void undo(self) noexcept:
        """Return to the state from before the last call; if that has been done, nothing changes."""
        cdef Py_ssize_t j
        memcpy(&self.counted[0], &self.counted_before[0], self.n_features * sizeof(int64_t))
        for j in range(self.n_features):
            if self.saved_in[j] == self.call:
                self.columns[j] = self.before[j]
        if self.trees is not None:
            self.trees.undo()


@cython.final
cdef class ThresholdMap(RowMap):
    """Indicators of the bins of columns and of pairs of them.

    Parameters
    ----------
    n_features : int
    pairs : array-like of shape (n_pairs, 2), default=()
        Pairs of columns.
    singles : bool, default=True
        Whether there are indicators of single columns as well.
    allow_nan : bool, default=False
        Whether dense rows with missing values may be learned.
    bins : Bins, default=None
        Those of the columns; None for new ones.
    grown : bool, default=False
        Whether there are indicators of the leaves of their trees, too.
    """

    cdef readonly Bins bins
    cdef readonly Py_ssize_t widest
    cdef readonly bint singles
    cdef readonly bint allow_nan
    cdef readonly object pairs
    cdef Py_ssize_t[:, ::1] pair
    cdef readonly bint grown  # whether there are indicators of leaves as well

    def __cinit__(self, n_features, pairs=(), bint singles=True, bint allow_nan=False, Bins bins=None,
                  dict state=None, grown=False):
        cdef Py_ssize_t d = n_features
        self.n_features, self.singles, self.allow_nan = d, singles, allow_nan
        self.bins = self.given.pop("bins", Bins(d) if bins is None else bins)
        if self.bins.n_features != d:
            raise ValueError(f"bins must be of {d} columns; got {self.bins.n_features}")
        self.pairs = np.array(pairs, np.intp).reshape(-1, 2)
        if np.any((self.pairs < 0) | (self.pairs >= d)):
            raise ValueError(f"pairs must be of columns from 0 to {d - 1}; got {pairs}")
        self.pair, self.arguments = self.pairs, (d, self.pairs, bool(singles), bool(allow_nan), None)
        self.grown = self.given.pop("grown", grown)
        self.n_outputs = d * WIDTH * singles + self.pair.shape[0] * PAIR
        self.widest = d * RESOLUTIONS * singles + self.pair.shape[0] * OF_PAIRS
        if self.grown and self.bins.trees is None:
            raise ValueError("bins must have trees, whose leaves have indicators; got none")
        if self.grown:
            self.n_outputs += self.bins.trees.most * LEAVES
            self.widest += self.bins.trees.most

    def get_state(self):
        """See `Stateful`."""
        return {"bins": self.bins} | ({"grown": True} if self.grown else {})

    def key(self):
        return type(self), self.n_features, self.pairs.tobytes(), self.singles, self.allow_nan, self.grown

    def share(self, RowMap other):
        """Share the bins of another map of the same rows, before the first row."""
        if isinstance(other, ThresholdMap) and not self.grown:
            self.bins = (<ThresholdMap> other).bins

    def transform(self, X):
        """The indicators of validated rows, dense or CSR: their columns, shape (n_rows, n_indicators)."""
        cdef Rows rows = open_rows(X)
        # trees that are not used yet have no leaves
        cdef Py_ssize_t i, n = self.widest - (self.bins.trees.most - self.bins.trees.live() if self.grown else 0)
        cdef Py_ssize_t[:, ::1] columns = np.empty((rows.n_rows, self.widest), np.intp)
        cdef Row row
        self.open(rows)
        for i in range(rows.n_rows if self.widest else 0):
            rows.fetch(i, &row)
            rows.fill(&row)
            self.bins.find(&row, rows.indicators)
            self.apply(rows.indicators, &columns[i, 0])
        return np.asarray(columns)[:, :n]

    # --- rows -------------------------------------------------------------------------------------------------------

    cdef int open(self, Rows rows) except -1:
        RowMap.open(self, rows)
        rows.allocate_scratch(True)
        return rows.allocate_indicators(self.n_found() + self.widest)

    cdef Py_ssize_t n_found(self) noexcept nogil:
        """Most numbers that `Bins.find` finds."""
        return RESOLUTIONS * self.n_features + (0 if self.bins.trees is None else 1 + self.bins.trees.most)

    cdef Shape shape(self, Rows rows) noexcept nogil:
        return Shape(False, self.widest, rows.n_rows * self.widest)

    cdef void map_row(self, Rows rows, Row* row) noexcept nogil:
        """Values that no row may have make all indicators NaN, so that learners refuse it.

        The bins of a row that has been fetched are found once, for all maps that share them.
        """
        cdef Py_ssize_t* columns = rows.indicators + self.n_found()
        cdef Py_ssize_t j
        rows.fill(row)
        if rows.binned_by != <void*> self.bins:
            self.bins.find(row, rows.indicators)
            rows.binned_by, rows.sound = <void*> self.bins, ob_nonfinite(row.x, row.n) == 0
            if not rows.sound and self.allow_nan and rows.indices == NULL:
                rows.sound = True
                for j in range(row.n):
                    rows.sound = rows.sound and not isinf(row.x[j])
        self.apply(rows.indicators, columns)
        row.x, row.index, row.n = rows.ones if rows.sound else rows.nans, columns, self.widest
        if self.grown:
            row.n += rows.indicators[RESOLUTIONS * self.n_features] - self.bins.trees.most

    cdef void map_to_learn(self, Rows rows, double weight, Row* row) noexcept nogil:
        cdef bint first = rows.binned_by != <void*> self.bins
        cdef Row given
        rows.fill(row)
        given = row[0]
        self.map_row(rows, row)
        if first and weight > 0:
            self.bins.learn(&given, weight)

    cdef void apply(self, const Py_ssize_t* bins, Py_ssize_t* columns) noexcept nogil:
        """The columns of the indicators that are 1 for a row with these bins."""
        cdef Py_ssize_t j, k, p, width, start = 0
        cdef const Py_ssize_t* left
        cdef const Py_ssize_t* right
        for j in range(self.n_features if self.singles else 0):
            for k in range(RESOLUTIONS):
                columns[0] = start + bins[RESOLUTIONS * j + k]
                start, columns = start + SIZE[k] + 1, columns + 1
        for p in range(self.pair.shape[0]):
            left, right = bins + RESOLUTIONS * self.pair[p, 0], bins + RESOLUTIONS * self.pair[p, 1]
            for k in range(OF_PAIRS):
                width = SIZE[k] + 1
                columns[0] = start + left[k] * width + right[k]
                start, columns = start + width * width, columns + 1
        bins += RESOLUTIONS * self.n_features
        for p in range(bins[0] if self.grown else 0):
            columns[p] = start + p * LEAVES + bins[1 + p]

    cdef int begin(self, Rows rows) except -1:
        self.bins.begin(rows.n_rows)
        return 0

    cdef void undo(self) noexcept:
        self.bins.undo()


# --- one column -------------------------------------------------------------------------------------------------------


cdef inline bint is_new(const Column* column, Py_ssize_t k, double x) noexcept nogil:
    """Whether x is a value that the column has not had, and it has not had more than there are bins."""
    cdef const double* lower = &column.lower[START[k]]
    cdef Py_ssize_t place
    if column.different[k] > SIZE[k]:
        return False
    place = ob_rank(lower, SIZE[k], x)
    return place == 0 or lower[place - 1] != x


cdef inline Py_ssize_t bin_of(const Column* column, Py_ssize_t k, double x) noexcept nogil:
    """The number of the bin of x at a resolution; that of a new value is the next one, if there is one left."""
    cdef const double* lower = &column.lower[START[k]]
    cdef Py_ssize_t place
    if isnan(x):
        return SIZE[k]
    place = ob_rank(lower, SIZE[k], x)
    if column.different[k] < SIZE[k] and (place == 0 or lower[place - 1] != x):
        return column.different[k]
    return column.number[START[k] + max(place, 1) - 1]


cdef void add_value(Column* column, Py_ssize_t k, double x) noexcept nogil:
    """Count a new value, which gets the next bin, if there is one left."""
    cdef Py_ssize_t n = column.different[k]
    column.different[k] += 1
    if n < SIZE[k]:
        insert_bin(&column.lower[START[k]], &column.number[START[k]], n, x, n)


cdef void insert_bin(double* lower, int64_t* number, Py_ssize_t n, double x, int64_t new) noexcept nogil:
    """Insert a bin, which begins at x, into n bins."""
    cdef Py_ssize_t place = ob_rank(lower, n, x)
    memmove(lower + place + 1, lower + place, (n - place) * sizeof(double))
    memmove(number + place + 1, number + place, (n - place) * sizeof(int64_t))
    lower[place], number[place] = x, new


cdef void sample(Column* column, Py_ssize_t place, double x) noexcept nogil:
    """Add x to the sample; if that is full, the value at `place` leaves it."""
    cdef double* values = column.sample
    cdef Py_ssize_t n = column.kept
    if n == SAMPLE:
        n -= 1
        memmove(values + place, values + place + 1, (n - place) * sizeof(double))
    else:
        column.kept += 1
    place = ob_rank(values, n, x)
    memmove(values + place + 1, values + place, (n - place) * sizeof(double))
    values[place] = x


cdef void balance(Column* column, Py_ssize_t k) noexcept nogil:
    """Split bins that hold too many values of the sample, and unite neighbours that hold few."""
    cdef double* lower = &column.lower[START[k]]
    cdef int64_t* number = &column.number[START[k]]
    cdef const double* values = column.sample
    cdef Py_ssize_t n = SIZE[k], i, pass_, largest, pair, median
    cdef Py_ssize_t[FINE + 1] first  # the number of values in the bins before each
    cdef int64_t free
    for pass_ in range(n):
        for i in range(1, n):
            first[i] = ob_rank(values, column.kept, nextafter(lower[i], -INFINITY))  # those below
        first[0], first[n] = 0, column.kept
        largest = -1
        for i in range(n):  # bins of one value cannot be split
            if first[i + 1] > first[i] and values[first[i]] < values[first[i + 1] - 1] and \
                    (largest < 0 or first[i + 1] - first[i] > first[largest + 1] - first[largest]):
                largest = i
        pair = -1
        for i in range(n - 1):
            if i != largest and i + 1 != largest and \
                    (pair < 0 or first[i + 2] - first[i] < first[pair + 2] - first[pair]):
                pair = i
        if largest < 0 or pair < 0 or first[largest + 1] - first[largest] <= 2 * (first[pair + 2] - first[pair]):
            return
        median = (first[largest] + first[largest + 1]) // 2
        while values[median] == values[first[largest]]:
            median += 1
        free = number[pair + 1]
        if first[pair + 1] - first[pair] < first[pair + 2] - first[pair + 1]:  # the one with more keeps its number
            free, number[pair] = number[pair], free
        memmove(lower + pair + 1, lower + pair + 2, (n - pair - 2) * sizeof(double))
        memmove(number + pair + 1, number + pair + 2, (n - pair - 2) * sizeof(int64_t))
        insert_bin(lower, number, n - 1, values[median], free)
