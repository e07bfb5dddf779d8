"""Regression without parameters to tune: a mixture of linear regressors that learn in one pass, by AdaHedge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from .._kernels.learners.linked_mixer import LinkedMixer
from .._kernels.learners.memory import TargetMemory
from .._kernels.learners.mixer import OutputsMixer
from .._kernels.learners.quantile_tracker import QuantileTracker
from .._kernels.learners.stacked_mixers import CentredMixer
from .._online.compiled import make_loss
from .._online.estimator import Call, Examples
from .._online.examples import LearnsTargets
from .._online.intervals import ConformalMixin
from .._online.types import MatrixLike, RandomState
from .._sklearn_compat import StrOptions
from ..linear_model import ForwardRegressor, MirrorDescentRegressor
from ..linear_model._base import OnlineLinearRegressor
from ..losses import Loss, resolve_loss
from ..losses._base import has_positive_targets, list_losses, loss_names
from ._base import ParameterFree


@list_losses
class ParameterFreeRegressor(ConformalMixin, RegressorMixin, LearnsTargets, ParameterFree):
    """Regression on a stream with nothing to tune: many online regressors in one pass, mixed by their losses.

    The members differ in the settings that a user would otherwise have to choose: the geometry, the learning rate and
    its schedule. Each row is predicted by the weighted mean of their predictions, the weights being v_k ~ exp(-rate
    L_k), L_k the losses so far, at the rate ln K / gap (AdaHedge), and then learned by all of them. Two linear
    combinations of the predictions are also learned, and mixed with that mean by the same rule (`stacking`); they may
    be better than the best member. For any rows, the loss is at most that of the best member + `regret_bound_`.

    Parameters
    ----------
    {members}
    loss : {<regression losses>} or Loss
        The loss of the mixture and of the members of the default set.
    {stacking, memory, share, standardize, random_features, thresholds, trees, categorical_features, n_jobs}
    {shuffle, random_state, handle_new_features, delayed}

    Attributes
    ----------
    {estimators_, weights_, weights_history_, weights_history_t_, cumulative_losses_, cumulative_loss_, regret_bound_}
    {stacking_weights_, stacking_coef_, memory_weights_, memory_coef_, best_estimator_, best_index_, t_}
    {is_categorical_, categories_, feature_importances_, n_features_in_, feature_names_in_}

    See Also
    --------
    ParameterFreeClassifier : The same for labels.
    LearningRateMixture : The same for the learning rates of one model.
    ForwardRegressor : One of the members by itself: O(n_features^2) a row.
    MirrorDescentRegressor : The others.

    Notes
    -----
    If the loss only depends on the residual, members learn targets minus the mean of the previous targets, and their
    predictions are clipped to the range of the targets so far, which does not increase the loss if the target is within
    that range. So the first prediction is 0 and the second the first target, whatever the members say, and they learn
    targets as 0 until three different ones are known, since too little is known of the mean. A constant added to all
    targets is added to all predictions but the first; everything is computed from differences to one of them. With
    other losses, such as "poisson", scores are shifted so that totals are right, and kept near that of the mean of the
    targets while few are known: the first prediction is the link of 0.

    Targets more than ten mean deviations from the mean are learned as the nearest within: a single absurd one does not
    spoil the model, and a lasting change is followed within some rows. After a change of level or unit by which losses
    have become much smaller, weights learn at the rate that suits these once 1 / `share` rows are known. If some of the
    first targets, or values of a column, turn out to be absurd once more are known, members and weights begin again.
    Losses are those of the true targets, and `regret_bound_` includes what clipping and other rates have changed. To
    the predictions of a quantile an offset is added that moves with each target below and above, further if too many
    were on one side lately, so that their shares become right; members and weights are learned without it, and
    `regret_bound_` includes what it has changed.

    Several outputs, y of shape (n_samples, n_outputs), are learned by members with one learner for each, or one matrix
    for all, and each has a mixture of its own: attributes about weights, losses and combinations of members then have a
    first axis for the outputs, `cumulative_loss_` and `regret_bound_` are sums, and the best member is that of the sum.
    `explain`, `feature_importances_` and `to_onnx` are for one output.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onlinebregman import ParameterFreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ParameterFreeRegressor().fit(X, y)
    >>> print(f"{model.score(X, y):.2f}")
    0.54

    Intervals for 90 % of the targets, whatever their distribution:

    >>> lower, upper = model.predict_interval(X[:3], coverage=0.9)
    >>> print((upper - lower).round(-1))
    [180. 180. 180.]
    """

    _parameter_constraints: dict = {"loss": [StrOptions(set(loss_names("regression"))), Loss]}
    _kinds = (OnlineLinearRegressor, ForwardRegressor)

    def __init__(
        self,
        *,
        members: Sequence[Any] | None = None,
        loss: str | Loss = "squared_error",
        stacking: bool = True,
        memory: bool = True,
        share: float = 0.003,
        standardize: bool = True,
        random_features: int = 128,
        thresholds: bool = True,
        trees: int = 128,
        categorical_features: ArrayLike | Literal["from_dtype"] | None = "from_dtype",
        n_jobs: int | None = None,
        shuffle: bool = True,
        random_state: RandomState = 0,
        handle_new_features: Literal["error", "add"] = "error",
        delayed: bool = False,
    ) -> None:
        self._set_arguments(locals())

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict the targets of rows.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The weighted mean of the scores of the members, passed through the link of the loss.
        """
        scores = self._predict(X)
        several = isinstance(self._fitted_mixer(), OutputsMixer)
        return np.asarray(self._learned_loss.link(scores if several else scores[:, 0]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = has_positive_targets(self.loss) or any(
            member.target_tags.positive_only for member in self._tags_of_members()
        )
        return tags

    def _default_members(self, second_order: bool, sparse: bool) -> list[Any]:
        loss = resolve_loss(self.loss)
        scaled: dict[str, Any] = {"standardize": self.standardize and not sparse}
        make = partial(MirrorDescentRegressor, loss=self.loss, **scaled)
        gradient = partial(make, divergence="squared_euclidean")
        newton = min(loss.curvature_range[1], loss.lipschitz) < np.inf
        residual = loss.translation_invariant
        one_formula = not loss._kinked and type(loss).bends is Loss.bends  # for all scores
        second_order_in_loss = second_order and one_formula and not (residual or self._several_targets)
        members: list = []
        if newton or not second_order_in_loss:  # steps of a fixed size get lost where the curvature has no bound
            members += [gradient(eta0=eta, learning_rate="sqrt") for eta in (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)]
            members += [gradient(eta0=eta, learning_rate="constant") for eta in (0.01, 0.1, 1.0)]
        members += [make(divergence="normalized_adagrad", eta0=eta) for eta in (3.0, 10.0, 30.0, 100.0)]
        if newton:
            members += [make(divergence="diagonal_newton")]
            if sparse and self.standardize:  # where columns change their units
                members += [make(divergence="diagonal_newton", standardize=True)]
        if (second_order and residual) or second_order_in_loss:
            of_loss: dict[str, Any] = {} if residual else {"loss": self.loss, "penalize_intercept": False}
            forward = partial(ForwardRegressor, **of_loss)
            members += [
                forward(alpha=alpha, forgetting=forgetting, **scaled)
                for alpha in (0.1, 1.0, 10.0)
                for forgetting in (1.0, 0.999, 0.99)[: 3 if residual else 2]
            ]
            members += self._nonlinear(forward, scaled)
        if second_order and not sparse:
            members += self._of_thresholds(partial(MirrorDescentRegressor, loss=self.loss), newton=newton)
        return members

    def _make_estimators(self, X) -> list[Any]:
        members = super()._make_estimators(X)
        for member in members:  # where only residuals count, the mixture subtracts the mean of the targets
            member._learns_residuals = resolve_loss(self.loss).translation_invariant
        return members

    def _check_encoded(self, call: Call, X, y, sample_weight=None) -> Examples:
        if call.first:
            self._several_targets = np.asarray(y).ndim > 1  # of which second-order models learn the squared loss only
        return super()._check_encoded(call, X, y, sample_weight)

    def _begin(self, data: Examples) -> None:
        self._n_outputs = data.y.shape[1] if data.y.ndim == 2 else None
        super()._begin(data)

    def _make_mixer(self) -> CentredMixer | OutputsMixer:
        self._learned_loss = resolve_loss(self.loss)
        if self._n_outputs is None:
            return self._mixer_of_one()
        return OutputsMixer([self._mixer_of_one() for _ in range(self._n_outputs)])

    def _mixer_of_one(self) -> CentredMixer:
        """The mixer of one output."""
        hedge, stack = self._make_hedge(None)
        parts = hedge, make_loss(self._learned_loss), stack, QuantileTracker()
        if self._learned_loss.translation_invariant:
            return CentredMixer(*parts, TargetMemory(self.share) if self.memory else None)
        return LinkedMixer(*parts, None, not np.isfinite(self._learned_loss.target_range).all())
