"""Scale-invariant learning without a learning rate: every coordinate bets a fraction of its wealth (ScInOL2)."""

from __future__ import annotations

from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.geometries.scale_invariant import ScaleInvariantGeometry
from .._online.estimator import by_parameter
from .._online.mirror import MirrorEstimator, Rate
from .._online.types import RandomState
from .._online.validation import a_number, check_finite
from ..divergences import SquaredEuclidean
from ..losses import Loss
from ..losses._base import list_losses
from ._base import OnlineLinearRegressor, parts_of
from ._classifier import OnlineLinearClassifier


class ScaleInvariantMixin(MirrorEstimator):
    """Weights that are bets, in place of a mirror map.

    With gradients g x of the losses, g = L'(a, y) / (the largest slope of L), each coordinate i has the sums G = -sum g
    x_i and S = sum g^2 x_i^2, the maximum M of abs(x_i), including the row to be predicted, and the wealth W = 1 - sum
    g x_i w_i that its bets have gained. Its weight is the bet

        w_i = sign(theta) min(abs(theta), 1) / (2 sqrt(S + M^2)) W,    theta = G / sqrt(S + M^2).
    """

    _update, _power_t = "explicit", 0.5
    _init = None
    _track_regret = False
    _fixed_divergence = SquaredEuclidean()  # of certificates; the weights follow from the bets
    _loss_parameter = by_parameter("loss")
    _standardizes = by_parameter("standardize")
    fit_intercept: bool
    average: Any
    _alternative: Any
    _unmergeable = "its weights are bets of the wealth that one run has won, and no run has the mean of several wealths"

    loss: str | Loss

    def _rate(self) -> Rate:
        return Rate("constant", 1.0)

    @property
    def _adapts(self) -> bool:
        return True

    def _make_geometry(self, n_features: int) -> ScaleInvariantGeometry:
        loss = self._learned_loss
        if not loss.lipschitz < np.inf:
            raise ValueError(
                f"The loss of {type(self).__name__} must have a bounded slope; got {loss!r}. Use another loss, such as "
                f"{self._alternative}."
            )
        heaviest = self._heaviest()
        return ScaleInvariantGeometry(n_features, loss.lipschitz * heaviest, loss.degree > 0, heaviest)

    def _heaviest(self) -> float:
        """The largest class weight, by which the slopes of losses are multiplied."""
        return 1.0

    def _check_start(self) -> NoReturn:
        raise ValueError(
            f"{type(self).__name__} cannot start from coef_init or intercept_init: its weights are bets of the wealth "
            "that the rows have won; use warm_start=True to go on with a model."
        )

    @property
    def divergence_(self) -> NoReturn:
        """Not available: weights are bets."""
        raise AttributeError(f"{type(self).__name__} has no divergence")

    def regret_bound(self, coef: ArrayLike, intercept: ArrayLike = 0.0) -> float | np.ndarray:
        """Bound on the regret of this run against a comparator, without assumptions on the data.

        For every linear model u = (coef, intercept)

            sum L_t(w_t) - L_t(u)  <=  sum g_t x_t.(w_t - u)  =  sum_i (W_i at the start - W_i) + u_i G_i

        times the largest slope of the loss, W_i being the wealth of coordinate i, the intercept one of them. The left
        side starts with `cumulative_loss_`. On losses in units of the target the intercept starts at the first target,
        if 0 has a loss there: that is where its u_i is counted from, and the size of that target is added for the first
        row.

        Parameters
        ----------
        coef : array-like of shape (n_features,) or (n_learners, n_features)
            Weights of the comparators, for standardised rows unless standardize=False.
        intercept : float or array-like of shape (n_learners,), default=0.0
            Their intercepts; must be 0 if none is learned.

        Returns
        -------
        bound : float or ndarray of shape (n_learners,)
            The right side; of several outputs, and for a classifier, that of each learner: one for two classes, else
            one for each class.

        Raises
        ------
        ValueError
            If rows were learned with weights above 1 or with `average`, or an intercept is given but not learned.
        """

        def certificate(u, unit, pull, squares, largest, wealth, first):
            return (unit * (1 - wealth) + u * pull).sum()

        return self._of_bets(certificate, coef, intercept)

    def worst_case_bound(self, coef: ArrayLike, intercept: ArrayLike = 0.0) -> float | np.ndarray:
        """The theorem's bound on the regret against a comparator, in terms of the magnitudes of the gradients.

        With h = sqrt(S + M^2) and M_1 the first abs(x_i) that was not 0, wealth is at least
        exp(H(G / h) / 2) (M_1 / h)^(1 / ln 2), H(theta) = theta^2 / 2 up to abs(theta) = 1 and abs(theta) - 1/2 beyond.
        The largest u G minus wealth over all G gives, for wealth that starts with 1,

            sum_i 1 + 2 abs(u_i) h ln(2 abs(u_i) h k / e),    k = exp(1/4) (h / M_1)^(1 / ln 2),

        the product being left out where the logarithm is negative. It is never below `regret_bound`.

        Parameters
        ----------
        coef, intercept : array-like
            The comparators, as in `regret_bound`.

        Returns
        -------
        bound : float or ndarray of shape (n_learners,)
            Bound on `cumulative_loss_` minus the comparator's loss.

        Raises
        ------
        ValueError
            As `regret_bound`.
        """

        def bound(u, unit, pull, squares, largest, wealth, first):
            h = np.sqrt(squares + largest**2)
            met = first > 0
            k = np.exp(0.25) * np.divide(h, first, out=np.ones_like(h), where=met) ** (1 / np.log(2))
            product = 2 * np.abs(u) * h
            logarithm = np.log(np.maximum(product * k / np.e / (unit or 1.0), 1.0))
            return (met * unit + product * logarithm).sum()

        return self._of_bets(bound, coef, intercept)

    def _of_bets(self, formula, coef: ArrayLike, intercept: ArrayLike) -> float | np.ndarray:
        """A formula evaluated for each learner, in units of its loss."""
        learner = self._fitted_state()
        parts = parts_of(learner)
        if learner.largest_weight > 1:
            raise ValueError("The bound requires weights of at most 1; divide sample_weight by the largest.")
        self._check_one_run()
        if self.average:
            raise ValueError("The bound is for the weights before averaging; learn with average=False.")
        coefs = np.broadcast_to(np.asarray(coef, dtype=np.float64), (len(parts), self.n_features_in_))
        intercepts = np.broadcast_to(np.asarray(intercept, dtype=np.float64), len(parts))
        check_finite(coefs, "coef")
        check_finite(intercepts, "intercept")
        if intercepts.any() and not self.fit_intercept:
            raise ValueError("Rows were learned without an intercept; compare with intercept 0.")
        bounds, lost = [], np.broadcast_to(self._before.losses, len(parts))  # before it began again
        for part, u, b, before in zip(parts, coefs, intercepts, lost, strict=True):
            bets = part.geometry.bets if self.fit_intercept else part.geometry.bets[:, :-1]
            origin = part.geometry.origin  # the first target: the distance of the first row is that from 0
            u = np.r_[u, b - origin] if self.fit_intercept else u
            with np.errstate(over="ignore", invalid="ignore"):
                bound = part.geometry.slope * (abs(origin) + formula(u, part.geometry.unit, *bets))
            bounds.append(a_number(float(before + bound)))
        return bounds[0] if learner is parts[0] else np.array(bounds)


@list_losses
class ScaleInvariantRegressor(ScaleInvariantMixin, OnlineLinearRegressor):
    """Scale-invariant linear regression without a learning rate (ScInOL2).

    Units and levels of features change nothing but the weights, since rows are standardised online; for losses in units
    of the target, predictions also scale with the target. There is nothing to tune. Each coordinate bets a fraction of
    its wealth, so that weights can grow exponentially towards their target, and the regret against every comparator, of
    the rows as they were standardised, is bounded: `worst_case_bound`. With standardize=False this is the algorithm of
    the paper: its weights scale with the units of a feature, but a feature far from 0 is hardly learned, and the bound
    is about the features as they are. For losses in units of the target the intercept starts at the first target.

    Parameters
    ----------
    loss : {<regression losses>} or Loss
        A loss with bounded slope, such as "absolute_error", "huber", "quantile" or "log_loss".
    {fit_intercept, standardize, max_iter, tol, n_iter_no_change, early_stopping, validation_fraction, shuffle}
    {average, warm_start, handle_new_features, random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, t_}
    cumulative_loss_ : float
        Sum of weight times loss over all rows, each predicted before it was learned.
    {n_iter_, loss_curve_, validation_scores_, n_features_in_, feature_names_in_}

    See Also
    --------
    ScaleInvariantClassifier : For labels.
    MirrorDescentRegressor : With divergence="normalized_adagrad", whose rate does not depend on scales, either.

    Notes
    -----
    A row of weight above 1 counts, the first time, no more than the largest value of each of its features.

    References
    ----------
    M. Kempka, W. Kotlowski, M. K. Warmuth, "Adaptive Scale-Invariant Online Algorithms for Learning Linear Models",
    ICML 2019, algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import ScaleInvariantRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3)) * [1e-3, 1.0, 1e3]
    >>> y = X @ [1e3, 2.0, 3e-3]
    >>> model = ScaleInvariantRegressor().partial_fit(X, y)
    >>> print((model.coef_ * [1e-3, 1.0, 1e3]).round(1))
    [1. 2. 3.]
    """

    _alternative = "'absolute_error' or 'huber'"

    def __init__(
        self,
        *,
        loss: str | Loss = "absolute_error",
        fit_intercept: bool = True,
        standardize: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        early_stopping: bool | Literal["best"] = False,
        validation_fraction: float = 0.1,
        shuffle: bool = True,
        average: bool | int = False,
        warm_start: bool = False,
        handle_new_features: Literal["error", "add"] = "error",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())


@list_losses
class ScaleInvariantClassifier(ScaleInvariantMixin, OnlineLinearClassifier):
    """Scale-invariant linear classification without a learning rate (ScInOL2).

    Units and levels of features change nothing but the weights, since rows are standardised online, and there is
    nothing to tune. Each coordinate bets a fraction of its wealth, and the regret against every comparator, of the rows
    as they were standardised, is bounded: `worst_case_bound`. With standardize=False this is the algorithm of the
    paper: its weights scale with the units of a feature, but a feature far from 0 is hardly learned, and the bound is
    about the features as they are. More than two classes are learned one-vs-rest, side by side.

    Parameters
    ----------
    loss : {<classification losses>} or Loss
        A loss with bounded slope, such as "log_loss", "hinge" or "modified_huber".
    {class_weight, handle_unknown, fit_intercept, standardize, max_iter, tol, n_iter_no_change, early_stopping}
    {validation_fraction, shuffle, average, warm_start, handle_new_features, random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, classes_, t_, cumulative_loss_, n_iter_, loss_curve_, validation_scores_, n_features_in_}
    {feature_names_in_}

    See Also
    --------
    ScaleInvariantRegressor : For numbers.
    MirrorDescentClassifier : With divergence="normalized_adagrad", whose rate is free of scales, too.

    Notes
    -----
    The losses of rows are divided by the largest slope that class weights can give them. Beyond that, a row of weight
    above 1 counts, the first time, no more than the largest value of each of its features.

    References
    ----------
    M. Kempka, W. Kotlowski, M. K. Warmuth, "Adaptive Scale-Invariant Online Algorithms for Learning Linear Models",
    ICML 2019, algorithm 2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from onlinebregman import ScaleInvariantClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)  # columns of sizes from 0.01 to 1000
    >>> model = ScaleInvariantClassifier().partial_fit(X[:400], y[:400], classes=[0, 1])
    >>> print(model.score(X[400:], y[400:]) > 0.9)
    True
    """

    _alternative = "'log_loss' or 'hinge'"

    def _class_weights(self, *arguments, **given) -> np.ndarray:
        weights = super()._class_weights(*arguments, **given)
        self._largest_class_weight = float(weights.max()) or 1.0
        return weights

    def _heaviest(self) -> float:
        return 1.0 if self._class_weight is None else self._largest_class_weight

    def __init__(
        self,
        *,
        loss: str | Loss = "log_loss",
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        handle_unknown: Literal["error", "add"] = "error",
        fit_intercept: bool = True,
        standardize: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        early_stopping: bool | Literal["best"] = False,
        validation_fraction: float = 0.1,
        shuffle: bool = True,
        average: bool | int = False,
        warm_start: bool = False,
        handle_new_features: Literal["error", "add"] = "error",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self._set_arguments(locals())
