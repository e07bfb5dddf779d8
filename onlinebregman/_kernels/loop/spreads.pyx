"""Learning of instances X, predicted as tr(W X), with rates divided by squared spreads; the loss is (a - y)^2 / 2.

The spread of an instance is the length of an interval that holds its eigenvalues; that of a stream is the largest so
far. The statistics of the stream are attributes of its estimator: `spread_`, `n_collapsed_`, `_loss_sum` and
`_largest_weight`. No KeyboardInterrupt can come between their changes and those of the learner.
"""

import numpy as np

from libc.float cimport DBL_MIN
from libc.math cimport fabs, isfinite

from onlinebregman._kernels.loop.learner cimport Learner
from onlinebregman._kernels.loop.transaction cimport under_way
from onlinebregman._kernels.rows.rows cimport Rows
from onlinebregman._kernels.rows.rows import all_finite


def learn_plain(Learner learner, dict attributes, instances, y, bint scaled):
    """Learn dense rows of weight 1 as `AtomicLearner.learn_fast` does; False if that is not safe."""
    cdef Rows rows
    if learner.busy or under_way(attributes) or not learner.parameters_unchanged(attributes):
        return False
    rows = learner.fitting_rows(attributes, instances.data)
    if rows is None:
        return False
    if not (all_finite(y) and all_finite(instances.data)) or y.dtype != np.float64 or y.shape != (rows.n_rows,):
        return False
    return learn_instances(learner, attributes, instances, y, None, None, scaled) is None


def learn_instances(Learner learner, dict attributes, instances, y, weights, order, bint scaled):
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
    index, steps, spread, heaviest, n_collapsed, too_large = rates(
        instances.extremes, y, weights, order, attributes["spread_"], attributes["_loss_sum"], scaled
    )
    if too_large >= 0:
        return "too large", too_large, spread
    if len(index):
        in_order = len(index) == len(y) and (order is None or (index[:-1] < index[1:]).all())
        rows = instances.data if in_order else instances.data[index]
        scores = np.empty(len(index))
        instances.configure(learner.geometry)
        refused = learner.learn(rows, y if in_order else y[index], steps, None, scores)
        if refused is not None:
            return "overflowed", index[refused[1]], spread
        attributes["spread_"] = spread
        attributes["_largest_weight"] = max(attributes["_largest_weight"], heaviest)
        attributes["_loss_sum"] = added_losses(attributes["_loss_sum"], scores, y, weights, index)
    attributes["n_collapsed_"] += n_collapsed
    return None


def rates(const double[:, :] extremes, const double[::1] y, const double[::1] weights, const Py_ssize_t[::1] order,
          double spread, double loss, bint scaled):
    """The instances to learn, in their order, and their weights, divided by spread^2 if `scaled`.

    Returns
    -------
    index : ndarray of intp
        Instances of positive weight, without multiples of the identity, for which tr(W X) is the same for every W.
    rates : ndarray of shape (len(index),)
        Their factors of the learning rate.
    spread : float
        Spread of the stream after them, or after the instance `too_large`.
    largest_weight : float
    n_collapsed : int
        Number of multiples of the identity.
    too_large : int
        The first instance whose squared spread, or with which a bound on the cumulative loss, overflows; -1 for none.
    """
    cdef Py_ssize_t i, k, n = 0, n_collapsed = 0, n_rows = y.shape[0] if order is None else order.shape[0]
    cdef double low, high, own, size, most, weight, largest_weight = 0.0
    taken, multiples = np.empty(n_rows, dtype=np.intp), np.empty(n_rows)
    cdef Py_ssize_t[::1] index = taken
    cdef double[::1] rate = multiples
    for k in range(n_rows):
        i = k if order is None else order[k]
        weight = 1.0 if weights is None else weights[i]
        if weight <= 0:
            continue
        low, high = extremes[i, 0], extremes[i, 1]
        own, size = high - low, max(-low, high)
        if not (own * own != 0 and own >= 1e-12 * size):
            n_collapsed += 1
            continue
        spread = max(spread, own)
        most = size + fabs(y[i])  # of |a - y|
        loss += weight * most * most
        if not isfinite(spread * spread + loss):
            return taken[:n], multiples[:n], spread, largest_weight, n_collapsed, i
        largest_weight = max(largest_weight, weight)
        # a row of rate 0 would be skipped
        index[n], rate[n] = i, max(weight / (spread * spread), DBL_MIN) if scaled else weight
        n += 1
    if n < n_rows:
        taken, multiples = taken[:n], multiples[:n]
    return taken, multiples, spread, largest_weight, n_collapsed, -1


def added_losses(double loss, const double[::1] scores, const double[::1] y, const double[::1] weights,
                 const Py_ssize_t[::1] index):
    """The loss plus those of instances, added one by one, so that it does not depend on how the stream is cut."""
    cdef Py_ssize_t k
    cdef double gap, weight
    for k in range(index.shape[0]):
        gap = scores[k] - y[index[k]]
        weight = 1.0 if weights is None else weights[index[k]]
        loss += weight * (gap * gap) / 2.0
    return loss
