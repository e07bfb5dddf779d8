"""Densities as outlier detectors: rows of low density, below a threshold that is learned online."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from .._kernels.learners.outliers import UNSCORED, OutlierLearner, ScoreQuantile
from .._kernels.rows.standardizer import Standardizer
from .._online.estimator import Call, Examples, OnlineEstimator
from .._online.examples import LearnsRows
from .._online.outliers import PredictsOutliers
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_dense_rows, check_learned, check_weights
from .._sklearn_compat import Interval
from ..pipeline import check_instance, check_online, copies_to_learn
from ._base import OnlineDensity, refuse_log_density
from .gaussian import OnlineGaussian


class DensityOutlierDetector(PredictsOutliers, LearnsRows, OnlineEstimator):
    """Outlier detection by a density that learns the rows, and the quantile of its scores, both online.

    Each row is scored by its log-density before the density learns it. Outliers are the rows whose score is below the
    offset, which is learned from these scores by steps on the pinball loss, as their nu-quantile: of the rows that come
    next, about a fraction nu is predicted to be outliers, also if the stream drifts.

    Parameters
    ----------
    estimator : estimator or None
        A density with `partial_fit` and `score_samples`, such as `OnlineGaussian`, `OnlineExponentialFamily`,
        `DensityMixture`, or a pipeline that ends with one. None: `OnlineGaussian(prior_weight=1.0)` on columns
        standardised online, a row of weight h counting h times.
    nu : float
        Fraction of the rows that are outliers (their contamination), 0 < nu < 1. Read when learning starts.
    {shuffle, random_state}

    Attributes
    ----------
    estimator_ : estimator
        The density, by default that of standardised columns.
    offset_ : float
        Scores below it are those of outliers.
    {t_, n_features_in_, feature_names_in_}

    See Also
    --------
    OneClassMirrorDescent : By a linear model, for instance of random features.

    Notes
    -----
    The offset moves by steps in units of the mean deviation of the scores, which decrease with their number, but are
    larger while the outliers of the last thousand rows are more or fewer than chance explains. `fit` ends
    with the nu-quantile of the scores of all its rows. The first ten rows are only learned; until then the offset is
    minus infinity. Of the first two Gaussians only learn the scale, as either may be absurd.

    Gaussians learn values more than ten mean deviations from the mean of their column as the nearest within, so that an
    absurd row does not spoil them; a change that lasts is learned after some rows.

    The default standardises a row before its score by the statistics of the rows before, and to learn it also by its
    own; a column that was constant so far is only centred.

    Rows are scored and learned in one compiled pass by the default, `OnlineGaussian` and `OnlineExponentialFamily`, and
    one after the other by other densities and pipelines. With transformers of scikit-learn, it must not predict while
    another thread learns.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import DensityOutlierDetector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) * [1.0, 100.0]
    >>> model = DensityOutlierDetector(nu=0.1).partial_fit(X)
    >>> print(f"{(model.predict(X) == -1).mean():.1f}")
    0.1
    >>> print(model.predict([[0.0, 0.0], [0.0, 500.0]]))
    [ 1 -1]
    """

    _unmergeable = "its offset is a quantile of the scores of one sequence of rows, each scored before it was learned"
    _parameter_constraints: dict = {"estimator": [BaseEstimator, None], "nu": [Interval(Real, 0, 1, closed="neither")]}

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        nu: float = 0.1,
        shuffle: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self._set_arguments(locals())

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Log-densities of rows.

        Parameters
        ----------
        {X}

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            `score_samples` of the density.
        """
        learner = vars(self).get("_learner")
        if learner is not None and learner.row_map is not None:
            return self._predict(X)
        check_learned(self)
        return self._score(check_dense_rows(self, X, reset=False))

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Log-densities of rows minus the offset, negative for outliers.

        Parameters
        ----------
        {X}

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            `score_samples(X) - offset_`, 0 where both are minus infinity.
        """
        scores, offset = self.score_samples(X), self.offset_
        return np.subtract(scores, offset, out=np.zeros_like(scores), where=scores != offset)

    @property
    def offset_(self) -> float:
        """The threshold of the scores."""
        return self._quantile.offset

    @property
    def _quantile(self) -> ScoreQuantile:
        learner = self._fitted_state()
        return learner if self._others else learner.quantile

    @property
    def t_(self) -> int:
        """Rows learned; rows of weight zero do not count."""
        return self._quantile.t

    @property
    def _others(self) -> list[Any]:
        """The density, unless its learner is a part of the detector's."""
        return [] if isinstance(self.estimator_, OnlineDensity) else [self.estimator_]

    def _check(self, call: Call, X: ArrayLike, y: None, sample_weight: ArrayLike | None) -> Examples:
        X = check_dense_rows(self, X, reset=call.first)
        return Examples(X, weights=check_weights(sample_weight, len(X), allow_all_zero=call.partial))

    def _begin(self, data: Examples) -> None:
        self.estimator_: Any = _new(self.estimator)
        quantile = ScoreQuantile(self.nu)
        if self._others:
            self._learner = quantile
            return
        self.estimator_.partial_fit(data.X[:1], sample_weight=np.zeros(1))  # begins
        self._learner = OutlierLearner([self.estimator_._learner], quantile)
        if self.estimator is None:
            self._learner.map_by(Standardizer(data.X.shape[1], True, clipped=False))

    def _go_on(self, data: Examples, call: Call) -> None:
        super()._go_on(data, call)
        if self._others:
            (self.estimator_,) = copies_to_learn(self._others, len(data))

    def _learn(self, data: Examples, order: np.ndarray | None = None, *, again: bool = False) -> None:
        if not self._others:
            self.estimator_._check_values(data.X, False)
            super()._learn(data, order)
            return
        rows = np.arange(len(data)) if order is None else order
        rows = rows if data.weights is None else rows[data.weights[rows] > 0]
        scores = np.full((len(data), 1), np.nan)
        for number, row in enumerate(rows.tolist(), self.t_):
            scores[row] = self._learn_row(data, row, scored=number >= UNSCORED)
        self._learner.learn(scores, None, data.weights, order)

    def _learn_in_epochs(self, learn: Callable, data: Examples, X, y) -> None:
        """Learn the rows, and end with the quantile of their scores by the density that has learned all of them."""
        super()._learn_in_epochs(learn, data, X, y)
        if self.t_ <= UNSCORED:
            return
        scores = self._score(data.X) if self._others else self._predict_validated(data.X)
        self._quantile.offset = -np.quantile(-scores, 1.0 - self.nu, weights=data.weights, method="inverted_cdf")

    def _refuse(self, reason: str, row: int, data: Examples) -> NoReturn:
        raise ValueError(f"The density cannot learn row {row}: {self.estimator_._refused}")

    def _score(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):  # of scalers; the density refuses rows that overflow
            return np.asarray(self.estimator_.score_samples(X), dtype=np.float64)

    def _learn_row(self, data: Examples, row: int, scored: bool) -> float:
        """Learn a row; returns its score before, or NaN if it is not `scored`."""
        X = data.X[row : row + 1]
        weights = {} if data.weights is None else {"sample_weight": data.weights[row : row + 1]}
        try:
            score = self._score(X)[0] if scored else np.nan
            with np.errstate(all="ignore"):
                self.estimator_.partial_fit(X, **weights)
        except ValueError as error:  # its message says row 0, as it gets one row at a time
            raise ValueError(f"The density cannot learn row {row}: {error}") from error
        return score

    def _refuse_prediction(self, X: np.ndarray, row: int) -> NoReturn:
        refuse_log_density(X, row)


def _new(estimator: BaseEstimator | None) -> Any:
    """The density that learns, by default of standardised columns."""
    if estimator is None:
        return OnlineGaussian(prior_weight=1.0)
    check_instance(estimator, "estimator")
    check_online(estimator, "estimator")
    if not hasattr(estimator, "score_samples"):
        raise ValueError(f"estimator must have the method score_samples; got {estimator!r}.")
    return clone(estimator)
