"""k-NN regression in metrics learned from targets, compared with the Euclidean metric, on UCI data.

    ONLINEBREGMAN_DATA=FOLDER python benchmarks/peers/knn_regression.py [--splits 3] [--sets yacht concrete ...]

For each data set, standardised, at most 1500 of its rows, and each 70/30 split: the root mean squared error of the mean
target of 5 neighbours, relative to the standard deviation of the targets. Only numerical columns are used. The last
line is the geometric mean of the errors relative to those of scikit-learn's KNeighborsRegressor.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from onlinebregman import MetricKNeighborsRegressor

SETS = (
    "yacht", "energy_heating", "auto_mpg", "boston", "bodyfat", "bike_day", "airfoil", "concrete", "winequality_red",
    "abalone", "stock", "mortgage",
)  # fmt: skip


def models(seed):
    yield "Euclidean", KNeighborsRegressor(5)
    yield "metric", MetricKNeighborsRegressor(window_size=None, random_state=seed)
    yield "auto", MetricKNeighborsRegressor(metric_learner="auto", window_size=None, random_state=seed)


def errors(name, splits):
    data = pd.read_csv(Path(os.environ["ONLINEBREGMAN_DATA"]) / f"{name}.csv").select_dtypes("number").dropna()
    rows = data.to_numpy(float)[np.random.RandomState(0).permutation(len(data))[:1500]]
    found = {}
    for seed in range(splits):
        X, Z, y, target = train_test_split(rows[:, :-1], rows[:, -1], test_size=0.3, random_state=seed)
        scaler = StandardScaler().fit(X)
        for model_name, model in models(seed):
            gap = model.fit(scaler.transform(X), y).predict(scaler.transform(Z)) - target
            found.setdefault(model_name, []).append(np.sqrt(np.mean(gap**2)) / target.std())
    return {model_name: np.mean(values) for model_name, values in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=SETS)
    given = parser.parse_args()
    table = {}
    for name in given.sets:
        table[name] = errors(name, given.splits)
        print(f"{name:16}", *(f"{key} {value:.3f} " for key, value in table[name].items()), flush=True)
    ratios = pd.DataFrame(table).T
    print("geometric mean  ", np.exp(np.log(ratios.div(ratios["Euclidean"], axis=0)).mean()).round(3).to_dict())


if __name__ == "__main__":
    main()
