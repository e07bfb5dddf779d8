"""The wealth of portfolios, and the best of them in hindsight."""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import logsumexp, roots_legendre
from sklearn.utils import check_random_state

from .._online.docs import described_by
from .._online.validation import check_finite
from ._weights import Array


class Asset(NamedTuple):
    """One asset and the final value of a capital of 1 invested in it."""

    index: int  # type: ignore[assignment]  # tuple has a method of that name
    wealth: float


class Portfolio(NamedTuple):
    """Constant rebalancing weights, and the final value of a capital of 1 invested with them."""

    weights: Array
    wealth: float


def check_relatives(relatives: ArrayLike) -> Array:
    """Validated price relatives, shape (n_days, n_assets); an error names the first negative one."""
    x = np.ascontiguousarray(relatives, dtype=np.float64)
    if x.ndim != 2 or x.size == 0:
        raise ValueError(f"Price relatives must have one row per day and one column per asset; got shape {x.shape}.")
    check_finite(x, "relatives")
    if (x < 0).any():
        row, column = (int(i) for i in np.argwhere(x < 0)[0])
        raise ValueError(
            f"Negative values in data: the price relative {x[row, column]:g} (row {row}, column {column}); give the "
            "price at the end of the day divided by that at its beginning, not a return."
        )
    return x


def _check_weights(weights: ArrayLike, n_assets: int) -> Array:
    w = np.asarray(weights, dtype=np.float64)
    if w.shape[-1:] != (n_assets,) or not (w >= 0).all() or not np.allclose(w.sum(axis=-1), 1.0):
        raise ValueError(
            f"weights must be {n_assets} numbers >= 0 with sum 1, or one row of them for each day; got {weights!r}."
        )
    return w


def _log(x: Array) -> Array:
    """ln x, -inf for 0: sums of logarithms do not overflow or underflow, as products of x would."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def from_log(log_wealth: float) -> float:
    """The wealth with this logarithm; infinite or 0 if it over- or underflows."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(log_wealth))


def wealth(relatives: ArrayLike, weights: ArrayLike) -> float:
    """Final value of a capital of 1 that is rebalanced each day: the product of w.x.

    Parameters
    ----------
    relatives : array-like of shape (n_days, n_assets)
        Price relatives: price at the end of a day divided by that at its beginning.
    weights : array-like of shape (n_assets,) or (n_days, n_assets)
        Shares of the capital, constant or one row per day.

    Returns
    -------
    wealth : float
        The product over the days.

    Examples
    --------
    >>> from onlinebregman.experts import wealth
    >>> round(wealth([[1.0, 2.0], [1.0, 0.5]] * 3, [0.5, 0.5]), 6)  # neither asset gains anything
    1.423828
    """
    x = check_relatives(relatives)
    return from_log(_log((x * _check_weights(weights, x.shape[1])).sum(axis=1)).sum())


@described_by(wealth)
def best_asset(relatives: ArrayLike) -> Asset:
    """The asset that gained most.

    Parameters
    ----------
    {relatives}

    Returns
    -------
    best : Asset
        Its `index` and `wealth`.

    Examples
    --------
    >>> from onlinebregman.experts import best_asset
    >>> best_asset([[1.0, 2.0], [1.5, 1.0]])
    Asset(index=1, wealth=2.0)
    """
    logs = _log(check_relatives(relatives)).sum(axis=0)
    best = int(np.argmax(logs))
    return Asset(best, from_log(logs[best]))


@described_by(wealth)
def buy_and_hold(relatives: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Final value of a capital of 1 that is never rebalanced: the mean of the values of the assets.

    Parameters
    ----------
    {relatives}
    weights : array-like of shape (n_assets,), default=None
        Initial shares of the capital; equal by default.

    Returns
    -------
    wealth : float
        The weighted mean of the products.

    Examples
    --------
    >>> from onlinebregman.experts import buy_and_hold
    >>> buy_and_hold([[1.0, 2.0], [1.5, 1.0]])
    1.75
    """
    x = check_relatives(relatives)
    w = np.full(x.shape[1], 1 / x.shape[1]) if weights is None else _check_weights(weights, x.shape[1])
    return from_log(logsumexp(_log(x).sum(axis=0) + _log(w)))


@described_by(wealth)
def best_constant_portfolio(relatives: ArrayLike) -> Portfolio:
    """The constant rebalanced portfolio with the largest wealth in hindsight.

    ln of the wealth is concave in the weights; it is maximised by SciPy's SLSQP.

    Parameters
    ----------
    {relatives}

    Returns
    -------
    best : Portfolio
        Its `weights` and `wealth`.

    Raises
    ------
    ValueError
        If all assets lose all their value on some day.
    RuntimeError
        If the optimum is not found: the growth rate, ln(wealth) / n_days, is more than 1e-6 below its upper bound.

    References
    ----------
    .. [1] T. M. Cover, "Universal Portfolios", Mathematical Finance 1, 1991.

    Examples
    --------
    >>> from onlinebregman.experts import best_constant_portfolio
    >>> best = best_constant_portfolio([[1.0, 2.0], [1.0, 0.5]] * 3)
    >>> print(best.weights.round(4), round(best.wealth, 4))
    [0.5 0.5] 1.4238
    """
    x = check_relatives(relatives)
    n_days, n_assets = x.shape
    lost = ~x.any(axis=1)
    if lost.any():
        raise ValueError(f"All assets lose their whole value in row {int(np.argmax(lost))}; remove the day.")

    def mean_loss(w):
        gains = np.maximum(x @ w, 1e-300)  # SLSQP may try portfolios that lose everything on a day
        return -np.log(gains).mean(), -(x / gains[:, np.newaxis]).mean(axis=0)

    found = minimize(
        mean_loss,
        np.full(n_assets, 1 / n_assets),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_assets,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    w = np.clip(found.x, 0.0, None)
    w /= w.sum()
    # Kuhn-Tucker: sum x_k / (w.x) <= T for all k at the optimum; ln of the wealth is below it by at most the excess
    excess = float((x / (x @ w)[:, np.newaxis]).sum(axis=0).max() - n_days)
    if excess > 1e-6 * max(n_days, 1.0):
        raise RuntimeError(f"SLSQP stopped {excess:.2g} below the largest logarithm of the wealth: {found.message}")
    return Portfolio(w, wealth(x, w))


@described_by(wealth)
def universal_wealth(
    relatives: ArrayLike, *, n_points: int = 10_000, random_state: int | np.random.RandomState | None = 0
) -> float:
    """Wealth of Cover's universal portfolio: the mean over all constant rebalanced portfolios, uniformly weighted.

    Its logarithm is within (n_assets - 1) ln(n_days + 1) of that of the best one.

    Parameters
    ----------
    {relatives}
    n_points : int, default=10_000
        For more than two assets, the number of sampled portfolios. For two the integral is taken by Gauss-Legendre
        quadrature with 8 sqrt(n_days) + 64 points at most, exact up to rounding: the wealth is a polynomial in the
        weight whose peak is no narrower than about 1 / (2 sqrt(n_days)).
    random_state : int, RandomState instance or None, default=0
        Of the sample.

    Returns
    -------
    wealth : float
        The mean.

    References
    ----------
    .. [1] T. M. Cover, "Universal Portfolios", Mathematical Finance 1, 1991.

    Examples
    --------
    >>> from onlinebregman.experts import universal_wealth
    >>> round(universal_wealth([[1.0, 2.0], [1.0, 0.5]]), 6)  # the mean of (1 + b) (1 - b / 2)
    1.083333
    """
    x = check_relatives(relatives)
    if x.shape[1] == 2:
        nodes, shares = roots_legendre(min(len(x) // 2 + 1, 8 * isqrt(len(x)) + 64))
        points = np.column_stack([(1 + nodes) / 2, (1 - nodes) / 2])
        log_shares = np.log(shares / 2)
    else:
        points = check_random_state(random_state).dirichlet(np.ones(x.shape[1]), size=n_points)
        log_shares = np.full(n_points, -np.log(n_points))
    logs = np.zeros(len(points))
    for start in range(0, len(x), 256):  # in blocks of days, to limit memory
        logs += _log(x[start : start + 256] @ points.T).sum(axis=0)
    return from_log(logsumexp(logs + log_shares))
