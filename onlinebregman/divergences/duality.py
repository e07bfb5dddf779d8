"""Conjugates, multiples and sums of potentials, and the duality of two divergences."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._objects import check_parameter
from ._base import Divergence
from ._numerics import Array, as_array


class Conjugate(Divergence):
    """Divergence of the convex conjugate G(theta) = <theta, mu> - F(mu), mu = f^-1(theta), of a potential F.

    Its mirror map is f^-1 and its inverse mirror map is f. The two divergences are equal, with the arguments exchanged:
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
        value = float(np.vdot(theta, mu)) - self.primal.potential(mu)
        return np.inf if np.isnan(value) else value  # if both overflow

    def divergence(self, u: ArrayLike, w: ArrayLike) -> float:
        gap = super().divergence(u, w)
        return gap if np.isfinite(gap) else self.primal.divergence(self.mirror(w), self.mirror(u))

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
        self.primal = primal
        self.scale: float = check_parameter(scale, "scale", positive=True)

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

    def _between(self, u: Array, w: Array) -> float:
        return sum(map(self.primal.divergence, u, w))


class TwoDivergences:
    """The two sides of the duality between a divergence of weights and a divergence of what they predict.

    An implicit step trades one off against the other,

        P(w) = D_F(w + mu, f^-1(phi)) + D_H(X w + nu, h^-1(y)),

    with D_H the matching loss of the transfer function h (see `Conjugate`). With G and K the conjugates of H and F the
    dual problem is one of the same kind, in one number a row:

        Q(alpha) = D_G(alpha + y, h(nu)) + D_K(phi - X' alpha, f(mu)),    min P = P(0) - min Q.

    So P(w) + Q(alpha) - P(0) >= 0 for all w and alpha, and it is 0 at the two minima, which give each other:
    alpha = h(X w + nu) - y and w + mu = f^-1(phi - X' alpha). For a single row and mu = nu = 0 that is the step
    f(w') = f(w) - c x with c = alpha.

    Parameters
    ----------
    weights : Divergence
        D_F; `Scaled(D_F, 1 / eta)` for a learning rate.
    predictions : Divergence
        D_H.
    X : array-like of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,)
        Targets h(a), of scores a.
    phi : array-like of shape (n_features,)
        f(w_t) of the weights w_t to stay close to.
    mu, nu : array-like or float, default=0.0
        Shifts of the weights and of the scores; mu must be in the domain of F, nu in that of H.

    References
    ----------
    W, "Duality", the general case; the constant that the slide leaves out is P(0).

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import SquaredEuclidean, TwoDivergences
    >>> ridge = TwoDivergences(SquaredEuclidean(), SquaredEuclidean(), [[1.0, 2.0]], [3.0], phi=[0.0, 0.0])
    >>> w = ridge.weights_of(alpha=[-0.5])
    >>> w, ridge.alpha_of(w)
    (array([0.5, 1. ]), array([-0.5]))
    >>> ridge.primal(w), ridge.dual([-0.5]), ridge.gap(w, [-0.5])
    (0.75, 3.75, 0.0)
    """

    def __init__(
        self,
        weights: Divergence,
        predictions: Divergence,
        X: ArrayLike,
        y: ArrayLike,
        phi: ArrayLike,
        mu: ArrayLike | float = 0.0,
        nu: ArrayLike | float = 0.0,
    ) -> None:
        self.weights, self.predictions = weights, predictions
        self.X, self.y, self.phi = as_array(X), as_array(y), as_array(phi)
        if self.X.shape != (len(self.y), len(self.phi)):
            raise ValueError(
                f"X has shape {self.X.shape}, but y has {len(self.y)} rows and phi {len(self.phi)} features."
            )
        self.mu, self.nu = np.broadcast_to(as_array(mu), self.phi.shape), np.broadcast_to(as_array(nu), self.y.shape)
        self._center, self._targets = weights.inverse_mirror(self.phi), predictions.inverse_mirror(self.y)

    def primal(self, w: ArrayLike) -> float:
        """P(w)."""
        w = as_array(w)
        loss = self.predictions.divergence(self.X @ w + self.nu, self._targets)
        return self.weights.divergence(w + self.mu, self._center) + loss

    def dual(self, alpha: ArrayLike) -> float:
        """Q(alpha)."""
        alpha = as_array(alpha)
        loss = Conjugate(self.predictions).divergence(alpha + self.y, self.predictions.mirror(self.nu))
        start = self.weights.mirror(self.mu)
        return loss + Conjugate(self.weights).divergence(self.phi - alpha @ self.X, start)

    def gap(self, w: ArrayLike, alpha: ArrayLike) -> float:
        """P(w) + Q(alpha) - P(0): an upper bound on the distance of P(w), and of Q(alpha), from its minimum."""
        return self.primal(w) + self.dual(alpha) - self.primal(np.zeros_like(self.phi))

    def weights_of(self, alpha: ArrayLike) -> Array:
        """w at which alpha would be optimal, f^-1(phi - X' alpha) - mu."""
        return self.weights.inverse_mirror(self.phi - as_array(alpha) @ self.X) - self.mu

    def alpha_of(self, w: ArrayLike) -> Array:
        """Alpha at which w would be optimal, h(X w + nu) - y."""
        return self.predictions.mirror(self.X @ as_array(w) + self.nu) - self.y
