"""Reservoir sampling: a uniform sample of the rows of a stream, in a loop without the GIL; and of squared distances, by
whose percentiles targets and margins are set.

The GIL is acquired rarely: to enlarge arrays, and to save the stored rows before many are replaced.
"""

import numpy as np

cimport cython
from libc.math cimport floor
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport DENSE, Workspace
from onlinebregman._kernels.learners.atomic cimport AtomicLearner, Block
from onlinebregman._kernels.learners.run cimport BAD_TARGET, INTERRUPTED, LEARNED, TOO_LARGE
from onlinebregman._kernels.ops.state cimport Undoable
from onlinebregman._kernels.ops.state import vector_of
from onlinebregman._kernels.ops.uniform cimport uniform
from onlinebregman._kernels.ops.vector cimport ob_dot
from onlinebregman._kernels.rows.rows cimport Row, Rows

# Percentiles are recomputed when the stream of distances has grown by this factor.
cdef double REFRESH = 1.1


cdef class Reservoir(AtomicLearner):
    """A uniform sample of at most `size` rows of each class; classes are numbered in order of appearance.

    Parameters
    ----------
    n_features : int
    size : int
    random : int
        How many of the numbers of `uniform` come before the first one.
    """

    def __cinit__(self, Py_ssize_t n_features, Py_ssize_t size, random, *more):
        if type(self) is Reservoir:
            self.allocate(n_features, n_features, size, random)

    cdef int allocate(self, Py_ssize_t n_features, Py_ssize_t width, Py_ssize_t size, random) except -1:
        """Allocate the arrays; stored rows have `width` values."""
        cdef Py_ssize_t j, number
        cdef Py_ssize_t[::1] missing
        self.traits = DENSE
        if not (0 < n_features <= width and 0 < size):
            raise ValueError(f"n_features and size must be 1 or more; got {n_features} and {size}")
        self.n_features, self.n_targets, self.target_ndim, self.width, self.size = n_features, 1, 1, width, size
        self.random = random
        self.fields.add("drawn", &self.drawn, sizeof(self.drawn))
        self.kept = np.array(self.given.pop("stored", np.zeros((0, width))), dtype=np.float64)
        self.of_class = np.array(self.given.pop("classes", ()), dtype=np.intp)
        self.counts = np.array(self.given.pop("class_counts", ()), dtype=np.intp)
        self.n, self.n_classes = self.of_class.shape[0], self.counts.shape[0]
        self.counts_before, self.replaced_row = np.empty(self.n_classes, dtype=np.intp), np.empty(width)
        self.replaced, self.kept_before, self.spare = -1, None, None
        missing = np.minimum(self.counts, size)
        for j in range(self.n):
            number = self.of_class[j]
            if not 0 <= number < self.n_classes:
                raise ValueError(f"stored rows must be of {self.n_classes} classes; got one of class {number}")
            missing[number] -= 1
        if np.any(missing) or self.kept.shape[0] != self.n or self.kept.shape[1] != width:
            raise ValueError(
                f"stored rows must be min(count, {size}) of each class, of {width} values each; "
                f"got shape {np.shape(self.kept)}"
            )
        return 0

    def get_state(self):
        """See `Stateful`."""
        stored, classes = self.sample()
        rows = {"stored": stored, "classes": classes, "class_counts": np.asarray(self.counts)[:self.n_classes].tolist()}
        return {**AtomicLearner.get_state(self), **rows}

    def sample(self):
        """Copies of the stored rows and of their classes, of equal length also if another thread is learning."""
        cdef Py_ssize_t n = self.n
        return np.array(self.kept[:n]), np.array(self.of_class[:n])

    # --- a call: see `AtomicLearner` ----------------------------------------------------------------------------

    cdef int begin(self, Rows rows, bint complete) except -1:
        self.save()
        return AtomicLearner.begin(self, rows, complete)

    cdef int save(self) except -1:
        """Save what `undo` restores."""
        if self.counts_before.shape[0] < self.n_classes:
            self.counts_before = np.empty(self.counts.shape[0], dtype=np.intp)
        if self.n_classes > 0:
            memcpy(&self.counts_before[0], &self.counts[0], self.n_classes * sizeof(Py_ssize_t))
        self.fields.save()
        self.n_before, self.n_classes_before, self.replaced = self.n, self.n_classes, -1
        if self.kept_before is not None:
            self.spare, self.kept_before = self.kept_before, None
        return 0

    cdef int undo(self) except -1:
        AtomicLearner.undo(self)
        if self.kept_before is not None:
            self.spare, self.kept, self.kept_before = self.kept, self.kept_before, None
        if self.replaced >= 0:
            memcpy(&self.kept[self.replaced, 0], &self.replaced_row[0], self.width * sizeof(double))
            self.replaced = -1
        self.n, self.n_classes = self.n_before, self.n_classes_before
        if self.n_classes > 0:
            memcpy(&self.counts[0], &self.counts_before[0], self.n_classes * sizeof(Py_ssize_t))
        return 0

    cdef int loop(self, Rows rows, Block* block) noexcept nogil:
        self.block = block
        return AtomicLearner.loop(self, rows, block)

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        if not 0 <= y[0] <= self.n_classes:
            return BAD_TARGET
        if not ob_dot(row.x, row.x, row.n) < 1e200:
            return TOO_LARGE
        return self.learn_labelled(row.x, <Py_ssize_t> y[0], weight, row.number)

    cdef int learn_labelled(self, const double* x, Py_ssize_t number, double weight, Py_ssize_t i) noexcept nogil:
        """Learn row i of the call, of class `number`; returns the `Status`."""
        return LEARNED if self.store(x, number) else INTERRUPTED

    cdef bint store(self, const double* row, Py_ssize_t number) noexcept nogil:
        """Store the first `size` rows of a class; a later one replaces a random one with probability size / count."""
        cdef Py_ssize_t place = self.n, slot
        if number == self.n_classes:
            if number == self.counts.shape[0] and not self.request(COUNTS):
                return False
            self.counts[number] = 0
            self.n_classes += 1
        self.counts[number] += 1
        if self.counts[number] <= self.size:
            if place == self.kept.shape[0] and not self.request(CAPACITY):
                return False
            self.n += 1
        else:
            slot = self.draw(self.counts[number])
            if slot >= self.size:
                return True
            place = -1
            while slot >= 0:
                place += 1
                slot -= self.of_class[place] == number
            if self.replaced < 0 and self.kept_before is None:
                self.replaced = place
                memcpy(&self.replaced_row[0], &self.kept[place, 0], self.width * sizeof(double))
            elif self.kept_before is None and not self.request(BACKUP):
                return False
        memcpy(&self.kept[place, 0], row, self.width * sizeof(double))
        self.of_class[place] = number
        return True

    cdef Py_ssize_t draw(self, Py_ssize_t n) noexcept nogil:
        """A uniform random integer in [0, n)."""
        self.drawn += 1.0
        return <Py_ssize_t> (uniform(self.random + <uint64_t> self.drawn) * n)

    # --- requests that need the GIL -----------------------------------------------------------------------------

    cdef bint request(self, int what) noexcept nogil:
        """Fulfil a `Request` with the GIL; returns False on an exception, which ends the call."""
        with gil:
            try:
                self.fulfil(what)
            except BaseException as error:
                self.interrupt = error
                return False
        return True

    cdef int fulfil(self, int what) except -1:
        if what == CAPACITY:
            self.kept = enlarged(self.kept)
            if self.of_class.shape[0] < self.kept.shape[0]:
                self.of_class = enlarged(self.of_class, self.kept.shape[0])
        elif what == COUNTS:
            self.counts = enlarged(self.counts)
        elif what == BACKUP and self.kept_before is None:
            if self.spare is None or self.spare.shape[0] != self.kept.shape[0]:
                self.spare = np.empty_like(self.kept)
            self.kept_before, self.kept, self.spare = self.kept, self.spare, None
            if self.n > 0:
                memcpy(&self.kept[0, 0], &self.kept_before[0, 0], self.n * self.width * sizeof(double))
        return 0


def enlarged(values, n=None):
    """A copy of an array, padded with zeros to length n; by default to twice its length."""
    values = np.asarray(values)
    longer = np.zeros((max(2 * len(values), 16) if n is None else n, *values.shape[1:]), dtype=values.dtype)
    longer[:len(values)] = values
    return longer


@cython.final
cdef class Percentiles(Undoable):
    """Percentiles of a uniform sample of the distances of a stream, or given numbers.

    A `Sampler` adds distances, see its `measure`, and undoes the changes of a call.

    Parameters
    ----------
    given : list of float or None
        The numbers; None to measure them.
    percents : list of float
        Which percentiles, of 0 to 100.
    least : int
        Smallest number of distances for the first estimate.
    """

    def __cinit__(self, given, percents, Py_ssize_t least, state=None):
        self.measured, self.least, self.known = given is None, least, given is not None
        self.percents = np.array(percents, dtype=np.float64)
        m = self.percents.shape[0]
        if not (m > 0 and all([0 <= percent <= 100 for percent in percents])):
            raise ValueError(f"percentiles must be from 0 to 100; got {percents}")
        self.found = np.zeros(m) if given is None else vector_of(given, m)
        self.sample, self.buffer = np.zeros(SIZE if self.measured else 1), np.empty(SIZE)
        self.fields.vector("found", self.found)
        self.fields.vector("sample", self.sample)
        self.fields.add("known", &self.known, sizeof(double))
        self.fields.add("next_update", &self.next_update, sizeof(double))
        self.fields.add("n", &self.n, sizeof(double))
        self.fields.add("n_distances", &self.n_distances, sizeof(double))
        if not 0 <= self.n <= min(<double> SIZE, self.n_distances) or not self.n_distances < 1 << 53:
            raise ValueError(
                f"the sample must have at most {min(<double> SIZE, self.n_distances):g} of {self.n_distances:g} "
                f"distances; got {self.n:g}"
            )

    @property
    def values(self):
        """The percentiles, as a list; None before they are known."""
        return np.asarray(self.found).tolist() if self.known else None

    cdef void update(self) noexcept nogil:
        """Recompute the percentiles, unless the largest is 0: all rows were equal so far."""
        cdef Py_ssize_t k, last = self.percents.shape[0] - 1, n = <Py_ssize_t> self.n
        if n > 0:
            memcpy(&self.buffer[0], &self.sample[0], n * sizeof(double))
            if quantile(&self.buffer[0], n, self.percents[last] / 100.0) > 0:
                for k in range(last + 1):
                    self.found[k] = quantile(&self.buffer[0], n, self.percents[k] / 100.0)
                self.known = 1.0
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
