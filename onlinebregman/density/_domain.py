"""A finite domain and its features: which point a row is, and expectations without a second copy of the features."""

from __future__ import annotations

import numpy as np

_BLOCK = 8192  # points handled at once: they stay in the cache


class RowIndex:
    """Finds rows among the points of a domain by their hash values, 16 bytes a point."""

    def __init__(self, points: np.ndarray) -> None:
        keys = _row_keys(points)
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def find(self, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Number of the first point that equals each row; -1 where there is none."""
        found = np.full(len(rows), -1, dtype=np.intp)
        keys, todo = _row_keys(rows), np.arange(len(rows))
        position = np.searchsorted(self.keys, keys)
        while len(todo):  # more than once only for rows that are missing, or for different points of one hash value
            near = self.keys[np.minimum(position, len(self.keys) - 1)] == keys[todo]
            near &= position < len(self.keys)
            todo, position = todo[near], position[near]
            equal = (points[self.order[position]] == rows[todo]).all(axis=1)
            found[todo[equal]] = self.order[position[equal]]
            todo, position = todo[~equal], position[~equal] + 1
        return found


def _row_keys(rows: np.ndarray) -> np.ndarray:
    """A 64-bit hash value of each row."""
    keys = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        keys ^= (column.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0: -0.0 equals 0.0
        keys *= np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys


class Features:
    """Features of all points, scaled to [0, 1] a block at a time, on the support that observations leave.

    Where no finite multipliers have the observed expectations, because a feature was only ever observed at its least
    (or largest) value, the optimum of the closure has probability 0 wherever it is larger (smaller): these points leave
    the support, and the feature's multiplier is -inf (inf), said by `limits`.
    """

    def __init__(self, values: np.ndarray, seen: tuple[np.ndarray, np.ndarray] | None) -> None:
        """`seen`: least and largest observed values; None keeps the whole domain."""
        self.values = values
        low, high = values.min(axis=0), values.max(axis=0)
        self.low = low.astype(np.float64)
        with np.errstate(over="ignore"):
            self.span = high.astype(np.float64) - self.low
        if not np.isfinite(self.span).all():
            j = int(np.argmin(np.isfinite(self.span)))
            raise ValueError(f"Feature {j} runs from {low[j]:g} to {high[j]:g}: its range overflows; scale it.")
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
            # on fewer points another feature may turn out to be at an end
            low, high = extremes(values, support)

    def scale(self, expectations: np.ndarray) -> np.ndarray:
        """Expectations of the scaled features."""
        return np.divide(expectations - self.low, self.span, out=np.zeros_like(self.low), where=self.span > 0)

    def block(self, rows: slice | np.ndarray) -> np.ndarray:
        """The scaled features of some points."""
        return self.scale_block(self.values[rows])

    def scale_block(self, values: np.ndarray) -> np.ndarray:
        """Features in (0, 1) of rows of features; those without a span are 0."""
        block = np.subtract(values, self.low, dtype=np.float64)
        block /= np.where(self.span > 0, self.span, 1.0)
        return block

    def blocks(self):
        """(slice, scaled features) over the whole domain."""
        for start in range(0, len(self.values), _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield rows, self.block(rows)

    def largest_sum(self) -> float:
        """The largest sum of the scaled features of a point."""
        return max(float(block.sum(axis=1).max()) for _, block in self.blocks())

    def moments(self, multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        """ln Z, and the expectations of the scaled features, of q ~ exp(multipliers . features): one pass."""
        log_z, expected, _ = self._moments(multipliers, squares=False)
        return log_z, expected

    def derivatives(self, multipliers: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """ln Z, its gradient (the expectations) and its Hessian (the covariance of the scaled features): one pass."""
        log_z, expected, squares = self._moments(multipliers, squares=True)
        return log_z, expected, squares - np.multiply.outer(expected, expected)

    def _moments(self, multipliers: np.ndarray, *, squares: bool) -> tuple[float, np.ndarray, np.ndarray | None]:
        top, mass, sums = -np.inf, 0.0, np.zeros(len(multipliers))
        products = np.zeros((len(sums), len(sums))) if squares else None
        for rows, block in self.blocks():
            g = self._scores(rows, block, multipliers)
            peak = float(g.max())
            if peak == -np.inf:
                continue
            if peak > top:
                shrink = np.exp(top - peak)
                top, mass, sums = peak, mass * shrink, sums * shrink
                if squares:
                    products *= shrink
            q = np.exp(g - top)
            mass += float(q.sum())
            sums += q @ block
            if squares:
                products += block.T @ (q[:, np.newaxis] * block)
        return top + np.log(mass), sums / mass, products / mass if squares else None

    def log_density(self, points: np.ndarray, multipliers: np.ndarray, log_z: float) -> np.ndarray:
        """ln q of the points of these numbers."""
        out = np.empty(len(points))
        for start in range(0, len(points), _BLOCK):
            some = points[start : start + _BLOCK]
            out[start : start + _BLOCK] = self._scores(some, self.block(some), multipliers) - log_z
        return out

    def _scores(self, rows: slice | np.ndarray, block: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        g = block @ multipliers
        if self.support is not None:
            g[~self.support[rows]] = -np.inf
        return g


def extremes(values: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest features of some points, a column at a time."""
    ends = [(column.min(), column.max()) for column in (values[points, j] for j in range(values.shape[1]))]
    low, high = np.array(ends).T
    return low, high


def observed_sums(values: np.ndarray, points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sum of weight * features over observed points, without a copy of all their features."""
    total = np.zeros(values.shape[1])
    for start in range(0, len(points), _BLOCK):
        rows = slice(start, start + _BLOCK)
        total += weights[rows] @ values[points[rows]].astype(np.float64)
    return total
