"""Prediction strategies: the mean mu_t of the member of an exponential family that predicts the next row.

`mean` is that of the prior, mu_1, and k the weight of the prior. `total` is the weighted sum of the rows before,
`weight` the sum of their weights, `t` their number; the row itself has weight h = 1. All but the Bernoulli strategy are
unchanged if a vector is subtracted from mu_1, the rows and the prediction.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit


class IncrementalOffline:
    """The best member for the rows so far, including the prior: k1 = k."""

    def __init__(self, k: float) -> None:
        self.k = k

    def predict(self, mean: np.ndarray, total: np.ndarray, weight: float, t: int) -> np.ndarray:
        return (self.k * mean + total) / (self.k + weight)


class Forward(IncrementalOffline):
    """The best member if the row itself is included with the value mu_1: k1 = k + 1 for rows of weight 1."""

    def predict(self, mean: np.ndarray, total: np.ndarray, weight: float, t: int) -> np.ndarray:
        return ((self.k + 1.0) * mean + total) / (self.k + 1.0 + weight)


class LastStepBernoulli(IncrementalOffline):
    """The mean for which the values 0 and 1 give the same regret if the row is the last one.

    With F the conjugate and N = k + weight + h, logit mu_t is the difference quotient over h of
    N F((k mu_1 + total)/N): -min L_{1..t} after a one minus the same after a zero (W, "Last-step Minimax").
    """

    def predict(self, mean: np.ndarray, total: np.ndarray, weight: float, t: int) -> np.ndarray:
        ones = self.k * mean + total
        zeros = np.maximum(self.k + weight - ones, 0.0)
        return expit(self._growth(ones) - self._growth(zeros))

    @staticmethod
    def _growth(count: np.ndarray) -> np.ndarray:
        """(count + 1) ln(count + 1) - count ln count, without cancellation."""
        some = np.maximum(count, 1e-290)  # 0 ln 0 = 0
        return np.log(count + 1.0) + some * np.log1p(1.0 / some)


class GaussianMinimax:
    """The strategy with the smallest worst-case regret over T rows: theta_t = alpha_t sum (x_q - mu_1).

    W, "Minimax Algorithm for T Trials".
    """

    def __init__(self, horizon: int) -> None:
        self.alpha = minimax_rates(horizon)

    def predict(self, mean: np.ndarray, total: np.ndarray, weight: float, t: int) -> np.ndarray:
        rate = self.alpha[min(t, len(self.alpha) - 1)]
        return mean + rate * (total - weight * mean)


def minimax_rates(horizon: int) -> np.ndarray:
    """alpha_1 .. alpha_T of the Gaussian minimax strategy: alpha_T = 1/T, alpha_{t-1} = alpha_t + alpha_t^2."""
    alpha = np.empty(horizon)
    rate = 1 / horizon
    for t in range(horizon - 1, -1, -1):
        alpha[t] = rate
        rate += rate * rate
    return alpha
