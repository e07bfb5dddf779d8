"""One pass over real streams, each row predicted before it is learned: our learners beside scikit-learn's.

    python benchmarks/peers/streams.py [--only digits abalone]

Data sets beyond those bundled with scikit-learn are read from the folder that ONLINEBREGMAN_DATA names, rows with a
missing value left out, a column for each value of a column of text; rows come in a random order, the same for all, but
for two series in their own. Columns are "scaled", centred and scaled by the mean and the deviation of the rows before,
and kept within 10 deviations; or "raw", as they are; or raw, and the learner standardises them itself (`standardize`).
The words of messages are TF-IDF, sparse, which nobody centres. Of each classifier: errors in % after the first 2 % of
the rows, the mean log loss over all rows, and the time that predicting and learning one row took; of each regressor,
the mean squared error after the first 2 % of the rows, and the time; targets have mean 0 and deviation 1.
"""

import argparse
import os
import platform
import time
import warnings

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
}
REGRESSORS = {
    "ParameterFreeRegressor": ParameterFreeRegressor,
    "ForwardRegressor": ForwardRegressor,
    "ImplicitGDRegressor": ImplicitGDRegressor,
    "MirrorDescentRegressor": MirrorDescentRegressor,
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
    """Rows and labels, as numbers, in the order of the stream."""
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else load_dataset(name, return_X_y=True)
    complete = (X == X).all(axis=1)  # NaN is not
    X, y = X[complete], y[complete]
    y = scale(y.astype(float)) if name in NUMBERS else np.unique(y, return_inverse=True)[1]
    if name in TEXT:
        X = TfidfVectorizer().fit_transform(X[:, 0])
    elif X.dtype == object:
        X = np.hstack([one_hot(column) for column in X.T])
    order = np.arange(len(y)) if name in SERIES else np.random.default_rng(0).permutation(len(y))
    X = X[order]
    if issparse(X):
        X.sort_indices()
    return X, y[order]


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


def classified(model, X, y):
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


def predicted(model, X, y):
    """Mean squared error, and microseconds a row."""
    error, spent = np.zeros(len(y)), 0.0
    model.partial_fit(X[:1], y[:1])
    for i in range(1, len(y)):
        row, target = X[i : i + 1], y[i : i + 1]
        start = time.thread_time()
        error[i] = model.predict(row)[0] - y[i]
        model.partial_fit(row, target)
        spent += time.thread_time() - start
    return (error[len(y) // 50 :] ** 2).mean(), 1e6 * spent / (len(y) - 1)


def settings(learners, X):
    """(learner, columns, model, rows) of everything that learns a stream."""
    for learner, make in learners.items():
        ours = "standardize" in make().get_params()
        if X.shape[1] > 1000 and learner.startswith("Forward"):  # whose rows cost the square of that
            continue
        if getattr(make(), "standardize", False):  # of its own accord
            yield learner, "raw", make(), X
            continue
        if not issparse(X):
            yield learner, "scaled", make(), scaled(X)
        if ours or issparse(X):
            yield learner, "raw", make(), X
        if ours:
            yield learner, "standardize", make().set_params(standardize=True), X


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=LABELS + NUMBERS)
    warnings.simplefilter("ignore")
    print(
        f"onlinebregman {onlinebregman.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    only = parser.parse_args().only
    for names, learners, learn, heading, form in (
        (LABELS, CLASSIFIERS, classified, f"{'errors %':>9s}{'log loss':>10s}", "{:9.2f}{:10.3f}"),
        (NUMBERS, REGRESSORS, predicted, f"{'error':>10s}", "{:10.3f}"),
    ):
        print(f"{'stream':31s}{'learner':25s}{'columns':12s}{heading}{'us/row':>9s}")
        for name in (name for name in names if name in only):
            if name not in BUNDLED and "ONLINEBREGMAN_DATA" not in os.environ:
                print(f"{name:31s}left out: ONLINEBREGMAN_DATA names no folder")
                continue
            X, y = load(name)
            shape = f"{name} ({X.shape[0]} x {X.shape[1]})"
            for learner, columns, model, rows in settings(learners, X):
                *figures, spent = learn(model, rows, y)
                print(f"{shape:31s}{learner:25s}{columns:12s}{form.format(*figures)}{spent:9.1f}", flush=True)


if __name__ == "__main__":
    main()
