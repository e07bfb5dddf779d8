"""Intervals for targets, each predicted before its row is learned: coverage and width beside those of other packages.

    python benchmarks/peers/intervals.py [--only stock jumps] [--learners Param river] [--coverage 0.9] [--rows 2000]
                                         [--results FILE]

Streams are the regression streams of `streams.py`, and three that drift: the deviation of the noise jumps between 0.5
and 5, or the weights change ten times, or the noise has heavy tails. Coverage, and mean width in deviations of the
targets, are those of the last two thirds of the rows. Learners are ParameterFreeRegressor; ForwardRegressor, whose
intervals are those of a normal model; river's RegressionJackknife (quantiles of all past errors, or of the last 500) of
its scaled linear regression, of its adaptive random forest, and of the predictions of ParameterFreeRegressor, which
compares intervals alone; CapyMOA's adaptive intervals (AdaPI) and those of a normal model (MVE), both of an adaptive
random forest; and MAPIE's TimeSeriesRegressor (EnbPI, and ACI with gamma 0.005), which learns trees once, in 30
resamplings of the first third, and then updates its errors every 20 rows. What is not installed is omitted.
Times of ParameterFreeRegressor are those of five coverages for each row. --results is a file of results: those in it
are not measured again.
"""

import argparse
import time
import warnings
from importlib.metadata import distributions, version
from pathlib import Path

import _tables as tables
import numpy as np
from _results import Results
from streams import NUMBERS, OTHER_NUMBERS, load

from onlinebregman import ForwardRegressor, ParameterFreeRegressor

try:
    from river import base, conf, forest, linear_model, preprocessing
except ImportError:
    conf = None
try:
    from mapie.regression import TimeSeriesRegressor
    from mapie.subsample import BlockBootstrap
    from sklearn.tree import DecisionTreeRegressor
except ImportError:
    TimeSeriesRegressor = None
try:
    from capymoa import uncertainty
    from capymoa.stream import NumpyStream
except ImportError:
    uncertainty = None

OURS = "ParameterFreeRegressor"
DRIFTING = ("jumps", "concepts", "heavy tails")
SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)
STEP = 20  # rows between updates of MAPIE


def drifting(name, n):
    """A stream whose noise, or whose weights, change."""
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(n, 5)), np.arange(n)
    w = rng.normal(size=(10, 5))[t * 10 // n if name == "concepts" else 0 * t]
    noise = rng.standard_t(1.5, size=n) if name == "heavy tails" else rng.normal(size=n)
    if name == "jumps":
        noise *= np.where(t * 6 // n % 2, 5.0, 0.5)
    y = (w * X).sum(axis=1) + noise
    return X, y / y.std()


class Progressive:
    """Intervals of one of our models, a row at a time."""

    def __init__(self, model):
        self.model = model

    def intervals(self, X, y, coverages):
        found = np.full((2, len(y), len(coverages)), [[[-np.inf]], [[np.inf]]])
        for i in range(len(y)):
            for k, coverage in enumerate(coverages if i else ()):
                found[:, i, k] = np.ravel(self.model.predict_interval(X[i : i + 1], coverage))
            self.model.partial_fit(X[i : i + 1], y[i : i + 1])
        return found


class Jackknife:
    """river's intervals, one model for each coverage."""

    def __init__(self, make, window=None):
        self.make, self.window = make, window

    def intervals(self, X, y, coverages):
        found = np.empty((2, len(y), len(coverages)))
        for k, coverage in enumerate(coverages):
            model = conf.RegressionJackknife(self.make(), confidence_level=coverage, window_size=self.window)
            for i, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
                x = dict(enumerate(row))
                interval = model.predict_one(x, with_interval=True)
                found[:, i, k] = interval.lower, interval.upper
                model.learn_one(x, target)
        return found


class Moa:
    """CapyMOA's intervals, one model for each coverage."""

    def __init__(self, kind):
        self.kind = kind

    def intervals(self, X, y, coverages):
        found = np.empty((2, len(y), len(coverages)))
        for k, coverage in enumerate(coverages):
            stream = NumpyStream(X, y, target_type="numeric")
            model = getattr(uncertainty, self.kind)(schema=stream.get_schema(), confidence_level=coverage)
            for i in range(len(y)):
                instance = stream.next_instance()
                lower, _, upper = model.predict(instance)
                found[:, i, k] = lower, upper
                model.train(instance)
        return found


class Resampled:
    """MAPIE's intervals, those of its first third left out."""

    def __init__(self, method):
        self.method = method

    def intervals(self, X, y, coverages):
        start, found = len(y) // 3, np.zeros((2, len(y), len(coverages)))
        trees = DecisionTreeRegressor(min_samples_leaf=3, random_state=0)
        cv = BlockBootstrap(n_resamplings=30, n_blocks=10, random_state=0)
        model = TimeSeriesRegressor(trees, method=self.method, cv=cv, agg_function="mean")
        model = model.fit(X[:start], y[:start])
        for i in range(start, len(y), STEP):
            rows = slice(i, i + STEP)
            options = {"ensemble": True, "confidence_level": list(coverages), "allow_infinite_bounds": True}
            intervals = model.predict(X[rows], **options)[1]
            found[:, rows] = np.moveaxis(intervals, 1, 0)
            if self.method == "aci":
                model.adapt_conformal_inference(X[rows], y[rows], 0.005, list(coverages), ensemble=True)
            model.update(X[rows], y[rows], ensemble=True)
        return found


def learners():
    """Name -> intervals."""
    ours = {
        OURS: Progressive(ParameterFreeRegressor()),
        "ForwardRegressor(standardize=True)": Progressive(ForwardRegressor(standardize=True)),
    }
    if conf is not None:

        class Ours(base.Regressor):
            def __init__(self):
                self.model = ParameterFreeRegressor()

            def learn_one(self, x, y):
                self.model.partial_fit(np.array([list(x.values())]), np.array([y]))

            def predict_one(self, x):
                known = hasattr(self.model, "estimators_")
                return float(self.model.predict(np.array([list(x.values())]))[0]) if known else 0.0

        ours["river, of ParameterFreeRegressor"] = Jackknife(Ours)
        ours["river, of ParameterFreeRegressor, 500 rows"] = Jackknife(Ours, 500)
        ours["river, linear"] = Jackknife(lambda: preprocessing.StandardScaler() | linear_model.LinearRegression())
        ours["river, random forest"] = Jackknife(lambda: forest.ARFRegressor(seed=0))
    if uncertainty is not None:
        ours["CapyMOA, AdaPI"], ours["CapyMOA, MVE"] = Moa("AdaPI"), Moa("MVE")
    if TimeSeriesRegressor is not None:
        ours["MAPIE, EnbPI"], ours["MAPIE, ACI"] = Resampled("enbpi"), Resampled("aci")
    return ours


def measured(learner, X, y, coverages):
    """Coverages in % and mean widths of the last two thirds of the rows, and the time of a row, in microseconds."""
    start = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        lower, upper = learner.intervals(X, y, coverages)[:, len(y) // 3 :]
    us = 1e6 * (time.perf_counter() - start) / len(y)
    y = y[len(y) // 3 :, np.newaxis]
    shares, widths = 100 * ((lower <= y) & (y <= upper)).mean(axis=0), (upper - lower).mean(axis=0)
    names = [f"{coverage}" for coverage in coverages]
    return {
        "coverages": dict(zip(names, shares, strict=True)),
        "widths": dict(zip(names, widths, strict=True)),
        "us": us,
    }


def show(found, names, coverage):
    """Tables of stream -> learner -> results."""
    of_learner = {each: [found[name][each] for name in names] for each in found[names[0]]}
    titles = {
        "coverages": f"targets in intervals for {coverage:.0%} of them, in %",
        "widths": "mean width, in deviations of the targets",
        "us": "microseconds a row",
    }
    for field, title in titles.items():
        rows = {
            each: [one["us"] if field == "us" else one[field][f"{coverage}"] for one in all_]
            for each, all_ in of_learner.items()
        }
        print(f"\n{title}")
        tables.table("", names, rows, {"coverages": "{:.1f}", "widths": "{:.3g}", "us": "{:.0f}"}[field], 42)
    if OURS in of_learner:
        print(f"\n{OURS}, for each share that is asked")
        rows = {f"{share:.0%}": [one["coverages"][f"{share}"] for one in of_learner[OURS]] for share in SHARES}
        tables.table("", names, rows, "{:.1f}", 42)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = (*NUMBERS, *(name for name in OTHER_NUMBERS if name in ("bike_day", "energy_heating")), *DRIFTING)
    parser.add_argument("--only", nargs="*", choices=[[], *names], default=[], metavar="STREAM", help=", ".join(names))
    parser.add_argument("--learners", nargs="*", default=[""], help="how the names of the learners begin")
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--rows", type=int, default=2000, help="of each stream, from its start")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    known = Results(options.results)
    found, installed = {}, {each.metadata["Name"].lower() for each in distributions()}
    for name in options.only or names:
        X, y = drifting(name, options.rows) if name in DRIFTING else load(name)
        for each, learner in learners().items():
            if not each.startswith(tuple(options.learners)):
                continue
            asked = sorted({*SHARES, options.coverage}) if each == OURS else [options.coverage]
            key = f"{name}; {each}; {asked}; {options.rows} rows"
            if key not in known:
                known.keep(key, measured(learner, X[: options.rows], y[: options.rows], asked))
            found.setdefault(name, {})[each] = known[key]
    packages = [name for name in ("onlinebregman", "river", "capymoa", "mapie") if name in installed]
    print(", ".join(f"{name} {version(name)}" for name in packages))
    show(found, list(found), options.coverage)


if __name__ == "__main__":
    main()
