"""The weights of experts, of all mixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mixer import Mixer, OutputsMixer
from .estimator import Before, LifeCycleMixin
from .side_by_side import SideBySideMixin
from .validation import read_only


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
        return self._fitted_mixer().cumulative_loss + self._before.losses

    @property
    def regret_bound_(self) -> float:
        """Bound on `cumulative_loss_` minus the loss of the best expert, for this very run."""
        return self._fitted_mixer().regret_bound() + self._before.bound

    def _fitted_mixer(self) -> Mixer:
        return self._fitted_state().mixer

    def _fitted_hedge(self) -> Hedge:
        """The weights of the experts; of several outputs those of the first."""
        mixer = self._fitted_mixer()
        return (mixer.mixers[0] if isinstance(mixer, OutputsMixer) else mixer).hedge

    def _of_outputs(self, value: Callable[[Mixer], Any]) -> Any:
        """What is computed from the mixer, or from that of each output, along a first axis."""
        mixer = self._fitted_mixer()
        return np.stack([value(each) for each in mixer.mixers]) if isinstance(mixer, OutputsMixer) else value(mixer)


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


class HedgedMixin(WeightsMixin, SideBySideMixin):
    """Models side by side, mixed by exponential weights on the losses they had.

    Attributes
    ----------
    weights_ : ndarray of shape (n_models,)
        Weights of the models in the next prediction.
    weights_history_ : ndarray of shape (n_recorded, n_models)
        Weights after some of the rows, 64 to 128 once there were as many: who led when.
    weights_history_t_ : ndarray of shape (n_recorded,)
        After how many rows, at even intervals.
    cumulative_loss_ : float
        Loss of the mixture over all rows, each predicted before it was learned.
    regret_bound_ : float
        Bound on `cumulative_loss_` minus the smallest of `cumulative_losses_`, for this very run.
    """

    _unmergeable = (
        "its weights are computed from the losses of one sequence of rows, each predicted before it was learned"
    )
    _watches = True

    def _begin_again(self) -> None:
        """All models do, and get a new mixer."""
        self._before = Before(self.t_, self.cumulative_loss_, self.cumulative_losses_, self.regret_bound_)
        self._copy_learner()
        for estimator in self.estimators_:
            estimator._begin_again()
        self._bind_learners(self._make_mixer())
        self._configure()

    @read_only
    def weights_history_t_(self) -> np.ndarray:
        """After how many rows, shape (n_recorded,)."""
        return self._fitted_hedge().history.t + self._before.rows

    @read_only
    def cumulative_losses_(self) -> np.ndarray:
        """Losses of the models over all rows, each predicted before it was learned, shape (n_models,).

        Of several outputs those of each, shape (n_outputs, n_models).
        """
        return self._fitted_mixer().expert_losses + self._before.of_models

    @property
    def best_index_(self) -> int:
        """Number of the model with the smallest loss so far."""
        losses = self._of_outputs(lambda mixer: mixer.hedge.expert_losses)  # without the loss that is common to all
        return int(np.atleast_2d(losses).sum(axis=0).argmin())
