"""One pass of our parameter-free learners compared with scikit-learn's batch learners.

    python benchmarks/peers/batch.py [--splits 3] [--rows 6000] [--only digits] [--learners SVM] [--results FILE]

Twenty data sets, ten of labels and ten of numbers: the dense ones of `streams.py`, and five of those kept aside there.
Rows are shuffled, series as well, and at most 6000 used; all learn the first 70 % and are tested on the rest, three
times with other seeds. Ours learns each row once, in this order, by `fit`, from columns as they are, and is not changed
by the rest. All have their default parameters. Linear models (logistic and ridge regression) and support vector
machines (with radial basis functions) see standardised columns, random forests and gradient boosting
(`HistGradientBoosting`) the columns as they are; text is a column for each of its values for all. Errors in %, or mean
squared errors of targets of mean 0 and variance 1, are means over the splits; a rank is one more than the number of
learners with fewer errors. Times are CPU seconds of learning on one thread, per thousand rows.

Data sets that scikit-learn does not include are read from the folder that ONLINEBREGMAN_DATA names. --results is a file
of results: those in it are not measured again.
"""

import argparse
import os
import platform
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import _tables as tables
import numpy as np
import sklearn
from _results import Results
from scipy.stats import rankdata
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from streams import BUNDLED, LABELS, NUMBERS, TEXT, load
from threadpoolctl import threadpool_limits

import onlinebregman
from onlinebregman import ParameterFreeClassifier, ParameterFreeRegressor

OURS = "ParameterFree, one pass"
SETS = {  # name -> whether the target is a label
    **dict.fromkeys((*(name for name in LABELS if name not in TEXT), "car", "splice", "yeast", "ionosphere"), True),
    **dict.fromkeys((*NUMBERS, "energy_heating"), False),
}
LEARNERS = {  # name -> what makes a classifier, and what a regressor
    OURS: (ParameterFreeClassifier, ParameterFreeRegressor),
    "linear": tuple(lambda kind=kind: make_pipeline(StandardScaler(), kind()) for kind in (LogisticRegression, Ridge)),
    "SVM": tuple(lambda kind=kind: make_pipeline(StandardScaler(), kind()) for kind in (SVC, SVR)),
    "random forest": tuple(partial(kind, random_state=0) for kind in (RandomForestClassifier, RandomForestRegressor)),
    "boosting": tuple(
        partial(kind, random_state=0) for kind in (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    ),
}
TRAINED = 0.7


def measured(X, y, labelled, learner, rows, splits):
    """The mean error on the rows that were not learned, and the seconds per thousand rows of those that were."""
    errors, seconds = [], []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(y))[:rows]
        learned, tested = np.split(order, [int(TRAINED * len(order))])
        model = LEARNERS[learner][0 if labelled else 1]()
        start = time.process_time()
        model.fit(X[learned], y[learned])
        seconds.append(1000 * (time.process_time() - start) / len(learned))
        said = model.predict(X[tested])
        errors.append(100 * (said != y[tested]).mean() if labelled else ((said - y[tested]) ** 2).mean())
    return {"error": np.mean(errors), "seconds": np.mean(seconds), "rows": len(order), "width": X.shape[1]}


def show(found):
    """Tables of data set -> learner -> results: errors, ranks and times."""
    learners = [name for name in LEARNERS if any(name in of_learner for of_learner in found.values())]
    values = {
        field: {
            f"{name} ({shape['rows']} x {shape['width']})": np.array(
                [of_learner.get(learner, {}).get(field, np.nan) for learner in learners]
            )
            for name, of_learner in found.items()
            for shape in [next(iter(of_learner.values()))]
        }
        for field in ("error", "seconds")
    }
    for title, form, labelled in (("errors in %", "{:.2f}", True), ("squared error / variance", "{:.4f}", False)):
        of_kind = {name: row for name, row in values["error"].items() if SETS[name.split()[0]] is labelled}
        if of_kind:
            tables.table(title, learners, of_kind, form, 32)
    ranks = {name: rankdata(np.round(row, 9), method="min", nan_policy="omit") for name, row in values["error"].items()}
    of_kinds = {
        f"{title}, {len(rows)} sets": np.mean(rows, axis=0)
        for title, kinds in (("labels", (True,)), ("numbers", (False,)), ("all", (True, False)))
        if (rows := [row for name, row in ranks.items() if SETS[name.split()[0]] in kinds])
    }
    tables.table("mean rank", learners, of_kinds, "{:.2f}", 32)
    tables.table("seconds per thousand rows", learners, values["seconds"], "{:.3f}", 32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--only", nargs="*", choices=SETS, default=list(SETS), metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--learners", nargs="*", default=[""], help="how the names of the learners begin")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"onlinebregman {onlinebregman.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}; {options.splits} splits"
    )
    known = Results(options.results)
    found = {}
    for name in options.only:
        if name not in BUNDLED and "ONLINEBREGMAN_DATA" not in os.environ:
            print(f"\n{name} is left out: ONLINEBREGMAN_DATA names no folder")
            continue
        X, y = load(name)
        for learner in LEARNERS:
            key = f"{name}; {learner}; {options.rows} rows; {options.splits} splits"
            if key not in known and learner.startswith(tuple(options.learners)):
                known.keep(key, measured(X, y, SETS[name], learner, options.rows, options.splits))
                print(key, known[key], file=sys.stderr, flush=True)
            if key in known:
                found.setdefault(name, {})[learner] = known[key]
    show(found)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
