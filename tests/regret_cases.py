"""Geometries, models and comparators of the regret tests."""

import numpy as np
import pytest
from raw import MirrorDescentRegressor
from replica import Cosh, own

from onlinebregman.divergences import BinaryEntropy, Burg, PNorm, RelativeEntropy, SimplexEntropy, SquaredEuclidean
from onlinebregman.losses import resolve_loss
from onlinebregman.schedules import Schedule


class Rising(Schedule):
    """Rates that increase, which no built-in schedule has."""

    def __init__(self):
        self.eta0 = 0.01

    def __call__(self, t):
        return self.eta0 * t**0.5


GEOMETRIES = {
    "squared_euclidean": (SquaredEuclidean(), False),
    "relative_entropy": (RelativeEntropy(), False),
    "simplex_entropy": (SimplexEntropy(1.5), False),
    "burg": (Burg(), False),
    "binary_entropy": (BinaryEntropy(), False),
    "p_norm": (PNorm(3.0), False),
    "signed relative_entropy": (RelativeEntropy(), True),
    "signed simplex_entropy": (SimplexEntropy(1.5), True),
    "own burg": (own(Burg)(), False),
    "own signed simplex": (own(SimplexEntropy)(1.5), True),
    "own cosh": (Cosh(), False),
}
MARGIN_LOSSES = ("hinge", "squared_hinge", "modified_huber")
geometries = pytest.mark.parametrize("geometry", GEOMETRIES)


def comparator(divergence, signed, rng, n):
    """A point of the domain: inside, near its boundary, or on it if the divergence is finite there."""
    edge = rng.choice([1.0, 1e-8, 0.0 if not isinstance(divergence, Burg) else 1e-8], size=n)
    if signed:
        u = rng.dirichlet(np.ones(n)) * rng.choice([-1.0, 1.0], size=n) * edge
        return u * rng.choice([1.0, 0.3]) * (divergence.total or 3.0)
    if isinstance(divergence, SimplexEntropy):
        u = (rng.dirichlet(np.ones(n)) + 1e-9) * np.where(edge.any(), edge, 1.0)
        return u * divergence.total / u.sum()
    if isinstance(divergence, BinaryEntropy):
        return rng.uniform(0.001, 0.999, size=n) * edge
    if isinstance(divergence, RelativeEntropy | Burg):
        return rng.gamma(1.0, 2.0, size=n) * edge + (1e-9 if isinstance(divergence, Burg) else 0.0)
    return 3.0 * rng.normal(size=n)


def model_of(geometry, loss, **parameters):
    divergence, signed = GEOMETRIES[geometry]
    return MirrorDescentRegressor(
        divergence=divergence, signed=signed, loss=resolve_loss(loss) if loss in MARGIN_LOSSES else loss, **parameters
    )
