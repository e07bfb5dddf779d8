"""Matching losses of transfer functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, xlogy

from ._base import LARGEST, Array, Loss, ResidualLoss, as_pair, named

__all__ = ["LogisticLoss", "PoissonLoss", "SquaredLoss"]


@named("squared_error")
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

    degree = 2
    curvature_range: tuple[float, float] = (1.0, 1.0)

    @np.errstate(over="ignore")
    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        return np.subtract(a, y, dtype=np.float64) ** 2 / 2


@named("log_loss")
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
    target_range: tuple[float, float] = (0.0, 1.0)
    labels: tuple[float, float] = (0.0, 1.0)
    tasks: tuple[str, ...] = ("regression", "classification")
    sigmoid = True
    probabilistic = True
    lipschitz: float = 1.0
    curvature_range: tuple[float, float] = (0.0, 0.25)
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
        """h(a) - y as (1 - y) h(a) - y h(-a), which is accurate where h(a) is close to y = 0 or 1."""
        a, y = as_pair(a, y)
        return (1 - y) * expit(a) - y * expit(-a)

    def log_probability(self, a: ArrayLike) -> Array:
        """-ln(1 + e^-a), also finite where the probability underflows."""
        return log_expit(np.asarray(a, dtype=np.float64))


@named("poisson")
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
    target_range: tuple[float, float] = (0.0, np.inf)
    _remedy = "use counts or other non-negative targets, or SquaredLoss"

    def link(self, a: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(np.asarray(a, dtype=np.float64))

    def link_derivative(self, a: ArrayLike) -> Array:
        return self.link(a)

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = np.broadcast_arrays(*as_pair(a, y))
        gap = a - np.log(np.where(y > 0, y, 1.0))
        with np.errstate(over="ignore"):
            # y (e^gap - 1 - gap) keeps the digits near a = ln y; the direct form keeps those of tiny y and large a
            near = y * (np.expm1(np.minimum(gap, 1.0)) - gap)
            far = np.exp(a) - y - np.minimum(y * gap, LARGEST)  # infinite where both terms are
        return np.maximum(np.where((y > 0) & (np.abs(gap) < 1), near, far), 0.0)[()]
