"""Pairs from a stream of labelled rows, with bounded memory."""

from __future__ import annotations

import numpy as np

# Distances wanted before the first target is set, kept for setting it, and added by each row.
_FIRST_DISTANCES, _KEPT_DISTANCES, _DISTANCES_A_ROW = 10, 1000, 4
# The targets are set again when the stream has grown by this factor.
_REFRESH = 1.1


class PairSampler:
    """Draws pairs of rows of the same class and of different classes, and their target distances.

    Each row is paired with rows that came before it, drawn from a reservoir: a uniform sample of at most `memory_size`
    rows of each class. The targets are the 5th and 95th percentile of squared distances in the prior metric, from a
    uniform sample of pairs. What is drawn depends on the stream and the seed alone, not on how the stream is cut.

    Parameters
    ----------
    prior : ndarray of shape (n_features, n_features)
        Metric in which the targets are measured.
    memory_size : int
        Rows kept of each class.
    pairs_per_row : int
        Pairs drawn for each row, half of them of the same class.
    bounds : tuple of (float, float) or None
        Targets for the same and for different classes; None to take them from the stream.
    seed : int
        For the draws.
    """

    def __init__(self, prior, memory_size, pairs_per_row, bounds, seed) -> None:
        self.prior = None if np.array_equal(prior, np.eye(len(prior))) else prior
        self.memory_size = memory_size
        self.pairs_per_row = pairs_per_row
        self.bounds = bounds
        self.estimate = bounds is None
        self.rng = np.random.RandomState(seed)
        self.n_rows = 0
        self.next_refresh = 0.0
        self.distances = np.empty(0)
        self.n_distances = 0
        self.rows = np.empty((0, len(prior)))
        self.classes = np.empty(0, dtype=np.intp)  # of each remembered row
        self.labels: dict = {}  # label -> class number
        self.seen: list[int] = []  # rows seen of each class

    def draw(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, ...]:
        """Take in rows; return the pairs' differences, targets and weights, and the larger target of the moment.

        A pair has the weight of the row it was drawn for; a row of weight 0 is left out.
        """
        differences, targets, scales, pair_weights = [], [], [], []
        for x, label, weight in zip(X.astype(np.float64, copy=False), y.tolist(), weights.tolist(), strict=True):
            if weight == 0:
                continue
            number = self.labels.setdefault(label, len(self.labels))
            if number == len(self.seen):
                self.seen.append(0)
            if self.estimate:
                self._measure(x)
            if self.bounds is not None:
                z, target = self._pair(x, number)
                differences.append(z)
                targets.append(target)
                pair_weights.append(np.full(len(z), weight))
                scales.append(np.full(len(z), max(self.bounds)))
            self._remember(x, number)
            self.n_rows += 1
        if not differences:
            return np.empty((0, X.shape[1])), np.empty(0), np.empty(0), np.empty(0)
        return tuple(map(np.concatenate, (differences, targets, pair_weights, scales)))

    def _pair(self, x: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Differences to remembered rows, in turn of the same and of another class."""
        same, other = (np.flatnonzero(mask) for mask in (self.classes == number, self.classes != number))
        if not (len(same) and len(other)):
            return np.empty((0, len(x))), np.empty(0)
        half = (self.pairs_per_row + 1) // 2
        partners = np.empty(2 * half, dtype=np.intp)
        partners[::2] = same[self.rng.randint(len(same), size=half)]
        partners[1::2] = other[self.rng.randint(len(other), size=half)]
        partners = partners[: self.pairs_per_row]
        return x - self.rows[partners], np.tile(self.bounds, half)[: self.pairs_per_row]

    def _remember(self, x: np.ndarray, number: int) -> None:
        """Reservoir sampling, class by class."""
        self.seen[number] += 1
        if self.seen[number] <= self.memory_size:
            self.rows = np.concatenate([self.rows, x[None]])
            self.classes = np.append(self.classes, number)
        elif (slot := self.rng.randint(self.seen[number])) < self.memory_size:
            self.rows[np.flatnonzero(self.classes == number)[slot]] = x

    def _measure(self, x: np.ndarray) -> None:
        """Add distances from x to remembered rows to a reservoir of distances; set the targets now and then."""
        if len(self.rows):
            z = x - self.rows[self.rng.randint(len(self.rows), size=_DISTANCES_A_ROW)]
            for distance in np.einsum("ij,ij->i", z if self.prior is None else z @ self.prior, z):
                self.n_distances += 1
                if self.n_distances <= _KEPT_DISTANCES:
                    self.distances = np.append(self.distances, distance)
                elif (slot := self.rng.randint(self.n_distances)) < _KEPT_DISTANCES:
                    self.distances[slot] = distance
        if self.n_rows >= self.next_refresh and len(self.distances) >= _FIRST_DISTANCES:
            near, far = np.percentile(self.distances, [5, 95])
            self.bounds = (float(near), float(far)) if far > 0 else None
            self.next_refresh = _REFRESH * self.n_rows
