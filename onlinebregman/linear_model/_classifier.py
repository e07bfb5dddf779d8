"""Base class of the linear classifiers: one learner for two classes, otherwise one per class, separate or joint."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, softmax
from sklearn.utils import Tags

from .._kernels.learners.learner import Learner
from .._kernels.learners.multi_learner import MultiLearner
from .._kernels.learners.multinomial import MultinomialLearner
from .._online.estimator import Call, Examples
from .._online.examples import FitsFromWeights
from .._online.types import MatrixLike
from .._sklearn_compat import StrOptions, available_if
from ._base import OnlineLinearModel
from ._scores import ScoresClasses

BOTH = np.array([-1.0, 1.0])  # the factors from the score of two classes to the scores of each


class OnlineLinearClassifier(FitsFromWeights, ScoresClasses, OnlineLinearModel):
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

    _parameter_constraints: dict = {
        **OnlineLinearModel._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "handle_unknown": [StrOptions({"error", "add"})],
    }
    class_weight: dict[Any, float] | Literal["balanced"] | None
    multi_class: Literal["ovr", "multinomial"] = "ovr"  # of estimators without this parameter
    _takes_indicators = True

    _read_at_each_call: tuple[str, ...] = (*OnlineLinearModel._read_at_each_call, "class_weight", "handle_unknown")
    _shuffles = True
    _separate = False  # whether each class has a learner, also one or two classes
    _multinomial: bool
    _prior: Learner | None = None  # what learners of later classes start from

    def _progressive_fit(self, X, y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray | None:
        scores = self._progressive_scores(X, y, sample_weight)
        return None if scores is None else self._probabilities(scores)

    def regret_certificate(self, coef: ArrayLike, intercept: ArrayLike = 0.0) -> np.ndarray:
        """Bound on the regret of this run against a comparator, without assumptions on the data.

        For every linear model u = (coef, intercept) in the domain and within `constraint`

            sum eta_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) - D(u, w_{T+1}) + S,

        the right side, with eta_t the rate of row t times its weight, and S accumulated during the run: for explicit
        steps sum D(w_t, w_{t+1}), for implicit steps sum eta_t (L_t(w_t) - L_t(w_{t+1})) - D(w_{t+1}, w_t). With
        learning_rate="constant", divide by eta0 to get the regret itself. The left side starts with `weighted_loss_`;
        the w_t are the weights before averaging. Parameters may change in mid-stream; while `fit_intercept` was False,
        the comparator must have the intercept that was kept.

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (n_learners, n_features)
            Weights of the comparators, in the form of `coef_`; one row for all is enough.
        intercept : array-like of shape (n_learners,) or float, default=0.0
            Their intercepts; must be 0 if none is learned.

        Returns
        -------
        bound : ndarray of shape (n_learners,)
            The right side for each learner, one for two classes and one per class otherwise, from the row at which
            `track_regret` was set. With multi_class="multinomial" all classes share one loss and one bound.

        Raises
        ------
        ValueError
            If regret was not tracked, or the certificate does not hold for a comparator.
        """
        return self._each_bound(self._linear_certificate, coef, intercept)

    def regret_bound(
        self, coef: ArrayLike, intercept: ArrayLike = 0.0, *, largest_divergence: ArrayLike | None = None
    ) -> np.ndarray:
        """Bound on the regret of this run, without weighting rows by their rates.

        If rates never increase, as with "invscaling", dividing the terms of each row in `regret_certificate` by its
        rate gives

            sum h_t (L_t(w_t) - L_t(u))  <=  D(u, w_1) / eta_1 - D(u, w_{T+1}) / eta_T + B (1 / eta_T - 1 / eta_1) + S',

        with h_t the weight of row t, eta_t the rate of a row of weight 1, B = `largest_divergence`, and S' the sum of
        the terms of S, each divided by its eta_t. For eta_t ~ 1 / sqrt(t) both are of the order of sqrt(T). With a
        penalty R the right side also has sum R(u) - R(w_{t+1}).

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (n_learners, n_features)
            The comparators, one row for each learner or one for all.
        intercept : array-like of shape (n_learners,) or float, default=0.0
            Their intercepts; 0 if none is learned.
        largest_divergence : array-like of shape (n_learners,) or float, default=None
            Upper bounds on all D(u, w_t) of the run, (intercept - intercept_t)^2 / 2 included: within L2Ball(r),
            without an intercept, (norm_2(coef) + r)^2 / 2 in the squared Euclidean geometry. Not needed while the rate
            was constant.

        Returns
        -------
        bound : ndarray of shape (n_learners,)
            The right side for each learner, as in `regret_certificate`.

        Raises
        ------
        ValueError
            If regret was not tracked, a rate increased in mid-stream, or `largest_divergence` is needed but missing or
            less than a divergence of the run.

        References
        ----------
        .. [1] B. Kulis, P. Bartlett, "Implicit Online Learning", ICML 2010, section 4.
        """
        largest = np.nan if largest_divergence is None else largest_divergence
        return self._each_bound(self._regret_bound, coef, intercept, largest)

    def optimality_gap(
        self,
        radius: ArrayLike | None = None,
        *,
        largest_intercept: ArrayLike | None = None,
        largest_divergence: ArrayLike | None = None,
        weighted: bool = False,
    ) -> np.ndarray:
        """Bound on the regret of this run against the best comparator, which need not be known.

        The largest `regret_bound` of all comparators, computed from one pass: certificates are affine in u, so that
        their maximum is that of <u, f(w_{T+1}) - f(w_1)>. Whatever the data, the loss of each learner minus its gap is
        at most

            min over u of sum h_t L_t(u)

        with h_t the weights of the rows. With a penalty R that is min over u of sum h_t L_t(u) + R(u), the objective of
        the penalised problem.

        Comparators are the weights of the domain and within `constraint`. If there are arbitrarily large ones, a radius
        is needed.

        Parameters
        ----------
        radius : float or array-like of shape (n_learners,), default=None
            Compare with weights of norm_p(coef) <= radius only, for each learner: p = 2 in the squared Euclidean and
            adaptive geometries, p = q in that of the p-norm algorithm, and p = 1 for entropies. None for weights that
            are bounded.
        largest_intercept : float or array-like of shape (n_learners,), default=None
            Compare with intercepts of at most this size only. Not needed if none is learned.
        largest_divergence : float or array-like of shape (n_learners,), default=None
            Upper bounds on D(u, w_t) for all rows t and all these comparators, as in `regret_bound`. Not needed while
            the rate was constant.
        {weighted}

        Returns
        -------
        gap : ndarray of shape (n_learners,)
            Upper bounds on the loss of each learner minus that of its best comparator, as in `regret_certificate`.

        Raises
        ------
        {ValueError}
        """
        return self._each(partial(self._gap, weighted=weighted), radius, largest_intercept, largest_divergence)

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
        return self._probabilities(self._predict(X, (False,)))

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        if self._joint:
            return softmax(scores, axis=1)
        if self._multilabel:
            return self._learned_loss.probability(scores)
        if scores.shape[1] < len(self.classes_):
            return self._learned_loss.probability(scores * BOTH)
        p = self._learned_loss.probability(scores)
        total = p.sum(axis=1, keepdims=True)
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
        scores = self._predict(X, (False,))
        if self._joint:
            return log_softmax(scores, axis=1)
        if self._multilabel:
            return self._learned_loss.log_probability(scores)
        if scores.shape[1] < len(self.classes_):
            return self._learned_loss.log_probability(scores * BOTH)
        total = self._learned_loss.probability(scores).sum(axis=1, keepdims=True)
        logs = self._learned_loss.log_probability(scores)
        return np.where(total > 0, logs - np.log(np.where(total > 0, total, 1.0)), -np.log(logs.shape[1]))

    @property
    def _link(self) -> str:
        """How scores are mapped to probabilities in a mixture of classifiers."""
        return "softmax" if self._joint else "logistic" if self._learned_loss.sigmoid else "calibrated"

    @property
    def _joint(self) -> bool:
        """Whether there is one joint loss, of the softmax of all scores, and not one for each learner."""
        return self._multinomial and (self._separate or len(self.classes_) > 2)

    @property
    def _is_softmax(self) -> bool:
        """Whether probabilities are the softmax of all scores."""
        return self._joint

    def _predicts_probabilities(self) -> bool:
        loss = vars(self).get("_learned_loss") or self._loss()  # the parameter may have changed since learning started
        if not loss.probabilistic:
            raise AttributeError(
                f"probability estimates are not available for loss={getattr(self, 'loss', loss)!r}; use 'log_loss', or "
                "sklearn.calibration.CalibratedClassifierCV"
            )
        return True

    def _outputs(self, data: Examples) -> tuple[int, type[MultiLearner]]:
        if self._joint:
            return len(self.classes_), MultinomialLearner
        return self._code_book.shape[1], MultiLearner

    def _make_learners(self, n_weights: int, data: Examples, coef: ArrayLike | None) -> Any:
        make = super()._make_learners
        self._prior = make(n_weights, data, None).learners[0] if self._separate else None
        return make(n_weights, data, coef)

    def _configure(self) -> None:
        if self.multi_class == "multinomial" and not self._learned_loss.sigmoid:
            raise ValueError(
                "multi_class='multinomial' requires loss='log_loss', of the softmax of all scores; got "
                f"{self._learned_loss!r}. Use multi_class='ovr'."
            )
        if self._joint and (self.update == "importance" or self.learning_rate == "theory"):
            what, instead = ("update", "implicit") if self.update == "importance" else ("learning_rate", "auto")
            raise ValueError(
                f"multi_class='multinomial' has no {what}={getattr(self, what)!r}, which is for losses of one score; "
                f"use {what}={instead!r}, or multi_class='ovr'."
            )
        super()._configure()

    def _check(self, call: Call, X, y, sample_weight=None, classes: ArrayLike | None = None) -> Examples:
        return self._check_labels(call, X, y, sample_weight, classes)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label &= self.multi_class != "multinomial"
        return tags

    def _begin_classes(self) -> None:
        self._separate, self._multinomial = self.handle_unknown == "add", self.multi_class == "multinomial"
        super()._begin_classes()

    def _take_from(self, twin: Any, wider: Any) -> None:
        super()._take_from(twin, wider)
        self._prior = twin._prior

    def _with_classes(self, numbers: list[int]) -> MultiLearner:
        if self._prior is None:
            raise ValueError("handle_unknown must be 'add' when learning starts, for classes to be added later.")
        self._tracked = self._tracked.renumbered("held_intercept", numbers, len(self.classes_), self._prior.intercept)
        return self._learner.with_classes(len(self.classes_), numbers, self._prior)

    def _held_out_score(self, data: Examples) -> float:
        scores = self._predict_validated(data.X, (False,))
        if self._multilabel:
            right = (self._class_targets(scores > 0) == data.y).all(axis=1)
        else:
            right = self._largest(scores) == data.classes
        return float(np.average(right, weights=data.weights))

    def _make_code_book(self) -> np.ndarray:
        """The targets of each class's rows, one column for each loss.

        That is the positive label for a learner's own class; a joint loss takes the number of the class. For several
        labels the rows are the targets where they are absent, and where they are present.
        """
        if self._multilabel:
            if self.multi_class == "multinomial":
                raise ValueError(
                    "y should be 1d with multi_class='multinomial', one loss of classes that exclude each other; use "
                    "'ovr' for an indicator matrix of several labels."
                )
            return np.repeat(np.array([self._loss().labels], dtype=np.float64).T, len(self.classes_), axis=1)
        if self._joint:
            return np.arange(len(self.classes_), dtype=np.float64)[:, np.newaxis]
        low, high = self._loss().labels
        book = np.where(np.eye(len(self.classes_), dtype=bool), high, low)
        return book if self._separate or len(book) > 2 else book[:, 1:].copy()
