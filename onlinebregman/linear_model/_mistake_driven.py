"""Base class of Perceptron and Winnow: a step for each mistake, none for other rows, and a bound on the mistakes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from .._online.mirror import starting_weights
from .._online.types import MatrixLike
from .._online.validation import a_number, check_rows, read_only
from ._classifier import OnlineLinearClassifier


class MistakeDrivenClassifier(OnlineLinearClassifier):
    """Explicit steps on the loss max(0, -y a): f(w') = f(w) + eta y x if the sign of the score is wrong.

    Attributes
    ----------
    n_mistakes_ : ndarray of shape (1,) or (n_classes,)
        Mistakes of each learner; each caused a step.
    """

    _loss_parameter = "perceptron"
    _update, _power_t, _track_regret = "explicit", 0.5, False

    def _rate(self) -> tuple[str, float]:
        return "constant", self.eta0

    @read_only
    def n_mistakes_(self) -> np.ndarray:
        """Mistakes, each of which caused a step: shape (1,) for two classes, otherwise (n_classes,), one-vs-rest."""
        return np.array([learner.n_moves for learner in self._fitted_learner().learners])

    def mistake_bound(self, X: MatrixLike, y: ArrayLike, coef: ArrayLike, intercept: float = 0.0) -> float:
        """Bound on the number of mistakes on any stream of these rows, given a comparator that makes none.

        If y (u.x + intercept) >= gamma > 0 for all rows, with y = 1 for classes_[1] and -1 for classes_[0], then each
        mistake brings the weights closer to u by eta gamma - eta^2 M / 2 or more, M the divergence's smoothness for
        rows of this size, learned with weight 1. So there are at most D(u, w_1) / (eta gamma - eta^2 M / 2) mistakes.
        In the squared Euclidean divergence, from weights 0, the comparator can be rescaled, which gives M norm(u)^2 /
        gamma^2 for every eta. The bound is for the mistakes of the weights before averaging.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Labels, of two classes.
        coef : array-like of shape (n_features,) or (1, n_features)
            Weights u of the comparator, in the domain of the divergence.
        intercept : float or array-like of shape (1,), default=0.0
            Its intercept; must be 0 if none is learned.

        Returns
        -------
        bound : float
            Infinite if the rate is too large for the margin: eta0 >= 2 gamma / M.

        Raises
        ------
        ValueError
            If the comparator misclassifies a row, the labels or the comparator are invalid, or the bound does not apply
            to the run: more than two classes, weights of classes or rows, or parameters, features or classes that
            changed in mid-stream.
        """
        learner = self._fitted_learner()
        if self._multilabel or len(self.classes_) != 2:
            what = "indicators of several labels" if self._multilabel else len(self.classes_)
            raise ValueError(f"The bound requires two classes; got {what}. Use one-vs-rest labels.")
        if self._separate:
            raise ValueError("The bound requires one learner for both classes; set handle_unknown='error'.")
        if self.class_weight is not None:
            raise ValueError("The bound requires rows of weight 1; set class_weight=None.")
        if not learner.all_weight_one:
            raise ValueError(
                "The bound requires rows of weight 1, but some were learned with other weights; fit again without "
                "class_weight and sample_weight."
            )
        self._check_one_run()
        u, intercept = np.ravel(coef).astype(np.float64), float(np.reshape(intercept, ()))
        if intercept != 0 and not self.fit_intercept:
            raise ValueError(f"intercept must be 0, as this classifier learns none; got {intercept:g}.")
        X, labels = check_rows(self, self._by_name(X, False), y=y, reset=False, numeric=False)
        signed = bool(learner.learners[0].geometry.is_signed)
        position = starting_weights(self._divergence, u, self.n_features_in_, signed, name="coef")
        codes = self._known_codes(labels, "the bound is for rows of these two")
        with np.errstate(over="ignore", invalid="ignore"):
            margins = self._class_targets(codes)[:, 0] * (X @ u + intercept)
        if not margins.min() > 0:
            row = int(np.argmin(margins))
            raise ValueError(
                f"The comparator must separate the classes, y (u.x + intercept) > 0; got {margins[row]:g} at row {row}."
            )
        with np.errstate(all="ignore"):
            return a_number(self._bound(X, position, np.float64(intercept), margins.min()))

    def _bound(self, X, position: np.ndarray, intercept: float, margin: float) -> float:
        """The bound for a comparator with this position and margin; NaN where it overflows."""
        divergence, (init, start_intercept) = self._divergence, self._spec.start(0)
        signed = bool(self._fitted_learner().learners[0].geometry.is_signed)
        rows = np.split(X.data, X.indptr[1:-1]) if issparse(X) else X
        try:
            smoothness = divergence.smoothness(max(map(divergence.row_size, rows))) + self.fit_intercept
        except OverflowError:  # Python floats raise it
            smoothness = np.inf
        start = starting_weights(divergence, init, self.n_features_in_, signed)
        distance = divergence.divergence(position, start) + (intercept - start_intercept) ** 2 / 2
        if divergence.homogeneous and init is None and start_intercept == 0:  # the comparator can be scaled to the rate
            return float(2 * smoothness * distance / margin**2)
        progress = self.eta0 * margin - np.float64(self.eta0) ** 2 * smoothness / 2
        return float(distance / progress) if not progress <= 0 else np.inf
