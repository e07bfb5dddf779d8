"""The forward algorithm carried to the log loss: second-order softmax regression without a learning rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn.utils.validation import check_is_fitted

from .._kernels.loop.softmax import SoftmaxLearner
from .._online.estimator import Call, Examples
from .._online.labels import StreamClassifierMixin
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_finite, check_rows
from ._forward import ForwardEstimator, largest_feature


class ForwardClassifier(StreamClassifierMixin, ForwardEstimator):
    """Logistic and softmax regression by second-order steps: `ForwardRegressor` carried to the log loss.

    One pass over the rows, no learning rate, and probabilities close to those of
    :class:`sklearn.linear_model.LogisticRegression` with C = 1 / alpha fitted to the same rows. With a matrix
    A = alpha I at first, each row moves the weights w_c of all classes c to

        argmin  sum_c (u_c - w_c)' A (u_c - w_c) / 2 + L(u; x, y),

    L the log loss of the softmax of the scores u_c.x, and then A by the loss's curvature h at the new weights:

        A  <-  forgetting * A + h x x'.

    Parameters
    ----------
    {alpha, forgetting, fit_intercept, standardize, random_features, gamma}
    {random_state, warm_start}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the classes; for two classes those of `classes_[1]` minus those of `classes_[0]`.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    {classes_, t_}
    cumulative_loss_ : float
        Sum of weight * log loss over all rows, by the probabilities that `predict_proba` gave before each was learned.
    {mean_, scale_, n_samples_seen_, n_features_in_, feature_names_in_}

    See Also
    --------
    ForwardRegressor : The same for the squared loss, where it is ridge regression.
    MirrorDescentClassifier : O(n_features) a row, with a learning rate; for many features.
    sklearn.linear_model.LogisticRegression : All rows at once.

    Notes
    -----
    With v = A^-1 x and q = x'v the step is w_c - g_c v, where g is the loss's gradient at the new scores: k equations
    in k numbers, solved by Newton's method ([1]_ for the squared loss, [2]_ for explicit steps). The matrix is shared
    by the classes: h is the mean eigenvalue (1 - sum p_c^2) / (k - 1) of the loss's Hessian on its k - 1 dimensions, p
    the probabilities at the new weights, and at least 1e-6. Of two classes w_1 = -w_0, so that the penalty on their
    difference u = w_1 - w_0 is alpha |u|^2 / 4, as LogisticRegression has it with C = 2 / alpha.

    A^-1 is kept as triangular factors that a row updates ([3]_): it stays positive definite whatever the rows, and
    features of very different scale do no harm. Time and memory are O(n_features^2) a row, for all classes together,
    and O(n_features) for a prediction and class. Where forgetting meets directions that no row comes from, A^-1 grows
    up to 1e100 there.

    A row of weight h has h times its loss; weight 0 leaves it out. There is no `regret_bound_`: second-order steps on
    the log loss have a logarithmic regret only with constants that grow exponentially with the size of the weights.

    References
    ----------
    .. [1] K. S. Azoury, M. K. Warmuth, "Relative Loss Bounds for On-line Density Estimation with the Exponential Family
       of Distributions", Machine Learning 43, 2001.
    .. [2] E. Hazan, A. Agarwal, S. Kale, "Logarithmic Regret Algorithms for Online Convex Optimization", Machine
       Learning 69, 2007.
    .. [3] G. J. Bierman, "Measurement Updating Using the U-D Factorization", Automatica 12, 1976.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlinebregman import ForwardClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X = (X - 8) / 8
    >>> model = ForwardClassifier().fit(X[:900], y[:900])
    >>> print(f"{model.score(X[900:], y[900:]):.2f}, log loss before learning {model.cumulative_loss_ / model.t_:.2f}")
    0.93, log loss before learning 0.27

    One row at a time:

    >>> online = ForwardClassifier()
    >>> for row in range(100):
    ...     online = online.partial_fit([[row % 3, row % 5]], [row % 3 > 0], classes=[False, True])
    >>> print(online.predict([[0, 1], [2, 1]]))
    [False  True]
    """

    _link = "softmax"  # how scores become probabilities in a mixture of classifiers
    _remedy = "scale features (sklearn.preprocessing.StandardScaler)."

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        standardize: bool = False,
        random_features: int = 0,
        gamma: float | None = None,
        random_state: RandomState = None,
        warm_start: bool = False,
    ) -> None:
        self._keep(locals())

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from these rows, once, in their order.

        Cutting a stream into calls in any way gives the same numbers. A call learns all of its rows or, if it raises,
        none.

        Parameters
        ----------
        {X, y, classes, sample_weight}

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError}
        """
        learner = vars(self).get("_learner")
        if learner is not None and classes is None and sample_weight is None:
            codes = self._plain_targets(y)
            if codes is not None and learner.learn_fast(vars(self), X, codes):
                return self
        return self._partial_fit(X, y, sample_weight, classes)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Scores X @ coef_.T + intercept_ of rows.

        Parameters
        ----------
        {X}

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes that of classes_[1], positive where it is predicted; else that of each class.

        Raises
        ------
        ValueError
            If a score overflows.
        """
        scores = self._predict(X, linked=False)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Predict the labels of rows.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The label of the most probable class of each row.
        """
        scores = self._predict(X, linked=False)
        return self.classes_.take(scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1))

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of the classes: the softmax of the scores.

        Parameters
        ----------
        {X}

        Returns
        -------
        {probabilities}
        """
        return self._predict(X, linked=True)

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        {X}

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            The log-softmax of the scores, finite also where a probability is 0 in float64.
        """
        scores = self._predict(X, linked=False)
        return log_expit(np.hstack([-scores, scores])) if scores.shape[1] == 1 else log_softmax(scores, axis=1)

    def _check(self, call: Call, X, y, sample_weight=None, classes: ArrayLike | None = None) -> Examples:
        data = self._check_labels(call, X, y, sample_weight, classes)
        return replace(data, y=data.y.astype(np.float64))

    def _begin(self, data: Examples) -> None:
        n_features, n_classes = data.X.shape[1], len(self.classes_)
        learner = SoftmaxLearner(
            n_features,
            n_classes,
            self.alpha,
            self.fit_intercept,
            forgetting=self.forgetting,
            features=self._features(n_features),
        )
        self._learner = self._standardize(learner, data.X)

    def _learn(self, data: Examples, order: None = None, *, again: bool = False) -> None:
        refused = self._learner.learn(data.X, data.y, data.weights, self.forgetting)
        if refused is not None:
            check_finite(data.X)
            self._refuse(*refused, data)

    def _predict(self, X, *, linked: bool) -> np.ndarray:
        """Scores of rows, or probabilities."""
        learner = vars(self).get("_learner")
        answer = None if learner is None else learner.predict_fast(vars(self), X, linked)
        if answer is None:
            check_is_fitted(self)
            X = check_rows(self, X, reset=False)
            answer = learner.predict(X, linked)
            if answer is None:
                row = next(i for i in range(X.shape[0]) if learner.predict(X[i : i + 1], linked) is None)
                raise ValueError(f"The score of row {row} ({largest_feature(X, row)}) is not finite; {self._remedy}")
        return answer
