"""The cost of a call: one row per call compared with the same rows in one block, for every public estimator.

    python benchmarks/peers/calls.py [--rows 200] [--only LogDetMetricLearner ...]

Rows have 20 features. The columns are microseconds of the processor for a row: in a block, one row a call, and one row
a call with weights, as float32, with targets in a list, as an array of objects, and as a DataFrame, if supported; a
prediction (or transformation, or log-density) of one row, as each row is learned after it; then the target, 3 + 1.7
times the block, and the ratio of one row a call to it, if that is above 1. "with text": one of the columns has text.
"""

import argparse
import inspect
import time
import warnings

import _tables as tables
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

import onlinebregman
from onlinebregman import MirrorDescentClassifier, OnlineExponentialFamily, OnlineGaussian, PNormClassifier

EXPERTS = {
    "BayesMixture": [("md", MirrorDescentClassifier()), ("p_norm", PNormClassifier())],
    "ExpertMixtureClassifier": [("md", MirrorDescentClassifier()), ("p_norm", PNormClassifier())],
    "DensityMixture": [("full", OnlineGaussian(prior_weight=2.0)), ("unit", OnlineExponentialFamily())],
}
WIDTH, BEFORE = 20, 200


def estimators():
    """An instance of every public estimator, and scikit-learn's SGD."""
    for name in onlinebregman.__all__:
        cls = getattr(onlinebregman, name)
        if inspect.isclass(cls) and issubclass(cls, BaseEstimator):
            yield cls(estimators=EXPERTS[name]) if name in EXPERTS else cls()
    yield from (SGDClassifier(), SGDRegressor())


def stream(estimator, n):
    """Rows and targets that suit it; None for no targets."""
    rng, family = np.random.default_rng(0), type(estimator).__module__.split(".")[1]
    X = np.abs(rng.normal(size=(n, WIDTH)))
    if type(estimator).__name__ == "MaxEntDensity":
        return np.round(X[:, :3]), None
    if get_tags(estimator).estimator_type == "density_estimator":
        return X, None
    if family == "kernel_learning":
        a = rng.integers(WIDTH, size=n)
        b = (a + rng.integers(1, WIDTH, size=n)) % WIDTH
        return (np.eye(WIDTH)[a] - np.eye(WIDTH)[b]) / np.sqrt(2), rng.uniform(0.02, 0.1, size=n)
    if is_classifier(estimator) or family == "metric_learning":
        return X, (X[:, 0] > X[:, 1]).astype(int)
    return X, X @ rng.uniform(size=WIDTH) / WIDTH


def begun(estimator, X, y):
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    given = {"classes": [0, 1]} if is_classifier(model) else {}
    return model.partial_fit(X[:BEFORE], None if y is None else y[:BEFORE], **given)


def microseconds(calls, rows):
    start = time.thread_time()  # other processes on the machine do not count
    for call in calls:
        call()
    return 1e6 * (time.thread_time() - start) / rows


def row_by_row(estimator, X, y, make_X=None, make_y=lambda y: y, weighted=False):
    """The cost of rows one by one: the median of five parts, as one of them may be disturbed."""
    make_X = make_X or (lambda x: x)
    frame = make_X(X[:1])
    model = begun(estimator, make_X(X) if hasattr(frame, "columns") else X, y)
    calls = []
    for i in range(BEFORE, len(X)):
        x, given = make_X(X[i : i + 1]), {"sample_weight": np.ones(1)} if weighted else {}
        target = None if y is None else make_y(y[i : i + 1])
        calls.append(lambda x=x, target=target, given=given: model.partial_fit(x, target, **given))
    return np.median([microseconds(part, len(part)) for part in np.array_split(np.array(calls), 5)])


def predictions(estimator, X, y):
    """The cost of predicting each row before it is learned, likewise; None if there is nothing to predict."""
    model, times = begun(estimator, X, y), []
    method = next((name for name in ("predict", "score_samples", "transform") if hasattr(model, name)), None)
    for i in range(BEFORE, len(X) if method else 0):
        times.append(microseconds([lambda i=i: getattr(model, method)(X[i : i + 1])], 1))
        model.partial_fit(X[i : i + 1], None if y is None else y[i : i + 1])
    return np.median(times) if times else None


def as_frame(X):
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).infer_objects()


def with_text(X):
    rows = X.astype(object)
    rows[:, -1] = np.where(X[:, -1] > 1, "high", "low")
    return rows


def block(estimator, X, y):
    model = begun(estimator, X, y)
    rows, targets = X[BEFORE:], None if y is None else y[BEFORE:]
    return microseconds([lambda: model.partial_fit(rows, targets)], len(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ("block", "a call", "weight", "float32", "list y", "objects", "frame", "predict", "mark")
    tables.head("microseconds a row", *names, "over mark", width=28)
    for estimator in estimators():
        name = type(estimator).__name__
        if options.only and name not in options.only:
            continue
        X, y = stream(estimator, BEFORE + options.rows)
        in_block, one = block(estimator, X, y), row_by_row(estimator, X, y)
        weight = row_by_row(estimator, X, y, weighted=True) if has_fit_parameter(estimator, "sample_weight") else None
        ours = type(estimator).__module__.startswith("onlinebregman")  # SGD refuses float32 after float64
        single = row_by_row(estimator, X, y, make_X=lambda x: x.astype(np.float32)) if ours else None
        listed = None if y is None else row_by_row(estimator, X, y, make_y=np.ndarray.tolist)
        objects, frame = row_by_row(estimator, X, y, lambda x: x.astype(object)), row_by_row(estimator, X, y, as_frame)
        predicted = predictions(estimator, X, y)
        mark = 3 + 1.7 * in_block
        found = (in_block, one, weight, single, listed, objects, frame, predicted, mark)
        cells = ("" if value is None else f"{value:.2f}" for value in found)
        tables.row(name, *cells, "" if one <= mark else f"{one / mark:.1f}", width=28)
        if hasattr(estimator, "categorical_features"):
            text = with_text(X)
            times = (
                block(estimator, as_frame(text), y),
                *(row_by_row(estimator, text, y, make) for make in (None, as_frame)),
            )
            in_block, objects, frame = (f"{value:.2f}" for value in times)
            tables.row(f"{name}, with text", in_block, *[""] * 4, objects, frame, *[""] * 3, width=28)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
