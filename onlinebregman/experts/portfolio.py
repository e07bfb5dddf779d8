"""A portfolio rebalanced by exponentiated gradient."""

from __future__ import annotations

import copy
from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ._wealth import check_relatives
from ._weights import Array, ExpertWeights, hoeffding_rate


class EGPortfolio:
    """Portfolio that is rebalanced each day by exponentiated gradient steps on the log-loss -ln(w.x).

    After a day with price relatives x, w_k ~ w_k exp(rate x_k / (w.x)): a mixture of the assets that in the long run
    grows at the rate of the best constant rebalanced portfolio, at a cost of O(n_assets) a day.

    Parameters
    ----------
    learning_rate : float or "theory", default=0.05
        The rate; the default is that of the paper's experiments. "theory": 2 r sqrt(2 ln N / T) with the `data_bounds`,
        for which ln of the wealth is within sqrt(T ln N / 2) / r of that of the best constant rebalanced portfolio.
    data_bounds : dict or None, default=None
        For "theory": "ratio", r, the smallest relative of a day divided by its largest at the worst, and "n_rows", the
        number of days T.

    Attributes
    ----------
    weights_ : ndarray of shape (n_assets,)
        Shares of the capital for the next day.
    wealth_ : float
        What a capital of 1 has become.
    cumulative_loss_ : float
        -ln of the wealth.
    regret_bound_ : float
        Bound on how far ln of the wealth is below that of any constant rebalanced portfolio, for this very run.
    expert_losses_ : ndarray of shape (n_assets,)
        -ln of what each asset alone made.
    t_ : int
        Days.

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
    >>> from onlinebregman.experts import EGPortfolio, best_constant_portfolio
    >>> x = np.random.default_rng(0).lognormal(0.0005, 0.02, size=(1000, 5))
    >>> model = EGPortfolio().partial_fit(x[:500]).partial_fit(x[500:])
    >>> best = best_constant_portfolio(x)
    >>> bool(np.log(best.wealth) - np.log(model.wealth_) <= model.regret_bound_)
    True
    """

    def __init__(self, learning_rate: float | str = 0.05, *, data_bounds: dict | None = None) -> None:
        self.learning_rate = learning_rate
        self.data_bounds = data_bounds

    def fit(self, relatives: ArrayLike) -> Self:
        """Begin anew with these days.

        Parameters
        ----------
        relatives : array-like of shape (n_days, n_assets)
            Price relatives, in the order of the days.

        Returns
        -------
        self : EGPortfolio
            The portfolio.
        """
        return self._learn(check_relatives(relatives), None)

    def partial_fit(self, relatives: ArrayLike) -> Self:
        """Go on with these days; all of them or, if it raises, none.

        Parameters
        ----------
        relatives : array-like of shape (n_days, n_assets)
            Price relatives, in the order of the days.

        Returns
        -------
        self : EGPortfolio
            The portfolio.

        Raises
        ------
        ValueError
            If a price relative is not positive, or the number of assets is not that of before.
        """
        return self._learn(check_relatives(relatives), vars(self).get("_mix"))

    def _learn(self, x: Array, mix: ExpertWeights | None) -> Self:
        n_assets = x.shape[1]
        if mix is None:
            mix = ExpertWeights(np.full(n_assets, 1 / n_assets), self._rate(n_assets))
        elif len(mix.losses) != n_assets:
            raise ValueError(f"There are {n_assets} price relatives a day, but the portfolio has {len(mix.losses)}.")
        mix = copy.copy(mix)
        for day in x:
            logs = mix.log_weights()
            gain = float(np.sum(np.exp(logs) * day))
            mix.learn(logs, day / -gain, -np.log(gain), -np.log(day))
        self._mix = mix
        return self

    def _rate(self, n_assets: int) -> float:
        rate, bounds = self.learning_rate, self.data_bounds or {}
        if rate == "theory":
            if not {"ratio", "n_rows"} <= set(bounds) or not 0 < bounds["ratio"] <= 1 or not bounds["n_rows"] > 0:
                raise ValueError(
                    "learning_rate='theory' needs data_bounds with 'ratio' in (0, 1] and a positive 'n_rows'; "
                    f"got {bounds!r}."
                )
            return hoeffding_rate(1 / bounds["ratio"], bounds["n_rows"], n_assets)
        if not isinstance(rate, Real) or not 0 < rate < np.inf:
            raise ValueError(f"learning_rate = {rate!r}: give a positive number or 'theory'.")
        return float(rate)

    @property
    def weights_(self) -> Array:
        """Shares of the capital for the next day, shape (n_assets,)."""
        return np.exp(self._mix.log_weights())

    @property
    def wealth_(self) -> float:
        """What a capital of 1 has become."""
        return float(np.exp(-self._mix.loss))

    @property
    def cumulative_loss_(self) -> float:
        """-ln of the wealth."""
        return float(self._mix.loss)

    @property
    def expert_losses_(self) -> Array:
        """-ln of what each asset alone made, shape (n_assets,)."""
        return self._mix.losses.copy()

    @property
    def regret_bound_(self) -> float:
        """Bound on how far ln of the wealth is below that of any constant rebalanced portfolio, for this very run."""
        return self._mix.regret_bound()

    @property
    def t_(self) -> int:
        """Days."""
        return self._mix.n_rows
