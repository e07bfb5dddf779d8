"""Losses of the margin y a of a label y = -1 or 1. That of margin 0 is half the matching loss of the sign."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._objects import check_parameter
from ._base import Array, Loss, as_pair, named

__all__ = ["HingeLoss", "ModifiedHuberLoss", "SquaredHingeLoss"]


class MarginLoss(Loss):
    """Loss of the margin y a: targets are labels, and the link is the sign of the score."""

    domain = "y = -1 or 1"
    target_range: tuple[float, float] = (-1.0, 1.0)
    tasks: tuple[str, ...] = ("classification",)
    flat = True
    _remedy = "encode the two classes as -1 and 1"

    def link(self, a: ArrayLike) -> Array:
        """sign(a), 0 at a = 0."""
        return np.sign(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        """0, the slope of the sign on both sides of its jump."""
        return np.zeros_like(np.asarray(a, dtype=np.float64))[()]

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return np.abs(y) == 1


@named("perceptron", margin=0.0)
@named("hinge")
class HingeLoss(MarginLoss):
    """L(a, y) = max(0, margin - y a), y = -1 or 1: the support vector machine's loss, and the Perceptron's.

    The link is sign(a). With margin 0 L is half the matching loss of the sign, H(a) = abs(a): the Perceptron in the
    Euclidean geometry, Winnow in that of the relative entropy. With a positive margin it is not a matching loss; its
    implicit step in the Euclidean geometry is that of the Passive-Aggressive algorithm (PA-I).

    The kink is at a = margin y. There every number between -y and 0 is a subgradient, and `derivative` is 0: a row
    without loss does not move the weights. The score 0 is an exception: it is a mistake for every margin, so that the
    explicit steps of the Perceptron can start from w = 0. (The implicit step from a kink stays there: with margin 0 it
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

    lipschitz: float = 1.0

    def __init__(self, margin: float = 1.0) -> None:
        self.margin: float = check_parameter(margin, "margin", positive=False)

    @np.errstate(over="ignore")
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        return np.maximum(self.margin - np.multiply(y, a, dtype=np.float64), 0.0) + 0.0  # -0.0 becomes 0.0

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """-y where y a < margin or y a <= 0 (a mistake, the score 0 included), else 0."""
        a, y = as_pair(a, y)
        return np.where((y * a < self.margin) | (y * a <= 0), -y, 0.0)[()]

    def kinks(self, y: ArrayLike) -> Array:
        return self.margin * np.asarray(y, dtype=np.float64)[np.newaxis]


class OneClassLoss(HingeLoss):
    """max(0, rho - s) - nu rho of a score s and a learned offset rho, as a loss of a = s - rho, for y = 1.

    The term -nu rho is nu times the intercept -rho, whose steps learners make by themselves.
    """

    def __init__(self, nu: float) -> None:
        super().__init__(margin=0.0)
        self.nu = nu


@named("squared_hinge")
class SquaredHingeLoss(MarginLoss):
    """L(a, y) = max(0, 1 - y a)^2, y = -1 or 1: the loss of the L2 support vector machine.

    Without a factor 1/2, as in scikit-learn. The derivative does not jump. The link is sign(a).

    References
    ----------
    C. Cortes, V. Vapnik, "Support-Vector Networks", Machine Learning 20, 1995.

    Examples
    --------
    >>> from onlinebregman.losses import SquaredHingeLoss
    >>> loss = SquaredHingeLoss()
    >>> loss.value([-1.0, 0.0, 1.0, 2.0], 1.0), loss.derivative([-1.0, 0.0, 1.0, 2.0], 1.0)
    (array([4., 1., 0., 0.]), array([-4., -2.,  0.,  0.]))
    """

    curvature_range: tuple[float, float] = (0.0, 2.0)

    @np.errstate(over="ignore")
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        return np.maximum(1 - np.multiply(y, a, dtype=np.float64), 0.0) ** 2

    @np.errstate(over="ignore")
    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """-2 y (1 - y a) where y a < 1, else 0."""
        a, y = as_pair(a, y)
        return np.where(y * a < 1, 2 * (a - y), 0.0)[()]

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """2 where y a < 1, else 0."""
        return np.where(np.multiply(y, a, dtype=np.float64) < 1, 2.0, 0.0)[()]

    def bends(self, y: ArrayLike) -> Array:
        return np.array(y, dtype=np.float64)[np.newaxis]


@named("modified_huber")
class ModifiedHuberLoss(MarginLoss):
    """L(a, y) = max(0, 1 - y a)^2 where y a >= -1, else -4 y a: the squared hinge, linear for large mistakes.

    Outliers have bounded influence, and it gives probabilities: the link is the score clipped to [-1, 1], which
    estimates the mean of y, so that (h(a) + 1)/2 is the probability of y = 1. The derivative does not jump.

    References
    ----------
    T. Zhang, "Solving Large Scale Linear Prediction Problems Using Stochastic Gradient Descent Algorithms", ICML 2004.

    Examples
    --------
    >>> from onlinebregman.losses import ModifiedHuberLoss
    >>> loss = ModifiedHuberLoss()
    >>> loss.value([-2.0, -1.0, 0.0, 1.0], 1.0), loss.derivative([-2.0, -1.0, 0.0, 1.0], 1.0)
    (array([8., 4., 1., 0.]), array([-4., -4., -2.,  0.]))
    >>> loss.probability([-2.0, 0.0, 0.5])
    array([0.  , 0.5 , 0.75])
    """

    probabilistic = True
    lipschitz: float = 4.0
    curvature_range: tuple[float, float] = (0.0, 2.0)

    def link(self, a: ArrayLike) -> Array:
        """The score clipped to [-1, 1]."""
        return np.clip(np.asarray(a, dtype=np.float64), -1.0, 1.0)

    def link_derivative(self, a: ArrayLike) -> Array:
        """1 between -1 and 1, else 0."""
        return np.where(np.abs(np.asarray(a, dtype=np.float64)) <= 1, 1.0, 0.0)[()]

    @np.errstate(over="ignore")
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        hinge = np.maximum(1 - np.multiply(y, a, dtype=np.float64), 0.0)
        return np.where(hinge <= 2, np.minimum(hinge, 2.0) ** 2, 4 * (hinge - 1))[()]

    @np.errstate(over="ignore")
    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """-2 y (1 - y a), clipped to slopes between 0 and -4 y."""
        a, y = as_pair(a, y)
        return np.clip(2 * (a - y), -2 - 2 * y, 2 - 2 * y)

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        """2 where -1 <= y a < 1, else 0."""
        a, y = as_pair(a, y)
        return np.where((y * a >= -1) & (y * a < 1), 2.0, 0.0)[()]

    def bends(self, y: ArrayLike) -> Array:
        return np.stack([np.full(np.shape(y), -1.0), np.full(np.shape(y), 1.0)])
