"""Random states and class numbers for streams of labelled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._online.estimator import LifeCycleMixin
from .._online.types import RandomState

# From this number of labels on, searching a sorted array is faster than a dict.
_MANY = 50


def random_numbers(random_state: RandomState) -> int:
    """Where a generator begins that is seeded by a parameter `random_state`: no two of them meet."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max)) << 32


def numbers_of(y: np.ndarray, labels: dict) -> tuple[np.ndarray, dict]:
    """Class numbers of labels, in order of appearance, and the dict of all numbers, extended by new labels."""
    numbers = known_numbers(y, labels)
    if numbers is not None:
        return numbers, labels
    values, labels = y.tolist(), labels.copy()
    for label in values:
        labels.setdefault(label, len(labels))
    return np.array([labels[label] for label in values], dtype=np.float64), labels


def known_numbers(y: np.ndarray | list, labels: dict) -> np.ndarray | None:
    """Class numbers of labels; None if a label is new."""
    if isinstance(y, np.ndarray) and len(y) >= _MANY and y.dtype.kind == "i" and {type(k) for k in labels} == {int}:
        known = np.array(list(labels))
        if known.dtype.kind == "i":  # searched without the GIL
            order = known.argsort()
            places = order.take(known.searchsorted(y, sorter=order), mode="clip")
            return places.astype(np.float64) if (known.take(places) == y).all() else None
    numbers = [labels.get(label, -1) for label in (y if isinstance(y, list) else y.tolist())]
    return None if -1 in numbers else np.array(numbers, dtype=np.float64)


class RemembersRows(LifeCycleMixin):
    """A metric learner whose `_sampler` stores labelled rows; their classes need not be known in advance."""

    _fast_learner = "_sampler"
    _labels: dict[Any, int]  # label -> class number, in order of appearance

    def _plain_targets(self, y) -> np.ndarray | None:
        """Class numbers of a plain array or list of known labels; None for any other."""
        if type(y) is np.ndarray:
            if y.ndim != 1 or y.dtype.kind not in "iubU":
                return None
        elif type(y) is not list or {type(label) for label in y} not in ({int}, {str}):
            return None
        return known_numbers(y, self._labels)
