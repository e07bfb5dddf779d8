"""Numerics of the divergences: gaps of convex functions, accurate near equality, and a root finder."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

Array = NDArray[np.float64]

EPS = np.finfo(np.float64).eps
TINY = np.finfo(np.float64).tiny
SLACK = 1e-12  # points outside a ball by at most this relative distance count as inside, because of rounding


def as_array(w: ArrayLike) -> Array:
    """`w` as float64, not copied when it is float64 already."""
    return np.asarray(w, dtype=np.float64)


def power_gap(r: ArrayLike, a: float) -> Array:
    """(1 + r)^a - 1 - a r for r >= -1: the divergence of the power a, to full relative accuracy also near r = 0."""
    r = as_array(r)
    series = np.ones_like(r)
    small = np.clip(r, -0.1, 0.1)
    for k in range(18, 2, -1):  # binomial series, Horner's rule
        series = 1 + (a - k + 1) / k * small * series
    return np.where(np.abs(r) < 0.1, a * (a - 1) / 2 * small**2 * series, (1 + r) ** a - 1 - a * r)


def log_gap(r: ArrayLike) -> Array:
    """r - ln(1 + r) for r > -1, to full relative accuracy also near r = 0, where the difference cancels."""
    r = as_array(r)
    small = np.clip(r, -0.1, 0.1)
    s = small / (2 + small)  # ln(1 + r) = 2 artanh(s) and r - 2 s = r s
    series = np.zeros_like(r)
    for k in range(17, 1, -2):
        series = 1 / k + s**2 * series
    return np.where(np.abs(r) < 0.1, small * s - 2 * s**3 * series, r - np.log1p(r))


def entropy_gap(u: Array, w: Array) -> Array:
    """u ln(u/w) - u + w for u, w >= 0 with 0 ln 0 = 0, accurate near u = w; infinite where w = 0 < u."""
    near = np.abs(w - u) < 0.1 * u
    with np.errstate(divide="ignore"):
        # ln u - ln w, not ln(u/w): the quotient can overflow
        logs = np.where(u > 0, np.log(np.where(u > 0, u, 1.0)) - np.log(np.where(u > 0, w, 1.0)), 0.0)
    far = np.where(u > 0, u * logs, 0.0) - u + w
    return np.where(near, u * log_gap(np.where(near, (w - u) / np.where(near, u, 1.0), 0.0)), far)


def decreasing_root(fun: Callable[[float], float], guess: float, limit: float = np.inf) -> float | None:
    """Root on [0, limit) of a decreasing function that is >= 0 at 0; None when it stays positive.

    `guess` is the first trial; from there the bracket doubles, or halves what is left before `limit`.
    """
    if fun(0.0) <= 0:
        return 0.0
    low, high = 0.0, min(max(guess, TINY), 1e150, limit / 2)
    for _ in range(400):
        if fun(high) <= 0:
            return brentq(fun, low, high, xtol=TINY, rtol=4 * EPS, maxiter=1000)
        low, high = high, 2 * high if high < limit / 4 else (high + limit) / 2
        if not np.isfinite(high) or high >= limit * (1 - 4 * EPS):
            break
    return None


def pole_range(mu: Array) -> tuple[float, float]:
    """Open interval of the c with 1 + c mu > 0 for all mu."""
    most, least = float(mu.max(initial=0.0)), float(mu.min(initial=0.0))
    return (-1 / most if most > 0 else -np.inf), (-1 / least if least < 0 else np.inf)


def towards_pole(mu: Array, sign: float) -> tuple[Callable[[float], Array], float] | None:
    """1 / (1 + c mu) for c of this sign as a function of s >= 0, and d|c|/ds at 0; None without a pole.

    The pole is -1 / p with p the extreme mu, and c = -s / ((1 + s) p): near the pole s is accurate, c itself is not.
    """
    end = pole_range(mu)[1 if sign > 0 else 0]
    if not np.isfinite(end):
        return None
    largest = mu.min() if sign > 0 else mu.max()
    rest = (largest - mu) / largest
    return lambda s: (1 + s) / (1 + s * rest), abs(end)


def check_total(total: float) -> float:
    """`total` of a simplex as a float; ValueError unless positive and finite."""
    total = float(total)
    if not 0 < total < np.inf:
        raise ValueError(f"total must be a positive finite number; got {total:g}. Use total=1.0 for probabilities.")
    return total


def check_radius(radius: float) -> float:
    """`radius` of a ball as a float; ValueError unless positive and finite."""
    radius = float(radius)
    if not 0 < radius < np.inf:
        raise ValueError(f"radius must be a positive finite number; got {radius:g}. Omit the constraint for no bound.")
    return radius


def check_bound(x_bound: float) -> float:
    """A bound on the size of rows as a float; ValueError unless finite and not negative."""
    x_bound = float(x_bound)
    if not 0 <= x_bound < np.inf:
        raise ValueError(f"x_bound must be a finite number >= 0, the largest row_size(x); got {x_bound:g}.")
    return x_bound


def check_box(lower: ArrayLike, upper: ArrayLike, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Both ends of a box as arrays of `shape`; ValueError unless lower <= upper everywhere."""
    for name, end in (("lower", lower), ("upper", upper)):
        if np.shape(end) not in ((), shape):
            raise ValueError(
                f"The {name} end of the box has shape {np.shape(end)}, the weights have shape {shape}; "
                "give a number, or one for each weight."
            )
    low, high = np.broadcast_to(as_array(lower), shape), np.broadcast_to(as_array(upper), shape)
    if not (low <= high).all():
        i = int(np.argmin(low <= high))
        raise ValueError(f"The box is empty at index {i}: lower = {low[i]:g}, upper = {high[i]:g}; use lower <= upper.")
    return low, high
