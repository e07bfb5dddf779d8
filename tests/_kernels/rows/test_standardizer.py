"""The compiled standardiser: shared statistics, missing and absurd values, and columns that move."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.learners.multi_learner import MultiLearner
from onlinebregman._kernels.losses.loss import SquaredLoss
from onlinebregman._kernels.rows.standardizer import Standardizer
from scipy import sparse
from sparse_rows import csr
from standardizer_replica import Replica

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


def assert_scores_in_units_of_data(standardizer, X):
    coef, intercept = standardizer.in_units_of_data(np.arange(D), 1.0)
    Z = standardizer.transform(X)
    near = abs(Z).max(axis=1) < 5
    assert near.any()
    assert_allclose((X @ coef + intercept)[near], (Z @ np.arange(D) + 1.0)[near], rtol=1e-9, atol=1e-9)


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


def test_weights_that_overflow_are_refused(state):
    for layout, centred in ((np.array, True), (csr, False)):
        learner = learner_of(Standardizer(9, centred), 9)
        assert learner.learn(layout(np.eye(9)), np.zeros(9)) is None
        before = state(learner)
        assert learner.learn(layout(np.eye(9)[:2]), np.zeros(2), np.full(2, 1e308)) == ("too large", 1)
        assert state(learner) == before
    tiny = learner_of(Standardizer(1, True), 1)
    assert tiny.learn(np.array([[0.0], [1e-160], [3e-160], [0.0]]), np.zeros(4), np.full(4, 1e300)) is None
    assert np.isfinite(tiny.row_map.transform(np.array([[1e308], [-1e308], [0.0]]))).all()


def test_what_is_not_finite_stays_so():
    assert learner_of(None).row_map is None
    learner = learner_of(Standardizer(2, True), 2)
    assert learner.learn(np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 0.0]]), np.ones(3)) is None
    for value in (np.nan, np.inf, -np.inf):
        assert np.isnan(learner.row_map.transform(np.array([[0.0, value]]))).tolist() == [[False, True]]
        assert np.isnan(learner.row_map.transform(csr([[0.0, value]]))).tolist() == [[False, True]]


# --- missing values ---------------------------------------------------------------------------------------------------


def test_a_missing_value_is_zero_and_does_not_count():
    X, y = stream(density=1.0)
    X[5:][np.random.default_rng(7).uniform(size=X[5:].shape) < 0.3] = np.nan
    X[:30, 1], X[:, 2], X[:, 4] = np.nan, np.nan, np.arange(len(X))  # missing at first, always, never
    h = np.random.default_rng(1).choice([0.0, 0.25, 2.0], size=len(y))
    learner = learner_of(Standardizer(D, True, allow_nan=True))
    replica = Replica(D)
    for i, row in enumerate(X):
        assert_allclose(learner.row_map.transform(X[i : i + 1])[0], replica.standardize(row)[0], rtol=1e-9, atol=1e-12)
        assert learner.learn(X[i : i + 1], y[i : i + 1], h[i : i + 1]) is None
        replica.count(row, h[i])
    standardizer = learner.row_map
    assert_allclose(standardizer.mean, replica.mean, rtol=1e-11)
    assert standardizer.mean[2] == 0 and standardizer.scale[2] == 1  # always missing
    assert_scores_in_units_of_data(standardizer, np.where(np.isnan(X), standardizer.mean, X))


# --- absurd values, and columns that move -----------------------------------------------------------------------------


def learned_from(X, h=None, **options):
    """The statistics of 64 independent columns."""
    standardizer = Standardizer(X.shape[1], not sparse.issparse(X), **options)
    assert learner_of(standardizer, X.shape[1]).learn(X, np.zeros(X.shape[0]), *(() if h is None else [h])) is None
    return standardizer


@pytest.mark.parametrize("value", [9999.0, -9999.0, 1e9, 1e300])
@pytest.mark.parametrize("row", [0, 1, 2, 3, 5, 100])
@pytest.mark.parametrize("kind", ["plain", "weights", "gaps", "far from 0", "whole numbers", "sparse", "float32"])
def test_one_absurd_value_is_forgotten(kind, row, value):
    rng = np.random.default_rng(row)
    X = rng.normal(size=(300, 64))
    h = rng.uniform(0.5, 2.0, size=300) if kind == "weights" else None
    if kind == "far from 0":
        X += 1000.0
    if kind == "whole numbers":
        X = np.round(3 * X)
    if kind == "gaps":
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    options = {"allow_nan": kind == "gaps"}
    clean = X.copy()
    X[row] = value
    if kind == "float32":
        X, clean = np.clip(X, -3e38, 3e38).astype(np.float32), clean.astype(np.float32)
    if kind == "sparse":
        X, clean = csr(X), csr(clean)
    found, expected = learned_from(X, h, **options), learned_from(clean, h, **options)
    ratio = found.scale / expected.scale
    assert np.median(ratio) < 1.15 and (ratio > 0.9).all() and (ratio < 2.0).mean() > 0.95
    assert np.median(abs(found.mean - expected.mean) / expected.scale) < 0.1


@pytest.mark.parametrize("kind", ["continuous", "two values", "few values", "heavy tails", "ten times as wide"])
@pytest.mark.parametrize("n", [3, 9, 30, 500])
def test_columns_that_do_not_move_have_the_mean_and_deviation_of_all_rows(kind, n):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 64)) if kind != "heavy tails" else rng.standard_t(2.5, size=(n, 64))
    if kind == "two values":
        X = 1.0 * (rng.uniform(size=(n, 64)) < rng.uniform(size=64) ** 2)
    elif kind == "few values":
        X = rng.integers(0, 4, size=(n, 64)) * 1.0
    elif kind == "ten times as wide":
        X[n // 2 :] *= 10.0
    found = learned_from(X)
    expected = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    close = np.isclose(found.mean, X.mean(axis=0), atol=1e-12) & np.isclose(found.scale, expected, rtol=1e-12)
    assert close.mean() > 0.9  # in others the third value was much nearer to one of the first two, by chance


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("factor", [0.12, 0.03, 1e-3])
def test_columns_whose_unit_grows_are_learned_anew(factor, scaled):
    X = np.random.default_rng(2).normal(size=(800, 64))
    unit = np.where(np.arange(800) < 400, 1.0, factor)[:, np.newaxis]
    found = learned_from(unit * X, scaled=scaled)
    assert (found.scale < 1.2 * factor).all() and (abs(found.mean) < 0.3 * factor).all()
    assert factor > 1e-3 or (learned_from(csr(unit * X)).scale < 1.2 * factor).all()


def test_columns_that_are_quiet_or_slow_by_nature_are_not_learned_anew():
    X, unit = np.random.default_rng(2).normal(size=(800, 64)), np.where(np.arange(800) < 400, 1.0, 1e-3)[:, np.newaxis]
    quiet_at_times = np.roll(np.tile(unit, (10, 1))[::10], 35, axis=0)
    rarely_not_zero = (unit == 1) | (X > 2)
    for each in (quiet_at_times * X, rarely_not_zero * unit * X, np.cumsum(X, axis=0), np.sort(X, axis=0)):
        assert (learned_from(each).get_state()["weights"] > 750).all()  # a first value may be forgotten
        assert_allclose(learned_from(csr(each)).scale, np.sqrt((each**2).mean(axis=0)), rtol=0.05)


def test_columns_that_are_only_limited_stay_in_units_of_the_data():
    """For learners that keep sums of rows: values move only where they are absurd or missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8)) * [1e-3, 1.0, 1e3, 1.0, 1.0, 1.0, 1.0, 1.0] + 20.0
    X[:, 3] = rng.uniform(size=200) < 0.02  # a column of two values is never limited
    limited, scaled = (learned_from(X, allow_nan=True, scaled=value) for value in (False, True))
    assert_array_equal(limited.mean[[0, 1, 2]], scaled.mean[[0, 1, 2]])
    inside = (abs(scaled.transform(X)) < 4.9).all(axis=1)
    assert inside.sum() > 150
    assert_array_equal(limited.transform(X[inside]), X[inside])
    assert_array_equal(limited.transform(X)[:, 3], X[:, 3])
    absurd = np.full((1, 8), np.nan)
    assert_array_equal(limited.transform(absurd)[0], limited.mean)
    assert_allclose(limited.transform(np.full((1, 8), 1e9))[0, :3], (limited.mean + 5 * limited.scale)[:3], rtol=1e-12)
    coef, intercept = limited.in_units_of_data(np.arange(8.0), 2.0)
    assert (coef == np.arange(8.0)).all() and intercept == 2.0
    assert pickle.loads(pickle.dumps(limited)).key() == limited.key() != scaled.key()


@pytest.mark.parametrize("make", [np.array, csr], ids=["dense", "sparse"])
@pytest.mark.parametrize("centred", [False, True])
def test_columns_of_values_whose_inverse_overflows_are_constant(centred, make):
    """Until there are larger values."""
    values = np.resize([1e-310, 2e-310, 0.0], 60)
    standardizer = Standardizer(2, centred)
    learner = learner_of(standardizer, 2)
    assert learner.learn(make(np.column_stack([values, -values])), np.ones(60)) is None
    assert_array_equal(standardizer.scale, [1.0, 1.0])
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(500, 2))
    assert learner.learn(make(X), np.ones(500)) is None
    expected = X.std(axis=0) if centred else np.sqrt((X**2).sum(axis=0) / 560)
    assert_allclose(standardizer.scale, expected, rtol=0.1)
