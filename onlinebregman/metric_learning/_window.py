"""The most recent rows of a stream."""

from __future__ import annotations

import numpy as np


class Window:
    """The most recent rows of a stream and their classes, in arrays with spare capacity.

    Rows are numbered in the stream; those kept are `first` to `last` - 1. What has been written is never written again,
    so that views of it stay what they are, and copies may share it.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Rows to begin with, oldest first.
    codes : ndarray of shape (n_rows,)
        Numbers of their classes.
    first : int, default=0
        The number of the first row.
    """

    def __init__(self, rows: np.ndarray, codes: np.ndarray, first: int = 0) -> None:
        self._rows, self._codes = rows, codes
        self._offset = self.first = first  # _offset: number of the first row in the arrays
        self.last = first + len(rows)

    def extended(self, rows: np.ndarray, codes: np.ndarray, size: int | None) -> Window:
        """A window with further rows, of the last `size` rows (all, if None).

        It shares the arrays and their spare capacity, so that a row costs O(n_features) on average. This window stays
        unchanged, and may be extended again only if the longer one is discarded.
        """
        longer = Window(self._rows, self._codes)
        vars(longer).update(vars(self))
        longer._append(rows, codes, size)
        return longer

    def _append(self, rows: np.ndarray, codes: np.ndarray, size: int | None) -> None:
        last = self.last + len(rows)
        first = self.first if size is None else max(self.first, last - size)
        rows, codes = rows[-(last - first) :], codes[-(last - first) :]
        end = last - len(rows)  # number of the first new row
        if last - self._offset > len(self._rows):
            kept = slice(first - self._offset, end - self._offset)
            capacity = 2 * (last - first)
            self._rows, self._codes = (_enlarged(values[kept], capacity) for values in (self._rows, self._codes))
            self._offset = first
        place = slice(end - self._offset, last - self._offset)
        self._rows[place], self._codes[place] = rows, codes
        self.first, self.last = first, last

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def rows(self) -> np.ndarray:
        """The rows in the window, oldest first."""
        return self._view(self._rows)

    @property
    def codes(self) -> np.ndarray:
        """The numbers of their classes."""
        return self._view(self._codes)

    def _view(self, values: np.ndarray) -> np.ndarray:
        view = values[self.first - self._offset : self.last - self._offset]
        view.flags.writeable = False
        return view

    def __reduce__(self):
        return Window, (self.rows, self.codes, self.first)

    def __deepcopy__(self, memo) -> Window:
        return Window(self.rows, self.codes, self.first)


def _enlarged(values: np.ndarray, n: int) -> np.ndarray:
    """A copy of an array with capacity for n rows."""
    longer = np.empty((n, *values.shape[1:]), dtype=values.dtype)
    longer[: len(values)] = values
    return longer
