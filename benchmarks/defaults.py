"""How the default learning rates were chosen: mean score over real data sets for a grid of rates.

    python benchmarks/defaults.py [--only regression metric]

Everything is standardised inside the training part. The defaults are the best line of each table, or one that is equal
to it. Data sets that scikit-learn does not include are read from the folder ONLINEBREGMAN_DATA, if it is set.
"""

import argparse
import itertools
import os
import platform
import warnings

import numpy as np
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.model_selection import KFold, StratifiedShuffleSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from onlinebregman import (
    BurgRegressor,
    EGRegressor,
    FrobeniusMetricLearner,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    VonNeumannMetricLearner,
    __version__,
)
from onlinebregman.datasets import load_balance_scale, load_dataset

REGRESSION = (
    *("boston", "concrete", "airfoil", "energy_heating", "yacht"),
    *("winequality_red", "bodyfat_faraway", "stock", "mortgage"),
)
CLASSES = ("ionosphere", "sonar", "glass", "pima")
RATES = (0.03, 0.1, 0.3, 1.0, 3.0)


def more(names):
    if "ONLINEBREGMAN_DATA" not in os.environ:
        return {}
    return {name: load_dataset(name, return_X_y=True) for name in names}


def regression():
    """Mean cross-validated R^2."""
    data = {"diabetes": load_diabetes(return_X_y=True), **more(REGRESSION)}
    folds = KFold(4, shuffle=True, random_state=0)

    def score(model, X, y):
        scaled = TransformedTargetRegressor(model, transformer=StandardScaler())
        return cross_val_score(make_pipeline(StandardScaler(), scaled), X, y, cv=folds).mean()

    rows = {"LinearRegression": LinearRegression(), "SGDRegressor": SGDRegressor(random_state=0)}
    makers = {
        "ImplicitGD": ImplicitGDRegressor,
        "EG signed, total 1": EGRegressor,
        "EG signed, total 3": lambda **p: EGRegressor(total=3.0, **p),
        "EG simplex": lambda **p: EGRegressor(weights="simplex", **p),
        "EG positive": lambda **p: EGRegressor(weights="positive", **p),
        "Burg": BurgRegressor,
    }
    for name, make in makers.items():
        for eta0 in RATES:
            rows[f"{name}, {eta0:g} / sqrt(t)"] = make(eta0=eta0, learning_rate="invscaling", random_state=0)
    table(rows, data, score, "R^2")


def metric():
    """Mean 5-NN error in per cent, five 70/30 splits."""
    data = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "wdbc": load_breast_cancer(return_X_y=True),
        "balance": load_balance_scale(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        **more(CLASSES),
    }
    splits = StratifiedShuffleSplit(5, test_size=0.3, random_state=0)

    def error(learner, X, y):
        model = make_pipeline(StandardScaler(), learner, KNeighborsClassifier(5))
        return 100 * (1 - cross_val_score(model, X, y, cv=splits).mean())

    rows = {"Euclidean": "passthrough"}
    kinds = {"LogDet": LogDetMetricLearner, "Frobenius": FrobeniusMetricLearner, "von Neumann": VonNeumannMetricLearner}
    for (name, kind), pairs in itertools.product(kinds.items(), ("random", "neighbors")):
        for schedule, rates in (("constant", (0.01, 0.03, 0.1)), ("sqrt", (0.1, 0.3, 1.0, 3.0))):
            for epochs in (1, 5):
                for eta0 in rates:
                    rows[f"{name}, {pairs}, {schedule}, {eta0:g}, {epochs} epochs"] = kind(
                        sampling=pairs, eta0=eta0, learning_rate=schedule, max_iter=epochs, random_state=0
                    )
    table(rows, data, error, "error %")


def table(rows, data, score, unit):
    width = max(map(len, rows))
    print(f"{unit:{width}s} " + " ".join(f"{name[:8]:>8s}" for name in data) + "     mean")
    for name, model in rows.items():
        scores = [score(model, X, y) for X, y in data.values()]
        print(
            f"{name:{width}s} " + " ".join(f"{value:8.3g}" for value in scores) + f" {np.mean(scores):8.3f}", flush=True
        )


if __name__ == "__main__":
    parts = {"regression": regression, "metric": metric}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=parts, default=parts)
    only = parser.parse_args().only
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"onlinebregman {__version__}, scikit-learn {sklearn.__version__}, Python {platform.python_version()}")
    with threadpool_limits(1):
        for part in only:
            parts[part]()
