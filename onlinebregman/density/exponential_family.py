"""Online density estimation in exponential families, a coordinate at a time."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils import Tags

from .._kernels.learners.density import DensityLearner, ExponentialFamilyLearner
from .._online.estimator import Examples
from .._online.merging import total
from .._online.validation import check_draws, check_finite, check_learned, dense, read_only
from .._sklearn_compat import Interval, StrOptions
from ..divergences import Divergence
from ._base import OnlineDensity, in_float64, refuse_log_density
from ._families import FAMILIES, Family, make_family


class IncrementalOffline:
    """The best member for the rows so far, including the prior: k1 = k."""

    def __init__(self, k: float) -> None:
        self.k = k

    def predict(self, mean: np.ndarray, total: np.ndarray, weight: float, t: int) -> np.ndarray:
        return (self.k * mean + total) / (self.k + weight)


class Forward(IncrementalOffline):
    """The best member if the row itself is included with the value mu_1: k1 = k + 1 for rows of weight 1."""

    def predict(self, mean: np.ndarray, total: np.ndarray, weight: float, t: int) -> np.ndarray:
        return ((self.k + 1.0) * mean + total) / (self.k + 1.0 + weight)


class LastStepBernoulli(IncrementalOffline):
    """The mean for which the values 0 and 1 give the same regret if the row is the last one.

    With F the conjugate and N = k + weight + h, logit mu_t is the difference quotient over h of
    N F((k mu_1 + total)/N): -min L_{1..t} after a one minus the same after a zero (W, "Last-step Minimax").
    """

    def predict(self, mean: np.ndarray, total: np.ndarray, weight: float, t: int) -> np.ndarray:
        ones = self.k * mean + total
        return expit(self._growth(ones) - self._growth(np.maximum(self.k + weight - ones, 0.0)))

    @staticmethod
    def _growth(count: np.ndarray) -> np.ndarray:
        """(count + 1) ln(count + 1) - count ln count, without cancellation."""
        some = np.maximum(count, 1e-290)  # 0 ln 0 = 0
        return np.log(count + 1.0) + some * np.log1p(1.0 / some)


class GaussianMinimax:
    """The strategy with the smallest worst-case regret over T rows: theta_t = alpha_t sum (x_q - mu_1).

    W, "Minimax Algorithm for T Trials".
    """

    def __init__(self, horizon: int) -> None:
        self.alpha = minimax_rates(horizon)

    def predict(self, mean: np.ndarray, total: np.ndarray, weight: float, t: int) -> np.ndarray:
        return mean + self.alpha[min(t, len(self.alpha) - 1)] * (total - weight * mean)


def minimax_rates(horizon: int) -> np.ndarray:
    """alpha_1 .. alpha_T of the Gaussian minimax strategy: alpha_T = 1/T, alpha_{t-1} = alpha_t + alpha_t^2."""
    alpha = np.empty(horizon)
    rate = 1 / horizon
    for t in range(horizon - 1, -1, -1):
        alpha[t] = rate
        rate += rate * rate
    return alpha


class OnlineExponentialFamily(OnlineDensity):
    """Density of rows whose coordinates are independent members of an exponential family, learned online.

    P(x | theta) = exp(theta x - G(theta)) P_0(x) in every coordinate, with expectation mu = G'(theta). Each row is
    first predicted, by the member of mean mu_t, and then learned. With k the weight and mu_1 the mean of a prior, and n
    the number of rows before:

        "incremental_offline"   mu_t = (k mu_1 + sum x) / (k + n)              the best member so far
        "forward"               mu_t = ((k + 1) mu_1 + sum x) / (k + 1 + n)    the next row counted as mu_1

    "last_step_minimax" minimises the worst case over the next row, as if it were the last one; "minimax" the worst case
    over all of a known number of rows.

    Parameters
    ----------
    family : {"gaussian", "bernoulli", "poisson", "exponential", "gamma"}
        What the coordinates are: numbers; zeros and ones (a number in between counts as a one with that probability);
        counts; positive numbers ("exponential" and "gamma", in the geometry of the Burg entropy).
    strategy : {"forward", "incremental_offline", "last_step_minimax", "minimax"}
        How the next row is predicted. "last_step_minimax" is available for "bernoulli" and "gaussian" (for which it
        equals "forward"), "minimax" for "gaussian" with `horizon`.
    prior_weight : float
        Number of rows that the prior is worth, k; > 0 for "incremental_offline". Not used by "minimax".
    prior_mean : float or array-like of shape (n_features,)
        mu_1. None: 0 for "gaussian", 1/2 for "bernoulli", 1 for the others.
    variance : float or array-like of shape (n_features,)
        Variance of "gaussian", for all coordinates or for each (if it is unknown, use :class:`OnlineGaussian`).
    shape : float
        Shape of "gamma"; its variance is mean^2 / shape.
    horizon : int
        Total number of rows, for "minimax".

    Attributes
    ----------
    expectation_parameters_ : ndarray of shape (n_features,)
        mu of the member that predicts the next row.
    natural_parameters_ : ndarray of shape (n_features,)
        theta of that member.
    cumulant_, conjugate_ : Divergence
        The divergences of G and of its conjugate F; D_G(theta~, theta) = D_F(mu, mu~) is the relative entropy of the
        member of theta~ from that of theta.
    t_ : int
        Rows learned; rows of weight zero do not count.
    cumulative_loss_ : float
        Sum of weight * -ln P(x | mu_t), each row predicted before it was learned.
    offline_loss_ : float
        The minimum of sum weight * -ln P(x | theta) + k D_G(theta, theta_1) over all theta, attained at the mean (k
        mu_1 + sum x) / (k + n). Without a prior (and for "minimax") the loss of the best member in hindsight; for
        "exponential" it is -inf if a column is zero, as the loss is unbounded below for means tending to 0.
    regret_ : float
        `cumulative_loss_ - offline_loss_`, inf where that is -inf.
    regret_bound_ : float
        Upper bound on `regret_`, if there is a theorem (see Notes); otherwise AttributeError.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    OnlineGaussian : Mean and covariance, both learned.
    MaxEntDensity : Distributions over a finite domain.

    Notes
    -----
    All parameters are read when learning starts. A row of weight h counts as h in sums and losses; "forward" counts the
    row to be predicted with its weight.

    *Identity* (Key Lemma). For "incremental_offline" (k1 = k, any weights h_t) and for "forward" (k1 = k + 1, weights
    1), with k_t = k1 + h_1 + ... + h_{t-1} and every theta,

        sum h_t (L_t(theta_t) - L_t(theta)) = k1 D_G(theta, theta_1) - k_{T+1} D_G(theta, theta_{T+1})
                                              + sum k_{t+1} D_G(theta_t, theta_{t+1}).

    *Bounds* on `regret_`. Gaussian, with |x|^2 = sum x_i^2 / variance_i and X^2 = max |x - mu_1|^2. "forward" and
    "last_step_minimax": for T rows of weight 1, `regret_bound_` is

        1/2 sum |x_t - mu_1|^2 / (k + t)  <=  X^2/2 ln(1 + T/k)      (1 + ln T for k = 0).

    "minimax", weights 1: after all T rows the regret is 1/2 sum alpha_t |x_t - mu_1|^2, so that

        regret <= X^2/2 sum alpha_t,    alpha_T = 1/T,    alpha_{t-1} = alpha_t + alpha_t^2,

    which is optimal in the worst case; before the last row, (1/t - alpha_t) |sum x - mu_1|^2 / 2 is added. Bernoulli,
    "forward", k = 0, mu_1 = 1/2, weights 1: n_features (ln(T + 1)/2 + 1).

    References
    ----------
    .. [1] K. S. Azoury, M. K. Warmuth, "Relative Loss Bounds for On-line Density Estimation with the Exponential Family
       of Distributions", Machine Learning 43, 2001.
    .. [2] E. Takimoto, M. K. Warmuth, "The Last-Step Minimax Algorithm", ALT 2000; "The Minimax Strategy for Gaussian
       Density Estimation", COLT 2000.
    .. [3] M. K. Warmuth, "Bregman divergences and on-line learning", slides: density estimation.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import OnlineExponentialFamily
    >>> coins = np.random.default_rng(0).uniform(size=(1000, 2)) < [0.2, 0.7]
    >>> model = OnlineExponentialFamily(family="bernoulli").fit(coins)
    >>> model.expectation_parameters_.round(2)
    array([0.2, 0.7])
    >>> print(f"{model.regret_:.2f} <= {model.regret_bound_:.2f}")
    7.36 <= 8.91
    """

    _refused = "its log-density overflows; scale the features, for example with sklearn.preprocessing.StandardScaler."

    _parameter_constraints: dict = {
        "family": [StrOptions(set(FAMILIES))],
        "strategy": [StrOptions({"forward", "incremental_offline", "last_step_minimax", "minimax"})],
        "prior_weight": [Interval(Real, 0, None, closed="left")],
        "prior_mean": [Real, "array-like", None],
        "variance": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "shape": [Interval(Real, 0, None, closed="neither")],
        "horizon": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        family: Literal["gaussian", "bernoulli", "poisson", "exponential", "gamma"] = "gaussian",
        *,
        strategy: Literal["forward", "incremental_offline", "last_step_minimax", "minimax"] = "forward",
        prior_weight: float = 0.0,
        prior_mean: float | ArrayLike | None = None,
        variance: float | ArrayLike = 1.0,
        shape: float = 1.0,
        horizon: int | None = None,
    ) -> None:
        self._set_arguments(locals())

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log-density of each row as the next one of the stream.

        Parameters
        ----------
        {X}

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            ln P(x | theta), summed over the coordinates; -inf for values that are impossible at the edge of the domain:
            x > 0 for a Bernoulli or Poisson variable of mean 0, x < 1 for a Bernoulli variable of mean 1.

        Raises
        ------
        ValueError
            If the family has no such value, or a log-density overflows.
        """
        return self._predict(X)

    def _predict_validated(self, X: Any, settings: tuple = ()) -> np.ndarray:
        """Log-densities, -inf for impossible rows."""
        scores = self._learner.predict(X)
        if scores is None:
            check_finite(X)
            X = dense(X, np.float64)
            self._family.check(X)
            scores = np.full(len(X), -np.inf)
            possible = np.all(self._family.possible(X, self.expectation_parameters_), axis=1)
            for row in np.flatnonzero(possible).tolist():
                found = self._learner.predict(X[row : row + 1])
                if found is None:
                    refuse_log_density(X, row)
                scores[row] = found[0]
        return scores

    @in_float64
    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> np.ndarray:
        """Draw rows from the member that predicts the next row.

        Parameters
        ----------
        {n_samples, random_state}

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Independent rows.
        """
        check_learned(self)
        return self._family.sample(check_draws(n_samples, random_state), self.expectation_parameters_, n_samples)

    @read_only
    @in_float64
    def expectation_parameters_(self) -> np.ndarray:
        """Mean of the member that predicts the next row (of weight 1), shape (n_features,)."""
        now = self._fitted_state()
        return now.origin + self._rule.predict(self._mean - now.origin, now.total, now.weight, now.t)

    @read_only
    def natural_parameters_(self) -> np.ndarray:
        """theta = f(mu) of the member that predicts the next row, shape (n_features,)."""
        return self.conjugate_.mirror(self.expectation_parameters_)

    @property
    def conjugate_(self) -> Divergence:
        """The divergence of the conjugate F of G, a function of expectation parameters."""
        self._fitted_state()
        return self._family.conjugate

    @property
    @in_float64
    def offline_loss_(self) -> float:
        """Minimum of sum weight * -ln P(x | theta) + k D_G(theta, theta_1) over all theta."""
        # the minimum of (n + k) G - theta (sum x + k mu_1) + k F(mu_1) + base, attained at mu_B
        now, k, F = self._fitted_state(), self._k, self._family.conjugate
        n = now.weight
        if n == 0:
            return 0.0
        if self._family.location:  # F is quadratic, so that rows count like n rows at their mean
            mean = now.total / n
            prior = n * (k / (k + n)) * F.potential(self._mean - now.origin - mean)
            return now.state["base"] - n * F.potential(mean) + prior
        best = (k * self._mean + now.total) / (k + n)
        prior = k * F.potential(self._mean) if k > 0 else 0.0
        return now.state["base"] + prior - (n + k) * self._family.potential(best)

    @property
    @in_float64
    def regret_bound_(self) -> float:
        """Upper bound on `regret_`; AttributeError if there is no theorem."""
        now, rule = self._fitted_state(), self._rule
        self._check_one_run()
        gaussian = self._learned_family == "gaussian"
        if isinstance(rule, GaussianMinimax):
            if now.t == 0:
                return 0.0
            alpha = rule.alpha[: now.t]
            drift = float(((now.total - now.t * (self._mean - now.origin)) ** 2 / self._family.variance).sum())
            return (now.state["radius"] * float(alpha.sum()) + (1 / now.t - float(alpha[-1])) * drift) / 2
        if gaussian and isinstance(rule, Forward):
            return now.state["quadratic"] / 2
        coin = self._learned_family == "bernoulli" and isinstance(rule, Forward)
        if coin and self._k == 0 and (self._mean == 0.5).all() and now.state["unweighted"]:
            return len(self._mean) * (np.log(now.t + 1) / 2 + 1)
        raise AttributeError(
            f"no theorem bounds the regret of strategy={self._learned_strategy!r} in family={self._learned_family!r} "
            "with this prior and these weights; regret_ is the actual regret"
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.family != "gaussian"
        return tags

    def _check_values(self, X: np.ndarray, reset: bool) -> None:
        family = make_family(self.family, self.variance, self.shape, X.shape[1]) if reset else self._family
        family.check(X)

    def _begin(self, data: Examples) -> None:
        n_features = data.X.shape[1]
        self._family: Family = make_family(self.family, self.variance, self.shape, n_features)
        self._learned_family, self._learned_strategy = self.family, self.strategy
        mean = np.asarray(self._family.default_mean if self.prior_mean is None else self.prior_mean, dtype=np.float64)
        if mean.shape not in ((), (n_features,)):
            raise ValueError(
                f"prior_mean has shape {mean.shape}; give a number, or one for each of the {n_features} features."
            )
        self._mean = np.broadcast_to(mean, n_features).copy()
        self._family.check_mean(self._mean)
        self._k = 0.0 if self.strategy == "minimax" else float(self.prior_weight)
        self._rule = self._make_rule()
        self._learner = ExponentialFamilyLearner(
            self._mean,
            self._k,
            self._family.name,
            type(self._rule).__name__,
            np.broadcast_to(self._family.variance, n_features),
            self._family.shape,
            getattr(self._rule, "alpha", None),
        )

    def _make_rule(self) -> IncrementalOffline | GaussianMinimax:
        """The prediction strategy, or ValueError if the family does not have it."""
        self._check_first_prediction(self._k)
        if self.strategy == "minimax":
            if self.family != "gaussian" or self.horizon is None:
                raise ValueError(
                    f"strategy='minimax' requires family='gaussian' and a horizon; got family={self.family!r} and "
                    f"horizon={self.horizon}; set both, or use strategy='forward'."
                )
            return GaussianMinimax(self.horizon)
        if self.strategy == "last_step_minimax" and self.family not in ("bernoulli", "gaussian"):
            raise ValueError(
                f"strategy='last_step_minimax' requires family='bernoulli' or 'gaussian'; got {self.family!r}; use "
                "strategy='forward'."
            )
        if self.strategy == "last_step_minimax" and self.family == "bernoulli":
            return LastStepBernoulli(self._k)
        return (IncrementalOffline if self.strategy == "incremental_offline" else Forward)(self._k)

    def _learn(
        self, data: Examples, order: None = None, *, again: bool = False, scores: np.ndarray | None = None
    ) -> None:
        if isinstance(self._rule, GaussianMinimax):
            self._check_horizon(self._rule, np.ones(len(data)) if data.weights is None else data.weights)
        super()._learn(data, scores=scores)

    def _joined(self, parts: Sequence[DensityLearner], sums: dict[str, Any]) -> DensityLearner:
        origin = parts[0].origin

        def about_origin(now: DensityLearner) -> tuple[np.ndarray, float]:
            """The total and the base of the same rows minus another origin."""
            offset = now.origin - origin
            if not offset.any():
                return now.total, now.state["base"]
            shift = float(((2 * now.total + now.weight * offset) * offset / (2 * self._family.variance)).sum())
            return now.total + now.weight * offset, now.state["base"] + shift

        totals, bases = zip(*map(about_origin, (self._learner, *parts)), strict=True)
        quadratic, radius = (max(now.state[name] for now in parts) for name in ("quadratic", "radius"))
        memory = np.r_[origin, total(totals[0], totals[1:])]
        sums |= {"base": total(bases[0], bases[1:]), "quadratic": quadratic, "radius": radius, "unweighted": 0.0}
        return self._learner.replaced(memory, **sums)

    def _check_horizon(self, rule: GaussianMinimax, weights: np.ndarray) -> None:
        numbers = np.flatnonzero(weights)
        if (weights[numbers] != 1).any():
            wrong = int(numbers[np.argmax(weights[numbers] != 1)])
            raise ValueError(
                f"strategy='minimax' counts rows, so that weights must be 0 or 1; got {weights[wrong]:g} for row "
                f"{wrong}. Use strategy='forward'."
            )
        before, horizon = self._learner.t, len(rule.alpha)
        if before + len(numbers) > horizon:
            raise ValueError(
                f"Row {numbers[horizon - before]} is row {horizon + 1} of the stream, beyond horizon={horizon} of "
                "strategy='minimax'; set a larger horizon before learning, or use strategy='forward'."
            )
