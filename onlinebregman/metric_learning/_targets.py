"""Which squared distances pairs and triplets are to have: given, or measured on the stream in the prior metric."""

from __future__ import annotations

import numpy as np

from ._memory import RunningSample, Uniforms, alike

# Numbers are measured again when the stream has grown by this factor.
_REFRESH = 1.1


class Percentiles:
    """Percentiles of squared distances, of a running sample; or numbers that are given.

    Parameters
    ----------
    given : float, tuple of float or None
        The numbers; None to measure them.
    percents : list of float
        Which percentiles.
    least : int
        Distances wanted before the first look.
    """

    def __init__(self, given, percents: list[float], least: int) -> None:
        self.measured = given is None
        self.values = None if given is None else [float(value) for value in np.atleast_1d(given)]
        self.percents = percents
        self.least = least
        self.next_look = 0.0
        self.sample = RunningSample()

    def copied(self) -> Percentiles:
        """One of its own."""
        other = alike(self)
        other.sample = self.sample.copied()
        return other

    def add(self, distances: np.ndarray, rng: Uniforms) -> None:
        """Take in distances; look at the sample now and then, by how many there have been."""
        self.sample.add(distances, rng)
        if self.sample.seen >= max(self.next_look, self.least):
            self.look()

    def look(self) -> None:
        """Look at the sample."""
        values = self.sample.percentiles(self.percents)
        if values[-1] > 0:
            self.values = values
        self.next_look = _REFRESH * self.sample.seen


class Targets:
    """The current targets: bounds for pairs, a margin for triplets.

    Parameters
    ----------
    prior : ndarray of shape (n_features, n_features)
        Metric in which distances are measured.
    bounds : tuple of (float, float) or None
        Squared distances for the same class and for different ones. None: the 5th and the 95th percentile of all.
    margin : float or None
        How much farther, squared, the dissimilar row of a triplet should be. None: the median squared distance to the
        similar one.
    rng : Uniforms
        For the samples.
    """

    def __init__(self, prior: np.ndarray, bounds, margin, rng: Uniforms) -> None:
        self._prior = None if np.array_equal(prior, np.eye(len(prior))) else prior
        self._bounds = Percentiles(bounds, [5, 95], least=2)
        self._margin = Percentiles(margin, [50], least=1)
        self._rng = rng

    def copied(self, rng: Uniforms) -> Targets:
        """Those of a sampler's copy, with its generator."""
        other = alike(self)
        other._bounds, other._margin, other._rng = self._bounds.copied(), self._margin.copied(), rng
        return other

    def _squared(self, z: np.ndarray) -> np.ndarray:
        # row by row the same digits, however many rows there are
        return np.einsum("ij,ij->i", z if self._prior is None else np.einsum("ij,jk->ik", z, self._prior), z)

    def measure_pairs(self, z: np.ndarray) -> None:
        """Take in differences z of pairs of any rows."""
        if self._bounds.measured:
            self._bounds.add(self._squared(z), self._rng)

    def measure_similar(self, z: np.ndarray) -> None:
        """Take in differences z of anchors and similar rows."""
        if self._margin.measured and len(z):
            self._margin.add(self._squared(z), self._rng)

    @property
    def prior(self) -> np.ndarray | None:
        """The metric in which distances are measured; None for the identity."""
        return self._prior

    @property
    def margins(self) -> Percentiles:
        """What the margin is, of squared distances to similar rows."""
        return self._margin

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Target squared distances, near and far; None before they are known."""
        if self._bounds.values is None:
            return None
        near, far = self._bounds.values
        return near, far

    @property
    def margin(self) -> float | None:
        """The margin; None before it is known."""
        return None if self._margin.values is None else self._margin.values[0]
