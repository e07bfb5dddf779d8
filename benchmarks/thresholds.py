"""What indicators of bins cost: a row of the parameter-free learners with and without them, and of one member.

    python benchmarks/thresholds.py [--only members columns classes] [--repeats 40]

Blocks of 512 rows of normal columns are learned in turn by the learner with `thresholds=True` and with
`thresholds=False`; the least CPU time of each counts. One member alone learns single columns, as many as there are, or
so many pairs of 20 columns.
"""

import argparse
import time
from itertools import combinations

import numpy as np
from threadpoolctl import threadpool_limits

from onlinebregman import MirrorDescentRegressor, ParameterFreeClassifier, ParameterFreeRegressor

WARM, ROWS = 1024, 512
COLUMNS = (5, 10, 20, 30, 60, 100, 128)


def data(width, n_classes=0):
    """Rows, and the targets of a noisy line, or as many classes of them, about equally frequent."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(WARM + ROWS, width))
    y = X @ rng.normal(size=width) + 0.1 * rng.normal(size=len(X))
    return X, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes)) if n_classes else y


def microseconds(models, X, y, repeats, **first):
    """The least time of a row of each model, learned in turn."""
    for model in models:
        model.partial_fit(X[:WARM], y[:WARM], **first)
    times = np.empty((repeats, len(models)))
    for of_repeat in times:
        for k, model in enumerate(models):
            start = time.thread_time()
            model.partial_fit(X[WARM:], y[WARM:])
            of_repeat[k] = time.thread_time() - start
    return 1e6 * times.min(axis=0) / ROWS


def compared(width, n_classes, repeats):
    """A line of the table of a learner without and with indicators."""
    kind = ParameterFreeClassifier if n_classes else ParameterFreeRegressor
    first = {"classes": range(n_classes)} if n_classes else {}
    models = [kind(thresholds=thresholds) for thresholds in (False, True)]
    without, with_ = microseconds(models, *data(width, n_classes), repeats, **first)
    target = f"{n_classes} classes" if n_classes else "numbers"
    print(f"| {width} | {target} | {without:.1f} | {with_:.1f} | {with_ - without:.1f} | {with_ / without:.2f} |")


def members(repeats):
    print("\n| one member | 8 | 16 | 32 | 64 | 128 |\n| --- | --- | --- | --- | --- | --- |")
    sizes = (8, 16, 32, 64, 128)
    pairs = np.random.default_rng(0).permutation(list(combinations(range(20), 2)))
    for name, of in (
        ("single columns", [(size, "no_interactions") for size in sizes]),
        ("pairs of 20 columns", [(20, sorted(pairs[:size].tolist())) for size in sizes]),
    ):
        found = []
        for width, thresholds in of:
            model = MirrorDescentRegressor(divergence="normalized_adagrad", thresholds=thresholds)
            found += microseconds([model], *data(width), repeats).tolist()
        print(f"| {name} | " + " | ".join(f"{cost:.2f}" for cost in found) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=("members", "columns", "classes"))
    parser.add_argument("--repeats", type=int, default=40)
    options = parser.parse_args()
    wanted = options.only or ("members", "columns", "classes")
    with threadpool_limits(1):
        if "members" in wanted:
            members(options.repeats)
        if {"columns", "classes"} & set(wanted):
            print("\n| columns | target | without | with | more | ratio |\n| --- | --- | --- | --- | --- | --- |")
        for width in COLUMNS if "columns" in wanted else ():
            compared(width, 0, options.repeats)
            compared(width, 2, options.repeats)
        for n_classes in (3, 5) if "classes" in wanted else ():
            compared(20, n_classes, options.repeats)


if __name__ == "__main__":
    main()
