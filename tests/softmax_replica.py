"""ForwardClassifier of `onlinebregman.reference` with its loss, suitable rows, and the weights of a model."""

import numpy as np
from scipy.special import log_softmax

from onlinebregman.reference import ForwardSoftmax


def some_rows(n=60, d=4, k=3, seed=0):
    """Rows and noisy labels, all classes among the first ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (2.0 * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    return X, np.where(np.arange(n) < k, np.arange(n), y)


class Replica(ForwardSoftmax):
    loss = 0.0

    def scores(self, x):
        return self.o + self.W @ x

    @property
    def weights(self):
        """What the model shows, see `weights_of`: the last intercepts with the log odds."""
        W = self.W + np.outer(self.o, np.eye(self.W.shape[1])[-1])
        return W - W.mean(axis=0)

    def learn(self, x, y, weight=1.0):
        self.loss -= weight * log_softmax(self.scores(x))[y]
        super().learn(x, y, weight)


def weights_of(model):
    """Coefficients and intercepts of each class, about their mean over the classes."""
    W = np.column_stack([model.coef_, model.intercept_])
    return np.vstack([-W / 2, W / 2]) if len(W) == 1 else W - W.mean(axis=0)
