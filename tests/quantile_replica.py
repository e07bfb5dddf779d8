"""The tracker of quantiles of errors in plain NumPy: by the formulas of docs/regret.rst."""

import numpy as np
from scipy.special import ndtri, stdtrit

LEVELS = np.array([*(k / 100 for k in range(1, 100)), 0.995, 0.999])
RATE = 0.1


def mean_of(z):
    """Quantiles of |z| relative to its mean, z normal."""
    return ndtri((1 + z) / 2) / np.sqrt(2 / np.pi)


def chance(n):
    """1.5 standard deviations of independent misses, and 1."""
    return 1 + 1.5 * np.sqrt(LEVELS * (1 - LEVELS) * n)


class Tracker:
    """ln q of each level, by the formulas of docs/regret.rst."""

    def __init__(self):
        self.n, self.memory, self.unit, self.drift = 0, 0, 0.0, 0.0
        self.start, self.excess = np.log(mean_of(LEVELS)), np.zeros(len(LEVELS))
        self.logs, z = self.start.copy(), ndtri((1 + LEVELS) / 2)
        self.lowest = self.highest = self.logs
        self.rates = 2 / (2 * z * np.exp(-z * z / 2) / np.sqrt(2 * np.pi))

    @property
    def own(self):
        """ln of the quantiles with the corrections for the misses in excess."""
        return self.logs + RATE * (self.excess - np.clip(self.excess, -chance(self.n), chance(self.n)))

    @property
    def radii(self):
        wider = 1.0
        if self.memory < 64:
            wider = stdtrit(max(0.9 * int(self.memory), 1), (1 + LEVELS) / 2) / ndtri((1 + LEVELS) / 2)
        return np.exp(np.maximum.accumulate(self.own)) * wider * self.unit

    def radius(self, coverage):
        if self.n == 0:
            return np.inf
        at, levels = np.log(mean_of(coverage)), np.log(mean_of(LEVELS))
        with np.errstate(divide="ignore"):
            inside = np.interp(at, levels, np.log(self.radii))
        return np.exp(inside + max(at - levels[-1], 0) + min(at - levels[0], 0))

    def learn(self, error):
        """Returns which levels' intervals missed."""
        missed, drifts = error > self.radii, False
        self.lowest, self.highest = np.minimum(self.lowest, self.logs), np.maximum(self.highest, self.logs)
        if self.n:
            least, change = self.start - np.log(1000), missed - (1 - LEVELS)
            self.excess = self.excess + np.where(missed | (self.own > least), change, 0.0)
            moved = self.logs + np.minimum(RATE, self.rates / self.memory) * change
            self.logs = np.where(missed, moved, np.maximum(moved, least))
            self.drift += (missed.mean() - 0.5 - self.drift) / 16
            drifts = abs(self.drift) > (1 + np.sqrt(2 * np.log(self.memory + 1))) / np.sqrt(12 * 32)
            if drifts and self.memory > 48:
                self.memory = max(self.memory / 2, 48)
        self.n, self.memory = self.n + 1, self.memory + 1
        if self.n > 8 and self.unit > 0 and not drifts:
            error = min(error, 8 * self.unit)
        gains = 4 if self.n < 20 else 1.5
        self.unit += gains / (self.memory + gains - 1) * (error - self.unit)
        return missed
