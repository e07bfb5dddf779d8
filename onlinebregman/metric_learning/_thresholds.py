"""A threshold on distances, which decides whether pairs are similar."""

from __future__ import annotations

from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from .._online.docs import DocumentedMixin, described_by
from .._online.types import MatrixLike
from .._online.validation import check_learned, check_rows, check_weights, dense
from ._examples import check_flat, check_similarity, members

STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


def rows_of_pairs(model, X, Y) -> tuple[np.ndarray, np.ndarray]:
    """Validated first and second rows of pairs.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or (n_samples, 2, n_features)
        First rows; or pairs of rows, without Y. With `preprocessor` also numbers of its rows, of shape (n_samples,) or
        (n_samples, 2).
    Y : array-like of shape (n_samples, n_features) or None, default=None
        Second rows.
    """
    check_learned(model)
    if Y is None:
        rows = dense(check_rows(model, members(model, X, 2, "pairs"), reset=False))
        return rows[::2], rows[1::2]
    for rows in (X, Y):
        check_flat(rows, "give all pairs as X, without Y, or their first rows as X and their second ones as Y")
    first, second = (dense(check_rows(model, model._by_number(rows), reset=False)) for rows in (X, Y))
    if first.shape != second.shape:
        raise ValueError(f"X and Y must have the same number of rows; got {len(first)} and {len(second)}.")
    return first, second


class ThresholdMixin(DocumentedMixin):
    """Classifies pairs by a threshold on their distance; a subclass defines `pair_distance`."""

    _threshold: float | None  # None in each new model

    @property
    def threshold_(self) -> float | None:
        """Distance up to which pairs are similar, see `predict_pairs`; None before it is known."""
        check_learned(self)
        return self._default_threshold() if self._threshold is None else self._threshold

    def _default_threshold(self) -> float | None:
        """The threshold without calibration, if there is a natural one."""
        return None

    @described_by(rows_of_pairs)
    def pair_distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Distances (not squared) between corresponding rows of X and Y, or of the pairs X.

        Parameters
        ----------
        {X, Y}

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            The distance of each pair.
        """
        raise NotImplementedError

    @described_by(rows_of_pairs)
    def pair_score(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Minus the distances of pairs: the higher, the more similar; for instance for `roc_auc_score`.

        Parameters
        ----------
        {X, Y}

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The score of each pair.
        """
        return -self.pair_distance(X, Y)

    @described_by(rows_of_pairs)
    def predict_pairs(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Whether pairs are similar: their distance is at most `threshold_`.

        Parameters
        ----------
        {X, Y}

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 for similar pairs, -1 for dissimilar ones.

        Raises
        ------
        NotFittedError
            If there is no threshold yet; it is a ValueError and an AttributeError.
        """
        distances, threshold = self.pair_distance(X, Y), self.threshold_
        if threshold is None:
            raise NotFittedError(
                "A threshold for this estimator has not been set, call its set_threshold or calibrate_threshold method."
            )
        return np.where(distances <= threshold, 1, -1)

    def set_threshold(self, threshold: float) -> Self:
        """Set `threshold_`.

        Parameters
        ----------
        threshold : float
            Largest distance (not squared) of similar pairs.

        Returns
        -------
        {self}
        """
        check_learned(self)
        if not isinstance(threshold, Real) or np.isnan(threshold):
            raise ValueError(
                f"Parameter threshold must be a real number. Got {type(threshold)} instead. Give the largest "
                f"distance of similar pairs in place of {threshold!r}."
            )
        self._threshold = float(threshold)
        return self

    @described_by(rows_of_pairs)
    def calibrate_threshold(
        self,
        X: MatrixLike,
        Y: MatrixLike | None = None,
        *,
        labels: ArrayLike,
        sample_weight: ArrayLike | None = None,
        strategy: Literal["accuracy", "f_beta", "max_tpr", "max_tnr"] = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Set `threshold_` to the best one for labelled pairs, which should not be those that were learned.

        It lies in the middle between the distances of two of the pairs. Learning does not change it: calibrate again
        when the metric has changed.

        Parameters
        ----------
        {X, Y}
        labels : array-like of shape (n_samples,)
            1 for similar pairs, -1 for dissimilar ones; both must occur.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each pair counts.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}
            What is maximised: the share of pairs classified correctly; the F score; the share of similar pairs that are
            found, or that of dissimilar ones, while the other share is at least `min_rate`.
        min_rate : float in [0, 1], default=None
            For "max_tpr" and "max_tnr", which need it.
        beta : float
            Weight of the recall in the F score.

        Returns
        -------
        {self}

        Raises
        ------
        ValueError
            If an argument is none of these, or all pairs are of one kind.
        """
        if strategy not in STRATEGIES:
            raise ValueError(
                f'Strategy can either be "accuracy", "f_beta" or "max_tpr" or "max_tnr". Got "{strategy}" instead.'
            )
        if strategy.startswith("max") and not (isinstance(min_rate, Real) and 0 <= min_rate <= 1):
            raise ValueError(f"min_rate must be a number from 0 to 1 for strategy={strategy!r}; got {min_rate!r}.")
        if not isinstance(beta, Real) or not np.isfinite(beta):
            raise ValueError(
                f"Parameter beta must be a real number. Got {type(beta)} instead. Give 1 in place of {beta!r}."
            )
        distances = self.pair_distance(X, Y)
        similar = check_similarity(labels, len(distances)) > 0
        weights = check_weights(sample_weight, len(distances), allow_all_zero=False)
        if weights is not None:
            distances, similar, weights = (values[weights > 0] for values in (distances, similar, weights))
        if similar.all() or not similar.any():
            raise ValueError(
                "labels must be of similar and of dissimilar pairs to calibrate a threshold; got one kind."
            )
        self._threshold = best_threshold(distances, similar, strategy, min_rate, beta, weights)
        return self


def best_threshold(
    distances: np.ndarray,
    similar: np.ndarray,
    strategy: str,
    min_rate: float | None = None,
    beta: float = 1.0,
    weights: np.ndarray | None = None,
) -> float:
    """The threshold for which a strategy is best, of those below, between and above the distances of pairs.

    Of equally good ones it is that with the better share of the other kind, or the smallest.
    """
    order = np.argsort(distances, kind="stable")
    distances, similar = distances[order], similar[order]
    counts = np.ones(len(order)) if weights is None else weights[order]
    last = np.flatnonzero(np.append(np.diff(distances) > 0, True))  # the last of the pairs with each distance
    found = np.append(0, np.cumsum(counts * similar)[last])  # similar pairs up to each threshold
    wrong = np.append(0, np.cumsum(counts * ~similar)[last])  # dissimilar ones
    n_similar, n_dissimilar = found[-1], wrong[-1]
    recall, rejected = found / n_similar, 1 - wrong / n_dissimilar
    if strategy == "accuracy":
        best = np.argmax(found - wrong)
    elif strategy == "f_beta":
        weighed = found + wrong + beta**2 * n_similar
        best = np.argmax((1 + beta**2) * found / np.maximum(weighed, np.finfo(float).tiny))
    else:
        wanted, other = (recall, rejected) if strategy == "max_tpr" else (rejected, recall)
        allowed = np.flatnonzero(other >= min_rate)
        best = allowed[np.lexsort((other[allowed], wanted[allowed]))[-1]]
    if best == 0:
        return float(np.nextafter(distances[0], -np.inf))
    below = distances[last[best - 1]]
    above = distances[min(last[best - 1] + 1, len(distances) - 1)]
    middle = below + (above - below) / 2
    return float(middle if middle < above else below)
