"""A finite domain and its features: the search for rows, and expectations without a second copy of the features."""

from __future__ import annotations

from functools import cached_property

import numpy as np

_BLOCK = 65_536  # numbers processed at once, which fit into the cache


class RowIndex:
    """Finds rows among the points of a domain by their hash values; 16 bytes per point."""

    def __init__(self, points: np.ndarray) -> None:
        keys = row_keys(points)
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def find(self, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Number of the first point that equals each row; -1 where there is none."""
        sought, found = row_keys(rows), np.full(len(rows), -1, dtype=np.intp)
        at, left = np.searchsorted(self.keys, sought), np.arange(len(rows))
        while left.size:  # points may share a hash value: look at the next one
            left = left[at[left] < len(self.keys)]
            left = left[self.keys[at[left]] == sought[left]]
            numbers = self.order[at[left]]
            same = (points[numbers] == rows[left]).all(axis=1)
            found[left[same]] = numbers[same]
            left = left[~same]
            at[left] += 1
        return found


def row_keys(rows: np.ndarray) -> np.ndarray:
    """A 64-bit hash value of each row, shape (n_rows,)."""
    keys = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        keys ^= (column + 0.0).astype(np.float64).view(np.uint64)  # -0.0 equals 0.0
        keys *= np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys


def distinct(rows: np.ndarray) -> np.ndarray:
    """The distinct rows, by sorting hash values: numpy.unique would sort rows, and hold the GIL."""
    return rows[np.unique(RowIndex(rows).find(rows, rows))]


class Features:
    """Features of all points, scaled to [0, 1] a block at a time, on the support that observations leave.

    If all observations of a feature are at its smallest (or largest) value, no finite multipliers have the observed
    expectations. The optimum of the closure then has probability 0 wherever the feature is larger (smaller): these
    points are removed from the support, and the feature's multiplier is -inf (inf), as `limits` indicates.
    """

    def __init__(self, values: np.ndarray, seen: tuple[np.ndarray, np.ndarray] | None) -> None:
        """`seen`: smallest and largest observed values; None: the support is the whole domain."""
        self.values, self.seen = values, seen
        low, high = values.min(axis=0), values.max(axis=0)
        self.low = low.astype(np.float64)
        with np.errstate(over="ignore"):
            self.span = high.astype(np.float64) - self.low
        sound = (self.span == 0) | ((self.span > 1e-290) & (self.span < np.inf))
        if not sound.all():
            bad = int(np.argmin(sound))
            raise ValueError(
                f"Feature {bad} runs from {low[bad]:g} to {high[bad]:g}: its range over- or underflows; scale it."
            )
        self._per_span = np.divide(1.0, self.span, out=np.zeros_like(self.span), where=self.span > 0)
        self._size = max(_BLOCK // values.shape[1], 64)
        self.limits = np.zeros(values.shape[1])
        self.support: np.ndarray | None = None
        while seen is not None:
            at = np.where((seen[1] == low) & (high > low), -1.0, np.where((seen[0] == high) & (high > low), 1.0, 0.0))
            if not at.any():
                break
            self.limits += at
            support = np.ones(len(values), dtype=bool) if self.support is None else self.support
            for j in np.flatnonzero(at):
                support &= values[:, j] == seen[0][j]
            self.support = support
            # on the smaller support another feature may be at an end of its range
            left = (values[support, j] for j in range(values.shape[1]))  # column by column
            low, high = np.array([(column.min(), column.max()) for column in left]).T
        self.free = (self.limits == 0) & (self.span > 0)

    def are(self, values: np.ndarray, seen: tuple[np.ndarray, np.ndarray] | None) -> bool:
        """Whether these are the features for these arguments."""
        if values is not self.values:
            return False
        if self.seen is None or seen is None or self.seen is seen:
            return self.seen is seen
        return all(map(np.array_equal, self.seen, seen))

    def scale(self, expectations: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Expectations of the scaled features, from those of the features minus an origin."""
        # numpy.clip takes several times as long for a few
        return np.minimum(np.maximum((expectations + (origin - self.low)) * self._per_span, 0.0), 1.0)

    @cached_property
    def log_size(self) -> float:
        """ln Z of multipliers 0."""
        return float(np.log(len(self.values) if self.support is None else self.support.sum()))

    def blocks(self):
        """(slice, scaled features) over the whole domain."""
        for start in range(0, len(self.values), self._size):
            rows = slice(start, start + self._size)
            yield rows, self._block(rows)

    @cached_property
    def largest_sum(self) -> float:
        """The largest sum of the scaled features of a point."""
        return max(float(block.sum(axis=1).max()) for _, block in self.blocks())

    def moments(self, multipliers: np.ndarray, *, covariance: bool = False) -> tuple[float, np.ndarray, np.ndarray]:
        """ln Z, E_q[f] and, if asked for, the covariance of the scaled features under q ~ exp(multipliers . f).

        Sums are relative to the largest exponent so far. The covariance takes n_features^2 operations per point.
        """
        top, mass, n = -np.inf, 0.0, len(multipliers)
        expected, squares = np.zeros(n), np.zeros((n, n) if covariance else ())
        with np.errstate(over="ignore", invalid="ignore"):  # multipliers that diverge are refused by who asks
            for rows, block in self.blocks():
                exponents = block @ multipliers
                if self.support is not None:
                    exponents[~self.support[rows]] = -np.inf
                peak = float(exponents.max())
                if peak == -np.inf:
                    continue
                if not peak <= top:
                    shrink = np.exp(top - peak)
                    top, mass, expected, squares = peak, mass * shrink, expected * shrink, squares * shrink
                q = np.exp(exponents - top)
                mass += q.sum()
                expected += q @ block
                if covariance:
                    block *= np.sqrt(q)[:, None]
                    squares += block.T @ block
        log_z, expected = top + float(np.log(mass)), expected / mass
        return log_z, expected, squares / mass - np.outer(expected, expected) if covariance else squares

    def log_density(self, points: np.ndarray, multipliers: np.ndarray, log_z: float) -> np.ndarray:
        """ln q of the points of these numbers."""
        out = np.empty(len(points))
        for start in range(0, len(points), self._size):
            some = points[start : start + self._size]
            out[start : start + self._size] = self._block(some) @ multipliers - log_z
        if self.support is not None:
            out[~self.support[points]] = -np.inf
        return out

    def _block(self, rows: slice | np.ndarray) -> np.ndarray:
        block = np.subtract(self.values[rows], self.low, dtype=np.float64)
        block *= self._per_span
        return block
