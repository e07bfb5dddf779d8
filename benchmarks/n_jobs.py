"""The gain of `n_jobs`: time of a block with one thread over that with several.

    python benchmarks/n_jobs.py [--jobs 2] [--rows 4096] [--repeats 15]

The default members of the parameter-free mixtures on rows of 20 and 100 columns, one-vs-rest classifiers of 10 and 40
classes, regressions of as many outputs, and 16 learning rates. Medians of repeats: microseconds a row with one thread
and with several, the ratio of a run to the next one, with several threads, and that of their CPU times, several over
one. Minima would compare a core that had both the clock and the cache for itself with two that had not.
"""

import argparse
import time

import numpy as np
from sklearn.base import is_classifier

from onlinebregman import (
    LearningRatePath,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)


def learned(kind, X, y, n_jobs):
    """Seconds, CPU seconds, and the predictions afterwards."""
    model = kind(n_jobs=n_jobs)
    model.partial_fit(X[:2], y[:2], **({"classes": range(int(y.max()) + 1)} if is_classifier(model) else {}))
    cpu, wall = time.process_time(), time.perf_counter()
    model.partial_fit(X[2:], y[2:])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall, cpu, model.predict(X[:100])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    print(f"{'':28}{'columns':>8}{'one':>8}{'several':>9}{'ratio':>7}{'CPU':>7}")
    for d in (20, 100):
        X = rng.normal(size=(options.rows + 2, d))
        numbers = X @ rng.normal(size=d) + rng.normal(size=len(X))
        tasks = [
            (ParameterFreeClassifier, (numbers > 0).astype(int)),
            (ParameterFreeRegressor, numbers),
            (LearningRatePath, numbers),
        ]
        for n in (10, 40):
            scores = X @ rng.normal(size=(d, n))
            tasks += [(MirrorDescentClassifier, scores.argmax(axis=1)), (MirrorDescentRegressor, scores)]
        for kind, y in tasks:
            runs = {n: [] for n in (1, options.jobs)}
            for _ in range(options.repeats):
                for n, found in runs.items():
                    found.append(learned(kind, X, y, n))
                assert (runs[1][-1][2] == runs[options.jobs][-1][2]).all()
            one, several = (np.array([run[:2] for run in found]) for found in runs.values())
            gain, cpu = np.median(one / several, axis=0)
            one, several = (1e6 * np.median(found[:, 0]) / options.rows for found in (one, several))
            several_models = {MirrorDescentClassifier: y.max() + 1, MirrorDescentRegressor: y[0].size}
            name = kind.__name__ + (f", {several_models[kind]:.0f}" if kind in several_models else "")
            print(f"{name:28}{d:8}{one:8.1f}{several:9.1f}{gain:7.2f}{1 / cpu:7.2f}", flush=True)


if __name__ == "__main__":
    main()
