"""Targets of pairs and triplets, and factors of their rates, for matrix learners."""

import numpy as np

from onlinebregman._kernels.matrices.instances cimport signed_target, is_collapsed, rate_of


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
