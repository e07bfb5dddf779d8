"""The forward algorithm: online ridge regression whose regret grows with the logarithm of the number of rows.

Second-order steps extend it to the other matching losses, such as that of Poisson regression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from .._kernels.learners.forward import ForwardLearner
from .._kernels.learners.second_order import MatchingLearner
from .._kernels.rows.standardizer import Standardizer
from .._online.compiled import make_loss
from .._online.estimator import Call, Examples
from .._online.examples import LearnsTargets
from .._online.intervals import check_coverage
from .._online.scores import Scores
from .._online.types import MatrixLike, RandomState
from .._online.validation import check_output_shape, check_query, check_rows, check_weights
from .._sklearn_compat import StrOptions
from ..losses import LOSSES, Loss, SquaredLoss, resolve_loss
from ..losses._base import has_positive_targets
from ._forward import ForwardEstimator


class ForwardRegressor(RegressorMixin, LearnsTargets, ForwardEstimator):
    """Linear and generalised linear regression by the forward algorithm of Vovk, Azoury and Warmuth.

    Online ridge regression that includes the features of the row to be predicted. With the means x_ and y_ of the rows
    learned so far, their number n, and the sums about these means

        A = alpha S + sum (x - x_) (x - x_)',    b = sum (y - y_) (x - x_),

    S the diagonal matrix of the variances of the columns, the prediction for the row x = x_ + z is

        y_ + z' (A + z z' n / (n + 1))^-1 b,

    the ridge prediction shrunk towards y_, the more the less z lies in the directions of the rows so far. There is no
    learning rate; the weights are the ridge solution after every row. No prediction depends on the units or the origin
    of a column or of y, nor on when they moved. Several targets, y of shape (n_samples, n_targets), share one A.
    `standardize=False` is the algorithm as it was published, with I in place of S and sums about 0; see Notes. After T
    rows, the loss exceeds that of the best weights in hindsight by at most a multiple of ln T, for every sequence of
    rows.

    `loss` extends it to Poisson regression and the other matching losses by implicit second-order steps: one pass over
    the rows, no learning rate, and weights close to those of :class:`sklearn.linear_model.PoissonRegressor` fitted to
    the same rows.

    Parameters
    ----------
    loss : {"squared_error", "log_loss", "poisson", "gamma", "tweedie"} or Loss
        The loss. The prediction is exp(X w + b) for "poisson" (counts or rates, y >= 0), "gamma" (y > 0) and "tweedie"
        (y >= 0), a probability for "log_loss" (0 <= y <= 1) and X w + b for "squared_error". Your own smooth loss is
        passed as an object, with its link. Read when learning starts.
    {alpha}
    forward : bool
        Predict by the forward algorithm. False: the ridge prediction x'A^-1 b ("incremental off-line"), X @ coef_ +
        intercept_, whose regret has no such bound. The weights are the same. Only for the squared loss; with other
        losses the prediction is always the link of X @ coef_ + intercept_.
    {forgetting, fit_intercept, penalize_intercept}
    standardize : bool or "auto"
        "auto", for the squared loss: penalise each weight in units of its column, and not the intercept: sums are about
        the means of the rows, and `alpha` is times the variance of the column, which it follows up to a factor of two.
        A column that was constant so far has no weight. For other losses: rows are differences from the means of the
        columns, as in `ForwardClassifier`. Values far outside of a column are limited. True: the same for the squared
        loss; for others, and with `random_features`, rows are standardised online: (x - mean) / deviation, with the
        weighted mean and standard deviation of the rows learned before, clipped to [-5, 5]. False: columns should have
        mean 0 and similar variances. With another loss "auto" is False if there are random features or no intercept.
        Read when learning starts.
    {random_features, gamma}
    {shuffle, random_state, warm_start, handle_new_features}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Ridge weights A^-1 b of the rows so far; with another loss the result of its steps.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.
    {t_}
    cumulative_loss_ : float
        Sum of weight * (a - y)^2 / 2, or of weight * loss, over all rows and targets, each row predicted before it was
        learned.
    regret_ : float
        `cumulative_loss_` minus the minimum of sum weight * (u.x - y)^2 / 2 plus the penalty of u over all u, summed
        over the targets; see Notes for the penalty and the effect of `forgetting`. This and the next two attributes are
        only available for the squared loss (AttributeError otherwise).
    noise_variance_ : float or ndarray of shape (n_targets,)
        Variance of the targets of rows of weight 1 about the best weights, see Notes; infinite before the first row,
        and after a single one if the intercept is not penalised.
    regret_bound_ : float
        Upper bound on the regret of forward predictions on these rows, see Notes; AttributeError if rows were learned
        with forward=False.
    {mean_, scale_, n_samples_seen_, n_features_in_, feature_names_in_}

    See Also
    --------
    ImplicitGDRegressor : O(n_features) a row, with a learning rate.
    sklearn.linear_model.Ridge : The same weights (with penalize_intercept=False), from all rows at once.
    sklearn.linear_model.BayesianRidge : The same standard deviations, `alpha` chosen by the rows.

    Notes
    -----
    The algorithm as it was published (`standardize=False`) has

        A = alpha I + sum x x',    b = sum y x,

    and the prediction x' (A + x x')^-1 b = x'A^-1 b / (1 + x'A^-1 x), for columns one of which is 1, for the intercept.
    With b and A before row t, s_t = 1 + x_t'A^-1 x_t and the ridge prediction r_t = x_t'A^-1 b, the minimal penalised
    loss min_u L(u) + alpha |u|^2 / 2 grows by (y_t - r_t)^2 / (2 s_t). The forward prediction r_t / s_t exceeds that by
    (1 - 1/s_t) (y_t^2 - r_t^2 / s_t) / 2, so that for every u, with N = n_features + 1 coordinates (the intercept is
    one), T rows, Y = max |y| and X^2 = max x.x

        sum (a_t - y_t)^2 / 2  <=  L(u) + alpha |u|^2 / 2 + sum (1 - 1/s_t) y_t^2 / 2,

    which is `regret_bound_`; as 1 - 1/s <= ln s and the product of the s_t is det A_T / alpha^N, that is at most

        (Y^2 / 2) ln(det A_T / alpha^N)  <=  (Y^2 / 2) N ln(1 + T X^2 / (alpha N)).

    The loss of the ridge prediction r_t exceeds the growth by (1 - 1/s_t) (y_t - r_t)^2 / 2, and |r_t| may be much
    larger than Y.

    With `standardize`, a free intercept leaves the part nu_t = n / (n + 1) of a row in the sums about the means, and
    s_t = 1 + nu_t z_t'A^-1 z_t. The minimal penalised loss over all weights and intercepts grows by nu_t / s_t times
    the squared error of the ridge prediction over 2, so that with the differences a and v of prediction and target from
    the mean of the targets before

        sum (a_t - v_t)^2 / 2  <=  L(u) + sum_j p_j u_j^2 / 2
                                   + sum ((1 - nu_t / s_t) v_t^2 + (1 - nu_t) (2 |a_t v_t| + a_t^2)) / 2,

    the last sum being `regret_bound_`; 1 - nu_t = 1 / (n + 1), so that it grows with ln T as well. In a row in which a
    column varies for the first time, nu_t counts as 0. p_j is what A has of alpha times the variance of column j: it
    is corrected as soon as it is off by more than a factor of two. Where it grows, the minimum grows, too, and the
    inequality remains; what the minimum loses where it shrinks is added to `regret_bound_`.
    Rows are those that are learned: values far outside of a column are limited. A column that moves far, or whose unit
    grows to seven times or more, is learned anew: of its weight and of the intercept nothing is known then, which takes
    nothing from the other weights, and the u_j and the intercept that losses are compared with may be others from there
    on. If some of the first values of a column or targets turn out to be absurd once more are known, the sums begin
    again, and `regret_` and its bound include what was lost before.

    A row of weight h counts in A and b like h equal rows: it is the row sqrt(h) (x, y), and in the formulas above y^2
    and x.x are replaced by h y^2 and h x.x. Its own prediction a, before it was learned, has the denominator 1 + h
    x'A^-1 x; `predict` assumes rows of weight 1.

    With `forgetting` g < 1 each row first multiplies A and b, and thereby the penalised losses of all u, by g. The same
    growth (y - r)^2 / (2 s), now with s = 1 + x'(g A)^-1 x, leads to the same inequality for sums in which a row that
    is n rows old has weight g^n: `regret_` and `regret_bound_` are such sums, `cumulative_loss_` is not. Means and
    variances forget in the same way, and with `standardize` the penalty is renewed, when half of it is forgotten.

    In the normal model y ~ N(u.x, sigma^2 / h), u ~ N(0, sigma^2 / alpha) the target of a row, given the rows before,
    is normal with mean r_t and variance sigma^2 s_t / h. So the mean of h (y_t - r_t)^2 / s_t estimates sigma^2 from
    the predictions:

        noise_variance_ = sum h_t (y_t - r_t)^2 / s_t / n = 2 min_u (L(u) + alpha |u|^2 / 2) / n,

    n the number of rows of positive weight, minus 1 for an unpenalised intercept, which fits the first row exactly.
    With p(sigma^2) ~ 1 / sigma^2 the next target, if its row has weight 1, is distributed as r + sqrt(noise_variance_ *
    s) times Student's t with n degrees of freedom; `return_std` returns that root, `predict_interval` the quantiles.
    With `forgetting` all of these are sums over recent rows, and so is n.

    So weights are precisions, as in weighted least squares: a row of weight 4 has half the standard deviation of one of
    weight 1, and rows that all have weight c have variance noise_variance_ / c. For intervals of such rows, weights
    have to be divided by c. Weights that say how often a row occurred give the same `coef_`, but too few degrees of
    freedom, and thus too large a variance; such rows have to be repeated.

    penalize_intercept=False, which `standardize` includes, does not penalise the intercept, as in
    :class:`sklearn.linear_model.Ridge`: alpha |u|^2 then excludes it, above and in `regret_`. The first row determines
    it and is predicted as 0; a constant added to all targets is added to all further predictions of `forward=False`,
    and with `standardize` of both.

    With another loss L each row moves the weights to

        w' = argmin (u - w)' A (u - w) / 2 + h L(u.x, y),

    exactly, and updates A by the curvature of the loss there, at least 1e-6: A <- g A + h L''(w'.x, y) x x'. For the
    squared loss this is also ridge regression. Only for the squared loss do several targets share the curvature, and
    thus A; learn them separately with other losses (:class:`sklearn.multioutput.MultiOutputRegressor`). There is no
    forward prediction: including the row to be predicted with the link of 0 as its target pulls counts towards 1, and
    was worse. There is no bound either: if the curvature of a loss can vanish, second-order steps have a logarithmic
    regret only with constants that grow exponentially with the scores. If it is zero, as for the absolute loss, use
    `MirrorDescentRegressor`. With penalize_intercept=False the penalty of the intercept has min(alpha, 1e-4) in place
    of alpha. With loss="log_loss" scores include the running log odds of the targets, see `ForwardClassifier`.

    A is kept as a triangular factor that is updated by rotations ([4]_): it stays positive definite, rounding errors do
    not accumulate, and features of very different scales are no problem. Memory is n_features^2 / 2 numbers, and time
    O(n_features^2) per row, for learning and for forward predictions; sparse rows are converted to dense ones. Several
    targets share A. Other losses keep A^-1.

    References
    ----------
    .. [1] V. Vovk, "Competitive On-line Statistics", International Statistical Review 69, 2001.
    .. [2] K. S. Azoury, M. K. Warmuth, "Relative Loss Bounds for On-line Density Estimation with the Exponential Family
       of Distributions", Machine Learning 43, 2001.
    .. [3] M. K. Warmuth, "Bregman divergences and on-line learning", slides: forward algorithm.
    .. [4] W. M. Gentleman, "Least Squares Computations by Givens Transformations Without Square Roots", IMA Journal of
       Applied Mathematics 12, 1973.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from onlinebregman import ForwardRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X, y = scale(X), scale(y)
    >>> model = ForwardRegressor(random_state=0).fit(X, y)
    >>> print(f"{model.score(X, y):.2f}")
    0.52

    The regret of online learning, and its bound:

    >>> print(f"{model.regret_:.1f} <= {model.regret_bound_:.1f}")
    17.3 <= 30.1

    Standard deviations of targets, and intervals for 80 % of them:

    >>> prediction, std = model.predict(X[:3], return_std=True)
    >>> print(prediction.round(2), std.round(2))
    [ 0.68 -1.06  0.31] [0.7 0.7 0.7]
    >>> lower, upper = model.predict_interval(X, coverage=0.8)
    >>> print(f"{((lower <= y) & (y <= upper)).mean():.2f}")
    0.81

    Counts:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> counts = rng.poisson(np.exp(X @ [0.5, -0.5, 0.0] + 1.0))
    >>> model = ForwardRegressor(loss="poisson").fit(X, counts)
    >>> print(model.coef_.round(1) + 0.0, round(model.intercept_, 1))
    [ 0.5 -0.5  0. ] 1.0

    One row at a time:

    >>> online = ForwardRegressor(alpha=1e-6)
    >>> for row in range(100):
    ...     online = online.partial_fit([[row % 3, row % 5]], [1.0 + row % 3])
    >>> print(online.coef_.round(3) + 0.0, round(online.intercept_, 3))
    [1. 0.] 1.0
    """

    _parameter_constraints: dict = {
        "loss": [StrOptions({"squared_error", "log_loss", "poisson", "gamma", "tweedie"}), Loss],
        "forward": ["boolean"],
    }

    _learns_residuals = False  # whether a mixture subtracts the mean of all targets so far
    _read_at_each_call = ("forward", "forgetting")
    _remedy = "scale features and targets (sklearn.preprocessing.StandardScaler)."

    def __init__(
        self,
        *,
        loss: Literal["squared_error", "log_loss", "poisson", "gamma", "tweedie"] | Loss = "squared_error",
        alpha: float = 1.0,
        forward: bool = True,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        penalize_intercept: bool = True,
        standardize: bool | Literal["auto"] = "auto",
        random_features: int = 0,
        gamma: float | None = None,
        shuffle: bool = True,
        random_state: RandomState = None,
        warm_start: bool = False,
        handle_new_features: Literal["error", "add"] = "error",
    ) -> None:
        self._set_arguments(locals())

    @overload
    def predict(self, X: MatrixLike, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: MatrixLike, return_std: bool) -> np.ndarray | tuple[np.ndarray, np.ndarray]: ...

    def predict(self, X, return_std=False):
        """Predict each row as the next one of the stream.

        Parameters
        ----------
        {X}
        return_std : bool
            Also return the standard deviations of the targets about the ridge predictions.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Forward predictions, or X @ coef_.T + intercept_ if `forward` is False; the link of that for other losses
            than the squared one. With `standardize`, values beyond five deviations count as five; with
            `random_features`, X stands for the features.
        y_std : ndarray of the same shape, if `return_std`
            Standard deviations of the targets of rows of weight 1, including noise and the uncertainty of `coef_`:
            sqrt(noise_variance_ * (1 + x'A^-1 x)); infinite where `noise_variance_` is.

        Raises
        ------
        ValueError
            If a prediction overflows, or for `return_std` of another loss than the squared one.
        """
        if return_std:
            return self._predict_normal(X, self.forward, "return_std=True")
        exact = isinstance(self.__dict__.get("_learner"), ForwardLearner)
        return self._predict(X, (self.forward, self.forgetting) if exact else ())

    def predict_interval(self, X: MatrixLike, coverage: ArrayLike = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Predict an interval for the target of each row, as the next one of the stream, of weight 1.

        Parameters
        ----------
        {X, coverage}

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples,) or (n_samples, n_targets)
            Quantiles (1 - coverage) / 2 and (1 + coverage) / 2 of the distribution in the Notes, around the ridge
            prediction for any `forward`. Infinite before the first row (before the second, with
            penalize_intercept=False), and with less than 0.01 degrees of freedom (`forgetting` below that). With
            several coverages these have one more, last axis.

        Raises
        ------
        ValueError
            If a prediction overflows, `coverage` is not between 0 and 1, or the loss is not the squared one.
        """
        asked = check_coverage(coverage)
        center, std = self._predict_normal(X, False, "predict_interval")
        if asked.ndim:
            center, std = center[..., np.newaxis], np.repeat(std[..., np.newaxis], len(asked), axis=-1)
        degrees = self.forgetting * self._learner.state["degrees_of_freedom"]
        reach = std.copy()
        if degrees > 0:
            quantile = stdtrit(degrees, (1 + asked) / 2) if degrees >= 0.01 else np.inf  # stdtrit fails below that
            # where it is 0 or infinite, so is the interval
            np.multiply(std, quantile, out=reach, where=(std > 0) & (std < np.inf))
        return center - reach, center + reach

    def _predict_normal(self, X, forward: bool, caller: str) -> tuple[np.ndarray, np.ndarray]:
        """Predictions for rows, and standard deviations of their targets, which `caller` asks for."""
        X, learner = check_query(self, X, any_layout=True), self._learner
        if not isinstance(learner, ForwardLearner):
            raise ValueError(
                f"{caller} requires loss='squared_error', with its normal model; this model has {self._learned_loss!r}."
            )
        shares = np.empty(X.shape[0])
        predictions = self._predict_validated(X, (forward, self.forgetting, shares))
        with np.errstate(divide="ignore", invalid="ignore"):  # the share underflows to 0 for an extremely large row
            variance = np.where(shares > 0, np.divide.outer(learner.noise_variance, shares), np.inf)
        return predictions, np.sqrt(variance.T.reshape(predictions.shape))

    @property
    def noise_variance_(self) -> float | np.ndarray:
        """Variance of targets of rows of weight 1, from prediction errors; infinite without degrees of freedom."""
        learner = self._exact_learner("noise_variance_")
        return learner.noise_variance if learner.target_shape else float(learner.noise_variance[0])

    @property
    def regret_(self) -> float:
        """`cumulative_loss_` minus the minimal penalised loss of any weights on the same rows."""
        state = self._exact_learner("regret_").state
        return state["recent"] - state["hindsight"] + self._lost

    @property
    def regret_bound_(self) -> float:
        """Upper bound on `regret_`: sum of weight * y^2 / 2 (1 - 1/s).

        AttributeError if a row was learned with forward=False: the ridge prediction has no such bound.
        """
        state = self._exact_learner("regret_bound_").state
        self._check_one_run()
        if state["ridge_rows"]:
            raise AttributeError(
                f"regret_bound_ is for forward predictions, but {state['ridge_rows']:.0f} of {state['t']:.0f} rows "
                "were predicted with forward=False, whose regret has no such bound; regret_ is the actual regret"
            )
        return state["bound"] + self._lost

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        loss = resolve_loss(self.loss) if isinstance(self.loss, Loss) or self.loss in LOSSES else SquaredLoss()
        tags.target_tags.multi_output = loss == SquaredLoss()
        tags.target_tags.positive_only = has_positive_targets(self.loss)
        return tags

    def _scores(self, of: Callable[..., Scores] = Scores.of) -> Scores:
        learner = self._fitted_state()
        forward = self.forward and isinstance(learner, ForwardLearner)
        return of(learner, learner.inverse_root(self.forgetting) if forward else None)

    def _exact_learner(self, attribute: str) -> ForwardLearner:
        """The learner, if its solution for the rows is exact; AttributeError otherwise."""
        learner = self._fitted_state()
        if not isinstance(learner, ForwardLearner):
            raise AttributeError(
                f"{attribute} is for loss='squared_error', whose minimal penalised loss is known after every row; this "
                f"model has {self._learned_loss!r}, whose regret has no such bound"
            )
        return learner

    def _check(self, call: Call, X, y, sample_weight=None) -> Examples:
        """Validated rows, targets and weights; targets must have the shape of those learned before."""
        loss = resolve_loss(self.loss) if call.first else self._learned_loss
        together = loss == SquaredLoss()
        if not together and np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(
                f"y should be 1d, of shape (n_samples,), for {loss!r}: several targets can share a matrix only with "
                "loss='squared_error'; use sklearn.multioutput.MultiOutputRegressor."
            )
        finite = sample_weight is not None
        X, y = check_rows(self, X, y=y, reset=call.first, multi_output=together, finite=finite, any_layout=True)
        if together and not call.first:
            check_output_shape(y, self._learner.target_shape)
        if not together and (np.size(loss.kinks(y)) or np.size(loss.bends(y))):
            raise ValueError(
                "loss must be smooth with positive curvature for second-order steps; got "
                f"{loss!r}. Use MirrorDescentRegressor, or a smooth loss such as 'poisson'."
            )
        return Examples(X, y, check_weights(sample_weight, len(y), allow_all_zero=call.partial))

    def _begin(self, data: Examples) -> None:
        row_map, loss = self._make_row_map(data.X), resolve_loss(self.loss)
        n_features = data.X.shape[1] if row_map is None else row_map.n_outputs
        features = self._features(n_features)
        learner: ForwardLearner | MatchingLearner
        if loss == SquaredLoss():
            learner = ForwardLearner(
                n_features,
                data.y.shape[1:],
                self.alpha,
                self.fit_intercept,
                features,
                self.penalize_intercept,
                bool(self.standardize) and not (features and self._learns_residuals),
                bool(self.standardize) and features is None,
            )
        else:
            least = self._intercept_alpha()
            start = n_features, make_loss(loss), self.alpha, self.fit_intercept, features, least
            learner = MatchingLearner(*start, self._centred, self._allow_nan)
        learner.map_by(row_map)
        self._learned_loss, self._learner = loss, learner

    @property
    def _standardizes(self) -> bool:
        return bool(self.standardize) if resolve_loss(self.loss) == SquaredLoss() else super()._standardizes

    def _make_standardizer(self, n_features: int, centred: bool) -> Standardizer | None:
        """For the squared loss columns keep their units, as the learner itself moves with them."""
        if not (self.standardize and resolve_loss(self.loss) == SquaredLoss()):
            return super()._make_standardizer(n_features, centred)
        waves = self.random_features > 0
        nan = self._allow_nan
        return Standardizer(n_features, centred or not waves, allow_nan=nan, scaled=waves, strict=nan)

    def _configure(self) -> None:
        if isinstance(self._learner, ForwardLearner):
            residuals = self._learns_residuals
            self._learner.configure(forward=self.forward, forgetting=self.forgetting, residuals=residuals)
        else:
            self._learner.configure(forgetting=self.forgetting)

    def _refuse(self, reason: str, row: int, data: Examples) -> None:
        if reason == "bad target":
            self._learned_loss.check_target(data.y)
        super()._refuse(reason, row, data)
