"""What the metric learners share: labelled rows or pairs in, z'Wz and its square root out."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from typing import Self

import numpy as np
from scipy import linalg, sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import svd_flip
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted

from .._mirror import OnlineEstimator
from .._sklearn_compat import Interval, StrOptions, all_or_nothing, fit_context, validate_parameters
from .._validation import check_finite, check_indices, check_rows, check_symmetric, check_weights
from ..schedules import LEARNING_RATES, Schedule
from ._pairs import PairSampler


class OnlineMetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OnlineEstimator):
    """Metric learner on pairs; a mirror mixin gives it its geometry on symmetric positive definite matrices."""

    _parameter_constraints: dict = {
        **OnlineEstimator._loop_constraints,
        "prior": [StrOptions({"identity"}), "array-like"],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "scale_eta": ["boolean"],
        "learning_rate": [StrOptions(set(LEARNING_RATES)), Schedule],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "bounds": ["array-like", None],
        "pairs_per_row": [Interval(Integral, 1, None, closed="left")],
        "memory_size": [Interval(Integral, 1, None, closed="left")],
    }

    _read_at_each_call = ("eta0", "learning_rate", "power_t")

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Learn from nothing (or go on, with `warm_start`): `max_iter` epochs over labelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; sparse ones are made dense.
        y : array-like of shape (n_samples,)
            Labels: integers, strings or booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the learning rate of the pairs drawn for each row; a row of weight 0 is left out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(
            lambda reset: self._check_labelled(X, y, sample_weight, reset=reset, allow_all_zero=False),
            self._learn_labelled,
        )

    def partial_fit(self, X, y, sample_weight=None) -> Self:
        """Learn from these labelled rows, once, in their order, paired with rows remembered from before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; sparse ones are made dense.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the learning rate of the pairs drawn for each row; a row of weight 0 is left out.

        Returns
        -------
        self : object
            The estimator.
        """
        return self._partial(
            lambda reset: self._check_labelled(X, y, sample_weight, reset=reset, allow_all_zero=True),
            self._learn_labelled,
        )

    @fit_context(prefer_skip_nested_validation=True)
    def fit_pairs(self, X, pairs, targets, sample_weight=None) -> Self:
        """Learn from nothing (or go on, with `warm_start`): `max_iter` epochs over pairs with target distances.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        pairs : array-like of int of shape (n_pairs, 2)
            Each pair as two row numbers of X.
        targets : array-like of shape (n_pairs,)
            The squared distance each pair should have, >= 0.
        sample_weight : array-like of shape (n_pairs,), default=None
            Multiplies the learning rate of each pair; a pair of weight 0 is left out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(
            lambda reset: self._check_pairs(X, pairs, targets, sample_weight, reset=reset), self._learn_pairs
        )

    def partial_fit_pairs(self, X, pairs, targets, sample_weight=None) -> Self:
        """Learn from these pairs, once, in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        pairs : array-like of int of shape (n_pairs, 2)
            Each pair as two row numbers of X.
        targets : array-like of shape (n_pairs,)
            The squared distance each pair should have, >= 0.
        sample_weight : array-like of shape (n_pairs,), default=None
            Multiplies the learning rate of each pair; a pair of weight 0 is left out.

        Returns
        -------
        self : object
            The estimator.
        """
        return self._partial(
            lambda reset: self._check_pairs(X, pairs, targets, sample_weight, reset=reset), self._learn_pairs
        )

    def predict(self, Z) -> np.ndarray:
        """Squared distances z'Wz.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_features)
            Differences of two rows each.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            The squared distances.
        """
        check_is_fitted(self)
        return self._learner.predict(dense(check_rows(self, Z, reset=False)))

    def pair_distance(self, X, Y) -> np.ndarray:
        """Distances (not squared) between the rows of X and the rows of Y, one by one.

        Parameters
        ----------
        X, Y : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            The distance of X[i] and Y[i].
        """
        check_is_fitted(self)
        X, Y = (dense(check_rows(self, rows, reset=False)) for rows in (X, Y))
        if X.shape != Y.shape:
            raise ValueError(f"X has {len(X)} rows and Y has {len(Y)}; give two rows a pair.")
        return np.sqrt(self._learner.predict(np.ascontiguousarray(X - Y)))

    def transform(self, X) -> np.ndarray:
        """Map rows to where the learned distance is the Euclidean one: X @ components_.T.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features)
            The mapped rows.
        """
        check_is_fitted(self)
        return check_rows(self, X, reset=False) @ self.components_.T

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """The learned matrix W, shape (n_features, n_features): symmetric positive definite; a copy."""
        check_is_fitted(self)
        return self._learner.coef

    def get_metric(self):
        """The learned distance as a function of two rows, for `metric=` of scikit-learn's neighbours and clusterers."""
        check_is_fitted(self)
        return Mahalanobis(self.components_)

    @property
    def components_(self) -> np.ndarray:
        """L with W = L'L, shape (n_features, n_features); rows are the principal directions, longest first."""
        learner = self._fitted_learner()
        if self._factor.get("t") != learner.t:  # W changes with every pair, its factor is wanted now and then
            values, vectors = linalg.eigh(learner.coef)
            vectors, _ = svd_flip(vectors[:, ::-1], None)
            components = (vectors * np.sqrt(np.maximum(values[::-1], 0.0))).T
            components.flags.writeable = False
            self._factor.update(t=learner.t, components=components)
        return self._factor["components"]

    @property
    def n_updates_(self) -> int:
        """Pairs learned so far."""
        return self.t_

    @property
    def bounds_(self) -> tuple[float, float] | None:
        """Target squared distances of the moment, same class and different classes; None before they are known."""
        self._fitted_learner()
        return self._sampler.bounds

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    # --- learning -------------------------------------------------------------------------------------------------

    def _fit(self, check, learn) -> Self:
        """Check everything, then learn it in epochs; nothing is changed if either raises."""
        with all_or_nothing(self):
            going_on = self.warm_start and self.__sklearn_is_fitted__()
            checked = check(not going_on)
            self._start(self.n_features_in_, going_on, several_calls=True)

            def epoch(order):
                return learn(*checked) if order is None else learn(*(values[order] for values in checked))

            X, y, *_ = checked
            self._fit_epochs(epoch, len(y), X, y, stacklevel=5)
        return self

    def _partial(self, check, learn) -> Self:
        """One online pass: check everything, then learn it; nothing is changed if either raises."""
        with all_or_nothing(self):
            first = not self.__sklearn_is_fitted__()
            if first or not self._learner.in_force(vars(self)):
                validate_parameters(self)
            checked = check(first)
            self._start(self.n_features_in_, going_on=not first)
            learn(*checked)
        return self

    def _start(self, n_features: int, going_on: bool, several_calls: bool = False) -> None:
        """Bind a new learner and sampler, or copies that an error cannot spoil.

        A single call of the learner takes all rows or none, and needs no copy.
        """
        if going_on:
            self._sampler = copy.deepcopy(self._sampler)
            if several_calls:
                self._learner = copy.deepcopy(self._learner)
        else:
            prior = self._prior_matrix(n_features)
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            self._learner = self._make_learner(prior)
            self._sampler = PairSampler(prior, self.memory_size, self.pairs_per_row, self._given_bounds(), seed)
            self._largest_target = 0.0
            self.n_collapsed_ = 0
        self._factor = {}
        self._configure(self._learner)

    def _learn_labelled(self, X, y, weights) -> float:
        return self._learn_differences(*self._sampler.draw(X, y, weights))

    def _learn_pairs(self, z, targets, weights) -> float:
        """Learn pairs with targets; eta is scaled by the largest target so far, so that any cutting gives the same."""
        scales = np.maximum.accumulate(np.r_[self._largest_target, targets])[1:]
        self._largest_target = float(scales[-1])
        return self._learn_differences(z, targets, weights, scales)

    def _learn_differences(self, z, targets, weights, scales) -> float:
        """Learn rows z with targets; collapsed pairs (z = 0) say nothing about the metric and are counted instead."""
        sound = z.any(axis=1)
        self.n_collapsed_ += int(len(z) - sound.sum())
        if not sound.any():
            return 0.0
        rates = weights / np.where(scales > 0, scales, 1.0) ** 2 if self.scale_eta else weights
        return self._learn(np.ascontiguousarray(z[sound]), targets[sound], rates[sound])

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check_labelled(self, X, y, sample_weight, *, reset: bool, allow_all_zero: bool):
        X, y = check_rows(self, X, y=y, reset=reset, numeric=False)
        check_classification_targets(y)
        return dense(X), y, self._check_weights(sample_weight, len(y), allow_all_zero)

    def _check_weights(self, sample_weight, n: int, allow_all_zero: bool = True) -> np.ndarray:
        weights = check_weights(sample_weight, n, allow_all_zero=allow_all_zero)
        return np.ones(n) if weights is None else weights

    def _check_pairs(self, X, pairs, targets, sample_weight, *, reset: bool):
        X = dense(check_rows(self, X, reset=reset)).astype(np.float64, copy=False)
        pairs = check_indices(pairs, len(X), "pairs", "row")
        targets = check_array(targets, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="targets")
        if targets.shape != (len(pairs),):
            raise ValueError(
                f"targets has shape {targets.shape}, but there are {len(pairs)} pairs; give one target a pair."
            )
        check_finite(targets, "targets")
        if (targets < 0).any():
            row = int(np.argmax(targets < 0))
            raise ValueError(f"targets[{row}] = {targets[row]:g} is negative; give squared distances >= 0.")
        return X[pairs[:, 0]] - X[pairs[:, 1]], targets, self._check_weights(sample_weight, len(pairs))

    def _prior_matrix(self, n_features: int) -> np.ndarray:
        if isinstance(self.prior, str):
            return np.eye(n_features)
        prior = check_symmetric(self.prior, "prior")
        if len(prior) != n_features:
            raise ValueError(f"prior has {len(prior)} rows and columns, but X has {n_features} features.")
        smallest = linalg.eigvalsh(prior, subset_by_index=[0, 0])[0]
        if not smallest > 0:
            raise ValueError(
                f"prior is not positive definite (smallest eigenvalue {smallest:g}); add a multiple of the identity."
            )
        return prior

    def _given_bounds(self) -> tuple[float, float] | None:
        if self.bounds is None:
            return None
        bounds = np.asarray(self.bounds, dtype=np.float64)
        if bounds.shape != (2,) or not 0 <= bounds[0] < bounds[1] < np.inf:
            raise ValueError(
                f"bounds = {self.bounds!r}, but it is two squared distances, 0 <= same class < different classes."
            )
        return float(bounds[0]), float(bounds[1])


def dense(X) -> np.ndarray:
    """Rows as an array: a metric has n_features^2 numbers, so that sparse rows save nothing."""
    return X.toarray() if sparse.issparse(X) else X


class Mahalanobis:
    """Distance of two rows under W = L'L, as a picklable function.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_features)
        The factor L.
    """

    def __init__(self, components: np.ndarray) -> None:
        self.components = components

    def __call__(self, a, b) -> float:
        return float(np.linalg.norm(self.components @ (np.asarray(a) - np.asarray(b))))
