"""What the mixtures of class probabilities share: labels, forecasts, log-loss and Brier's loss."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from .._online.estimator import Call
from .._online.labels import StreamClassifierMixin
from .._online.types import MatrixLike
from .._online.validation import check_rows, check_weights, dense
from .._sklearn_compat import fit_context
from ._base import ExpertMixture, Forecasts, RowCosts
from ._weights import Array, log_sum_exp


class MixtureClassifier(StreamClassifierMixin, ExpertMixture):
    """What the mixtures of class probabilities share: all but `_rate`.

    Parameters
    ----------
    estimators : list of (str, estimator) or None
        The experts: online classifiers with `predict_proba`, cloned when learning starts; all of them learn each row
        after it was forecast. None: the columns of X are the probabilities of the experts: for two classes one column
        per expert, the probability of `classes_[1]`; for more, the columns of all classes of the first expert, then of
        the next.
    """

    strategy = "average"
    loss = "log_loss"
    _asks_for = "predict_proba"

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit from scratch: one pass over the rows, in their order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows for the experts, or their probabilities.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the losses of each row, and is passed on to the experts; a row of weight 0 is ignored.

        Returns
        -------
        {self}
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from these rows, once, in their order; all of them or, if it raises, none.

        Parameters
        ----------
        {X, y, classes, sample_weight}

        Returns
        -------
        {self}

        Raises
        ------
        ValueError
            If numbers are not probabilities, or with log loss the mixture gives the observed label probability 0; the
            message names the row.
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def predict_proba(self, X: MatrixLike) -> Array:
        """The weighted mean of the experts' probabilities.

        Parameters
        ----------
        {X}

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column for each of `classes_`.
        """
        X = self._check_query(X)
        if self.estimators_:
            forecasts = np.stack([self._probabilities(k, X) for k in range(len(self.estimators_))], axis=1)
        else:
            forecasts = self._columns(X)
        return np.tensordot(forecasts, self.weights_, axes=(1, 0))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """The most probable labels.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    # --- learning -------------------------------------------------------------------------------------------------

    def _check(self, call: Call, X, y, sample_weight=None, classes: ArrayLike | None = None) -> Forecasts:
        X, y = check_rows(self, X, y=y, reset=call.first, numeric=False)
        codes = self._class_numbers(y, classes, call)
        weights = check_weights(sample_weight, len(y), allow_all_zero=call.partial)
        return Forecasts(X, y, weights, targets=codes)

    def _begin(self, data: Forecasts) -> None:
        self._learned_loss, self._learned_strategy = self.loss, self.strategy
        super()._begin(data)

    # --- forecasts ------------------------------------------------------------------------------------------------

    def _n_columns_of_experts(self, n_features: int) -> int:
        per_expert = 1 if len(self.classes_) == 2 else len(self.classes_)
        if n_features % per_expert:
            raise ValueError(
                f"X has {n_features} features, but {per_expert} classes: give {per_expert} columns for each expert, or "
                "estimators."
            )
        return n_features // per_expert

    def _columns(self, X) -> Array:
        """Probabilities of shape (n_samples, n_experts, n_classes) from the columns of X."""
        p = dense(X, np.float64)
        wrong = ~((p >= 0) & (p <= 1))
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(
                f"X has {p[row, column]:g} at row {row}, column {column}, which is not a probability; give numbers "
                "from 0 to 1, or estimators that learn from the rows."
            )
        if len(self.classes_) == 2:
            return np.stack([1 - p, p], axis=2)
        p = p.reshape(len(p), -1, len(self.classes_))
        self._check_sums(p)
        return p

    def _check_sums(self, p: Array, row: int | None = None) -> None:
        far = np.abs(p.sum(axis=-1) - 1) > 1e-6
        if far.any():
            where, expert = (int(i) for i in np.argwhere(far)[0])
            raise ValueError(
                f"The probabilities of expert {expert} at row {where if row is None else row} must sum to 1; got "
                f"{p[where, expert].sum():g}. Divide by the sum."
            )

    def _probabilities(self, k: int, X) -> Array:
        expert = self.estimators_[k]
        if not hasattr(expert, "classes_"):  # where the rows so far had no weight
            raise NotFittedError(
                f"Expert {self._name(k)} has not learned a row yet; call partial_fit with rows of weight > 0"
            )
        if not np.array_equal(expert.classes_, self.classes_):
            raise ValueError(
                f"Expert {self._name(k)} knows the classes {expert.classes_.tolist()}, the mixture "
                f"{self.classes_.tolist()}; they must be the same."
            )
        return np.asarray(expert.predict_proba(X), dtype=np.float64)

    def _ask(self, row_of_X, row: int) -> Array:
        p = np.concatenate([self._probabilities(k, row_of_X) for k in range(len(self.estimators_))])
        wrong = ~((p >= 0) & (p <= 1 + 1e-9)).all(axis=1)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(
                f"Expert {self._name(k)} gives {p[k]} at row {row}, which are not probabilities; remove it, or give "
                "one that was fitted beforehand, in a sklearn.frozen.FrozenEstimator."
            )
        self._check_sums(p[np.newaxis], row)
        return p

    def _row_costs(self, log_weights: Array, forecast: Array, y: int, row: int) -> RowCosts:
        if self._learned_loss == "brier":
            return self._brier(log_weights, forecast, y)
        with np.errstate(divide="ignore"):
            losses = -np.log(np.ascontiguousarray(forecast[:, y]))  # infinite where an expert was certain, and wrong
        log_mixed = log_sum_exp(log_weights - losses)
        if log_mixed == -np.inf:
            raise ValueError(
                f"All experts with weight give probability 0 to {self.classes_[y : y + 1].tolist()[0]!r}, the label "
                f"at row {row}; mix a little of the uniform distribution into their forecasts, or add it as an expert."
            )
        if self._learned_strategy == "average":
            return RowCosts(-log_mixed, losses, losses)
        return RowCosts(-log_mixed, losses, -np.exp(-losses - log_mixed))

    def _brier(self, log_weights: Array, forecast: Array, y: int) -> RowCosts:
        came = np.zeros(forecast.shape[1])
        came[y] = 1.0
        mixed = (np.exp(log_weights)[:, np.newaxis] * forecast).sum(axis=0) - came
        losses = ((forecast - came) ** 2).sum(axis=1) / 2
        costs = losses if self._learned_strategy == "average" else (forecast * mixed).sum(axis=1)
        return RowCosts(float((mixed**2).sum()) / 2, losses, costs)
