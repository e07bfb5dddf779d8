"""Half deviances of positive targets under the logarithmic link, besides that of counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._objects import check_parameter
from ._base import LARGEST, Array, as_pair, named
from .matching import PoissonLoss

__all__ = ["TweedieLoss"]


@named("gamma", power=2.0)
@named("tweedie")
class TweedieLoss(PoissonLoss):
    """L(a, y) = y^(2 - p) (E(2 - p, g) - E(1 - p, g)), with g = a - ln y and E(s, g) = (e^(s g) - 1) / s, E(0, g) = g.

    Half the deviance of targets whose variance is proportional to mean^p, for the mean h(a) = e^a: p = 1 is the
    `PoissonLoss`; 1 < p < 2 are sums of a Poisson number of gamma variables, such as claims, many of which are 0; p = 2
    is the gamma distribution, loss="gamma", whose errors are in proportion to the mean. The minimum 0 is at a = ln y.
    It is not a matching loss: its derivative is (h(a) - y) e^((1 - p) a). For other p it is not convex.

    Parameters
    ----------
    power : float, default=1.5
        The power p, from 1 to 2.

    References
    ----------
    B. Jorgensen, "Exponential Dispersion Models", J. Royal Statistical Society B 49, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.losses import TweedieLoss
    >>> gamma = TweedieLoss(power=2.0)
    >>> y = np.array([1.0, 10.0, 100.0])
    >>> gamma.value(np.log(5.0), y).round(2), gamma.derivative(np.log(5.0), y).round(2)
    (array([ 0.81,  0.31, 16.  ]), array([  0.8,  -1. , -19. ]))
    """

    _remedy = "use positive targets (TweedieLoss with power < 2 also takes 0), or SquaredLoss"

    def __init__(self, power: float = 1.5) -> None:
        self.power: float = check_parameter(power, "power", positive=True)
        if not 1 <= power <= 2:
            raise ValueError(f"power must be from 1 to 2, beyond which the loss is not convex; got {power!r}.")

    @property
    def domain(self) -> str:
        """The admissible targets, as text for error messages."""
        return "y > 0" if self.power == 2 else "y >= 0"

    @property
    def target_range(self) -> tuple[float, float]:
        """The smallest and the largest admissible target."""
        return (np.nextafter(0.0, 1.0) if self.power == 2 else 0.0), np.inf

    def value(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = np.broadcast_arrays(*as_pair(a, y))
        up, down, positive = 2 - self.power, self.power - 1, y > 0
        gap = a - np.log(np.where(positive, y, 1.0))
        near = np.clip(gap, -1.0, 1.0)
        rising, falling = self._terms(a, y)
        with np.errstate(over="ignore", invalid="ignore"):
            size = y**up
            # the product keeps the digits near a = ln y, the direct form those of tiny y and large a
            product = size * (_growth(up, near) - _growth(-down, near))
            direct = (rising - size) / up if up > 0 else gap
            # infinite where both terms are
            direct = direct + np.maximum((falling - size) / down if down > 0 else -y * gap, -LARGEST)
            value = np.where(positive, np.where(near == gap, product, direct), rising / up if up > 0 else np.inf)
        return np.maximum(value, 0.0)[()]

    def derivative(self, a: ArrayLike, y: ArrayLike) -> Array:
        """(e^a - y) e^((1 - p) a), as a difference of two exponentials."""
        a, y = np.broadcast_arrays(*as_pair(a, y))
        rising, falling = self._terms(a, y)
        return (rising - falling)[()]

    def curvature(self, a: ArrayLike, y: ArrayLike) -> Array:
        a, y = np.broadcast_arrays(*as_pair(a, y))
        rising, falling = self._terms(a, y)
        return ((2 - self.power) * rising + (self.power - 1) * falling)[()]

    def _terms(self, a: Array, y: Array) -> tuple[Array, Array]:
        """e^((2 - p) a) and y e^((1 - p) a)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.exp((2 - self.power) * a), np.where(y > 0, y * np.exp((1 - self.power) * a), 0.0)


def _growth(s: float, g: Array) -> Array:
    return np.expm1(s * g) / s if s != 0 else g
