"""Rows as differences from a centre, which stays for many rows: of learners that can move their weights along with it.

A column is centred at its first value, then at its mean (see `ops/standardize.h`) whenever it moves: when the weight of
the rows has doubled, or the mean is off by more than a deviation. Values far from the mean are limited. While no
deviation is known, those are left out that the prior of the weight would make much of, 0 in place of them. As long as
all values of a column were left out, nothing is known about its weight, and its centre may be anywhere.

The prior of a weight is for values of size 1/2 or more. Where the largest difference m from the mean is less, it is
that of 2 m w: the variance of w becomes 1 / (2 m)^2 of what it was. Where the values of a column have drawn together,
in a larger unit, 1 / s^2 of it is added, s their deviation since, so that the next rows decide.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, fabs, isfinite

from onlinebregman._kernels.ops.forward cimport ob_centre_limited
from onlinebregman._kernels.ops.standardize cimport (
    OB_BLOCK, OB_ENOUGH, OB_LEAST, OB_LIMIT, OB_SMALL, ob_count, ob_count_close, ob_widen
)

cdef double OF_SIZE = 2.0       # the prior is for values of 1 / OF_SIZE and more
cdef double LEAST_SIZE = 1e-50  # below it variances might overflow

cdef enum:
    CENTRE, ORIGIN, USED, DEVIATION, INVERSE, MEAN, WEIGHT, MOVED, LOW, HIGH, RUN, LONGEST, LAST, STEPS, USUAL
    MOST, PRIOR, BLOCKS  # the largest difference; the variance of the prior of the weight over 1 / alpha, minus 1


@cython.final
cdef class Centre:
    """Statistics of the columns, which the learner declares as a field.

    Parameters
    ----------
    n_features : int
    unit : float
        The size of values that the prior of the weights makes little of.
    allow_nan : bool
        Whether NaN is a missing value, which counts as the mean.
    """

    def __cinit__(self, n_features, double unit, bint allow_nan):
        self.n, self.most, self.allow_nan = n_features, OB_LIMIT * unit, allow_nan
        self.memory = np.zeros(BLOCKS * self.n + 3)

    cdef object blocks(self):
        return np.asarray(self.memory)[:-3].reshape(BLOCKS, self.n)

    @property
    def at(self):
        """Where columns are centred."""
        return self.blocks()[CENTRE].copy()

    @property
    def used(self):
        """Whether a row was not at the centre."""
        return self.blocks()[USED] > 0

    @property
    def mean(self):
        return self.blocks()[MEAN].copy()

    @property
    def scale(self):
        """Deviations of the columns, 1 for constant ones."""
        deviation = np.abs(self.blocks()[DEVIATION])
        return np.where(deviation > 0, deviation, 1.0)

    @property
    def n_samples_seen(self):
        """Total weight of the rows."""
        return self.memory[self.memory.shape[0] - 3]

    @property
    def limits(self):
        """(m, l): values are limited to m +- l."""
        blocks = self.blocks()
        known = blocks[DEVIATION] > 0
        return np.where(known, blocks[MEAN], blocks[CENTRE]), np.where(known, OB_LIMIT * blocks[DEVIATION], INFINITY)

    def widen(self, Centre narrow):
        """Take the statistics of the first columns; the others were 0."""
        self.blocks()[:, :narrow.n] = narrow.blocks()
        self.blocks()[WEIGHT, narrow.n:] = narrow.n_samples_seen
        np.asarray(self.memory)[-3:] = narrow.memory[-3:]

    def join(self, Centre start, centres):
        """Take the statistics of all rows that were counted, each from `start` on."""
        parts = np.array([(<Centre> each).blocks() for each in centres])
        weights = parts[:, WEIGHT]
        shares = weights / np.maximum(weights.sum(0), 1e-300)
        mean = (shares * parts[:, MEAN]).sum(0)
        deviation = np.sqrt((shares * (parts[:, DEVIATION] ** 2 + (parts[:, MEAN] - mean) ** 2)).sum(0))
        inverse = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        weight = np.maximum(weights.sum(0) - (len(weights) - 1) * start.blocks()[WEIGHT], weights.max(0))
        self.blocks()[:MOVED] = mean, mean, parts[:, USED].max(0), deviation, inverse, mean, weight
        self.blocks()[LOW:HIGH + 1] = self.blocks()[LAST] = mean
        self.blocks()[LONGEST], self.blocks()[USUAL:] = parts[:, LONGEST].max(0), parts[:, USUAL:].max(0)
        rows = sum(each.n_samples_seen - start.n_samples_seen for each in centres) + start.n_samples_seen
        np.asarray(self.memory)[-3:-1] = rows

    # --- rows -----------------------------------------------------------------------------------------------------

    cdef void begin(self, const double* x) noexcept nogil:
        """Centre columns at their first value, and note which are learned from this row."""
        cdef Py_ssize_t j, n = self.n
        cdef double* at = &self.memory[0]
        cdef double away
        for j in range(n):
            if at[WEIGHT * n + j] == 0 and isfinite(x[j]):
                at[j] = at[ORIGIN * n + j] = x[j]
            away = fabs((x[j] if x[j] == x[j] else at[MEAN * n + j]) - at[j])
            at[USED * n + j] += away > 0 and (at[DEVIATION * n + j] > 0 or away <= self.most)

    cdef void centre(self, const double* x, double* z) noexcept nogil:
        cdef double* at = &self.memory[0]
        ob_centre_limited(
            z, x, at, at + MEAN * self.n, at + DEVIATION * self.n, at + MOVED * self.n, OB_LIMIT, self.most,
            0.0 if self.allow_nan else NAN, self.n,
        )

    cdef bint count(self, const double* x, double weight) noexcept nogil:
        """Add a row to the statistics; whether it is time to move."""
        cdef Py_ssize_t j, n = self.n
        cdef double* at = &self.memory[0]
        cdef double* rows = at + BLOCKS * n  # their weight; what it was when the centre last moved; those of a block
        cdef double away
        cdef bint off
        rows[0] += weight
        off = rows[0] >= 2.0 * rows[1]
        ob_count(
            x, at + MEAN * n, at + DEVIATION * n, at + INVERSE * n, at + WEIGHT * n, at + MOVED * n, OB_LIMIT, weight,
            OB_ENOUGH, OB_LEAST, n,
        )
        ob_widen(x, at + LOW * n, at + HIGH * n, n)
        for j in range(n):
            away = fabs(x[j] - at[MEAN * n + j])
            if away > at[MOST * n + j]:
                at[MOST * n + j] = away
            off |= at[DEVIATION * n + j] > 0 and fabs(at[MEAN * n + j] - at[j]) > at[DEVIATION * n + j]
            off |= at[PRIOR * n + j] < 0 and at[WEIGHT * n + j] >= OB_ENOUGH and at[DEVIATION * n + j] > 0
        rows[2] = (rows[2] + 1.0) % OB_BLOCK
        if rows[2] == 0:
            ob_count_close(
                x, at + DEVIATION * n, at + INVERSE * n, at + WEIGHT * n, at + MOVED * n, at + LOW * n,
                OB_SMALL, n,
            )
            for j in range(n):
                if at[WEIGHT * n + j] == 0 and at[MOST * n + j] > 0:
                    at[MOST * n + j], at[PRIOR * n + j] = 0.0, -1.0
        return off

    cdef double variance_to_add(self, Py_ssize_t j) noexcept nogil:
        """What the variance of a weight, in units of that of the prior, lacks by more than a factor of two."""
        cdef double* of = &self.memory[j]
        cdef double known = 1.0 + of[PRIOR * self.n], deviation = of[DEVIATION * self.n]
        cdef double size = min(max(OF_SIZE * of[MOST * self.n] if known > 0 else deviation, LEAST_SIZE), 1.0)
        cdef double more = 1.0 / (size * size) - known
        if of[WEIGHT * self.n] < OB_ENOUGH or not deviation > 0 or more <= known:
            return 0.0
        of[PRIOR * self.n] += more
        return more

    cdef void move(self, double* z) noexcept nogil:
        """Move the centre to the means, and compute what the former centre is as a row."""
        cdef Py_ssize_t j, n = self.n
        cdef double* at = &self.memory[0]
        at[BLOCKS * n + 1] = at[BLOCKS * n]
        for j in range(n):
            z[j] = 0.0
            if at[DEVIATION * n + j] >= 0:  # otherwise one of its two values may be absurd
                if at[USED * n + j] > 0:
                    z[j] = at[j] - at[MEAN * n + j]
                else:
                    at[ORIGIN * n + j] = at[MEAN * n + j]
                at[j] = at[MEAN * n + j]

    cdef void move_origin(self, double* z) noexcept nogil:
        """The same for the origin of the prior, which moves to the centre."""
        cdef Py_ssize_t j, n = self.n
        cdef double* at = &self.memory[0]
        for j in range(n):
            z[j] = at[ORIGIN * n + j] - at[j]
            at[ORIGIN * n + j] = at[j]

    cdef bint jumps(self, Py_ssize_t j, double move) noexcept nogil:
        """Whether this move of a column is far, by its new deviation."""
        return fabs(move) > OB_LIMIT * self.memory[DEVIATION * self.n + j] > 0
