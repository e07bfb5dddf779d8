"""Steps along one constraint of DefiniteBoost's dual: the exact projection."""

from __future__ import annotations

import numpy as np

from .._kernels.matrices.von_neumann import VonNeumannGeometry
from ._instances import EPS, Array


def exact_step(
    geometry: VonNeumannGeometry,
    x: Array,
    sign: float,
    target: float,
    low: float,
    high: float,
    guess: float,
    scale: float,
    enough: float = -np.inf,
) -> float:
    """Root c of target - tr(W(c) X) between low and high, X = sign x, by safeguarded Newton.

    The function increases; it has to be negative at `low` and positive at `high`, which may be infinite. The residual
    is at most 1e-12 `scale`, save for what rounding G does to tr(W X). The search also ends when ln tr exp(G - c X) +
    c target, the dual objective of the projection, is below `enough`.
    """
    c, rounding = guess, 4 * EPS * abs(geometry.log_values[0])
    for _ in range(200):
        value, slope, grown = geometry.evaluate_row(x, sign * c)
        excess = target - sign * value
        if abs(excess) <= max(1e-12 * scale, rounding * np.sqrt(slope)) or grown + c * target < enough:
            break
        low, high = (low, c) if excess > 0 else (c, high)
        newton = c - excess / slope if slope > 0 else np.inf
        if high == np.inf:
            newton = min(newton, c + 4 * max(abs(c), abs(guess)))
        if not low < newton < high:
            newton = low + (high - low) / 2
            if not low < newton < high:
                break
        c = newton
    return c
