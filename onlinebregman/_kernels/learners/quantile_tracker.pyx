"""Quantiles of the errors of predictions, tracked online, for intervals around predictions (conformal inference).

For each of the coverages tau in LEVELS there is a quantile q of the absolute errors, in units of their mean so far. An
error outside of the interval for tau raises it, any other lowers it:

    ln q <- ln q + STEP ([error > radius] - (1 - tau)),

which is exponentiated gradient with one weight and the pinball loss max(tau (error - q), (1 - tau) (q - error)). Its
slope has no units, so the rate has none. Quantiles may cross: the radius for tau is the largest of the quantiles up to
tau, times the mean, and whether an error is beyond *that* is what moves q. So ln q counts the misses of the intervals
that were predicted, and as it stays bounded, their share tends to 1 - tau for any sequence of errors: see "Intervals"
in docs/regret.rst.

References: I. Gibbs, E. Candes, "Adaptive Conformal Inference Under Distribution Shift", NeurIPS 2021; A. Angelopoulos,
E. Candes, R. Tibshirani, "Conformal PID Control for Time Series Prediction", NeurIPS 2023.
"""

import numpy as np
from scipy.special import erfinv

from libc.math cimport INFINITY, isfinite

from onlinebregman._kernels.ops.fields cimport Fields, Undoable
from onlinebregman._kernels.ops.quantiles cimport ob_find_radii, ob_move_quantiles

LEVELS = np.append(np.arange(1, 100) / 100, [0.995, 0.999])

cdef double STEP = 0.1
cdef double LEAST_GAIN = 1.0 / 64  # of a new error in the mean, which follows drift
cdef double FIRST_GAINS = 4.0      # the n-th one is this / (n + this - 1), until it is less


def normal_quantile(coverage):
    """Quantile of |z| in units of its mean, z normal: where the quantiles start, and how they are interpolated."""
    return np.sqrt(np.pi) * erfinv(coverage)


AT_LEVELS = np.log(normal_quantile(LEVELS))

cdef double[::1] START = normal_quantile(LEVELS)
cdef double[::1] LEAST = 1e-3 * normal_quantile(LEVELS)  # bounds how long it takes to recover from perfect predictions
cdef double[::1] RISE = np.exp(STEP * LEVELS)
cdef double[::1] FALL = np.exp(-STEP * (1 - LEVELS))


cdef class QuantileTracker(Undoable):
    """Quantiles of absolute errors, each predicted before it was known.

    Parameters
    ----------
    state : dict, default=None
        The `Fields` of another one, to continue from.
    """

    def __cinit__(self, dict state=None):
        self.errors, self.quantiles, self.radii = Errors(0.0, 0.0), np.array(START), np.empty(START.shape[0])
        self.learned = Fields(state)
        self.learned.add("errors", &self.errors, sizeof(self.errors))
        self.learned.add("quantiles", &self.quantiles[0], self.quantiles.nbytes)

    def __reduce__(self):
        return type(self), (self.learned.values(),)

    cdef void predict(self) noexcept nogil:
        """Set the radii of the intervals for the next error, or for the next ones, if they are `held`."""
        ob_find_radii(&self.radii[0], &self.quantiles[0], self.errors.mean, START.shape[0])

    cdef void hold(self) noexcept nogil:
        """The next errors are of predictions that are made now."""
        self.predict()
        self.held = True

    cdef void release(self) noexcept nogil:
        self.held = False

    cdef bint learn(self, double error) noexcept nogil:
        """Count an error; returns False if it is not finite."""
        cdef double gain
        if not self.held:
            self.predict()
        if self.errors.n > 0:
            ob_move_quantiles(&self.quantiles[0], &self.radii[0], error, &RISE[0], &FALL[0], &LEAST[0], START.shape[0])
        self.errors.n += 1
        gain = max(LEAST_GAIN, FIRST_GAINS / (self.errors.n + FIRST_GAINS - 1))
        self.errors.mean += gain * (error - self.errors.mean)
        return isfinite(error)

    def radius(self, double coverage):
        """Half the width of the next interval; infinite before the first error.

        Between the levels, and beyond them, ln radius is linear in the logarithm of the `normal_quantile`.
        """
        if self.errors.n == 0:
            return INFINITY
        at = np.log(normal_quantile(coverage))
        logs = np.log(np.maximum.accumulate(self.quantiles))
        beyond = min(at - AT_LEVELS.min(), 0.0) + max(at - AT_LEVELS.max(), 0.0)
        return float(np.exp(np.interp(at, AT_LEVELS, logs) + beyond)) * self.errors.mean
