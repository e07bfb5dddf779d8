"""Mixin of all mixtures: attributes for the weights of the experts, and their history."""

from __future__ import annotations

from math import log
from numbers import Integral, Real
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from .._kernels.loop.hedge import Hedge
from .._kernels.loop.mixer import Mixer
from .._online.validation import fitted, read_only
from .._sklearn_compat import Interval

Array = NDArray[np.float64]


def are_numbers(*values) -> bool:
    """Whether all values are numbers whose squares do not overflow, and not NaN."""
    return all(isinstance(value, Real) for value in values) and all(abs(value) <= 1e100 for value in values)


def hoeffding_rate(spread: float, n_rows: float, n_experts: int) -> float:
    """The rate at which losses within `spread` of each other have a regret of spread sqrt(n_rows ln(n_experts) / 2)."""
    return (8.0 * log(max(n_experts, 2)) / n_rows) ** 0.5 / spread


class History:
    """The last rows of a growing table, in an array with spare capacity.

    Extended tables share the array of the original, and written rows are never overwritten. So the table from before a
    call remains valid if the call fails.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        The first rows.
    """

    def __init__(self, rows: Array) -> None:
        self._array, self._first, self._last = rows, 0, len(rows)
        self._written = [len(rows)]  # number of rows written, by all tables that share the array

    @property
    def rows(self) -> Array:
        """The rows, oldest first; not writeable."""
        rows = self._array[self._first : self._last]
        rows.flags.writeable = False
        return rows

    def extended(self, rows: Array | list[Array], size: int) -> History:
        """A table with further rows, of the last `size` ones; a row costs O(n_columns) on average."""
        rows = rows[-size:]
        new = History.__new__(History)
        new._array, new._written, new._last = self._array, self._written, self._last + len(rows)
        new._first = max(self._first, new._last - size)
        if new._last > len(self._array) or self._written[0] != self._last:
            kept = self._array[new._first : self._last]
            new._array = np.empty((2 * (len(kept) + len(rows)), self._array.shape[1]))
            new._array[: len(kept)] = kept
            new._first, new._last, new._written = 0, len(kept) + len(rows), [0]
        new._array[new._last - len(rows) : new._last] = rows
        new._written[0] = new._last
        return new

    def __reduce__(self):
        return History, (self.rows.copy(),)


class WeighsExperts:
    """Experts whose weights a compiled `_learner` computes from their forecasts, row by row.

    Parameters
    ----------
    history : int
        Number of most recent rows whose weights are stored in `weights_history_`; read at each call.

    Attributes
    ----------
    weights_history_ : ndarray of shape (n_rows, n_experts)
        Weights with which each of the last `history` rows was forecast; the argmax of each row is the leading expert.
    """

    _parameter_constraints: dict = {"history": [Interval(Integral, 0, None, closed="left")]}

    history: int
    _learner: Mixer
    _history: History | None

    @property
    def _fast_learner(self) -> str:
        return "" if self.history else "_learner"

    @read_only
    def weights_(self) -> Array:
        """Weights of the experts in the next forecast, shape (n_experts,)."""
        return self._fitted_hedge().weights

    @read_only
    def expert_losses_(self) -> Array:
        """Cumulative losses of the experts, each row forecast before it was learned, shape (n_experts,)."""
        return self._fitted_hedge().expert_losses

    @property
    def cumulative_loss_(self) -> float:
        """Cumulative loss of the mixture, each row forecast before it was learned."""
        return self._fitted_hedge().loss

    @property
    def regret_bound_(self) -> float:
        """Bound on `cumulative_loss_` minus that of the best expert: ln K / rate + gap for equal priors."""
        return self._fitted_hedge().regret_bound()

    @property
    def t_(self) -> int:
        """Rows that were forecast and counted; rows of weight zero are not."""
        return self._fitted_hedge().n_rows

    @property
    def weights_history_(self) -> Array:
        """Weights with which each of the last `history` rows was forecast, shape (n_rows, n_experts); not writeable."""
        history = vars(self).get("_history")
        if history is None:
            raise AttributeError("weights_history_ is only stored for rows that are learned with history > 0")
        return history.rows

    def _fitted_hedge(self) -> Hedge:
        return fitted(self, vars(self).get("_learner")).hedge

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in vars(self)

    def _set_learner(self, learner: Mixer) -> None:
        """Bind a new learner, and an empty history."""
        self._learner = learner
        self._history = History(np.empty((0, learner.hedge.n_experts))) if self.history else None

    def _weigh(self, forecasts: Array, targets: Array | None = None, weights: Array | None = None) -> None:
        """Update the weights by rows of forecasts; by all rows or, on an error, by none."""
        n_experts = self._learner.hedge.n_experts
        before = np.empty((len(forecasts), n_experts)) if self.history else None
        refused = self._learner.learn(forecasts, targets, weights, before)
        if refused is not None:
            reason, row = refused
            self._refuse(reason, row, forecasts, targets)
        if before is None:
            self._history = None  # rows from before a gap are not the last ones
        else:
            known = self._history or History(np.empty((0, n_experts)))
            self._history = known.extended(before if weights is None else before[weights > 0], self.history)

    def _refuse(self, reason: str, row: int, forecasts: Array, targets: Array | None) -> NoReturn:
        """Raise the error for a row, or the rows up to it, whose losses are not finite."""
        raise ValueError(
            f"The sum of the losses up to row {row} must be finite; got infinity. Scale the forecasts, or the weights."
        )
