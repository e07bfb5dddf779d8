"""Rows standardised online: centred and scaled by the statistics of the rows that were learned before.

A value x of a column becomes z = (x - mean) / deviation, clipped to [-5, 5], and 0 in a column of which no
deviation is known. Mean and deviation are those of the values so far, except that absurd ones count as five deviations
and that a column that has moved is learned anew: see `ops/standardize.h`. Outliers are searched in values that are not
clipped, where a column that has been constant is only centred. For sparse rows, which centring would make dense, the
mean is taken to be 0; a row then costs O(nonzeros). The result does not depend on whether rows are stored dense or
sparse.

Learners that keep sums of rows need values whose units do not move: not `scaled`, columns are only limited, to mean +-
five deviations.

With `allow_nan`, NaN in a dense row is a missing value: it becomes 0 (the mean, if not `scaled`) and does not count. A
`strict` map only predicts rows in which values are missing of columns that have had some: it refuses to learn one,
before which a model may prepare.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, isfinite, isnan, sqrt
from libc.stdlib cimport free
from libc.string cimport memcpy

from onlinebregman._kernels.ops.pointers cimport resized
from onlinebregman._kernels.ops.standardize cimport (
    OB_BLOCK, OB_CLOSE, OB_ENOUGH, OB_LEAST, OB_LIMIT, ob_centre_and_scale, ob_count, ob_count_close, ob_limit,
    ob_sparse_count, ob_sparse_standardize, ob_standardize, ob_widen
)
from onlinebregman._kernels.ops.state cimport Field
from onlinebregman._kernels.ops.vector cimport ob_nonfinite
from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows, Shape, fetch_mapped, open_rows

# Of each column: `moved`, evidence that it has; then where its recent values are, since when, and in which steps
STATISTICS = ("deviation", "inverse", "mean", "weights", "moved", "low", "high", "run", "longest", "last", "steps",
              "usual")
NOT_CENTRED = ("deviation", "inverse", "mean", "weights", "run", "longest", "size")  # the `size` of the run is a mean


@cython.final
cdef class Standardizer(RowMap):
    """The statistics of the rows that were learned, which standardise the next ones.

    Parameters
    ----------
    n_features : int
    centred : bool
        Whether means are subtracted.
    allow_nan : bool, default=False
        Whether NaN in dense rows is a missing value; requires `centred`.
    clipped : bool, default=True
        Whether values are clipped; False requires `centred`, and rows that are complete.
    scaled : bool, default=True
        Whether values are centred and scaled; False requires `centred`: they are clipped in units of the data.
    strict : bool, default=False
        Whether rows that are learned must be complete, until `admit_missing`.
    """

    def __cinit__(self, n_features, centred, allow_nan=False, clipped=True, scaled=True, strict=False,
                  dict state=None):
        cdef Py_ssize_t k
        if not clipped and (allow_nan or not centred):
            raise ValueError("values that are not clipped must be centred and not be missing")
        self.n_features = self.n_outputs = n_features
        self.centred, self.clipped, self.scaled = centred, clipped, scaled or not centred
        self.allow_nan, self.strict = allow_nan and self.centred, strict
        self.arguments = n_features, centred, bool(self.allow_nan), clipped, bool(self.scaled), strict
        names = STATISTICS if centred else NOT_CENTRED
        self.state = np.zeros(len(names) * self.n_features)
        self.fields.add("weight", &self.weight, sizeof(self.weight))
        self.fields.add("block", &self.block, sizeof(self.block))
        self.fields.add("strict", &self.strict, sizeof(self.strict))
        for k, name in enumerate(names if self.n_features else ()):
            self.fields.vector(name, self.state[k * self.n_features:(k + 1) * self.n_features])

    def __dealloc__(self):
        free(self.log)

    def key(self):
        return type(self), self.n_features, self.centred, self.allow_nan, self.clipped, self.scaled, self.strict

    def admit_missing(self):
        """Learn rows with missing values, too."""
        self.strict = False

    def begin_again(self):
        """Forget all rows."""
        self.weight = self.block = 0.0
        np.asarray(self.state)[:] = 0.0

    @property
    def known(self):
        """Which columns have had a value."""
        return np.asarray(self.state)[3 * self.n_features:4 * self.n_features] > 0

    cdef bint seen(self, Py_ssize_t column) noexcept nogil:
        return self.state[3 * self.n_features + column] > 0

    @property
    def n_samples_seen(self):
        """Sum of the weights of all rows so far."""
        return self.weight

    @property
    def limit(self):
        """The number of deviations that standardised values are clipped to."""
        return OB_LIMIT

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
        inverse = np.asarray(self.state)[self.n_features:2 * self.n_features]
        return inverse.copy() if self.centred else inverse * np.sqrt(self.weight)

    def in_units_of_data(self, coef, intercept):
        """Weights and intercept that predict from rows what the given ones predict from standardised rows."""
        if not self.scaled:
            return coef, intercept
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

    cdef void standardize(self, const Row* row, double* z) noexcept nogil:
        cdef const double* deviation = &self.state[0]
        cdef const double* inverse = deviation + self.n_features
        cdef const double* mean = inverse + self.n_features
        cdef double missing = 0.0 if self.allow_nan else NAN
        if not self.centred:
            ob_sparse_standardize(z, row.x, row.index, inverse, sqrt(self.weight), OB_LIMIT, row.n)
        elif not self.clipped:
            ob_centre_and_scale(z, row.x, mean, inverse, row.n)
        elif self.scaled:
            ob_standardize(z, row.x, mean, inverse, OB_LIMIT, missing, row.n)
        else:
            ob_limit(z, row.x, mean, deviation, OB_LIMIT, missing, row.n)

    cdef void learn(self, const Row* row, double weight, double* z) noexcept nogil:
        """Standardise a row, then add it to the statistics."""
        cdef double* deviation = &self.state[0]
        cdef double* inverse = deviation + self.n_features
        cdef double* mean = inverse + self.n_features
        cdef double* weights = mean + self.n_features
        cdef double* moved = weights + self.n_features
        cdef double* low
        cdef double limit = OB_LIMIT if self.clipped else INFINITY
        cdef Py_ssize_t i, k
        self.standardize(row, z)
        if weight == 0:
            return
        self.weight += weight
        if self.strict and ob_nonfinite(row.x, row.n) != 0:
            for k in range(row.n):
                z[k] = NAN if isnan(row.x[k]) and self.seen(k) else z[k]
        if self.centred:
            self.begun = ob_count(row.x, mean, deviation, inverse, weights, moved, limit, weight,
                                  OB_ENOUGH if self.scaled else INFINITY, OB_LEAST, row.n)
            low = moved + row.n
            ob_widen(row.x, low, low + row.n, row.n)
            self.block = (self.block + 1.0) % OB_BLOCK
            if self.block == 0:
                ob_count_close(row.x, deviation, inverse, weights, moved, low, OB_CLOSE, row.n)
            return
        if not self.complete:
            for k in range(row.n):
                self.log[self.logged].column = row.index[k]
                for i in range(7):
                    self.log[self.logged].before[i] = deviation[i * self.n_features + row.index[k]]
                self.logged += 1
        ob_sparse_count(row.x, row.index, deviation, self.n_features, OB_LIMIT, weight, row.n)

    cdef bint begins(self, Py_ssize_t column, double weight, double* at) noexcept nogil:
        at[0] = self.state[2 * self.n_features + column]
        return self.state[3 * self.n_features + column] == weight

    cdef bint bounded(self) noexcept nogil:
        cdef Py_ssize_t k
        cdef double total = self.weight
        if self.complete:
            return isfinite(total) and ob_nonfinite(&self.state[0], self.state.shape[0]) == 0
        for k in range(self.logged):
            total += 0.0 * self.state[self.log[k].column]
        return isfinite(total)

    # --- undoing a call -------------------------------------------------------------------------------------------

    cdef int begin(self, Rows rows) except -1:
        cdef Field* columns = &self.fields.each[self.fields.n - 1]
        self.complete, self.logged = self.shape(rows).stored >= self.n_features, 0
        columns.changing = columns.size if self.complete else 0
        if not self.complete and rows.stored > self.capacity:
            self.log, self.capacity = <Change*> resized(self.log, rows.stored * sizeof(Change)), rows.stored
        return RowMap.begin(self, rows)

    cdef void undo(self) noexcept:
        """Restore the statistics from before the last call."""
        cdef Py_ssize_t i
        RowMap.undo(self)
        while self.logged > 0:
            self.logged -= 1
            for i in range(7):
                self.state[i * self.n_features + self.log[self.logged].column] = self.log[self.logged].before[i]
