"""Wealth of portfolios on the 36 stocks of the New York Stock Exchange, 1962 to 1984.

5651 days, one row a day of price relatives; all 36 stocks, and the pair of Iroquois Brands and Kin Ark. EG at constant
rates and at the rate of its theorem; the universal portfolio of two stocks exactly and on Cover's grid of 21, of 36 by
2000 samples (seed 0).
"""

from time import perf_counter

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import logsumexp, roots_legendre

from onlinebregman import ExpertMixtureClassifier
from onlinebregman.datasets import load_dataset

from ._experiment import COLORS, Claim, Tables

PAPER, PLACE = "Portfolios", "Cover's and Helmbold's examples"
RUNS, FULL = 1, 1
OPEN = (
    "which of the columns are the two stocks: those that gain 8.92 and 4.13, as the pair of Cover does; for which "
    "stocks and at which rate EG should be better (0.05 here, and the pair first)."
)
WHY = (
    "On all 36 stocks EG at such rates hardly deviates from equal weights rebalanced each day (27.08); on the "
    "pair its wealth decreases as the rate increases, and equal weights are close to the best ones."
)
IROQUOIS_AND_KIN_ARK = ("T", "W")
PRINTED = {  # Cover 1991
    ("all 36 stocks", "best stock"): 54.14,
    ("all 36 stocks", "buy and hold"): 14.50,
    ("Iroquois and Kin Ark", "best stock"): 8.92,
    ("Iroquois and Kin Ark", "best of 21 constant weights"): 73.62,
    ("Iroquois and Kin Ark", "mean of 21 constant weights"): 38.67,
}
RATE = "EG, rate 0.05"


def wealth(x, weights):
    """Final value of a capital of 1 that is rebalanced each day."""
    return np.exp(np.log(x @ weights).sum())


def best_constant_weights(x):
    """-ln of the wealth is convex in the weights."""
    n_assets = x.shape[1]
    found = minimize(
        lambda w: (-np.log(x @ w).mean(), -(x / (x @ w)[:, np.newaxis]).mean(axis=0)),
        np.full(n_assets, 1 / n_assets),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_assets,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return found.x / found.x.sum()


def universal_wealth(x):
    """The mean over all constant weights, of two stocks by quadrature."""
    if x.shape[1] == 2:
        nodes, shares = roots_legendre(600)
        points, shares = np.column_stack([(1 + nodes) / 2, (1 - nodes) / 2]), shares / 2
    else:
        points, shares = np.random.RandomState(0).dirichlet(np.ones(x.shape[1]), size=2000), 1 / 2000
    return np.exp(logsumexp(sum(np.log(day @ points.T) for day in x), b=shares))


def eg_gains(x, rate):
    """w.x of each day: price relatives divided by the largest of the day are probabilities of a label that comes."""
    model = ExpertMixtureClassifier(strategy="eg", learning_rate=rate, history=len(x))
    model.partial_fit(x / x.max(axis=1, keepdims=True), np.ones(len(x), int), classes=[0, 1])
    return (model.weights_history_ * x).sum(axis=1)


def investments(x):
    """(name, wealth) of each way to invest."""
    n_days, n_assets = x.shape
    yield "best stock", x.prod(axis=0).max()
    yield "buy and hold", x.prod(axis=0).mean()
    yield "equal weights, restored each day", wealth(x, np.full(n_assets, 1 / n_assets))
    yield "best constant weights in hindsight", wealth(x, best_constant_weights(x))
    if n_assets == 2:
        on_grid = [wealth(x, [b, 1 - b]) for b in np.linspace(0, 1, 21)]
        yield "best of 21 constant weights", max(on_grid)
        yield "mean of 21 constant weights", np.mean(on_grid)
    yield "universal" + (", 2000 samples" if n_assets > 2 else ""), universal_wealth(x)
    for rate in (0.01, 0.05, 0.1, 0.5):
        yield f"EG, rate {rate}", eg_gains(x, rate).prod()
    rate = (x.min(axis=1) / x.max(axis=1)).min() * np.sqrt(8 * np.log(n_assets) / n_days)
    yield "EG, rate of the theorem", eg_gains(x, rate).prod()


def run(runs: int, jobs: int) -> Tables:
    data = load_dataset("portfolio_nyse_o")
    pair = [data.feature_names.index(name) for name in IROQUOIS_AND_KIN_ARK]
    rows = []
    for stocks, x in ("all 36 stocks", data.data), ("Iroquois and Kin Ark", data.data[:, pair]):
        start = perf_counter()
        for name, value in investments(x):
            rows.append((stocks, name, value, perf_counter() - start))
            start = perf_counter()
    curves, x = [], data.data[:, pair]
    gains = {f"EG, rate {rate}": eg_gains(x, rate) for rate in (0.05, 0.5)}
    gains |= {"Iroquois": x[:, 0], "Kin Ark": x[:, 1], "best constant": x @ best_constant_weights(x)}
    for name, gain in gains.items():
        curves += [(name, day, gain[:day].prod()) for day in range(10, len(x) + 1, 10)]
    return {
        "summary": pd.DataFrame(rows, columns=["stocks", "portfolio", "wealth", "seconds"]),
        "curves": pd.DataFrame(curves, columns=["portfolio", "day", "wealth"]),
    }


def verdict(tables: Tables) -> list[Claim]:
    found = tables["summary"].set_index(["stocks", "portfolio"]).wealth
    claims = [
        Claim(
            f"{stocks}, {name}: {printed:.2f}",
            f"{found[stocks, name]:.2f}",
            bool(abs(found[stocks, name] - printed) < 0.006),
        )
        for (stocks, name), printed in PRINTED.items()
    ]
    for stocks in ("Iroquois and Kin Ark", "all 36 stocks"):
        eg, best = found[stocks, RATE], found[stocks, "best stock"]
        universal = found[stocks, "universal" + (", 2000 samples" if stocks.startswith("all") else "")]
        claims.append(
            Claim(
                f"{stocks}: EG outperforms the best stock and the universal portfolio",
                f"EG {eg:.2f} (rate 0.05), best stock {best:.2f}, universal {universal:.2f}",
                bool(eg > max(best, universal)),
            )
        )
    return claims


def draw(figure, tables: Tables) -> None:
    ax = figure.subplots()
    curves = tables["curves"]
    for (name, line), color in zip(curves.groupby("portfolio", sort=False), COLORS, strict=False):
        ax.semilogy(line.day, line.wealth, color=color, label=name, linewidth=1)
    for (stocks, name), value in PRINTED.items():
        if stocks.startswith("Iroquois"):
            ax.axhline(value, color="#5A5A5A", linestyle=":", linewidth=1)
            ax.annotate(f"printed: {name}, {value}", (0, value), fontsize=8, va="bottom")
    ax.set(title="Iroquois Brands and Kin Ark", xlabel="day", ylabel="wealth")
    ax.legend(frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
