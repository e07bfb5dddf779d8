"""Rows in units of their columns' deviations: centred and scaled by the rows that were learned before.

With h the weights of these rows and H their sum, the columns of a row x become

    z = (x - mean) / deviation,   mean = sum h x / H,   deviation^2 = sum h (x - mean)^2 / H,

kept within LIMIT, and 0 in a column that has been constant. The sums move by Welford's rule, which loses no digits to a
large mean. Or the mean is taken to be 0, for sparse rows, which centring would fill: of a row only the columns that it
stores are looked at then, as all others are 0 and stay it. Either way the same rows, dense or sparse, give the same
numbers.
"""

import numpy as np

cimport cython
from libc.math cimport isfinite, sqrt
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from onlinebregman._kernels.rows.rows cimport Row, Rows, open_rows

cdef extern from "ops/standardize.h":
    double ob_nonfinite(const double* a, Py_ssize_t n) noexcept nogil
    void ob_standardize(double* z, const double* x, const double* mean, const double* root, double unit, double limit,
                        Py_ssize_t n) noexcept nogil
    void ob_standardize_and_count(double* z, const double* x, double* mean, double* squares, double* root, double unit,
                                  double limit, double h, double share, double total, double least,
                                  Py_ssize_t n) noexcept nogil
    void ob_sparse_standardize(double* z, const double* x, const Py_ssize_t* index, const double* root, double unit,
                               double limit, Py_ssize_t n) noexcept nogil
    void ob_sparse_count(const double* x, const Py_ssize_t* index, double* squares, double* root, double h,
                         Py_ssize_t n) noexcept nogil

# Deviations beyond which a value counts no more.
cdef double LIMIT = 5.0
# A column whose deviation is below this share of its mean is constant but for rounding.
cdef double LEAST = 1e-14


@cython.final
cdef class Standardizer:
    """The statistics of the rows that were learned, and rows standardised by them.

    Parameters
    ----------
    n_features : int
    centred : bool
        Are means subtracted?
    state : ndarray, default=None
        What another one knows of the columns, to go on as it would,
    weight : float, default=0.0
        and the weight of its rows.
    """

    def __cinit__(self, n_features, centred, state=None, weight=0.0):
        self.n_features, self.centred, self.weight = n_features, centred, weight
        self.state, self.before = np.zeros(3 * self.n_features), None
        if state is not None:
            np.asarray(self.state)[:] = state

    def __dealloc__(self):
        free(self.log)

    def __reduce__(self):
        return type(self), (self.n_features, self.centred, np.asarray(self.state).copy(), self.weight)

    @property
    def n_samples_seen(self):
        """The weight of all rows that count."""
        return self.weight

    @property
    def mean(self):
        """What is subtracted: a new array."""
        return np.asarray(self.state)[2 * self.n_features:].copy()

    @property
    def scale(self):
        """What is divided by: a new array; 1 for columns that were constant."""
        inverse = self.inverse()
        return np.divide(1.0, inverse, out=np.ones(self.n_features), where=inverse > 0)

    cdef object inverse(self):
        """1 / deviation, or 0."""
        return np.asarray(self.state)[self.n_features:2 * self.n_features] * self.unit()

    def in_units_of_data(self, coef, intercept):
        """Weights and intercept that say of rows what the given ones say of standardised rows."""
        coef = coef * self.inverse()
        return coef, intercept - coef @ self.mean

    def transform(self, X):
        """Validated rows, dense or CSR, standardised: an array, or CSR with the columns of X."""
        cdef Rows rows = open_rows(X)
        cdef Row row
        cdef double[::1] values
        cdef Py_ssize_t[::1] columns, ends
        cdef Py_ssize_t i, start = 0
        self.open(rows)
        values, columns = np.empty(rows.stored), np.empty(rows.stored, np.intp)
        ends = np.zeros(rows.n_rows + 1, np.intp)
        for i in range(rows.n_rows):
            fetch_standardized(self, rows, i, &row)
            if row.n:
                memcpy(&values[start], row.x, row.n * sizeof(double))
                if row.index != NULL:  # in order, which they may not be in X
                    memcpy(&columns[start], row.index, row.n * sizeof(Py_ssize_t))
            start += row.n
            ends[i + 1] = start
        if self.centred or rows.indices == NULL:
            return np.asarray(values).reshape(X.shape)
        parts = np.asarray(values)[:start], np.asarray(columns)[:start], np.asarray(ends)
        return type(X)(parts, shape=X.shape)

    # --- rows ---------------------------------------------------------------------------------------------------

    cdef int open(self, Rows rows) except -1:
        """Get ready for rows that are standardised one by one; centring fills them."""
        if rows.n_columns != self.n_features:
            raise ValueError(f"rows must have {self.n_features} features, as those before; got {rows.n_columns}")
        rows.make_room(self.centred)
        return 0

    cdef double unit(self) noexcept nogil:
        """What the inverse roots of sums of squares have to be multiplied by."""
        return sqrt(self.weight)

    cdef void standardize(self, const Row* row, double* z) noexcept nogil:
        cdef const double* root = &self.state[self.n_features]
        if row.index == NULL:
            ob_standardize(z, row.x, root + self.n_features, root, self.unit(), LIMIT, row.n)
        else:
            ob_sparse_standardize(z, row.x, row.index, root, self.unit(), LIMIT, row.n)

    cdef void learn(self, const Row* row, double weight, double* z) noexcept nogil:
        """Standardise a row and let it count."""
        cdef double* squares = &self.state[0]
        cdef double* root = squares + self.n_features
        cdef double before = self.unit()
        cdef Py_ssize_t k
        if weight == 0:
            self.standardize(row, z)
            return
        self.weight += weight
        if row.index == NULL:
            ob_standardize_and_count(
                z, row.x, root + self.n_features, squares, root, before, LIMIT, weight,
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
        """Is everything finite that the last call may have changed?"""
        cdef Py_ssize_t k
        cdef double total = self.weight
        if self.complete:
            return isfinite(total) and ob_nonfinite(&self.state[0], 3 * self.n_features) == 0
        for k in range(self.logged):
            total += 0.0 * self.state[self.log[k].column]
        return isfinite(total)

    # --- a call, which may have to be undone ----------------------------------------------------------------------

    cdef int begin(self, Rows rows) except -1:
        """Get ready for rows to learn, and note what to go back to."""
        cdef Change* log
        self.weight_before, self.logged = self.weight, 0
        self.complete = rows.indices == NULL or rows.stored >= self.n_features
        if self.complete:
            if self.before is None:
                self.before = np.empty(3 * self.n_features)
            memcpy(&self.before[0], &self.state[0], 3 * self.n_features * sizeof(double))
        elif rows.stored > self.capacity:
            log = <Change*> realloc(self.log, rows.stored * sizeof(Change))
            if log == NULL:
                raise MemoryError()
            self.log, self.capacity = log, rows.stored
        return 0

    cdef void undo(self) noexcept:
        """Forget the rows of the last call."""
        cdef Change change
        self.weight = self.weight_before
        if self.complete:
            memcpy(&self.state[0], &self.before[0], 3 * self.n_features * sizeof(double))
        while self.logged > 0:
            self.logged -= 1
            change = self.log[self.logged]
            self.state[change.column] = change.square
            self.state[self.n_features + change.column] = 1.0 / sqrt(change.square) if change.square > 0 else 0.0
