"""Base class of the linear regressors: fitting, prediction, and regret bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score, r2_score
from sklearn.utils import Tags

from .._kernels.learners.learner import Learner
from .._kernels.learners.multi_learner import MultiLearner
from .._online.compiled import make_loss
from .._online.estimator import Call, Examples
from .._online.examples import FitsFromWeights, LearnsTargets
from .._online.scores import Scores
from .._online.types import MatrixLike
from .._online.validation import check_output_shape, check_rows, check_weights
from ..losses import LOSSES, Loss
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

    loss: str | Loss = "squared_error"  # of estimators without this parameter
    _sorted = False  # whether predictions are several quantiles, in ascending order

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        loss = LOSSES.get(self.loss) if isinstance(self.loss, str) else self.loss
        tags.target_tags.multi_output = len(getattr(loss, "parts", (loss,))) == 1
        tags.target_tags.positive_only = getattr(loss, "target_range", Loss.target_range)[0] >= 0
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

    def _make_learners(self, n_weights: int, data: Examples, coef: ArrayLike | None) -> Learner | MultiLearner:
        learner, losses = super()._make_learners(n_weights, data, coef), self._learned_loss.parts
        self._sorted = len(losses) > 1
        for part, loss in zip(_parts(learner) if self._sorted else (), losses, strict=self._sorted):
            part.loss = make_loss(loss)
        return learner

    def _outputs(self, data: Examples) -> tuple[int, type[MultiLearner] | None]:
        return (data.y.shape[1], MultiLearner) if data.y.ndim == 2 else (1, None)

    def _check(self, call: Call, X, y, sample_weight=None) -> Examples:
        finite = sample_weight is not None
        X, y = check_rows(self, X, y=y, reset=call.first, multi_output=True, finite=finite, any_layout=True)
        n_losses = len((self._loss() if call.first else self._learned_loss).parts)
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

    def regret_certificate(self, coef: ArrayLike, intercept: ArrayLike = 0.0) -> float | np.ndarray:
        """Bound on the regret of this run against a comparator, without assumptions on the data.

        For every linear model u = (coef, intercept) in the domain and within `constraint`

            sum eta_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) - D(u, w_{T+1}) + S,

        the right side, with eta_t the rate of row t times its weight, and S accumulated during the run: for explicit
        steps sum D(w_t, w_{t+1}), for implicit steps sum eta_t (L_t(w_t) - L_t(w_{t+1})) - D(w_{t+1}, w_t). With a
        penalty R the right side also has sum eta_t (R(u) - R(w_{t+1})), minus the decrease of D by its steps. With
        learning_rate="constant", divide by eta0 to get the regret itself. The left side starts with `weighted_loss_`;
        the w_t are the weights before averaging. Parameters may change in mid-stream; while `fit_intercept` was False,
        the comparator must have the intercept that was kept.

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (n_outputs, n_features)
            Weights of the comparator; one row for all outputs is enough.
        intercept : float or array-like of shape (n_outputs,), default=0.0
            Its intercept; must be 0 if none is learned.

        Returns
        -------
        bound : float or ndarray of shape (n_outputs,)
            The right side, of each output, from the row at which `track_regret` was set.

        Raises
        ------
        ValueError
            If regret was not tracked, or the certificate does not hold for the comparator.
        """
        return self._each_bound(self._linear_certificate, coef, intercept)

    def regret_bound(
        self, coef: ArrayLike, intercept: ArrayLike = 0.0, *, largest_divergence: ArrayLike | None = None
    ) -> float | np.ndarray:
        """Bound on the regret of this run, without weighting rows by their rates.

        If rates never increase, as with "invscaling", dividing the terms of each row in `regret_certificate` by its
        rate gives

            sum h_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) / eta_1 - D(u, w_{T+1}) / eta_T + B (1 / eta_T - 1 / eta_1) + S',

        with h_t the weight of row t, eta_t the rate of a row of weight 1, B = `largest_divergence`, and S' the sum of
        the terms of S, each divided by its eta_t. For eta_t ~ 1 / sqrt(t) both are of the order of sqrt(T). With a
        penalty R the right side also has sum R(u) - R(w_{t+1}). The left side starts with `cumulative_loss_` if regret
        was tracked from the first row on, without `average`.

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (n_outputs, n_features)
            The comparator u; one row for all outputs is enough.
        intercept : float or array-like of shape (n_outputs,), default=0.0
            Its intercept; 0 if none is learned.
        largest_divergence : float or array-like of shape (n_outputs,), default=None
            An upper bound on all D(u, w_t) of the run, (intercept - intercept_t)^2 / 2 included: within L2Ball(r),
            without an intercept, (norm_2(coef) + r)^2 / 2 in the squared Euclidean geometry; within a Box the larger of
            the divergences from its ends, summed over coordinates. Not needed while the rate was constant.

        Returns
        -------
        bound : float or ndarray of shape (n_outputs,)
            The right side, of each output, from the row at which `track_regret` was set.

        Raises
        ------
        ValueError
            If regret was not tracked, a rate increased in mid-stream, or `largest_divergence` is needed but missing, or
            less than a divergence of the run.

        References
        ----------
        .. [1] B. Kulis, P. Bartlett, "Implicit Online Learning", ICML 2010, section 4.
        """
        largest = np.nan if largest_divergence is None else largest_divergence
        return self._each_bound(self._regret_bound, coef, intercept, largest)

    def optimality_gap(
        self,
        radius: ArrayLike | None = None,
        *,
        largest_intercept: ArrayLike | None = None,
        largest_divergence: ArrayLike | None = None,
        weighted: bool = False,
    ) -> float | np.ndarray:
        """Bound on the regret of this run against the best comparator, which need not be known.

        The largest `regret_bound` of all comparators, computed from one pass: certificates are affine in u, so that
        their maximum is that of <u, f(w_{T+1}) - f(w_1)>. Whatever the data,

            cumulative_loss_ - optimality_gap()  <=  min over u of sum h_t L_t(u)

        with h_t the weights of the rows, if regret was tracked from the first row on, without `average`. With a penalty
        R the right side is min over u of sum h_t L_t(u) + R(u), the objective of the penalised problem.

        Comparators are the weights of the domain and within `constraint`. If there are arbitrarily large ones, a radius
        is needed.

        Parameters
        ----------
        radius : float or array-like of shape (n_outputs,), default=None
            Compare with weights of norm_p(coef) <= radius only: p = 2 in the squared Euclidean and adaptive
            geometries, p = q in that of the p-norm algorithm, and p = 1 for entropies. None for weights that are
            bounded.
        largest_intercept : float or array-like of shape (n_outputs,), default=None
            Compare with intercepts of at most this size only. Not needed if none is learned.
        largest_divergence : float or array-like of shape (n_outputs,), default=None
            An upper bound on D(u, w_t) for all rows t and all these comparators, as in `regret_bound`. Not needed while
            the rate was constant.
        {weighted}

        Returns
        -------
        gap : float or ndarray of shape (n_outputs,)
            Upper bound on the loss of the model, of each output, minus that of its best comparator, from the row at
            which `track_regret` was set.

        Raises
        ------
        {ValueError}

        Examples
        --------
        >>> import numpy as np
        >>> from onlinebregman import EGRegressor
        >>> from onlinebregman.model_selection import offline_comparator
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(1000, 10))
        >>> y = X @ rng.dirichlet(np.ones(10)) + 0.1 * rng.normal(size=1000)
        >>> model = EGRegressor(
        ...     weights="simplex", learning_rate="constant", eta0=0.1, fit_intercept=False, track_regret=True
        ... ).partial_fit(X, y)
        >>> best = offline_comparator(X, y, domain="simplex")
        >>> print(f"{model.cumulative_loss_ - best.cumulative_loss:.2f} <= {model.optimality_gap():.2f}")
        1.05 <= 6.72
        """
        return self._each(partial(self._gap, weighted=weighted), radius, largest_intercept, largest_divergence)
