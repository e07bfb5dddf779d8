"""Conjugates, multiples and sums of potentials: what relates the two parameters of an exponential family."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._base import Divergence
from ._numerics import Array, as_array


class Conjugate(Divergence):
    """Divergence of the convex conjugate G(theta) = <theta, mu> - F(mu), mu = f^-1(theta), of a potential F.

    Its mirror map is f^-1 and its inverse mirror map is f. The two divergences are one, with the arguments exchanged:
    D_G(theta~, theta) = D_F(mu, mu~). With F the potential of an exponential family's expectation parameters, G is the
    cumulant function of the natural ones and the divergence is the relative entropy between two members.

    Parameters
    ----------
    primal : Divergence
        The divergence of F.

    References
    ----------
    W, "Primal & Dual Parameters", "Bregman Div. as Rel. Ent. between Distributions".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import BinaryEntropy, Conjugate
    >>> cumulant = Conjugate(BinaryEntropy())  # of a coin: ln(1 + e^theta)
    >>> print(f"{cumulant.potential([np.log(3.0)]):.12f}")  # ln 4
    1.386294361120
    >>> cumulant.mirror([np.log(3.0)]).round(12)
    array([0.75])
    """

    def __init__(self, primal: Divergence) -> None:
        self.primal = primal

    @property
    def domain(self) -> str:
        return f"theta = f(w) with {self.primal.domain}"

    def potential(self, w: ArrayLike) -> float:
        theta = as_array(w)
        mu = self.primal.inverse_mirror(theta)
        return float(np.vdot(theta, mu) - self.primal.potential(mu))

    def mirror(self, w: ArrayLike) -> Array:
        return self.primal.inverse_mirror(w)

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        return self.primal.mirror(theta)


class Scaled(Divergence):
    """Divergence of scale * F: scale * D, with the mirror map scale * f.

    Parameters
    ----------
    primal : Divergence
        The divergence of F.
    scale : float
        A positive number.

    Raises
    ------
    ValueError
        If scale is not positive and finite.

    Examples
    --------
    >>> from onlinebregman.divergences import Scaled, SquaredEuclidean
    >>> Scaled(SquaredEuclidean(), 4.0).divergence([1.0], [0.0])
    2.0
    """

    def __init__(self, primal: Divergence, scale: float) -> None:
        if not 0 < scale < np.inf:
            raise ValueError(f"scale = {scale:g}: a multiple of a divergence needs a positive finite scale.")
        self.primal = primal
        self.scale: float = float(scale)

    @property
    def domain(self) -> str:
        return self.primal.domain

    def check_domain(self, w: ArrayLike, *, closed: bool = False) -> None:
        self.primal.check_domain(w, closed=closed)

    def potential(self, w: ArrayLike) -> float:
        return self.scale * self.primal.potential(w)

    def mirror(self, w: ArrayLike) -> Array:
        return self.scale * self.primal.mirror(w)

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        return self.primal.inverse_mirror(as_array(theta) / self.scale)

    def divergence(self, u: ArrayLike, w: ArrayLike) -> float:
        return self.scale * self.primal.divergence(u, w)

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        return self.primal.hessian_inverse(w, x) / self.scale

    def step(self, w: ArrayLike, x: ArrayLike, c: float) -> Array:
        return self.primal.step(w, x, c / self.scale)

    def step_range(self, w: ArrayLike, x: ArrayLike) -> tuple[float, float]:
        low, high = self.primal.step_range(w, x)
        return low * self.scale, high * self.scale


class Stacked(Divergence):
    """Divergence of F(w_1) + F(w_2) + ..., for points that are stacked along the first axis.

    Parameters
    ----------
    primal : Divergence
        The divergence of F, one for all points.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import LogDet, Stacked
    >>> variances = Stacked(LogDet())  # two matrices of size 1
    >>> print(f"{variances.divergence([[[2.0]], [[3.0]]], np.ones((2, 1, 1))):.6f}")  # 2 - ln 2 - 1 + 3 - ln 3 - 1
    1.208241
    """

    def __init__(self, primal: Divergence) -> None:
        self.primal = primal

    @property
    def domain(self) -> str:
        return f"stacks of {self.primal.domain}"

    def check_domain(self, w: ArrayLike, *, closed: bool = False) -> None:
        for point in as_array(w):
            self.primal.check_domain(point, closed=closed)

    def potential(self, w: ArrayLike) -> float:
        return sum(map(self.primal.potential, as_array(w)))

    def mirror(self, w: ArrayLike) -> Array:
        return np.stack([self.primal.mirror(point) for point in as_array(w)])

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        return np.stack([self.primal.inverse_mirror(point) for point in as_array(theta)])

    def divergence(self, u: ArrayLike, w: ArrayLike) -> float:
        u, w = self._pair(u, w)
        return sum(map(self.primal.divergence, u, w))
