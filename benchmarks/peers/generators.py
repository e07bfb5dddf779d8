"""One pass over synthetic streams with and without drift: our parameter-free learners compared with river's trees.

    python benchmarks/peers/generators.py [--rows 6000] [--seed 0] [--only Agrawal] [--learners river] [--results FILE]
    python benchmarks/peers/generators.py --others

The streams are river's generators, each row predicted before it is learned. `--seed` is added to the seeds of all of
them. An abrupt drift is in the middle of the stream, within 200 rows (333 of 100 000), a gradual one takes a third of
it, and some streams drift with every row. Learners have their default parameters and see columns as they are, text as a
column for each of its values. Those of river are preceded by its `StandardScaler` where this matters to them: k-NN,
Mondrian forests (AMF), and all regressors, whose leaves have linear models. Errors in %, or mean squared errors of
targets of mean 0 and variance 1, are over all rows; the first row, of which nobody knows anything, is an error. The
second table is without the first 2 % of the rows. Times are those of predicting and learning one row a call, an array
for ours, a dictionary with the generator's names of the columns for river's.

--results is a file of results: those in it are not measured again.
"""

import argparse
import platform
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import _tables as tables
import numpy as np
import river
from _results import Results
from _stream_peers import River
from river import ensemble, forest, neighbors, preprocessing, tree
from river.datasets import synth
from scipy.stats import rankdata
from sklearn.preprocessing import scale
from streams import one_hot

import onlinebregman
from onlinebregman import ParameterFreeClassifier, ParameterFreeRegressor


def drift(make, old, new, seed, rows, width=200):
    """From one concept to another in the middle of the rows, within about `width` of them."""
    width = max(width, rows // 300)  # the exponential in river's probability of the new concept must not overflow
    return synth.ConceptDriftStream(make(old), make(new), position=rows // 2, width=width, seed=seed)


def agrawal(function, seed):
    return synth.Agrawal(classification_function=function, seed=seed)


def sea(variant, seed):
    return synth.SEA(variant=variant, noise=0.1, seed=seed)


def hyperplane(change, seed):
    return synth.Hyperplane(n_drift_features=10, mag_change=change, seed=seed)


def led(n_swapped, seed):
    return synth.LEDDrift(n_drift_features=n_swapped, noise_percentage=0.1, irrelevant_features=True, seed=seed)


def mixed(function, seed):
    return synth.Mixed(classification_function=function, seed=seed)


def sine(function, seed):
    return synth.Sine(classification_function=function, seed=seed)


def stagger(function, seed):
    return synth.STAGGER(classification_function=function, seed=seed)


def random_tree(seed):
    return synth.RandomTree(seed_tree=seed, seed_sample=seed, n_classes=3, n_num_features=5, n_cat_features=3)


def random_rbf(seed):
    return synth.RandomRBF(seed, seed, n_classes=4)


def friedman(kind, positions, seed, rows):
    """Drifts at these twelfths of the rows."""
    positions = tuple(rows * twelfths // 12 for twelfths in positions)
    return synth.FriedmanDrift(kind, positions, transition_window=rows // 12, seed=seed)


LABELS = {  # name -> the stream, given what is added to seeds, and the number of rows
    "Agrawal": lambda s, rows: agrawal(0, s + 1),
    "Agrawal, abrupt": lambda s, rows: drift(partial(agrawal, seed=s + 2), 0, 4, s + 1, rows),
    "SEA": lambda s, rows: sea(0, s + 3),
    "SEA, abrupt": lambda s, rows: drift(partial(sea, seed=s + 3), 0, 2, s + 1, rows),
    "Hyperplane": lambda s, rows: hyperplane(0.0, s + 4),
    "Hyperplane, each row": lambda s, rows: hyperplane(0.001, s + 4),
    "RandomRBF": lambda s, rows: random_rbf(s + 5),
    "RandomRBF, each row": lambda s, rows: synth.RandomRBFDrift(s + 5, s + 5, n_classes=4, change_speed=0.001),
    "LED": lambda s, rows: led(0, s + 6),
    "LED, abrupt": lambda s, rows: drift(partial(led, seed=s + 6), 0, 4, s + 1, rows),
    "Mixed": lambda s, rows: mixed(0, s + 8),
    "Mixed, abrupt": lambda s, rows: drift(partial(mixed, seed=s + 8), 0, 1, s + 1, rows),
    "Sine": lambda s, rows: sine(0, s + 9),
    "Sine, gradual": lambda s, rows: drift(partial(sine, seed=s + 9), 0, 2, s + 1, rows, rows // 3),
    "STAGGER": lambda s, rows: stagger(0, s + 10),
    "STAGGER, abrupt": lambda s, rows: drift(partial(stagger, seed=s + 10), 0, 1, s + 1, rows),
    "Waveform": lambda s, rows: synth.Waveform(seed=s + 11),
    "RandomTree": lambda s, rows: random_tree(s + 12),
    "RandomTree, gradual": lambda s, rows: drift(random_tree, s + 12, s + 13, s + 1, rows, rows // 3),
}
NUMBERS = {
    "Friedman": lambda s, rows: synth.Friedman(seed=s + 1),
    "Friedman, local abrupt": lambda s, rows: friedman("lea", (3, 6, 9), s + 1, rows),
    "Friedman, recurring": lambda s, rows: friedman("gra", (4, 8), s + 1, rows),
    "Friedman, gradual": lambda s, rows: friedman("gsg", (4, 8), s + 1, rows),
    "Planes2D": lambda s, rows: synth.Planes2D(seed=s + 2),
    "Mv": lambda s, rows: synth.Mv(seed=s + 3),
}
OTHER_LABELS = {  # kept aside: no choice was made on these
    **{f"Agrawal, function {k}": lambda s, rows, k=k: agrawal(k, s + 20 + k) for k in range(1, 10)},
    "Agrawal, gradual": lambda s, rows: drift(partial(agrawal, seed=s + 30), 6, 2, s + 1, rows, rows // 3),
    "SEA, gradual": lambda s, rows: drift(partial(sea, seed=s + 31), 1, 3, s + 1, rows, rows // 3),
    "RandomRBF, abrupt": lambda s, rows: drift(random_rbf, s + 32, s + 33, s + 1, rows),
    "LED, gradual": lambda s, rows: drift(partial(led, seed=s + 34), 2, 7, s + 1, rows, rows // 3),
    "Mixed, gradual": lambda s, rows: drift(partial(mixed, seed=s + 35), 1, 0, s + 1, rows, rows // 3),
    "Sine, function 3": lambda s, rows: sine(3, s + 36),
    "Sine, abrupt": lambda s, rows: drift(partial(sine, seed=s + 37), 2, 3, s + 1, rows),
    "STAGGER, gradual": lambda s, rows: drift(partial(stagger, seed=s + 38), 2, 0, s + 1, rows, rows // 3),
    "Waveform with noise": lambda s, rows: synth.Waveform(seed=s + 39, has_noise=True),
    "RandomTree, other": lambda s, rows: synth.RandomTree(s + 40, s + 40, n_num_features=10, n_cat_features=5),
    "RandomTree, abrupt": lambda s, rows: drift(random_tree, s + 41, s + 42, s + 1, rows),
}
OTHER_NUMBERS = {
    "Friedman, other": lambda s, rows: synth.Friedman(seed=s + 20),
    "Friedman, gradual, other": lambda s, rows: friedman("gsg", (2, 7), s + 21, rows),
    "Planes2D, other": lambda s, rows: synth.Planes2D(seed=s + 22),
    "Mv, other": lambda s, rows: synth.Mv(seed=s + 23),
}


class Unconverted(River):
    """Rows are dictionaries already."""

    def example(self, row):
        return row


def scaled(make, **parameters):
    return Unconverted(lambda: preprocessing.StandardScaler() | make(**parameters))


OURS = "ParameterFree"
CLASSIFIERS = {  # name -> what makes the learner
    OURS: ParameterFreeClassifier,
    "river, ARF": lambda: Unconverted(partial(forest.ARFClassifier, seed=0)),
    "river, HAT": lambda: Unconverted(partial(tree.HoeffdingAdaptiveTreeClassifier, seed=0)),
    "river, AMF": lambda: scaled(forest.AMFClassifier, seed=0),
    "river, SRP": lambda: Unconverted(partial(ensemble.SRPClassifier, seed=0)),
    "river, k-NN": lambda: scaled(neighbors.KNNClassifier),
}
REGRESSORS = {
    OURS: ParameterFreeRegressor,
    "river, ARF": lambda: scaled(forest.ARFRegressor, seed=0),
    "river, HAT": lambda: scaled(tree.HoeffdingAdaptiveTreeRegressor, seed=0),
    "river, AMF": lambda: scaled(forest.AMFRegressor, seed=0),
    "river, SRP": lambda: scaled(ensemble.SRPRegressor, seed=0),
    "river, k-NN": lambda: scaled(neighbors.KNNRegressor),
}


def table_of(stream, n):
    """The first rows of a stream, as an array and as dictionaries with the names of its columns, and their targets."""
    examples, targets = zip(*stream.take(n), strict=True)
    columns = np.array([list(example.values()) for example in examples], dtype=object).T
    X = np.hstack([one_hot(column) for column in columns])
    names = list(examples[0]) if X.shape[1] == len(columns) else range(X.shape[1])
    return X, [dict(zip(names, row, strict=True)) for row in X.tolist()], np.array(targets)


def progressive(model, rows, y, classes=None):
    """The losses of all rows, each predicted before it is learned, and the microseconds that a row took."""
    loss = np.ones(len(y))
    given = {} if classes is None else {"classes": classes}
    model.partial_fit(rows[0], y[:1], **given)
    start = time.thread_time()
    for i, row in enumerate(rows[1:], 1):
        said = model.predict(row)[0]
        loss[i] = (said - y[i]) ** 2 if classes is None else 100 * (said != y[i])
        model.partial_fit(row, y[i : i + 1])
    spent = time.thread_time() - start
    loss[0] = y[0] ** 2 if classes is None else 100
    return loss, 1e6 * spent / (len(y) - 1)


def measured(stream, n, learner, make, labelled):
    """Errors over all rows and after the first 2 %, and the time of a row."""
    X, dictionaries, y = table_of(stream, n)
    y = np.unique(y, return_inverse=True)[1] if labelled else scale(y)
    rows = np.split(X, n) if learner == OURS else dictionaries
    loss, us = progressive(make(), rows, y, np.unique(y) if labelled else None)
    return {"error": loss.mean(), "later": loss[n // 50 :].mean(), "us": us}


def show(unit, form, found, learners):
    """Tables of streams of one kind, `found` is stream -> learner -> results, and who is ahead of ours, and where."""
    titles = {"error": unit, "later": f"{unit}, without the first 2 %", "us": "microseconds a row"}
    for field, title in titles.items():
        values = {
            name: np.array([of_learner.get(learner, {}).get(field, np.nan) for learner in learners])
            for name, of_learner in found.items()
        }
        tables.table(title, learners, values, "{:.0f}" if field == "us" else form, 36)
        values = np.array(list(values.values()))
        everywhere = np.isfinite(values).all(axis=0)  # some learners take too long for some streams
        if field == "us":
            tables.row("mean", *(f"{us:.0f}" if us == us else "" for us in values.mean(axis=0)), width=36)
        else:
            ranks = np.full(len(learners), np.nan)
            ranks[everywhere] = rankdata(values[:, everywhere], axis=1).mean(axis=0)
            tables.row("mean rank", *(f"{rank:.2f}" if rank == rank else "" for rank in ranks), width=36)
    print()
    for learner in learners:
        if learner == OURS:
            continue
        pairs = {
            name: (of_learner[learner]["error"], of_learner[OURS]["error"])
            for name, of_learner in found.items()
            if {OURS, learner} <= of_learner.keys()
        }
        ahead = [
            f"{name} ({form.format(its)}, ours {form.format(mine)})"
            for name, (its, mine) in pairs.items()
            if its < mine
        ]
        print(f"- {learner} is ahead of ours on {len(ahead)} of {len(pairs)}: {', '.join(ahead) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--others", action="store_true", help="the streams that were kept aside")
    parser.add_argument("--only", nargs="*", default=[""], help="how the names of the streams begin")
    parser.add_argument("--learners", nargs="*", default=[""], help="how the names of the learners begin")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"onlinebregman {onlinebregman.__version__}, river {river.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}; {options.rows} rows, seeds of {options.seed}"
    )
    known = Results(options.results)
    labels, numbers = (OTHER_LABELS, OTHER_NUMBERS) if options.others else (LABELS, NUMBERS)
    for unit, form, streams, learners in (
        ("errors in %", "{:.2f}", labels, CLASSIFIERS),
        ("squared error / variance", "{:.4f}", numbers, REGRESSORS),
    ):
        found = {}
        for learner, make in learners.items():
            for name, stream in streams.items():
                key = f"{name}; {learner}; {options.rows} rows; seeds of {options.seed}"
                wanted = name.startswith(tuple(options.only)) and learner.startswith(tuple(options.learners))
                if wanted and key not in known:
                    known.keep(
                        key,
                        measured(stream(options.seed, options.rows), options.rows, learner, make, streams is labels),
                    )
                    print(key, known[key], file=sys.stderr, flush=True)
                if key in known:
                    found.setdefault(name, {})[learner] = known[key]
        if found:
            measured_ones = [name for name in learners if any(name in of_learner for of_learner in found.values())]
            show(unit, form, {name: found[name] for name in streams if name in found}, measured_ones)


if __name__ == "__main__":
    main()
