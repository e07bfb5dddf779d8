"""ForwardRegressor by its formulas, and suitable rows."""

import numpy as np


def some_rows(n=40, d=4, n_targets=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    W = rng.normal(size=d if n_targets is None else (d, n_targets))
    y = X @ W
    return X, y + 0.1 * rng.normal(size=y.shape)


class Replica:
    """The algorithm by its formulas: A and b, and a solve for each prediction. Rows include a 1 for the intercept."""

    def __init__(self, d, n_targets, alpha, forward=True, gamma=1.0):
        self.A, self.b, self.forward = alpha * np.eye(d), np.zeros((d, n_targets)), forward
        self.alpha, self.rows, self.loss, self.recent, self.bound, self.gamma = alpha, [], 0.0, 0.0, 0.0, gamma

    def predict(self, x, h=1.0):
        return x @ np.linalg.solve(self.gamma * self.A + h * self.forward * np.outer(x, x), self.gamma * self.b)

    def learn(self, x, y, h=1.0):
        loss = h * ((self.predict(x, h) - y) ** 2).sum() / 2
        self.loss, self.recent = self.loss + loss, self.gamma * self.recent + loss
        self.A, self.b = self.gamma * self.A + h * np.outer(x, x), self.gamma * self.b + h * np.outer(x, y)
        self.bound *= self.gamma
        self.bound += h**2 * (y @ y) * (x @ np.linalg.solve(self.A, x)) / 2  # by the matrix that includes x
        self.rows = [(x, y, self.gamma * h) for x, y, h in self.rows] + [(x, y, h)]
        self.alpha *= self.gamma

    @property
    def weights(self):
        return np.linalg.solve(self.A, self.b)

    @property
    def hindsight(self):
        """Minimum of the penalised loss, attained by the ridge weights."""
        u = self.weights
        return sum(h * ((x @ u - y) ** 2).sum() for x, y, h in self.rows) / 2 + self.alpha * (u**2).sum() / 2
