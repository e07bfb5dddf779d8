"""Wealth of portfolios on the 36 stocks of the New York Stock Exchange, 1962-1984 (Cover 1991; Helmbold et al. 1998).

    ONLINEBREGMAN_DATA=FOLDER python benchmarks/papers/portfolios.py

FOLDER holds portfolio_nyse_o.csv.gz: one row a day, one column a stock, price relatives. Prints a table in Markdown.
"""

import argparse
import platform
from time import perf_counter

import numpy as np
import scipy

import onlinebregman
from onlinebregman import EGPortfolio
from onlinebregman.datasets import load_dataset
from onlinebregman.experts import (
    best_asset,
    best_constant_portfolio,
    buy_and_hold,
    universal_wealth,
    wealth,
)

IROQUOIS_AND_KIN_ARK = ("T", "W")  # the columns that gain 8.92 and 4.13, as Cover's pair does


def results(x):
    """(name, wealth) of each way to invest."""
    n_days, n_assets = x.shape
    yield "best stock", best_asset(x).wealth
    yield "buy and hold", buy_and_hold(x)
    yield "equal weights, restored each day", wealth(x, np.full(n_assets, 1 / n_assets))
    yield "best constant weights in hindsight", best_constant_portfolio(x).wealth
    if n_assets == 2:
        on_grid = [wealth(x, [b, 1 - b]) for b in np.linspace(0, 1, 21)]
        yield "best of 21 constant weights (Cover: 73.62)", max(on_grid)
        yield "mean of 21 constant weights (Cover: 38.67)", np.mean(on_grid)
    yield "universal" + (", 2000 samples" if n_assets > 2 else ""), universal_wealth(x, n_points=2000)
    for rate in (0.01, 0.05, 0.1, 0.5):
        yield f"EG, rate {rate}", EGPortfolio(rate).fit(x).wealth_
    bounds = {"ratio": (x.min(axis=1) / x.max(axis=1)).min(), "n_rows": n_days}
    yield "EG, rate of the theorem", EGPortfolio("theory", data_bounds=bounds).fit(x).wealth_


def print_table(x):
    print("| portfolio | wealth | seconds |\n|---|---|---|")
    start = perf_counter()
    for name, value in results(x):
        print(f"| {name} | {value:.2f} | {perf_counter() - start:.2f} |", flush=True)
        start = perf_counter()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    print(
        f"onlinebregman {onlinebregman.__version__}, SciPy {scipy.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}\n"
    )
    data = load_dataset("portfolio_nyse_o")
    x = data.data
    print(f"All {x.shape[1]} stocks, {x.shape[0]} days (Cover: best stock 54.14, buy and hold 14.50)\n")
    print_table(x)
    print("\nIroquois Brands and Kin Ark\n")
    print_table(x[:, [data.feature_names.index(name) for name in IROQUOIS_AND_KIN_ARK]])


if __name__ == "__main__":
    main()
