"""Mixing predictions by exponential weights whose rate needs no choosing (AdaHedge)."""

import numpy as np

from libc.math cimport INFINITY, exp, isnan, log

from onlinebregman._kernels.losses.loss cimport Loss


cdef class Hedge:
    """Weights v_k ~ exp(-rate L_k) of K experts with cumulative losses L_k, and the loss of the mixture of their scores.

    The rate is ln K / gap with gap the sum of how far the mixture's loss was above the mix loss
    -ln(sum v_k exp(-rate loss_k)) / rate. As the sum of the mix losses is at most min L_k + ln K / rate, the mixture's
    loss is at most min L_k + ln K / rate + gap, for any convex loss. `experts._weights.ExpertWeights` is the same in
    NumPy, for priors and other rates as well.

    Parameters
    ----------
    losses : int or ndarray of shape (n_experts,)
        How many experts, or their losses so far.
    loss, gap : float, default=0.0
        Those of the mixture so far.
    """

    cdef double[::1] losses   # of the experts
    cdef readonly double loss  # of the mixture
    cdef readonly double gap

    def __cinit__(self, losses, loss=0.0, gap=0.0):
        self.losses = np.array(losses, dtype=np.float64) if np.ndim(losses) else np.zeros(losses)
        self.loss, self.gap = loss, gap

    def __reduce__(self):
        return type(self), (np.asarray(self.losses).copy(), self.loss, self.gap)

    @property
    def rate(self):
        """The learning rate of the weights; infinite until a mixture has cost something."""
        return self._rate()

    @property
    def weights(self):
        """The experts' weights, shape (n_experts,)."""
        weights = np.empty(self.losses.shape[0])
        self._weigh(weights)
        return weights

    @property
    def expert_losses(self):
        """The experts' cumulative losses, shape (n_experts,)."""
        return np.asarray(self.losses).copy()

    def learn(self, const double[:, ::1] scores, const double[::1] y, Loss loss, const double[::1] sample_weight=None):
        """Mix the scores of each row, then count its losses; a row of NaN scores is left out.

        Returns the mixed scores, shape (n_rows,).
        """
        cdef Py_ssize_t i, k, n_experts = self.losses.shape[0]
        cdef double h = 1.0, value, rate, mixed, lost, mass, total, best, rise, mixed_loss
        mixtures = np.full(scores.shape[0], np.nan)
        cdef double[::1] out = mixtures, v = np.empty(n_experts)
        with nogil:
            for i in range(scores.shape[0]):
                if isnan(scores[i, 0]):
                    continue
                if sample_weight is not None:
                    h = sample_weight[i]
                rate = self._rate()
                self._weigh(v)
                mixed = 0.0
                for k in range(n_experts):
                    mixed += v[k] * scores[i, k]
                out[i] = mixed
                value = h * loss.value(mixed, y[i])
                # the mix loss, relative to the least one; at an infinite rate by how much the best loss rises
                mass = total = 0.0
                best, rise = INFINITY, INFINITY
                for k in range(n_experts):
                    best = min(best, self.losses[k])
                for k in range(n_experts):
                    rise = min(rise, self.losses[k] - best + h * loss.value(scores[i, k], y[i]))
                mixed_loss = rise
                if rate < INFINITY:
                    for k in range(n_experts):  # relative to the largest terms, which do not underflow
                        lost = self.losses[k] - best
                        total += exp(-rate * lost)
                        mass += exp(-rate * (lost + h * loss.value(scores[i, k], y[i]) - rise))
                    mixed_loss -= log(mass / total) / rate
                for k in range(n_experts):
                    self.losses[k] += h * loss.value(scores[i, k], y[i])
                self.loss += value
                self.gap += max(value - mixed_loss, 0.0)
        return mixtures

    cdef double _rate(self) noexcept nogil:
        return log(<double> self.losses.shape[0]) / self.gap if self.gap > 0 else INFINITY

    cdef void _weigh(self, double[::1] weights) noexcept nogil:
        cdef Py_ssize_t k, n_experts = self.losses.shape[0]
        cdef double best = INFINITY, total = 0.0, rate = self._rate()
        for k in range(n_experts):
            best = min(best, self.losses[k])
        for k in range(n_experts):
            if rate == INFINITY:
                weights[k] = 1.0 if self.losses[k] == best else 0.0
            else:
                weights[k] = exp(-rate * (self.losses[k] - best))
            total += weights[k]
        for k in range(n_experts):
            weights[k] /= total
