"""Uniform samples of a stream in bounded memory."""

from __future__ import annotations

import copy

import numpy as np
from numpy.random.bit_generator import ISeedSequence


def draw(rng: np.random.RandomState, n: int, size: int) -> np.ndarray:
    """`size` numbers below n, one double of the generator each: however many are asked for at once, the same ones."""
    return (rng.random_sample(size) * n).astype(np.intp)


class _NoSeed(ISeedSequence):
    """Spares a generator that is given a state the work of making one of a seed."""

    def generate_state(self, n_words, dtype=np.uint32) -> np.ndarray:
        return np.zeros(n_words, dtype)


def twin(rng: np.random.RandomState) -> np.random.RandomState:
    """A generator that will draw the same; a deep copy takes three times as long."""
    other = np.random.RandomState(np.random.MT19937(_NoSeed()))
    other.set_state(rng.get_state(legacy=False))
    return other


class Reservoir:
    """A uniform sample of at most `size` rows of each class.

    Parameters
    ----------
    width : int
        Values of a row.
    size : int
        Rows kept of each class.
    """

    def __init__(self, width: int, size: int) -> None:
        self.size = size
        self.seen: list[int] = []  # rows of each class so far
        self._n = 0
        self._rows, self._classes = np.zeros((16, width)), np.zeros(16, dtype=np.intp)

    def __len__(self) -> int:
        return self._n

    @property
    def rows(self) -> np.ndarray:
        """The rows kept, shape (n_rows, width)."""
        return self._rows[: self._n]

    @property
    def classes(self) -> np.ndarray:
        """The class of each row kept."""
        return self._classes[: self._n]

    def copied(self) -> Reservoir:
        """One of its own with the same rows."""
        other = copy.copy(self)
        other.seen, other._rows, other._classes = self.seen.copy(), self._rows.copy(), self._classes.copy()
        return other

    def add(self, row: np.ndarray, number: int, rng: np.random.RandomState) -> None:
        """Take in a row of class `number`; classes are numbered in the order they come."""
        if number == len(self.seen):
            self.seen.append(0)
        self.seen[number] += 1
        if self.seen[number] <= self.size:
            if self._n == len(self._rows):
                self._rows, self._classes = (np.concatenate([a, np.zeros_like(a)]) for a in (self._rows, self._classes))
            place, self._n = self._n, self._n + 1
        else:
            slot = int(draw(rng, self.seen[number], 1)[0])
            if slot >= self.size:
                return
            place = int(np.flatnonzero(self.classes == number)[slot])
        self._rows[place], self._classes[place] = row, number


class RunningSample:
    """A uniform sample of the numbers of a stream.

    Parameters
    ----------
    size : int, default=1000
        Numbers kept.
    """

    def __init__(self, size: int = 1000) -> None:
        self.size = size
        self.seen = 0
        self._values = np.empty(0)

    def __len__(self) -> int:
        return len(self._values)

    def copied(self) -> RunningSample:
        """One of its own with the same numbers."""
        other = copy.copy(self)
        other._values = self._values.copy()
        return other

    def add(self, values: np.ndarray, rng: np.random.RandomState) -> None:
        """Take in numbers, one after the other."""
        room = self.size - len(self._values)
        self._values = np.concatenate([self._values, values[:room]])
        self.seen += min(len(values), room)
        late = values[room:]
        slots = (rng.random_sample(len(late)) * (self.seen + 1 + np.arange(len(late)))).astype(np.intp)
        for slot, value in zip(slots.tolist(), late.tolist(), strict=True):
            if slot < self.size:
                self._values[slot] = value
        self.seen += len(late)

    def percentiles(self, percents) -> list[float]:
        """Percentiles of the sample."""
        return np.percentile(self._values, percents).tolist()
