"""A metric for neighbours that counts the rows it maps."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin


class Counting(TransformerMixin, BaseEstimator):
    """The identity times `factor_`; `t_` changes with the factor. It learns no row above `most`."""

    def __init__(self, moves=True, counts=True, most=np.inf):
        self.moves = moves
        self.counts = counts
        self.most = most

    def fit(self, X, y=None):
        return self.partial_fit(X, y)

    def partial_fit(self, X, y=None):
        self.factor_ = getattr(self, "factor_", 1.0) + self.moves * len(X)
        self.mapped_ = getattr(self, "mapped_", 0)
        if self.counts:
            self.t_ = getattr(self, "t_", 0) + self.moves * len(X)
        if np.max(X) > self.most:
            raise ValueError("too large")
        return self

    def transform(self, X):
        self.mapped_ += len(X)
        return self.factor_ * X


def learned_in_chunks(model, X, y, size=20):
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size], y[start : start + size], classes=np.unique(y))
    return model
