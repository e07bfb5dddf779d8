"""One pass over real streams, each row predicted before it is learned: our classifiers beside scikit-learn's.

    python benchmarks/peers/streams.py [--only digits mushroom]

Data sets beyond those bundled with scikit-learn are read from the folder that ONLINEBREGMAN_DATA names, rows with a
missing value left out, a column for each value of a column of text; rows come in a random order, the same for all.
Columns are centred and scaled by the mean and the deviation of the rows before, and kept within 10 deviations. Of each
learner: errors in % after the first 2 % of the rows, the mean log loss over all rows, and the time that predicting and
learning one row took.
"""

import argparse
import os
import platform
import time
import warnings

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import SGDClassifier

import onlinebregman
from onlinebregman import ForwardClassifier, MirrorDescentClassifier
from onlinebregman.datasets import load_dataset

BUNDLED = {"digits": load_digits, "wdbc": load_breast_cancer}
NAMES = ("digits", "mushroom", "wdbc", "spambase", "phishing", "a9a_test")
LEARNERS = {
    "ForwardClassifier": ForwardClassifier,
    "MirrorDescentClassifier": MirrorDescentClassifier,
    "SGDClassifier, log loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "SGDClassifier, hinge": lambda: SGDClassifier(random_state=0),
}


def one_hot(column):
    """A column for each value of text; numbers as they are."""
    if any(isinstance(value, str) for value in column):
        return (column[:, np.newaxis] == np.unique(column)).astype(float)
    return column[:, np.newaxis].astype(float)


def load(name):
    """Rows and labels, as numbers, in the order of the stream."""
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else load_dataset(name, return_X_y=True)
    complete = (X == X).all(axis=1)  # NaN is not
    X, y = X[complete], np.unique(y[complete], return_inverse=True)[1]
    if X.dtype == object:
        X = np.hstack([one_hot(column) for column in X.T])
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=NAMES)
    warnings.simplefilter("ignore")
    print(
        f"onlinebregman {onlinebregman.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    print(f"{'stream':24s}{'learner':28s}{'errors %':>9s}{'log loss':>10s}{'us/row':>9s}")
    for name in parser.parse_args().only:
        if name not in BUNDLED and "ONLINEBREGMAN_DATA" not in os.environ:
            print(f"{name:24s}left out: ONLINEBREGMAN_DATA names no folder")
            continue
        X, y = load(name)
        X = scaled(X)
        for learner, make in LEARNERS.items():
            errors, loss, spent = one_pass(make(), X, y)
            shape = f"{name} ({X.shape[0]} x {X.shape[1]})"
            print(f"{shape:24s}{learner:28s}{errors:9.2f}{loss:10.3f}{spent:9.1f}", flush=True)


if __name__ == "__main__":
    main()
