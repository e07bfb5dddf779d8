"""What the linear models share: rows in, a learner that holds the weights, predictions out."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from typing import Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._mirror import OnlineEstimator
from .._sklearn_compat import Interval, StrOptions, all_or_nothing, fit_context, validate_parameters
from .._validation import check_rows, check_weights
from ..schedules import LEARNING_RATES, Schedule


class OnlineLinearRegressor(RegressorMixin, OnlineEstimator):
    """Linear regression on the squared loss (a - y)^2 / 2; a mirror mixin gives it its geometry."""

    _parameter_constraints: dict = {
        **OnlineEstimator._loop_constraints,
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "learning_rate": [StrOptions(set(LEARNING_RATES)), Schedule],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "update": [StrOptions({"implicit", "explicit"})],
        "init": ["array-like", Interval(Real, None, None, closed="neither"), None],
        "fit_intercept": ["boolean"],
        "average": ["boolean", Interval(Integral, 1, None, closed="left")],
    }

    _read_at_each_call = ("eta0", "learning_rate", "power_t", "update", "fit_intercept", "average")

    def __init__(
        self,
        *,
        eta0,
        learning_rate,
        power_t,
        update,
        init,
        fit_intercept,
        max_iter,
        tol,
        n_iter_no_change,
        shuffle,
        average,
        warm_start,
        random_state,
        verbose,
    ) -> None:
        self.eta0 = eta0
        self.learning_rate = learning_rate
        self.power_t = power_t
        self.update = update
        self.init = init
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.average = average
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Learn from nothing (or go on, with `warm_start`): `max_iter` epochs over the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; float64, float32 and CSR are read without a copy.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the learning rate of each row; a row of weight 0 is left out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with all_or_nothing(self):
            going_on = self.warm_start and self.__sklearn_is_fitted__()
            X, y, sample_weight = self._check(X, y, sample_weight, reset=not going_on, allow_all_zero=False)
            learner = copy.deepcopy(self._learner) if going_on else self._make_learner(X.shape[1])
            self._learner = self._configure(learner)
            self._fit_epochs(lambda order: self._learn(X, y, sample_weight, order), len(y), X, y)
        return self

    def partial_fit(self, X, y, sample_weight=None) -> Self:
        """Learn from these rows, once, in their order.

        Cutting a stream into calls in any way gives the same numbers. A call learns all of its rows or, if it raises,
        none.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; float64, float32 and CSR are read without a copy.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the learning rate of each row; a row of weight 0 is left out.

        Returns
        -------
        self : object
            The estimator.
        """
        learner = vars(self).get("_learner")
        if learner is not None and sample_weight is None and learner.learn_fast(vars(self), X, y):
            return self
        with all_or_nothing(self):
            if learner is None or not learner.in_force(vars(self)):
                validate_parameters(self)
            X, y, sample_weight = self._check(X, y, sample_weight, reset=learner is None, allow_all_zero=True)
            self._learner = self._configure(learner or self._make_learner(X.shape[1]))
            self._learn(X, y, sample_weight)
        return self

    def predict(self, X) -> np.ndarray:
        """Predict X @ coef_ + intercept_.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions.
        """
        learner = vars(self).get("_learner")
        predictions = None if learner is None else learner.predict_fast(vars(self), X)
        if predictions is None:
            check_is_fitted(self)
            predictions = learner.predict(check_rows(self, X, reset=False))
        return predictions

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, shape (n_features,); a copy."""
        return self._fitted_learner().coef

    @property
    def intercept_(self) -> float:
        """The intercept."""
        return self._fitted_learner().intercept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check(self, X, y, sample_weight, *, reset: bool, allow_all_zero: bool):
        X, y = check_rows(self, X, y=y, reset=reset)
        return X, y, check_weights(sample_weight, len(y), allow_all_zero=allow_all_zero)
