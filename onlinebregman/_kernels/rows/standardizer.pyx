"""Rows standardised online: centred and scaled by the statistics of the rows that were learned before.

With h the weights of these rows and H their sum, a value x of a column becomes

    z = (x - mean) / deviation,   mean = sum h x / H,   deviation^2 = sum h (x - mean)^2 / H,

clipped to [-LIMIT, LIMIT], and 0 in a column that has been constant. Outliers are searched in values that are not
clipped, where a column that has been constant is only centred. The sums are updated by Welford's rule, which is
accurate for a large mean, too. For sparse rows, which centring would make dense, the mean is taken to be 0; a row then
costs O(nonzeros). The result does not depend on whether rows are stored dense or sparse.

With `allow_nan`, NaN in a dense row is a missing value: it becomes 0 and does not count in h and H of its column.
"""

import numpy as np

cimport cython
from libc.math cimport NAN, isfinite, isnan, sqrt
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from onlinebregman._kernels.ops.standardize cimport (
    ob_centre_and_scale, ob_sparse_count, ob_sparse_standardize, ob_standardize, ob_standardize_and_count,
    ob_standardize_and_count_present, ob_standardize_present, ob_zero_missing
)
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows, Shape, fetch_mapped, open_rows

# Standardised values are clipped to this many deviations.
cdef double LIMIT = 5.0
# A column whose deviation is below this fraction of its mean is constant up to rounding.
cdef double LEAST = 1e-14


@cython.final
cdef class Standardizer(RowMap):
    """The statistics of the rows that were learned, which standardise the next ones.

    Parameters
    ----------
    n_features : int
    centred : bool
        Whether means are subtracted.
    state : ndarray, default=None
        The statistics of the columns to continue from.
    weight : float, default=0.0
        The sum of the weights of their rows.
    allow_nan : bool, default=False
        Whether NaN in dense rows is a missing value; requires `centred`.
    clipped : bool, default=True
        Whether values are clipped; False requires `centred`, and rows that are complete.
    """

    def __cinit__(self, n_features, centred, state=None, weight=0.0, allow_nan=False, clipped=True):
        if not clipped and (allow_nan or not centred):
            raise ValueError("values that are not clipped must be centred and not be missing")
        self.n_features = self.n_outputs = n_features
        self.centred, self.weight, self.clipped = centred, weight, clipped
        self.allow_nan = allow_nan and self.centred
        self.state, self.before = np.zeros((4 if self.allow_nan else 3) * self.n_features), None
        if state is not None:
            self.gaps = self.allow_nan and len(state) == 4 * self.n_features
            np.asarray(self.state)[:self.size()] = state

    def __dealloc__(self):
        free(self.log)

    def __reduce__(self):
        state = np.asarray(self.state)[:self.size()].copy()
        return type(self), (self.n_features, self.centred, state, self.weight, bool(self.allow_nan), bool(self.clipped))

    def key(self):
        return type(self), self.n_features, self.centred, self.allow_nan, self.clipped

    @property
    def n_samples_seen(self):
        """Sum of the weights of all rows so far."""
        return self.weight

    @property
    def limit(self):
        """The number of deviations that standardised values are clipped to."""
        return LIMIT

    @property
    def mean(self):
        """Means that are subtracted; a new array."""
        return np.asarray(self.state)[2 * self.n_features:3 * self.n_features].copy()

    @property
    def scale(self):
        """Deviations that are divided by, 1 for constant columns; a new array."""
        inverse = self.inverse()
        return np.divide(1.0, inverse, out=np.ones(self.n_features), where=inverse > 0)

    cdef object inverse(self):
        """1 / deviation, 0 for constant columns."""
        unit = np.sqrt(np.asarray(self.state)[3 * self.n_features:]) if self.gaps else self.unit()
        return np.asarray(self.state)[self.n_features:2 * self.n_features] * unit

    def in_units_of_data(self, coef, intercept):
        """Weights and intercept that predict from rows what the given ones predict from standardised rows."""
        coef = coef * self.inverse()
        return coef, intercept - coef @ self.mean

    def transform(self, X):
        """Validated rows, dense or CSR, standardised: an array, or CSR with the columns of X."""
        cdef Rows rows = open_rows(X)
        cdef Shape shape = self.shape(rows)
        cdef Row row
        cdef double[::1] values
        cdef Py_ssize_t[::1] columns, ends
        cdef Py_ssize_t i, start = 0
        self.open(rows)
        values, columns = np.empty(shape.stored), np.empty(shape.stored, np.intp)
        ends = np.zeros(rows.n_rows + 1, np.intp)
        for i in range(rows.n_rows):
            fetch_mapped(self, rows, i, &row)
            if row.n:
                memcpy(&values[start], row.x, row.n * sizeof(double))
                if row.index != NULL:  # sorted, which they may not be in X
                    memcpy(&columns[start], row.index, row.n * sizeof(Py_ssize_t))
            start += row.n
            ends[i + 1] = start
        if shape.dense:
            return np.asarray(values).reshape(X.shape)
        parts = np.asarray(values)[:start], np.asarray(columns)[:start], np.asarray(ends)
        return type(X)(parts, shape=X.shape)

    # --- rows ---------------------------------------------------------------------------------------------------

    cdef int open(self, Rows rows) except -1:
        RowMap.open(self, rows)
        return rows.allocate_scratch(self.centred)

    cdef Shape shape(self, Rows rows) noexcept nogil:
        """Centring makes rows dense."""
        if self.centred:
            return RowMap.shape(self, rows)
        return Shape(rows.indices == NULL, rows.widest, rows.stored)

    cdef void map_row(self, Rows rows, Row* row) noexcept nogil:
        if self.centred:
            rows.fill(row)
        self.standardize(row, rows.z)
        self.keep_invalid(rows, row)
        row.x = rows.z

    cdef void map_to_learn(self, Rows rows, double weight, Row* row) noexcept nogil:
        if self.centred:
            rows.fill(row)
        self.learn(row, weight, rows.z)
        self.keep_invalid(rows, row)
        row.x = rows.z

    cdef void keep_invalid(self, Rows rows, const Row* row) noexcept nogil:
        """Sparse rows have no missing values: NaN in one of them is also one in its image."""
        if self.allow_nan and rows.indices != NULL and row.n > 0 and ob_nonfinite(row.x, row.n) != 0:
            rows.z[0] = NAN

    cdef double unit(self) noexcept nogil:
        """The factor from 1 / sqrt(sum of squares) to 1 / deviation."""
        return sqrt(self.weight)

    cdef Py_ssize_t size(self) noexcept nogil:
        """How many numbers of the state are in use."""
        return (4 if self.gaps else 3) * self.n_features

    cdef bint lacks_values(self, const double* x) noexcept nogil:
        """Whether a dense row has missing values."""
        cdef Py_ssize_t i
        if self.allow_nan and ob_nonfinite(x, self.n_features) != 0:
            for i in range(self.n_features):
                if isnan(x[i]):
                    return True
        return False

    cdef void standardize(self, const Row* row, double* z) noexcept nogil:
        cdef const double* root = &self.state[self.n_features]
        cdef const double* mean = root + self.n_features
        if self.gaps and row.index == NULL:
            ob_standardize_present(z, row.x, mean, root, mean + self.n_features, LIMIT, row.n)
        elif not self.clipped:
            ob_centre_and_scale(z, row.x, mean, root, self.unit(), row.n)
        elif row.index == NULL:
            ob_standardize(z, row.x, mean, root, self.unit(), LIMIT, row.n)
            if self.lacks_values(row.x):
                ob_zero_missing(z, row.x, row.n)
        else:
            ob_sparse_standardize(z, row.x, row.index, root, self.unit(), LIMIT, row.n)

    cdef void learn(self, const Row* row, double weight, double* z) noexcept nogil:
        """Standardise a row, then add it to the statistics."""
        cdef double* squares = &self.state[0]
        cdef double* root = squares + self.n_features
        cdef double* mean = root + self.n_features
        cdef double before = self.unit()
        cdef Py_ssize_t k
        if weight == 0:
            self.standardize(row, z)
            return
        if row.index == NULL and not self.gaps and self.lacks_values(row.x):
            self.gaps = True
            for k in range(self.n_features):
                mean[self.n_features + k] = self.weight
        self.weight += weight
        if row.index == NULL and self.gaps:
            ob_standardize_and_count_present(
                z, row.x, mean, squares, root, mean + self.n_features, LIMIT, weight, LEAST, row.n
            )
            return
        if row.index == NULL:
            ob_standardize_and_count(
                z, row.x, mean, squares, root, before, LIMIT, weight,
                weight / self.weight if self.centred else 0.0, self.weight, LEAST, row.n,
            )
            return
        if not self.complete:
            for k in range(row.n):
                self.log[self.logged] = Change(row.index[k], squares[row.index[k]])
                self.logged += 1
        ob_sparse_standardize(z, row.x, row.index, root, before, LIMIT, row.n)
        ob_sparse_count(row.x, row.index, squares, root, weight, row.n)

    cdef bint bounded(self) noexcept nogil:
        cdef Py_ssize_t k
        cdef double total = self.weight
        if self.complete:
            return isfinite(total) and ob_nonfinite(&self.state[0], self.size()) == 0
        for k in range(self.logged):
            total += 0.0 * self.state[self.log[k].column]
        return isfinite(total)

    # --- undoing a call -------------------------------------------------------------------------------------------

    cdef int begin(self, Rows rows) except -1:
        cdef Change* log
        self.weight_before, self.gaps_before, self.logged = self.weight, self.gaps, 0
        self.complete = self.shape(rows).stored >= self.n_features
        if self.complete:
            if self.before is None:
                self.before = np.empty(self.state.shape[0])
            memcpy(&self.before[0], &self.state[0], self.size() * sizeof(double))
        elif rows.stored > self.capacity:
            log = <Change*> realloc(self.log, rows.stored * sizeof(Change))
            if log == NULL:
                raise MemoryError()
            self.log, self.capacity = log, rows.stored
        return 0

    cdef void undo(self) noexcept:
        """Restore the statistics from before the last call."""
        cdef Change change
        self.weight, self.gaps = self.weight_before, self.gaps_before
        if self.complete:
            memcpy(&self.state[0], &self.before[0], self.size() * sizeof(double))
        while self.logged > 0:
            self.logged -= 1
            change = self.log[self.logged]
            self.state[change.column] = change.square
            self.state[self.n_features + change.column] = 1.0 / sqrt(change.square) if change.square > 0 else 0.0
