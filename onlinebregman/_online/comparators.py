"""Sets of comparators, and the largest value of a linear function on them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from ..constraints import Constraint
from ..divergences import Divergence
from ..divergences._numerics import check_radius

Array = NDArray[np.float64]


class Comparators(NamedTuple):
    """The u with lower <= u <= upper, sum u = total and norm_order(u) <= radius; for matrices, those of eigenvalues u.

    `support` minimises the dual function of the last two conditions, whose values all are upper bounds: by weak duality
    an inexact minimum is an upper bound, too.
    """

    lower: float | Array
    upper: float | Array
    total: float | None
    order: float
    radius: float = np.inf

    @classmethod
    def of(cls, divergence: Divergence, constraint: Constraint | None) -> Self:
        """The vectors of the closed domain within a constraint, as far as the constraint knows its bounds."""
        if constraint is None:
            return cls(divergence.lower, divergence.upper, divergence.total, divergence.norm)
        order, radius = constraint.ball or (divergence.norm, np.inf)
        lower = np.maximum(divergence.lower, constraint.lower)
        upper = np.minimum(divergence.upper, constraint.upper)
        total = divergence.total if constraint.total is None else constraint.total
        return cls(lower, upper, total, order, radius)

    @property
    def bounded(self) -> bool:
        """Whether the set is bounded, so that every linear function has a maximum."""
        below = bool(np.isfinite(self.lower).all())
        above = self.total is not None or bool(np.isfinite(self.upper).all())
        return self.radius < np.inf or (below and above)

    def within(self, radius: float | None) -> Self:
        """The set within a ball of this radius, if it has none of its own."""
        if radius is None:
            return self
        if self.bounded:
            raise ValueError(
                f"radius is for comparators without bounds, but those of this run are bounded; omit it (got {radius})."
            )
        return self._replace(radius=check_radius(radius))

    def support(self, g: Array) -> float:
        """The largest sum u g, the support function of the set; infinite if the set is unbounded in this direction.

        For a symmetric matrix g it is the largest tr(U g): the two have common eigenvectors (von Neumann).
        """
        if g.ndim == 2:
            g = np.asarray(np.linalg.eigvalsh(g), dtype=np.float64)
        low, high = (np.broadcast_to(end, g.shape).astype(np.float64) for end in (self.lower, self.upper))
        if self.total is None:
            return self._in_ball(g, low, high)
        total = self.total

        def relaxed(mu: float) -> float:
            return mu * total + self._in_ball(g - mu, low, high)

        if self.radius == np.inf:
            return _least(relaxed, np.unique(g))
        top, width = float(g.max()), float(np.ptp(g)) or 1.0
        while relaxed(top - 2 * width) < relaxed(top - width) and width < 1e100:
            width *= 2
        return min(relaxed(top), _minimum(relaxed, top - 2 * width, top))

    def _in_ball(self, g: Array, low: Array, high: Array) -> float:
        """The largest sum u g over a box within the ball."""
        if self.radius == np.inf:
            return _in_box(g, low, high)
        q, size = self.order, float(np.abs(g).max(initial=0.0))
        if size == 0:
            return 0.0
        g = g / size
        if (low == -np.inf).all() and (high == np.inf).all():
            return size * self.radius * float(np.linalg.norm(g, np.inf if q == 1 else q / (q - 1)))
        if q == 1:
            return size * _least(
                lambda mu: mu * self.radius + _shrunk(g, mu, low, high), np.unique(np.r_[0, np.abs(g)])
            )

        def relaxed(log_mu: float) -> float:
            mu = np.exp(log_mu)  # of norm_q(u)^q / q <= radius^q / q, for u in units of the radius
            with np.errstate(over="ignore", invalid="ignore"):
                u = np.clip(np.sign(g) * (np.abs(g) / mu) ** (1 / (q - 1)), low / self.radius, high / self.radius)
                value = mu / q + float((g * u - mu * np.abs(u) ** q / q).sum())
            return np.inf if np.isnan(value) else value

        least = min(_in_box(g, low, high) / self.radius, _minimum(relaxed, -50.0, 50.0))
        return size * self.radius * least


def _in_box(g: Array, low: Array, high: Array) -> float:
    """The largest sum u g over low <= u <= high."""
    return float(np.maximum(_product(low, g), _product(high, g)).sum())


def _shrunk(g: Array, mu: float, low: Array, high: Array) -> float:
    """The largest sum of u g - mu abs(u) over low <= u <= high, which is attained at an end or at 0."""
    ends = np.maximum(_product(low, g - mu * np.sign(low)), _product(high, g - mu * np.sign(high)))
    return float(np.where((low <= 0) & (high >= 0), np.maximum(ends, 0.0), ends).sum())


def _product(u: Array, g: Array) -> Array:
    """u g, with 0 for an infinite u times 0."""
    return np.multiply(u, g, out=np.zeros_like(g), where=(g != 0) & (u != 0))


def _least(function: Callable[[float], float], corners: Array) -> float:
    """The minimum of a convex function that is linear between corners, and not infinite at the last."""

    def no_longer_falls(place: int) -> bool:
        here = function(corners[place])
        return not (here > function(corners[place + 1]) or here == np.inf)

    return function(corners[bisect_left(range(len(corners) - 1), True, key=no_longer_falls)])


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of a function that first falls and then rises."""
    found = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": 1e-12, "maxiter": 500})
    return float(found.fun)


def split(coef: Array, divergence: Divergence, constraint: Constraint | None) -> Array | None:
    """Some w+ followed by w- with coef = w+ - w-, both >= 0, that satisfy the constraint; None if none is known.

    The smaller of w+_i and w-_i is 1 / 2n, or what fills up the total, if the constraint allows it; otherwise the point
    of that total nearest to 0 is taken.
    """
    n = len(coef)
    low: float | Array = 0.0
    high: float | Array = divergence.upper
    total = divergence.total
    if constraint is not None:
        low, high = np.maximum(low, constraint.lower), np.minimum(high, constraint.upper)
        total = total if constraint.total is None else constraint.total
    low, high = np.broadcast_to(low, 2 * n), np.broadcast_to(high, 2 * n)
    least = np.maximum(low[n:], low[:n] - coef)  # bounds on w-
    most = np.maximum(np.minimum(high[n:], high[:n] - coef), least)

    def beyond(level: float) -> Array:  # w- for which w+ + w- = level, within its bounds
        return np.clip((level - coef) / 2, least, most)

    def contains(minus: Array) -> bool:
        return constraint is None or constraint.contains(np.r_[coef + minus, minus])

    rest = 1.0 if total is None else total - np.abs(coef).sum()
    minus = np.maximum(-coef, 0) + rest / (2 * n)
    outside = (minus < least).any() or (minus > most).any() or not contains(minus)
    minus = np.clip(minus, least, most)
    if total is not None and outside:
        ends = float((coef + 2 * least).min()), float(2 * total + np.abs(coef).max())
        sums = [float((coef + 2 * beyond(end)).sum()) - total for end in ends]
        if sums[0] >= 0 or sums[1] <= 0:
            minus = beyond(ends[sums[0] < 0])
            if abs((coef + 2 * minus).sum() - total) > 1e-10 * total:
                return None
        else:
            minus = beyond(brentq(lambda level: float((coef + 2 * beyond(level)).sum()) - total, *ends, xtol=1e-300))
    elif outside and not contains(minus) and contains(least):
        reached, missed = 0.0, 1.0  # bisection for the largest fraction that the constraint allows
        for _ in range(60):
            middle = (reached + missed) / 2
            if contains(least + middle * (minus - least)):
                reached = middle
            else:
                missed = middle
        minus = least + reached * (minus - least)
    return np.r_[coef + minus, minus] if contains(minus) else None
