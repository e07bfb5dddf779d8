"""Prediction strategies: the mean mu_t of the member of an exponential family that predicts the next row.

`mean` is that of the prior, mu_1, and k the weight of the prior. `total` is the weighted sum of the rows before,
`weight` the sum of their weights, `h` the weight of the row itself, `t` the number of rows before; each has one entry
for each row, so that a block of rows is predicted at once. All but the Bernoulli strategy are unchanged if a vector is
subtracted from mu_1, the rows and the prediction.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit


class IncrementalOffline:
    """The best member for the rows so far, including the prior: k1 = k."""

    def __init__(self, k: float) -> None:
        self.k = k

    def predict(
        self, mean: np.ndarray, total: np.ndarray, weight: np.ndarray, h: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        return (self.k * mean + total) / (self.k + weight)[:, None]


class Forward(IncrementalOffline):
    """The best member if the row itself is included with the value mu_1: k1 = k + 1 for rows of weight 1."""

    def predict(
        self, mean: np.ndarray, total: np.ndarray, weight: np.ndarray, h: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        return ((self.k + h)[:, None] * mean + total) / (self.k + h + weight)[:, None]


class LastStepBernoulli(IncrementalOffline):
    """The mean for which the values 0 and 1 give the same regret if the row is the last one.

    With F the conjugate and N = k + weight + h, logit mu_t is the difference quotient over h of
    N F((k mu_1 + total)/N): -min L_{1..t} after a one minus the same after a zero (W, "Last-step Minimax").
    """

    def predict(
        self, mean: np.ndarray, total: np.ndarray, weight: np.ndarray, h: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        h = h[:, None]
        ones = self.k * mean + total
        zeros = np.maximum(self.k + weight[:, None] - ones, 0.0)
        return expit(self._growth(ones, h) - self._growth(zeros, h))

    @staticmethod
    def _growth(count: np.ndarray, h: np.ndarray) -> np.ndarray:
        """((count + h) ln(count + h) - count ln count) / h, without cancellation."""
        some = np.maximum(count, 1e-290)  # 0 ln 0 = 0
        return np.log(count + h) + some / h * np.log1p(h / some)


class GaussianMinimax:
    """The strategy with the smallest worst-case regret over T rows: theta_t = alpha_t sum (x_q - mu_1).

    W, "Minimax Algorithm for T Trials".
    """

    def __init__(self, horizon: int) -> None:
        self.alpha = minimax_rates(horizon)

    def predict(
        self, mean: np.ndarray, total: np.ndarray, weight: np.ndarray, h: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        rate = self.alpha[np.minimum(t, len(self.alpha) - 1)]
        return mean + rate[:, None] * (total - weight[:, None] * mean)


def minimax_rates(horizon: int) -> np.ndarray:
    """alpha_1 .. alpha_T of the Gaussian minimax strategy: alpha_T = 1/T, alpha_{t-1} = alpha_t + alpha_t^2."""
    alpha = np.empty(horizon)
    rate = 1 / horizon
    for t in range(horizon - 1, -1, -1):
        alpha[t] = rate
        rate += rate * rate
    return alpha
