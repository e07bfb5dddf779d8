"""Mixin of all mixtures: the weights of their experts, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mixer import Mixer, OutputsMixer
from .estimator import LifeCycleMixin
from .validation import read_only


def check_one_output(model: Any, error: type[Exception]) -> None:
    """Raise an error if a fitted mixture has several outputs, or one in a column of y."""
    mixer = model._fitted_mixer()
    if not isinstance(mixer, OutputsMixer):
        return
    name, n = type(model).__name__, len(mixer.mixers)
    if n == 1:
        raise error(f"This {name} learned y of shape (n_samples, 1), but that is for a 1d y; learn y.ravel().")
    kind = "Classifier" if is_classifier(model) else "Regressor"
    raise error(
        f"This {name} has {n} outputs, but that is for one; use sklearn.multioutput.MultiOutput{kind}, whose "
        "estimators_ are such models."
    )


class WeightsMixin(LifeCycleMixin):
    """Experts whose weights are learned by a compiled mixer, which is the `_learner` or a part of it.

    Parameters
    ----------
    delayed : bool
        Whether the rows of one call of `partial_fit` were all predicted before any of their targets was known, for
        labels that come late: a day's forecasts, then the day. The weights, the combinations and the radii of intervals
        then learn from the predictions that were made, those of the model before the call. False: each row counts as
        predicted after the row before was learned, so that it makes no difference how rows are cut into calls. `fit`
        always learns so.
    """

    delayed: bool
    _in_fit = False

    def _configure(self, **more: Any) -> None:
        super()._configure()
        ordered = not (self._in_fit and self._shuffles())
        self._fitted_mixer().configure(delayed=self._together, ordered=ordered, **more)

    @property
    def _together(self) -> bool:
        """Whether the rows of a call were predicted together."""
        return "delayed" in self._parameters_of_calls() and self.delayed and not self._in_fit

    def _learn_in_epochs(self, learn: Callable, data, X, y) -> None:
        self._in_fit = True
        self._configure()
        super()._learn_in_epochs(learn, data, X, y)
        del self._in_fit
        self._configure()

    @read_only
    def weights_(self) -> np.ndarray:
        """Weights of the experts in the next prediction, shape (n_experts,), or (n_outputs, n_experts)."""
        return self._of_outputs(lambda mixer: mixer.hedge.weights)

    @read_only
    def weights_history_(self) -> np.ndarray:
        """Weights of the experts over time, shape (n_recorded, n_experts), or (n_outputs, n_recorded, n_experts)."""
        if self._fitted_hedge().history.last == 0:
            raise AttributeError("weights_history_ is only stored for rows that are learned with history > 0")
        return self._of_outputs(lambda mixer: mixer.hedge.history.weights)

    @property
    def cumulative_loss_(self) -> float:
        """Loss of the mixture over all rows, each predicted before it was learned."""
        return self._fitted_mixer().cumulative_loss

    @property
    def regret_bound_(self) -> float:
        """Bound on `cumulative_loss_` minus the loss of the best expert, for this very run."""
        return self._fitted_mixer().regret_bound()

    def _fitted_mixer(self) -> Mixer:
        return self._fitted_learner().mixer

    def _fitted_hedge(self) -> Hedge:
        """The weights of the experts; of several outputs those of the first."""
        mixer = self._fitted_mixer()
        return (mixer.mixers[0] if isinstance(mixer, OutputsMixer) else mixer).hedge

    def _of_outputs(self, value: Callable[[Mixer], Any]) -> Any:
        """What is computed from the mixer, or from that of each output, along a first axis."""
        mixer = self._fitted_mixer()
        return np.stack([value(each) for each in mixer.mixers]) if isinstance(mixer, OutputsMixer) else value(mixer)
