"""The p-norm potential: between gradient descent and exponentiated gradient, for weights of any sign."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._base import Balls, named
from ._numerics import EPS, Array, as_array, check_bound, check_box, check_total, decreasing_root, power_gap


@named("p_norm", by_size=True)
class PNorm(Balls):
    """Half the squared q-norm, 1/p + 1/q = 1, p >= 2: the p-norm algorithms.

    F(w) = norm_q(w)^2/2,  f(w) = sgn(w) abs(w)^(q-1) / norm_q(w)^(q-2),  f^-1 the same with p,
    D(u, w) = norm_q(u)^2/2 + norm_q(w)^2/2 - u.f(w),  w(c) = f^-1(f(w) - c x).  With v = w / norm_q(w)
    S = (p - 1) diag(abs(v)^(2-q)) - (p - 2) v v'.

    p = 2 is `SquaredEuclidean`; p = 2 ln n behaves like EG and allows weights of any sign. At w = 0, where f^-1 has
    only directional derivatives when p > 2, `hessian_inverse` returns the one along x, f^-1(x).

    Parameters
    ----------
    p : float, default=2.0
        The norm that measures instances, p >= 2; weights are measured by the q-norm.

    References
    ----------
    W, "Bounds for Linear Regression with Square Loss" (p-norm algorithm).

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import PNorm
    >>> pnorm = PNorm(p=4.0)
    >>> w = np.array([0.3, -0.1, 0.0])
    >>> bool(np.allclose(pnorm.inverse_mirror(pnorm.mirror(w)), w))
    True
    >>> round(PNorm(p=2.0).divergence([1.0, 2.0], [0.0, 0.0]), 12)
    2.5
    """

    domain = "all finite w"
    homogeneous = True

    def __init__(self, p: float = 2.0) -> None:
        self.p: float = float(p)
        if not 2 <= self.p < np.inf:
            raise ValueError(f"p must be a finite number >= 2; got {p:g}. Use p=2 for gradient descent, 2 ln n for EG.")

    @property
    def q(self) -> float:
        """The dual exponent p / (p - 1), between 1 and 2."""
        return self.p / (self.p - 1)

    @property
    def norm(self) -> float:
        """Weights are measured by the q-norm."""
        return self.q

    @staticmethod
    def _norm(v: Array, r: float) -> float:
        largest = float(np.abs(v).max(initial=0.0))
        return largest * float(((np.abs(v) / largest) ** r).sum()) ** (1 / r) if largest > 0 else 0.0

    def _map(self, v: Array, r: float) -> Array:
        """Gradient of norm_r(v)^2/2."""
        norm = self._norm(v, r)
        return norm * np.sign(v) * (np.abs(v) / norm) ** (r - 1) if norm > 0 else np.zeros_like(v)

    def potential(self, w: ArrayLike) -> float:
        norm = self._norm(as_array(w), self.q)
        return norm * norm / 2  # infinity on overflow

    def mirror(self, w: ArrayLike) -> Array:
        return self._map(as_array(w), self.q)

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        return self._map(as_array(theta), self.p)

    def _between(self, u: Array, w: Array) -> float:
        q, norm = self.q, self._norm(w, self.q)
        if norm == 0 or self._norm(u - w, q) > 1e3 * norm:
            return super()._between(u, w)
        # with norm_q(w) = 1, z = norm_q(u)^q - 1 = G + q L: G = sum of the gaps of the power q, L = f(w).(u - w);
        # then D = G/q + ((1 + z)^(2/q) - 1 - 2z/q)/2, two terms that cannot be negative
        move, u, w = (u - w) / norm, u / norm, w / norm
        with np.errstate(over="ignore"):
            ratio = np.divide(move, w, out=np.zeros_like(w), where=w != 0)  # u = w (1 + ratio)
        near, ratio = np.clip(ratio, -1.0, 1e3), np.minimum(ratio, 1e307)
        close = np.abs(w) ** q * power_gap(near, q)
        gaps = np.where(ratio == near, close, np.abs(u) ** q + np.abs(w) ** q * (q - 1 - q * (1 + ratio)))
        gap = float(np.where(w == 0, np.abs(u) ** q, gaps).sum())
        z = gap + q * float(self._map(w, q) @ move)
        of_unit = gap / q + float(power_gap(max(z, -1.0), 2 / q)) / 2
        return norm * of_unit * norm if of_unit else 0.0  # in this order: the square of the norm alone may overflow

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        w, x = as_array(w), as_array(x)
        norm = self._norm(w, self.q)
        if norm == 0:
            return self.inverse_mirror(x)
        v = w / norm
        return (self.p - 1) * np.abs(v) ** (2 - self.q) * x - (self.p - 2) * (v @ x) * v

    def project_simplex(self, w: ArrayLike, total: float = 1.0) -> Array:
        """argmin of D(u, w) over u >= 0, sum u = total: f^-1(max(f(w) - tau, 0)), tau from one scalar equation."""
        self.check_domain(w)
        total, theta = check_total(total), self.mirror(w)
        # at tau = max theta - total the sum, no less than norm_q(u) = norm_p(max(theta - tau, 0)), is at least total
        below = theta - theta.max()

        def point(s: float) -> Array:  # tau = max theta - total + s
            return self.inverse_mirror(np.maximum(below + (total - s), 0.0))

        root = decreasing_root(lambda s: float(point(s).sum()) - total, total / 2, 2 * total)
        u = point(0.0 if root is None else root)
        return u * (total / u.sum())

    def project_box(self, w: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """argmin of D(u, w) over lower <= u <= upper: clip(k w, lower, upper), k = (norm_q(w) / norm_q(u))^(p-2)."""
        w = self._in_domain(w)
        low, high = check_box(lower, upper, w.shape)
        norm, first = self._norm(w, self.q), self._norm(np.clip(w, low, high), self.q)
        if first == 0:
            return np.zeros_like(w)

        def point(s: float) -> Array:  # s = norm_q(u) = first e^t
            return np.clip(w * min((norm / s) ** (self.p - 2), 1e100), low, high)

        def distance(t: float) -> float:
            return self._norm(point(first * np.exp(t)), self.q) - first * np.exp(t)

        sign = 1.0 if distance(0.0) > 0 else -1.0
        root = decreasing_root(lambda t: sign * distance(sign * t), 1.0)
        return point(first * np.exp(sign * (root or 0.0)))

    def _onto_l1_sphere(self, w: Array, radius: float, norm: float) -> Array:
        """f^-1 of f(w) with a soft threshold, from one scalar equation."""
        theta = self.mirror(w)
        largest = float(np.abs(theta).max())
        below, width = np.abs(theta) - largest, min(largest, radius)
        # at tau = largest - radius the sum, no less than norm_q(u) = norm_p(soft threshold), is at least radius

        def point(s: float) -> Array:  # tau = largest - width + s
            return self.inverse_mirror(np.sign(theta) * np.maximum(below + (width - s), 0.0))

        root = decreasing_root(lambda s: float(np.abs(point(s)).sum()) - radius, width / 2, 2 * width)
        u = point(0.0 if root is None else root)
        return u * (radius / np.abs(u).sum())

    def _onto_l2_sphere(self, w: Array, radius: float, norm: float) -> Array:
        """f(u) = f(w) - mu u, mu from one scalar equation.

        As u is proportional to sgn(y) abs(y)^(p-1) with y = f(u), the y solve y + sgn(y) abs(t y)^(p-1) = f(w),
        coordinate by coordinate, for one t >= 0 that stands for mu.
        """
        theta = self.mirror(w)
        largest = float(np.abs(theta).max())

        def point(t: float) -> Array:  # f and f^-1 are homogeneous
            return self.inverse_mirror(largest * np.sign(theta) * self._dual_shrink(np.abs(theta) / largest, t))

        root = decreasing_root(lambda t: 1 / radius - 1 / float(np.linalg.norm(point(t))), norm / radius)
        u = point(0.0 if root is None else root)
        return u * (radius / float(np.linalg.norm(u)))

    def prox_elastic_net(self, w: ArrayLike, l1: float, l2: float = 0.0) -> Array:
        """argmin of D(u, w) + l1 sum abs(u): f^-1 of f(w) with a soft threshold, as u has the signs of f(u)."""
        self.check_domain(w)
        if l2 > 0:
            raise ValueError(
                f"{self!r} has no proximal step of sum w^2: its weights depend on each other. Use the penalty L1, or "
                "SquaredEuclidean, which is p = 2."
            )
        theta = self.mirror(w)
        return self.inverse_mirror(theta - np.clip(theta, -l1, l1))

    def _dual_shrink(self, x: Array, t: float) -> Array:
        """The y >= 0 with y + (t y)^(p-1) = x, for 0 <= x <= 1: Newton's method, falling from above."""
        y = x if t <= 1 else np.minimum(x, x ** (1 / (self.p - 1)) / t)
        for _ in range(200):
            power = (t * y) ** (self.p - 2)
            step = (y + t * y * power - x) / (1 + (self.p - 1) * t * power)
            if not (step > 4 * EPS * y).any():
                break
            y = np.maximum(y - step, 0.0)
        return y

    def largest_divergence(self, n_features: int, u_bound: float = np.inf) -> float:
        """u_bound^2/2 for norm_q(u) <= u_bound."""
        return u_bound**2 / 2

    def smoothness(self, x_bound: float) -> float:
        """M = (p - 1) x_bound^2 for norm_p(x) <= x_bound.

        x'S x <= (p - 1) sum abs(v)^(2-q) x^2, at most (p - 1) norm_p(x)^2 by Hoelder's inequality, as norm_q(v) = 1.
        """
        return (self.p - 1) * check_bound(x_bound) ** 2

    def row_size(self, x: ArrayLike) -> float:
        """norm_p(x)."""
        return self._norm(as_array(x), self.p)
