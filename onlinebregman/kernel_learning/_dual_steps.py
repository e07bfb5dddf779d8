"""Steps along one constraint of DefiniteBoost's dual: the closed form behind Theorem 4.1, and the exact projection."""

from __future__ import annotations

import numpy as np

from .._kernels.matrices.von_neumann import VonNeumannGeometry
from ._instances import EPS, Array


def approximate_step(r: float, low: float, high: float, margin: float, lowest: float) -> tuple[float, float]:
    """Step along C that minimises the bound behind Theorem 4.1, not below `lowest`, and the logarithm of that bound.

    With r = tr(W C) and the eigenvalues of C in [low, high], tr exp(log W - step C) is at most

        ((high - r) exp(-step low) + (r - low) exp(-step high)) / (high - low),

    least at step = ln((1 - r / low) / (1 - r / high)) / (high - low). The interval is widened to hold 0 and r with a
    `margin` inside it, which keeps both finite for constraints that no W meets, or singular ones only.
    """
    margin = max(margin, 1e-12 * max(-low, high, abs(r)))  # bounds far beyond all eigenvalues
    low, high = min(low, -margin, r - margin), max(high, margin, r + margin)
    step = max((np.log1p(-r / low) - np.log1p(-r / high)) / (high - low), lowest)
    log_factor = np.logaddexp(np.log(high - r) - step * low, np.log(r - low) - step * high) - np.log(high - low)
    return float(step), float(log_factor)


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
