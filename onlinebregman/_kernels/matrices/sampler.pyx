"""Makes pairs or triplets of labelled rows, and learns them, in one loop without the GIL.

Pairs are of random rows; triplets are of rows with labels or targets and their nearest neighbours among stored rows.
"""

import numpy as np

cimport cython
from libc.math cimport fabs, floor, isfinite
from libc.string cimport memcpy

from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.learners.atomic cimport Block, claim, release
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.run cimport BAD_TARGET, INTERRUPTED, LEARNED
from onlinebregman._kernels.learners.transaction cimport check_idle
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.matrices.reservoir cimport (
    BACKUP, CAPACITY, METRIC, RATE_SUM, RATES, SIZE, Percentiles, Reservoir, quantile
)
from onlinebregman._kernels.matrices.symmetric import balanced_factor
from onlinebregman._kernels.ops.lapack cimport dgemm
from onlinebregman._kernels.ops.row cimport ob_dots
from onlinebregman._kernels.ops.vector cimport ob_dot
from onlinebregman._kernels.rows.rows cimport Row, Rows, open_rows

MOST_PER_ROW = 1 << 20  # instances of a row: more would take minutes

cpdef enum:
    # numbers of nearest rows of the anchor's class, and of other classes, from which triplets are drawn
    NEAREST_SIMILAR = 5
    NEAREST_IMPOSTORS = 5
cdef enum:
    BLOCK_SIZE = 128          # instances that are made before they are learned, for geometries that look ahead
    DISTANCES = 4             # to stored rows, that each row which forms random pairs adds to the sample for the bounds
    ROWS_OF_PART = 256        # rates are summed in parts of this number of rows that form pairs,
    TRIPLETS_OF_PART = 1024   # or of triplets
    REFRESH_ROWS = 50         # the metric for neighbours is refreshed after this number of rows,
    REFRESH_GROWTH = 5        # at first when the stream grew by a fifth
# A row nearer than this part of the largest distance may be equal to the anchor.
cdef double NEAR = 1e-12
# Images are computed from another origin if half of the rows are so much nearer to that, in squared distances.
cdef double FAR = 1e6
# Rows with real targets are similar to the share of the stored rows whose targets are nearest. Of 0.05, 0.1 and 0.2
# this had the lowest mean 5-NN error over twelve data sets; 0.33 and 0.5 were worse on three of four.
cdef double SIMILAR_SHARE = 0.2


cdef inline void subtract(double* z, const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        z[i] = a[i] - b[i]


cdef class Sampler(Reservoir):
    """Makes instances of labelled rows, each row against rows that came before it, and has a `Learner` learn them.

    The instances depend on the stream and the random numbers, not on how the stream is cut into calls. A call changes
    the sampler and the learner, or neither.

    Parameters
    ----------
    n_features, size, random :
        See `Reservoir`.
    per_row : int
        Instances drawn for each row.
    prior : ndarray of shape (n_features, n_features), or None
        Metric in which distances are measured; None for the identity.
    bounds : Percentiles
        Target squared distances of pairs: of the same class, and of different ones.
    margins : Percentiles
        Target difference of the squared distances of a triplet.
    """

    cdef readonly Percentiles bounds, margins
    cdef readonly double n_rows      # learned
    cdef readonly double n_collapsed  # instances without information on the metric
    cdef const double[:, ::1] prior  # metric of the distances; None for the identity
    cdef Py_ssize_t per_row          # instances of each row
    cdef Learner plain_learner       # the learner of the instances of rows that come without validation
    cdef bint one_sided, scaled
    # the current call
    cdef Learner learner             # the learner of the instances
    cdef bint again, sums_rates      # whether the rows were learned before; whether rates are summed
    cdef double[:, ::1] instances    # the first `made` are not learned yet
    cdef Rows instance_rows          # the same, as a learner reads them
    cdef double[::1] targets, rates  # of the instances
    cdef Py_ssize_t[::1] sources     # numbers of the rows that instances were made of
    cdef Py_ssize_t made
    cdef list recorded_rates            # of the current part of the call
    cdef Py_ssize_t n_parts          # rows in this part
    cdef readonly double rate_sum    # sum of the rates of the last call
    cdef readonly double refused_target   # target of the instance that could not be learned
    cdef double[::1] distances       # squared distances to the stored rows, and a buffer of as many
    cdef Py_ssize_t[::1] candidates  # indices of rows of the class, then of the others
    cdef double[::1] difference, image

    def __cinit__(self, n_features, size, random, Py_ssize_t per_row, prior, Percentiles bounds not None,
                  Percentiles margins not None, state=None):
        if type(self) is Sampler:
            raise TypeError("Sampler must be a subclass, which draws the instances; got the base class")
        self.per_row, self.bounds, self.margins = per_row, bounds, margins
        self.fields.add("n_rows", &self.n_rows, sizeof(double))
        self.fields.add("n_collapsed", &self.n_collapsed, sizeof(double))
        self.prior = None if prior is None else np.array(prior, dtype=np.float64)
        if self.prior is not None and not self.prior.shape[0] == self.prior.shape[1] == n_features:
            raise ValueError(f"prior must have shape ({n_features}, {n_features}); got {np.shape(self.prior)}")
        if not 1 <= per_row <= MOST_PER_ROW or self.n_rows < 0 or self.n_collapsed < 0 or \
                bounds.found.shape[0] != 2 or margins.found.shape[0] != 1:
            raise ValueError(
                f"per_row must be from 1 to {MOST_PER_ROW}, n_rows and n_collapsed 0 or more, with two bounds and one "
                f"margin; got {per_row}, {self.n_rows:g}, {self.n_collapsed:g}, {bounds.found.shape[0]} and "
                f"{margins.found.shape[0]}"
            )
        self.instances, self.difference, self.image = None, np.empty(n_features), np.empty(n_features)

    def apply(self, *, Loss loss not None, bint one_sided, bint scaled, Learner plain_learner=None):
        """Set the loss, whether targets are bounds and rates scaled, and the learner of instances in `learn_fast`."""
        self.plain_learner, self.loss, self.one_sided, self.scaled = plain_learner, loss, one_sided, scaled

    # --- entry points -------------------------------------------------------------------------------------------

    def learn_fast(self, dict attributes, X, y=None, sample_weight=None, double[:, ::1] scores=None):
        """See `AtomicLearner.learn_fast`."""
        if self.loss is None or self.plain_learner is None or self.busy:
            return False
        self.learner, self.members = self.plain_learner, (self.plain_learner,)
        self.again = self.sums_rates = False
        try:
            return Reservoir.learn_fast(self, attributes, X, y, sample_weight, scores)
        finally:
            self.learner, self.members = None, ()

    def learn_by(self, Learner learner not None, X, numbers, sample_weight, bint again):
        """Have a learner learn validated rows with class numbers, see `AtomicLearner.learn`.

        `again`: the rows were learned before.
        """
        if self.loss is None and self.next_settings is None:
            raise ValueError("the loss must be set, by `configure`; got None")
        check_idle(self.busy)
        self.learner, self.members, self.again, self.sums_rates = learner, (learner,), again, True
        try:
            return Reservoir.learn(self, X, numbers, sample_weight)
        finally:
            self.learner, self.members = None, ()

    def measured(self, const double[:, ::1] z, const double[::1] sample_weight, bint triplets, bint again):
        """Margins of triplets, or bounds of pairs, as they are before each is learned.

        Parameters
        ----------
        z : ndarray of shape (n, n_features)
            Differences of similar rows, or of the rows of pairs; added to the sample of distances unless `again`.
        sample_weight : ndarray of shape (n,)
            Rows of weight 0 are not added.
        triplets : bool
        again : bool

        Returns
        -------
        targets : ndarray of shape (n, 1) or (n, 2)
            0 before they are known.
        """
        cdef Percentiles known = self.margins if triplets else self.bounds
        cdef Py_ssize_t i, k, m = known.found.shape[0]
        cdef double distance
        cdef double[:, ::1] out = np.zeros((z.shape[0], m))
        if z.shape[0] != sample_weight.shape[0] or z.shape[1] != self.n_features:
            raise ValueError(
                f"z must have {self.n_features} columns, and sample_weight one entry for each of {z.shape[0]} rows; "
                f"got {z.shape[1]} and {sample_weight.shape[0]}"
            )
        claim(self)
        try:
            self.save()
            with nogil:
                for i in range(z.shape[0]):
                    if not again and sample_weight[i] > 0:
                        distance = self.squared(&z[i, 0])
                        self.measure(known, &distance, 1)
                    for k in range(m if known.known else 0):
                        out[i, k] = known.found[k]
            # a call without rows, which `rollback` can undo like any other
            self.former, self.n_calls, self.n_changes = self.exchange(None), self.n_calls + 1, self.n_changes + 1
        finally:
            release(self, 0)
        return np.asarray(out)

    # --- a call: see `AtomicLearner` ----------------------------------------------------------------------------

    cdef Py_ssize_t instance_length(self) noexcept:
        """Number of values of an instance."""
        return self.n_features

    cdef Py_ssize_t vector_length(self, Py_ssize_t widest, bint to_learn) noexcept:
        return self.learner.vector_length(self.instance_length(), to_learn)

    cdef int save(self) except -1:
        Reservoir.save(self)
        self.bounds.save(0)
        self.margins.save(0)
        return 0

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef Py_ssize_t most = max(BLOCK_SIZE, self.per_row), capacity = min(rows.n_rows * self.per_row, most)
        Reservoir.begin(self, rows, complete)
        if self.instances is None or self.instances.shape[0] < capacity:
            instances = np.empty((capacity, self.instance_length()))
            self.instances, self.instance_rows = instances, open_rows(instances)
            self.targets, self.rates = np.empty(capacity), np.empty(capacity)
            self.sources = np.empty(capacity, dtype=np.intp)
        self.made = self.n_parts = 0
        self.recorded_rates, self.rate_sum = [], 0.0
        self.instance_rows.n_rows = rows.n_rows * self.per_row  # at most
        if self.learner.loss is not self.loss:
            self.learner.next_settings = {**(self.learner.next_settings or {}), "loss": self.loss}
        self.learner.check(self.instance_rows)
        return self.learner.begin(self.instance_rows, complete)

    cdef int undo(self) except -1:
        Reservoir.undo(self)
        self.bounds.restore()
        self.margins.restore()
        return 0

    cdef dict exchange(self, dict others):
        held = {"plain_learner": self.plain_learner, "loss": self.loss, "senses": (self.one_sided, self.scaled)}
        if others is not None:
            self.plain_learner, self.loss = others["plain_learner"], others["loss"]
            self.one_sided, self.scaled = others["senses"]
        return held

    cdef int check_all(self) noexcept nogil:
        cdef int status = self.flush()
        if status != LEARNED:
            return status
        return LEARNED if self.end_part() else INTERRUPTED

    # --- instances ----------------------------------------------------------------------------------------------

    cdef double* next_instance(self) noexcept nogil:
        """Pointer to the values of the next instance."""
        return &self.instances[self.made, 0]

    cdef int reserve_instances(self) noexcept nogil:
        """Make sure that the instances of one more row fit in."""
        return self.flush() if self.made + self.per_row > self.instances.shape[0] else LEARNED

    cdef void make(self, double target, double sense, double scale, double weight, Py_ssize_t i) noexcept nogil:
        """Add the next instance, unless it is collapsed.

        `sense` is 1 for a target that is an upper bound, -1 for a lower one; `scale` is the squared distance by which
        the rate is scaled, and i the number of the row that the instance was made of.
        """
        cdef Py_ssize_t j = 0
        while j < self.n_features and self.instances[self.made, j] == 0:
            j += 1
        if j == self.n_features:  # equal rows, or a dissimilar row equal to the anchor: no metric separates these
            self.n_collapsed += 1
            return
        self.targets[self.made] = target * sense if self.one_sided else target
        self.rates[self.made] = weight / (scale * scale) if self.scaled and scale > 0 else weight
        self.sources[self.made] = i
        self.made += 1

    cdef int flush(self) noexcept nogil:
        """Learn the instances made so far."""
        cdef Block instances
        cdef int status
        if self.made == 0:
            return LEARNED
        instances.y, instances.n_targets, instances.sample_weight = &self.targets[0], 1, &self.rates[0]
        # the workspace of this call: what the copy points to is the memory of the original
        instances.scores, instances.work = NULL, self.block.work
        self.instance_rows.n_rows = self.made
        status = self.learner.loop(self.instance_rows, &instances)
        if status == LEARNED:
            status = self.learner.check_all()
        self.block.work = instances.work
        if status != LEARNED:
            self.block.failed = self.sources[instances.failed]
            self.refused_target = fabs(self.targets[instances.failed])
            return status
        if self.sums_rates and not self.request(RATES):
            return INTERRUPTED
        self.made = 0
        return LEARNED

    cdef bint end_part(self) noexcept nogil:
        """End a part of the call: rates are summed by parts."""
        self.n_parts = 0
        return not self.sums_rates or self.request(RATE_SUM)

    cdef int fulfil(self, int what) except -1:
        if what == RATES:
            self.recorded_rates.append(np.array(self.rates[:self.made]))
        elif what == RATE_SUM and self.recorded_rates:
            self.rate_sum += float(np.concatenate(self.recorded_rates).sum())
            self.recorded_rates = []
        else:
            Reservoir.fulfil(self, what)
            if what == CAPACITY:
                self.make_candidates()
        return 0

    cdef int make_candidates(self) except -1:
        self.distances = np.empty(2 * self.kept.shape[0])
        self.candidates = np.empty(2 * self.kept.shape[0], dtype=np.intp)
        return 0

    # --- distances ----------------------------------------------------------------------------------------------

    cdef double squared(self, const double* z) noexcept nogil:
        """z'z in the prior metric."""
        cdef Py_ssize_t j, k, d = self.n_features
        if self.prior is None:
            return two_sums(z, z, d)
        for k in range(d):
            self.image[k] = 0.0
        for j in range(d):
            for k in range(d):
                self.image[k] += z[j] * self.prior[j, k]
        return two_sums(&self.image[0], z, d)

    cdef void measure(self, Percentiles known, const double* distances, Py_ssize_t n) noexcept nogil:
        """Add squared distances to the sample, then update the percentiles if that is due."""
        cdef Py_ssize_t i, slot
        for i in range(n if known.measured else 0):
            # the next place in the sample, or a random one among all distances so far
            slot = <Py_ssize_t> known.n
            slot = slot if slot < SIZE else self.draw(<Py_ssize_t> known.n_distances + 1)
            known.n_distances += 1.0
            if slot < SIZE:
                known.n = max(known.n, slot + 1.0)
                known.sample[slot] = distances[i]
        if n > 0 and known.measured and known.n_distances >= max(known.next_update, <double> known.least):
            known.update()


cdef double two_sums(const double* a, const double* b, Py_ssize_t n) noexcept nogil:
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


@cython.final
cdef class RandomPairs(Sampler):
    """Pairs each row with stored rows drawn at random, alternately of its own class and of other classes.

    Parameters
    ----------
    n_features, size, random, per_row, prior, bounds, margins :
        See `Sampler`.
    """

    cdef Py_ssize_t[::1] partners

    def __cinit__(self, Py_ssize_t n_features, Py_ssize_t size, random, *more):
        self.allocate(n_features, n_features, size, random)
        self.make_candidates()
        self.partners = np.empty(self.per_row + 1, dtype=np.intp)

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
        return LEARNED if self.n_parts < ROWS_OF_PART else self.check_all()

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

    cdef int update_images(self) except -1:
        """Compute the images L (x - origin) of the stored rows x, and their squared norms."""
        cdef Py_ssize_t i, d = self.n_features
        cdef int n = <int> self.n, n_features = <int> d, width = <int> self.width
        cdef double one = 1.0, zero = 0.0
        cdef double[:, ::1] gaps = np.empty((self.n, d)), rows = self.kept
        if n == 0:
            return 0
        for i in range(n):
            subtract(&gaps[i, 0], &rows[i, 0], &self.origin[0], d)
        dgemm("T", "N", &n_features, &n, &n_features, &one, <double*> &self.components[0, 0], &n_features,
              &gaps[0, 0], &n_features, &zero, &rows[0, d], &width)
        for i in range(n):
            rows[i, 2 * d] = two_sums(&rows[i, d], &rows[i, d], d)
        return 0

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
            self.fulfil(BACKUP)  # as images are stored with the rows
            self.update_images()
            if self.origin_is_far():
                self.origin = self.coming_row()
                self.update_images()
            self.next_refresh = self.n_rows + min(max(floor(self.n_rows / REFRESH_GROWTH), 1.0), <double> REFRESH_ROWS)
            return 0
        return Sampler.fulfil(self, what)

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
        return LEARNED if self.n_parts * self.per_row < TRIPLETS_OF_PART else self.check_all()

    cdef void compute_stored(self, const double* x) noexcept nogil:
        """Compute the row as it is stored: x, L (x - origin), and the squared norm of that."""
        cdef double* image = &self.stored_row[self.n_features]
        cdef Py_ssize_t d = self.n_features
        memcpy(&self.stored_row[0], x, d * sizeof(double))
        subtract(&self.difference[0], x, &self.origin[0], d)
        ob_dots(&self.components[0, 0], d, d, &self.difference[0], d, image)
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

    cdef bint is_other(self, Py_ssize_t j, Py_ssize_t number) noexcept nogil:
        """Whether the j-th stored row is of another class than this one."""
        return self.of_class[j] != number

    cdef Py_ssize_t separate(self, Py_ssize_t number, double limit, Py_ssize_t* n_others) noexcept nogil:
        """Separate `candidates` into rows of the class, but those equal to the current one, and other rows."""
        cdef Py_ssize_t j, n_mine = 0
        n_others[0] = 0
        for j in range(self.n):
            if self.is_other(j, number):
                self.candidates[self.n + n_others[0]] = j
                n_others[0] += 1
            elif self.differs(j, limit):
                self.candidates[n_mine] = j
                n_mine += 1
        return n_mine

    cdef double measure_distances(self, double* distances) noexcept nogil:
        """Squared distances, in the metric, of the stored rows to the one in `stored_row`; returns the largest."""
        cdef const double* image = &self.stored_row[self.n_features]
        cdef Py_ssize_t k, d = self.n_features
        cdef double largest = 0.0
        ob_dots(&self.kept[0, d], self.width, self.n, image, d, distances)
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

    cdef double target       # of the current row
    cdef double largest_gap  # of similar rows

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

    cdef bint is_other(self, Py_ssize_t j, Py_ssize_t number) noexcept nogil:
        return fabs(self.kept[j, 2 * self.n_features + 1] - self.target) > self.largest_gap

    cdef Py_ssize_t separate(self, Py_ssize_t number, double limit, Py_ssize_t* n_others) noexcept nogil:
        cdef double* gaps = &self.distances[self.n]  # free until the margins are measured
        cdef Py_ssize_t j
        for j in range(self.n):
            gaps[j] = fabs(self.kept[j, 2 * self.n_features + 1] - self.target)
        self.largest_gap = quantile(gaps, self.n, SIMILAR_SHARE)
        return NeighborTriplets.separate(self, number, limit, n_others)


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
