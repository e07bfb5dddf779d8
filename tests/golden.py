"""Golden trajectories: predictions and learned attributes of every configuration, stored for comparison.

    python tests/golden.py write     writes golden.npz anew: for changes that are meant to change numbers
    python tests/golden.py add       adds what it lacks, and leaves the rest as it is
    python tests/golden.py renew NAME   writes what begins so anew, and leaves the rest as it is
    python tests/golden.py compare   compares bit for bit with golden.npz, on the machine that wrote it

A refactoring changes none of them. `test_golden.py` compares as far as numbers agree between machines.
"""

import itertools
import sys
from numbers import Real
from pathlib import Path

import numpy as np
from configurations import OUTPUTS, configurations, default_names, rows_for
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from onlinebregman import (
    DefiniteBoostMetricLearner,
    FrobeniusMetricLearner,
    LearningRatePath,
    LogDetMetricLearner,
    MEGKernelLearner,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    VonNeumannMetricLearner,
)
from onlinebregman.constraints import Box, L1Ball, L2Ball, Simplex, UpperBound

FILE = Path(__file__).with_suffix(".npz")
CUTS = [0, 1, 2, 3, 10, 25, 40]  # rows one by one, then in blocks
NOT_LEARNED = {"n_features_in_", "classes_", "feature_names_in_"}


def numbers_of(model, X):
    """All numeric results of a model for rows, and its fitted attributes."""
    found = {}
    for name in OUTPUTS:
        if hasattr(model, name):
            found[name] = getattr(model, name)(X)
    for name in sorted(dir(model)):
        if not name.endswith("_") or name.startswith("_") or name in NOT_LEARNED or not hasattr(model, name):
            continue
        value = getattr(model, name)
        if isinstance(value, np.ndarray | Real):
            found[name] = value
    arrays = {name: np.asarray(value) for name, value in found.items()}
    return {name: array.astype(np.float64) for name, array in arrays.items() if array.dtype.kind in "fiub"}


def of_every_configuration():
    """Each configuration learns a stream of rows and blocks, dense, sparse and weighted, and by `fit`."""
    numbers = {}
    for estimator in configurations():
        name = type(estimator).__name__
        numbers[name] = numbers.get(name, -1) + 1
        name = f"{name}/{numbers[name]}"
        model = clone(estimator)
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        if getattr(model, "divergence", None) == "normalized_adagrad":  # see of_the_normalised_models
            model.set_params(divergence="squared_euclidean")
        X, y = rows_for(model, 3 if repr(estimator) in default_names() else 2)
        weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], size=len(y))
        weights[0] = 1.0
        forms = {"dense": (X, None), "float32": (X.astype(np.float32), None)}
        if get_tags(model).input_tags.sparse:
            forms["sparse"] = sparse.csr_array(X), None
        if has_fit_parameter(model, "sample_weight"):
            forms["weighted"] = X, weights
        for form, (rows, weights) in forms.items():
            stream = clone(model)
            for start, end in itertools.pairwise(CUTS):
                given = {} if weights is None else {"sample_weight": weights[start:end]}
                if start == 0 and is_classifier(model):
                    given["classes"] = np.unique(y)
                stream.partial_fit(rows[start:end], y[start:end], **given)
            yield f"{name}/{form}", numbers_of(stream, X)
        if {"shuffle", "max_iter"} <= set(model.get_params()):
            model.set_params(max_iter=3, tol=None)
        yield f"{name}/fit", numbers_of(model.fit(X, y), X)


def of_the_general_models():
    """Divergences, losses, updates, constraints and rates of the general mirror descent."""
    rng = np.random.default_rng(4)
    X = np.abs(rng.normal(size=(30, 5)))
    targets = {"log_loss": (X[:, 0] > 0.6).astype(float), "poisson": np.floor(2 * X[:, 1])}
    settings = [
        {"divergence": divergence, "loss": loss, "update": update}
        for divergence in (
            "squared_euclidean",
            "relative_entropy",
            "simplex_entropy",
            "burg",
            "binary_entropy",
            "p_norm",
        )
        for loss in ("squared_error", "log_loss", "poisson", "absolute_error", "epsilon_insensitive", "huber")
        for update in ("implicit", "explicit", "importance")
    ]
    settings += [
        {"divergence": divergence, "constraint": constraint, "update": update}
        for divergence in ("squared_euclidean", "relative_entropy", "burg", "binary_entropy", "p_norm")
        for constraint in (UpperBound(0.5), Box(0.1, 0.6), Simplex(0.9), L1Ball(0.9), L2Ball(0.7))
        for update in ("implicit", "explicit")
    ]
    settings += [
        {"divergence": divergence, "signed": True, "learning_rate": rate, "average": average}
        for divergence in ("relative_entropy", "simplex_entropy")
        for rate in ("constant", "invscaling", "sqrt")
        for average in (False, True)
    ]
    for parameters in settings:
        parameters = {"eta0": 0.02, "learning_rate": "constant", "track_regret": True, **parameters}
        y = targets.get(parameters.get("loss"), X @ [0.1, 0.3, 0.2, 0.1, 0.3])
        model = MirrorDescentRegressor(**parameters).partial_fit(X[:1], y[:1]).partial_fit(X[1:], y[1:])
        name = "MirrorDescentRegressor/" + ",".join(f"{key}={value}" for key, value in parameters.items())
        yield name, {**numbers_of(model, X), "certificate": np.float64(model.regret_bound(model.coef_, weighted=True))}
    y = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > 1)
    for loss in ("log_loss", "hinge", "perceptron"):
        for update in ("implicit", "explicit", "importance"):
            if loss == "perceptron" and update != "explicit":
                continue
            model = MirrorDescentClassifier(
                divergence="squared_euclidean", loss=loss, update=update, eta0=0.1
            ).partial_fit(X, y, classes=[0, 1, 2])
            yield f"MirrorDescentClassifier/{loss},{update}", numbers_of(model, X)
    path = LearningRatePath(MirrorDescentRegressor(divergence="squared_euclidean"), eta0s=[0.01, 0.1, 1.0])
    path.partial_fit(X, X @ np.ones(5))
    yield "LearningRatePath/three", numbers_of(path, X)


def of_the_normalised_models():
    """Mirror descent in the divergence that is its default, which came after the arrays above."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 5)) * np.exp(rng.normal(size=5))
    y = X @ np.ones(5) + 3.0
    for loss in ("squared_error", "log_loss", "absolute_error", "huber"):
        for update in ("implicit", "explicit", "importance"):
            model = MirrorDescentRegressor(loss=loss, update=update, eta0=0.3, track_regret=True)
            model.partial_fit(X[:7], expit(y[:7]) if loss == "log_loss" else y[:7])
            model.partial_fit(X[7:], expit(y[7:]) if loss == "log_loss" else y[7:])
            numbers = numbers_of(model, X)
            yield (
                f"normalised/{loss},{update}",
                {**numbers, "certificate": np.float64(model.regret_bound(np.ones(5), weighted=True))},
            )
    for loss in ("log_loss", "hinge"):
        model = MirrorDescentClassifier(loss=loss).partial_fit(X, np.arange(40) % 3, classes=[0, 1, 2])
        yield f"normalised/{loss},classes", numbers_of(model, X)


def of_pairs_and_triplets():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(20, 4))
    pairs, triplets = rng.permuted(np.tile(np.arange(20), (15, 1)), axis=1)[:, :2], None
    triplets = rng.permuted(np.tile(np.arange(20), (15, 1)), axis=1)[:, :3]
    distances, labels = rng.uniform(0.5, 2.0, size=15), rng.choice([-1, 1], size=15)
    for cls in (LogDetMetricLearner, FrobeniusMetricLearner, VonNeumannMetricLearner):
        model = cls(random_state=0)
        yield f"{cls.__name__}/pairs", numbers_of(clone(model).partial_fit_pairs(X, pairs, distances), X)
        yield f"{cls.__name__}/labels", numbers_of(clone(model).partial_fit_pairs(X, pairs, labels=labels), X)
        yield f"{cls.__name__}/triplets", numbers_of(clone(model).partial_fit_triplets(X, triplets), X)
    wide, y = rng.normal(size=(30, 120)), rng.integers(2, size=30)
    model = LogDetMetricLearner(random_state=0).partial_fit(wide[:3], y[:3]).partial_fit(wide[3:], y[3:])
    yield "LogDetMetricLearner/120 features", {"distances": model.pair_distance(wide[:9], wide[9:18])}
    model = DefiniteBoostMetricLearner(random_state=0).fit(X, X[:, 0] > 0)
    yield "DefiniteBoostMetricLearner/labelled", numbers_of(model, X)
    model = MEGKernelLearner().partial_fit_pairs(pairs, distances, n_objects=20)
    yield "MEGKernelLearner/pairs", {"kernel": model.kernel_}


def trajectories():
    """(name, array) of everything; names contain the configuration, the kind of input, and the attribute."""
    for part in (of_every_configuration, of_the_general_models, of_the_normalised_models, of_pairs_and_triplets):
        for name, arrays in part():
            for attribute, array in arrays.items():
                yield f"{name}/{attribute}", array


def read():
    """The arrays of the golden file by their names."""
    with np.load(FILE) as file:
        names, lengths, numbers = file["names"], file["lengths"], file["numbers"]
    return dict(zip(names.tolist(), np.split(numbers, np.cumsum(lengths)[:-1]), strict=True))


def write(kept):
    """Write the golden file, as one long array, since in a file of thousands of arrays most bytes are headers."""
    found = kept | {name: np.ravel(array) for name, array in trajectories() if name not in kept}
    lengths = [len(array) for array in found.values()]
    np.savez_compressed(FILE, names=list(found), lengths=lengths, numbers=np.concatenate(list(found.values())))
    return len(found)


if __name__ == "__main__":
    if sys.argv[1:] in (["write"], ["add"]) or sys.argv[1:2] == ["renew"]:
        old = {} if sys.argv[1] == "write" else read()
        count = write({name: array for name, array in old.items() if not name.startswith(tuple(sys.argv[2:]))})
        print(f"{count} arrays in {FILE.name}, {FILE.stat().st_size / 1024:.0f} KiB")
    elif sys.argv[1:] == ["compare"]:
        golden, found = read(), {name: np.ravel(array) for name, array in trajectories()}
        changed = [name for name in golden if name in found and golden[name].tobytes() != found[name].tobytes()]
        print(*[f"changed: {name}" for name in changed], sep="\n")
        print(f"{len(changed)} of {len(golden)} changed; gone: {sorted(set(golden) - set(found))}")
        print(f"new: {len(set(found) - set(golden))}")
        sys.exit(bool(changed or set(golden) - set(found)))
    else:
        sys.exit(__doc__)
