"""Makes pairs or triplets of labelled rows, and learns them, in one loop without the GIL."""

import numpy as np

cimport cython
from libc.math cimport fabs

from onlinebregman._kernels.learners.atomic cimport Block, claim, learn_block, reason, release
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.state cimport INTERRUPTED, LEARNED
from onlinebregman._kernels.learners.transaction cimport check_idle
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.matrices.instances cimport signed_target, is_collapsed, rate_of
from onlinebregman._kernels.matrices.reservoir cimport CAPACITY, RATE_SUM, RATES, SIZE, Percentiles, Reservoir
from onlinebregman._kernels.rows.rows cimport Rows, open_rows

MOST_PER_ROW = 1 << 20  # instances of a row: more would take minutes

cdef enum:
    BLOCK_SIZE = 128  # instances that are made before they are learned, for geometries that look ahead
    DISTANCES = 4     # to stored rows, that each row which forms random pairs adds to the sample for the bounds
    PART = 256        # rates are summed in parts of this number of rows that form pairs


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

    def apply(self, *, Loss loss not None, bint one_sided, bint scaled, Learner metric=None):
        """Set the loss, whether targets are bounds and rates scaled, and the learner of plain rows."""
        self.metric, self.loss, self.one_sided, self.scaled = metric, loss, one_sided, scaled

    # --- entry points -------------------------------------------------------------------------------------------

    def learn_fast(self, dict attributes, X, y=None, sample_weight=None, double[:, ::1] scores=None):
        """See `AtomicLearner.learn_fast`."""
        if self.loss is None or self.metric is None or self.busy:
            return False
        self.learner, self.members, self.again, self.sums_rates = self.metric, (self.metric,), False, False
        try:
            return Reservoir.learn_fast(self, attributes, X, y, sample_weight, scores)
        finally:
            self.learner, self.members = None, ()

    def learn_by(self, Learner learner not None, X, const double[::1] numbers, const double[::1] sample_weight,
                 bint again):
        """Have a learner learn validated rows with class numbers; `again`: the rows were learned before.

        Returns (reason, row) of what could not be learned, or None. All rows are learned or none.
        """
        cdef Rows rows = open_rows(X)
        cdef Block block
        cdef bint configured = self.loss is not None or self.next_settings is not None
        if not (configured and numbers.shape[0] == sample_weight.shape[0] == rows.n_rows):
            raise ValueError(
                f"numbers and sample_weight must have one entry for each of {rows.n_rows} rows, and the loss must be "
                f"set; got {numbers.shape[0]} and {sample_weight.shape[0]} entries, and the loss {self.loss!r}"
            )
        block.y, block.n_targets, block.sample_weight, block.scores = &numbers[0], 1, &sample_weight[0], NULL
        check_idle(self.busy)
        self.learner, self.members, self.again, self.sums_rates = learner, (learner,), again, True
        try:
            status = learn_block(self, rows, &block)
        finally:
            self.learner, self.members = None, ()
        return None if status == LEARNED else (reason(status), block.failed)

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
        held = {"metric": self.metric, "loss": self.loss, "senses": (self.one_sided, self.scaled)}
        if others is not None:
            self.metric, self.loss, (self.one_sided, self.scaled) = others["metric"], others["loss"], others["senses"]
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
        if is_collapsed(self.next_instance(), self.n_features):
            self.n_collapsed += 1
            return
        self.targets[self.made] = signed_target(target, sense, self.one_sided)
        self.rates[self.made] = rate_of(weight, scale, self.scaled)
        self.sources[self.made] = i
        self.made += 1

    cdef int flush(self) noexcept nogil:
        """Learn the instances made so far."""
        cdef Block instances
        cdef int status
        if self.made == 0:
            return LEARNED
        instances.y, instances.n_targets, instances.sample_weight = &self.targets[0], 1, &self.rates[0]
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
            slot = <Py_ssize_t> known.n
            known.put(slot if slot < SIZE else self.draw(<Py_ssize_t> known.n_distances + 1), distances[i])
        if n > 0 and known.measured and known.is_due():
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

    cdef Py_ssize_t[::1] candidates  # indices of rows of the class, then of the others
    cdef Py_ssize_t[::1] partners

    def __cinit__(self, Py_ssize_t n_features, Py_ssize_t size, random, *more):
        self.allocate(n_features, n_features, size, random)
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


def targets_and_rates(const double[:, ::1] rows, const double[:] targets, const double[:] senses,
                      const double[:] weights, const double[:] scales, Py_ssize_t d, bint one_sided, bint scaled):
    """Targets and rates of instances; collapsed ones, without information on the metric, get a rate of 0.

    Collapsed are pairs with z = 0, and triplets whose dissimilar row is the anchor: no metric can separate these.

    Parameters
    ----------
    rows, targets, senses, weights, scales : ndarray
        See `metric_learning._pairs.Block`.
    d : int
        The number of features.
    one_sided : bool
        Whether targets are bounds: the sign of lower bounds is then changed.
    scaled : bool
        Whether rates are divided by the squares of the scales.

    Returns
    -------
    targets, rates : ndarray of shape (n,)
    collapsed : ndarray of intp
        Indices of the collapsed instances.
    """
    cdef Py_ssize_t i, n = rows.shape[0], n_collapsed = 0
    if not n == targets.shape[0] == senses.shape[0] == weights.shape[0] == scales.shape[0] or d > rows.shape[1]:
        raise ValueError(
            f"targets, senses, weights and scales must have one entry for each of {n} rows, of {d} or more values; "
            f"got {targets.shape[0]}, {senses.shape[0]}, {weights.shape[0]} and {scales.shape[0]} entries, and "
            f"{rows.shape[1]} values"
        )
    cdef double[::1] signed_targets = np.empty(n), rates = np.empty(n)
    cdef Py_ssize_t[::1] collapsed = np.empty(n, dtype=np.intp)
    for i in range(n):
        signed_targets[i] = signed_target(targets[i], senses[i], one_sided)
        rates[i] = rate_of(weights[i], scales[i], scaled)
        if is_collapsed(&rows[i, 0], d):
            rates[i] = 0.0
            collapsed[n_collapsed] = i
            n_collapsed += 1
    return np.asarray(signed_targets), np.asarray(rates), np.asarray(collapsed)[:n_collapsed]
