"""Quantiles of the errors of predictions, tracked online, for intervals around predictions (conformal inference).

For each of the coverages tau in LEVELS there is a quantile q of the absolute errors, in units of a running mean. An
error outside of the interval for tau raises it, any other lowers it:

    ln q <- ln q + rate ([error > radius] - (1 - tau)),

which is exponentiated gradient with one weight and the pinball loss max(tau (error - q), (1 - tau) (q - error)). Its
slope has no units, so the rate has none. It decreases as one over the number of errors, so that q converges, on errors
in any order, as fast as the empirical quantile does. If the errors drift, which shows in how many of all quantiles the
last ones exceeded, the rate starts again from a shorter `memory`.

That promises nothing if errors are made by an adversary. So the misses S in excess of 1 - tau are counted, and what
chance does not explain, 1.5 standard deviations of independent misses, moves the radius by a constant step:

    ln radius = ln unit + ln q + STEP (S - clip(S, -chance, chance)),    chance = 1 + 1.5 sqrt(tau (1 - tau) n).

As the radius cannot leave the range of the errors for long, S exceeds chance by a constant at most, whatever moves q:
see "Intervals" in docs/regret.rst. The radius is the largest of those up to tau, as quantiles may cross; and while the
memory is short it is wider, as quantiles of Student's distribution are than normal ones.

References: I. Gibbs, E. Candes, "Adaptive Conformal Inference Under Distribution Shift", NeurIPS 2021; A. Angelopoulos,
E. Candes, R. Tibshirani, "Conformal PID Control for Time Series Prediction", NeurIPS 2023; A. Angelopoulos, R. Barber,
S. Bates, "Online conformal prediction with decaying step sizes", ICML 2024.
"""

import numpy as np
from scipy.special import erfinv, stdtrit

from libc.math cimport INFINITY, NAN, fabs, isfinite, log, sqrt

from onlinebregman._kernels.ops.state cimport Undoable
from onlinebregman._kernels.ops.quantiles cimport ob_find_radii, ob_move_quantiles

LEVELS = np.append(np.arange(1, 100) / 100, [0.995, 0.999])

cdef enum:
    FEW = 8                    # errors from which outliers count less
    SOME = 20                  # until which the unit forgets the first ones, before much was learned, faster
    MEMORY = 48                # the shortest one after a drift
    WIDENED = 64               # memories below it have wider intervals

cdef double STEP = 0.1
cdef double RATE = 2.0         # over the memory and the density of ln |z| at the quantile, z normal
cdef double OUTLIER = 8.0      # units, which larger errors count as
cdef double LAST = 16.0        # errors, of which drift is a mean
cdef double DEVIATION = 1.0 / sqrt(12 * 2 * LAST)  # of it, if there is none


def normal_quantile(coverage):
    """Quantile of |z| in units of its mean, z normal: where the quantiles start, and how they are interpolated."""
    return np.sqrt(np.pi) * erfinv(coverage)


def widening(n):
    """ln of the quantiles of Student's distribution over those of a normal one, for a mean of n errors."""
    return np.log(stdtrit(max(0.9 * n, 1.0), 0.5 + LEVELS / 2) / (np.sqrt(2) * erfinv(LEVELS)))


AT_LEVELS = np.log(normal_quantile(LEVELS))

cdef double[::1] START = AT_LEVELS
cdef double[::1] LEAST = AT_LEVELS - np.log(1000)  # bounds how long it takes to recover from perfect predictions
cdef double[::1] LEVEL = LEVELS
cdef double[::1] SPREAD = 1.5 * np.sqrt(LEVELS * (1 - LEVELS))
cdef double[::1] RATES = RATE / (2 / np.pi * normal_quantile(LEVELS) * np.exp(-erfinv(LEVELS) ** 2))
cdef double[:, ::1] WIDER = np.stack([widening(n) for n in range(WIDENED)] + [0 * LEVELS])


cdef class QuantileTracker(Undoable):
    """Quantiles of absolute errors, each predicted before it was known."""

    def __cinit__(self, dict state=None):
        self.errors, self.quantiles = Errors(0.0, 0.0, 0.0, 0.0), np.array(START)
        self.excess, self.radii = np.zeros(START.shape[0]), np.empty(START.shape[0])
        self.fields.add("errors", &self.errors, sizeof(self.errors))
        self.fields.vector("quantiles", self.quantiles)
        self.fields.vector("excess", self.excess)

    cdef void predict(self, double* radii, double most) noexcept nogil:
        """Compute ln of the radii of the intervals for the next error, up to one of at least `most`; NaN: all."""
        cdef Py_ssize_t row = <Py_ssize_t> min(max(self.errors.memory, 0.0), <double> WIDENED)
        ob_find_radii(
            radii, &self.quantiles[0], &self.excess[0], &SPREAD[0], sqrt(self.errors.n), STEP, &WIDER[row, 0],
            log(self.errors.unit) if self.errors.n > 0 else INFINITY, most, START.shape[0],
        )

    cdef void hold(self) noexcept nogil:
        """The next errors are of predictions that are made now."""
        self.predict(&self.radii[0], NAN)
        self.held = True

    cdef void release(self) noexcept nogil:
        self.held = False

    cdef bint learn(self, double error) noexcept nogil:
        """Count an error; returns False if it is not finite."""
        cdef Errors* errors = &self.errors
        cdef double gains = 4.0 if errors.n + 1 < SOME else 1.5
        cdef bint drifts = False, finite = isfinite(error)
        cdef Py_ssize_t missed
        if not self.held:
            self.predict(&self.radii[0], log(error))
        if self.radii[0] < INFINITY:
            missed = ob_move_quantiles(
                &self.quantiles[0], &self.excess[0], &self.radii[0], log(error), &LEVEL[0], &RATES[0],
                1.0 / errors.memory, STEP, &SPREAD[0], sqrt(errors.n), &LEAST[0], START.shape[0],
            )
            errors.drift += (missed / <double> START.shape[0] - 0.5 - errors.drift) / LAST
            drifts = fabs(errors.drift) > DEVIATION * (1.0 + sqrt(2.0 * log(errors.memory + 1.0)))
            if drifts and errors.memory > MEMORY:
                errors.memory = max(errors.memory / 2, MEMORY)
        errors.n += 1
        errors.memory += 1
        if errors.n > FEW and errors.unit > 0 and not drifts:
            error = min(error, OUTLIER * errors.unit)
        errors.unit += gains / (errors.memory + gains - 1) * (error - errors.unit)
        return finite

    def radius(self, coverage):
        """Half the width of the next interval, for one coverage or several; infinite before the first error.

        Between the levels, and beyond them, ln radius is linear in the logarithm of the `normal_quantile`.
        """
        cdef double[::1] radii = np.empty(START.shape[0])
        self.predict(&radii[0], NAN)
        at = np.log(normal_quantile(coverage))
        beyond = at - np.clip(at, AT_LEVELS.min(), AT_LEVELS.max())
        return np.exp(np.interp(at, AT_LEVELS, radii) + beyond)
