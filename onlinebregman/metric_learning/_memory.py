"""Random numbers, and the numbers of classes, of streams of labelled rows."""

from __future__ import annotations

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .._online.types import RandomState

# Random numbers that are drawn at a time; copying their generator before takes ten times as long.
_AHEAD = 4096


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
    """The next numbers from 0 to 1 that a generator draws; never changed, so that whoever goes back has the same again.

    Parameters
    ----------
    rng : RandomState
        It is not drawn from: copies of it are.
    ahead : ndarray, default=()
        Numbers that come before those of the generator.
    """

    def __init__(self, rng: np.random.RandomState, ahead: ArrayLike = ()) -> None:
        self._rng, self.ahead = rng, np.require(ahead, np.float64, ["C", "A"])

    def without(self, n: int) -> Uniforms:
        """The same, once n of them are given out."""
        return Uniforms(self._rng, self.ahead[n:])

    def more(self) -> Uniforms:
        """The same, with more of them at hand."""
        rng = twin(self._rng)
        return Uniforms(rng, np.concatenate([self.ahead, rng.random_sample(_AHEAD)]))

    def __reduce__(self):
        return Uniforms, (self._rng, self.ahead)


def random_numbers(random_state: RandomState) -> Uniforms:
    """Those of the generator that a parameter `random_state` stands for."""
    return Uniforms(np.random.RandomState(check_random_state(random_state).randint(np.iinfo(np.int32).max)))


def numbers_of(y: np.ndarray, labels: dict) -> tuple[np.ndarray, dict]:
    """The numbers of the classes of labels, in the order they came, and the numbers of all, with those that are new."""
    values = y.tolist()
    if not all(label in labels for label in values):
        labels = labels.copy()
        for label in values:
            labels.setdefault(label, len(labels))
    return np.array([labels[label] for label in values], dtype=np.float64), labels


def learn_plain(estimator, X, y, sample_weight=None) -> bool:
    """Have the `_sampler` of an estimator learn rows without validation; False if that is not safe: nothing is learned.

    Safe are plain arrays, or lists, of labels that have all come before.
    """
    sampler = vars(estimator).get("_sampler")
    if sampler is None:
        return False
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubU":
        y = y.tolist()
    elif type(y) is not list or not all(type(label) in (int, str) for label in y):
        return False
    numbers = [estimator._labels.get(label, -1) for label in y]
    if -1 in numbers:
        return False
    return sampler.learn_fast(vars(estimator), X, np.array(numbers, dtype=np.float64), sample_weight)
