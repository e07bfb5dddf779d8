"""Mixin of all mixtures: attributes for the weights of the experts, and their history."""

from __future__ import annotations

from math import log
from numbers import Integral
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from .._objects import is_finite_number
from .._online.validation import read_only
from .._online.weights import WeightsMixin
from .._sklearn_compat import Interval

Array = NDArray[np.float64]


def are_numbers(*values) -> bool:
    """Whether all values are numbers whose squares do not overflow as floats, and not NaN."""
    return all(is_finite_number(value) and abs(float(value)) <= 1e100 for value in values)


def hoeffding_rate(loss_range: float, n_rows: float, n_experts: int) -> float:
    """The rate at which losses within this range have a regret of loss_range sqrt(n_rows ln(n_experts) / 2)."""
    return (8.0 * log(max(n_experts, 2)) / n_rows) ** 0.5 / loss_range


def given_rate(learning_rate: Literal["adaptive"] | float, share: float) -> float | None:
    """The rate of a `Hedge`: a number, or None for one that adapts, which is not for fixed share."""
    if learning_rate != "adaptive":
        return float(learning_rate)
    if share:
        raise ValueError(f"learning_rate must be a number or 'theory' with share = {share:g}; got 'adaptive'.")
    return None


class WeighsExperts(WeightsMixin):
    """Experts whose weights a mixer, the `_learner`, computes from their forecasts, row by row.

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

    _read_at_each_call: tuple[str, ...] = ("history", "delayed", "handle_unknown")

    history: int

    @read_only
    def expert_losses_(self) -> Array:
        """Cumulative losses of the experts, each row forecast before it was learned, shape (n_experts,)."""
        return self._fitted_mixer().expert_losses

    @property
    def t_(self) -> int:
        """Rows that were forecast and counted; rows of weight zero are not."""
        return self._fitted_hedge().n_rows

    def _configure(self) -> None:
        super()._configure()
        self._learner.hedge.history.last = self.history

    def _update_weights(
        self, forecasts: Array, targets: Array | None = None, weights: Array | None = None, order: Array | None = None
    ) -> None:
        """Update the weights by rows of forecasts; by all rows or, on an error, by none."""
        refused = self._learner.learn(forecasts, targets, weights, order)
        if refused is not None:
            reason, row = refused
            self._refuse(reason, row, forecasts, targets)

    def _refuse(self, reason: str, row: int, forecasts: Array, targets: Array | None) -> NoReturn:
        """Raise the error for a row, or the rows up to it, whose losses are not finite."""
        raise ValueError(
            f"The sum of the losses up to row {row} must be finite; got infinity. Scale the forecasts, or the weights."
        )
