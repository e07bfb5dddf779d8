"""Percentiles of squared distances on a stream, by which targets and margins are set."""

import numpy as np

cimport cython
from libc.math cimport floor
from libc.string cimport memcpy

# Percentiles are recomputed when the stream has grown by this factor.
cdef double REFRESH = 1.1
# Size of the sample.
cdef enum:
    SIZE = 1000


@cython.final
cdef class Percentiles:
    """Percentiles of a uniform sample of the distances of a stream, or given numbers.

    A `Sampler` adds distances, and undoes the changes of a call.

    Parameters
    ----------
    given : list of float or None
        The numbers; None to measure them.
    percents : list of float
        Which percentiles, of 0 to 100.
    least : int
        Smallest number of distances for the first estimate.
    state : tuple, default=None
        The state of another one: its values or None, its sample, the number of distances so far, and the number at
        which it is updated next.
    """

    def __cinit__(self, given, percents, Py_ssize_t least, state=None):
        self.measured, self.least, self.size = given is None, least, SIZE
        self.percents = np.array(percents, dtype=np.float64)
        self.found, self.found_before = np.zeros(self.percents.shape[0]), np.zeros(self.percents.shape[0])
        values, sample, n_distances, next_update = (given, (), 0, 0.0) if state is None else state
        self.known, self.n = values is not None, len(sample)
        self.n_distances, self.next_update = n_distances, next_update
        if self.known:
            np.asarray(self.found)[:] = values
        if not (0 < self.percents.shape[0] and self.n <= self.size and self.n <= self.n_distances):
            raise ValueError(
                f"the sample must have at most {min(self.size, self.n_distances)} of {self.n_distances} distances; "
                f"got {self.n}"
            )
        n = self.size if self.measured else 0
        self.sample, self.sample_before, self.buffer = np.zeros(n), np.empty(n), np.empty(n)
        np.asarray(self.sample)[:self.n] = sample

    def __reduce__(self):
        given = None if self.measured else np.asarray(self.found).tolist()
        sample = np.asarray(self.sample)[:self.n].copy()
        return Percentiles, (given, np.asarray(self.percents).tolist(), self.least,
                             (self.values, sample, self.n_distances, self.next_update))

    @property
    def values(self):
        """The percentiles, as a list; None before they are known."""
        return np.asarray(self.found).tolist() if self.known else None

    cdef void begin(self) noexcept nogil:
        """Begin a call; `undo` restores the state from here."""
        self.saved = False

    cdef void save(self) noexcept nogil:
        memcpy(&self.sample_before[0], &self.sample[0], self.n * sizeof(double))
        memcpy(&self.found_before[0], &self.found[0], self.found.shape[0] * sizeof(double))
        self.n_before, self.n_distances_before = self.n, self.n_distances
        self.known_before, self.next_update_before = self.known, self.next_update
        self.saved = True

    cdef void undo(self) noexcept nogil:
        if not self.saved:
            return
        memcpy(&self.sample[0], &self.sample_before[0], self.n_before * sizeof(double))
        memcpy(&self.found[0], &self.found_before[0], self.found.shape[0] * sizeof(double))
        self.n, self.n_distances = self.n_before, self.n_distances_before
        self.known, self.next_update = self.known_before, self.next_update_before
        self.saved = False

    cdef void put(self, Py_ssize_t slot, double value) noexcept nogil:
        """Add a distance at index `slot` of the sample: the next one, or a random one among all distances so far."""
        if not self.saved:
            self.save()
        self.n_distances += 1
        if slot < self.size:
            self.n = max(self.n, slot + 1)
            self.sample[slot] = value

    cdef bint is_due(self) noexcept nogil:
        """Whether the percentiles are to be recomputed."""
        return self.n_distances >= self.next_update and self.n_distances >= self.least

    cdef void update(self) noexcept nogil:
        """Recompute the percentiles, unless the largest is 0: all rows were equal so far."""
        cdef Py_ssize_t k, last = self.percents.shape[0] - 1
        if self.n > 0:
            memcpy(&self.buffer[0], &self.sample[0], self.n * sizeof(double))
            if quantile(&self.buffer[0], self.n, self.percents[last] / 100.0) > 0:
                for k in range(last + 1):
                    self.found[k] = quantile(&self.buffer[0], self.n, self.percents[k] / 100.0)
                self.known = True
        self.next_update = REFRESH * self.n_distances


cdef double quantile(double* a, Py_ssize_t n, double q) noexcept nogil:
    """Quantile by linear interpolation, with the digits of `numpy.quantile`; reorders the values."""
    cdef double place = (n - 1) * q, part, gap, above
    cdef Py_ssize_t below = <Py_ssize_t> floor(place), i
    select(a, n, below)
    if below >= n - 1:
        return a[n - 1]
    part, above = place - below, a[below + 1]
    for i in range(below + 2, n):
        above = min(above, a[i])
    gap = above - a[below]
    return above - gap * (1.0 - part) if part >= 0.5 else a[below] + gap * part


cdef void select(double* a, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Put the value that has k smaller ones in place k, and those before it (Hoare's Find)."""
    cdef Py_ssize_t first = 0, last = n - 1, i, j
    cdef double pivot, value
    while first < last:
        pivot, i, j = a[k], first, last
        while i <= j:
            while a[i] < pivot:
                i += 1
            while pivot < a[j]:
                j -= 1
            if i <= j:
                value = a[i]
                a[i] = a[j]
                a[j] = value
                i += 1
                j -= 1
        if j < k:
            first = i
        if k < i:
            last = j
