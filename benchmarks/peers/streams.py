"""One pass over real streams, each row predicted before it is learned: our linear models beside scikit-learn's.

    python benchmarks/peers/streams.py [--only digits mushroom] [--raw]

Data sets beyond those bundled with scikit-learn are read from the folder that ONLINEBREGMAN_DATA names, rows with a
missing value left out, a column for each value of a column of text; rows come in a random order, the same for all, or
in their own where that is time. Columns are centred and scaled by the mean and the deviation of the rows before, and
kept within 10 deviations; with --raw they are as they come. Text comes as TF-IDF, sparse, and never scaled.

Of each classifier: errors in % after the first 2 % of the rows, the mean log loss over all rows, and the time that
predicting and learning one row took. Of regressors, with targets as they come: the mean squared error over all rows but
the first, in units of the targets' variance.
"""

import argparse
import os
import platform
import time
import warnings

import numpy as np
import sklearn
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier, SGDRegressor

import onlinebregman
from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ScaleInvariantClassifier,
    ScaleInvariantRegressor,
)
from onlinebregman.datasets import load_dataset

BUNDLED = {"digits": load_digits, "wdbc": load_breast_cancer}
TEXT = ("sms_spam",)
IN_TIME = ("bike_hour_2011", "elecdemand")  # whose rows keep their order
CLASSES = ("digits", "mushroom", "wdbc", "spambase", "phishing", "a9a_test", *TEXT)
NUMBERS = ("california", "abalone", "winequality_white", "airfoil", "concrete", "mortgage", "stock", *IN_TIME)


def descent(kind, divergence, **parameters):
    return lambda: kind(divergence=divergence, **parameters)


CLASSIFIERS = {
    "ForwardClassifier": ForwardClassifier,
    "MirrorDescentClassifier": MirrorDescentClassifier,
    "  squared Euclidean": descent(MirrorDescentClassifier, "squared_euclidean"),
    "  eta0=10": lambda: MirrorDescentClassifier(eta0=10.0),
    "  AdaGrad": descent(MirrorDescentClassifier, "adagrad"),
    "  AdaGrad, hinge": descent(MirrorDescentClassifier, "adagrad", loss="hinge"),
    "  AdaGrad, squared hinge": descent(MirrorDescentClassifier, "adagrad", loss="squared_hinge", eta0=3.0),
    "  diagonal Newton": descent(MirrorDescentClassifier, "diagonal_newton"),
    "  diagonal Newton, hinge": descent(MirrorDescentClassifier, "diagonal_newton", loss="hinge"),
    "ScaleInvariantClassifier": ScaleInvariantClassifier,
    "  hinge": lambda: ScaleInvariantClassifier(loss="hinge"),
    "  modified Huber": lambda: ScaleInvariantClassifier(loss="modified_huber"),
    "SGDClassifier, log loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "SGDClassifier, hinge": lambda: SGDClassifier(random_state=0),
}
REGRESSORS = {
    "ForwardRegressor": ForwardRegressor,
    "ImplicitGDRegressor": ImplicitGDRegressor,
    "MirrorDescentRegressor": MirrorDescentRegressor,
    "  eta0=1": lambda: MirrorDescentRegressor(eta0=1.0),
    "  eta0=10": lambda: MirrorDescentRegressor(eta0=10.0),
    "  diagonal Newton": descent(MirrorDescentRegressor, "diagonal_newton"),
    "ScaleInvariantRegressor": ScaleInvariantRegressor,
    "SGDRegressor": lambda: SGDRegressor(random_state=0),
}


def one_hot(column):
    """A column for each value of text; numbers as they are."""
    if any(isinstance(value, str) for value in column):
        return (column[:, np.newaxis] == np.unique(column)).astype(float)
    return column[:, np.newaxis].astype(float)


def load(name):
    """Rows and labels or targets, as numbers, in the order of the stream."""
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else load_dataset(name, return_X_y=True)
    complete = (X == X).all(axis=1)  # NaN is not
    X, y = X[complete], y[complete]
    if name in CLASSES:
        y = np.unique(y, return_inverse=True)[1]
    if name in TEXT:
        X = sparse.csr_array(TfidfVectorizer().fit_transform(X[:, 0]))
        X.sort_indices()
    elif X.dtype == object:
        X = np.hstack([one_hot(column) for column in X.T])
    if name in IN_TIME:
        return X, y
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def scaled(X):
    """Each row centred and scaled by the mean and the deviation of the rows before it, where there is one."""
    seen = np.arange(len(X))[:, np.newaxis]
    start = np.zeros((1, X.shape[1]))
    X = X - X[0]  # what all rows share does no harm to the sums of squares
    mean = np.vstack([start, np.cumsum(X, axis=0)[:-1]]) / np.maximum(seen, 1)
    square = np.vstack([start, np.cumsum(X**2, axis=0)[:-1]]) / np.maximum(seen, 1)
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    known = deviation > 1e-9 * np.sqrt(square)
    return np.clip((X - mean) / np.where(known, deviation, 1.0), -10.0, 10.0)


def one_pass(model, X, y):
    """Errors in %, mean log loss (NaN without probabilities), and microseconds a row."""
    classes = np.unique(y)
    wrong, log_loss = np.ones(len(y), dtype=bool), np.full(len(y), np.log(len(classes)))
    model.partial_fit(X[:1], y[:1], classes)
    probabilistic = hasattr(model, "predict_log_proba")
    spent = 0.0
    for i in range(1, len(y)):
        row, label = X[i : i + 1], y[i : i + 1]
        log_loss[i] = -model.predict_log_proba(row)[0, y[i]] if probabilistic else np.nan
        start = time.thread_time()
        wrong[i] = model.predict(row)[0] != y[i]
        model.partial_fit(row, label)
        spent += time.thread_time() - start
    return 100 * wrong[len(y) // 50 :].mean(), log_loss.mean(), 1e6 * spent / (len(y) - 1)


def one_pass_of_numbers(model, X, y):
    """Mean squared error in units of the variance of y, infinity where the weights diverge, and microseconds a row."""
    total = spent = 0.0
    try:
        model.partial_fit(X[:1], y[:1])
        for i in range(1, len(y)):
            row, target = X[i : i + 1], y[i : i + 1]
            start = time.thread_time()
            total += (model.predict(row)[0] - target[0]) ** 2
            model.partial_fit(row, target)
            spent += time.thread_time() - start
    except ValueError:
        return np.inf, np.nan
    return total / (len(y) - 1) / y.var(), 1e6 * spent / (len(y) - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=(*CLASSES, *NUMBERS))
    parser.add_argument("--raw", action="store_true", help="columns as they come")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"onlinebregman {onlinebregman.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    print(f"{'stream':32s}{'learner':28s}{'errors %':>9s}{'log loss':>10s}{'us/row':>9s}")
    for name in options.only:
        if name not in BUNDLED and "ONLINEBREGMAN_DATA" not in os.environ:
            print(f"{name:32s}left out: ONLINEBREGMAN_DATA names no folder")
            continue
        X, y = load(name)
        if not options.raw and name not in TEXT:
            X = scaled(X)
        title = f"{name} ({X.shape[0]} x {X.shape[1]})"
        if name in NUMBERS:
            print(f"{title:32s}{'':28s}{'error / variance':>19s}{'us/row':>9s}")
        for learner, make in (REGRESSORS if name in NUMBERS else CLASSIFIERS).items():
            if name in TEXT and learner.startswith("Forward"):
                continue  # a matrix of all columns
            if name in NUMBERS:
                error, spent = one_pass_of_numbers(make(), X, y)
                print(f"{'':32s}{learner:28s}{error:19.3g}{spent:9.1f}", flush=True)
                continue
            errors, loss, spent = one_pass(make(), X, y)
            print(f"{title:32s}{learner:28s}{errors:9.2f}{loss:10.3f}{spent:9.1f}", flush=True)


if __name__ == "__main__":
    main()
