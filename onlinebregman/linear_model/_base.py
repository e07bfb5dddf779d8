"""What the linear models share, and the regressors: rows in, a learner that holds the weights, predictions out."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._kernels._learner import Learner
from .._mirror import MirrorMixin, OnlineEstimator, starting_weights
from .._sklearn_compat import Interval, StrOptions, all_or_nothing, fit_context, validate_parameters
from .._theory import TheoryRate, theory_rate
from .._validation import check_rows, check_weights
from ..schedules import LEARNING_RATES, Constant, Schedule


class OnlineLinearModel(MirrorMixin, OnlineEstimator):
    """A linear model learned row by row; a mirror mixin gives it its geometry, a subclass what it predicts."""

    _parameter_constraints: dict = {
        **OnlineEstimator._loop_constraints,
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "learning_rate": [StrOptions({*LEARNING_RATES, "theory"}), Schedule],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "data_bounds": [dict, None],
        "update": [StrOptions({"implicit", "explicit", "importance"})],
        "init": ["array-like", Interval(Real, None, None, closed="neither"), None],
        "fit_intercept": ["boolean"],
        "average": ["boolean", Interval(Integral, 1, None, closed="left")],
        "track_regret": ["boolean"],
    }

    _read_at_each_call = (
        "eta0",
        "learning_rate",
        "power_t",
        "data_bounds",
        "update",
        "fit_intercept",
        "average",
        "track_regret",
    )

    def __init__(
        self,
        *,
        eta0,
        learning_rate,
        power_t,
        data_bounds,
        update,
        init,
        fit_intercept,
        max_iter,
        tol,
        n_iter_no_change,
        shuffle,
        average,
        track_regret,
        warm_start,
        random_state,
        verbose,
    ) -> None:
        self.eta0 = eta0
        self.learning_rate = learning_rate
        self.power_t = power_t
        self.data_bounds = data_bounds
        self.update = update
        self.init = init
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.average = average
        self.track_regret = track_regret
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _schedule(self) -> Schedule:
        return Constant(self._theory().eta0) if self.learning_rate == "theory" else super()._schedule()

    def _theory(self) -> TheoryRate:
        if self.init is not None:
            raise ValueError(
                "learning_rate='theory' is for weights that start where init=None puts them; leave it out."
            )
        return theory_rate(
            self._divergence,
            self._learned_loss,
            self.update,
            self.data_bounds,
            self.n_features_in_,
            signed=self._signed,
            fit_intercept=self.fit_intercept,
            largest_weight=self._largest_weight,
        )

    @property
    def regret_bound_(self) -> float:
        """The theorem's bound on `cumulative_loss_` minus a comparator's loss, under learning_rate="theory".

        It holds for all comparators and rows that keep to `data_bounds`, losses being multiplied by the weights of
        their rows. For the squared loss L <= factor L_u + constant; the bound is
        (factor - 1) data_bounds["loss"] + constant.

        The rate is made for rows of weight 1 or less. Heavier ones, of weight h at most, are learned at up to h times
        the rate, for which the bound is larger; for explicit steps on the squared loss it can be infinite.
        """
        self._fitted_learner()
        if self.learning_rate != "theory":
            raise AttributeError("regret_bound_ is the theorem's; it needs learning_rate='theory' with its data_bounds")
        theory = self._theory()
        if theory.factor > 1 and "loss" not in self.data_bounds:
            raise AttributeError("regret_bound_ for the squared loss needs data_bounds['loss'], the comparator's loss")
        return theory.regret(self.data_bounds.get("loss", 0.0))

    def _make_learner(self, start) -> Learner:
        self._largest_weight = 1.0
        return super()._make_learner(start)

    def _learn(self, X, y, sample_weight, order=None) -> float:
        loss = super()._learn(X, y, sample_weight, order)
        self._note_weights(sample_weight)
        return loss

    def _note_weights(self, sample_weight: np.ndarray | None) -> None:
        """For the theorem: how heavy rows were."""
        if sample_weight is not None:
            self._largest_weight = max(self._largest_weight, float(sample_weight.max()))

    def _learn_from_scratch(self, X, y, sample_weight, **check) -> Self:
        """The body of `fit`."""
        with all_or_nothing(self):
            going_on = self.warm_start and self.__sklearn_is_fitted__()
            rows, targets, sample_weight = self._check(
                X, y, sample_weight, reset=not going_on, allow_all_zero=False, **check
            )
            learner = copy.deepcopy(self._learner) if going_on else self._make_learner(rows.shape[1])
            self._learner = self._configure(learner)
            self._fit_epochs(
                lambda order: self._learn(rows, targets, sample_weight, order), len(targets), X, y, stacklevel=5
            )
        return self

    def _learn_more(self, X, y, sample_weight, **check) -> Self:
        """The body of `partial_fit`, where the fast path is closed."""
        learner = vars(self).get("_learner")
        with all_or_nothing(self):
            if learner is None or not learner.in_force(vars(self)):
                validate_parameters(self)
            X, y, sample_weight = self._check(X, y, sample_weight, reset=learner is None, allow_all_zero=True, **check)
            self._learner = self._configure(learner or self._make_learner(X.shape[1]))
            self._learn(X, y, sample_weight)
        return self

    def _scores(self, X, linked: bool = False) -> np.ndarray:
        """Scores X w + b of rows, or the predictions that the loss's link makes of them."""
        learner = vars(self).get("_learner")
        scores = None if learner is None else learner.predict_fast(vars(self), X, linked)
        if scores is None:
            check_is_fitted(self)
            scores = learner.predict(check_rows(self, X, reset=False), linked=linked)
        return scores

    def _linear_certificate(self, learner: Learner, coef: ArrayLike, intercept: float) -> float:
        """The certificate of one learner against checked weights and intercept."""
        signed = bool(learner.geometry.doubled)  # as when learning started; the parameters may have been set since
        u = starting_weights(self._divergence, coef, self.n_features_in_, signed, name="coef")
        if intercept != 0 and not self.fit_intercept:
            raise ValueError(f"intercept = {intercept:g}, but this run learned none; compare with intercept 0.")
        return self._certificate(learner, u, intercept)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features; a copy."""
        return self._fitted_learner().coef

    @property
    def intercept_(self) -> float | np.ndarray:
        """The intercept."""
        return self._fitted_learner().intercept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class OnlineLinearRegressor(RegressorMixin, OnlineLinearModel):
    """A linear model that predicts h(X w + b), h the link of its loss: the identity for the squared one."""

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
        return self._learn_from_scratch(X, y, sample_weight)

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
        return self._learn_more(X, y, sample_weight)

    def predict(self, X) -> np.ndarray:
        """Predict the targets of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions: h(X @ coef_ + intercept_) with h the link of the loss, the identity for the squared loss.
        """
        return self._scores(X, linked=True)

    def regret_certificate(self, coef: ArrayLike, intercept: float = 0.0) -> float:
        """Bound on the regret of this very run against a comparator: no assumption on the data.

        For every linear model u = (coef, intercept) in the domain

            sum eta_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) - D(u, w_{T+1}) + S,

        the right side, with eta_t the rate of row t times its weight, and S what the run itself accumulated:
        explicit steps sum D(w_t, w_{t+1}), implicit ones sum eta_t (L_t(w_t) - L_t(w_{t+1})) - D(w_{t+1}, w_t). Under
        learning_rate="constant" divide by eta0 for the regret itself. The left side starts with `weighted_loss_`.

        Parameters
        ----------
        coef : array-like of shape (n_features,)
            Weights of the comparator.
        intercept : float, default=0.0
            Its intercept; has to be 0 if none is learned.

        Returns
        -------
        bound : float
            The right side, from the row on at which `track_regret` was set.
        """
        return self._linear_certificate(self._fitted_learner(), coef, intercept)

    @property
    def weighted_loss_(self) -> float:
        """Sum of eta_t L_t(w_t), rates times weights times losses before each step, since regret is tracked."""
        return self._fitted_learner().weighted_loss

    def _check(self, X, y, sample_weight, *, reset: bool, allow_all_zero: bool):
        X, y = check_rows(self, X, y=y, reset=reset)
        return X, y, check_weights(sample_weight, len(y), allow_all_zero=allow_all_zero)
