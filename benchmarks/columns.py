"""Rows that are stored by columns: time over that of rows stored by rows, and the memory used.

    python benchmarks/columns.py [--rows 1000000] [--features 64] [--repeats 3]

`ImplicitGDRegressor` on arrays of both orders and types, and data frames of pandas and polars: the first call of
`partial_fit`, a later one, `predict`, and `fit` in order and shuffled, each the minimum of some repeats. Memory is the
most private memory (RssAnon) during a call in addition to that before it.
"""

import argparse
import time

import numpy as np
import pandas as pd
import polars as pl
from scale import Peak
from threadpoolctl import threadpool_limits

from onlinebregman import ImplicitGDRegressor


def containers(X):
    """Names, and functions that make the rows."""
    names = [f"x{j}" for j in range(X.shape[1])]
    by_columns = np.asfortranarray(X)
    columns = {name: by_columns[:, j] for j, name in enumerate(names)}
    yield "rows", lambda: X
    yield "rows, float32", lambda: X.astype(np.float32)
    yield "columns", lambda: by_columns
    yield "columns, float32", lambda: by_columns.astype(np.float32)
    yield "pandas, one block", lambda: pd.DataFrame(columns)
    yield "pandas, separate columns", lambda: pd.DataFrame(columns, copy=False)
    yield "pandas, of rows", lambda: pd.DataFrame(X, columns=names, copy=False)
    yield "polars", lambda: pl.DataFrame(columns)


def calls(rows, y):
    """Names, and pairs of what is prepared and what is measured."""
    one_epoch = {"max_iter": 1, "tol": None, "random_state": 0}
    begun = ImplicitGDRegressor().partial_fit(rows[:10], y[:10])
    yield "first", lambda: ImplicitGDRegressor().partial_fit(rows, y)
    yield "later", lambda: begun.partial_fit(rows, y)
    yield "predict", lambda: begun.predict(rows)
    yield "fit", lambda: ImplicitGDRegressor(shuffle=False, **one_epoch).fit(rows, y)
    yield "shuffled", lambda: ImplicitGDRegressor(**one_epoch).fit(rows, y)


def measured(call, repeats):
    """The least seconds, and bytes of memory."""
    seconds, most = np.inf, 0
    for _ in range(repeats):
        with Peak() as peak:
            start = time.thread_time()
            call()
            seconds = min(seconds, time.thread_time() - start)
        most = max(most, peak.most - peak.before)
    return seconds, most


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(options.rows, options.features))
    y = X @ rng.normal(size=options.features) + rng.normal(size=options.rows)
    by_rows = {}
    for name, make in containers(X):
        rows, cells = make(), []
        for call, work in calls(rows, y):
            seconds, memory = measured(work, options.repeats)
            ratio = seconds / by_rows.setdefault(call, seconds)
            cells.append(f"{call} {1e9 * seconds / options.rows:6.0f} ns {ratio:5.2f} x {memory / 2**20:5.0f} MB")
        print(f"{name:25s}{' | '.join(cells)}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
