"""The compiled map of columns of categories to indicators: images, cuts, undoing a call, copies."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.learners.forward import ForwardLearner
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.losses.loss import SquaredLoss
from onlinebregman._kernels.rows.one_hot import CATEGORIES, OneHotMap
from onlinebregman._kernels.rows.standardizer import Standardizer

from onlinebregman.schedules import Constant

MASK = np.array([False, True, False, True, True])
NUMERIC = np.flatnonzero(~MASK)


def one_hot(n_indicators=40, standardised=True):
    return OneHotMap(MASK, n_indicators, Standardizer(2, True, allow_nan=True) if standardised else None)


def learner_of(row_map):
    learner = Learner(EuclideanGeometry(np.zeros(row_map.n_outputs)), SquaredLoss())
    learner.configure(update="implicit", schedule=Constant(0.1))
    learner.map_by(row_map)
    return learner


def stream(rows=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5))
    X[:, MASK] = rng.integers([3, 9, 70], size=(rows, 3)) * [1, 1, 16]  # some have no indicator
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    return X, rng.normal(size=rows)


def images(X, n_indicators, weights=None):
    """The images of rows, each with the indicators given to the categories of the rows before and of itself."""
    places, rows = {}, []
    counts = Standardizer(2, True, allow_nan=True)
    learner = Learner(EuclideanGeometry(np.zeros(2)), SquaredLoss())
    learner.configure(update="implicit", schedule=Constant(0.1))
    learner.map_by(counts)
    for i, row in enumerate(X):
        image = np.zeros(2 + n_indicators)
        image[:2] = counts.transform(row[np.newaxis, NUMERIC])[0]
        known = dict(places)
        for j in np.flatnonzero(MASK):
            key = j, None if np.isnan(row[j]) else row[j]
            if key not in known and len(known) < n_indicators and (key[1] is None or key[1] < CATEGORIES):
                known[key] = len(known)
            if key in known:
                image[2 + known[key]] = 1.0
        rows.append(image)
        if weights is None or weights[i] > 0:
            places = known
            learner.learn(row[np.newaxis, NUMERIC].copy(), np.zeros(1), None if weights is None else weights[i : i + 1])
    return np.array(rows)


@pytest.mark.parametrize("n_indicators", [0, 3, 20, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_learning_rows_is_learning_their_images(n_indicators, weighted):
    X, y = stream()
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=len(y)) if weighted else None
    by_hand = Learner(EuclideanGeometry(np.zeros(2 + n_indicators)), SquaredLoss())
    by_hand.configure(update="implicit", schedule=Constant(0.1))
    Z = images(X, n_indicators, weights)
    learner = learner_of(one_hot(n_indicators))
    scores, expected = np.full((2, len(y)), np.nan)
    for i in range(len(y)):
        scores[i], expected[i] = learner.predict(X[i : i + 1])[0], by_hand.predict(Z[i : i + 1])[0]
        h = None if weights is None else weights[i : i + 1]
        assert learner.learn(X[i : i + 1], y[i : i + 1], h) is by_hand.learn(Z[i : i + 1], y[i : i + 1], h) is None
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(learner.coef, by_hand.coef, rtol=1e-12, atol=1e-13)
    assert np.ptp(scores) > 0.1


@pytest.mark.parametrize(
    "make",
    [
        learner_of,
        lambda row_map: ForwardLearner(row_map.n_outputs, (), 1.0, True, None, True, False, False),
        lambda row_map: ForwardLearner(row_map.n_outputs, (), 1.0, True, None, True, True, True),
    ],
    ids=["mirror descent", "forward", "centred forward"],
)
@pytest.mark.parametrize("cut", [1, 7, 80])
def test_cuts_and_copies_make_no_difference(make, cut, state):
    X, y = stream()
    whole, parts = make(one_hot()), make(one_hot())
    for learner in (whole, parts):
        if learner.row_map is None:
            learner.map_by(one_hot())
    assert whole.learn(X, y) is None
    for start in range(0, len(y), cut):
        assert parts.learn(X[start : start + cut], y[start : start + cut]) is None
        parts = pickle.loads(pickle.dumps(parts))
    assert state(whole) == state(parts)
    assert_array_equal(whole.predict(X), parts.predict(X))


@pytest.mark.parametrize("standardised", [True, False])
def test_what_a_call_changed_is_put_back(standardised, state):
    X, y = stream()
    if not standardised:
        X[:, NUMERIC] = np.nan_to_num(X[:, NUMERIC])
    learner, twin = (learner_of(one_hot(standardised=standardised)) for _ in range(2))
    for each in (learner, twin):
        assert each.learn(X[:10], y[:10]) is None
    before = state(learner)
    refused = X[10:].copy()
    refused[-1, 0] = np.inf
    assert learner.learn(refused, y[10:]) == ("not finite", 69)
    assert state(learner) == before
    assert learner.learn(X[40:], y[40:]) is twin.learn(X[40:], y[40:]) is None
    assert state(learner) == state(twin)


def test_columns_of_the_image_and_units_of_the_data():
    X, y = stream()
    learner = learner_of(one_hot(100))
    assert learner.learn(X, y) is None
    row_map = learner.row_map
    columns = row_map.columns
    assert columns[:2].tolist() == NUMERIC.tolist() and set(columns[2:]) == {1, 3, 4, -1}
    assert (columns == 1).sum() == 4  # three categories, and missing
    coef, intercept = row_map.in_units_of_data(learner.coef, learner.intercept)
    assert_array_equal(coef[2:], learner.coef[2:])
    assert_array_equal(coef[:2] * row_map.standardizer.scale, learner.coef[:2])
    assert intercept == learner.intercept - coef[:2] @ row_map.standardizer.mean


def test_maps_are_shared_if_their_images_are_the_same():
    assert one_hot().key() == one_hot().key()
    others = [one_hot(39), one_hot(standardised=False), OneHotMap(~MASK, 40, Standardizer(3, True, allow_nan=True))]
    assert len({row_map.key() for row_map in [one_hot(), *others]}) == 4
    with pytest.raises(ValueError, match="must be of 2 columns; got 3"):
        OneHotMap(MASK, 40, Standardizer(3, True))
