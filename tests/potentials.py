"""Potentials for tests: those of the package for vectors, and one of a user's own; steps inside their ranges."""

import numpy as np

from onlinebregman.divergences import (
    BinaryEntropy,
    Burg,
    PNorm,
    RelativeEntropy,
    SeparableDivergence,
    SimplexEntropy,
    SquaredEuclidean,
)


class HyperbolicEntropy(SeparableDivergence):
    """A user-defined potential, which uses only generic methods: f = arcsinh(w / beta)."""

    def __init__(self, beta=1.0):
        self.beta = beta

    def potential(self, w):
        return float((w * np.arcsinh(w / self.beta) - np.hypot(w, self.beta)).sum())

    def mirror(self, w):
        return np.arcsinh(w / self.beta)

    def inverse_mirror(self, theta):
        return self.beta * np.sinh(theta)


BUILT_IN = [
    SquaredEuclidean(),
    RelativeEntropy(),
    SimplexEntropy(),
    SimplexEntropy(total=2.5),
    Burg(),
    PNorm(p=2.0),
    PNorm(p=3.0),
    PNorm(p=7.5),
    BinaryEntropy(),
]


def inside_range(div, w, x, fraction):
    """A c within the step range (cut to 2), at a fraction in (-1, 1) of the way to its end."""
    low, high = div.step_range(w, x)
    return fraction * min(2.0, high) if fraction > 0 else fraction * min(2.0, -low)
