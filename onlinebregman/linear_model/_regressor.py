"""Base class of the linear regressors: fitting, prediction, and regret bounds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score, r2_score
from sklearn.utils import Tags

from .._kernels.learners.multi_learner import MultiLearner
from .._online.estimator import Call, Examples
from .._online.examples import FitsFromWeights, LearnsTargets
from .._online.scores import Scores
from .._online.types import MatrixLike
from .._online.validation import check_output_shape, check_rows, check_weights
from .._sklearn_compat import StrOptions
from ..losses import LOSSES, Loss, resolve_loss
from ..losses._names import has_positive_targets, loss_names
from ._base import OnlineLinearModel, _parts


class OnlineLinearRegressor(RegressorMixin, FitsFromWeights, LearnsTargets, OnlineLinearModel):
    """A linear model that predicts h(X w + b), h the link of its loss: the identity for the squared one.

    Several outputs, y of shape (n_samples, n_outputs), are learned side by side, each as by a model of its own, from
    rows that are read, standardised and mapped once.

    Parameters
    ----------
    eta0 : float
        Learning rate eta for the loss (a - y)^2 / 2. The default, with its schedule, is suitable for standardised
        features and targets: see Notes.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Weights.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept.
    """

    _parameter_constraints: dict = {"loss": [StrOptions(set(loss_names("regression"))), Loss]}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        named = self._loss_parameter
        loss = LOSSES.get(named) if isinstance(named, str) else named
        tags.target_tags.multi_output = len(getattr(loss, "parts", (loss,))) == 1
        tags.target_tags.positive_only = has_positive_targets(named)
        return tags

    def _progressive_fit(self, X, y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
        scores = self._progressive_scores(X, y, sample_weight)
        if scores is None:
            return None
        predictions = _parts(self._learner)[0].link(scores.ravel()).reshape(-1, *self._output_shape)
        return np.sort(predictions, axis=1) if self._sorted else predictions

    @property
    def _output_shape(self) -> tuple[int, ...]:
        """The shape of a row's targets."""
        learner = self._fitted_learner()
        return (learner.n_scores,) if isinstance(learner, MultiLearner) else ()

    def _outputs(self, data: Examples) -> tuple[int, type[MultiLearner] | None]:
        return (data.y.shape[1], MultiLearner) if data.y.ndim == 2 else (1, None)

    def _check(self, call: Call, X, y, sample_weight=None) -> Examples:
        finite = sample_weight is not None
        X, y = check_rows(self, X, y=y, reset=call.first, multi_output=True, finite=finite, any_layout=True)
        n_losses = len((resolve_loss(self._loss_parameter) if call.first else self._learned_loss).parts)
        if n_losses > 1:  # of one target
            if y.ndim > 1:
                raise ValueError(
                    f"y should be 1d for several quantiles, which have one target; got shape {y.shape}. Use a model "
                    "for each target, such as the estimators_ of sklearn.multioutput.MultiOutputRegressor."
                )
            y = np.repeat(y[:, np.newaxis], n_losses, axis=1)
        if not call.first:
            check_output_shape(y, self._output_shape)
        return Examples(X, y, check_weights(sample_weight, len(y), allow_all_zero=call.partial))

    def _tolerance(self, data: Examples) -> float | None:
        """`tol` times the mean loss of the best constant, which has the units of the loss, if it has units."""
        y, weights, loss = data.y.reshape(len(data), -1), data.weights, self._learned_loss
        with np.errstate(all="ignore"):
            mean = np.average(y, axis=0, weights=weights)
            scores = mean if loss.translation_invariant else np.log(mean)
            if self.tol is None or not np.allclose(loss.link(scores), mean):  # probabilities
                return self.tol
            columns = zip(itertools.cycle(loss.parts), scores, y.T, strict=False)
            unit = sum(np.average(part.value(score, target), weights=weights) for part, score, target in columns)
        return float(self.tol * unit) if unit < np.inf else self.tol

    def _held_out_score(self, data: Examples) -> float:
        scores = self._predict_validated(data.X, (True,))
        y, scores = (data.y[:, 0], np.sort(scores)) if self._sorted else (data.y, scores)
        return self._quality(y, scores, data.weights)

    def _quality(self, y: ArrayLike, predictions: np.ndarray, weights: ArrayLike | None) -> float:
        if not self._sorted:
            return float(r2_score(y, predictions, sample_weight=weights))
        loss: Any = self._learned_loss
        each = zip(predictions.T, loss.quantile, strict=True)
        return float(np.mean([d2_pinball_score(y, p, sample_weight=weights, alpha=q) for p, q in each]))

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of predictions; of several quantiles the mean of D^2, the same with the pinball loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict for.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the sums of losses.

        Returns
        -------
        score : float
            At most 1; 0 for the mean of y, or its quantiles, in place of predictions.
        """
        return self._quality(y, self.predict(X), sample_weight)

    def _scores(self, *of: Callable) -> Scores:
        if self._sorted:
            raise ValueError(
                "Predictions of several quantiles are sorted, which no exported form does; learn a model for each."
            )
        return super()._scores(*of)

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict the targets of rows.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions: h(X @ coef_.T + intercept_) with h the link of the loss, the identity for the squared loss;
            several quantiles are sorted in ascending order.
            Exceptions are rows with values beyond the largest of their column so far, for which scale-invariant models
            and the divergences "normalized_adagrad" and "diagonal_newton" rescale the weights, and, with `standardize`,
            values beyond five deviations, which count as five.
        """
        predictions = self._predict(X, (True,))
        return np.sort(predictions, axis=1) if self._sorted else predictions
