"""Losses of a linear model: transfer functions h and their matching losses, and the robust losses of a residual.

A model predicts h(a) from its score a = w.x (or tr(W X)). For an increasing transfer function h with integral H the
matching loss is the Bregman divergence D_H(a, h^-1(y)), the integral of h(z) - y from h^-1(y) to a; it is convex in a
and its derivative is h(a) - y (W, "Bregman Div. Lead to Good Loss Function"). `SquaredLoss`, `LogisticLoss` and
`PoissonLoss` are matching losses, `HingeLoss` is half of one when its margin is 0. `AbsoluteLoss`,
`EpsilonInsensitiveLoss` and `HuberLoss` are not: they bound the derivative, so that no target can move the weights by
much, and predict the score itself. Nor is `BoundLoss`, whose targets are bounds on the score.

All losses are convex in a. All methods work elementwise on scalars and on arrays that broadcast, and are safe at scores
of any size: no warning, no NaN.
"""

from ._base import Loss
from ._names import LOSSES, resolve_loss
from .margin import HingeLoss
from .matching import LogisticLoss, PoissonLoss, SquaredLoss
from .residual import AbsoluteLoss, BoundLoss, EpsilonInsensitiveLoss, HuberLoss

__all__ = [
    "LOSSES",
    "AbsoluteLoss",
    "BoundLoss",
    "EpsilonInsensitiveLoss",
    "HingeLoss",
    "HuberLoss",
    "LogisticLoss",
    "Loss",
    "PoissonLoss",
    "SquaredLoss",
    "resolve_loss",
]
