"""Mixin of all mixtures: the weights of their experts, and what follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mixer import Mixer
from .validation import fitted, read_only


class WeightsMixin:
    """Experts whose weights are learned by a compiled mixer, which is the `_learner` or a part of it."""

    _learner: Any

    @read_only
    def weights_(self) -> np.ndarray:
        """Weights of the experts in the next prediction, shape (n_experts,)."""
        return self._fitted_hedge().weights

    @read_only
    def weights_history_(self) -> np.ndarray:
        """Weights of the experts over time, shape (n_recorded, n_experts)."""
        history = self._fitted_hedge().history
        if history.last == 0:
            raise AttributeError("weights_history_ is only stored for rows that are learned with history > 0")
        return history.weights

    @property
    def cumulative_loss_(self) -> float:
        """Loss of the mixture over all rows, each predicted before it was learned."""
        return self._fitted_mixer().cumulative_loss

    @property
    def regret_bound_(self) -> float:
        """Bound on `cumulative_loss_` minus the loss of the best expert, for this very run."""
        return self._fitted_mixer().regret_bound()

    def _fitted_mixer(self) -> Mixer:
        return fitted(self, vars(self).get("_learner")).mixer

    def _fitted_hedge(self) -> Hedge:
        return self._fitted_mixer().hedge

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in vars(self)
