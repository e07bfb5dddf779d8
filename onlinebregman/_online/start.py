"""Where weights start: a checked point of the divergence's domain."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..divergences import Divergence
from .validation import check_finite


def starting_weights(
    divergence: Divergence, init: ArrayLike | float | None, n_features: int, signed: bool = False, name: str = "init"
) -> np.ndarray:
    """`init` as a checked point of the divergence's domain; by default the one that prefers no feature.

    Signed weights come as w+ and w-, one after the other: the halves of `init`, and what is left of the simplex, or
    1 / 2n, added to both.
    """
    total = divergence.total
    if signed:
        weights = _vector(init, n_features, 0.0, name)
        room = 1.0
        if total is not None:
            with np.errstate(over="ignore"):
                room = total - np.abs(weights).sum()
            if abs(room) <= 1e-10 * total:  # up to rounding, all of it
                room = 0.0
            if not room >= 0 or (room == 0 and name == "init"):
                raise ValueError(
                    f"The absolute values of {name} sum to {total - room:g}, which leaves nothing of "
                    f"total={total:g} for the other signs; use a larger total."
                )
        spread = room / (2 * n_features)  # what w+ and w- have beyond init, each
        return np.r_[np.maximum(weights, 0) + spread, np.maximum(-weights, 0) + spread]
    if init is None:
        return divergence.default_start(n_features)
    weights = _vector(init, n_features, None, name)
    lower, upper = divergence.lower, divergence.upper
    outside = ~((weights > lower) & (weights < upper)) if name == "init" else ~((weights >= lower) & (weights <= upper))
    if outside.any():
        worst = int(np.argmax(outside))
        limits = f"> {lower:g}" if upper == np.inf else f"between {lower:g} and {upper:g}"
        raise ValueError(f"{name} must be {limits} for this estimator; got {name}[{worst}] = {weights[worst]:g}.")
    if total is None:
        return weights
    with np.errstate(over="ignore"):
        size = weights.sum()
    if not np.isclose(size, total, rtol=1e-6, atol=0.0):
        raise ValueError(
            f"{name} sums to {size:g}, but weights on the simplex sum to total={total:g}; "
            f"scale {name} by {total / size:g}, or set total to its sum."
        )
    return weights * (total / size)


def _vector(values, n_features: int, default: float | None, name: str) -> np.ndarray:
    """A finite vector, one number a feature, from a vector, a number for all features, or None for the default."""
    weights = np.asarray(default if values is None else values, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_features, float(weights))
    if weights.shape != (n_features,):
        raise ValueError(
            f"{name} has shape {weights.shape}, but X has {n_features} features; give one weight per feature."
        )
    check_finite(weights, name)
    return weights
