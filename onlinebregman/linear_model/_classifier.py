"""Base class of the linear classifiers: one learner for two classes, otherwise one per class, separate or joint."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.utils import Tags

from .._kernels.learners.multi_learner import MultiLearner
from .._kernels.learners.multinomial import MultinomialLearner
from .._online.estimator import SCORES, Examples, by_parameter
from .._online.labels import LearnsLabels, one_against_rest
from .._online.types import MatrixLike
from .._online.validation import finite
from .._sklearn_compat import StrOptions, available_if
from ..losses import Loss, resolve_loss
from ..losses._base import loss_names
from ._base import OnlineLinearModel

BOTH = np.array([-1.0, 1.0])  # the factors from the score of two classes to the scores of each


def decision_function(self: Any, X: MatrixLike) -> np.ndarray:
    """Scores X @ coef_.T + intercept_ of rows, or of their random features; nearer to 0 with update="aioli".

    Exceptions are rows with values beyond the largest of their column so far, for which scale-invariant models and
    the divergences "normalized_adagrad" and "diagonal_newton" rescale the weights, and, with `standardize`, values
    beyond five deviations, which count as five.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows.

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
    scores = self._predict(X, SCORES)
    if self._multilabel or len(self.classes_) != 2:
        return scores
    return scores[:, 0] if scores.shape[1] == 1 else _difference(scores)


@finite("score")
def _difference(scores: np.ndarray) -> np.ndarray:
    return scores[:, 1] - scores[:, 0]


class OnlineLinearClassifier(LearnsLabels, OnlineLinearModel):
    """A linear classifier: one learner for two classes, otherwise one per class (one-vs-rest).

    Several labels of a row, y an indicator matrix of shape (n_samples, n_labels), are learned by one learner each, as
    by a model of its own, from rows that are read, standardised and mapped once; `classes_` are numbers of columns.

    Parameters
    ----------
    handle_unknown : {"error", "add"}
        What to do with labels that are not among the classes. "error": raise an error. "add", which has to be set when
        learning starts: add the class at its first row of positive weight; `partial_fit` then needs no `classes`, and
        adds those it gets at once. Each class then has a learner, also one or two classes (`coef_` has a row for each).
        It starts from its prior: the initial weights, which have not seen the rows before, and the first learning
        rates; with multi_class="multinomial" the rates of the others.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights; one row for two classes, otherwise one per class, or label of an indicator matrix.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    cumulative_loss_ : float
        Sum of weight times loss over all rows, each predicted before it was learned, and over the learners.
    """

    _parameter_constraints: dict = {"loss": [StrOptions(set(loss_names("classification"))), Loss]}
    class_weight: dict[Any, float] | Literal["balanced"] | None
    _class_weight = by_parameter("class_weight")
    _multi_class: Literal["ovr", "multinomial"] = "ovr"
    _takes_indicators = True

    def _progressive_fit(self, X, y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
        scores = self._progressive_scores(X, y, sample_weight)
        return None if scores is None else self._probabilities(scores)

    fit = OnlineLinearModel.fit
    decision_function = decision_function

    def _class_scores(self, X) -> np.ndarray:
        return self._predict(X, SCORES)

    @available_if(lambda self: self._predicts_probabilities())
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of the classes.

        Parameters
        ----------
        {X}

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            For two classes, the sigmoid of the score a for "log_loss" and (a + 1)/2, clipped to [0, 1], for
            "modified_huber". For more classes the one-vs-rest probabilities divided by their sum, or the softmax of the
            scores with multi_class="multinomial". For several labels the probability of each, which need not sum to 1.
        """
        return self._probabilities(self._predict(X, SCORES))

    def _probabilities(self, scores: np.ndarray, logs: bool = False) -> np.ndarray:
        """The probabilities, or their logarithms, from the scores."""
        loss = self._learned_loss
        if self._joint:
            return (log_softmax if logs else softmax)(scores, axis=1)
        probability = loss.log_probability if logs else loss.probability
        if self._multilabel:
            return probability(scores)
        if scores.shape[1] < len(self.classes_):
            return probability(scores * BOTH)
        p, total = probability(scores), loss.probability(scores).sum(axis=1, keepdims=True)
        if logs:
            return np.where(total > 0, p - np.log(np.where(total > 0, total, 1.0)), -np.log(p.shape[1]))
        return np.divide(p, total, out=np.full_like(p, 1.0 / p.shape[1]), where=total > 0)

    @available_if(lambda self: self._predicts_probabilities())
    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        {X}

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            For "log_loss" also finite where a probability underflows.
        """
        return self._probabilities(self._predict(X, SCORES), logs=True)

    @property
    def _link(self) -> str:
        """How scores are mapped to probabilities in a mixture of classifiers."""
        return "softmax" if self._joint else "logistic" if self._learned_loss.sigmoid else "calibrated"

    def _predicts_probabilities(self) -> bool:
        # the parameter may have changed since it has begun
        loss = self._learned_loss if "_spec" in vars(self) else resolve_loss(self._loss_parameter)
        if not loss.probabilistic:
            raise AttributeError(
                f"probability estimates are not available for loss={getattr(self, 'loss', loss)!r}; use 'log_loss', or "
                "sklearn.calibration.CalibratedClassifierCV"
            )
        return True

    def _outputs(self, data: Examples) -> tuple[int, type[MultiLearner]]:
        if self._joint:
            return len(self.classes_), MultinomialLearner
        return self._targets_of_classes.shape[1], MultiLearner

    _check = LearnsLabels._check_labels

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label &= self._multi_class != "multinomial"
        return tags

    def _begin_classes(self, table: np.ndarray | None = None) -> None:
        self._separate = self.handle_unknown == "add"
        self._joint = self._multi_class == "multinomial" and (self._separate or len(self.classes_) > 2)
        super()._begin_classes(table)

    def _take_from(self, twin: Any, wider: Any) -> None:
        super()._take_from(twin, wider)
        self._prior = twin._prior

    def _with_classes(self, numbers: list[int]) -> MultiLearner:
        if self._prior is None:
            raise ValueError("handle_unknown must be 'add' when learning starts, for classes to be added later.")
        return self._learner.with_classes(len(self.classes_), numbers, self._prior)

    def _held_out_score(self, data: Examples) -> float:
        scores = self._predict_validated(data.X, SCORES)
        if self._multilabel:
            right = (self._class_targets(scores > 0) == data.y).all(axis=1)
        else:
            right = self._largest(scores) == data.classes
        return float(np.average(right, weights=data.weights))

    def _make_targets_of_classes(self) -> np.ndarray:
        """The targets of each class's rows, one column for each loss.

        That is the positive label for a learner's own class; a joint loss takes the number of the class. For several
        labels the rows are the targets where they are absent, and where they are present.
        """
        loss = resolve_loss(self._loss_parameter)
        if self._multi_class == "multinomial" and not loss.sigmoid:
            raise ValueError(
                "multi_class='multinomial' requires loss='log_loss', of the softmax of all scores; got "
                f"{loss!r}. Use multi_class='ovr'."
            )
        if self._multilabel and self._multi_class == "multinomial":
            raise ValueError(
                "y should be 1d with multi_class='multinomial', one loss of classes that exclude each other; use "
                "'ovr' for an indicator matrix of several labels."
            )
        if self._joint:
            return np.arange(len(self.classes_), dtype=np.float64)[:, np.newaxis]
        if self._multilabel or (len(self.classes_) == 2 and not self._separate):
            n_learners = len(self.classes_) if self._multilabel else 1
            return np.repeat(np.array([loss.labels], dtype=np.float64).T, n_learners, axis=1)
        return one_against_rest(len(self.classes_), *loss.labels)
