"""Code shared by the density estimators: the pass over a stream of rows, and the score."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import wraps
from typing import Any, NoReturn, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import DensityMixin

from .._kernels.learners.density import DensityLearner
from .._online.docs import DocumentedMixin
from .._online.estimator import LOSS, ROWS, Call, Examples, OnlineEstimator
from .._online.examples import LearnsRows
from .._online.merging import total
from .._online.validation import check_dense_rows, check_weights, dense
from .._sklearn_compat import Method
from ..divergences import Conjugate, Divergence


def in_float64(method: Method) -> Method:
    """Decorator of attributes: their numbers must be finite, otherwise a ValueError; a single number may be -inf."""

    @wraps(method)
    def checked(self, *args, **kwargs):
        with np.errstate(all="ignore"):
            values = method(self, *args, **kwargs)
        if not (np.isfinite(values) | (np.ndim(values) == 0 and values == -np.inf)).all():
            raise ValueError(
                f"{method.__name__} of this {type(self).__name__} is not finite in float64: rows, weights and the "
                "prior differ too much in scale, or a mean is at the edge of the family; scale the features "
                "(sklearn.preprocessing.StandardScaler) and the weights, or change prior_weight."
            )
        return values

    return cast(Method, checked)


def refuse_log_density(X: Any, row: int) -> NoReturn:
    """Raise the error for the first row whose log-density is not finite."""
    raise ValueError(
        f"The log-density of row {row} (largest value {np.abs(dense(X)[row]).max():g}) is not finite in float64; "
        "remove the row, or scale the features (sklearn.preprocessing.StandardScaler)."
    )


_SUMS = ("rows", "weight", "loss")  # of a stream


class Density(DocumentedMixin, DensityMixin):
    """The score of a density estimator with `score_samples`."""

    def score(self, X: ArrayLike, y: None = None) -> float:
        """Mean log-density of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean of `score_samples(X)`.
        """
        return float(self.score_samples(X).mean())


class OnlineDensity(Density, LearnsRows, OnlineEstimator):
    """A density learned in one pass over a stream.

    A subclass defines `offline_loss_`, that of the best density in hindsight, and creates the `_learner`, which holds
    the state of the stream.
    """

    t_, cumulative_loss_ = ROWS, LOSS
    _learner: DensityLearner
    _refused: str  # error message for a row that cannot be learned, with a remedy

    def _progressive_fit(self, X, y: None, sample_weight: np.ndarray | None) -> np.ndarray | None:
        """Learn rows in one pass, and return the log-density of each before it was learned, as a row of weight 1.

        None if that would raise an error; nothing is learned then.
        """
        scores = self._progressive_scores(X, None, sample_weight)
        return None if scores is None else scores[:, 0]

    _adds_up, _unmergeable = True, None

    def _merged(self, parts: Sequence[Self], fractions: Sequence[float]) -> Self:
        """The sums over all rows are those of one pass, except for the losses, which are those of parallel runs."""
        mixed = copy.copy(self)
        mixed._parallel = True
        learners = [part._learner for part in parts]
        first, *states = (learner.state for learner in (self._learner, *learners))
        sums = {name: total(first[name], [state[name] for state in states]) for name in _SUMS}
        mixed._learner = self._joined(learners, sums)
        return mixed

    def _joined(self, parts: Sequence[DensityLearner], sums: dict[str, Any]) -> DensityLearner:
        """The learner of all rows, as `replaced` with `sums`, which are the state that adds up, and its memory."""
        raise NotImplementedError

    @property
    def cumulant_(self) -> Divergence:
        """The divergence of the cumulant G, the conjugate of F; a function of natural parameters."""
        return Conjugate(self.conjugate_)

    @property
    def regret_(self) -> float:
        """`cumulative_loss_ - offline_loss_`; inf where the latter is -inf."""
        return self.cumulative_loss_ - self.offline_loss_

    def _check(self, call: Call, X: ArrayLike, y: None, sample_weight: ArrayLike | None) -> Examples:
        X = check_dense_rows(self, X, reset=call.first)
        weights = check_weights(sample_weight, len(X), allow_all_zero=call.partial)
        self._check_values(X, call.first)
        return Examples(X, weights=weights)

    def _refuse(self, reason: str, row: int, data: Examples) -> None:
        weight = 1.0 if data.weights is None else data.weights[row]
        raise ValueError(
            f"Row {row} (largest value {np.abs(data.X[row]).max():g}) of weight {weight:g} cannot be learned: "
            f"{self._refused}"
        )

    def _check_first_prediction(self, prior_weight: float) -> None:
        if self.strategy == "incremental_offline" and prior_weight == 0:
            raise ValueError(
                "prior_weight=0 leaves strategy='incremental_offline' without a first prediction; give a positive "
                "prior_weight, or use strategy='forward'."
            )

    def _check_values(self, X: np.ndarray, reset: bool) -> None:
        """Raise ValueError for rows that are impossible in the family; `reset`: in that of the parameters."""
