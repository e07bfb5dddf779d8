"""Neighbours and impostors of a stream: what is drawn, what is undone, and odd streams."""

import contextlib
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.losses.loss import SquaredLoss
from onlinebregman._kernels.matrices.frobenius import FrobeniusGeometry
from onlinebregman._kernels.matrices.reservoir import Percentiles, Reservoir
from onlinebregman._kernels.matrices.sampler import (
    NEAREST_IMPOSTORS,
    NEAREST_SIMILAR,
    NeighborTriplets,
    RandomPairs,
    TargetTriplets,
)
from replica import uniform
from sklearn.metrics import pairwise_distances

from onlinebregman import DefiniteBoostMetricLearner, LogDetMetricLearner
from onlinebregman.metric_learning._memory import random_numbers
from onlinebregman.schedules import Constant

RATE = 1e-8  # so that W hardly changes


def sampler(d, memory_size=100, per_row=1, seed=0, kind=NeighborTriplets):
    percentiles = Percentiles(None, [5, 95], 2), Percentiles(None, [50], 1)
    made = kind(d, memory_size, random_numbers(seed), per_row, None, *percentiles)
    made.configure(loss=SquaredLoss(), one_sided=False, scaled=False)
    return made


def take_in(drawn, W, X, numbers, again=False):
    """Learn rows starting at W; returns the sum of the instances of the steps, and their number."""
    learner = Learner(FrobeniusGeometry(W), SquaredLoss())
    learner.configure(update="explicit", schedule=Constant(RATE))
    assert drawn.learn_by(learner, X, np.array(numbers, dtype=float), np.ones(len(X)), again) is None
    return (W - learner.coef) / RATE, learner.t


def of_triplet(x, similar, impostor):
    """X = p p' - q q'."""
    p, q = impostor - x, similar - x
    return np.outer(p, p) - np.outer(q, q)


def step_of(W, X, target):
    return (np.vdot(W, X) - target) * X


# --- what is drawn ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [NeighborTriplets, TargetTriplets])
def test_triplets_are_an_anchor_its_neighbours_and_its_impostors(kind):
    """Of the class, or of the fifth of the rows whose targets are nearest."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3 if kind is NeighborTriplets else rng.normal(size=60)
    W = np.diag([1.0, 25.0, 0.01])  # nearest rows in this metric
    squared = pairwise_distances(X @ np.sqrt(W)) ** 2
    drawn, margins, met = sampler(3, kind=kind), [], 0
    for row in range(60):
        step, n = take_in(drawn, W, X[row : row + 1], [y[row]])
        before = np.arange(row)
        gaps = np.abs(y[:row] - y[row])
        close = gaps == 0 if kind is NeighborTriplets or not row else gaps <= np.quantile(gaps, 0.2)
        same, other = before[close], before[~close]
        similar = same[np.argsort(squared[row, same])[:NEAREST_SIMILAR]]
        impostors = other[np.argsort(squared[row, other])[:NEAREST_IMPOSTORS]]
        margins.extend(((X[similar] - X[row]) ** 2).sum(axis=1))
        assert n == (len(similar) > 0 and len(impostors) > 0)
        if n:
            found = [of_triplet(X[row], X[i], X[j]) for i in similar for j in impostors]
            steps = np.array([step_of(W, each, drawn.margins.values[0]) for each in found])
            assert np.abs(steps - step).max(axis=(1, 2)).min() < 1e-5
            met += 1
    assert met == (57 if kind is NeighborTriplets else 58)
    assert_allclose(drawn.margins.values, np.median(margins), rtol=0.1)


def test_a_row_that_comes_again_is_not_its_own_neighbour(wine):
    X, y = wine
    drawn = sampler(13)
    take_in(drawn, np.eye(13), X, y)
    for i in range(len(X)):
        step, n = take_in(drawn, np.eye(13), X[i : i + 1], y[i : i + 1], again=True)
        assert n == 1
        values = np.linalg.eigvalsh(step)
        assert values[0] < -1e-3 or values[-1] > 1e-3
        assert min(abs(values[0]), abs(values[-1])) > 1e-3  # of rank two: q is not 0
    assert sum(drawn.get_state()["class_counts"]) == len(X) and drawn.n_rows == 2 * len(X)


def test_triplets_join_the_nearest_of_full_memories():
    """Rows of two classes, long after the first were replaced: the stored ones are searched one by one."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 6)), np.r_[0, 1, rng.integers(2, size=398)]
    drawn, L = sampler(6, memory_size=30), rng.normal(size=(6, 6))
    W = L.T @ L
    take_in(drawn, W, X, y)
    assert drawn.get_state()["class_counts"] == np.bincount(y).tolist() and len(drawn.sample()[0]) == 60
    x, (kept, classes) = rng.normal(size=(1, 6)), drawn.sample()
    assert {tuple(row) for row in kept[:, :6]} <= {tuple(row) for row in X}
    squared, kept = pairwise_distances(x @ L.T, kept[:, :6] @ L.T)[0], kept[:, :6]
    (similar, impostors) = (
        np.flatnonzero(mask)[np.argsort(squared[mask])[:count]]
        for mask, count in ((classes == 0, NEAREST_SIMILAR), (classes == 1, NEAREST_IMPOSTORS))
    )
    pairs = [(i, j) for i in similar for j in impostors]
    met = set()
    for _ in range(60):
        step, n = take_in(drawn, W, x, [0], again=True)
        found = [step_of(W, of_triplet(x[0], kept[i], kept[j]), drawn.margins.values[0]) for i, j in pairs]
        gaps = np.abs(np.array(found) - step).max(axis=(1, 2))
        assert n == 1 and gaps.min() < 1e-4
        met.add(pairs[int(gaps.argmin())])
    assert len({i for i, _ in met}) == NEAREST_SIMILAR and len({j for _, j in met}) == NEAREST_IMPOSTORS


def test_random_pairs_are_of_the_same_class_and_of_others_in_turn():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(80, 4)), np.arange(80) % 2
    for per_row in (1, 2):
        drawn = sampler(4, per_row=per_row, kind=RandomPairs)
        take_in(drawn, np.eye(4), X[:60], y[:60])
        for row in range(60, 80):
            (step, n), (near, far) = take_in(drawn, np.eye(4), X[row : row + 1], y[row : row + 1]), drawn.bounds.values
            steps = [
                [step_of(np.eye(4), np.outer(z, z), target) for z in X[row] - X[:row][(y[:row] == y[row]) == same]]
                for target, same in ((near, True), (far, False))
            ]
            ways = steps[0] if per_row == 1 else (np.array(steps[0])[:, None] + steps[1]).reshape(-1, 4, 4)
            assert n == per_row and np.abs(np.array(ways) - step).max(axis=(1, 2)).min() < 0.1
        squared = ((X[:, None] - X[None]) ** 2).sum(-1)[np.triu_indices(len(X), 1)]
        assert_allclose([near, far], np.percentile(squared, [5, 95]), rtol=0.3)


@pytest.mark.parametrize(
    ("place", "spoil"),
    [
        ("components", lambda components: np.eye(3)),
        ("origin", lambda origin: np.zeros(3)),
        ("components", lambda components: None),
        ("stored", lambda rows: np.zeros((200, 5))),
        ("classes", lambda classes: classes[:3]),
        ("class_counts", lambda counts: [*counts, 4]),
        ("classes", lambda classes: classes + 7),
        ("class_counts", lambda counts: [10**6, *counts[1:]]),
        (4, lambda prior: np.eye(2)),
        (3, lambda per_row: 0),
        ("n_rows", lambda n_rows: -1.0),
        ("n_collapsed", lambda n_collapsed: -1.0),
        (1, lambda size: -1),
        (5, lambda bounds: Percentiles(None, [5], 2)),
    ],
)
def test_what_does_not_fit_is_refused(wine, place, spoil):
    """From a manipulated file: the compiled loop does not check lengths."""
    X, y = wine
    drawn = sampler(13)
    take_in(drawn, np.eye(13), X[:100], y[:100])
    *arguments, state = drawn.__reduce__()[1]
    NeighborTriplets(*arguments, state)
    of = arguments if isinstance(place, int) else state
    of[place] = spoil(of[place])
    with pytest.raises(ValueError, match="must"):
        NeighborTriplets(*arguments, state)


@pytest.mark.parametrize("kind", [NeighborTriplets, RandomPairs])
@pytest.mark.parametrize("n", [1, 3, 60])
def test_a_sampler_is_rolled_back(wine, kind, n, state):
    """A call with one row or several, which read the metric, replace rows, and draw random numbers."""
    order = np.random.default_rng(0).permutation(178)
    X, y = wine[0][order], 2 - wine[1][order]  # classes numbered in order of appearance
    drawn, found = sampler(13, memory_size=5, per_row=50, kind=kind), []
    take_in(drawn, np.eye(13), X[:30], y[:30])
    for start in range(30, 110):
        before, savepoint = state(drawn), drawn.savepoint()
        take_in(drawn, np.eye(13), X[start : start + n], y[start : start + n])
        found.append(state(drawn))
        assert found[-1] != before
        drawn.rollback(savepoint)
        drawn.commit()
        assert state(drawn) == before
        learner = Learner(FrobeniusGeometry(np.eye(13)), SquaredLoss())
        learner.configure(update="explicit", schedule=Constant(RATE))
        some = X[start : start + n + 1]
        numbers = np.r_[y[start : start + n], 7.0]  # not the next class number
        assert drawn.learn_by(learner, some, numbers, np.ones(n + 1), False) == ("bad target", n)
        assert state(drawn) == before and learner.t == 0
        assert_array_equal(learner.coef, np.eye(13))
        take_in(drawn, np.eye(13), X[start : start + n], y[start : start + n])
        assert state(drawn) == found.pop()


# --- reservoirs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e5, 1e8, 1e12])
@pytest.mark.parametrize("place", [0, 30])
@pytest.mark.parametrize("sampling", ["neighbors", "targets"])
def test_a_row_far_off_does_not_end_learning(wine, sampling, place, size):
    """Only equal rows say nothing; images are not those around a row far off, where they would cancel."""
    X, y = wine
    order = np.random.default_rng(0).permutation(len(X))
    rows, targets = X[order], y[order].astype(float)
    outlier = np.r_[size, np.zeros(12)]
    plain, odd = (
        LogDetMetricLearner(sampling=sampling, random_state=0).partial_fit(
            np.insert(rows, place, outlier, axis=0) if far else rows,
            np.insert(targets, place, 9.0) if far else targets,
        )
        for far in (False, True)
    )
    assert odd.n_updates_ >= 0.9 * plain.n_updates_
    if sampling == "neighbors":
        W, expected = odd.get_mahalanobis_matrix(), plain.get_mahalanobis_matrix()
        assert np.corrcoef(W[1:, 1:].ravel(), expected[1:, 1:].ravel())[0, 1] > 0.9


# --- odd streams ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", ["neighbors", "random"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.arange(30.0)[:, None], ["only"] * 30),  # one class
        (np.arange(30.0)[:, None], [True, False] * 15),  # one feature
        ([[0.0, 1.0]] * 2, ["a", "b"]),  # two equal rows
        ([[0.0, 1.0]] * 20, ["a", "b"] * 10),  # only equal rows
        (np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0), [0, 1] * 20),  # each in both classes
        ([[1.0, 2.0]], [0]),  # one row
        (np.eye(3), ["a", "b", "c"]),  # classes of one row
    ],
)
def test_odd_streams_leave_a_sound_metric(X, y, pairs):
    learner = LogDetMetricLearner(sampling=pairs, random_state=0, max_iter=3)
    unlearned = len(set(y)) == 1 or (len(set(y)) == len(y) and (pairs == "neighbors" or np.ptp(X, axis=0).max() == 0))
    with pytest.warns(UserWarning, match="one class, or each of its own") if unlearned else contextlib.nullcontext():
        learner.fit(X, y)
    W = learner.get_mahalanobis_matrix()
    assert np.isfinite(W).all() and np.linalg.eigvalsh(W)[0] > 0
    assert np.isfinite(learner.loss_curve_).all()
    if len(set(y)) == 1 or (pairs == "neighbors" and len(set(y)) == len(y)):
        assert learner.n_updates_ == 0
        assert_array_equal(W, np.eye(len(W)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        W = DefiniteBoostMetricLearner().fit(X, y).get_mahalanobis_matrix()
    assert np.isfinite(W).all() and np.trace(W) == pytest.approx(len(W))


def test_equivariant_under_linear_maps(wine):
    """The neighbours of mapped rows are the same rows, if the prior is mapped, too."""
    X, y = wine
    M = np.random.default_rng(1).normal(size=(13, 13)) + 5 * np.eye(13)
    inverse = np.linalg.inv(M)
    plain = LogDetMetricLearner(random_state=0).partial_fit(X, y)
    mapped = LogDetMetricLearner(random_state=0, prior=inverse @ inverse.T).partial_fit(X @ M, y)
    assert_allclose(mapped.pairwise_distances(X @ M), plain.pairwise_distances(X), rtol=1e-5, atol=1e-9)


# --- what comes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3])
def test_late_rows_are_kept_by_the_numbers_of_the_generator(size):
    """Row number n of its class replaces row floor(u n) if that is below `size`."""
    reservoir, expected = Reservoir(1, size, 2**40 + 100), list(range(size))
    for n in range(size + 1, 4000):
        place = int(uniform(2**40 + 100 + n - size) * n)
        if place < size:
            expected[place] = n - 1
    for part in np.split(np.arange(3999.0), [1, 2, 700, 701]):
        assert reservoir.learn(part[:, None], np.zeros(len(part))) is None
        reservoir = pickle.loads(pickle.dumps(reservoir))
    assert reservoir.sample()[0][:, 0].tolist() == expected
