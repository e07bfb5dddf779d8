"""A portfolio rebalanced by exponentiated gradient."""

from __future__ import annotations

from numbers import Real
from typing import Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from .._kernels.learners.hedge import Hedge
from .._kernels.learners.mixer import LogMixer
from .._online.estimator import Call, Examples, OnlineEstimator
from .._online.validation import check_dense_rows, check_learned
from .._sklearn_compat import Interval, StrOptions, fit_context
from ._wealth import check_relatives, from_log
from ._weights import Array, WeighsExperts, are_numbers, hoeffding_rate


class EGPortfolio(WeighsExperts, OnlineEstimator):
    """Portfolio that is rebalanced each day by exponentiated gradient steps on the log-loss -ln(w.x).

    After a day with price relatives x, w_k ~ w_k exp(rate x_k / (w.x)): a mixture of the assets that in the long run
    grows at the rate of the best constant rebalanced portfolio, in O(n_assets) time per day.

    Parameters
    ----------
    learning_rate : float or "theory"
        The rate; the default is that of the paper's experiments. "theory": 2 r sqrt(2 ln N / T) with the `data_bounds`,
        for which ln of the wealth is within sqrt(T ln N / 2) / r of that of the best constant rebalanced portfolio.
    data_bounds : dict or None
        For "theory": "ratio", r, a lower bound on the smallest price relative of a day divided by the largest, and
        "n_rows", the number of days T.
    {history}

    Attributes
    ----------
    weights_ : ndarray of shape (n_assets,)
        Shares of the capital for the next day.
    weights_history_ : ndarray of shape (n_days, n_assets)
        Shares on each of the last `history` days.
    wealth_ : float
        Current value of a capital of 1.
    cumulative_loss_ : float
        -ln of the wealth.
    regret_bound_ : float
        Bound on how far ln of the wealth is below that of any constant rebalanced portfolio, for this run.
    expert_losses_ : ndarray of shape (n_assets,)
        -ln of the value of each asset alone.
    t_ : int
        Days.
    n_features_in_ : int
        Number of assets.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the assets, if X had any.

    See Also
    --------
    best_constant_portfolio : The comparator, in hindsight.
    universal_wealth : Cover's portfolio.

    References
    ----------
    .. [1] D. P. Helmbold, R. E. Schapire, Y. Singer, M. K. Warmuth, "On-Line Portfolio Selection Using Multiplicative
       Updates", Mathematical Finance 8, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinebregman import EGPortfolio
    >>> from onlinebregman.experts import best_constant_portfolio
    >>> x = np.random.default_rng(0).lognormal(0.0005, 0.02, size=(1000, 5))
    >>> model = EGPortfolio().partial_fit(x[:500]).partial_fit(x[500:])
    >>> best = best_constant_portfolio(x)
    >>> bool(np.log(best.wealth) - np.log(model.wealth_) <= model.regret_bound_)
    True
    """

    _unmergeable = "its wealth and its weights are those of one sequence of days"
    _parameter_constraints: dict = {
        "learning_rate": [StrOptions({"theory"}), Interval(Real, 0, None, closed="neither")],
        "data_bounds": [dict, None],
        **WeighsExperts._parameter_constraints,
    }

    def __init__(
        self,
        learning_rate: float | Literal["theory"] = 0.05,
        *,
        data_bounds: dict[str, float] | None = None,
        history: int = 0,
    ) -> None:
        self._set_arguments(locals())

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Start over with these days, in their order, which is never shuffled: wealth grows from day to day.

        Parameters
        ----------
        X : array-like of shape (n_days, n_assets)
            Price relatives, in the order of the days: the price at the end of a day divided by that at its beginning, 0
            for an asset that loses all its value.
        y : None
            Ignored.

        Returns
        -------
        self : EGPortfolio
            The portfolio.

        Raises
        ------
        ValueError
            If a price relative is negative, or the whole portfolio is lost on some day; the portfolio is then
            unchanged.
        """
        return self._fit(X, y)

    def partial_fit(self, X: ArrayLike, y: None = None) -> Self:
        """Continue with these days; all of them or, if it raises, none.

        Parameters
        ----------
        X : array-like of shape (n_days, n_assets)
            Price relatives, in the order of the days.
        {y}

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError}
        """
        return self._partial_fit(X)

    def predict(self, X: ArrayLike) -> Array:
        """Daily return w.x on each of these days with the current shares.

        Parameters
        ----------
        {X}

        Returns
        -------
        gains : ndarray of shape (n_days,)
            w.x for each day.
        """
        check_learned(self)
        return (check_relatives(check_dense_rows(self, X, reset=False)) * self.weights_).sum(axis=1)

    def score(self, X: ArrayLike, y: None = None) -> float:
        """Growth rate of a capital over these days with the current shares.

        Parameters
        ----------
        {X, y}

        Returns
        -------
        score : float
            Mean of ln(w.x); -inf if the whole portfolio is lost.
        """
        with np.errstate(divide="ignore"):
            return float(np.log(self.predict(X)).mean())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _check(self, call: Call, X: ArrayLike, y: None = None, sample_weight: None = None) -> Examples:
        return Examples(check_relatives(check_dense_rows(self, X, reset=call.first)))

    def _begin(self, data: Examples) -> None:
        n_assets = data.X.shape[1]
        self._learner = LogMixer(Hedge(n_assets, self._rate(n_assets)), True, False)

    def _learn(self, data: Examples, order: None = None, *, again: bool = False) -> None:
        self._update_weights(data.X)

    def _refuse(self, reason: str, row: int, forecasts: Array, targets: None) -> NoReturn:
        if reason == "bad target":
            raise ValueError(
                f"The whole portfolio is lost in row {row}; remove the day, or add an asset that keeps its value, a "
                "column of ones."
            )
        raise ValueError(
            f"The price relatives of row {row} (from {forecasts[row].min():g} to {forecasts[row].max():g}) differ too "
            "much in scale; correct them, or lower learning_rate."
        )

    def _rate(self, n_assets: int) -> float:
        rate, bounds = self.learning_rate, self.data_bounds or {}
        if rate == "theory":
            ratio, n_rows = bounds.get("ratio", np.nan), bounds.get("n_rows", np.nan)
            if not are_numbers(ratio, n_rows) or not 1e-300 <= float(ratio) <= 1 or not n_rows > 0:
                raise ValueError(
                    "learning_rate='theory' needs data_bounds with 'ratio' in (0, 1] and a positive 'n_rows'; "
                    f"got {bounds!r}."
                )
            return hoeffding_rate(1 / float(ratio), float(n_rows), n_assets)
        return float(rate)

    @property
    def wealth_(self) -> float:
        """Current value of a capital of 1."""
        return from_log(-self._fitted_hedge().loss)
