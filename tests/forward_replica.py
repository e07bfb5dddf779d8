"""The forward algorithm of `onlinebregman.reference` with the regret bound and the best loss, and suitable rows."""

from functools import partial

import numpy as np

from onlinebregman import ForwardRegressor
from onlinebregman.reference import ForwardRegression

papers = partial(ForwardRegressor, standardize=False)  # the algorithm as the papers write it


def some_rows(n=40, d=4, n_targets=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    W = rng.normal(size=d if n_targets is None else (d, n_targets))
    y = X @ W
    return X, y + 0.1 * rng.normal(size=y.shape)


class Replica(ForwardRegression):
    """Keeps losses, with and without forgetting, rows, and the noise of a normal model whose prior is the penalty.

    Rows include a 1 for the intercept, of penalty `free`.
    """

    def __init__(self, d, n_targets, alpha, forward=True, gamma=1.0, free=None):
        super().__init__(d, n_targets, alpha, forward, gamma)
        self.A[-1, -1], self.free = free or alpha, free is not None
        self.alphas, self.rows, self.loss, self.recent, self.bound = np.diag(self.A).copy(), [], 0.0, 0.0, 0.0

        self.squares, self.n = np.zeros(n_targets), 0.0

    def spread(self, x, h=1.0):
        return 1 / h + x @ np.linalg.solve(self.gamma * self.A, x)

    @property
    def variance(self):
        return self.squares / self.n if self.n > 0 else np.full(self.squares.shape, np.inf)

    def learn(self, x, y, h=1.0):
        self.squares = self.gamma * self.squares + (y - x @ self.w) ** 2 / self.spread(x, h)
        self.n = self.gamma * self.n + (bool(self.rows) or not self.free)  # a free intercept fits the first row
        loss = h * ((self.predict(x, h) - y) ** 2).sum() / 2
        self.loss, self.recent = self.loss + loss, self.gamma * self.recent + loss
        super().learn(x, y, h)
        self.bound *= self.gamma
        self.bound += h**2 * (y @ y) * (x @ np.linalg.solve(self.A, x)) / 2  # by the matrix that includes x
        self.rows = [(x, y, self.gamma * h) for x, y, h in self.rows] + [(x, y, h)]
        self.alphas *= self.gamma

    @property
    def hindsight(self):
        """Minimum of the penalised loss, attained by the ridge weights."""
        u = self.w
        return sum(h * ((x @ u - y) ** 2).sum() for x, y, h in self.rows) / 2 + (self.alphas @ u**2).sum() / 2
