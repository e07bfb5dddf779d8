"""What defaults reach, end to end, on rows as they come: sorted, raw, late, changing for good, with a memory."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from onlinebregman import ForwardRegressor, MirrorDescentClassifier, ParameterFreeClassifier, ParameterFreeRegressor
from onlinebregman.linear_model import ForwardClassifier, ScaleInvariantClassifier
from onlinebregman.model_selection import progressive_val_predict


def some_rows(n):
    rng = np.random.default_rng(0)
    return rng, rng.normal(size=(n, 3))


@pytest.mark.parametrize(
    "kind", [ParameterFreeClassifier, ForwardClassifier, ScaleInvariantClassifier, MirrorDescentClassifier]
)
def test_iris_in_the_order_of_its_file(kind):
    scores = cross_val_score(kind(random_state=0), *load_iris(return_X_y=True))
    assert scores.mean() > 0.9 and scores.min() > 0.8


def test_intervals_after_a_shuffled_fit_cover_their_share():
    rng, X = some_rows(800)
    y = X.sum(axis=1) + rng.normal(size=800)
    order = np.argsort(y[:500])
    lower, upper = ParameterFreeRegressor(random_features=0).fit(X[order], y[order]).predict_interval(X[500:])
    assert 0.8 < ((lower <= y[500:]) & (y[500:] <= upper)).mean() < 0.97


def test_blocks_of_a_day_favour_what_predicts_a_day_ahead():
    """The last target predicts the next one, but not tomorrow's."""
    rng, n = np.random.default_rng(0), 24 * 60
    level = np.repeat(rng.normal(size=60), 24)  # of a day, known only when it has begun
    season = np.sin(np.arange(n) * 2 * np.pi / 24)
    X, y = np.c_[season, rng.normal(size=n)], 3 * level + 2 * season + 0.1 * rng.normal(size=n)
    errors, shares = {}, {}
    for delayed in (False, True):
        model = ParameterFreeRegressor(random_features=0, delayed=delayed)
        errors[delayed] = ((progressive_val_predict(model, X, y, chunk_size=24) - y[24:])[216:] ** 2).mean()
        lower, upper = progressive_val_predict(model, X, y, chunk_size=24, method="predict_interval")
        shares[delayed] = ((lower <= y[24:]) & (y[24:] <= upper))[216:].mean()
    assert errors[True] < 0.85 * errors[False]
    assert shares[False] < 0.7 and abs(shares[True] - 0.9) < 0.06


@pytest.mark.parametrize("shift, unit", [(50.0, 1.0), (1e3, 1.0), (0.0, 0.01)])
def test_lasting_changes_of_targets_are_followed(shift, unit):
    rng, X = some_rows(3000)
    truth = X @ [1.0, -2.0, 0.5]
    y = truth + rng.normal(size=3000)
    y[1000:] = unit * y[1000:] + shift
    model = ParameterFreeRegressor(random_features=0, thresholds=False).partial_fit(X, y)
    assert np.sqrt(np.mean((model.predict(X[-500:]) - (unit * truth[-500:] + shift)) ** 2)) < unit


@pytest.mark.parametrize("make", [np.array, csr_array])
def test_a_unit_of_all_columns_that_grows_is_followed(make):
    rng, X = some_rows(1500)
    X[rng.uniform(size=X.shape) < 0.4] = 0.0
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=1500)
    X[600:] /= 1000.0
    model = ParameterFreeRegressor().partial_fit(make(X[:1200]), y[:1200])
    assert ((model.predict(make(X[1200:])) - y[1200:]) ** 2).mean() < 0.1 * y.var()


def test_labels_that_cycle_and_numbers_that_walk_are_known():
    rng, X = some_rows(600)
    y = np.arange(600) % 24
    model = ParameterFreeClassifier(members=[MirrorDescentClassifier(eta0=0.3), ForwardClassifier()])
    said = progressive_val_predict(model, X, y, classes=np.arange(24))
    assert (said[-300:] == y[-300:]).all()
    y = 5.0 + X @ [1.0, -0.5, 0.2] + np.cumsum(rng.normal(size=600))
    remembering = ParameterFreeRegressor(members=[ForwardRegressor()]).partial_fit(X, y)
    plain = ParameterFreeRegressor(members=[ForwardRegressor()], memory=False).partial_fit(X, y)
    assert remembering.cumulative_loss_ < 0.1 * plain.cumulative_loss_


def test_raw_columns_are_learned_better_than_by_sgd_on_scaled_ones():
    """In the mean of several orders."""
    X, y = load_diabetes(return_X_y=True)
    Z, z = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    ours = theirs = 0.0
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(len(y))
        ours += ((progressive_val_predict(ParameterFreeRegressor(), X[order], y[order]) - y[order][1:]) ** 2).sum()
        said = progressive_val_predict(SGDRegressor(random_state=0), Z[order], z[order])
        theirs += y.var() * ((said - z[order][1:]) ** 2).sum()
    assert ours < 0.97 * theirs
