"""Uniform samples of a stream in bounded memory."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .._kernels.matrices.reservoir import remember_rows
from .._online.types import RandomState

Memory = TypeVar("Memory")

# Random numbers that are drawn at a time; copying their generator before takes ten times as long.
_AHEAD = 4096


def draw(rng: Uniforms, n: int, size: int) -> np.ndarray:
    """`size` numbers below n, one of the generator each: however many are asked for at once, the same ones."""
    return (rng.random_sample(size) * n).astype(np.intp)


def alike(memory: Memory) -> Memory:
    """A shallow copy."""
    other = object.__new__(type(memory))
    vars(other).update(vars(memory))
    return other


class _NoSeed(ISeedSequence):
    """Spares a generator that is given a state the work of making one of a seed."""

    def generate_state(self, n_words, dtype=np.uint32) -> np.ndarray:
        return np.zeros(n_words, dtype)


def twin(rng: np.random.RandomState) -> np.random.RandomState:
    """A generator that will draw the same; a deep copy takes three times as long."""
    bits = np.random.MT19937(_NoSeed())  # type: ignore[arg-type]  # NumPy takes it, and leaves it out of its types
    other = np.random.RandomState(bits)
    other.set_state(rng.get_state(legacy=False))
    return other


class Uniforms:
    """The numbers from 0 to 1 that a generator draws, some of them ahead; copies share these and cost next to nothing.

    Parameters
    ----------
    rng : RandomState
    ahead : ndarray, default=()
        Numbers to begin with.
    """

    def __init__(self, rng: np.random.RandomState, ahead: ArrayLike = ()) -> None:
        self._rng, self._ahead, self._next = rng, np.asarray(ahead, dtype=np.float64), 0
        self._shared = True  # is the generator, with a copy or with whoever gave it?

    def copied(self) -> Uniforms:
        """One that goes on by itself."""
        self._shared = True
        return alike(self)

    def random_sample(self, n: int) -> np.ndarray:
        """The next n numbers, not to be written to."""
        missing = self._next + n - len(self._ahead)
        if missing > 0:
            self.more(-(-missing // _AHEAD) * _AHEAD)
        start, self._next = self._next, self._next + n
        return self._ahead[start : self._next]

    def ahead(self) -> np.ndarray:
        """Those that are drawn, and not given out: not to be written to."""
        return self._ahead[self._next :]

    def more(self, n: int = _AHEAD) -> np.ndarray:
        """The same, and n more."""
        if self._shared:  # copies keep the other one
            self._rng, self._shared = twin(self._rng), False
        self._ahead, self._next = np.concatenate([self.ahead(), self._rng.random_sample(n)]), 0
        return self._ahead

    def skip(self, n: int) -> None:
        """Count n of them as given out."""
        self._next += n

    def __reduce__(self):
        return Uniforms, (self._rng, self._ahead[self._next :])


def random_numbers(random_state: RandomState) -> Uniforms:
    """Those of the generator that a parameter `random_state` stands for."""
    return Uniforms(np.random.RandomState(check_random_state(random_state).randint(np.iinfo(np.int32).max)))


class Reservoir:
    """A uniform sample of at most `size` rows of each class.

    Copies share their arrays until a row is replaced, and write what comes after the rows that they have in common:
    only one of them may go on.

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
        self._shared = False  # with a copy
        self._rows, self._classes = np.zeros((0, width)), np.zeros(0, dtype=np.intp)

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
        """One with the same rows that goes on in place of this one, which stays what it is."""
        other = alike(self)
        other.seen, other._shared = self.seen.copy(), True
        return other

    def __getstate__(self) -> dict:
        return {**vars(self), "_rows": self.rows, "_classes": self.classes, "_shared": False}

    def own(self) -> None:
        """Have arrays that no copy shares, before rows that are kept are changed."""
        if self._shared:
            self._rows, self._classes, self._shared = self._rows.copy(), self._classes.copy(), False

    def grow(self) -> None:
        """Have arrays with room at their end."""
        self._rows, self._classes, self._shared = _with_room(self._rows), _with_room(self._classes), False

    def arrays(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Rows and classes with the room behind them, to be written to, and whether a copy shares them."""
        if not self._rows.flags.writeable:  # of a file, or of memory of someone else
            self.own()
        return self._rows, self._classes, self._shared

    def go_on(self, n: int, seen: list[int]) -> None:
        """Count what was put into the arrays: n rows are kept, `seen` of each class came."""
        self._n, self.seen = n, seen

    def add(self, row: np.ndarray, number: int, rng: Uniforms) -> None:
        """Take in a row of class `number`; classes are numbered in the order they come."""
        if number == len(self.seen):
            self.seen.append(0)
        self.seen[number] += 1
        if self.seen[number] <= self.size:
            if self._n == len(self._rows):
                self.grow()
            place, self._n = self._n, self._n + 1
        else:
            slot = int(draw(rng, self.seen[number], 1)[0])
            if slot >= self.size:
                return
            place = int(np.flatnonzero(self.classes == number)[slot])
            self.own()
        self._rows[place], self._classes[place] = row, number

    def add_all(self, rows: np.ndarray, numbers: list[int], rng: Uniforms) -> None:
        """Take in rows, one after the other."""
        if len(rows) == 1:  # getting ready would take longer
            self.add(rows[0], numbers[0], rng)
        else:
            remember_rows(self, rng, np.ascontiguousarray(rows, np.float64), np.array(numbers, np.intp))


def _with_room(values: np.ndarray) -> np.ndarray:
    """A copy at the beginning of an array that is twice as long."""
    return np.concatenate([values, np.zeros((max(len(values), 16), *values.shape[1:]), dtype=values.dtype)])


class RunningSample:
    """A uniform sample of the numbers of a stream; what it holds is never changed in place.

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
        return alike(self)

    def add(self, values: np.ndarray, rng: Uniforms) -> None:
        """Take in numbers, one after the other."""
        room = self.size - len(self._values)
        if room:
            self._values = np.concatenate([self._values, values[:room]])
            self.seen += min(len(values), room)
            values = values[room:]
        slots = (rng.random_sample(len(values)) * (self.seen + 1 + np.arange(len(values)))).astype(np.intp)
        kept = [(slot, value) for slot, value in zip(slots.tolist(), values.tolist(), strict=True) if slot < self.size]
        if kept:
            self._values = self._values.copy()
            for slot, value in kept:
                self._values[slot] = value
        self.seen += len(values)

    @property
    def values(self) -> np.ndarray:
        """What it holds: not to be written to."""
        return self._values

    def go_on(self, values: np.ndarray, seen: int) -> None:
        """Hold these values of so many that came."""
        self._values, self.seen = values, seen

    def percentiles(self, percents) -> list[float]:
        """Percentiles of the sample."""
        return np.percentile(self._values, percents).tolist()
