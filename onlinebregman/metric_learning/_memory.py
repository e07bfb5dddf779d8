"""Random numbers, and the numbers of classes, of streams of labelled rows."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from .._online.types import RandomState


def random_numbers(random_state: RandomState) -> tuple[np.ndarray, int]:
    """The state of the generator that a parameter `random_state` stands for."""
    rng = np.random.RandomState(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    _, words, position, *_ = rng.get_state()
    return words, position


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
    elif type(y) is not list or {type(label) for label in y} not in ({int}, {str}):
        return False
    numbers = [estimator._labels.get(label, -1) for label in y]
    if -1 in numbers:
        return False
    return sampler.learn_fast(vars(estimator), X, np.array(numbers, dtype=np.float64), sample_weight)
