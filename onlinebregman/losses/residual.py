"""Losses of the residual a - y that are not matching losses: robust ones, and bounds on the score."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from .._objects import check_parameter
from ._base import Array, Loss, ResidualLoss, as_pair, named

__all__ = [
    "AbsoluteLoss",
    "BoundLoss",
    "EpsilonInsensitiveLoss",
    "HuberLoss",
    "QuantileLoss",
    "SquaredEpsilonInsensitiveLoss",
]


def _edges(self: TubeLoss | HuberLoss, y: ArrayLike) -> Array:
    """The scores at a distance of epsilon from targets."""
    y = np.asarray(y, dtype=np.float64)
    return np.stack([y - self.epsilon, y + self.epsilon])


class InsensitiveLoss(ResidualLoss):
    """max(0, abs(a - y) - epsilon)."""

    epsilon: float
    lipschitz: float = 1.0
    degree = 1

    @np.errstate(over="ignore")
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        return np.maximum(np.abs(np.subtract(a, y, dtype=np.float64)) - self.epsilon, 0.0)

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """sign(a - y) where abs(a - y) > epsilon, else 0: exactly 0 at the kinks as rounded."""
        a, y = as_pair(a, y)
        return np.where(a > y + self.epsilon, 1.0, np.where(a < y - self.epsilon, -1.0, 0.0))[()]

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """0: the loss is piecewise linear."""
        return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(y)))[()]


@named("absolute_error")
class AbsoluteLoss(InsensitiveLoss):
    """L(a, y) = abs(a - y): regression to the median.

    The link is the identity; it is not a matching loss. `derivative` is 0 at the kink a = y.

    Examples
    --------
    >>> from onlinebregman.losses import AbsoluteLoss
    >>> loss = AbsoluteLoss()
    >>> loss.value([0.0, 2.0, 5.0], 2.0), loss.derivative([0.0, 2.0, 5.0], 2.0)
    (array([2., 0., 3.]), array([-1.,  0.,  1.]))
    """

    epsilon: float = 0.0

    def kinks(self, y: ArrayLike) -> Array:
        return np.array(y, dtype=np.float64)[np.newaxis]


class TubeLoss(ResidualLoss):
    """A loss that is 0 in a tube around the target."""

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon: float = check_parameter(epsilon, "epsilon", positive=False)

    @property
    def flat(self) -> bool:
        """Whether there is a tube."""
        return self.epsilon > 0


@named("epsilon_insensitive")
class EpsilonInsensitiveLoss(TubeLoss, InsensitiveLoss):
    """L(a, y) = max(0, abs(a - y) - epsilon): the support vector regression loss, no loss inside a tube.

    The link is the identity; it is not a matching loss. Its implicit step in the Euclidean geometry is that of
    Passive-Aggressive regression. `derivative` is 0 at the kinks a = y - epsilon and y + epsilon, as inside the tube.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half the width of the tube, >= 0.

    References
    ----------
    K. Crammer et al., "Online Passive-Aggressive Algorithms", JMLR 7, 2006, section 5.

    Examples
    --------
    >>> from onlinebregman.losses import EpsilonInsensitiveLoss
    >>> loss = EpsilonInsensitiveLoss(epsilon=0.5)
    >>> loss.value([0.0, 1.75, 3.0], 2.0), loss.derivative([0.0, 1.75, 3.0], 2.0)
    (array([1.5, 0. , 0.5]), array([-1.,  0.,  1.]))
    >>> loss.kinks(2.0)
    array([1.5, 2.5])
    """

    kinks = _edges


@named("squared_epsilon_insensitive")
class SquaredEpsilonInsensitiveLoss(TubeLoss):
    """L(a, y) = max(0, abs(a - y) - epsilon)^2: the squared loss outside of a tube, no loss inside.

    Without a factor 1/2, as in scikit-learn. The derivative does not jump. The link is the identity; it is not a
    matching loss.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half the width of the tube, >= 0.

    References
    ----------
    C.-H. Ho, C.-J. Lin, "Large-scale Linear Support Vector Regression", JMLR 13, 2012.

    Examples
    --------
    >>> from onlinebregman.losses import SquaredEpsilonInsensitiveLoss
    >>> loss = SquaredEpsilonInsensitiveLoss(epsilon=0.5)
    >>> loss.value([0.0, 1.75, 3.0], 2.0), loss.derivative([0.0, 1.75, 3.0], 2.0)
    (array([2.25, 0.  , 0.25]), array([-3.,  0.,  1.]))
    """

    degree = 2
    curvature_range: tuple[float, float] = (0.0, 2.0)

    @np.errstate(over="ignore")
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        return np.maximum(np.abs(np.subtract(a, y, dtype=np.float64)) - self.epsilon, 0.0) ** 2

    @np.errstate(over="ignore")
    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """2 (a - y -+ epsilon) outside of the tube, else 0."""
        a, y = as_pair(a, y)
        return 2 * (np.maximum(a - y - self.epsilon, 0.0) - np.maximum(y - a - self.epsilon, 0.0))

    @np.errstate(over="ignore")
    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """2 outside of the tube, else 0."""
        return np.where(np.abs(np.subtract(a, y, dtype=np.float64)) > self.epsilon, 2.0, 0.0)[()]

    bends = _edges


@named("quantile")
class QuantileLoss(ResidualLoss):
    """L(a, y) = quantile (y - a) below y, (1 - quantile) (a - y) above: regression to a quantile, the pinball loss.

    The link is the identity; it is not a matching loss. `derivative` is 0 at the kink a = y.

    Several quantiles are as many losses of one target, which `MirrorDescentRegressor` learns side by side, from rows
    that are read once. It predicts all of them in ascending order: scores that cross are sorted, which never increases
    the sum of their losses [2]_, as for p < q and a > b the loss of (b, a) is at most that of (a, b).

    Parameters
    ----------
    quantile : float or sequence of float, default=0.5
        The fraction of targets that should lie below the prediction, between 0 and 1; 0.5 gives half the absolute loss.
        Several in ascending order, for whose predictions there is `sklearn.metrics.d2_pinball_score`, but no `score`.

    References
    ----------
    .. [1] R. Koenker, G. Bassett, "Regression Quantiles", Econometrica 46, 1978.
    .. [2] V. Chernozhukov, I. Fernandez-Val, A. Galichon, "Quantile and Probability Curves Without Crossing",
       Econometrica 78, 2010.

    Examples
    --------
    >>> from onlinebregman.losses import QuantileLoss
    >>> loss = QuantileLoss(quantile=0.75)
    >>> loss.value([0.0, 2.0, 6.0], 2.0), loss.derivative([0.0, 2.0, 6.0], 2.0)
    (array([1.5, 0. , 1. ]), array([-0.75,  0.  ,  0.25]))
    >>> QuantileLoss(quantile=[0.1, 0.9]).value([[0.0, 2.0]], 1.0)  # scores of rows, one column for each quantile
    array([[0.1, 0.1]])
    """

    degree = 1

    def __init__(self, quantile: float | Sequence[float] = 0.5) -> None:
        several, given = np.ndim(quantile) == 1, np.atleast_1d(np.asarray(quantile, dtype=object)).tolist()
        each = [check_parameter(q, "quantile", positive=True) for q in given]
        if max(each, default=1) >= 1:
            raise ValueError(f"quantile must be between 0 and 1, exclusive; got {quantile!r}.")
        if any(high <= low for low, high in pairwise(each)):
            raise ValueError(f"Several values of quantile must be in ascending order; got {quantile!r}.")
        self.quantile: float | tuple[float, ...] = tuple(each) if several else each[0]

    @property
    def parts(self) -> tuple[Loss, ...]:
        """The losses of the single quantiles."""
        return tuple(QuantileLoss(q) for q in self.quantile) if isinstance(self.quantile, tuple) else (self,)

    @property
    def lipschitz(self) -> float:
        """The steeper of the two slopes."""
        return float(max(np.max(self.quantile), 1 - np.min(self.quantile)))

    @np.errstate(over="ignore")
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        (a, y), quantile = as_pair(a, y), np.asarray(self.quantile)
        return np.where(a > y, (1 - quantile) * (a - y), quantile * (y - a))[()]

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """-quantile below y, 1 - quantile above, 0 at y."""
        (a, y), quantile = as_pair(a, y), np.asarray(self.quantile)
        return np.where(a > y, 1 - quantile, np.where(a < y, -quantile, 0.0))[()]

    curvature, kinks = AbsoluteLoss.curvature, AbsoluteLoss.kinks


@named("huber")
class HuberLoss(ResidualLoss):
    """Squared loss of small residuals, absolute loss of large ones: regression with outliers.

    L(a, y) = (a - y)^2/2 where abs(a - y) <= epsilon, else epsilon abs(a - y) - epsilon^2/2. The derivative is a - y
    clipped to [-epsilon, epsilon], so that there are no kinks. The link is the identity; it is not a matching loss.

    Parameters
    ----------
    epsilon : float, default=1.35
        Where the loss becomes linear, > 0, in units of the target. The default, that of scikit-learn's HuberRegressor,
        is 95 % as efficient as the squared loss on normal noise of variance 1. (SGDRegressor has 0.1.)

    References
    ----------
    P. J. Huber, "Robust Estimation of a Location Parameter", Annals of Mathematical Statistics 35, 1964.

    Examples
    --------
    >>> from onlinebregman.losses import HuberLoss
    >>> loss = HuberLoss(epsilon=1.0)
    >>> loss.value([0.5, 1.0, 10.0], 0.0), loss.derivative([0.5, 1.0, 10.0], 0.0)
    (array([0.125, 0.5  , 9.5  ]), array([0.5, 1. , 1. ]))
    """

    degree = 2
    curvature_range: tuple[float, float] = (0.0, 1.0)

    def __init__(self, epsilon: float = 1.35) -> None:
        self.epsilon: float = check_parameter(epsilon, "epsilon", positive=True)

    @property
    def lipschitz(self) -> float:
        """epsilon, the slope of the linear parts."""
        return self.epsilon

    @np.errstate(over="ignore")
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        residual = np.abs(np.subtract(a, y, dtype=np.float64))
        inner = np.minimum(residual, self.epsilon)
        return inner * (residual - inner / 2)

    @np.errstate(over="ignore")
    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """a - y clipped to [-epsilon, epsilon]."""
        return np.clip(np.subtract(a, y, dtype=np.float64), -self.epsilon, self.epsilon)

    @np.errstate(over="ignore")
    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """1 where abs(a - y) <= epsilon, else 0."""
        return np.where(np.abs(np.subtract(a, y, dtype=np.float64)) <= self.epsilon, 1.0, 0.0)[()]

    bends = _edges


class BoundLoss(ResidualLoss):
    """Squared loss of a violated bound: targets are upper or lower bounds on the score, distinguished by their sign.

    y >= 0 asks for a <= y, L(a, y) = max(a - y, 0)^2/2; y < 0 asks for a >= abs(y), L(a, y) = max(abs(y) - a, 0)^2/2.
    -0.0 is a lower bound of 0. Both are max(s a - y, 0)^2/2 with s the sign of y, and bounds of the other sign are
    those of the negated instance: a <= -1 for X is a >= 1 for -X.

    For metrics: a pair of similar rows with y = u, of dissimilar rows with y = -l, and for relative comparisons the
    triplet X = p p' - q q' with y = -margin, p the difference of the anchor to the row that should be farther away.

    The link is the identity; it is not a matching loss.

    References
    ----------
    P. Jain, B. Kulis, I. S. Dhillon, K. Grauman, "Online Metric Learning and Fast Similarity Search", NIPS 2008.

    Examples
    --------
    >>> from onlinebregman.losses import BoundLoss
    >>> loss = BoundLoss()
    >>> loss.value([1.0, 2.0, 4.0], 2.0), loss.derivative([1.0, 2.0, 4.0], 2.0)  # a <= 2
    (array([0., 0., 2.]), array([0., 0., 2.]))
    >>> loss.value([1.0, 2.0, 4.0], -2.0), loss.derivative([1.0, 2.0, 4.0], -2.0)  # a >= 2
    (array([0.5, 0. , 0. ]), array([-1.,  0.,  0.]))
    """

    translation_invariant = False
    degree = 2
    flat = True
    curvature_range: tuple[float, float] = (0.0, 1.0)

    @np.errstate(over="ignore")
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        return self.derivative(a, y) ** 2 / 2

    @np.errstate(over="ignore")
    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """a - abs(y) where the bound is violated, else 0."""
        a, y = as_pair(a, y)
        return np.where(np.signbit(y), np.minimum(a + y, 0.0), np.maximum(a - y, 0.0))[()]

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """1 where the bound is violated, else 0."""
        return np.where(self.derivative(a, y) != 0, 1.0, 0.0)[()]

    def bends(self, y: ArrayLike) -> Array:
        return np.abs(np.asarray(y, dtype=np.float64))[np.newaxis]
