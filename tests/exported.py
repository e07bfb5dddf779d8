"""Rows, targets and a loss with a link of its own, for exports."""

import numpy as np

from onlinebregman.losses import LogisticLoss

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 4)) + 2.0 * np.eye(3, 4)[np.arange(100) % 3]
LABELS, Y = np.arange(100) % 3, X @ [1.0, 2.0, 0.0, -1.0]


class OwnLoss(LogisticLoss):
    def link(self, a):
        return 0.5 + np.arctan(a) / np.pi
