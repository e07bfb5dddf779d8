"""Losses of a linear model: transfer functions h and their matching losses, losses of a residual, losses of a margin.

A model predicts h(a) from its score a = w.x (or tr(W X)). For an increasing transfer function h with integral H the
matching loss is the Bregman divergence D_H(a, h^-1(y)), the integral of h(z) - y from h^-1(y) to a; it is convex in a
and its derivative is h(a) - y (W, "Bregman Div. Lead to Good Loss Function"). `SquaredLoss`, `LogisticLoss` and
`PoissonLoss` are matching losses, `HingeLoss` is half of one when its margin is 0. The others are not. Those of the
residual a - y predict the score itself: `AbsoluteLoss`, `EpsilonInsensitiveLoss`, `HuberLoss` and `QuantileLoss` have
bounded derivatives, so that no single target can move the weights far; `SquaredEpsilonInsensitiveLoss` is 0 inside a
tube; the targets of `BoundLoss` are bounds on the score. Those of the margin y a of a label y = -1 or 1 are
`HingeLoss`, `SquaredHingeLoss` and `ModifiedHuberLoss`. `TweedieLoss` is half the deviance of positive targets whose
errors grow with their mean.

All losses are convex in a. All methods work elementwise on scalars and on arrays that broadcast, and are safe for
scores of any magnitude: no warnings, no NaN.
"""

from . import margin, matching, residual, tweedie
from ._base import LOSSES, Loss, resolve_loss
from .margin import *  # noqa: F403
from .matching import *  # noqa: F403
from .residual import *  # noqa: F403
from .tweedie import *  # noqa: F403

__all__ = ["LOSSES", "Loss", "resolve_loss"]
__all__ += margin.__all__
__all__ += matching.__all__
__all__ += residual.__all__
__all__ += tweedie.__all__
