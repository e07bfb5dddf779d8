"""One pass over real streams, each row predicted before it is learned: our learners compared with other packages.

    python benchmarks/peers/streams.py [--only digits abalone] [--learners Forward SGD] [--tuned] [--results FILE]
    python benchmarks/peers/streams.py --others
    python benchmarks/peers/streams.py --tables FILE

Data sets that scikit-learn does not include are read from the folder that ONLINEBREGMAN_DATA names, rows with a missing
value omitted, a column for each value of a column of text; rows are in random order, the same for all, except for two
series in their order, whose rows have the last two targets as two more columns. Columns are "scaled", centred and
scaled by the mean and the deviation of the rows before, and clipped to 10 deviations; or "raw"; or raw, and the learner
standardises them itself (`standardize`). The words of messages are TF-IDF, sparse, and not centred. For each
classifier: errors in % after the first 2 % of the rows, the mean log loss and Brier score over all rows, the
calibration error (the mean distance between the largest probability and how often that label was right, in ten bins of
probabilities), and the time that predicting and learning one row took; for each regressor, the mean squared error after
the first 2 % of the rows, and the time; targets have mean 0 and deviation 1.

Vowpal Wabbit and river are omitted if they are not installed. --tuned adds the best of 28 settings of SGD and of Vowpal
Wabbit by the errors on the same stream: seven rates, two schedules, two losses. --results is a file of results: those
in it are not measured again. Results are printed as they come, and then as tables, see `_stream_tables.py`; with
--tables, those of such a file.
"""

import argparse
import csv
import os
import platform
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import _stream_peers as peers
import _stream_tables as tables
import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.preprocessing import scale

import onlinebregman
from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    ScaleInvariantClassifier,
    ScaleInvariantRegressor,
)
from onlinebregman.datasets import load_dataset

BUNDLED = {"digits": load_digits, "wdbc": load_breast_cancer}
TEXT, SERIES = ("sms_spam",), ("bike_hour_2011", "elecdemand")
LABELS = ("digits", "mushroom", "wdbc", "spambase", "phishing", "a9a_test", *TEXT)
NUMBERS = ("california", "abalone", "winequality_white", "airfoil", "concrete", "mortgage", "stock", *SERIES)
# Held out: no choice was made on those of the first lines, the number of random features on those of the second.
OTHER_LABELS = (
    *("splice", "promotergene", "house_votes", "reuters_corn_train", "soybean_small", "zoo", "coffee_ftir"),
    *("ada", "car", "pima", "sonar", "soybean_large", "yeast", "glass", "ionosphere", "wine", "balance_scale"),
)
OTHER_NUMBERS = (
    *("tecator_fat", "tecator_moisture", "tecator_protein", "bodyfat_faraway", "samson_scene_mean"),
    *("auto_mpg", "bike_day", "boston", "energy_heating", "forestfires", "winequality_red", "yacht"),
)


def descent(kind, divergence, **parameters):
    return lambda: kind(divergence=divergence, **parameters)


CLASSIFIERS = {
    "ParameterFreeClassifier": ParameterFreeClassifier,
    "ForwardClassifier": ForwardClassifier,
    "MirrorDescentClassifier": MirrorDescentClassifier,
    "  squared Euclidean": descent(MirrorDescentClassifier, "squared_euclidean"),
    "  AdaGrad, hinge": descent(MirrorDescentClassifier, "adagrad", loss="hinge"),
    "  AdaGrad, squared hinge": descent(MirrorDescentClassifier, "adagrad", loss="squared_hinge", eta0=3.0),
    "  diagonal Newton": descent(MirrorDescentClassifier, "diagonal_newton"),
    "  diagonal Newton, hinge": descent(MirrorDescentClassifier, "diagonal_newton", loss="hinge"),
    "ScaleInvariantClassifier": ScaleInvariantClassifier,
    "  modified Huber": lambda: ScaleInvariantClassifier(loss="modified_huber"),
    "SGDClassifier, log loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "SGDClassifier, hinge": lambda: SGDClassifier(random_state=0),
    **peers.CLASSIFIERS,
}
REGRESSORS = {
    "ParameterFreeRegressor": ParameterFreeRegressor,
    "ForwardRegressor": ForwardRegressor,
    "ImplicitGDRegressor": ImplicitGDRegressor,
    "MirrorDescentRegressor": MirrorDescentRegressor,
    "  diagonal Newton": descent(MirrorDescentRegressor, "diagonal_newton"),
    "ScaleInvariantRegressor": ScaleInvariantRegressor,
    "SGDRegressor": lambda: SGDRegressor(random_state=0),
    **peers.REGRESSORS,
}
BINS = 10


def one_hot(column):
    """A column for each value of text; numbers as they are."""
    if any(isinstance(value, str) for value in column):
        return (column[:, np.newaxis] == np.unique(column)).astype(float)
    return column[:, np.newaxis].astype(float)


def load(name):
    """Rows and labels, as numbers, in the order of the stream."""
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else load_dataset(name, return_X_y=True)
    complete = (X == X).all(axis=1)  # NaN is not
    X, y = X[complete], y[complete]
    y = scale(y.astype(float)) if name in NUMBERS + OTHER_NUMBERS else np.unique(y, return_inverse=True)[1]
    if name in TEXT:
        X = TfidfVectorizer().fit_transform(X[:, 0])
    elif X.dtype == object:
        X = np.hstack([one_hot(column) for column in X.T])
    order = np.arange(len(y)) if name in SERIES else np.random.default_rng(0).permutation(len(y))
    X = X[order]
    if issparse(X):
        X.sort_indices()
    return X, y[order]


def with_lags(X, y):
    """The rows of a series, with the last two targets."""
    return np.column_stack([X, np.r_[0.0, y[:-1]], np.r_[0.0, 0.0, y[:-2]]])


def scaled(X):
    """Each row centred and scaled by the mean and the deviation of the rows before it, where there is one."""
    seen = np.arange(len(X))[:, np.newaxis]
    start = np.zeros((1, X.shape[1]))
    X = X - X[0]  # avoids cancellation in the sums of squares
    mean = np.vstack([start, np.cumsum(X, axis=0)[:-1]]) / np.maximum(seen, 1)
    square = np.vstack([start, np.cumsum(X**2, axis=0)[:-1]]) / np.maximum(seen, 1)
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    known = deviation > 1e-9 * np.sqrt(square)
    return np.clip((X - mean) / np.where(known, deviation, 1.0), -10.0, 10.0)


def classified(model, X, y, full=True):
    """The results of one pass listed in `tables.LABELLED`; only the errors unless `full`."""
    classes = np.unique(y)
    n, k = len(y), len(classes)
    wrong, log_loss, brier = np.ones(n, dtype=bool), np.full(n, np.log(k)), np.full(n, 1 - 1 / k)
    sure, right = np.zeros(n), np.zeros(n, dtype=bool)
    model.partial_fit(X[:1], y[:1], classes)
    probabilistic = full and hasattr(model, "predict_log_proba")
    members = getattr(model, "estimators_", ()) if full else ()
    of_members = np.zeros((len(members), n), dtype=bool)
    spent = 0.0
    for i in range(1, n):
        row, label = X[i : i + 1], y[i : i + 1]
        if probabilistic:
            logs = model.predict_log_proba(row)[0]
            p = np.exp(logs)
            log_loss[i], brier[i] = -logs[y[i]], p @ p - 2 * p[y[i]] + 1
            sure[i], right[i] = p.max(), p.argmax() == y[i]
        for member, missed in zip(members, of_members, strict=True):
            missed[i] = member.predict(row)[0] != y[i]
        start = time.thread_time()
        wrong[i] = model.predict(row)[0] != y[i]
        model.partial_fit(row, label)
        spent += time.thread_time() - start
    later = slice(n // 50, None)
    found = {"error": 100 * wrong[later].mean(), "us": 1e6 * spent / (n - 1)}
    if probabilistic:
        bins = np.minimum((BINS * sure[1:]).astype(int), BINS - 1)
        counts, said, was = (np.bincount(bins, value, BINS) for value in (None, sure[1:], right[1:]))
        found |= {"log loss": log_loss.mean(), "brier": brier.mean(), "calibration": abs(said - was).sum() / (n - 1)}
        found["bins"] = " ".join(f"{c}:{s:.6g}:{w:g}" for c, s, w in zip(counts, said, was, strict=True))
    if members:
        found["best member"] = 100 * of_members[:, later].mean(axis=1).min()
        found["over best"] = model.cumulative_loss_ / model.cumulative_losses_.min()
    return found


def predicted(model, X, y, full=True):
    """The results of one pass listed in `tables.NUMBERED`."""
    error, spent = np.zeros(len(y)), 0.0
    model.partial_fit(X[:1], y[:1])
    for i in range(1, len(y)):
        row, target = X[i : i + 1], y[i : i + 1]
        start = time.thread_time()
        error[i] = model.predict(row)[0] - y[i]
        model.partial_fit(row, target)
        spent += time.thread_time() - start
    found = {"error": (error[len(y) // 50 :] ** 2).mean(), "us": 1e6 * spent / (len(y) - 1)}
    if hasattr(model, "estimators_"):
        found["over best"] = model.cumulative_loss_ / model.cumulative_losses_.min()
    return found


def best_of(settings, learn, X, y):
    """The results of the setting with the fewest errors, and the setting."""
    found = []
    for setting, make in settings:
        try:
            found.append(learn(make(), X, y, full=False) | {"setting": setting})
        except ValueError:  # weights that overflow
            continue
    return min(found, key=lambda results: results["error"], default={"error": np.inf})


def settings(learners, X):
    """(learner, columns, model, rows) of everything that learns a stream."""
    for learner, make in learners.items():
        ours = "standardize" in getattr(make(), "get_params", dict)()
        if X.shape[1] > 1000 and learner.startswith("Forward"):  # its rows cost the square of that
            continue
        if getattr(make(), "standardize", False):  # by default
            yield learner, "raw", make(), X
            continue
        if not issparse(X):
            yield learner, "scaled", make(), scaled(X)
        if ours or issparse(X) or learner.startswith(("SGD", "river", "Vowpal")):
            yield learner, "raw", make(), X
        if ours:
            yield learner, "standardize", make().set_params(standardize=True), X


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--others", action="store_true", help="the streams that were kept aside")
    parser.add_argument("--only", nargs="*", help="these streams")
    parser.add_argument("--learners", nargs="*", default=[""], help="how the names of the learners begin")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--tables", type=Path)
    options = parser.parse_args()
    if options.tables:
        tables.show(list(csv.DictReader(options.tables.open())))
        return
    warnings.simplefilter("ignore")
    print(
        f"onlinebregman {onlinebregman.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    for name in peers.MISSING:
        print(f"\n{name} is not installed: its learners are left out")
    known, everything = {}, []
    if options.results and options.results.exists():
        known = {tuple(found.values())[:3]: found for found in csv.DictReader(options.results.open())}
    labels, numbers = (OTHER_LABELS, OTHER_NUMBERS) if options.others else (LABELS, NUMBERS)
    for names, learners, tuned, learn, shown in (
        (labels, CLASSIFIERS, peers.TUNED_CLASSIFIERS, classified, tables.LABELLED),
        (numbers, REGRESSORS, peers.TUNED_REGRESSORS, predicted, tables.NUMBERED),
    ):
        print(tables.heading(shown), file=sys.stderr)
        for name in (name for name in names if options.only is None or name in options.only):
            if name not in BUNDLED and "ONLINEBREGMAN_DATA" not in os.environ:
                print(f"\n{name} is left out: ONLINEBREGMAN_DATA names no folder")
                continue
            X, y = load(name)
            line = {"last two values, on a line": peers.Line} if name in SERIES else {}
            X = with_lags(X, y) if line else X
            runs = [
                (learner, columns, partial(learn, model, rows, y))
                for learner, columns, model, rows in settings(learners | line, X)
            ]
            for learner, grid in tuned.items() if options.tuned else ():
                if not issparse(X):
                    runs.append((learner, "scaled", partial(best_of, grid, learn, scaled(X), y)))
                runs.append((learner, "raw", partial(best_of, grid, learn, X, y)))
            for learner, columns, run in runs:
                if not learner.strip().startswith(tuple(options.learners)):
                    continue
                place = dict(zip(tables.PLACE, (name, learner, columns), strict=True))
                found = known.get(tuple(place.values())) or place | {"rows": X.shape[0], "width": X.shape[1]} | run()
                if options.results and tuple(place.values()) not in known:
                    tables.append(options.results, found)
                everything.append(found)
                print(tables.line(found, shown), file=sys.stderr, flush=True)
    tables.show(everything)


if __name__ == "__main__":
    main()
