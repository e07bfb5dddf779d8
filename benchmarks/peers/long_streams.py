"""Errors by the number of rows, from 10^3 to 10^6: our parameter-free learners beside a Hoeffding tree and a forest.

    python benchmarks/peers/long_streams.py [--rows 1000000] [--only Mv] [--learners river] [--minutes 20]
                                            [--results FILE] [--figure docs/_static/errors.png]

Streams of `generators.py` that do not drift, in one pass, each row predicted before it is learned, one row a call, with
default parameters; river's regressors follow its `StandardScaler`. Errors in %, or mean squared errors of targets of
mean 0 and variance 1 over the first 10^5 rows, are of all rows so far. A learner stops after so many minutes of the
processor, and the forest at 10^5 rows. `--seed` is added to the seeds of the streams.

--results is a file of results: those in it are not measured again.
"""

import argparse
import time
import warnings
from itertools import islice
from pathlib import Path

import _tables as tables
import generators
import numpy as np
import river
from _results import Results
from generators import LABELS, NUMBERS, OURS, Unconverted, scaled, table_of
from river import tree

import onlinebregman

STREAMS = {"RandomTree": 3, "Agrawal": 2, "RandomRBF": 4, "Mv": 0}  # name -> number of classes
AT = np.unique(np.round(np.geomspace(1e3, 1e6, 25)).astype(int))
SHOWN = (1000, 10_000, 12_000, 60_000, 100_000, 1_000_000)
KEPT = {*AT.tolist(), *SHOWN}  # rows after which errors are kept
FOREST_ENDS = 100_000
PIECE = 100_000  # rows that are made at a time

CLASSIFIERS = {
    OURS: generators.CLASSIFIERS[OURS],
    "Hoeffding tree": lambda: Unconverted(tree.HoeffdingTreeClassifier),
    "ARF": generators.CLASSIFIERS["river, ARF"],
}
REGRESSORS = {
    OURS: generators.REGRESSORS[OURS],
    "Hoeffding tree": lambda: scaled(tree.HoeffdingTreeRegressor),
    "ARF": generators.REGRESSORS["river, ARF"],
}


class Pieces:
    """What `table_of` takes rows from: those that follow in a stream."""

    def __init__(self, stream):
        self.rows = iter(stream)

    def take(self, n):
        return islice(self.rows, n)


def rows_of(name, n, seed, arrays):
    """Rows of a stream, as arrays of one row or as dictionaries, and their targets."""
    stream, shift, size = Pieces({**LABELS, **NUMBERS}[name](seed, n)), 0.0, 1.0
    for start in range(0, n, PIECE):
        X, dictionaries, y = table_of(stream, min(PIECE, n))
        if name in NUMBERS:
            if start == 0:
                shift, size = y.mean(), y.std()
            y = (y - shift) / size
        yield from zip(X[:, np.newaxis] if arrays else dictionaries, y[:, np.newaxis], strict=True)


def measured(name, n, seed, learner, minutes):
    """Errors over the first rows, up to each number of `AT` that was reached, and the microseconds of a row."""
    n_classes = STREAMS[name]
    model = (CLASSIFIERS if n_classes else REGRESSORS)[learner]()
    given, total, spent = {"classes": np.arange(n_classes)} if n_classes else {}, 0.0, 0.0
    errors = []
    for i, (row, y) in enumerate(rows_of(name, n, seed, learner == OURS)):
        start = time.thread_time()
        said = model.predict(row)[0] if i > 0 else None
        model.partial_fit(row, y, **(given if i == 0 else {}))
        spent += time.thread_time() - start
        if n_classes:
            total += 100.0 * (said != y[0])
        else:
            total += ((said or 0.0) - y[0]) ** 2
        if i + 1 in KEPT:
            errors.append((i + 1, total / (i + 1)))
        if spent > 60 * minutes:
            break
    return {"errors": errors, "us": 1e6 * spent / (i + 1)}


def draw(path, found):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(4.2 * len(found), 3.8), layout="constrained")
    for panel, (name, of_learner) in zip(np.ravel(axes), found.items(), strict=True):
        for learner, result in of_learner.items():
            style = {"linewidth": 2.5} if learner == OURS else {"linestyle": "--"}
            panel.plot(*np.transpose(result["errors"]), label=learner, **style)
        panel.set(xscale="log", yscale="log", title=name, xlabel="rows")
        panel.set(ylabel="errors in %" if STREAMS[name] else "squared error / variance")
        panel.grid(alpha=0.3, which="both")
    np.ravel(axes)[-1].legend()
    figure.savefig(path, dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[""], help="how the names of the streams begin")
    parser.add_argument("--learners", nargs="*", default=[""], help="how the names of the learners begin")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--figure", help="file to draw the errors to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"onlinebregman {onlinebregman.__version__}, river {river.__version__}, NumPy {np.__version__}")
    known, found = Results(options.results), {}
    for name in STREAMS:
        for learner in CLASSIFIERS:
            n = min(options.rows, FOREST_ENDS) if learner == "ARF" else options.rows
            key = f"{name}; {learner}; {n} rows; seed {options.seed}"
            wanted = name.startswith(tuple(options.only)) and learner.startswith(tuple(options.learners))
            if wanted and key not in known:
                known.keep(key, measured(name, n, options.seed, learner, options.minutes))
            if key in known:
                found.setdefault(name, {})[learner] = known[key]
    tables.head("errors in %, or squared errors / variance, of the first rows", *(f"{n:,}" for n in SHOWN), "us a row")
    for name, of_learner in found.items():
        for learner, result in of_learner.items():
            errors = dict(map(tuple, result["errors"]))
            form = "{:.2f}" if STREAMS[name] else "{:.4f}"
            shown = [form.format(errors[n]) if n in errors else "" for n in SHOWN]
            tables.row(f"{name}, {learner}", *shown, f"{result['us']:.0f}")
    if options.figure:
        draw(options.figure, found)


if __name__ == "__main__":
    main()
