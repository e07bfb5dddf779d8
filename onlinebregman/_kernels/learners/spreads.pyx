"""Learning of instances X, predicted as tr(W X), with rates divided by squared spreads; the loss is (a - y)^2 / 2.

The spread of an instance (L. Mirsky, "The Spread of a Matrix", Mathematika 3, 1956) is the length of an interval that
holds its eigenvalues; that of a stream is the largest so far. No KeyboardInterrupt can come between changes of the
statistics and those of the weights.
"""

import numpy as np

from libc.float cimport DBL_MIN
from libc.math cimport fabs, isfinite

from onlinebregman._kernels.geometries.geometry cimport Geometry
from onlinebregman._kernels.learners.atomic cimport Block, fitting_rows, learn_block
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.run cimport LEARNED
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.rows.rows cimport Rows, open_rows
from onlinebregman._kernels.rows.arrays import all_finite


cdef struct Chosen:              # the instances to learn
    Py_ssize_t n                 # without weight 0 and multiples of the identity, whose tr(W X) is constant
    bint in_order                # whether they are all instances, in the order in which they are stored
    double spread                # of the stream after them, or after the instance `too_large`
    double largest_weight
    Py_ssize_t reweighted        # number of weights other than 1
    Py_ssize_t n_collapsed       # number of multiples of the identity
    Py_ssize_t too_large         # the first with which the squared spread or a bound on the loss overflows; or -1


cdef struct Statistics:          # of the instances learned
    double spread                # the largest spread
    double largest_weight        # of an instance, and at least 1
    double reweighted            # number of instances whose weight is not 1
    double loss                  # the sum of weight times loss, each taken before the instance was learned
    double n_collapsed           # number of multiples of the identity, which are left out


cdef class SpreadLearner(Learner):
    """Learns instances by a `MatrixGeometry` on the squared loss; see `Learner`."""

    cdef public Statistics statistics

    def __cinit__(self, Geometry geometry not None, Loss loss not None, dict state=None):
        self.statistics.largest_weight, self.total_loss = 1.0, &self.statistics.loss
        self.fields.add("statistics", &self.statistics, sizeof(self.statistics), tuple(self.statistics))

    @property
    def spread(self):
        """The largest spread of an instance."""
        return self.statistics.spread

    @property
    def largest_weight(self):
        """See `Learner.largest_weight`."""
        return self.statistics.largest_weight

    @property
    def all_weight_one(self):
        """See `Learner.all_weight_one`."""
        return self.statistics.reweighted == 0

    @property
    def n_collapsed(self):
        """Number of multiples of the identity among the instances."""
        return int(self.statistics.n_collapsed)

    def learn_instances_fast(self, dict attributes, instances, y, bint scaled):
        """Learn dense rows of weight 1 as `learn_fast` does; False if that is not safe."""
        cdef Rows rows
        if not self.ready(attributes):
            return False
        rows = fitting_rows(self, attributes, instances.data)
        if rows is None:
            return False
        if not (all_finite(y) and all_finite(instances.data)) or y.dtype != np.float64 or y.shape != (rows.n_rows,):
            return False
        return learn(self, instances, rows, instances.extremes, y, None, None, scaled) is None

    def learn_instances(self, instances, y, weights, order, bint scaled):
        """Learn instances in the given order. Returns None, or (reason, row, spread) if one cannot be learned.

        Parameters
        ----------
        instances : Rows
        y, weights : ndarray of shape (n,)
            Targets and weights; None for weights of 1.
        order : ndarray of intp or None
        scaled : bool
            Whether rates are divided by the square of the spread of the stream.
        """
        return learn(self, instances, None, instances.extremes, y, weights, order, scaled)


cdef object learn(SpreadLearner learner, instances, Rows rows, extremes, y, weights, order, bint scaled):
    """See `learn_instances`; with the rows of the instances, or None, and their extreme eigenvalues."""
    cdef Statistics* known = &learner.statistics
    cdef const double[::1] targets = y, weight = weights
    cdef const Py_ssize_t[::1] given = order
    cdef Py_ssize_t n = targets.shape[0] if order is None else given.shape[0]
    chosen_rows = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] index = chosen_rows
    cdef double[:, ::1] numbers = np.empty((2, n))  # factors of the learning rate, and scores
    cdef const double[::1] chosen_targets = targets
    cdef Block block
    cdef Chosen chosen = choose(
        extremes, targets, weight, given, known.spread, known.loss, scaled, index, numbers[0]
    )
    if chosen.too_large >= 0:
        return "too large", chosen.too_large, chosen.spread
    if chosen.n == 0:  # a call, too: undoing it undoes what follows
        rows = open_rows(np.zeros((0, learner.n_features)))
    elif not chosen.in_order:
        chosen_rows = chosen_rows[:chosen.n]
        rows, chosen_targets = open_rows(instances.data[chosen_rows]), y[chosen_rows]
    elif rows is None:
        rows = open_rows(instances.data)
    instances.configure(learner.geometry)
    block.y, block.n_targets = &chosen_targets[0], 1
    block.sample_weight, block.scores = &numbers[0, 0], &numbers[1, 0]
    if learn_block(learner, rows, &block) != LEARNED:
        return "overflowed", index[block.failed], chosen.spread
    known.spread, known.largest_weight = chosen.spread, max(known.largest_weight, chosen.largest_weight)
    known.reweighted += chosen.reweighted
    known.loss = added_losses(known.loss, numbers[1], targets, weight, index, chosen.n)
    known.n_collapsed += chosen.n_collapsed
    return None


cdef Chosen choose(const double[:, :] extremes, const double[::1] y, const double[::1] weights,
                   const Py_ssize_t[::1] order, double spread, double loss, bint scaled, Py_ssize_t[::1] index,
                   double[::1] rate):
    """Write the indices of the instances to learn, and their weights, divided by spread^2 if `scaled`."""
    cdef Py_ssize_t i, k
    cdef double low, high, own, size, most, weight
    cdef Chosen chosen = Chosen(0, index.shape[0] == y.shape[0], spread, 0.0, 0, 0, -1)
    for k in range(index.shape[0]):
        i = k if order is None else order[k]
        weight = 1.0 if weights is None else weights[i]
        if weight <= 0:
            continue
        low, high = extremes[i, 0], extremes[i, 1]
        own, size = high - low, max(-low, high)
        if not (own * own != 0 and own >= 1e-12 * size):
            chosen.n_collapsed += 1
            continue
        spread = chosen.spread = max(spread, own)
        most = size + fabs(y[i])  # of |a - y|
        loss += weight * most * most
        if not isfinite(spread * spread + loss):
            chosen.too_large = i
            return chosen
        chosen.largest_weight = max(chosen.largest_weight, weight)
        chosen.reweighted += weight != 1
        # a row of rate 0 would be skipped
        rate[chosen.n] = max(weight / (spread * spread), DBL_MIN) if scaled else weight
        index[chosen.n] = i
        chosen.in_order = chosen.in_order and i == k
        chosen.n += 1
    chosen.in_order = chosen.in_order and chosen.n == y.shape[0]
    return chosen


cdef double added_losses(double loss, const double[::1] scores, const double[::1] y, const double[::1] weights,
                         const Py_ssize_t[::1] index, Py_ssize_t n):
    """The loss plus those of instances, added one by one, so that it does not depend on how the stream is cut."""
    cdef Py_ssize_t k
    cdef double residual, weight
    for k in range(n):
        residual = scores[k] - y[index[k]]
        weight = 1.0 if weights is None else weights[index[k]]
        loss += weight * (residual * residual) / 2.0
    return loss
