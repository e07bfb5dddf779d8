"""What all linear classifiers have in common: scores of the classes."""

from __future__ import annotations

import numpy as np

from .._online.examples import LearnsLabels
from .._online.types import MatrixLike
from .._online.validation import finite


class ScoresClasses(LearnsLabels):
    """A classifier that predicts the class with the largest score."""

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Scores X @ coef_.T + intercept_ of rows, or of their random features; nearer to 0 with update="aioli".

        Exceptions are rows with values beyond the largest of their column so far, for which scale-invariant models and
        the divergences "normalized_adagrad" and "diagonal_newton" rescale the weights, and, with `standardize`, values
        beyond five deviations, which count as five.

        Parameters
        ----------
        {X}

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the score of classes_[1], positive where it is predicted (minus that of classes_[0], if each
            class has a row of weights); otherwise that of each class, or of each label of an indicator matrix.

        Raises
        ------
        ValueError
            If a score overflows.
        """
        scores = self._predict(X, (False,))
        if self._multilabel or len(self.classes_) != 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else self._difference(scores)

    @finite("score")
    def _difference(self, scores: np.ndarray) -> np.ndarray:
        return scores[:, 1] - scores[:, 0]

    def _class_scores(self, X) -> np.ndarray:
        return self._predict(X, (False,))
