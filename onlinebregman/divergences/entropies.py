"""Entropies of vectors, each with its mirror map, divergence, step and projections in closed and stable form.

Weights w have shape (n,), directions x are the rows of the data, c is the scalar of the step.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, wrightomega, xlogy

from ._base import EuclideanRows, SeparableDivergence, VectorDivergence, named
from ._numerics import (
    EPS,
    SLACK,
    TINY,
    Array,
    as_array,
    check_bound,
    check_box,
    check_radius,
    check_total,
    decreasing_root,
    entropy_gap,
    log_gap,
    pole_range,
    towards_pole,
)


class Entropic(VectorDivergence):
    """F(w) = sum w ln w - w; also where the sum of w is given, as that makes every term of D nonnegative."""

    def potential(self, w: ArrayLike) -> float:
        w = self._in_domain(w, closed=True)
        return float((xlogy(w, w) - w).sum())

    def mirror(self, w: ArrayLike) -> Array:
        return np.log(self._in_domain(w))

    def _between(self, u: Array, w: Array) -> float:
        return float(entropy_gap(u, w).sum())


@named("relative_entropy")
class RelativeEntropy(EuclideanRows, Entropic, SeparableDivergence):
    """Unnormalised relative entropy of positive weights: the EGU algorithm, Winnow.

    F(w) = sum w ln w - w,  f(w) = ln w,  D(u, w) = sum u ln(u/w) - u + w,  S = diag w,  w(c) = w e^(-c x).

    `u` may contain zeros (0 ln 0 = 0). Steps keep weights at or above the smallest normal float, as an exact zero could
    never grow again.

    References
    ----------
    W, "(Unnormalized) Relative Entropy"; KB10, section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import RelativeEntropy
    >>> RelativeEntropy().divergence([1.0, 0.0], [1.0, 0.5])
    0.5
    >>> RelativeEntropy().step(np.array([1.0, 2.0]), np.array([np.log(2.0), 0.0]), 1.0)
    array([0.5, 2. ])
    """

    domain = "w > 0"
    lower: float = 0.0
    norm: float = 1.0
    _remedy = "use positive weights (floor zeros at a small number, write signed weights as a difference of two)"

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return np.maximum(np.exp(as_array(theta)), TINY)

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        return as_array(w) * as_array(x)

    def step(self, w: ArrayLike, x: ArrayLike, c: float) -> Array:
        with np.errstate(over="ignore"):
            half = np.exp(-c / 2 * as_array(x))  # in two halves: the product may be finite where e^(-c x) is not
            return np.maximum(as_array(w) * half * half, TINY)

    def project_simplex(self, w: ArrayLike, total: float = 1.0) -> Array:
        """argmin of D(u, w) over u >= 0, sum u = total: rescaling by total / sum w."""
        w, total = self._in_domain(w), check_total(total)
        return w * (total / w.sum())

    def _onto_l1_sphere(self, w: Array, radius: float, norm: float) -> Array:
        return w * (radius / norm)

    def smoothness_below(self, x_bound: float, upper: float, move: float = 0.0) -> float:
        """M = v x_bound^2 for norm_2(x) <= x_bound and the largest weight v = upper e^move, as x'S x = sum w x^2."""
        if upper == np.inf:
            raise self._not_smooth()
        return upper * (math.exp(move) if move < 700.0 else math.inf) * check_bound(x_bound) ** 2

    def _shrink(self, w: Array, mu: float) -> Array:
        """ln u + mu u = ln w: mu u = omega(ln(mu w)), omega the inverse of t + ln t (Wright's function)."""
        return np.maximum(wrightomega(np.log(w) + np.log(mu)) / mu, TINY)


@named("simplex_entropy")
class SimplexEntropy(Entropic):
    """Relative entropy on the simplex of sum U = `total`: exponentiated gradient (EG), mixtures of experts.

    F(w) = sum w ln w - w,  f(w) = ln w,  f^-1(theta) = U softmax(theta),  D(u, w) = sum u ln(u/w),
    S = diag w - w w'/U,  w(c) = U w e^(-c x) / sum w e^(-c x).

    f is defined up to a constant: f^-1(f(w)) = w, and f(f^-1(theta)) - theta is the same number in every coordinate.
    Steps keep weights at or above the smallest normal float, as an exact zero could never grow again.

    Parameters
    ----------
    total : float, default=1.0
        U, the sum of the weights.

    References
    ----------
    W, "(Unnormalized) Relative Entropy" and "Normalized Winnow"; KB10, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import SimplexEntropy
    >>> simplex = SimplexEntropy()
    >>> simplex.step(np.array([0.5, 0.5]), np.array([np.log(3.0), 0.0]), 1.0).round(12)
    array([0.25, 0.75])
    >>> simplex.project_box(np.array([0.7, 0.2, 0.1]), 0.0, 0.4).round(12)
    array([0.4, 0.4, 0.2])
    """

    lower: float = 0.0
    norm: float = 1.0
    _remedy = "use positive weights (floor zeros at a small number, then project_simplex)"

    def __init__(self, total: float = 1.0) -> None:
        self.total: float = check_total(total)

    @property
    def domain(self) -> str:
        return f"w > 0, sum w = {self.total:g}"

    def default_start(self, n_features: int) -> Array:
        """The same weight U/n for all."""
        return np.full(n_features, self.total / n_features)

    def largest_divergence(self, n_features: int, u_bound: float = np.inf) -> float:
        """U ln n, that of a comparator with one nonzero weight, for any `u_bound`; for two features or more."""
        return self.total * math.log(max(n_features, 2))

    def check_domain(self, w: ArrayLike, *, closed: bool = False) -> None:
        super().check_domain(w, closed=closed)
        found = float(as_array(w).sum())
        if abs(found - self.total) > 1e-8 * self.total:
            raise ValueError(
                f"sum w = {found:.10g} is outside the domain {self.domain} of {self!r}; rescale w with project_simplex."
            )

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        theta = as_array(theta)
        w = np.exp(theta - theta.max())
        return np.maximum(w * (self.total / w.sum()), TINY)

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        w, x = as_array(w), as_array(x)
        return w * (x - (w @ x) / self.total)

    def step(self, w: ArrayLike, x: ArrayLike, c: float) -> Array:
        w, x = as_array(w), as_array(x)
        with np.errstate(over="ignore"):  # far below the largest exponent
            exponent = -2 * (c * (x / 2 - (x.min() if c > 0 else x.max()) / 2))  # at most 0, however large c x is
        exponent -= (np.log(w) + exponent).max()  # the largest product is 1, however small its weight
        moved = w * np.exp(exponent)
        return np.maximum(self.total * (moved / moved.sum()), TINY)

    def project_simplex(self, w: ArrayLike, total: float | None = None) -> Array:
        """argmin of the relative entropy over the simplex, for any w > 0: rescaling. `total` can only be U or None."""
        if total is not None and total != self.total:
            raise ValueError(f"total must be that of {self!r}; got {total:g}. Use SimplexEntropy(total={total:g}).")
        super().check_domain(w)
        w = as_array(w)
        return w * (self.total / w.sum())

    def project_box(self, w: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
        """argmin of D(u, w) over the part of the simplex with lower <= u <= upper: clip(s w, lower, upper).

        The factor s makes the sum U; that sum is piecewise linear in s, so s is exact after a sort, O(n log n).
        """
        super().check_domain(w)
        w = as_array(w)
        low, high = check_box(lower, upper, w.shape)
        self._check_meets(low, high)
        low = np.maximum(low, 0.0)
        slack = 1e-12 * self.total  # rounding of the sums
        if not low.sum() - slack <= self.total <= high.sum() + slack:
            raise ValueError(
                f"No w with sum {self.total:g} lies in the box, whose sums run from {low.sum():g} to {high.sum():g}; "
                "widen it."
            )
        if low.sum() >= self.total and not low.all():
            i = int(np.argmin(low))
            raise ValueError(
                f"The box has no point in the domain {self.domain}: its lower ends sum to {low.sum():g}, so that the "
                f"weight at index {i} cannot be positive; widen it."
            )
        ends = np.concatenate([low / w, high / w])
        ends = np.sort(ends[np.isfinite(ends)])
        # the first end of a linear piece at which the sum has reached U
        first = bisect_left(ends, self.total, key=lambda s: float(np.clip(s * w, low, high).sum()))
        left = ends[first - 1] if first > 0 else 0.0
        right = ends[first] if first < len(ends) else np.inf
        free = (low / w <= left) & (high / w >= right)  # between these ends exactly these weights scale with s
        point = np.clip((left if first == len(ends) else right) * w, low, high)
        if free.any():
            point[free] = w[free] * ((self.total - point[~free].sum()) / w[free].sum())
        return np.clip(point, low, high)

    def project_l1_ball(self, w: ArrayLike, radius: float = 1.0) -> Array:
        """w itself, as sum w = total everywhere; ValueError when the ball is too small for that."""
        self.check_domain(w)
        if self.total > check_radius(radius) * (1 + SLACK):
            raise ValueError(
                f"sum abs(w) is {self.total:g} in the whole domain of {self!r}, more than radius = {radius:g}; use a "
                f"radius of at least {self.total:g}, or a smaller total."
            )
        return as_array(w).copy()

    def project_l2_ball(self, w: ArrayLike, radius: float = 1.0) -> Array:
        """argmin of D(u, w) over the part of the simplex with norm_2(u) <= radius.

        ln u = ln w - mu u + const. With s = ln mu + const this is mu u = omega(ln w + s) for the inverse omega of t +
        ln t (Wright's function), so u = U omega(ln w + s) / sum: s from one scalar equation. Ever larger s lead from w
        to the uniform weights, whose norm U / sqrt(n) is the smallest; a w inside is returned unchanged.
        """
        w, radius = self._in_domain(w), check_radius(radius)
        least = self.total / np.sqrt(len(w))
        if radius < least * (1 - SLACK):
            raise ValueError(
                f"norm_2(w) is at least {least:.10g}, that of uniform weights, on the domain of {self!r} with {len(w)} "
                f"weights, more than radius = {radius:g}; use a larger radius, or a smaller total."
            )
        if np.linalg.norm(w) <= radius * (1 + SLACK):
            return w.copy()
        logs = np.log(w / w.max()) - 40.0  # omega(t) = e^t to full accuracy for t <= -40: s starts at w

        def point(s: float) -> Array:
            return self.project_simplex(np.maximum(wrightomega(logs + s), TINY))

        root = decreasing_root(lambda s: float(np.linalg.norm(point(s))) - radius, 40.0, 1e18)
        return np.full_like(w, self.total / len(w)) if root is None else point(root)

    def prox_elastic_net(self, w: ArrayLike, l1: float, l2: float = 0.0) -> Array:
        """Not available: sum abs(u) is the same for all u of the simplex, and sum u^2 pulls them towards the centre."""
        raise ValueError(
            f"{self!r} supports no penalty: on the simplex sum abs(w) = {self.total:g} for all weights, and the "
            "entropy already keeps them away from 0. Use RelativeEntropy, whose sum is free, or choose total."
        )

    def smoothness(self, x_bound: float) -> float:
        """M = U x_bound^2 for max abs(x) <= x_bound.

        x'S x is U times the variance of x under the probabilities w/U, at most U (max x - min x)^2/4 (Hoeffding).
        """
        return self.total * check_bound(x_bound) ** 2

    def row_size(self, x: ArrayLike) -> float:
        """max abs(x)."""
        return float(np.abs(as_array(x)).max(initial=0.0))


@named("burg")
class Burg(EuclideanRows, SeparableDivergence):
    """Burg entropy, or Itakura-Saito distance, of positive weights: the Burg gradient algorithms.

    F(w) = -sum ln w,  f(w) = -1/w,  D(u, w) = sum u/w - ln(u/w) - 1,  S = diag w^2,  w(c) = w / (1 + c x w).

    Unlike the other potentials it bounds c: every 1 + c x_i w_i must stay positive, see `step_range`.

    References
    ----------
    JKD07, section 2, Algorithm 1; KB10, section 3.1, "Non-negative Linear Regression".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import Burg
    >>> burg = Burg()
    >>> burg.step(np.array([1.0, 2.0]), np.array([1.0, -1.0]), 0.25)
    array([0.8, 4. ])
    >>> burg.step_range(np.array([1.0, 2.0]), np.array([1.0, -1.0]))
    (-1.0, 0.5)
    """

    domain = "w > 0"
    lower: float = 0.0
    norm: float = 1.0
    _closed = False
    _remedy = "use positive weights, floor zeros at a small number"

    def potential(self, w: ArrayLike) -> float:
        return -float(np.log(self._in_domain(w)).sum())

    def mirror(self, w: ArrayLike) -> Array:
        return -1.0 / self._in_domain(w)

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        theta = as_array(theta)
        if not (theta < 0).all():
            i = int(np.argmin(theta < 0))
            raise ValueError(
                f"theta[{i}] = {theta[i]:g} is outside the dual domain theta < 0 of {self!r}; use a smaller step."
            )
        return -1.0 / theta

    def _between(self, u: Array, w: Array) -> float:
        gap = (u - w) / w
        # near -1 it is inaccurate, unlike u/w
        return float(np.where(np.abs(gap) < 0.5, log_gap(np.clip(gap, -0.5, 0.5)), gap - np.log(u) + np.log(w)).sum())

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        return as_array(w) ** 2 * as_array(x)

    def step(self, w: ArrayLike, x: ArrayLike, c: float) -> Array:
        w, x = as_array(w), as_array(x)
        scale = 1 + c * (x * w)
        if not (scale > 0).all():
            i, (low, high) = int(np.argmin(scale > 0)), self.step_range(w, x)
            raise ValueError(
                f"The step c = {c:g} leaves the domain {self.domain} of {self!r} at index {i}, where 1 + c x w = "
                f"{scale[i]:g}; c must lie between {low:g} and {high:g}: use the implicit update or a smaller "
                "learning rate."
            )
        return w / scale

    def step_range(self, w: ArrayLike, x: ArrayLike) -> tuple[float, float]:
        """Open interval of c with 1 + c x_i w_i > 0 for all i."""
        return pole_range(as_array(x) * as_array(w))

    def _path(self, w: Array, x: Array, sign: float) -> tuple[Callable[[float], Array], float, float]:
        way = towards_pole(x * w, sign)
        if way is None:
            return super()._path(w, x, sign)
        factors, speed = way
        return lambda s: w * factors(s), np.inf, speed

    def smoothness_below(self, x_bound: float, upper: float, move: float = 0.0) -> float:
        """M = v^2 x_bound^2 for norm_2(x) <= x_bound and the largest weight v, 1/v = 1/upper - move; else infinite."""
        if upper == np.inf:
            raise self._not_smooth()
        left = 1.0 - move * upper
        return (upper / left * check_bound(x_bound)) ** 2 if left > 0 else math.inf

    def _shrink(self, w: Array, mu: float) -> Array:
        """-1/u + mu u = -1/w: a quadratic equation."""
        return 2 * w / (1 + np.hypot(1.0, 2 * np.sqrt(mu) * w))


@named("binary_entropy")
class BinaryEntropy(EuclideanRows, SeparableDivergence):
    """Binary relative entropy of weights between 0 and 1.

    F(w) = sum w ln w + (1 - w) ln(1 - w),  f(w) = ln(w / (1 - w)),  S = diag w (1 - w),
    D(u, w) = sum u ln(u/w) + (1 - u) ln((1 - u)/(1 - w)),  w(c) = sigmoid(f(w) - c x).

    `u` may contain zeros and ones. Steps stop at the floats next to 0 and 1, as weights could never leave 0 or 1 again.

    References
    ----------
    W, "Dual divergence for Bernoulli".

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman.divergences import BinaryEntropy
    >>> BinaryEntropy().step(np.array([0.5]), np.array([np.log(3.0)]), -1.0).round(12)
    array([0.75])
    >>> round(BinaryEntropy().divergence([1.0], [0.5]), 12)  # ln 2
    0.69314718056
    """

    domain = "0 < w < 1"
    lower: float = 0.0
    upper: float = 1.0
    _remedy = "use weights strictly between 0 and 1, rescaled or clipped"

    def potential(self, w: ArrayLike) -> float:
        w = self._in_domain(w, closed=True)
        return float((xlogy(w, w) + xlogy(1 - w, 1 - w)).sum())

    def mirror(self, w: ArrayLike) -> Array:
        return logit(self._in_domain(w))

    def inverse_mirror(self, theta: ArrayLike) -> Array:
        return np.clip(expit(as_array(theta)), TINY, np.nextafter(1.0, 0.0))

    def _between(self, u: Array, w: Array) -> float:
        return float((entropy_gap(u, w) + entropy_gap(1 - u, 1 - w)).sum())

    def hessian_inverse(self, w: ArrayLike, x: ArrayLike) -> Array:
        w = as_array(w)
        return w * (1 - w) * as_array(x)

    def step(self, w: ArrayLike, x: ArrayLike, c: float) -> Array:
        return self.inverse_mirror(logit(as_array(w)) - c * as_array(x))

    def prox_elastic_net(self, w: ArrayLike, l1: float, l2: float = 0.0) -> Array:
        """argmin of D(u, w) + l1 sum u + l2 sum u^2/2 over u: u / (1 - u) = e^(-l1 - l2 u) w / (1 - w)."""
        w, half = self._in_domain(w), np.exp(-l1 / 2)  # in two halves: the product may be normal where e^-l1 is not
        return self._shrink_odds(w / (1 - w) * half * half, l2)

    def _shrink(self, w: Array, mu: float) -> Array:
        return self._shrink_odds(w / (1 - w), mu)

    def _shrink_odds(self, odds: Array, mu: float) -> Array:
        """u with u / (1 - u) = odds e^-s, s = mu u: Newton in s inside a bracket, as u next to 1 has few digits."""
        odds = np.maximum(odds, TINY)

        def point(s: ArrayLike) -> tuple[Array, Array]:  # u and 1 - u
            ratio = odds * np.exp(-as_array(s))
            rest = 1 / (1 + ratio)
            return np.where(ratio > 1, 1 - rest, ratio * rest), rest

        s = np.zeros_like(odds)
        if mu > 0:
            s = np.minimum(wrightomega(np.log(odds) + np.log(mu)), mu)  # where u is small or near 1, the root
            low, high, step = np.zeros_like(s), 2 * s, s
            for _ in range(200):
                u, rest = point(s)
                excess = s - mu * u
                low, high = np.where(excess < 0, s, low), np.where(excess > 0, s, high)
                newton = -excess / (1 + mu * u * rest)
                solved = np.abs(newton) <= 4 * EPS * s + TINY
                # half a bracket instead of steps that leave it or do not become shorter: Newton alone may go in circles
                good = (low < s + newton) & (s + newton < high) & (np.abs(newton) <= np.abs(step) / 2)
                step = np.where(solved, 0.0, np.where(good, newton, (low + high) / 2 - s))
                if solved.all():
                    break
                s = s + step
        u, rest = point(s)
        if mu > 0:
            u = np.where(s * rest > 1, s / mu, u)  # the better conditioned of two equal forms
        return np.clip(u, TINY, np.nextafter(1.0, 0.0))

    def default_start(self, n_features: int) -> Array:
        """1/2 for all weights, the minimum of F."""
        return np.full(n_features, 0.5)

    def smoothness(self, x_bound: float) -> float:
        """M = x_bound^2/4 for norm_2(x) <= x_bound, as x'S x = sum w (1 - w) x^2 and w (1 - w) <= 1/4."""
        return check_bound(x_bound) ** 2 / 4
