"""ForwardClassifier by its formulas."""

import numpy as np
from scipy.special import log_softmax, softmax

LEAST_CURVATURE = 1e-6


def some_rows(n=60, d=4, k=3, seed=0):
    """Rows and noisy labels, all classes among the first ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (2.0 * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    return X, np.where(np.arange(n) < k, np.arange(n), y)


class Replica:
    """The algorithm by its formulas: weights of every class, A, and a solve for each row."""

    def __init__(self, d, k, alpha, gamma):
        self.W, self.A, self.gamma, self.loss = np.zeros((k, d)), alpha * np.eye(d), gamma, 0.0

    def learn(self, x, y, weight=1.0):
        a, label = self.W @ x, np.eye(len(self.W))[y]
        self.loss -= weight * log_softmax(a)[y]
        v = np.linalg.solve(self.A, x)
        q = weight * x @ v
        g = self.slope(a, q, label)
        self.W = self.W - weight * np.outer(g, v)
        s = g + label
        h = max((1 - s @ s) / (len(s) - 1), LEAST_CURVATURE)
        self.A = self.gamma * self.A + weight * h * np.outer(x, x)

    @staticmethod
    def slope(a, q, label):
        """The root of g = softmax(a - q g) - label."""
        z = a.copy()
        for _ in range(200):
            s = softmax(z)
            residual = z - a + q * (s - label)
            step = np.linalg.solve(np.eye(len(a)) + q * (np.diag(s) - np.outer(s, s)), residual)
            part = 1.0
            while part > 1e-12:
                z_new = z - part * step
                if np.abs(z_new - a + q * (softmax(z_new) - label)).max() < np.abs(residual).max():
                    break
                part /= 2
            if np.abs(step).max() < 1e-15 * (1 + np.abs(z).max()):
                break
            z = z_new
        return softmax(z) - label


def weights_of(model):
    W = np.column_stack([model.coef_, model.intercept_])
    return np.vstack([-W / 2, W / 2]) if len(W) == 1 else W
