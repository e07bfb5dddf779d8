"""Neighbours and impostors of a stream: what is drawn, that cutting changes nothing, and that it pays."""

import contextlib
import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.matrices.neighbors import renew_places
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onlinebregman import LogDetMetricLearner
from onlinebregman.metric_learning import _memory, _pairs
from onlinebregman.metric_learning._memory import Reservoir, RunningSample, Uniforms
from onlinebregman.metric_learning._pairs import Block, NeighborTriplets
from onlinebregman.metric_learning._targets import Targets


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def sampler(d, memory_size=100, per_row=20, seed=0):
    rng = Uniforms(np.random.RandomState(seed))
    return NeighborTriplets(d, memory_size, per_row, Targets(np.eye(d), None, None, rng), rng)


def by_row(blocks):
    """The same, a block for each row."""
    for block in blocks:
        assert (np.diff(block.numbers) >= 0).all()
        for number in np.unique(block.numbers):
            yield Block(*(part[block.numbers == number] for part in block))


# --- what is drawn ----------------------------------------------------------------------------------------------------


def test_triplets_are_an_anchor_its_neighbours_and_its_impostors():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    L = np.diag([1.0, 5.0, 0.1])  # near in this metric
    blocks = list(by_row(sampler(3).draw(X, y, np.ones(60), lambda: L, again=False)))
    squared = pairwise_distances(X @ L) ** 2
    margins = []
    for row, block in zip(range(60 - len(blocks), 60), blocks, strict=True):
        before = np.arange(row)
        same, other = before[y[:row] == y[row]], before[y[:row] != y[row]]
        similar = same[np.argsort(squared[row, same])[: _pairs._NEAREST_SIMILAR]]
        impostors = other[np.argsort(squared[row, other])[: _pairs._NEAREST_IMPOSTORS]]
        margins.extend(((X[similar] - X[row]) ** 2).sum(axis=1))
        far, near = block.rows[:, :3] + X[row], block.rows[:, 3:] + X[row]
        assert {tuple(z.round(9)) for z in far} <= {tuple(z.round(9)) for z in X[impostors]}
        assert {tuple(z.round(9)) for z in near} <= {tuple(z.round(9)) for z in X[similar]}
        assert_array_equal(block.senses, -1.0)
        assert_array_equal(block.targets, block.scales)
    assert_allclose(blocks[-1].targets[0], np.median(margins), rtol=0.1)


def test_a_row_that_comes_again_is_not_its_own_neighbour(wine):
    X, y = wine
    drawn = sampler(13)
    list(drawn.draw(X, y, np.ones(len(X)), lambda: np.eye(13), again=False))
    blocks = list(by_row(drawn.draw(X, y, np.ones(len(X)), lambda: np.eye(13), again=True)))
    assert sum(drawn.memory.seen) == len(X) and len(blocks) == len(X)
    for block in blocks:
        assert (block.rows[:, 13:] != 0).any(axis=1).all()


def test_triplets_join_the_nearest_of_full_memories():
    """Rows of two classes, long after the first were replaced: the remembered ones are looked through one by one."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 6)), rng.integers(2, size=400)
    drawn, L = sampler(6, memory_size=30), rng.normal(size=(6, 6))
    list(drawn.draw(X, y, np.ones(400), lambda: L, again=False))
    assert drawn.memory.seen == np.bincount(y)[list(drawn.labels)].tolist() and len(drawn.memory) == 60
    x, kept, classes = rng.normal(size=(1, 6)), drawn.memory.rows[:, :6].copy(), drawn.memory.classes.copy()
    assert {tuple(row) for row in kept} <= {tuple(row) for row in X}
    (block,) = drawn.draw(x, y[:1], np.ones(1), lambda: L, again=False)
    squared = pairwise_distances(x @ L.T, kept @ L.T)[0]
    for columns, mask, count in (
        (slice(6, 12), classes == drawn.labels[y[0]], _pairs._NEAREST_SIMILAR),
        (slice(0, 6), classes != drawn.labels[y[0]], _pairs._NEAREST_IMPOSTORS),
    ):
        nearest = kept[mask][np.argsort(squared[mask])[:count]] - x
        found = block.rows[:, columns]
        assert {tuple(row) for row in found} <= {tuple(row) for row in nearest}
        assert len(np.unique(found, axis=0)) > 2  # 20 draws of 5


@pytest.mark.parametrize(
    "spoil",
    [
        lambda drawn: setattr(drawn, "components", np.eye(3)),
        lambda drawn: setattr(drawn, "origin", np.zeros(3)),
        lambda drawn: setattr(drawn.memory, "_rows", np.zeros((200, 5))),
        lambda drawn: setattr(drawn.memory, "_n", 10**6),
        lambda drawn: setattr(drawn.memory, "_classes", np.zeros(3, dtype=np.intp)),
        lambda drawn: setattr(drawn.targets, "_prior", np.eye(2)),
        lambda drawn: drawn.labels.update({0: 7}),
    ],
)
def test_what_does_not_fit_is_refused(wine, spoil):
    """Of a file that was tampered with: the loop that draws does not look at lengths."""
    X, y = wine
    drawn = sampler(13)
    list(drawn.draw(X[:100], y[:100], np.ones(100), lambda: np.eye(13), again=False))
    drawn.next_look = 10**9
    spoil(drawn)
    with pytest.raises(ValueError, match="must"):
        list(drawn.draw(X[:20], y[:20], np.ones(20), lambda: np.eye(13), again=False))


def test_the_metric_is_looked_up_by_row_counts(wine):
    X, y = wine
    looks = []

    def look():
        looks.append(drawn.n_rows)
        return np.eye(13)

    drawn = sampler(13)
    for start in range(0, 178, 7):
        list(
            drawn.draw(
                X[start : start + 7], y[start : start + 7], np.ones(len(y[start : start + 7])), look, again=False
            )
        )
    assert looks[:8] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert max(np.diff(looks)) <= 50
    assert len(looks) < 40


# --- reservoirs -------------------------------------------------------------------------------------------------------


def test_the_reservoir_is_a_uniform_sample_of_each_class():
    counts = np.zeros(60)
    for seed in range(400):
        reservoir, rng = Reservoir(1, 5), np.random.RandomState(seed)
        for i in range(60):
            reservoir.add(np.array([float(i)]), int(i >= 20), rng)
        assert np.bincount(reservoir.classes).tolist() == [5, 5] and reservoir.seen == [20, 40]
        counts[reservoir.rows[:, 0].astype(int)] += 1
    assert_allclose(counts[:20] / 400, 5 / 20, atol=0.1)
    assert_allclose(counts[20:] / 400, 5 / 40, atol=0.1)


@pytest.mark.parametrize("size", [1, 5, 100])
def test_rows_are_taken_into_a_reservoir_in_one_go_as_they_are_one_by_one(size, state):
    X, numbers = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32), [0, 1, 0, 2, 1, 1] * 50
    (one, draws), (all_, draws_of_all) = ((Reservoir(2, size), Uniforms(np.random.RandomState(0))) for _ in range(2))
    for x, number in zip(X, numbers, strict=True):
        one.add(x, number, draws)
    for part in (slice(0, 1), slice(1, 4), slice(4, 200), slice(200, 300)):
        all_.add_all(X[part], numbers[part], draws_of_all)
    assert state(all_) == state(one) and state(draws_of_all) == state(draws)
    with pytest.raises(ValueError, match="must be of 2 values"):
        all_.add_all(X[:2], [0, 4], draws)  # class 3 has not come
    with pytest.raises(ValueError, match="must have 3 values"):
        all_.add_all(np.ones((2, 3)), [0, 1], draws)


def test_places_are_those_in_the_metric():
    rng = np.random.default_rng(0)
    for n, d in ((0, 3), (1, 3), (7, 1), (30, 5)):
        rows, origin, L = np.ones((n, 2 * d + 1)), rng.normal(size=d), rng.normal(size=(d, d))
        rows[:, :d] = rng.normal(size=(n, d))
        x = rows[:, :d].copy()
        renew_places(rows, origin, L)
        assert_array_equal(rows[:, :d], x)
        assert_allclose(rows[:, d:-1], (x - origin) @ L.T, rtol=1e-12, atol=1e-12)
        assert_allclose(rows[:, -1], (rows[:, d:-1] ** 2).sum(axis=1), rtol=1e-12)
    with pytest.raises(ValueError, match="must be of 5 features"):
        renew_places(rows, origin, L[:4])


def test_running_samples_do_not_depend_on_the_cutting():
    values = np.random.default_rng(0).normal(size=5000)
    whole, cut = RunningSample(100), RunningSample(100)
    whole.add(values, np.random.RandomState(0))
    rng = np.random.RandomState(0)
    for part in np.split(values, [1, 50, 130, 131, 4000]):
        cut.add(part, rng)
    assert whole.percentiles([5, 50, 95]) == cut.percentiles([5, 50, 95])
    assert_allclose(whole.percentiles([50]), 0.0, atol=0.3)


@pytest.mark.parametrize("pairs", ["neighbors", "random"])
def test_one_row_at_a_time_learns_as_a_batch(wine, pairs):
    X, y = wine
    labels = np.array(["one", "two", "three"])[y]
    batch = LogDetMetricLearner(sampling=pairs, random_state=0, memory_size=20).partial_fit(X, labels)
    rows = LogDetMetricLearner(sampling=pairs, random_state=0, memory_size=20)
    for i in range(len(X)):
        rows.partial_fit(X[i : i + 1], labels[i : i + 1])
        if i % 50 == 0:
            rows = pickle.loads(pickle.dumps(rows))
    assert batch.n_updates_ > 1000
    assert_array_equal(batch.components_, rows.components_)
    assert (batch.bounds_, batch.margin_) == (rows.bounds_, rows.margin_)
    fitted = LogDetMetricLearner(sampling=pairs, random_state=0, memory_size=20, max_iter=1, shuffle=False).fit(
        X, labels
    )
    assert_array_equal(batch.components_, fitted.components_)
    other = LogDetMetricLearner(sampling=pairs, random_state=1, memory_size=20).partial_fit(X, labels)
    assert not np.array_equal(batch.components_, other.components_)


@pytest.mark.exhaustive
def test_a_long_stream_in_little_memory():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=3000)
    X = rng.normal(size=(3000, 30))
    for pairs in ("neighbors", "random"):
        learner = LogDetMetricLearner(sampling=pairs, memory_size=50, random_state=0).partial_fit(X[:200], y[:200])
        tracemalloc.start()
        learner.partial_fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8e6  # one array of all its instances would have 29e6
        assert len(learner._sampler.memory) == 150


# --- odd streams ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", ["neighbors", "random"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.arange(30.0)[:, None], ["only"] * 30),  # one class
        (np.arange(30.0)[:, None], [True, False] * 15),  # one feature
        ([[0.0, 1.0]] * 2, ["a", "b"]),  # two equal rows
        ([[0.0, 1.0]] * 20, ["a", "b"] * 10),  # nothing but equal rows
        (np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0), [0, 1] * 20),  # each in both classes
        ([[1.0, 2.0]], [0]),  # one row
        (np.eye(3), ["a", "b", "c"]),  # classes of one row
    ],
)
def test_odd_streams_leave_a_sound_metric(X, y, pairs):
    learner = LogDetMetricLearner(sampling=pairs, random_state=0, max_iter=3)
    with pytest.warns(UserWarning, match="one class") if len(set(y)) == 1 else contextlib.nullcontext():
        learner.fit(X, y)
    W = learner.get_mahalanobis_matrix()
    assert np.isfinite(W).all() and np.linalg.eigvalsh(W)[0] > 0
    assert np.isfinite(learner.loss_curve_).all()
    if len(set(y)) == 1 or (pairs == "neighbors" and len(set(y)) == len(y)):
        assert learner.n_updates_ == 0
        assert_array_equal(W, np.eye(len(W)))


def test_equivariant_under_linear_maps(wine):
    """The neighbours of mapped rows are the same rows, if the prior is mapped along."""
    X, y = wine
    M = np.random.default_rng(1).normal(size=(13, 13)) + 5 * np.eye(13)
    inverse = np.linalg.inv(M)
    plain = LogDetMetricLearner(random_state=0).partial_fit(X, y)
    mapped = LogDetMetricLearner(random_state=0, prior=inverse @ inverse.T).partial_fit(X @ M, y)
    assert_allclose(mapped.pairwise_distances(X @ M), plain.pairwise_distances(X), rtol=1e-5, atol=1e-9)


# --- what comes out ---------------------------------------------------------------------------------------------------


def test_precomputed_distances_in_neighbours(wine):
    X, y = wine
    learner = LogDetMetricLearner(random_state=0).fit(X[::2], y[::2])
    by_map = KNeighborsClassifier(5).fit(learner.transform(X[::2]), y[::2])
    precomputed = KNeighborsClassifier(5, metric="precomputed").fit(learner.pairwise_distances(X[::2]), y[::2])
    assert_array_equal(
        precomputed.predict(learner.pairwise_distances(X[1::2], X[::2])), by_map.predict(learner.transform(X[1::2]))
    )
    distances = learner.pairwise_distances(X)
    assert_array_equal(distances.diagonal(), 0.0)
    assert_array_equal(distances, distances.T)
    assert_allclose(distances[0, 1:], learner.pair_distance(np.repeat(X[:1], 177, axis=0), X[1:]), rtol=1e-9)


def test_leading_directions(wine):
    X, y = wine
    whole = LogDetMetricLearner(random_state=0).fit(X, y)
    few = LogDetMetricLearner(random_state=0, n_components=2).fit(X, y)
    assert_array_equal(few.components_, whole.components_[:2])
    assert_array_equal(few.transform(X), whole.transform(X)[:, :2])
    assert_array_equal(few.get_mahalanobis_matrix(), whole.get_mahalanobis_matrix())
    assert few.get_feature_names_out().tolist() == ["logdetmetriclearner0", "logdetmetriclearner1"]
    assert few.set_output(transform="pandas").transform(X).shape == (178, 2)
    lengths = np.linalg.norm(whole.components_, axis=1)
    assert (np.diff(lengths) <= 0).all()
    with pytest.raises(ValueError, match="n_components must be at most the 13 features of X, or None for all; got 14"):
        LogDetMetricLearner(n_components=14).fit(X, y)


@pytest.mark.exhaustive
@pytest.mark.parametrize("standardised", [True, False])
def test_neighbours_beat_random_pairs_and_the_euclidean_metric(standardised):
    from onlinebregman.datasets import load_balance_scale

    X, y = load_balance_scale(return_X_y=True)
    splits = StratifiedShuffleSplit(3, test_size=0.3, random_state=0)
    error = {}
    for pairs in ("neighbors", "random", "none"):
        metric = "passthrough" if pairs == "none" else LogDetMetricLearner(sampling=pairs, random_state=0)
        model = make_pipeline(StandardScaler() if standardised else "passthrough", metric, KNeighborsClassifier(5))
        error[pairs] = 1 - cross_val_score(model, X, y, cv=splits).mean()
    assert error["neighbors"] < 0.6 * min(error["random"], error["none"])


@pytest.mark.exhaustive
def test_grid_search_over_rates_and_strategies():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogDetMetricLearner(random_state=0), KNeighborsClassifier(5))
    grid = {
        "logdetmetriclearner__eta0": [0.01, 0.1],
        "logdetmetriclearner__sampling": ["neighbors", "random"],
        "logdetmetriclearner__n_components": [None, 2],
    }
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.92
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_random_numbers_are_those_of_the_generator_however_they_are_asked_for(state, monkeypatch):
    monkeypatch.setattr(_memory, "_AHEAD", 512)
    expected = np.random.RandomState(5).random_sample(3000)
    whole, cut = (Uniforms(np.random.RandomState(5)) for _ in range(2))
    assert_array_equal(whole.random_sample(1500), expected[:1500])
    parts, kept = [], []
    for n in [1, 0, 510, 1, 1, 700, 287]:
        parts.append(cut.random_sample(n))
        kept.append(cut.copied())
    assert_array_equal(np.concatenate(parts), expected[:1500])
    assert state(cut) == state(whole)  # what is ahead does not tell how it came about
    for copied, end in zip(kept, np.cumsum([1, 0, 510, 1, 1, 700, 287]).tolist(), strict=True):
        assert_array_equal(copied.random_sample(900), expected[end : end + 900])  # each copy goes on by itself
    for again in (pickle.loads(pickle.dumps(cut)), copy.deepcopy(cut), cut):
        assert_array_equal(again.random_sample(1400), expected[1500:2900])


@pytest.mark.parametrize("seen", [3, 16, 17, 100])
def test_a_copy_of_a_reservoir_leaves_it_what_it_was(seen, state):
    rng = Uniforms(np.random.RandomState(0))
    reservoir = Reservoir(2, 40)
    for i in range(seen):
        reservoir.add(np.full(2, float(i)), i % 2, rng)
    before = state(reservoir)
    for _ in range(3):  # one after the other, each given up for the next
        other = reservoir.copied()
        for i in range(150):
            other.add(np.full(2, -1.0 - i), i % 2, rng)
        other.own()
        other.rows[:] = 0.0
        assert state(reservoir) == before
