"""Squared Euclidean distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._base import EuclideanRows, Quadratic, SeparableDivergence, named
from ._numerics import SLACK, Array, as_array, check_bound, check_radius, check_total


@named("squared_euclidean")
class SquaredEuclidean(EuclideanRows, Quadratic, SeparableDivergence):
    """Squared Euclidean distance: gradient descent, Widrow-Hoff, Perceptron.

    F(w) = sum w^2/2,  f(w) = w,  D(u, w) = sum (u - w)^2/2,  S = I,  w(c) = w - c x.

    References
    ----------
    W, "Examples", "Squared Euclidean Distance"; KB10, section 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import SquaredEuclidean
    >>> SquaredEuclidean().divergence([1.0, 2.0], [0.0, 0.0])
    2.5
    >>> SquaredEuclidean().project_simplex(np.array([0.9, 0.5, -1.0]))
    array([0.7, 0.3, 0. ])
    """

    domain = "all finite w"
    homogeneous = True

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        return as_array(x).copy()

    def step(self, w: ArrayLike, x: ArrayLike, c: float) -> Array:
        return as_array(w) - c * as_array(x)

    def project_simplex(self, w: ArrayLike, total: float = 1.0) -> Array:
        """argmin of D(u, w) over u >= 0, sum u = total: max(w - tau, 0), tau from the sorted weights."""
        return _onto_simplex(self._in_domain(w), np.ones(np.shape(w)), check_total(total))

    def _onto_l1_sphere(self, w: Array, radius: float, norm: float) -> Array:
        """Soft thresholds, the absolute values projected on a simplex."""
        return np.sign(w) * self.project_simplex(np.abs(w), radius) + 0.0  # -0.0 becomes 0.0

    def project_l2_ball(self, w: ArrayLike, radius: float = 1.0) -> Array:
        """argmin of D(u, w) over norm_2(u) <= radius: rescaling by radius / norm_2(w)."""
        w, radius = self._in_domain(w), check_radius(radius)
        largest = float(np.abs(w).max(initial=0.0))
        unit = largest if largest > 1e150 else 1.0  # or its square overflows
        scaled = w / unit
        norm = float(np.linalg.norm(scaled))
        return w.copy() if norm <= radius / unit * (1 + SLACK) else scaled * (radius / norm)

    def prox_elastic_net(self, w: ArrayLike, l1: float, l2: float = 0.0) -> Array:
        """argmin of D(u, w) + l1 sum abs(u) + l2 sum u^2/2: a soft threshold, divided by 1 + l2."""
        w = self._in_domain(w)
        return (w - np.clip(w, -l1, l1)) / (1 + l2)

    def largest_divergence(self, n_features: int, u_bound: float = np.inf) -> float:
        """u_bound^2/2 for norm_2(u) <= u_bound."""
        return u_bound**2 / 2

    def smoothness(self, x_bound: float) -> float:
        """M = x_bound^2 for norm_2(x) <= x_bound, as x'S x = x.x; D(w, w(c)) = c^2 x.x/2."""
        return check_bound(x_bound) ** 2


class WeightedSquaredEuclidean(Quadratic, SeparableDivergence):
    """Squared Euclidean distance with a weight for each coordinate: Gaussians of given variances.

    F(w) = sum a w^2/2,  f(w) = a w,  D(u, w) = sum a (u - w)^2/2,  S = diag(1/a),  w(c) = w - c x/a.

    Parameters
    ----------
    weights : array-like of shape (n_features,)
        Positive weights a.

    Raises
    ------
    ValueError
        If a weight is not positive and finite.

    Examples
    --------
    >>> from onlinebregman.divergences import WeightedSquaredEuclidean
    >>> WeightedSquaredEuclidean([1.0, 4.0]).divergence([1.0, 2.0], [0.0, 0.0])
    8.5
    """

    domain = "all finite w"

    def __init__(self, weights: ArrayLike) -> None:
        self.weights: Array = as_array(weights)
        sound = (self.weights > 0) & (self.weights < np.inf)
        if self.weights.ndim != 1 or not sound.all():
            raise ValueError(f"weights must be one positive finite number for each coordinate; got {weights}.")

    def potential(self, w: ArrayLike) -> float:
        return float(self.weights @ as_array(w) ** 2) / 2

    def mirror(self, w: ArrayLike) -> Array:
        return self.weights * as_array(w)

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        return as_array(theta) / self.weights

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        return as_array(x) / self.weights

    def step(self, w: ArrayLike, x: ArrayLike, c: float) -> Array:
        return as_array(w) - c * as_array(x) / self.weights

    def project_simplex(self, w: ArrayLike, total: float = 1.0) -> Array:
        """argmin of D(u, w) over u >= 0, sum u = total: max(a w - tau, 0)/a, tau from the sorted a w."""
        self.check_domain(w)
        return _onto_simplex(self.mirror(w), self.weights, check_total(total))


def _onto_simplex(theta: Array, weights: Array, total: float) -> Array:
    """max(theta - tau, 0) / weights of this sum."""
    moved: Array = theta - theta.max()  # has the same projection, accurate for a total much smaller than theta
    order = np.argsort(-moved)
    taus = (np.cumsum((moved / weights)[order]) - total) / np.cumsum(1 / weights[order])
    return np.maximum(moved - taus[np.flatnonzero(moved[order] > taus)[-1]], 0.0) / weights
