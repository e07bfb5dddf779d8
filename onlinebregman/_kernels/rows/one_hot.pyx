"""Rows with columns of categories for linear models: numbers standardised, and an indicator of each category.

The image of a row is sparse: its numbers, and a one for the category of each other column. Indicators are given to
categories (and to the missing one of a column, NaN) in the order in which they are learned, so that the width of images
need not grow; when all are in use, further categories have none. A category that has not been learned is mapped to the
indicator that it gets next, whose weights are still 0.

A missing number is the mean of its column, and may have an indicator, too: its effect need not be that of the mean. As
long as the column has had no value there is none.

Indicators are not standardised: the effect of a rare category, seen in few rows, then is shrunk as it should be.
"""

import copy

import numpy as np

cimport cython
from libc.math cimport isnan
from libc.string cimport memcpy

from onlinebregman._kernels.rows.rows cimport Row, RowMap, Rows, Shape, fetch_mapped, open_rows
from onlinebregman._kernels.rows.standardizer cimport Standardizer

cdef enum:
    CODES = 1024  # numbers of categories that may have an indicator; one more stands for missing values
CATEGORIES = CODES


@cython.final
cdef class OneHotMap(RowMap):
    """Numbers, standardised or not, and indicators of the categories learned so far.

    Parameters
    ----------
    is_categorical : ndarray of bool of shape (n_features,)
        The columns that hold numbers of categories, 0, 1, ...
    n_indicators : int
        For the categories of all columns together.
    standardizer : Standardizer, default=None
        Of the columns of numbers.
    missing : bool, default=False
        Whether missing numbers have indicators; requires a standardizer.
    """

    cdef readonly Standardizer standardizer
    cdef readonly Py_ssize_t n_indicators
    cdef Py_ssize_t[::1] numeric       # the columns of numbers
    cdef Py_ssize_t[::1] categorical   # the columns of categories
    cdef readonly bint missing         # whether missing numbers have indicators
    cdef Py_ssize_t[:, ::1] place      # of each category of each of them among the indicators; -1 if it has none
    cdef Py_ssize_t[::1] place_of_missing  # the same of each of the columns of numbers
    cdef Py_ssize_t[:, ::1] owner      # of each indicator, as indices of `place`; beyond its rows, of numbers
    cdef Py_ssize_t used, used_before  # number of indicators that have a category

    def __cinit__(self, is_categorical, n_indicators, standardizer=None, missing=False, dict state=None):
        cdef Py_ssize_t k
        mask = np.array(is_categorical, dtype=bool)
        self.numeric, self.categorical = np.flatnonzero(~mask), np.flatnonzero(mask)
        self.n_features, self.n_indicators, self.standardizer = len(mask), n_indicators, standardizer
        self.n_outputs = self.numeric.shape[0] + self.n_indicators
        if standardizer is not None and standardizer.n_features != self.numeric.shape[0]:
            raise ValueError(
                f"the standardizer must be of {self.numeric.shape[0]} columns; got {standardizer.n_features}"
            )
        self.place = np.full((self.categorical.shape[0], CODES + 1), -1, dtype=np.intp)
        self.place_of_missing = np.full(self.numeric.shape[0], -1, dtype=np.intp)
        self.owner, self.missing = np.zeros((self.n_indicators, 2), dtype=np.intp), missing
        self.arguments = mask, self.n_indicators, standardizer, bool(missing)
        owner = np.asarray(self.given.pop("owner", ()), dtype=np.intp).reshape(-1, 2)
        if (owner < 0).any() or (owner >= (self.n_features, CODES + 1)).any():
            raise ValueError(f"owners must be columns and numbers of categories; got {owner.tolist()}")
        self.used = len(owner)
        np.asarray(self.owner)[:self.used] = owner
        for k in range(self.used):
            self.assign(self.owner[k, 0], self.owner[k, 1], k)

    def get_state(self):
        """See `Stateful`: for each indicator in use the column, among those of categories and then those of numbers,
        and the number of its category."""
        return {"owner": np.asarray(self.owner)[:self.used].copy()}

    def after(self, old):
        """This map, with what another one of the same columns, a Standardizer or of fewer indicators, has learned."""
        standardizer, state = (old, {}) if isinstance(old, Standardizer) else (old.standardizer, old.get_state())
        wide = type(self)(*self.arguments[:2], copy.deepcopy(standardizer), self.missing, state)
        wide.admit_missing()
        return wide

    @property
    def known(self):
        """Which columns of numbers have had a value."""
        return self.standardizer.known

    def begin_again(self):
        """Forget the scales of numbers."""
        if self.standardizer is not None:
            self.standardizer.begin_again()

    def admit_missing(self):
        """See `Standardizer`."""
        self.standardizer.admit_missing()

    def key(self):
        standardizer = None if self.standardizer is None else self.standardizer.key()
        return type(self), tuple(self.categorical), self.n_features, self.n_indicators, self.missing, standardizer

    def in_units_of_data(self, coef, intercept):
        """Weights of the numbers in units of the data, and those of the indicators as they are."""
        if self.standardizer is None:
            return coef, intercept
        n = self.numeric.shape[0]
        numbers, intercept = self.standardizer.in_units_of_data(coef[..., :n], intercept)
        return np.concatenate([numbers, coef[..., n:]], axis=-1), intercept

    @property
    def columns(self):
        """The column of each value of images; -1 for indicators not in use."""
        of_indicators = np.full(self.n_indicators, -1)
        owners = np.concatenate([np.asarray(self.categorical), np.asarray(self.numeric)])
        of_indicators[:self.used] = owners[np.asarray(self.owner)[:self.used, 0]]
        return np.concatenate([np.asarray(self.numeric), of_indicators])

    def transform(self, X):
        """The images of validated dense rows, as an array."""
        cdef Rows rows = open_rows(X)
        cdef Row row
        cdef Py_ssize_t i, k
        cdef double[:, ::1] images = np.zeros((rows.n_rows, self.n_outputs))
        self.open(rows)
        for i in range(rows.n_rows):
            fetch_mapped(self, rows, i, &row)
            for k in range(row.n):
                images[i, row.index[k]] = row.x[k]
        return np.asarray(images)

    # --- rows ---------------------------------------------------------------------------------------------------

    cdef int open(self, Rows rows) except -1:
        RowMap.open(self, rows)
        rows.allocate_scratch(True)
        rows.allocate_indicators(self.shape(rows).widest)
        return rows.allocate_numbers()

    cdef Shape shape(self, Rows rows) noexcept nogil:
        cdef Py_ssize_t n = self.n_features + (min(self.numeric.shape[0], self.n_indicators) if self.missing else 0)
        return Shape(False, n, rows.n_rows * n)

    cdef void map_row(self, Rows rows, Row* row) noexcept nogil:
        cdef Row numbers = self.indicate(rows, row)
        if self.standardizer is None:
            memcpy(rows.z, numbers.x, numbers.n * sizeof(double))
        else:
            self.standardizer.standardize(&numbers, rows.z)

    cdef void map_to_learn(self, Rows rows, double weight, Row* row) noexcept nogil:
        cdef Py_ssize_t k, c, code, n = self.numeric.shape[0]
        cdef Row numbers
        if self.standardizer is None or weight == 0:
            self.map_row(rows, row)
        else:
            numbers = self.indicate(rows, row)
            self.standardizer.learn(&numbers, weight, rows.z)
            self.begun = self.standardizer.begun
        for k in range(n if self.missing and weight != 0 else 0):
            if isnan(rows.numbers[k]) and self.place_of_missing[k] < 0 and self.standardizer.seen(k):
                self.take(self.categorical.shape[0] + k, CODES)
        for c in range(self.categorical.shape[0] if weight != 0 else 0):
            if self.place_of(c, rows.numbers[n + c], &code) < 0 and code >= 0:
                self.take(c, code)

    cdef void take(self, Py_ssize_t c, Py_ssize_t code) noexcept nogil:
        """Give the next indicator, if there is one, to a category, or to the missing number of a column."""
        if self.used < self.n_indicators:
            self.owner[self.used, 0], self.owner[self.used, 1] = c, code
            self.assign(c, code, self.used)
            self.used += 1

    cdef void assign(self, Py_ssize_t c, Py_ssize_t code, Py_ssize_t place) noexcept nogil:
        if c < self.categorical.shape[0]:
            self.place[c, code] = place
        else:
            self.place_of_missing[c - self.categorical.shape[0]] = place

    cdef Row indicate(self, Rows rows, Row* row) noexcept nogil:
        """Replace a row by its image without the values of the numbers, and return the row of these."""
        cdef Py_ssize_t k, c, code, free = self.used, n = self.numeric.shape[0], at = n
        rows.fill(row)
        for k in range(n):
            rows.numbers[k], rows.indicators[k] = row.x[self.numeric[k]], k
        for k in range(n if self.missing else 0):
            if isnan(rows.numbers[k]) and self.standardizer.seen(k):
                free = self.insert(rows, self.place_of_missing[k], free, &at)
        for c in range(self.categorical.shape[0]):
            rows.numbers[n + c] = row.x[self.categorical[c]]
            k = self.place_of(c, rows.numbers[n + c], &code)
            if code >= 0:
                free = self.insert(rows, k, free, &at)
        row.x, row.index, row.n = rows.z, rows.indicators, at
        return Row(rows.numbers, NULL, n, row.number)

    cdef Py_ssize_t insert(self, Rows rows, Py_ssize_t place, Py_ssize_t free, Py_ssize_t* at) noexcept nogil:
        """Add an indicator to an image: `free` if it has no place yet. Returns the next one that is free."""
        cdef Py_ssize_t i = at[0], n = self.numeric.shape[0], k = free if place < 0 else place
        if k < self.n_indicators:
            while i > n and rows.indicators[i - 1] > n + k:  # the columns of a row increase
                rows.indicators[i] = rows.indicators[i - 1]
                i -= 1
            rows.indicators[i], rows.z[at[0]] = n + k, 1.0
            at[0] += 1
        return free + (place < 0)

    cdef Py_ssize_t place_of(self, Py_ssize_t c, double x, Py_ssize_t* code) noexcept nogil:
        """The indicator of a category, -1 if it has none; sets its number, -1 if it can never have one."""
        code[0] = CODES if isnan(x) else <Py_ssize_t> x if 0 <= x < CODES else -1
        return -1 if code[0] < 0 else self.place[c, code[0]]

    cdef bint begins(self, Py_ssize_t column, double weight, double* at) noexcept nogil:
        return column < self.numeric.shape[0] and self.standardizer.begins(column, weight, at)

    cdef bint bounded(self) noexcept nogil:
        return self.standardizer is None or self.standardizer.bounded()

    # --- undoing a call -------------------------------------------------------------------------------------------

    cdef int begin(self, Rows rows) except -1:
        self.used_before = self.used
        return 0 if self.standardizer is None else self.standardizer.begin(rows)

    cdef void undo(self) noexcept:
        if self.standardizer is not None:
            self.standardizer.undo()
        while self.used > self.used_before:
            self.used -= 1
            self.assign(self.owner[self.used, 0], self.owner[self.used, 1], -1)
