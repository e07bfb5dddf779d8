"""pyDML (jlsuarezdiaz/pyDML-Stats, results/basic-5nn-test.csv): 5-NN in learned metrics, mean accuracy.

Of its sets those of at most 1,000 rows that are in the folder of data, in ten folds of our own: those that its numbers
are of are in its repository.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onlinebregman import LogDetMetricLearner, MetricKNeighborsClassifier

SETS = {"balance": "balance_scale", "glass": "glass", "ionosphere": "ionosphere", "iris": "iris", "pima": "pima"}
SETS |= {"sonar": "sonar", "wdbc": "wdbc", "wine": "wine"}
SHOWN = ("NCA", "DMLMJ", "GMML", "LMNN", "Euclidean", "ITML")


def rows():
    folder = Path(os.environ["ONLINEBREGMAN_DATA"])
    published = pd.read_csv(folder / "published" / "pydml_5nn_test.csv", index_col=0).loc[list(SETS)]
    models = {
        "LogDetMetricLearner": make_pipeline(LogDetMetricLearner(random_state=0), KNeighborsClassifier(5)),
        "four that vote": MetricKNeighborsClassifier(metric_learner="auto", random_state=0),
    }
    found: dict[str, list[float]] = {name: [] for name in models}
    for name in SETS.values():
        data = pd.read_csv(folder / f"{name}.csv")
        y = data.pop("target" if "target" in data else data.columns[-1])
        for kind, model in models.items():
            folds = StratifiedKFold(10, shuffle=True, random_state=0)
            scores = cross_val_score(make_pipeline(StandardScaler(), model), data.to_numpy(), y.to_numpy(), cv=folds)
            found[kind].append(scores.mean())
    yield (
        f"5-NN, mean accuracy on {len(SETS)} small sets, own folds",
        ", ".join(f"{name} {published[name].mean():.4f}" for name in SHOWN),
        "results/basic-5nn-test.csv",
        ", ".join(f"{name} {np.mean(scores):.4f}" for name, scores in found.items()),
    )
