"""The forward algorithm for the log loss: second-order softmax regression without a learning rate."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn.utils import Tags

from .._kernels.learners.multi_learner import MultiLearner
from .._kernels.learners.softmax import AioliLearner, SoftmaxLearner
from .._online.estimator import SCORES, Call, Examples, NoBound
from .._online.labels import LearnsLabels
from .._online.scores import Scores
from .._online.types import MatrixLike, RandomState
from .._sklearn_compat import Interval, StrOptions
from ._base import parts_of
from ._classifier import decision_function
from ._forward import ForwardEstimator


class ForwardClassifier(LearnsLabels, ForwardEstimator):
    """Logistic and softmax regression by second-order steps: `ForwardRegressor` for the log loss.

    One pass over the rows, no learning rate, and probabilities close to those of
    :class:`sklearn.linear_model.LogisticRegression` with C = 1 / alpha fitted to the same rows. With a matrix
    A = alpha I at first, each row moves the weights w_c of all classes c to

        argmin  sum_c (u_c - w_c)' A (u_c - w_c) / 2 + L(u; x, y),

    L the log loss of the softmax of the scores u_c.x, and then A by the loss's curvature h at the new weights:

        A  <-  forgetting * A + h x x'.

    For two classes there is a second update, AIOLI [4]_, with a bound on the regret for every stream (`regret_bound`).

    Parameters
    ----------
    update : {"implicit", "aioli"}
        "implicit": the steps above. "aioli", for two classes: the weights minimise the penalty plus a quadratic
        approximation of each loss, and the score of a row also takes its two possible losses into account, see Notes.
        Read when learning starts, like `radius`.
    radius : float
        For update="aioli": the norm of the weights (`coef_` and `intercept_` together) up to which the losses are
        approximated from below, and `regret_bound` holds.
    {alpha, forgetting, fit_intercept, penalize_intercept}
    standardize : bool or "auto"
        "auto": rows are differences from the means of the columns, in units of the data, so that columns of any mean
        are learned, as well as those whose level moves; values beyond five deviations count as five, see Notes. True:
        columns are also divided by their deviations, (x - mean) / deviation of the rows learned before; weights do not
        follow when these change. False: columns are learned as they are, and should have mean 0. With update="aioli",
        random features or fit_intercept=False "auto" is False. Read when learning starts.
    {random_features, gamma}
    {shuffle, handle_unknown, random_state, warm_start, handle_new_features}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the classes, or labels; for two classes those of `classes_[1]` minus those of `classes_[0]`.
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
    With v = A^-1 x and q = x'v the step is w_c - g_c v, where g is the gradient of the loss at the new scores: k
    equations in k unknowns, solved by Newton's method ([1]_ for the squared loss, [2]_ for explicit steps). The matrix
    is shared by the classes: h is the mean eigenvalue (1 - sum p_c^2) / (k - 1) of the loss's Hessian on its k - 1
    dimensions, p the probabilities at the new weights, and at least 1e-6. For two classes w_1 = -w_0, so that the
    penalty on their difference u = w_1 - w_0 is alpha |u|^2 / 4, as LogisticRegression has it with C = 2 / alpha.

    Scores have one more part, the running log odds o of the classes, which moves by itself: L is the loss of o + u.x,
    and `intercept_` includes o. With n_c the weight of the rows of class c so far and p_c its probability after the
    step, o_c rises at its rows by ln(1 + (1 - p_c) / (n_c + 2)), and falls by ln(1 + p_c / (n_c + 2)) at others. So a
    class of one in a thousand is predicted at its share after a few of its rows; the intercept alone would be held back
    by the first rows, predicted as 1 / 2, each of which has the curvature of 250 later ones. Where x says what the
    class is, o hardly moves. There is none with fit_intercept=False, nor with update="aioli", whose bound is for scores
    u.x.

    A class starts at its prior, weights 0, whether it is listed before the first row or added later, without changing
    the weights of the other classes. It already has a probability at its first row, so that the loss of a new label is
    finite.

    The log loss of rows of one class has no minimum over intercepts. So with penalize_intercept=False their penalty has
    min(alpha, 1e-4) in place of alpha: a prior standard deviation of 100.

    With standardize="auto" x is (1, z), z the difference from a centre c that the means of the columns are near. It
    moves when a mean is off by more than a deviation, and when the number of rows has doubled. The penalty is for
    columns with values of size 1/2 or more: of one in a larger unit, whose values differ from the mean by at most m, it
    is that of 2 m u_j, and where the unit grows to a hundred times or more, less is known of its weight from there on.
    Moving the centre from c to c + m is exact, w.z + b = w.(z - m) + (b + w.m), for the matrix as well; the penalty of
    the intercept moves along. If a column jumps (several values far outside, one after the other), the level of the
    scores may have moved with it or not, and the variance of b is raised by (w.m)^2, so that the next rows decide. A
    value whose column has no deviation yet is left out if it is more than 5 sqrt(alpha) from c.

    A^-1 is kept as triangular factors that each row updates ([3]_): it stays positive definite for any rows, and
    features of very different scales are no problem. Time and memory are O(n_features^2) per row, for all classes
    together, and O(n_features) per class for a prediction, or O(n_features^2) with update="aioli". With forgetting,
    A^-1 grows up to 1e100 in directions without rows.

    Several labels of a row, y an indicator matrix of shape (n_samples, n_labels), are learned by one logistic model
    each; `classes_` are numbers of columns. Rows are read and standardised once, but labels cannot share the matrix:
    the curvature h depends on the probabilities of one label, except for the squared loss, whose curvature is 1
    (`ForwardRegressor`).

    The loss of a row of weight h is multiplied by h; rows of weight 0 are ignored. There is no bound on the regret of
    implicit steps: learners with a score w.x, and weights w of norm at most B chosen before the row, have a logarithmic
    regret only with a factor that is exponential in B ([5]_).

    update="aioli" has one, as its score z is not linear in x. With w the minimum of F, the sum of the penalty and the
    approximations of the losses so far, and A the Hessian of F, z minimises F(u) + L(u.x, 1) + L(u.x, 0) over u.x:

        z = w.x - q tanh(z / 2),    q = x'A^-1 x,

    which is nearer to 0 than w.x where the rows so far say little about the direction x; `coef_` is w. A row then adds
    to F its loss with the slope at z and the curvature L''(z) / (1 + max(radius |x| - |z|, 0) / 2).

    References
    ----------
    .. [1] K. S. Azoury, M. K. Warmuth, "Relative Loss Bounds for On-line Density Estimation with the Exponential Family
       of Distributions", Machine Learning 43, 2001.
    .. [2] E. Hazan, A. Agarwal, S. Kale, "Logarithmic Regret Algorithms for Online Convex Optimization", Machine
       Learning 69, 2007.
    .. [3] G. J. Bierman, "Measurement Updating Using the U-D Factorization", Automatica 12, 1976.
    .. [4] R. Jezequel, P. Gaillard, A. Rudi, "Efficient Improper Learning for Online Logistic Regression", COLT 2020.
    .. [5] E. Hazan, T. Koren, K. Y. Levy, "Logistic Regression: Tight Bounds for Stochastic and Online Optimization",
       COLT 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlinebregman import ForwardClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X = (X - 8) / 8
    >>> model = ForwardClassifier(random_state=0).fit(X[:900], y[:900])
    >>> print(f"{model.score(X[900:], y[900:]):.2f}, log loss before learning {model.cumulative_loss_ / model.t_:.2f}")
    0.93, log loss before learning 0.28

    One row at a time:

    >>> online = ForwardClassifier()
    >>> for row in range(100):
    ...     online = online.partial_fit([[row % 3, row % 5]], [row % 3 > 0], classes=[False, True])
    >>> print(online.predict([[0, 1], [2, 1]]))
    [False  True]
    """

    _parameter_constraints: dict = {
        "update": [StrOptions({"implicit", "aioli"})],
        "radius": [Interval(Real, 0, None, closed="neither")],
    }

    _read_at_each_call = ("forgetting",)
    _takes_indicators = True
    _separate = False  # whether two classes have a row of weights each, as those of a mixture that may get more classes
    _link = "softmax"  # how scores are mapped to probabilities in a mixture of classifiers
    _remedy = "scale features (sklearn.preprocessing.StandardScaler)."

    def __init__(
        self,
        *,
        update: Literal["implicit", "aioli"] = "implicit",
        radius: float = 1.0,
        alpha: float = 1.0,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        penalize_intercept: bool = True,
        standardize: bool | Literal["auto"] = "auto",
        random_features: int = 0,
        gamma: float | None = None,
        handle_unknown: Literal["error", "add"] = "error",
        shuffle: bool = True,
        random_state: RandomState = None,
        warm_start: bool = False,
        handle_new_features: Literal["error", "add"] = "error",
    ) -> None:
        self._set_arguments(locals())

    decision_function = decision_function

    def _class_scores(self, X) -> np.ndarray:
        return self._predict(X, SCORES)

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probabilities of the classes: the softmax of the scores.

        Parameters
        ----------
        {X}

        Returns
        -------
        {probabilities}
        """
        return self._of_labels(self._predict(X))

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        {X}

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            The log-softmax of the scores, also finite where a probability underflows to 0.
        """
        scores = self._predict(X, SCORES)
        if self._multilabel:
            return log_expit(scores)
        halved = scores.shape[1] < len(self.classes_)  # two classes with the difference of their scores
        return log_expit(np.hstack([-scores, scores])) if halved else log_softmax(scores, axis=1)

    def regret_bound(self, coef: ArrayLike, intercept: ArrayLike = 0.0) -> float | np.ndarray:
        """Bound on `cumulative_loss_` minus the loss of other weights u on the same rows, for update="aioli".

        It is the penalty of u plus what the losses of this run exceeded the minimum of F by (see Notes of the class),
        for rows of any weight. For T rows of norm at most R and weight at most 1, that is with N weights at most

            alpha |u|^2 / 4 + (1 + radius * R / 2) N ln(1 + T R^2 / (2 alpha N)).

        An intercept counts as a weight with the feature 1; without a penalty on it the last term is larger.

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (random_features,), or with a first axis for labels
            The weights u, for standardised rows if `standardize` is True.
        intercept : float or array-like of shape (n_labels,), default=0.0
            Their intercept, a coordinate of u with the feature 1; 0 if none is learned. Without several labels an array
            has one entry, like `intercept_`.

        Returns
        -------
        bound : float or ndarray of shape (n_labels,)
            Infinite if rows were learned with `forgetting` < 1.

        Raises
        ------
        ValueError
            If the model was learned by another update, or the norm of u is larger than `radius`.
        """
        if not isinstance(parts_of(self._fitted_state())[0], AioliLearner):
            raise NoBound("regret_bound is for update='aioli'; there is none for the implicit update.")
        self._check_one_run()
        learners = parts_of(self._learner)
        n, d = len(learners), learners[0].coef.shape[1]
        u, b = np.asarray(coef, dtype=np.float64), np.asarray(intercept, dtype=np.float64)
        if u.shape not in ((d,), (n, d)):
            raise ValueError(f"coef must have shape ({d},) or ({n}, {d}); got {u.shape}.")
        if b.shape not in ((), (1,), (n,)):
            raise ValueError(f"intercept must be a number or have shape ({n},); got shape {b.shape}.")
        each = zip(learners, np.broadcast_to(u, (n, d)), np.broadcast_to(b, n).tolist(), strict=True)
        bounds = self._before.losses + np.array([self._bound(*one) for one in each])
        return bounds if self._multilabel else float(bounds[0])

    def _bound(self, learner: AioliLearner, u: np.ndarray, b: float) -> float:
        """The bound of one learner."""
        if b and not learner.fit_intercept:
            raise ValueError(f"intercept must be 0, as none is learned; got {b:g}.")
        norm = float(np.hypot(np.linalg.norm(u), b))
        if not norm <= learner.radius * (1 + 1e-12):  # which a vector divided by its norm may exceed by rounding
            raise ValueError(
                f"The norm of coef and intercept must be at most radius = {learner.radius:g}; got {norm:g}. Fit with a "
                "larger radius."
            )
        return float(learner.alpha * (u @ u) / 2 + learner.intercept_alpha * b**2 / 2 + learner.slack)

    def _scores(self, of: Callable[..., Scores] = Scores.of) -> Scores:
        if isinstance(parts_of(self._fitted_state())[0], AioliLearner):
            raise ValueError("Scores of update='aioli' are roots of an equation of the row, and cannot be converted.")
        return super()._scores(of)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.update != "aioli"
        return tags

    def _check(self, call: Call, X, y, sample_weight=None, classes: ArrayLike | None = None) -> Examples:
        improper = self.update == "aioli" if call.first else isinstance(parts_of(self._learner)[0], AioliLearner)
        if improper and self.handle_unknown == "add":
            raise ValueError("handle_unknown must be 'error' with update='aioli', which is for two classes; got 'add'.")
        return self._check_labels(call, X, y, sample_weight, classes)

    def _begin(self, data: Examples) -> None:
        row_map = self._make_row_map(data.X)
        n_features = data.X.shape[1] if row_map is None else row_map.n_outputs
        n_classes = 2 if self._multilabel else len(self.classes_)
        improper = self.update == "aioli"
        if improper and n_classes > 2:
            raise ValueError(  # in the words of scikit-learn
                "Only binary classification is supported. The type of the target is multiclass: update='aioli' is for "
                f"two classes; got {n_classes}. Use update='implicit'."
            )
        scale = 0.5 if improper else 1.0  # of the penalty on the difference of both classes' weights
        start = n_features, n_classes, scale * self.alpha, self.fit_intercept
        others = self._features(n_features), scale * self._intercept_alpha()
        more = (self.radius,) if improper else (self._separate, self._centred, self._allow_nan)
        kind = AioliLearner if improper else SoftmaxLearner
        learners = [kind(*start, *others, *more) for _ in (self.classes_ if self._multilabel else (1,))]
        self._learner = MultiLearner(learners) if self._multilabel else learners[0]
        self._learner.map_by(row_map)

    def _configure(self) -> None:
        self._learner.configure(forgetting=self.forgetting)

    def _with_classes(self, numbers: list[int]) -> SoftmaxLearner:
        return self._learner.with_classes(len(self.classes_), numbers)
