"""Pairs of labelled rows with stored rows drawn at random."""

import numpy as np

cimport cython

from onlinebregman._kernels.learners.state cimport INTERRUPTED, LEARNED
from onlinebregman._kernels.matrices.reservoir cimport CAPACITY
from onlinebregman._kernels.matrices.sampler cimport Sampler, subtract

cdef enum:
    DISTANCES = 4  # distances to stored rows that each row adds to the sample for the bounds
    PART = 256     # rates are summed in parts of this number of rows that form pairs


@cython.final
cdef class RandomPairs(Sampler):
    """Pairs each row with stored rows drawn at random, alternately of its own class and of other classes.

    Parameters
    ----------
    n_features, size, random, kept, per_row, prior, bounds, margins, n_rows, state :
        See `Sampler`.
    """

    cdef Py_ssize_t[::1] candidates  # indices of rows of the class, then of the others
    cdef Py_ssize_t[::1] partners

    def __cinit__(self, Py_ssize_t n_features, Py_ssize_t size, random, kept, per_row, prior, bounds, margins,
                  n_rows=0, n_collapsed=0, state=()):
        self.allocate(n_features, n_features, size, random, kept)
        self.candidates = np.empty(2 * self.kept.shape[0], dtype=np.intp)
        self.partners = np.empty(self.per_row + 1, dtype=np.intp)

    cdef int fulfil(self, int what) except -1:
        Sampler.fulfil(self, what)
        if what == CAPACITY:
            self.candidates = np.empty(2 * self.kept.shape[0], dtype=np.intp)
        return 0

    cdef int learn_labelled(self, const double* x, Py_ssize_t number, double weight, Py_ssize_t i) noexcept nogil:
        cdef int status
        if self.n > 0 and not self.again:
            self.measure_some(x)
        if self.bounds.known and self.n > 0:
            status = self.reserve_instances()
            if status != LEARNED:
                return status
            self.make_pairs(x, number, weight, i)
        if not (self.again or self.store(x, number)):
            return INTERRUPTED
        self.n_rows += 1
        return LEARNED if self.n_parts < PART else self.check_all()

    cdef void measure_some(self, const double* x) noexcept nogil:
        """Add distances of the row to random stored rows to the sample."""
        cdef double[DISTANCES] distances
        cdef Py_ssize_t k
        for k in range(DISTANCES):
            subtract(&self.difference[0], x, &self.kept[self.draw(self.n), 0], self.n_features)
            distances[k] = self.squared(&self.difference[0])
        self.measure(self.bounds, distances, DISTANCES)

    cdef void make_pairs(self, const double* x, Py_ssize_t number, double weight, Py_ssize_t i) noexcept nogil:
        """Make pairs of a row, if its own and another class have stored rows."""
        cdef Py_ssize_t j, k, half = (self.per_row + 1) // 2, n_same = 0, n_others = 0
        cdef Py_ssize_t* same = &self.candidates[0]
        cdef Py_ssize_t* others = same + self.n
        cdef double near = self.bounds.found[0], far = self.bounds.found[1]
        for j in range(self.n):
            if self.of_class[j] == number:
                same[n_same] = j
                n_same += 1
            else:
                others[n_others] = j
                n_others += 1
        if n_same == 0 or n_others == 0:
            return
        for k in range(half):
            self.partners[2 * k] = same[self.draw(n_same)]
        for k in range(half):
            self.partners[2 * k + 1] = others[self.draw(n_others)]
        for k in range(self.per_row):
            subtract(self.next_instance(), x, &self.kept[self.partners[k], 0], self.n_features)
            self.make(far if k % 2 else near, -1.0 if k % 2 else 1.0, far, weight, i)
        self.n_parts += 1
