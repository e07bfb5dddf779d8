"""Losses of the margin y a of a label y = -1 or 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Array, Loss, as_pair, check_parameter


class MarginLoss(Loss):
    """Loss of the margin y a: targets are labels, and the link is the sign of the score."""

    domain = "y = -1 or 1"
    target_range = (-1.0, 1.0)
    tasks = ("classification",)
    _remedy = "encode the two classes as -1 and 1"

    def link(self, a: ArrayLike) -> Array:
        """sign(a), 0 at a = 0."""
        return np.sign(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        """0, the slope of the sign on both sides of its jump."""
        return np.zeros_like(np.asarray(a, dtype=np.float64))[()]

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return np.abs(y) == 1


class HingeLoss(MarginLoss):
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

    lipschitz = 1.0

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = check_parameter(margin, "margin", positive=False)

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
