"""Matching losses of transfer functions, and the hinge, which is half of one when its margin is 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlogy

from ._base import Array, Loss, ResidualLoss, as_pair, check_parameter


class SquaredLoss(ResidualLoss):
    """Identity transfer, regression: h(a) = a, H(a) = a^2/2, L(a, y) = (a - y)^2/2.

    JKD07 and TRW04 use (a - y)^2; their learning rates are half of those for this loss.

    References
    ----------
    W, table of matching losses; KB10, section 2.2.

    Examples
    --------
    >>> from onlinebregman.losses import SquaredLoss
    >>> loss = SquaredLoss()
    >>> float(loss.value(3.0, 1.0)), float(loss.derivative(3.0, 1.0))
    (2.0, 2.0)
    """

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = as_pair(a, y)
        with np.errstate(over="ignore"):
            return (a - y) ** 2 / 2


class LogisticLoss(Loss):
    """Sigmoid transfer, classification: h(a) = 1/(1 + e^-a), H(a) = ln(1 + e^a).

    L(a, y) = ln(1 + e^a) - y a + y ln y + (1 - y) ln(1 - y), the relative entropy between y and h(a); y is a label 0 or
    1, or a probability.

    References
    ----------
    W, table of matching losses and "Dual matching loss for sigmoid transfer func.".

    Examples
    --------
    >>> from onlinebregman.losses import LogisticLoss
    >>> loss = LogisticLoss()
    >>> float(loss.link(0.0)), float(loss.derivative(0.0, 1.0))
    (0.5, -0.5)
    >>> float(loss.value(1000.0, 0.0))
    1000.0
    """

    domain = "0 <= y <= 1"
    _remedy = "encode the two classes as 0 and 1, or rescale targets to probabilities"

    def link(self, a: ArrayLike) -> Array:
        return expit(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        a = np.asarray(a, dtype=np.float64)
        return expit(a) * expit(-a)

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = as_pair(a, y)
        # y ln(1 + e^-a) + (1 - y) ln(1 + e^a): no difference of large numbers; products of 0 with infinity are avoided
        cross = y * np.logaddexp(0.0, -a) + (1 - y) * np.logaddexp(0.0, a)
        return np.maximum(cross + xlogy(y, y) + xlogy(1 - y, 1 - y), 0.0)

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """h(a) - y as (1 - y) h(a) - y h(-a), which keeps its digits where h(a) is near y = 0 or 1."""
        a, y = as_pair(a, y)
        return (1 - y) * expit(a) - y * expit(-a)

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return (y >= 0) & (y <= 1)


class PoissonLoss(Loss):
    """Exponential transfer, counts: h(a) = H(a) = e^a, L(a, y) = e^a - y a + y ln y - y with minimum 0 at a = ln y.

    L is half the Poisson deviance, the unnormalised relative entropy between y and h(a). Above a = 709 h and L are
    infinite in float64.

    References
    ----------
    W, "Dual divergence for Poisson".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.losses import PoissonLoss
    >>> loss = PoissonLoss()
    >>> float(loss.value(np.log(3.0), 3.0))
    0.0
    >>> float(loss.derivative(0.0, 3.0))
    -2.0
    """

    domain = "y >= 0"
    _remedy = "use counts or other non-negative targets, or SquaredLoss"

    def link(self, a: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        return self.link(a)

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = np.broadcast_arrays(*as_pair(a, y))
        log_y = np.log(np.where(y > 0, y, 1.0))
        gap = a - log_y
        with np.errstate(over="ignore"):
            # y (e^gap - 1 - gap) keeps the digits near a = ln y; the direct form keeps those of tiny y and large a
            near = y * (np.expm1(np.minimum(gap, 1.0)) - gap)
            far = np.exp(a) - y - y * gap
        return np.maximum(np.where((y > 0) & (np.abs(gap) < 1), near, far), 0.0)[()]

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return y >= 0


class HingeLoss(Loss):
    """L(a, y) = max(0, margin - y a), y = -1 or 1: the support vector machine's loss, and the Perceptron's.

    The link is sign(a). With margin 0 L is half the matching loss of the sign, H(a) = abs(a): the Perceptron in the
    Euclidean geometry, Winnow in that of the relative entropy. With a positive margin it is not a matching loss; its
    implicit step in the Euclidean geometry is that of the Passive-Aggressive algorithm (PA-I).

    The kink is at a = margin y. There every number between -y and 0 is a subgradient, and `derivative` is 0: a row
    without loss does not move the weights. The score 0 is the exception, it is a mistake for every margin, so that the
    explicit steps of the Perceptron can begin from w = 0. (The implicit step from a kink stays there: with margin 0 it
    never leaves w = 0.)

    Parameters
    ----------
    margin : float, default=1.0
        Scores y a at least this large have no loss; >= 0.

    References
    ----------
    W, "Sigmoid in the Limit", "Motivation of linear threshold algs"; K. Crammer et al., "Online Passive-Aggressive
    Algorithms", JMLR 7, 2006.

    Examples
    --------
    >>> from onlinebregman.losses import HingeLoss
    >>> HingeLoss().value([-1.0, 0.0, 1.0, 2.0], 1.0)
    array([2., 1., 0., 0.])
    >>> HingeLoss().derivative([-1.0, 0.0, 1.0, 2.0], 1.0)
    array([-1., -1.,  0.,  0.])
    >>> HingeLoss(margin=0.0).derivative([-1.0, 0.0, 1.0, 2.0], 1.0)  # the Perceptron
    array([-1., -1.,  0.,  0.])
    """

    domain = "y = -1 or 1"
    _remedy = "encode the two classes as -1 and 1"

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = check_parameter(margin, "margin", positive=False)

    def link(self, a: ArrayLike) -> Array:
        """sign(a), 0 at a = 0."""
        return np.sign(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        """0, the slope of the sign on both sides of its jump."""
        return np.zeros_like(np.asarray(a, dtype=np.float64))[()]

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = as_pair(a, y)
        return np.maximum(self.margin - y * a, 0.0) + 0.0  # -0.0 becomes 0.0

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """-y where y a < margin or y a <= 0 (a mistake, the score 0 included), else 0."""
        a, y = as_pair(a, y)
        return np.where((y * a < self.margin) | (y * a <= 0), -y, 0.0)[()]

    def kinks(self, y: ArrayLike) -> Array:
        return self.margin * np.asarray(y, dtype=np.float64)[np.newaxis]

    def subdifferential(self, a: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        a, y = as_pair(a, y)
        slope, kink = self.derivative(a, y), y * a == self.margin
        return np.where(kink, np.minimum(-y, 0.0), slope)[()], np.where(kink, np.maximum(-y, 0.0), slope)[()]

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return np.abs(y) == 1
