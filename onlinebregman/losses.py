"""Losses of a linear model: transfer functions h and their matching losses.

A model predicts from its score a = w.x (or tr(W X)). For an increasing transfer function h with integral H the matching
loss is the Bregman divergence D_H(a, h^-1(y)), the integral of h(z) - y from h^-1(y) to a; it is convex in a and its
derivative is h(a) - y (W, "Bregman Div. Lead to Good Loss Function"). All methods work elementwise on scalars and on
arrays that broadcast, and are safe at scores of any size: no warning, no NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlogy

__all__ = ["HingeLoss", "LogisticLoss", "Loss", "PoissonLoss", "SquaredLoss"]

Array = NDArray[np.float64]


def _pair(a: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    return np.asarray(a, dtype=np.float64), np.asarray(y, dtype=np.float64)


class Loss(ABC):
    """Matching loss of a transfer function h: the contract.

    Attributes
    ----------
    domain : str
        The admissible targets, as said in errors.
    kink : float or None
        The score at which h jumps, None when h is continuous.

    References
    ----------
    W, "Bregman Div. Lead to Good Loss Function".

    Examples
    --------
    >>> from onlinebregman.losses import LogisticLoss
    >>> LogisticLoss()
    LogisticLoss()
    """

    domain: str = "finite y"
    kink: float | None = None
    _remedy = "remove or impute missing and infinite targets"

    @abstractmethod
    def link(self, a: ArrayLike) -> Array:
        """h(a), the prediction of a target."""

    @abstractmethod
    def link_derivative(self, a: ArrayLike) -> Array:
        """h'(a) >= 0, the curvature of the loss in a."""

    @abstractmethod
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        """L(a, y) = D_H(a, h^-1(y)) >= 0."""

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """dL/da = h(a) - y; the gradient in w is this times x."""
        return self.link(a) - np.asarray(y, dtype=np.float64)

    def check_target(self, y: ArrayLike) -> None:
        """Raise ValueError, naming the row, the value and the remedy, unless all targets lie in the domain."""
        y = np.atleast_1d(np.asarray(y, dtype=np.float64))
        good = np.isfinite(y) & self._admits(y)
        if not good.all():
            row = tuple(int(i) for i in np.argwhere(~good)[0])
            raise ValueError(
                f"Target y = {y[row]:g} at row {', '.join(map(str, row))} is outside the domain {self.domain} of "
                f"{self!r}; {self._remedy}."
            )

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return np.ones(y.shape, dtype=bool)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))


class SquaredLoss(Loss):
    """Identity transfer, regression: h(a) = a, H(a) = a^2/2, L(a, y) = (a - y)^2/2.

    JKD07 and TRW04 use (a - y)^2; their learning rates are half of those for this loss.

    References
    ----------
    W, table of matching losses; KB10, section 2.2.

    Examples
    --------
    >>> loss = SquaredLoss()
    >>> float(loss.value(3.0, 1.0)), float(loss.derivative(3.0, 1.0))
    (2.0, 2.0)
    """

    def link(self, a: ArrayLike) -> Array:
        return np.array(a, dtype=np.float64)[()]

    def link_derivative(self, a: ArrayLike) -> Array:
        return np.ones_like(np.asarray(a, dtype=np.float64))[()]

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = _pair(a, y)
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
        a, y = _pair(a, y)
        # y ln(1 + e^-a) + (1 - y) ln(1 + e^a): no difference of large numbers; products of 0 with infinity are avoided
        cross = y * np.logaddexp(0.0, -a) + (1 - y) * np.logaddexp(0.0, a)
        return np.maximum(cross + xlogy(y, y) + xlogy(1 - y, 1 - y), 0.0)

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return (y >= 0) & (y <= 1)


class HingeLoss(Loss):
    """Sign transfer, Perceptron and Winnow: h(a) = sign(a), H(a) = abs(a), L(a, y) = max(0, -y a), y = -1 or 1.

    L is half the divergence D_H, so its derivative is (h(a) - y)/2: -y where the sign of a is wrong, 0 where it is
    right. It has a kink at a = 0, where every number between -y and 0 is a subgradient. `derivative` returns -y there:
    a score of 0 is a mistake, so that learning can begin from w = 0 as in the Perceptron. `link(0)` is 0.

    References
    ----------
    W, "Sigmoid in the Limit", "Motivation of linear threshold algs".

    Examples
    --------
    >>> loss = HingeLoss()
    >>> loss.value([-2.0, 0.0, 2.0], 1.0)
    array([2., 0., 0.])
    >>> loss.derivative([-2.0, 0.0, 2.0], 1.0)
    array([-1., -1.,  0.])
    """

    domain = "y = -1 or 1"
    kink = 0.0
    _remedy = "encode the two classes as -1 and 1"

    def link(self, a: ArrayLike) -> Array:
        return np.sign(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        """0, the slope of h on both sides of its jump."""
        return np.zeros_like(np.asarray(a, dtype=np.float64))[()]

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = _pair(a, y)
        return np.maximum(-y * a, 0.0) + 0.0  # -0.0 becomes 0.0

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """-y where y a <= 0 (a mistake, the kink a = 0 included), else 0."""
        a, y = _pair(a, y)
        return np.where(y * a <= 0, -y, 0.0)[()]

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return np.abs(y) == 1


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
        a, y = np.broadcast_arrays(*_pair(a, y))
        log_y = np.log(np.where(y > 0, y, 1.0))
        gap = a - log_y
        with np.errstate(over="ignore"):
            # y (e^gap - 1 - gap) keeps the digits near a = ln y; the direct form keeps those of tiny y and large a
            near = y * (np.expm1(np.minimum(gap, 1.0)) - gap)
            far = np.exp(a) - y - y * gap
        return np.maximum(np.where((y > 0) & (np.abs(gap) < 1), near, far), 0.0)[()]

    def _admits(self, y: Array) -> NDArray[np.bool_]:
        return y >= 0
