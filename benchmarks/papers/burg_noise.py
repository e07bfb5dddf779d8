"""Burg entropy beside squared Euclidean and relative entropy as targets get noisier (JKD07, section 5, figures 1 to 4).

    python benchmarks/papers/burg_noise.py [--runs 5]

Rows x and the weights u on the positive unit sphere, n = 100, T = 10 000, y = (u.x) (1 + noise Z), Z uniform between
-0.5 and 0.5. Prints tables in Markdown: the total squared loss of one pass, each row predicted before it is learned,
and the mean squared loss of the last tenth of it beyond that of u, times 10^4; means over the runs. It does not tell
its rates for the other two, so each of them, and the implicit Burg step, has the constant rate of the smallest mean
total in a grid. Of the sum of the weights the paper knows no more than w <= 1, so m = n; the comparator needs sum u.
"""

import argparse
import platform

import numpy as np

import onlinebregman
from onlinebregman import BurgRegressor, EGRegressor, ImplicitGDRegressor
from onlinebregman.datasets import make_positive_sphere

NOISE = (0.0, 0.1, 0.2, 0.3)
RATES = 2.0 ** np.arange(-4, 9)
PLAIN = {"learning_rate": "constant", "fit_intercept": False}


def gradient(sum_bound=None):
    """Algorithm 1, limited by nothing but itself."""
    return BurgRegressor(update="gradient", eta0=1e9, sum_bound=sum_bound, **PLAIN)


def squared_losses(model, X, y):
    """Of each row, before it is learned."""
    losses = np.empty(len(y))
    before = 0.0
    for i in range(len(y)):
        after = 2 * model.partial_fit(X[i : i + 1], y[i : i + 1]).cumulative_loss_
        losses[i], before = after - before, after
    return losses


def tuned(make, streams):
    """The model of the rate in the grid with the smallest mean total loss, and its name's end."""

    def total(rate):
        try:
            return sum(make(rate).partial_fit(X, y).cumulative_loss_ for X, y, _ in streams)
        except ValueError:  # the explicit step left the positive weights, or diverged
            return np.inf

    best = min(RATES, key=total)
    return lambda u: make(best), f"eta {best:g}"


def contenders(streams):
    """(name, a function of u that makes a model, its rate) of each line of the table."""
    yield "Burg gradient, m = n (as printed)", lambda u: gradient(sum_bound=len(u)), "adaptive"
    yield "Burg gradient, m = sum u", lambda u: gradient(sum_bound=u.sum()), "adaptive"
    yield "Burg gradient, running m (default)", lambda u: gradient(), "adaptive"
    yield "Burg, implicit", *tuned(lambda rate: BurgRegressor(eta0=rate, **PLAIN), streams)
    for update in ("explicit", "implicit"):
        make = lambda rate, update=update: ImplicitGDRegressor(eta0=rate, update=update, **PLAIN)  # noqa: E731
        yield f"squared Euclidean, {update}", *tuned(make, streams)
    for update in ("explicit", "implicit"):
        make = lambda rate, update=update: EGRegressor(weights="positive", eta0=rate, update=update, **PLAIN)  # noqa: E731
        yield f"relative entropy, {update}", *tuned(make, streams)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print(
        f"onlinebregman {onlinebregman.__version__}, NumPy {np.__version__}, Python {platform.python_version()}; "
        f"means of {runs} runs"
    )
    for noise in NOISE:
        streams = [make_positive_sphere(10_000, 100, noise=noise, coef=True, random_state=seed) for seed in range(runs)]
        streams = [(np.ascontiguousarray(X), y, u) for X, y, u in streams]
        floor = np.array([(X @ u - y) ** 2 for X, y, u in streams])
        print(f"\nnoise {noise:g}: u itself loses {floor.sum(axis=1).mean():.1f}\n")
        print("| | rate | total loss | last tenth, excess x 10^4 |\n|---|---|---|---|")
        for name, make, rate in contenders(streams):
            losses = np.array([squared_losses(make(u), X, y) for X, y, u in streams])
            excess = (losses - floor)[:, -1000:].mean() * 1e4
            print(f"| {name} | {rate} | {losses.sum(axis=1).mean():.1f} | {excess:.2f} |", flush=True)


if __name__ == "__main__":
    main()
