"""Classification without parameters to tune: a Bayes mixture of linear classifiers that learn in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from .._kernels.learners.memory import LabelMemory
from .._kernels.learners.mixer import OutputsMixer
from .._kernels.learners.quantile_tracker import QuantileTracker
from .._kernels.learners.stacked_mixers import ProbabilityMixer
from .._online.estimator import Call, Examples, by_parameter
from .._online.intervals import ConformalMixin
from .._online.labels import LearnsLabels
from .._online.types import MatrixLike, RandomState
from ..linear_model import ForwardClassifier, MirrorDescentClassifier
from ..linear_model._classifier import OnlineLinearClassifier
from ._base import ParameterFree


class ParameterFreeClassifier(ConformalMixin, LearnsLabels, ParameterFree):
    """Classification of a stream with nothing to tune: many online classifiers in one pass, mixed by Bayes' rule.

    The members differ in the settings that a user would otherwise have to choose: the geometry, the learning rate and
    its schedule, the loss. Each row is predicted by the weighted mean of their probabilities

        p(y | x) = sum_k v_k p_k(y | x),    then    v_k  <-  v_k p_k(y | x) / p(y | x),

    and then learned by all of them. Two linear combinations of the members' log odds and one of their votes are also
    learned, and mixed with them (`stacking`); they may be better than the best member. If rows have weights of at most
    1 (`sample_weight` times `class_weight`), the log loss is at most that of the best member + ln(K + 3) for K members
    (ln K without stacking). Larger weights and `share` add costs, and `regret_bound_`, which holds for any rows,
    includes both.

    Parameters
    ----------
    {members, stacking, memory, share, standardize, random_features, thresholds, trees, categorical_features}
    {class_weight, handle_unknown, n_jobs, shuffle, random_state, handle_new_features, delayed}

    Attributes
    ----------
    {estimators_, weights_, weights_history_, weights_history_t_, cumulative_losses_, cumulative_loss_, regret_bound_}
    {stacking_weights_, stacking_coef_, memory_weights_, memory_coef_, best_estimator_, best_index_, classes_, t_}
    {is_categorical_, categories_, feature_importances_, n_features_in_, feature_names_in_}

    See Also
    --------
    ParameterFreeRegressor : The same for numbers.
    ForwardClassifier : One of the members by itself: O(n_features^2) a row.
    MirrorDescentClassifier : The others.
    BayesMixture : The same mixture of any classifiers, at the speed of Python.

    Notes
    -----
    Several labels of a row, y an indicator matrix of shape (n_samples, n_labels), are learned by members with one
    learner for each, and each label has a mixture of its own: attributes about weights, losses and combinations of
    members then have a first axis for the labels, `cumulative_loss_` and `regret_bound_` are sums, and the best member
    is that of the sum. `explain`, `feature_importances_` and `to_onnx` are for one output.

    Losses that give no probabilities, such as the hinge loss, are calibrated: probabilities are proportional to the
    sigmoid of slope * score + offset, and both numbers are learned by Newton steps on the rows predicted before, which
    move no log odds on the wrong side beyond 10 on the other one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from onlinebregman import ParameterFreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ParameterFreeClassifier().fit(X[:400], y[:400])
    >>> print(f"{model.score(X[400:], y[400:]):.2f}")
    0.98
    """

    _class_weight = by_parameter("class_weight")
    _kinds = (OnlineLinearClassifier, ForwardClassifier)
    _takes_indicators = True

    def __init__(
        self,
        *,
        members: Sequence[Any] | None = None,
        stacking: bool = True,
        memory: bool = True,
        share: float = 0.001,
        standardize: bool = True,
        random_features: int = 128,
        thresholds: bool = True,
        trees: int = 128,
        categorical_features: ArrayLike | Literal["from_dtype"] | None = "from_dtype",
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        handle_unknown: Literal["error", "add"] = "error",
        n_jobs: int | None = None,
        shuffle: bool = True,
        random_state: RandomState = 0,
        handle_new_features: Literal["error", "add"] = "error",
        delayed: bool = False,
    ) -> None:
        self._set_arguments(locals())

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of the classes: the weighted mean of the members'.

        Parameters
        ----------
        {X}

        Returns
        -------
        {probabilities}
        """
        return self._of_labels(self._predict(X))

    def _class_scores(self, X) -> np.ndarray:
        probabilities = self._predict(X)  # of several labels those of absence and presence
        return probabilities[:, 1::2] - probabilities[:, ::2] if self._multilabel else probabilities

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        {X}

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Minus infinity for probabilities that are 0 in float64.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = all(member.classifier_tags.multi_class for member in self._tags_of_members())
        return tags

    def _check_encoded(self, call: Call, X, y, sample_weight=None, classes: ArrayLike | None = None) -> Examples:
        data = self._check_labels(call, X, y, sample_weight, classes)
        if call.first:
            self.estimators_: list[Any] = self._make_estimators(data.X)
        return data

    def _make_estimators(self, X) -> list[Any]:
        return [member.set_params(handle_unknown=self.handle_unknown) for member in super()._make_estimators(X)]

    def _default_members(self, second_order: bool, sparse: bool) -> list[Any]:
        scaled: dict[str, Any] = {"standardize": self.standardize and not sparse}
        gradient = partial(MirrorDescentClassifier, divergence="squared_euclidean", **scaled)
        # on standardised rows the further rates of sparse ones made no difference
        rates = (0.1, 0.3, 1.0, 3.0, 10.0) if sparse else (0.1, 1.0, 3.0, 10.0)
        members: list = [gradient(eta0=eta, learning_rate="sqrt") for eta in rates]
        members += [
            MirrorDescentClassifier(divergence="normalized_adagrad", eta0=eta, **scaled)
            for eta in ((1.0, 3.0, 10.0, 30.0) if sparse else (1.0, 10.0, 30.0))
        ]
        members += [MirrorDescentClassifier(divergence="diagonal_newton", **scaled)]
        if sparse:
            members += [
                MirrorDescentClassifier(divergence=divergence, loss=loss, eta0=eta)
                for divergence, loss, etas in (
                    ("normalized_adagrad", "squared_hinge", (3.0, 10.0)),
                    ("adagrad", "squared_hinge", (1.0, 3.0)),
                    ("adagrad", "hinge", (1.0, 3.0)),
                    ("diagonal_newton", "hinge", (None,)),
                )
                for eta in etas
            ]
        else:
            members += [gradient(eta0=eta, learning_rate="constant") for eta in (0.01, 0.1, 1.0)]
        if second_order:
            members += [
                ForwardClassifier(alpha=alpha, forgetting=forgetting, **scaled)
                for alpha in (0.1, 1.0, 10.0)
                for forgetting in (1.0, 0.999)
            ]
            members += self._nonlinear(ForwardClassifier, scaled)
            if not sparse:
                joint = len(self.classes_) > 2 and not self._multilabel
                kind = partial(MirrorDescentClassifier, multi_class="multinomial" if joint else "ovr")
                members += self._of_thresholds(kind, len(self.classes_) if joint else 1)
        return members

    def _make_mixer(self) -> ProbabilityMixer | OutputsMixer:
        if self._multilabel:
            return OutputsMixer([self._mixer_of(2) for _ in self.classes_])
        return self._mixer_of(len(self.classes_))

    def _mixer_of(self, n_classes: int) -> ProbabilityMixer:
        links = [estimator._link for estimator in self.estimators_]
        hedge, stack = self._make_hedge(1.0)
        separate = self.handle_unknown == "add"
        memory = LabelMemory(self.share, None, n_classes, separate) if self.memory else None
        return ProbabilityMixer(hedge, n_classes, links, stack, QuantileTracker(), memory, separate)
