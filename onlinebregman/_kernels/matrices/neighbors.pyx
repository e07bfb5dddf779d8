"""Triplets of rows with labels or targets, with their nearest neighbours among the stored rows."""

import numpy as np

cimport cython
from libc.math cimport fabs, floor, isfinite
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.state cimport BAD_TARGET, INTERRUPTED, LEARNED
from onlinebregman._kernels.matrices.reservoir cimport BACKUP, CAPACITY, METRIC, quantile
from onlinebregman._kernels.matrices.sampler cimport Sampler, subtract, two_sums
from onlinebregman._kernels.matrices.symmetric import balanced_factor
from onlinebregman._kernels.ops.lapack cimport dgemm
from onlinebregman._kernels.ops.row cimport ob_dot4
from onlinebregman._kernels.ops.vector cimport ob_dot
from onlinebregman._kernels.rows.rows cimport Row

cpdef enum:
    # numbers of nearest rows of the anchor's class, and of other classes, from which triplets are drawn
    NEAREST_SIMILAR = 5
    NEAREST_IMPOSTORS = 5
cdef enum:
    # the metric for neighbours is refreshed after this number of rows, at first when the stream grew by a fifth
    REFRESH_ROWS = 50
    REFRESH_GROWTH = 5
    # rates are summed in parts of this number of triplets
    PART = 1024
# A row nearer than this part of the largest distance may be equal to the anchor.
cdef double NEAR = 1e-12
# Images are computed from another origin if half of the rows are so much nearer to that, in squared distances.
cdef double FAR = 1e6
# Rows with real targets are similar to the share of the stored rows whose targets are nearest. Of 0.05, 0.1 and 0.2
# this had the lowest mean 5-NN error over twelve data sets; 0.33 and 0.5 were worse on three of four.
cdef double SIMILAR_SHARE = 0.2


def update_images(double[:, ::1] rows, const double[::1] origin, const double[:, :] components):
    """Compute the images L (x - origin) of stored rows x, and their squared norms, in place.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, 2 * n_features + 1) or more
        Each is x, its image, the squared norm of the image, and anything else.
    origin : ndarray of shape (n_features,)
    components : ndarray of shape (n_features, n_features)
        The factor L of the metric.
    """
    cdef Py_ssize_t i, k, d = origin.shape[0]
    cdef int n = <int> rows.shape[0], n_features = <int> d, width = <int> rows.shape[1]
    cdef double one = 1.0, zero = 0.0
    if not (width > 2 * d and components.shape[0] == components.shape[1] == d):
        raise ValueError(
            f"rows must have {2 * d + 1} values or more, and components the shape ({d}, {d}); "
            f"got {width} values and shape {np.shape(components)}"
        )
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


cdef class NeighborTriplets(Sampler):
    """A row, one of its nearest of its class, and one of its nearest of other classes, in the current metric.

    The nearest rows decide the votes of k-NN. With each stored row x its image L (x - origin) in the metric W = L'L is
    stored, and the squared norm of that; L and all images are refreshed every few rows, counted from the beginning of
    the stream.

    Parameters
    ----------
    n_features, size, random, per_row, prior, bounds, margins :
        See `Sampler`.
    """

    cdef const double[:, ::1] components, components_before
    cdef const double[::1] origin, origin_before
    cdef readonly double next_refresh          # the row at which the metric is refreshed next
    cdef double[::1] stored_row                # the current row, as it is stored
    cdef double[::1] distances                 # squared distances to the stored rows, and a buffer of as many
    cdef Py_ssize_t[::1] candidates            # indices of rows of the class, then of the others
    cdef const double* coming                  # the row before which the metric is refreshed

    def __cinit__(self, Py_ssize_t n_features, Py_ssize_t size, random, *more):
        if type(self) is NeighborTriplets:
            self.set_up(2 * n_features + 1, n_features, size, random)

    cdef int set_up(self, Py_ssize_t width, Py_ssize_t n_features, Py_ssize_t size, random) except -1:
        """Allocate the arrays; stored rows have `width` values."""
        self.allocate(n_features, width, size, random)
        self.fields.add("next_refresh", &self.next_refresh, sizeof(double))
        self.components, self.origin = None, None
        components, origin = self.given.pop("components", None), self.given.pop("origin", None)
        if components is not None:
            self.components, self.origin = np.array(components, np.float64), np.array(origin, np.float64)
        if self.components is not None and not (
                n_features == self.components.shape[0] == self.components.shape[1] == self.origin.shape[0]):
            raise ValueError(
                f"components and origin must be for {n_features} features; "
                f"got shapes {np.shape(self.components)} and {np.shape(self.origin)}"
            )
        if self.components is None and self.n > 0:
            raise ValueError("state must hold the metric of the stored rows; got none")
        self.stored_row = np.empty(self.width)
        self.make_candidates()
        return 0

    def get_state(self):
        """See `Stateful`."""
        state = Sampler.get_state(self)
        if self.components is not None:
            state["components"], state["origin"] = np.array(self.components), np.array(self.origin)
        return state

    cdef int make_candidates(self) except -1:
        self.distances = np.empty(2 * self.kept.shape[0])
        self.candidates = np.empty(2 * self.kept.shape[0], dtype=np.intp)
        return 0

    cdef Py_ssize_t instance_length(self) noexcept:
        return 2 * self.n_features

    cdef int save(self) except -1:
        Sampler.save(self)
        self.components_before, self.origin_before = self.components, self.origin
        return 0

    cdef int undo(self) except -1:
        Sampler.undo(self)
        self.components, self.origin = self.components_before, self.origin_before
        return 0

    cdef object coming_row(self):
        return np.array(<double[:self.n_features]> <double*> self.coming)

    cdef bint origin_is_far(self) noexcept:
        """Whether the stored rows are far from the origin, as compared with the distances of the coming row to them."""
        cdef double* distances = &self.distances[0]
        cdef Py_ssize_t k
        if self.n < 3:  # any one of two may be the one far off
            return False
        self.compute_stored(self.coming)
        self.measure_distances(distances)
        for k in range(self.n):
            distances[self.n + k] = self.kept[k, 2 * self.n_features]
        return quantile(distances + self.n, self.n, 0.5) > FAR * quantile(distances, self.n, 0.5)

    cdef int fulfil(self, int what) except -1:
        if what == METRIC:
            if self.origin is None:
                self.origin = self.coming_row()  # images around 0 lose no digits to cancellation
            self.components = balanced_factor(np.asarray(self.learner.coef))
            self.fulfil(BACKUP)
            update_images(self.kept[:self.n], self.origin, self.components)
            if self.origin_is_far():
                self.origin = self.coming_row()
                update_images(self.kept[:self.n], self.origin, self.components)
            self.next_refresh = self.n_rows + min(max(floor(self.n_rows / REFRESH_GROWTH), 1.0), <double> REFRESH_ROWS)
            return 0
        Sampler.fulfil(self, what)
        if what == CAPACITY:
            self.make_candidates()
        return 0

    cdef int learn_labelled(self, const double* x, Py_ssize_t number, double weight, Py_ssize_t i) noexcept nogil:
        cdef int status
        if self.n_rows >= self.next_refresh:
            status = self.flush()
            if status != LEARNED:
                return status
            self.coming = x
            if not (self.end_part() and self.request(METRIC)):
                return INTERRUPTED
        self.compute_stored(x)
        if self.n > 0:
            status = self.reserve_instances()
            if status != LEARNED:
                return status
            self.make_triplets(number, weight, i)
        if not (self.again or self.store(&self.stored_row[0], number)):
            return INTERRUPTED
        self.n_rows += 1
        self.n_parts += 1
        return LEARNED if self.n_parts * self.per_row < PART else self.check_all()

    cdef void compute_stored(self, const double* x) noexcept nogil:
        """Compute the row as it is stored: x, L (x - origin), and the squared norm of that."""
        cdef double* image = &self.stored_row[self.n_features]
        cdef Py_ssize_t k, d = self.n_features
        memcpy(&self.stored_row[0], x, d * sizeof(double))
        subtract(&self.difference[0], x, &self.origin[0], d)
        for k in range(d):
            image[k] = ob_dot(&self.components[k, 0], &self.difference[0], d)
        image[d] = ob_dot(image, image, d)

    cdef void make_triplets(self, Py_ssize_t number, double weight, Py_ssize_t i) noexcept nogil:
        """Make triplets of the row in `stored_row`, of this class, if there are neighbours of both kinds."""
        cdef Py_ssize_t j, k, n_mine, n_others, d = self.n_features
        cdef Py_ssize_t* mine = &self.candidates[0]
        cdef Py_ssize_t* others = mine + self.n
        cdef const double* anchor = &self.stored_row[0]
        cdef double* distances = &self.distances[0]
        n_mine = self.separate(number, NEAR * self.measure_distances(distances), &n_others)
        n_mine = nearest(mine, distances, n_mine, NEAREST_SIMILAR)
        n_others = nearest(others, distances, n_others, NEAREST_IMPOSTORS)
        if self.margins.measured:
            for j in range(n_mine):
                subtract(&self.difference[0], &self.kept[mine[j], 0], anchor, d)
                distances[self.n + j] = self.squared(&self.difference[0])
            self.measure(self.margins, distances + self.n, n_mine)
        if n_mine == 0 or n_others == 0 or not self.margins.known:
            return
        for k in range(self.per_row):
            subtract(&self.instances[self.made + k, d], &self.kept[mine[self.draw(n_mine)], 0], anchor, d)
        for k in range(self.per_row):
            subtract(&self.instances[self.made + k, 0], &self.kept[others[self.draw(n_others)], 0], anchor, d)
        j = self.made
        for k in range(self.per_row):
            if j + k > self.made:  # collapsed ones before were skipped
                memcpy(self.next_instance(), &self.instances[j + k, 0], 2 * d * sizeof(double))
            self.make(self.margins.found[0], -1.0, self.margins.found[0], weight, i)

    cdef inline bint differs(self, Py_ssize_t j, double limit) noexcept nogil:
        """Whether the j-th stored row is not equal to the current one; equal rows are nearer than `limit`."""
        cdef Py_ssize_t k = 0
        if not self.distances[j] <= limit:
            return True
        while k < self.n_features and self.kept[j, k] == self.stored_row[k]:
            k += 1
        return k < self.n_features

    cdef Py_ssize_t separate(self, Py_ssize_t number, double limit, Py_ssize_t* n_others) noexcept nogil:
        """Separate `candidates` into rows of the class, but those equal to the current one, and other rows."""
        cdef Py_ssize_t j, n_mine = 0
        n_others[0] = 0
        for j in range(self.n):
            if self.of_class[j] != number:
                self.candidates[self.n + n_others[0]] = j
                n_others[0] += 1
            elif self.differs(j, limit):
                self.candidates[n_mine] = j
                n_mine += 1
        return n_mine

    cdef double measure_distances(self, double* distances) noexcept nogil:
        """Squared distances, in the metric, of the stored rows to the one in `stored_row`; returns the largest."""
        cdef const double* image = &self.stored_row[self.n_features]
        cdef const double* other = &self.kept[0, self.n_features]
        cdef Py_ssize_t j = 0, k, w = self.width, d = self.n_features
        cdef double largest = 0.0
        while j + 4 <= self.n:
            ob_dot4(other, other + w, other + 2 * w, other + 3 * w, image, d, distances + j)
            other += 4 * w
            j += 4
        while j < self.n:
            distances[j] = ob_dot(other, image, d)
            other += w
            j += 1
        for k in range(self.n):
            distances[k] = self.kept[k, 2 * d] - 2.0 * distances[k] + image[d]
            if k == 0 or not distances[k] <= largest:
                largest = distances[k]
        return largest


@cython.final
cdef class TargetTriplets(NeighborTriplets):
    """The same for rows with real targets: similar are the stored rows with the nearest targets, a fifth of them.

    All rows are of one class for the reservoir, and stored with their targets.

    Parameters
    ----------
    n_features, size, random, per_row, prior, bounds, margins :
        See `NeighborTriplets`.
    """

    cdef double target  # of the current row

    def __cinit__(self, Py_ssize_t n_features, Py_ssize_t size, random, *more):
        self.set_up(2 * n_features + 2, n_features, size, random)

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        if not isfinite(y[0]):
            return BAD_TARGET
        self.target = y[0]
        return self.learn_labelled(row.x, 0, weight, row.number)

    cdef void compute_stored(self, const double* x) noexcept nogil:
        NeighborTriplets.compute_stored(self, x)
        self.stored_row[2 * self.n_features + 1] = self.target

    cdef Py_ssize_t separate(self, Py_ssize_t number, double limit, Py_ssize_t* n_others) noexcept nogil:
        cdef double* gaps = &self.distances[self.n]  # free until the margins are measured
        cdef double largest
        cdef Py_ssize_t j, n_mine = 0, place = 2 * self.n_features + 1
        for j in range(self.n):
            gaps[j] = fabs(self.kept[j, place] - self.target)
        largest = quantile(gaps, self.n, SIMILAR_SHARE)
        n_others[0] = 0
        for j in range(self.n):
            if fabs(self.kept[j, place] - self.target) > largest:
                self.candidates[self.n + n_others[0]] = j
                n_others[0] += 1
            elif self.differs(j, limit):
                self.candidates[n_mine] = j
                n_mine += 1
        return n_mine


cdef inline bint less(double a, double b) noexcept nogil:
    return a < b or (b != b and a == a)  # NaN is the largest


cdef Py_ssize_t nearest(Py_ssize_t* among, const double* distances, Py_ssize_t n, Py_ssize_t count) noexcept nogil:
    """Sort the `count` nearest to the front, if there are more; returns min(n, count)."""
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
