"""What metric learners keep of a stream of labelled rows: random states, class numbers, the most recent rows."""

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

    _fast_learner = "_sampler"  # draws pairs or triplets of rows, each of which is a row for `_learner`
    _labels: dict[Any, int]  # label -> class number, in order of appearance

    def _plain_targets(self, y) -> np.ndarray | None:
        """Class numbers of a plain array or list of known labels; None for any other."""
        if type(y) is np.ndarray:
            if y.ndim != 1 or y.dtype.kind not in "iubU":
                return None
        elif type(y) is not list or {type(label) for label in y} not in ({int}, {str}):
            return None
        return known_numbers(y, self._labels)


class Window:
    """The most recent rows of a stream and their classes or targets, in arrays with spare capacity.

    Rows are numbered in the stream; those kept are `first` to `last` - 1. What has been written is never written again,
    so that views of it stay what they are, and copies may share it.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Rows to begin with, oldest first.
    values : ndarray of shape (n_rows,)
        Numbers of their classes, or their targets.
    first : int, default=0
        The number of the first row.
    """

    def __init__(self, rows: np.ndarray, values: np.ndarray, first: int = 0) -> None:
        self._rows, self._values = rows, values
        self._offset = self.first = first  # _offset: number of the first row in the arrays
        self.last = first + len(rows)

    def extended(self, rows: np.ndarray, values: np.ndarray, size: int | None) -> Window:
        """A window with further rows, of the last `size` rows (all, if None).

        It shares the arrays and their spare capacity, so that a row costs O(n_features) on average. This window stays
        unchanged, and may be extended again only if the longer one is discarded.
        """
        longer = Window(self._rows, self._values)
        vars(longer).update(vars(self))
        longer._append(rows, values, size)
        return longer

    def _append(self, rows: np.ndarray, values: np.ndarray, size: int | None) -> None:
        last = self.last + len(rows)
        first = self.first if size is None else max(self.first, last - size)
        rows, values = rows[-(last - first) :], values[-(last - first) :]
        end = last - len(rows)  # number of the first new row
        if last - self._offset > len(self._rows):
            kept = slice(first - self._offset, end - self._offset)
            capacity = 2 * (last - first)
            self._rows, self._values = (_enlarged(values[kept], capacity) for values in (self._rows, self._values))
            self._offset = first
        place = slice(end - self._offset, last - self._offset)
        self._rows[place], self._values[place] = rows, values
        self.first, self.last = first, last

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def rows(self) -> np.ndarray:
        """The rows in the window, oldest first."""
        return self._view(self._rows)

    @property
    def values(self) -> np.ndarray:
        """The numbers of their classes, or their targets."""
        return self._view(self._values)

    def _view(self, values: np.ndarray) -> np.ndarray:
        view = values[self.first - self._offset : self.last - self._offset]
        view.flags.writeable = False
        return view

    def __reduce__(self):
        return Window, (self.rows, self.values, self.first)

    def __deepcopy__(self, memo) -> Window:
        return Window(self.rows, self.values, self.first)


def _enlarged(values: np.ndarray, n: int) -> np.ndarray:
    """A copy of an array with capacity for n rows."""
    longer = np.empty((n, *values.shape[1:]), dtype=values.dtype)
    longer[: len(values)] = values
    return longer
