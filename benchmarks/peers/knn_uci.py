"""k-NN error in learned metrics compared with alternatives, on UCI data.

    python benchmarks/peers/knn_uci.py [--splits 10] [--sets iris wine ...] [--methods Euclid ...] [--results FILE]
                                       [--metric-learn PYTHON] [--limit SECONDS]

For each data set, raw and standardised, and each of ten stratified 70/30 splits: learn a metric on the training part,
classify the rest by 5-NN and 4-NN. Printed are the mean errors in per cent, the mean rank over all columns, and the
mean time of a fit; BLAS on one thread. All hyper-parameters are defaults, except that of "LogDet, prior chosen": the
prior that does best on a part of the training rows held out. "nothing to tune" is ParameterFreeMetricLearner, "voting"
the mean of the neighbours' votes in several metrics (MetricKNeighborsClassifier, metric_learner="auto"). ITML is the
closed form of its authors with bounds on squared distances. Text columns are one-hot encoded, missing values imputed,
classes of fewer than four rows omitted. Data sets that scikit-learn does not include are read from the folder that
ONLINEBREGMAN_DATA names, if it is set.

PYTHON is an interpreter that has metric-learn, which as of 0.7 needs scikit-learn < 1.5: its LMNN and ITML are run with
their defaults, except for the neighbours of LMNN if a class has too few rows. Without it they are omitted. If a fit
fails or takes more processor time than --limit, the Euclidean metric replaces it, and those of all other splits
of that shape; a message says so.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
from _tables import head, row, table
from scipy.stats import rankdata
from sklearn.covariance import empirical_covariance
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import onlinebregman
from onlinebregman import (
    DefiniteBoostMetricLearner,
    LogDetMetricLearner,
    MetricKNeighborsClassifier,
    ParameterFreeMetricLearner,
)
from onlinebregman.datasets import load_balance_scale, load_dataset

BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "wdbc": load_breast_cancer,
    "digits": load_digits,
    "balance": load_balance_scale,
}
FILES = ("ionosphere", "sonar", "glass", "pima", "zoo", "yeast", "soybean_large", "car", "audiology")


def load(name):
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        bunch = load_dataset(name)
        numbers = [i for i in range(bunch.data.shape[1]) if i not in bunch.categorical_features]
        parts = []
        if numbers:
            parts.append(SimpleImputer().fit_transform(bunch.data[:, numbers].astype(float)))
        if bunch.categorical_features:
            words = SimpleImputer(strategy="most_frequent").fit_transform(bunch.data[:, bunch.categorical_features])
            parts.append(OneHotEncoder(sparse_output=False).fit_transform(words))
        X, y = np.hstack(parts), bunch.target
    codes = np.unique(y, return_inverse=True)[1]
    enough = np.bincount(codes)[codes] >= 4
    return np.ascontiguousarray(X[enough]), codes[enough]


# --- methods: the map L of a metric L'L from training rows, or a classifier with its own metrics ----------------------


def factor(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))).T


def inverse_covariance(X, y, seed):
    return factor(np.linalg.pinv(empirical_covariance(X), hermitian=True))


def nca(X, y, seed):
    return NeighborhoodComponentsAnalysis(random_state=seed).fit(X, y).components_


def itml(X, y, seed, gamma=1.0, max_sweeps=20, tol=1e-3):
    """Davis, Kulis, Jain, Sra, Dhillon (ICML 2007): cyclic projections, 20 c^2 pairs of each kind, at most 500."""
    rng = np.random.default_rng(seed)
    n = min(20 * len(np.unique(y)) ** 2, 500)
    a, b = rng.integers(len(X), size=(2, 100 * n))
    squared = np.concatenate(
        [((X[i] - X[j]) ** 2).sum(axis=1) for i, j in zip(np.split(a, 100), np.split(b, 100), strict=True)]
    )
    near, far = np.percentile(squared[:1000], [5, 95])
    same, other = (np.flatnonzero((squared > 0) & kind)[:n] for kind in (y[a] == y[b], y[a] != y[b]))
    chosen = np.r_[same, other]
    Z = X[a[chosen]] - X[b[chosen]]
    signs = np.r_[np.ones(len(same)), -np.ones(len(other))]
    bounds, duals = np.r_[np.full(len(same), max(near, 1e-9)), np.full(len(other), far)], np.zeros(len(chosen))
    W = np.eye(X.shape[1])
    for _ in range(max_sweeps):
        before = duals.copy()
        for i, (z, sign) in enumerate(zip(Z, signs, strict=True)):
            v = W @ z
            p = z @ v
            if p <= 0:
                continue
            alpha = min(duals[i], sign * gamma / (gamma + 1) * (1 / p - 1 / bounds[i]))
            duals[i] -= alpha
            W += sign * alpha / (1 - sign * alpha * p) * np.outer(v, v)
            bounds[i] = 1 / (1 / bounds[i] + sign * alpha / gamma)
        if np.abs(duals - before).sum() < tol * (np.abs(duals).sum() + np.abs(before).sum()):
            break
    return factor((W + W.T) / 2)


METRIC_LEARN = """
import resource, sys, time, warnings
import numpy as np
from metric_learn import ITML_Supervised, LMNN
warnings.simplefilter("ignore")
name, path, seed, limit = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
data = np.load(path)
few = np.unique(data["y"], return_counts=True)[1].min() - 1
more = {"n_neighbors": min(3, max(few, 1))} if name == "LMNN" else {}
start = time.thread_time()
model = {"LMNN": LMNN, "ITML": ITML_Supervised}[name](random_state=int(seed), **more).fit(data["X"], data["y"])
np.savez(path, components=model.components_, seconds=time.thread_time() - start)
"""


def metric_learn(python, name, limit):
    """A method of metric-learn, in another interpreter; the Euclidean metric if it fails or takes too long."""
    failed = set()  # shapes

    def method(X, y, seed):
        method.seconds = 0.0
        if X.shape in failed:
            return np.eye(X.shape[1])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.npz"
            np.savez(path, X=X, y=y)
            command = [python, "-c", METRIC_LEARN, name, path, str(seed), str(limit)]
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            if subprocess.run(command, env=environment, stderr=subprocess.PIPE).returncode:
                print(f"{name} failed on {X.shape[0]} x {X.shape[1]}, or took too long", file=sys.stderr)
                failed.add(X.shape)
                return np.eye(X.shape[1])
            found = np.load(path)
            method.seconds = float(found["seconds"])
            return found["components"]

    return method


def learner(make, **parameters):
    return lambda X, y, seed: make(random_state=seed, **parameters).fit(X, y).components_


def prior_chosen(X, y, seed):
    model = Pipeline([("metric", LogDetMetricLearner(random_state=seed)), ("knn", KNeighborsClassifier(5))])
    grid = {"metric__prior": ["identity", "variance", "covariance"]}
    held_out = StratifiedShuffleSplit(1, test_size=0.3, random_state=seed)
    return GridSearchCV(model, grid, cv=held_out).fit(X, y).best_estimator_["metric"].components_


def voting(X, y, seed):
    return MetricKNeighborsClassifier(metric_learner="auto", window_size=None, random_state=seed).fit(X, y)


METHODS = {
    "Euclid": lambda X, y, seed: np.eye(X.shape[1]),
    "inverse covariance": inverse_covariance,
    "NCA (scikit-learn)": nca,
    "ITML (NumPy)": itml,
    "LogDet, random pairs": learner(LogDetMetricLearner, sampling="random"),
    "LogDet, neighbors": learner(LogDetMetricLearner, sampling="neighbors"),
    "LogDet, prior chosen": prior_chosen,
    "DefiniteBoost": learner(DefiniteBoostMetricLearner),
}
for name in ("VonNeumann", "Frobenius"):
    if hasattr(onlinebregman, f"{name}MetricLearner"):
        METHODS[name] = learner(getattr(onlinebregman, f"{name}MetricLearner"))
METHODS["nothing to tune"] = learner(ParameterFreeMetricLearner)
METHODS["voting"] = voting


SUMMARY = ("mean", "rank", "s a fit")


# --- the tables -------------------------------------------------------------------------------------------------------


def predicted(made, k, rows, y, queries):
    """Predictions of k-NN for the queries, with the result of a method."""
    if hasattr(made, "predict"):
        return made.set_params(n_neighbors=k).predict(queries)
    return KNeighborsClassifier(k).fit(rows @ made.T, y).predict(queries @ made.T)


def errors(method, X, y, n_splits, standardised):
    """Errors in per cent of 5-NN and 4-NN, and the seconds of a fit, means over the splits."""
    found = []
    for seed, (train, test) in enumerate(StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=0).split(X, y)):
        rows, queries = X[train], X[test]
        if standardised:
            scaler = StandardScaler().fit(rows)
            rows, queries = scaler.transform(rows), scaler.transform(queries)
        start = time.thread_time()
        made = method(rows, y[train], seed)
        seconds = getattr(method, "seconds", time.thread_time() - start)
        wrong = [100 * np.mean(predicted(made, k, rows, y[train], queries) != y[test]) for k in (5, 4)]
        found.append([*wrong, seconds])
    return np.mean(found, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sets", nargs="+", default=[*BUNDLED, *(FILES if "ONLINEBREGMAN_DATA" in os.environ else ())])
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help=", ".join(METHODS))
    parser.add_argument("--metric-learn", metavar="PYTHON", help="an interpreter that has metric-learn")
    parser.add_argument("--limit", type=int, default=600, metavar="SECONDS", help="of a fit of metric-learn")
    parser.add_argument("--results", type=Path, help="a file of results: those in it are not measured again")
    options = parser.parse_args()
    methods = METHODS | {
        f"{name} (metric-learn)": metric_learn(options.metric_learn, name, options.limit)
        for name in (("LMNN", "ITML") if options.metric_learn else ())
    }
    options.methods = options.methods or list(methods)
    if unknown := set(options.methods) - set(methods):
        parser.error(f"no methods {sorted(unknown)}; there are {list(methods)}")
    print(
        f"onlinebregman {onlinebregman.__version__}, scikit-learn {sklearn.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}, {options.splits} splits"
    )
    data = {name: load(name) for name in options.sets}
    known = json.loads(options.results.read_text()) if options.results and options.results.exists() else {}
    results = {}  # (standardised, method) -> array of (set, [5-NN, 4-NN, seconds])
    for standardised in (True, False):
        for method in options.methods:
            rows = []
            for name, (X, y) in data.items():
                key = f"{method}, {name}, {'standardised' if standardised else 'raw'}, {options.splits} splits"
                if key not in known:
                    known[key] = errors(methods[method], X, y, options.splits, standardised).tolist()
                    print(f"{key}: 5-NN error {known[key][0]:.2f} %", file=sys.stderr, flush=True)
                    if options.results:
                        options.results.write_text(json.dumps(known, indent=1))
                rows.append(known[key])
            results[standardised, method] = np.array(rows)
    everything = []
    for standardised in (False, True):
        for column, k in enumerate((5, 4)):
            found = np.array([results[standardised, method][:, column] for method in options.methods])
            ranks = rankdata(found.round(6), axis=0)
            everything.append(ranks)
            head(f"{k}-NN error %, {'standardised' if standardised else 'raw'}", *data, *SUMMARY, width=28)
            for method, errors_of, rank in zip(options.methods, found, ranks, strict=True):
                seconds = results[standardised, method][:, 2].mean()
                summary = f"{errors_of.mean():.2f}", f"{rank.mean():.2f}", f"{seconds:.3f}"
                row(method, *(f"{value:.1f}" for value in errors_of), *summary, width=28)
    ranks = np.concatenate(everything, axis=1).mean(axis=1)
    table(
        "mean rank over all columns", ["rank"], dict(zip(options.methods, ranks[:, np.newaxis], strict=True)), "{:.2f}"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        main()
