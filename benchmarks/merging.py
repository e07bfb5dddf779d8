"""The cost of parallel learning: held-out losses after rounds of mixing S shards, compared with passes over all rows.

    python benchmarks/merging.py [--repeats 3]
    python benchmarks/merging.py --cost [--repeats 5]

Real sets, their rows shuffled, a quarter held out, columns and targets standardised by the others. The rows are cut
into S shards, whose models `onlinebregman.dask.DistributedOnline` merges, in this process: on a cluster the numbers are
the same, bit for bit. Losses are squared errors over the variance of the targets, log losses, and
errors of 5-NN in the metric; means over shuffles. Sets are read from the folder that ONLINEBREGMAN_DATA names.

`--cost`: the cost of a round in addition to the passes, with two worker processes on this machine, for shards of two
rows. The milliseconds of a round, and the CPU milliseconds of the process of client and scheduler, which depend less on
other load: the minimum of several fits. Also the data sent, by the workers and by that process, in units of the model.
"""

import argparse
import pickle
import platform
import time
import warnings

import dask
import dask.array as da
import distributed
import numpy as np
import sklearn
from scipy.optimize import nnls
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from traffic import sent

import onlinebregman
from onlinebregman import (
    EGRegressor,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
)
from onlinebregman.dask import DistributedOnline
from onlinebregman.datasets import load_dataset

SHARDS = (2, 4, 8, 16, 32, 64)
ROUNDS = (1, 2, 5)
TASKS = [
    ("california", ImplicitGDRegressor()),
    ("california", EGRegressor(weights="signed")),
    ("california", MirrorDescentRegressor(divergence="adagrad")),
    ("california", ForwardRegressor()),
    ("a9a_test", MirrorDescentClassifier()),
    ("a9a_test", MirrorDescentClassifier(divergence="adagrad")),
    ("spambase", MirrorDescentClassifier()),
    ("digits", LogDetMetricLearner(random_state=0)),
]


def rows(name, seed, regression):
    """(X, y, held-out X, held-out y)."""
    X, y = load_dataset(name, return_X_y=True)
    y = scale(y.astype(float)) if regression else y
    X, X_test, y, y_test = train_test_split(X.astype(float), y, test_size=0.25, random_state=seed)
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    deviation[deviation == 0] = 1.0
    return (X - mean) / deviation, y, (X_test - mean) / deviation, y_test


def loss(model, X, y, X_test, y_test):
    if hasattr(model, "get_mahalanobis_matrix"):
        neighbours = KNeighborsClassifier(5).fit(model.transform(X), y)
        return 1 - neighbours.score(model.transform(X_test), y_test)
    if is_classifier(model):
        return log_loss(y_test, model.predict_proba(X_test))
    return np.mean((model.predict(X_test) - y_test) ** 2) / np.var(y_test)


def losses(data, learner, n_rounds, n_shards=1, mixing="mean"):
    """The loss after a number of rounds, of one shard after passes; infinity if a shard cannot be learned."""
    X, y, X_test, y_test = data
    chunks = tuple(map(len, np.array_split(y, n_shards)))
    lazy = (da.from_array(values, chunks=(chunks, *values.shape[1:])) for values in (X, y))
    try:
        model = DistributedOnline(learner, n_rounds=n_rounds, mixing=mixing).fit(*lazy)
    except ValueError:
        return np.inf
    return loss(model.estimator_, X, y, X_test, y_test)


def name_of(learner):
    return repr(learner).replace("random_state=0", "").replace("()", "")


def cost_of(client, n_features, n_shards, repeats, more=10):
    """Of a round: seconds, those of CPU of this process, bytes that workers and this process send; bytes of a model."""
    X = da.random.default_rng(0).normal(size=(2 * n_shards, n_features), chunks=(2, n_features)).persist()
    y = da.random.default_rng(1).normal(size=2 * n_shards, chunks=2).persist()
    distributed.wait([X, y])

    def counts():
        return np.array([time.perf_counter(), time.process_time(), *sent(client)])

    fits = {1: [], 1 + more: []}
    for _ in range(repeats):
        for n_rounds, found in fits.items():
            before = counts()
            model = DistributedOnline(ImplicitGDRegressor(), n_rounds=n_rounds).fit(X, y)
            found.append(counts() - before)
    one, many = (np.min(found, axis=0) for found in fits.values())
    return (many - one) / more, len(pickle.dumps(model.estimator_))


def costs(repeats):
    """A table of costs, and the constants of the planes through them."""
    address, points = {"host": "127.0.0.1", "dashboard_address": None}, []
    print("\n| bytes of a model | shards | ms a round | of CPU | models sent by workers | by client and scheduler |")
    print("| --- | --- | --- | --- | --- | --- |")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **address) as cluster,
        distributed.Client(cluster) as client,
    ):
        for n_features, counts in ((10, (2, 4, 8, 16, 32)), (100_000, (2, 4, 8)), (1_000_000, (2, 4, 8))):
            for n_shards in counts:
                (seconds, cpu, workers, here), size = cost_of(client, n_features, n_shards, repeats)
                points.append((1.0, n_shards, n_shards * size, seconds, cpu))
                row = f"{size} | {n_shards} | {1000 * seconds:.1f} | {1000 * cpu:.1f}"
                print(f"| {row} | {workers / size:.1f} | {here / size:.1f} |", flush=True)
    *terms, seconds, cpu = np.array(points).T
    for name, spent in (("Time", seconds), ("CPU", cpu)):
        each, shard, byte = nnls(np.array(terms).T / spent[:, None], np.ones(len(spent)))[0]  # least relative errors
        constants = (
            f"{1e3 * each:.1f} ms a round, {1e3 * shard:.1f} ms a shard, {1e-6 / byte:.0f} MB of models a second"
        )
        print(f"\n{name}: {constants}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    repeats = options.repeats
    versions = [f"{module.__name__} {module.__version__}" for module in (onlinebregman, np, sklearn, dask)]
    print(f"Python {platform.python_version()}, {', '.join(versions)}; {repeats} repeats")
    warnings.simplefilter("ignore")
    if options.cost:
        return costs(repeats)
    for name, learner in TASKS:
        sets = [
            rows(name, seed, not is_classifier(learner) and "Metric" not in repr(learner)) for seed in range(repeats)
        ]

        def mean(sets=sets, learner=learner, **parameters):
            return np.mean([losses(data, learner, **parameters) for data in sets])

        adds_up = learner._adds_up
        rounds = (1,) if adds_up else ROUNDS
        passes = [mean(n_rounds=n) for n in rounds]
        print(f"\n`{name_of(learner)}` on {name}, {len(sets[0][1])} rows; passes over all rows: ", end="")
        print(", ".join(f"{value:.4f} after {n}" for n, value in zip(rounds, passes, strict=True)))
        print(f"\n| shards | {' | '.join(f'{mixing}, {n}' for mixing in ('mean', 'scaled') for n in rounds)} |")
        print(f"| --- |{' --- |' * 2 * len(rounds)}")
        for n_shards in SHARDS:
            found = [
                mean(n_rounds=n, n_shards=n_shards, mixing=mixing) for mixing in ("mean", "scaled") for n in rounds
            ]
            print(f"| {n_shards} | {' | '.join(f'{value:.4f}' for value in found)} |", flush=True)


if __name__ == "__main__":
    main()
