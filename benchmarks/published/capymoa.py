"""CapyMOA (adaptive-machine-learning/CapyMOA): its streams, and the figures of its tests and notebooks."""

import os
from pathlib import Path

import pandas as pd

from onlinebregman import ParameterFreeClassifier, ParameterFreeRegressor
from onlinebregman.model_selection import progressive_val_predict, progressive_val_score


def load(name, n_rows=None):
    data = pd.read_csv(Path(os.environ["ONLINEBREGMAN_DATA"]) / "published" / f"capymoa_{name}.csv.gz", nrows=n_rows)
    return data.iloc[:, :-1].to_numpy(dtype=float), data.iloc[:, -1].to_numpy()


def accuracy(name):
    return 100 * progressive_val_score(ParameterFreeClassifier(), *load(name)).score


def rows():
    yield (
        "electricity, first 2000 rows, accuracy in %",
        "DEMS 92.70, SRP 90.20, ARF 89.00, SGBT 88.75, no change 85.95",
        "tests/test_classifiers.py",
        f"{accuracy('electricity_tiny'):.2f}",
    )
    yield (
        "electricity, 45,312 rows, accuracy in %",
        "ARF with 10 trees 89.33, HAT 84.69",
        "notebooks/00_getting_started.ipynb, 01",
        f"{accuracy('electricity'):.2f}",
    )
    X, y = load("fried", 1000)
    p = progressive_val_predict(ParameterFreeRegressor(), X, y)
    yield (
        "fried, first 1000 rows, RMSE",
        "k-NN 3.03, SGBR 3.09, SOKNL 3.35, ARF 4.15",
        "tests/test_regressors.py",
        f"{((p - y[1:]) ** 2).mean() ** 0.5:.2f}",
    )
    X, y = load("fried")
    model = ParameterFreeRegressor()
    lower, upper = progressive_val_predict(model, X, y, method="predict_interval", coverage=0.95)
    late = slice(len(y) // 100, None)  # the first intervals are infinite
    inside = ((lower <= y[1:]) & (y[1:] <= upper))[late].mean()
    yield (
        "fried, intervals of 95 %: coverage, width over the range of targets, in %",
        "MVE 97.4, 29.6; AdaPI 96.3, 27.4",
        "notebooks/08_prediction_interval.ipynb",
        f"{100 * inside:.1f}, {100 * (upper - lower)[late].mean() / (y.max() - y.min()):.1f}",
    )
