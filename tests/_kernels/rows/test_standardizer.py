"""The compiled standardiser: layouts, types, empty rows, and undoing a call."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.learners.forward import ForwardLearner
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.learners.multi_learner import MultiLearner
from onlinebregman._kernels.losses.loss import SquaredLoss
from onlinebregman._kernels.rows.standardizer import Standardizer
from scipy import sparse

from onlinebregman.schedules import Constant

D = 37


def learner_of(standardizer, d=D):
    learner = Learner(EuclideanGeometry(np.zeros(d)), SquaredLoss())
    learner.configure(update="implicit", schedule=Constant(0.1))
    learner.map_by(standardizer)
    return learner


def stream(rows=50, d=D, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d)) * (rng.uniform(size=(rows, d)) < density)
    X[3] = 0.0  # an empty row
    return X, rng.normal(size=rows)


def csr(X, index=np.int32, values=np.float64):
    X = sparse.csr_array(X, dtype=values)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def in_any_order(X, parts=1):
    """The columns of each row in reverse order, each value as a sum of `parts` equal ones, a power of 2."""
    X = csr(X)
    data, indices = (np.repeat(values, parts) for values in (X.data / parts, X.indices))
    for row in range(X.shape[0]):
        place = slice(parts * X.indptr[row], parts * X.indptr[row + 1])
        data[place], indices[place] = data[place][::-1].copy(), indices[place][::-1].copy()
    return sparse.csr_array((data, indices, parts * X.indptr), shape=X.shape)


LAYOUTS = {
    "dense": np.array,
    "float32": lambda X: X.astype(np.float32),
    "csr": csr,
    "csr, int64": lambda X: csr(X, np.int64),
    "csr, float32": lambda X: csr(X, values=np.float32),
    "csr, in any order": in_any_order,
    "csr, more values than columns": lambda X: in_any_order(X, 16),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("centred", [True, False])
def test_every_layout_gives_the_same_digits(layout, centred):
    X, y = stream()
    X = X.astype(np.float32).astype(np.float64)  # exact in every layout
    expected, found = (learner_of(Standardizer(D, centred)) for _ in range(2))
    assert expected.learn(X, y) is None and found.learn(LAYOUTS[layout](X), y) is None
    one, other = (learner.row_map for learner in (expected, found))
    assert_array_equal(one.mean, other.mean)
    assert_array_equal(one.scale, other.scale)
    assert_array_equal(one.transform(X), np.asarray(sparse.csr_array(other.transform(LAYOUTS[layout](X))).todense()))
    if layout in ("dense", "float32") or centred:  # sums over nonzeros have another order
        assert_array_equal(expected.coef, found.coef)
        assert_array_equal(expected.predict(X), found.predict(LAYOUTS[layout](X)))
    assert_allclose(expected.coef, found.coef, rtol=1e-10, atol=1e-13)


def test_the_statistics_are_those_of_the_rows():
    X, y = stream()
    h = np.random.default_rng(1).choice([0.0, 0.25, 2.0], size=len(y))
    h[:2] = 0.0
    centred, about_zero = (learner_of(Standardizer(D, kind)) for kind in (True, False))
    assert centred.learn(X, y, h) is None and about_zero.learn(csr(X), y, h) is None
    mean = np.average(X, axis=0, weights=h)
    assert_allclose(centred.row_map.mean, mean, rtol=1e-12, atol=1e-15)
    assert_allclose(centred.row_map.scale, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=h)), rtol=1e-12)
    assert_allclose(about_zero.row_map.scale, np.sqrt(np.average(X**2, axis=0, weights=h)), rtol=1e-12)
    assert not about_zero.row_map.mean.any()
    assert centred.row_map.n_samples_seen == about_zero.row_map.n_samples_seen == h.sum()
    coef, intercept = centred.row_map.in_units_of_data(np.arange(D), 1.0)
    near = abs(centred.row_map.transform(X)).max(axis=1) < 5
    scores = centred.row_map.transform(X) @ np.arange(D) + 1.0
    assert near.any() and not near.all()
    assert_allclose((X @ coef + intercept)[near], scores[near], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rows", [2, 40])  # a log of changes, or a full copy
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("make", ["one", "three", "forward"])
def test_what_a_call_changed_is_put_back(rows, layout, centred, make, state):
    X, y = stream()
    if make == "forward":
        learner = ForwardLearner(D, (), 1.0, True, None, True)
        learner.map_by(Standardizer(D, centred))
        weights = (None,)
    else:
        learner, weights = learner_of(Standardizer(D, centred)), ()
    if make == "three":
        learner = MultiLearner([learner_of(None) for _ in range(3)])
        learner.map_by(Standardizer(D, centred))
        y = y[:, np.newaxis]
    learner.learn(csr(X), y, *weights)
    before = state(learner)
    X, y = stream(rows + 5, seed=1)
    X, y = X[5:], y[5:] if make != "three" else y[5:, np.newaxis]
    X[-1, 30] = np.nan
    refused = learner.learn(LAYOUTS[layout](X), y, *weights)
    assert refused not in (None, -1) and state(learner) == before


def test_learners_side_by_side_share_their_statistics(state):
    X, y = stream()
    shared, own = Standardizer(D, True), Standardizer(D, True)
    together = MultiLearner([learner_of(shared) for _ in range(3)])
    alone = learner_of(own)
    assert together.learn(X, np.stack([y] * 3, axis=1)) is alone.learn(X, y) is None
    for one in together.learners:
        assert_array_equal(one.coef, alone.coef)
    assert state(shared) == state(own)
    for other in (None, Standardizer(D, False), own):
        for pair in ([together.learners[0], learner_of(other)], [learner_of(other), together.learners[0]]):
            with pytest.raises(ValueError, match="must share one map of rows"):
                MultiLearner(pair)


def test_squares_that_overflow_are_refused(state):
    for layout, centred in ((np.array, True), (csr, False)):
        learner = learner_of(Standardizer(9, centred), 9)
        assert learner.learn(layout(np.eye(9)), np.zeros(9)) is None
        before = state(learner)
        assert learner.learn(layout([[1e160, *[0.0] * 8]]), np.zeros(1)) == ("too large", 0)
        assert learner.learn(layout(np.eye(9)[:2]), np.zeros(2), np.full(2, 1e308)) == ("too large", 1)
        assert state(learner) == before
    tiny = learner_of(Standardizer(1, True), 1)
    assert tiny.learn(np.array([[0.0], [1e-160], [3e-160], [0.0]]), np.zeros(4), np.full(4, 1e300)) is None
    assert np.isfinite(tiny.row_map.transform(np.array([[1e308], [-1e308], [0.0]]))).all()


def test_what_is_not_finite_stays_so():
    standardizer = learner_of(None).row_map
    assert standardizer is None
    learner = learner_of(Standardizer(2, True), 2)
    assert learner.learn(np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 0.0]]), np.ones(3)) is None
    for value in (np.nan, np.inf, -np.inf):
        assert np.isnan(learner.row_map.transform(np.array([[0.0, value]]))).tolist() == [[False, True]]
        assert np.isnan(learner.row_map.transform(csr([[0.0, value]]))).tolist() == [[False, True]]


# --- missing values ---------------------------------------------------------------------------------------------------


def with_gaps(share=0.3, **options):
    """A stream with values missing at random from row 5 on, at first in column 1, always in column 2, never in 4."""
    X, y = stream(density=1.0, **options)
    X[5:][np.random.default_rng(7).uniform(size=X[5:].shape) < share] = np.nan
    X[:30, 1], X[:, 2] = np.nan, np.nan
    X[:, 4] = np.arange(len(X))
    return X, y


def test_a_missing_value_is_zero_and_does_not_count():
    X, y = with_gaps()
    h = np.random.default_rng(1).choice([0.0, 0.25, 2.0], size=len(y))
    learner = learner_of(Standardizer(D, True, allow_nan=True))
    for i, row in enumerate(X):
        seen, counted = X[:i], h[:i]
        expected = np.zeros(D)
        for j in range(D):
            there = np.isfinite(seen[:, j]) & (counted > 0)
            if np.isfinite(row[j]) and there.any():
                values, weights = seen[there, j], counted[there]
                mean = np.average(values, weights=weights)
                deviation = np.sqrt(np.average((values - mean) ** 2, weights=weights))
                expected[j] = np.clip((row[j] - mean) / deviation, -5, 5) if deviation > 1e-14 * abs(mean) else 0.0
        assert_allclose(learner.row_map.transform(X[i : i + 1])[0], expected, rtol=1e-9, atol=1e-12)
        assert learner.learn(X[i : i + 1], y[i : i + 1], h[i : i + 1]) is None
    standardizer = learner.row_map
    assert_allclose(standardizer.mean[5:], [np.average(x[x == x], weights=h[x == x]) for x in X.T[5:]], rtol=1e-11)
    assert standardizer.mean[2] == 0 and standardizer.scale[2] == 1  # always missing
    coef, intercept = standardizer.in_units_of_data(np.arange(D), 1.0)
    full = np.where(np.isnan(X), standardizer.mean, X)
    near = abs(standardizer.transform(X)).max(axis=1) < 5
    scores = standardizer.transform(X) @ np.arange(D) + 1.0
    assert near.any()
    assert_allclose((full @ coef + intercept)[near], scores[near], rtol=1e-9, atol=1e-9)


def test_rows_without_missing_values_get_the_same_digits():
    X, y = stream(density=1.0)
    plain, allowing = learner_of(Standardizer(D, True)), learner_of(Standardizer(D, True, allow_nan=True))
    assert plain.learn(X, y) is allowing.learn(X, y) is None
    gap = X[:1].copy()
    gap[0, 3] = np.nan
    assert allowing.learn(gap, y[:1]) is None and plain.learn(X[:1], y[:1]) is None
    for _ in range(2):  # columns without gaps also do after one has been seen
        others = np.arange(D) != 3
        assert_array_equal(plain.row_map.mean[others], allowing.row_map.mean[others])
        assert_array_equal(plain.row_map.scale[others], allowing.row_map.scale[others])
        plain_image, allowing_image = (learner.row_map.transform(X) for learner in (plain, allowing))
        assert_array_equal(plain_image[:, others], allowing_image[:, others])
        plain.learn(X, y), allowing.learn(X, y)
    assert plain.row_map.scale[3] != allowing.row_map.scale[3]


@pytest.mark.parametrize("cut", [1, 7, 50])
def test_missing_values_and_cuts(cut, state):
    X, y = with_gaps()
    whole, parts = (learner_of(Standardizer(D, True, allow_nan=True)) for _ in range(2))
    assert whole.learn(X, y) is None
    for start in range(0, len(X), cut):
        assert parts.learn(X[start : start + cut], y[start : start + cut]) is None
        parts = pickle.loads(pickle.dumps(parts))
    assert state(whole) == state(parts)


@pytest.mark.parametrize("known", [3, 20])  # rows before the call: without missing values, or with some
def test_a_refused_call_with_missing_values_is_undone(known, state):
    X, y = with_gaps()
    learner = learner_of(Standardizer(D, True, allow_nan=True))
    X[:3] = 0.5
    assert learner.learn(X[:known], y[:known]) is None
    before = state(learner)
    X[-1, 8] = np.inf
    assert learner.learn(X[known:], y[known:]) == ("not finite", len(X) - known - 1)
    assert state(learner) == before
