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

    @read_only
    def weights_history_(self) -> Array:
        """Weights with which each of the last `history` rows was forecast, shape (n_rows, n_experts)."""
        history = self._fitted_hedge().history
        if not history.last:
            raise AttributeError("weights_history_ is only stored for rows that are learned with history > 0")
        return history.weights

    def _fitted_hedge(self) -> Hedge:
        return fitted(self, vars(self).get("_learner")).hedge

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in vars(self)

    def _configure(self) -> None:
        self._learner.hedge.history.last = self.history

    def _weigh(self, forecasts: Array, targets: Array | None = None, weights: Array | None = None) -> None:
        """Update the weights by rows of forecasts; by all rows or, on an error, by none."""
        refused = self._learner.learn(forecasts, targets, weights)
        if refused is not None:
            reason, row = refused
            self._refuse(reason, row, forecasts, targets)

    def _refuse(self, reason: str, row: int, forecasts: Array, targets: Array | None) -> NoReturn:
        """Raise the error for a row, or the rows up to it, whose losses are not finite."""
        raise ValueError(
            f"The sum of the losses up to row {row} must be finite; got infinity. Scale the forecasts, or the weights."
        )
