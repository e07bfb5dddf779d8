"""Triplets of rows with their nearest neighbours among remembered rows, drawn without the interpreter's lock.

What is drawn, of what and for what is said in `metric_learning._pairs`, whose `NeighborTriplets` this is the loop of.
The lock is asked for once in a while alone: for another look at the sample of distances, and as `Intake` does.
"""

import numpy as np

from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dgemm

from onlinebregman._kernels.matrices.reservoir cimport Intake

cdef extern from "ops/row.h":
    double ob_dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void ob_dot4(const double* w0, const double* w1, const double* w2, const double* w3, const double* x, Py_ssize_t n,
                 double* dots) noexcept nogil

# A row as near as this part of the farthest one is the anchor come again, or one equal to it.
cdef double SAME = 1e-12


def draw_triplets(sampler, X, numbers, weights, names, Py_ssize_t n_similar, Py_ssize_t n_impostors, bint again):
    """Take in rows with the numbers of their classes.

    Parameters
    ----------
    sampler : NeighborTriplets
        Moves on by these rows; the metric is what it was at the last look.
    X : ndarray of shape (n_rows, n_features)
    numbers : ndarray of intp of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
    names : ndarray of intp of shape (n_rows,)
        What their triplets are told to be made of.
    n_similar, n_impostors : int
        How many of the nearest rows of the anchor's class, and of others, are drawn from.
    again : bool
        Are the rows remembered already?

    Returns
    -------
    rows, targets, senses, weights, scales, numbers : ndarray
        See `metric_learning._pairs.Block`.
    """
    cdef Drawing drawing = Drawing(sampler, X, numbers, weights, names, n_similar, n_impostors)
    return drawing.draw(again)


def renew_places(double[:, ::1] rows, const double[::1] origin, const double[:, :] components):
    """The places L (x - origin) of remembered rows x, and their squared lengths.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, 2 * n_features + 1)
        Each is x, its place, and the square of that.
    origin : ndarray of shape (n_features,)
    components : ndarray of shape (n_features, n_features)
        The factor L of the metric.
    """
    cdef Py_ssize_t i, k, d = origin.shape[0]
    cdef int n = <int> rows.shape[0], n_features = <int> d, width = <int> rows.shape[1]
    cdef double one = 1.0, zero = 0.0
    if not (width == 2 * d + 1 and components.shape[0] == components.shape[1] == d):
        raise ValueError(f"remembered rows must be of {d} features, as their metric; got rows of {width} values")
    if n == 0 or d == 0:
        return
    cdef double[:, ::1] gaps = np.empty((n, d))
    cdef const double[:, ::1] L = np.ascontiguousarray(components)
    with nogil:
        for i in range(n):
            for k in range(d):
                gaps[i, k] = rows[i, k] - origin[k]
        dgemm("T", "N", &n_features, &n, &n_features, &one, <double*> &L[0, 0], &n_features, &gaps[0, 0], &n_features,
              &zero, &rows[0, d], &width)
        for i in range(n):
            rows[i, 2 * d] = two_sums(&rows[i, d], &rows[i, d], d)


cdef class Drawing(Intake):
    """What a sampler knows, while it draws: rows are remembered with their places and the squared lengths of these."""

    cdef const double[:, ::1] X                # the rows to come, with their classes, weights and names
    cdef const Py_ssize_t[::1] numbers, names
    cdef const double[::1] weights
    cdef object margins
    cdef Py_ssize_t d, per_row, n_similar, n_impostors
    cdef const double[:, ::1] components, prior
    cdef const double[::1] origin
    cdef double[::1] sample                    # of squared distances to similar rows; None if they are not measured
    cdef Py_ssize_t n_sample, sample_size, n_measured
    cdef double next_look, margin
    cdef bint has_margin
    cdef double[::1] room                      # a row, squared distances to those remembered, as many others, two rows
    cdef Py_ssize_t[::1] candidates

    def __cinit__(self, sampler, X, numbers, weights, names, Py_ssize_t n_similar, Py_ssize_t n_impostors):
        cdef Py_ssize_t n, most
        cdef bint fits
        self.X, self.numbers, self.weights, self.names = X, numbers, weights, names
        n, self.d, self.per_row = self.X.shape[0], self.X.shape[1], sampler.per_row
        self.n_similar, self.n_impostors = n_similar, n_impostors
        fits = self.open(sampler.memory, sampler.rng, 2 * self.d + 1, self.numbers)
        self.components, self.origin = np.ascontiguousarray(sampler.components), sampler.origin
        self.margins, self.prior, self.sample = sampler.targets.margins, sampler.targets.prior, None
        self.hold_sample()
        fits = fits and self.d == sampler.n_features == self.origin.shape[0]
        fits = fits and self.d == self.components.shape[0] == self.components.shape[1]
        fits = fits and (self.prior is None or self.d == self.prior.shape[0] == self.prior.shape[1])
        fits = fits and n == self.numbers.shape[0] == self.weights.shape[0] == self.names.shape[0]
        if not fits:
            raise ValueError(f"what is known of rows must be of {self.d} features, as they are, and of their classes")
        most = self.n + n  # rows are remembered
        self.room = np.empty(self.width + 2 * most + 2 * self.d)
        self.candidates = np.empty(2 * most, dtype=np.intp)

    cdef int hold_sample(self) except -1:
        """A copy of the sample, and what it says."""
        cdef object known = self.margins.sample
        cdef const double[::1] kept
        values = self.margins.values
        self.has_margin, self.margin = values is not None, 0.0 if values is None else values[0]
        if self.margins.measured:
            self.n_sample, self.sample_size, self.n_measured = len(known), known.size, known.seen
            if self.n_measured < self.n_sample:
                raise ValueError(f"{self.n_sample} distances of {self.n_measured} must not be remembered")
            self.sample, kept = np.empty(max(self.n_sample, self.sample_size)), known.values
            if self.n_sample > 0:
                memcpy(&self.sample[0], &kept[0], self.n_sample * sizeof(double))
            self.next_look = max(self.margins.next_look, self.margins.least)
        return 0

    cdef tuple draw(self, bint again):
        cdef Py_ssize_t i, k, n = self.X.shape[0], most = n * self.per_row, made = 0
        triplets, values, sources = np.empty((most, 2 * self.d)), np.empty((3, most)), np.empty(most, dtype=np.intp)
        cdef double[:, ::1] out = triplets, value = values
        cdef Py_ssize_t[::1] source = sources
        with nogil:
            for i in range(n):
                self.find_place(&self.X[i, 0])
                if self.n > 0 and self.make_triplets(self.numbers[i], &out[made, 0]):
                    for k in range(made, made + self.per_row):
                        value[0, k], value[1, k], value[2, k] = self.margin, -1.0, self.weights[i]
                        source[k] = self.names[i]
                    made += self.per_row
                if not again:
                    self.remember(&self.room[0], self.numbers[i])
        self.close()
        if self.sample is not None:
            self.give_sample()
        margins, senses, weights = values[:, :made]
        return triplets[:made], margins, senses, weights, margins, sources[:made]

    cdef void find_place(self, const double* x) noexcept nogil:
        """The row as it is remembered: x, L (x - origin), and the square of that."""
        cdef double* place = &self.room[self.d]
        cdef double* gap = self.own_room()
        cdef Py_ssize_t k
        memcpy(&self.room[0], x, self.d * sizeof(double))
        for k in range(self.d):
            gap[k] = x[k] - self.origin[k]
        for k in range(self.d):
            place[k] = ob_dot(&self.components[k, 0], gap, self.d)
        place[self.d] = ob_dot(place, place, self.d)

    cdef inline double* own_room(self) noexcept nogil:
        """Room for two rows."""
        return &self.room[self.room.shape[0] - 2 * self.d]

    cdef int make_triplets(self, Py_ssize_t number, double* out) except -1 nogil:
        """Triplets of the row that was placed, of this class; are there any?"""
        cdef Py_ssize_t j, k, n_mine = 0, n_others = 0, d = self.d
        cdef double* distances = &self.room[self.width]
        cdef Py_ssize_t* mine = &self.candidates[0]
        cdef Py_ssize_t* others = mine + self.n
        cdef const double* anchor = &self.room[0]
        cdef double limit = SAME * self.measure_distances(distances)
        for j in range(self.n):
            if self.classes[j] != number:
                others[n_others] = j
                n_others += 1
            elif not distances[j] <= limit:
                mine[n_mine] = j
                n_mine += 1
        n_mine = nearest(mine, distances, n_mine, self.n_similar)
        n_others = nearest(others, distances, n_others, self.n_impostors)
        if self.sample is not None:
            self.measure_similar(mine, n_mine)
        if n_mine == 0 or n_others == 0 or not self.has_margin:
            return 0
        for k in range(self.per_row):
            subtract(out + (2 * k + 1) * d, &self.rows[mine[<Py_ssize_t> (self.uniform() * n_mine)], 0], anchor, d)
        for k in range(self.per_row):
            subtract(out + 2 * k * d, &self.rows[others[<Py_ssize_t> (self.uniform() * n_others)], 0], anchor, d)
        return 1

    cdef double measure_distances(self, double* distances) noexcept nogil:
        """Squared, in the metric, of the remembered rows to the one that was placed; returns the largest."""
        cdef const double* place = &self.room[self.d]
        cdef const double* other = &self.rows[0, self.d]
        cdef Py_ssize_t j = 0, k, w = self.width
        cdef double largest = distances[0]
        while j + 4 <= self.n:
            ob_dot4(other, other + w, other + 2 * w, other + 3 * w, place, self.d, distances + j)
            other += 4 * w
            j += 4
        while j < self.n:
            distances[j] = ob_dot(other, place, self.d)
            other += w
            j += 1
        for k in range(self.n):
            distances[k] = self.rows[k, 2 * self.d] - 2.0 * distances[k] + place[self.d]
            if k == 0 or not distances[k] <= largest:
                largest = distances[k]
        return largest

    cdef int measure_similar(self, const Py_ssize_t* similar, Py_ssize_t n) except -1 nogil:
        """Take the distances to similar rows, in the prior metric, into the sample; see `RunningSample.add`."""
        cdef double* z = self.own_room()
        cdef double* image = z + self.d
        cdef double* squares = &self.room[self.width + self.n]
        cdef Py_ssize_t i, j, k, slot
        for i in range(n):
            subtract(z, &self.rows[similar[i], 0], &self.room[0], self.d)
            if self.prior is None:
                squares[i] = two_sums(z, z, self.d)
                continue
            for k in range(self.d):
                image[k] = 0.0
            for j in range(self.d):
                for k in range(self.d):
                    image[k] += z[j] * self.prior[j, k]
            squares[i] = two_sums(image, z, self.d)
        for i in range(n):
            slot = self.n_sample
            if slot < self.sample_size:
                self.n_sample += 1
            else:
                slot = <Py_ssize_t> (self.uniform() * (self.n_measured + 1))
            self.n_measured += 1
            if slot < self.sample_size:
                self.sample[slot] = squares[i]
        if n > 0 and self.n_measured >= self.next_look:
            with gil:
                self.give_sample()
                self.margins.look()
                self.hold_sample()
        return 0

    cdef int give_sample(self) except -1:
        self.margins.sample.go_on(self.sample.base[:self.n_sample], self.n_measured)  # to be copied before it changes
        return 0


cdef inline void subtract(double* z, const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        z[i] = a[i] - b[i]


cdef inline double two_sums(const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    """a.b by two running sums, eight products at a time from their end: the digits of `numpy.einsum`."""
    cdef double even = 0.0, odd = 0.0
    cdef Py_ssize_t i = 0, k
    while i + 8 <= n:
        for k in range(6, -1, -2):
            even += a[i + k] * b[i + k]
            odd += a[i + k + 1] * b[i + k + 1]
        i += 8
    while i + 2 <= n:
        even += a[i] * b[i]
        odd += a[i + 1] * b[i + 1]
        i += 2
    if i < n:
        even += a[i] * b[i]
    return even + odd


cdef inline bint less(double a, double b) noexcept nogil:
    return a < b or (b != b and a == a)  # NaN is the largest


cdef Py_ssize_t nearest(Py_ssize_t* among, const double* distances, Py_ssize_t n, Py_ssize_t count) noexcept nogil:
    """Put the `count` nearest first, by their distances, if there are more; returns how many they are."""
    cdef Py_ssize_t k, place, row
    if n <= count:
        return n
    for k in range(n):
        row, place = among[k], k
        if k >= count:
            if not less(distances[row], distances[among[count - 1]]):
                continue
            place = count - 1
        while place > 0 and less(distances[row], distances[among[place - 1]]):
            among[place] = among[place - 1]
            place -= 1
        among[place] = row
    return count
