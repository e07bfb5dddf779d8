"""Base class of the forward algorithms: their parameters, and one compiled learner."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from math import pi, sqrt
from numbers import Integral, Real
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from .._kernels.rows.fourier import FourierFeatures
from .._online.estimator import LOSS, ROWS, Examples, OnlineEstimator, by_parameter
from .._online.merging import merged_standardizer
from .._sklearn_compat import Interval, StrOptions
from ._base import MapsRows, parts_of

LEAST_ALPHA = 1e-4  # alpha of an intercept without a penalty


class ForwardEstimator(MapsRows, OnlineEstimator):
    """Second-order steps on a penalised loss, one pass over the rows, no learning rate.

    Parameters
    ----------
    alpha : float
        Strength of the penalty alpha |w|^2 / 2 on the weights w, of all classes where there are several, intercepts
        included unless `penalize_intercept` says otherwise; > 0. Read when learning starts.
    forgetting : float
        Factor by which the weight of the past, including the penalty, is multiplied after each row; 0 < forgetting <=
        1. With values below 1 about the last 1 / (1 - forgetting) rows count, so that weights follow drift. May be
        changed in mid-stream.
    fit_intercept : bool
        Learn an intercept, as an additional coordinate with feature 1 and the same penalty. Read when learning starts.
    penalize_intercept : bool
        Whether the intercept is penalised like the other weights; see Notes for the effect of False. Read when learning
        starts. ForwardRegressor with `standardize` never penalises it.
    random_features : int
        Number of random Fourier features that replace the columns; the model then approximates the kernel exp(-gamma |x
        - x'|^2) and is no longer linear in X. Time and memory are quadratic in this number. 0: the columns themselves.
        Read when learning starts.
    gamma : float or None
        Parameter of that kernel; > 0. None: 1 / n_features, for standardised rows (`standardize`).
    shuffle : bool
        Learn the rows of `fit` in random order. False: in their own order, as `partial_fit` always does, for instance
        so that the rows that count with `forgetting` are the last ones.
    random_state : int, RandomState instance or None
        For drawing the features, and for shuffling.
    warm_start : bool
        Let `fit` continue from the current state, so that its rows count as further rows.
    """

    _parameter_constraints: dict = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "forgetting": [Interval(Real, 0, 1, closed="right")],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "standardize": ["boolean", StrOptions({"auto"})],
        "random_features": [Interval(Integral, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
    }

    t_, cumulative_loss_ = ROWS, LOSS
    _remedy: str  # for the error message of a row that overflows
    _adds_up, _matrices = True, 1
    _warm_start = by_parameter("warm_start")
    alpha: float
    penalize_intercept: bool
    fit_intercept: bool
    random_features: int
    gamma: float | None

    @property
    def _adapts(self) -> bool:
        return self.forgetting == 1

    @property
    def _centred(self) -> bool:
        """Whether the learner itself centres rows, as long as it is one of second order."""
        implicit = getattr(self, "update", "implicit") == "implicit"
        return implicit and self.standardize == "auto" and self.fit_intercept and not self.random_features

    @property
    def _standardizes(self) -> bool:
        return self.standardize is True

    @property
    def _watches(self) -> bool:
        return self._centred or self._standardizes

    def _standardizer(self) -> Any:
        first = parts_of(self._fitted_state())[0]
        return getattr(first, "centre", None) or (first if getattr(first, "scaled", False) else super()._standardizer())

    def _features(self, n_features: int) -> FourierFeatures | None:
        """Features drawn for the kernel, with omega ~ N(0, 2 gamma I) and b uniform."""
        if self.random_features == 0:
            return None
        rng = check_random_state(self.random_state)
        gamma = 1.0 / n_features if self.gamma is None else self.gamma
        omega = sqrt(2.0 * gamma) * rng.normal(size=(self.random_features, n_features))
        return FourierFeatures(omega / (2.0 * pi), rng.uniform(size=self.random_features))

    @property
    def _unmergeable(self) -> str | None:
        if self.forgetting == 1:
            return None
        return f"with forgetting={self.forgetting:g} the order of all rows counts, which is unknown; use forgetting=1.0"

    def _merged(self, parts: Sequence[Self], fractions: Sequence[float]) -> Self:
        """See `LifeCycleMixin._merged`: A = A_1 + sum (A_s - A_1), and b likewise, as in one pass over all rows."""
        if self.random_features and any(part._frequencies() != self._frequencies() for part in parts):
            raise ValueError(
                f"models must have drawn the same random_features; with random_state={self.random_state!r} each draws "
                "its own. Give a number, or let copies of one model learn on, and give it as start."
            )
        mixed = copy.copy(self)
        mixed._parallel = True
        row_map = merged_standardizer(self._learner.row_map, [part._learner.row_map for part in parts])
        mixed._learner = self._learner.joined([part._learner for part in parts], row_map)
        return mixed

    def _frequencies(self) -> list[list[float]]:
        return parts_of(self._fitted_state())[0].features.frequencies.tolist()

    def _intercept_alpha(self) -> float:
        """alpha of the intercept; not 0, as the loss may have no minimum over intercepts."""
        return self.alpha if self.penalize_intercept else min(self.alpha, LEAST_ALPHA)

    def _linear_model(self) -> tuple[np.ndarray, Any]:
        learner = self._fitted_state()
        return super()._linear_model() if learner.features is None else (learner.coef, learner.intercept)

    def _refuse_prediction(self, X, row: int) -> NoReturn:
        what = "score of" if is_classifier(self) else "prediction for"
        raise ValueError(f"The {what} row {row} ({largest_feature(X, row)}) is not finite; {self._remedy}")

    def _refuse(self, reason: str, row: int, data: Examples) -> None:
        """Raise the error for a row that the learner refused, with a remedy."""
        what = (
            "its loss overflows"
            if reason == "loss overflowed"
            else "the squares of its numbers, times its weight, overflow"
        )
        size = largest_feature(data.X, row)
        if not is_classifier(self):
            size += f", target {abs(data.y[row]).max():g}"
        raise ValueError(f"Row {row} ({size}) or one before it cannot be learned: {what}; {self._remedy}")


def largest_feature(X, row: int) -> str:
    """The size of a row's numbers, for error messages."""
    return f"largest feature {abs(X[row : row + 1]).max():g}"
