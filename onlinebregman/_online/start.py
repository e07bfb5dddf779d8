"""Initial weights: a validated point of the divergence's domain."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..divergences import Divergence
from .validation import check_finite


def starting_weights(
    divergence: Divergence, init: ArrayLike | float | None, n_features: int, signed: bool = False, name: str = "init"
) -> np.ndarray:
    """`init` as a validated point of the divergence's domain; by default one with equal weights.

    Signed weights are w+ followed by w-: the positive and negative parts of `init`, with the same number added to all
    of them. On the simplex that number fills up the total; otherwise it is 1 / 2n.
    """
    total = divergence.total
    inside = name in ("init", "coef_init")  # learning cannot start from the edge of the domain
    if signed:
        weights = _vector(init, n_features, 0.0, name)
        rest = 1.0
        if total is not None:
            with np.errstate(over="ignore"):
                rest = total - np.abs(weights).sum()
            if abs(rest) <= 1e-10 * total:  # 0 up to rounding
                rest = 0.0
            if not rest >= 0 or (rest == 0 and inside):
                limit = "less than" if inside else "at most"
                raise ValueError(
                    f"The absolute values of {name} must sum to {limit} total={total:g}, as w+ and w- together sum to "
                    f"the total; got {total - rest:g}. Use a larger total."
                )
        spread = rest / (2 * n_features)
        return np.r_[np.maximum(weights, 0) + spread, np.maximum(-weights, 0) + spread]
    if init is None:
        return divergence.default_start(n_features)
    weights = _vector(init, n_features, None, name)
    lower, upper = divergence.lower, divergence.upper
    outside = ~((weights > lower) & (weights < upper)) if inside else ~((weights >= lower) & (weights <= upper))
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
            f"{name} must sum to total={total:g}; got a sum of {size:g}. Scale {name} by {total / size:g}, or set "
            "total to its sum."
        )
    return weights * (total / size)


def check_start(values: ArrayLike, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Finite weights or intercepts of this shape, one row for each output; one output needs no axis of its own."""
    values = np.asarray(values, dtype=np.float64)
    if values.shape != shape and not (shape[0] == 1 and values.shape == shape[1:]):
        raise ValueError(f"Provided {name} does not match dataset: its shape must be {shape}; got {values.shape}.")
    check_finite(values, name)
    return values.reshape(shape)


def _vector(values, n_features: int, default: float | None, name: str) -> np.ndarray:
    """A finite vector of one number for each feature, from a vector, one number for all, or None for the default."""
    weights = np.asarray(default if values is None else values, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_features, float(weights))
    if weights.shape != (n_features,):
        raise ValueError(
            f"{name} must have one weight for each of the {n_features} features; got shape {weights.shape}."
        )
    check_finite(weights, name)
    return weights
