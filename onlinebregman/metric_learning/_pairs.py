"""Pairs and triplets from a stream of labelled rows, with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.matrices.neighbors import draw_triplets, renew_places
from .._online.types import MatrixLike
from ._memory import Reservoir, Uniforms, alike, draw
from ._targets import Targets

# Instances of one block, where nothing asks for fewer: of pairs, and of triplets, which are drawn without the lock.
_ROWS_A_BLOCK, _TRIPLETS_A_BLOCK = 256, 1024
# Distances to remembered rows, for the bounds, that each row adds.
_DISTANCES_A_ROW = 4
# Triplets join an anchor to one of this number of nearest rows of its class and one of that number of others.
_NEAREST_SIMILAR, _NEAREST_IMPOSTORS = 5, 5
# The metric in which rows are near is looked up after this number of rows, at first when the stream grew by a fifth.
_REFRESH_ROWS, _REFRESH_GROWTH = 50, 5


class Block(NamedTuple):
    """Instances to learn from, in their order: pairs as rows z of d values, or triplets as rows (p, q) of 2d.

    A pair is X = z z'. A triplet is X = p p' - q q', p the difference of the anchor to the row that should be farther.
    """

    rows: np.ndarray
    targets: np.ndarray  # squared distances, or margins
    senses: np.ndarray  # 1: similar, the target is an upper bound; -1: a lower one; 0: it is wanted as it is
    weights: np.ndarray
    scales: np.ndarray  # the squared distance that the rate is measured by
    numbers: np.ndarray  # of the rows, pairs or triplets of the call that they were made of


class Sampler:
    """Makes instances of labelled rows, each row against rows that came before it.

    What is drawn depends on the stream and on `rng`, not on how the stream is cut into calls.

    Parameters
    ----------
    n_features : int
        Width of the rows.
    memory_size : int
        Rows remembered of each class: a uniform sample.
    per_row : int
        Instances drawn for each row.
    targets : Targets
        What the instances are to reach.
    rng : Uniforms
        For the draws.
    """

    def __init__(self, n_features: int, memory_size: int, per_row: int, targets: Targets, rng: Uniforms) -> None:
        self.n_features = n_features
        self.memory = Reservoir(self._width(n_features), memory_size)
        self.per_row = per_row
        self.targets = targets
        self.rng = rng
        self.n_rows = 0
        self.labels: dict = {}  # label -> class number, in the order they come

    def copied(self) -> Sampler:
        """One that draws the same and changes nothing of this one."""
        other = alike(self)
        other.rng = self.rng.copied()
        other.memory, other.labels = self.memory.copied(), self.labels.copy()
        other.targets = self.targets.copied(other.rng)
        return other

    def _width(self, n_features: int) -> int:
        """Values remembered of a row."""
        return n_features

    def draw(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray, components: Callable[[], np.ndarray], *, again: bool
    ) -> Iterator[Block]:
        """Take in rows and yield what to learn from them, before the next is asked for.

        `components()` is the factor of the current metric. Rows that come `again` are not remembered twice. A row
        of weight 0 is left out.
        """
        raise NotImplementedError

    def _stream(self, X, y, weights) -> Iterator[tuple[int, np.ndarray, int, float]]:
        for i, (x, label, weight) in enumerate(zip(X, y.tolist(), weights.tolist(), strict=True)):
            if weight > 0:
                yield i, x.astype(np.float64, copy=False), self.labels.setdefault(label, len(self.labels)), weight
                self.n_rows += 1


class RandomPairs(Sampler):
    """Each row with remembered rows drawn at random, in turn of its own class and of another one."""

    def draw(self, X: MatrixLike, y: ArrayLike, weights, components, *, again):
        parts: list[Block] = []
        for i, x, number, weight in self._stream(X, y, weights):
            if not again and len(self.memory):
                self.targets.measure_pairs(x - self.memory.rows[draw(self.rng, len(self.memory), _DISTANCES_A_ROW)])
            bounds = self.targets.bounds
            if bounds is not None:
                parts.extend(self._pairs(i, x, number, weight, *bounds))
            if not again:
                self.memory.add(x, number, self.rng)
            if len(parts) >= _ROWS_A_BLOCK:
                yield _joined(parts)
                parts = []
        if parts:
            yield _joined(parts)

    def _pairs(self, i: int, x: np.ndarray, number: int, weight: float, near: float, far: float) -> Iterator[Block]:
        same, other = (np.flatnonzero(mask) for mask in (self.memory.classes == number, self.memory.classes != number))
        if len(same) and len(other):
            half = (self.per_row + 1) // 2
            partners = np.empty(2 * half, dtype=np.intp)
            partners[::2] = same[draw(self.rng, len(same), half)]
            partners[1::2] = other[draw(self.rng, len(other), half)]
            n = self.per_row
            yield Block(
                x - self.memory.rows[partners[:n]],
                np.tile([near, far], half)[:n],
                np.tile([1.0, -1.0], half)[:n],
                np.full(n, weight),
                np.full(n, far),
                np.full(n, i),
            )


class NeighborTriplets(Sampler):
    """A row, one of its nearest of its class, and one of its nearest of other classes, in the current metric.

    The nearest rows are what k-NN votes by. Beside each remembered row its place L x in the metric W = L'L is kept; L
    and all places are renewed every few rows, counted from the beginning of the stream.
    """

    def __init__(self, n_features, memory_size, per_row, targets: Targets, rng) -> None:
        super().__init__(n_features, memory_size, per_row, targets, rng)
        self.next_look = 0
        self.components: np.ndarray | None = None
        self.origin: np.ndarray | None = None

    def draw(self, X, y: np.ndarray, weights, components, *, again):
        (taken,) = weights.nonzero()
        if len(taken) < len(X):
            X, y, weights = X[taken], y[taken], weights[taken]
        X = np.ascontiguousarray(X, dtype=np.float64)
        labels = [self.labels.setdefault(label, len(self.labels)) for label in y.tolist()]
        numbers, start, many = np.array(labels, dtype=np.intp), 0, -(-_TRIPLETS_A_BLOCK // self.per_row)
        while start < len(X):
            if self.n_rows >= self.next_look:
                self._look(components(), X[start])
            part = slice(start, min(start + many, start + self.next_look - self.n_rows, len(X)))
            block = draw_triplets(
                self, X[part], numbers[part], weights[part], taken[part], _NEAREST_SIMILAR, _NEAREST_IMPOSTORS, again
            )
            self.n_rows += part.stop - start
            if len(block[0]):
                yield Block(*block)
            start = part.stop

    def _width(self, n_features: int) -> int:
        return 2 * n_features + 1

    def _look(self, components: np.ndarray, x: np.ndarray) -> None:
        """Renew the places of the remembered rows."""
        if self.origin is None:
            self.origin = x.copy()  # places around 0 keep their digits
        self.components = components
        self.memory.own()
        renew_places(self.memory.rows, self.origin, components)
        self.next_look = self.n_rows + min(max(self.n_rows // _REFRESH_GROWTH, 1), _REFRESH_ROWS)


SAMPLERS = {"random": RandomPairs, "neighbors": NeighborTriplets}


def _joined(blocks: list[Block]) -> Block:
    return Block(*map(np.concatenate, zip(*blocks, strict=True)))


def differences(X: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """X[first] - X[second], some rows at a time: large arrays in between would cost more than the steps do."""
    z = np.empty((len(first), X.shape[1]))
    for start in range(0, len(z), _ROWS_A_BLOCK):
        part = slice(start, start + _ROWS_A_BLOCK)
        np.subtract(X[first[part]], X[second[part]], out=z[part])
    return z
