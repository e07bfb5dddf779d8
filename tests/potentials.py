"""Potentials for tests: those of the package, and one of a user's own; points of their domains, steps inside them."""

import numpy as np
from hypothesis import strategies as st
from scipy.special import expit

from onlinebregman.divergences import (
    BinaryEntropy,
    Burg,
    LogDet,
    PNorm,
    RelativeEntropy,
    SeparableDivergence,
    SimplexEntropy,
    SquaredEuclidean,
    SquaredFrobenius,
    VonNeumann,
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


MATRICES = [SquaredFrobenius(), VonNeumann(), VonNeumann(trace=1.0), VonNeumann(trace=2.5), LogDet()]


@st.composite
def vectors(draw, count, most=3.0):
    """`count` vectors of one length, of hundredths up to `most`, zeros among them."""
    n, size = draw(st.integers(1, 6)), round(100 * most)
    hundredths = st.lists(st.integers(-size, size).map(lambda k: k / 100), min_size=n, max_size=n)
    return [np.array(draw(hundredths)) for _ in range(count)]


@st.composite
def matrices(draw, count, n_vectors=0):
    """`count` symmetric matrices of one size and spectra about -3 to 3, then `n_vectors` vectors of that size."""
    d = draw(st.integers(1, 4))
    hundredths, out = st.integers(-200, 200).map(lambda k: k / 100), []
    for _ in range(count):
        raw = np.array(draw(st.lists(hundredths, min_size=d * d, max_size=d * d))).reshape(d, d)
        out.append((raw + raw.T) / 2 / np.sqrt(d))
    return out + [np.array(draw(st.lists(hundredths, min_size=d, max_size=d))) for _ in range(n_vectors)]


def exponential(raw):
    values, vectors = np.linalg.eigh(raw)
    w = (vectors * np.exp(values)) @ vectors.T
    return (w + w.T) / 2


def into_domain(div, raw):
    """A point of the domain from any vector or symmetric matrix."""
    if isinstance(div, SimplexEntropy):
        return div.total * np.exp(raw) / np.exp(raw).sum()
    if isinstance(div, VonNeumann | LogDet):
        w = exponential(raw)
        return w if getattr(div, "trace", None) is None else w * (div.trace / np.trace(w))
    if isinstance(div, SquaredFrobenius):
        return raw
    return expit(raw) if div.upper == 1 else np.exp(raw) if div.lower == 0 else raw


def inside_range(div, w, x, fraction):
    """A c within the step range (cut to 2), at a fraction in (-1, 1) of the way to its end."""
    low, high = div.step_range(w, x)
    return fraction * min(2.0, high) if fraction > 0 else fraction * min(2.0, -low)
