"""Errors on ten streams that need no download, beside those of `accuracy.toml`: fails if one is worse by more than 2 %.

    python benchmarks/accuracy.py [--write] [--only digits Bananas]

Each row is predicted before it is learned, on raw columns, with default parameters: the mean log loss of labels, the
mean squared error over the variance of numbers, and the mean Poisson deviance of counts. Unlike errors in %, they
change by little when a model does. --write stores what is found.
"""

import argparse
import sys
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from river import datasets
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import log_loss, mean_poisson_deviance

from onlinebregman import (
    ForwardClassifier,
    ForwardRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
    ScaleInvariantClassifier,
    ScaleInvariantRegressor,
)
from onlinebregman.model_selection import progressive_val_score

TABLE = Path(__file__).with_suffix(".toml")
WORSE = 1.02
CLASSIFIERS = ParameterFreeClassifier, ForwardClassifier, MirrorDescentClassifier, ScaleInvariantClassifier
REGRESSORS = ParameterFreeRegressor, ForwardRegressor, MirrorDescentRegressor, ScaleInvariantRegressor


def shuffled(X, y):
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def of_river(name):
    X, y = zip(*getattr(datasets, name)(), strict=True)
    return pd.DataFrame(list(X)).to_numpy(float), np.array(y)


def messages(n=1500, d=2000, words=20):
    """Few of many columns, of which one in five says something of the label."""
    rng = np.random.default_rng(1)
    columns = (d * rng.random((n, words)) ** 3).astype(int)
    X = sparse.csr_array((np.ones(n * words), (np.repeat(np.arange(n), words), columns.ravel())), shape=(n, d))
    says = np.where(rng.random(d) < 0.2, rng.normal(scale=3.0, size=d), 0.0)
    return X, (X @ says + rng.logistic(size=n) > 0).astype(int)


def table(n=2000):
    """Categories, values that are missing where they are large, and a change in mid-stream."""
    rng = np.random.default_rng(2)
    shop, size = rng.integers(8, size=n), rng.lognormal(size=n)
    later = np.arange(n) > n // 2
    y = np.where(later, shop % 3, shop % 4) + np.minimum(size, 3.0) + rng.normal(scale=0.5, size=n)
    X = pd.DataFrame({"shop": pd.Categorical(shop.astype(str)), "size": np.where(size > 2, np.nan, size)})
    return X, y


def counts(n=2000):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0]
    return X, rng.poisson(np.exp(0.5 + X @ [0.5, 0.03, 2.0, 0.0, 0.0])).astype(float)


STREAMS = {
    "digits": (lambda: shuffled(*load_digits(return_X_y=True)), CLASSIFIERS),
    "breast_cancer": (lambda: shuffled(*load_breast_cancer(return_X_y=True)), CLASSIFIERS),
    "Bananas": (lambda: of_river("Bananas"), CLASSIFIERS),
    "Phishing": (lambda: of_river("Phishing"), CLASSIFIERS),
    "messages": (messages, (CLASSIFIERS[0], *CLASSIFIERS[2:])),
    "diabetes": (lambda: shuffled(*load_diabetes(return_X_y=True, scaled=False)), REGRESSORS),
    "ChickWeights": (lambda: of_river("ChickWeights"), REGRESSORS),
    "TrumpApproval": (lambda: of_river("TrumpApproval"), REGRESSORS),
    "table": (table, REGRESSORS[:1]),
    "counts": (counts, REGRESSORS[:3]),
}


def error(name, learner, X, y):
    if learner in CLASSIFIERS:
        return progressive_val_score(learner(), X, y, scoring=log_loss, n_points=1).score
    if name == "counts":
        return progressive_val_score(learner(loss="poisson"), X, y, scoring=mean_poisson_deviance, n_points=1).score
    return 1.0 - progressive_val_score(learner(), X, y, scoring="r2", n_points=1).score


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the errors")
    parser.add_argument("--only", nargs="*", choices=STREAMS, default=list(STREAMS), help="these streams")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = tomllib.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    worse = 0
    for name in options.only:
        load, learners = STREAMS[name]
        X, y = load()
        start, found = time.perf_counter(), {}
        for learner in learners:
            found[learner.__name__] = now = error(name, learner, X, y)
            before = known.get(name, {}).get(learner.__name__, np.nan)
            bad = not now <= WORSE * before
            worse += bad
            print(f"{name:15s}{learner.__name__:26s}{before:10.5g}{now:10.5g}{now / before - 1:+8.2%}{' WORSE' * bad}")
        print(f"{'':15s}{len(y)} rows, {time.perf_counter() - start:.0f} s", flush=True)
        if options.write:
            known[name] = found
    if options.write:
        text = "# Errors of `accuracy.py`, which writes them.\n"
        for name in known:
            text += f"\n[{name}]\n" + "".join(f"{learner} = {value:.6g}\n" for learner, value in known[name].items())
        TABLE.write_text(text, encoding="utf-8")
    elif worse:
        sys.exit(f"{worse} errors are worse by more than 2 %, or not in {TABLE.name}: if that is meant, --write")


if __name__ == "__main__":
    main()
