"""The map to indicators of bins: plain Python bins beside it, and laws (cuts, units, columns, undoing, files)."""

import pickle
from bisect import bisect_left, bisect_right, insort
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.learners.mapping import MapLearner
from onlinebregman._kernels.losses.loss import SquaredLoss
from onlinebregman._kernels.rows.thresholds import BINS, Bins, ThresholdMap, pairs_of, parts_of_pairs
from replica import uniform
from scipy import sparse

from onlinebregman.schedules import Constant

SAMPLE = 256

# --- the bins of one column in plain Python ---------------------------------------------------------------------------


class PlainBins:
    """Bins at a resolution: their least values in order, and their numbers."""

    def __init__(self, size):
        self.size, self.lower, self.number, self.different = size, [], [], set()

    @property
    def few(self):
        return len(self.different) <= self.size

    def bin_of(self, x):
        if np.isnan(x):
            return self.size
        if x not in self.different and len(self.different) < self.size:
            return len(self.different)
        return self.number[max(bisect_right(self.lower, x) - 1, 0)]

    def learn(self, x):
        if self.few and x not in self.different:
            self.different.add(x)
            if self.few:
                self.insert(x, len(self.lower))

    def insert(self, x, number):
        place = bisect_right(self.lower, x)
        self.lower.insert(place, x)
        self.number.insert(place, number)

    def balance(self, sample):
        for _ in range(self.size):
            edges = [0, *(bisect_left(sample, x) for x in self.lower[1:]), len(sample)]
            inside = [sample[start:end] for start, end in pairwise(edges)]
            large = [i for i, values in enumerate(inside) if values and values[0] < values[-1]]
            if not large:
                return
            largest = max(large, key=lambda i: (len(inside[i]), -i))
            pairs = [i for i in range(self.size - 1) if largest not in (i, i + 1)]
            if not pairs:
                return
            pair = min(pairs, key=lambda i: (len(inside[i]) + len(inside[i + 1]), i))
            if len(inside[largest]) <= 2 * (len(inside[pair]) + len(inside[pair + 1])):
                return
            values = inside[largest]
            median = next(x for x in values[len(values) // 2 :] if x > values[0])
            lighter = pair if len(inside[pair]) < len(inside[pair + 1]) else pair + 1
            free = self.number.pop(lighter)
            self.lower.pop(pair + 1)
            self.insert(median, free)


class Column:
    def __init__(self):
        self.bins, self.sample, self.n = [PlainBins(size) for size in BINS], [], 0

    def bins_of(self, x):
        return [bins.bin_of(x) for bins in self.bins]

    def learn(self, x):
        if np.isnan(x):
            return
        for bins in self.bins:
            bins.learn(x)
        self.n += 1
        place = int(uniform(self.n) * self.n)
        if len(self.sample) == SAMPLE and place < SAMPLE:
            self.sample.pop(place)
        if len(self.sample) < SAMPLE:
            insort(self.sample, x)
        if self.n >= 4 and self.n.bit_count() == 1:
            for bins in self.bins:
                if not bins.few:
                    bins.balance(self.sample)


def learn(threshold_map, X, weights=None):
    assert MapLearner(threshold_map.n_outputs, {"row_map": threshold_map}).learn(X, None, weights) is None


def progressive(threshold_map, X):
    """The indicators of each row before it was learned."""
    found = np.empty((len(X), threshold_map.widest), np.intp)
    for i in range(len(X)):
        found[i] = threshold_map.transform(X[i : i + 1])[0]
        learn(threshold_map, X[i : i + 1])
    return found


def known(threshold_map):
    """All that it knows, bit for bit."""
    return [part.tobytes() for part in threshold_map.bins.get_state().values()]


def bins_in(columns, n_features):
    """The bins, shape (n_rows, n_features, 3), of the single columns among the indicators."""
    start = np.cumsum([0, *(size + 1 for size in BINS)])
    bins = columns[:, : 3 * n_features].reshape(-1, n_features, 3)
    return bins - start[-1] * np.arange(n_features)[:, None] - start[:-1]


def stream(rows=3000, seed=0):
    """Many values, few, integers with a heavy one, one that starts late, one that moves, and one with gaps."""
    rng = np.random.default_rng(seed)
    late = np.where(np.arange(rows) < rows // 2, 0.0, rng.normal(size=rows))
    gaps = np.where(rng.uniform(size=rows) < 0.4, np.nan, rng.exponential(size=rows))
    return np.column_stack([
        rng.normal(size=rows), rng.integers(5, size=rows), rng.poisson(0.7, size=rows) * rng.integers(9, size=rows),
        late, np.sort(rng.normal(size=rows)), gaps, rng.integers(60, size=rows), np.full(rows, 7.0),
    ])  # fmt: skip


PAIRS = [(0, 1), (0, 3), (5, 2), (1, 6), (1, 4), (3, 2), (4, 6), (0, 6), (2, 3), (4, 5)]
COLUMNS = ("many", "few", "heavy", "late", "moving", "gaps", "integers", "constant")


@pytest.fixture(scope="module")
def found():
    return bins_in(progressive(ThresholdMap(len(COLUMNS), allow_nan=True), stream()), len(COLUMNS))


@pytest.mark.parametrize("name", COLUMNS)
def test_bins_are_those_of_plain_python(found, name):
    values, column = stream()[:, COLUMNS.index(name)], Column()
    for i, x in enumerate(values):
        assert list(found[i, COLUMNS.index(name)]) == column.bins_of(x), i
        column.learn(x)


def test_indicators_are_of_all_columns_and_pairs():
    X = stream(400)
    threshold_map = ThresholdMap(len(COLUMNS), PAIRS, allow_nan=True)
    columns = progressive(threshold_map, X)
    assert (np.diff(columns, axis=1) > 0).all()
    assert columns.min() >= 0 and columns.max() < threshold_map.n_outputs == 8 * 85 + 10 * (7**2 + 13**2)
    assert threshold_map.widest == 3 * 8 + 2 * 10
    bins, start = bins_in(columns, 8), 8 * 85
    for number, (i, j) in enumerate(threshold_map.pairs):
        for k in range(2):
            assert_array_equal(columns[:, 24 + 2 * number + k] - start, bins[:, i, k] * (BINS[k] + 1) + bins[:, j, k])
            start += (BINS[k] + 1) ** 2


def test_pairs_alone_have_the_indicators_that_they_have_beside_single_columns():
    X = stream(400)
    both, alone = (ThresholdMap(len(COLUMNS), PAIRS, singles, True) for singles in (True, False))
    assert alone.n_outputs == both.n_outputs - 8 * 85 and alone.widest == 20
    assert_array_equal(progressive(alone, X), progressive(both, X)[:, 24:] - 8 * 85)


def test_pairs_are_of_columns():
    for wrong in ([(0, 3)], [(-1, 0)]):
        with pytest.raises(ValueError, match="pairs must be of columns from 0 to 2"):
            ThresholdMap(3, wrong)


def test_parts_of_pairs_are_drawn():
    for d in (1, 2, 3, 7):
        assert pairs_of(np.arange(d * (d - 1) // 2), d).tolist() == [[i, j] for i in range(d) for j in range(i + 1, d)]
    for d in (0, 1, 2, 4):  # at most 6 pairs
        (every,) = parts_of_pairs(d, 6, 4, 0)
        assert_array_equal(every, pairs_of(np.arange(d * (d - 1) // 2), d))
    some = parts_of_pairs(5, 6, 3, 0)  # of 10 pairs
    assert [len({*map(tuple, part)}) for part in some] == [6, 6, 6] and len({*map(tuple, np.concatenate(some))}) == 10
    drawn = [[tuple(pair) for part in parts_of_pairs(40, 32, 4, seed) for pair in part] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2] and len(set(drawn[0])) == 128
    assert drawn[0][:32] == sorted(drawn[0][:32]) and all(0 <= i < j < 40 for i, j in drawn[0])
    wide = np.concatenate(parts_of_pairs(100_000, 32, 2, 0))
    assert len(wide) == 64 and (wide[:, 0] < wide[:, 1]).all() and wide.max() < 100_000


# --- laws -------------------------------------------------------------------------------------------------------------

values = st.floats(-1e300, 1e300) | st.integers(-9, 9).map(float) | st.just(np.nan)
rows = st.lists(st.tuples(values, values), min_size=1, max_size=90)


@settings(deadline=None, max_examples=60)
@given(rows, st.lists(st.integers(0, 90)), st.data())
def test_the_same_bins_however_the_stream_is_cut(given, cuts, data):
    X = np.array(given)
    weights = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 3.0]), min_size=len(X), max_size=len(X))))
    whole, parts, counted = (ThresholdMap(2, allow_nan=True) for _ in range(3))
    learn(whole, X, weights)
    learn(counted, np.ascontiguousarray(X[weights > 0]))
    edges = sorted({0, len(X), *(cut for cut in cuts if cut < len(X))})
    for start, end in pairwise(edges):
        parts = pickle.loads(pickle.dumps(parts))
        learn(parts, X[start:end], weights[start:end])
    assert known(whole) == known(parts) == known(counted)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-40, 40), min_size=1, max_size=150), st.floats(0.1, 2.0))
@example(list(range(80)), 0.5)
def test_increasing_functions_of_a_column_and_the_order_of_columns_change_nothing(given, power):
    x = np.array(given, dtype=float)
    other = np.sign(x) * np.abs(x) ** power * 1e-5 + 3.0
    there, back = (progressive(ThresholdMap(2), np.column_stack(pair)) for pair in ((x, other), (other, x)))
    assert_array_equal(bins_in(there, 2)[:, 0], bins_in(there, 2)[:, 1])
    assert_array_equal(there, back)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_have_zeros(kind):
    X = np.random.default_rng(0).normal(size=(300, 7)) * (np.random.default_rng(1).uniform(size=(300, 7)) < 0.3)
    dense, found = ThresholdMap(7), ThresholdMap(7)
    learn(dense, X)
    learn(found, kind(X))
    assert known(dense) == known(found)
    assert_array_equal(dense.transform(X), found.transform(kind(X)))


def learner_of(threshold_map):
    learner = Learner(EuclideanGeometry(np.zeros(threshold_map.n_outputs)), SquaredLoss())
    learner.configure(update="implicit", schedule=Constant(0.1))
    learner.map_by(threshold_map)
    return learner


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 20, 300, 600])
def test_a_refused_call_leaves_the_map_unchanged(n):
    """Of rows before and after the first ones, some of them at balanced counts."""
    X, y = stream(1200)[:, :6].copy(), np.arange(1200.0)
    learner = learner_of(ThresholdMap(6, allow_nan=True))
    for start in (0, 3, 60, 250, 508, 599):
        counted = learner.row_map.bins.get_state()["counted"][0]
        assert learner.learn(X[counted:start], y[: start - counted]) is None
        before = known(learner.row_map)
        assert learner.learn(X[start : start + n], np.r_[y[: n - 1], np.inf]) == ("bad target", n - 1)
        assert known(learner.row_map) == before


def test_a_learner_learns_the_indicators_of_rows():
    X, y = stream(900), np.random.default_rng(0).normal(size=900)
    alone = ThresholdMap(8, allow_nan=True)
    columns = progressive(alone, X)
    ones = sparse.csr_array((np.ones(columns.size), columns.ravel(), np.arange(901) * alone.widest))
    ones.resize(900, alone.n_outputs)
    mapped, plain = (learner_of(ThresholdMap(8, allow_nan=True)) for _ in range(2))
    plain.map_by(None)
    assert mapped.learn(X, y) is None and plain.learn(ones, y) is None
    assert_array_equal(mapped.coef, plain.coef)
    assert mapped.cumulative_loss == plain.cumulative_loss
    assert known(mapped.row_map) == known(alone)


@pytest.mark.parametrize(("wrong", "allow_nan"), [(np.inf, True), (-np.inf, True), (np.inf, False), (np.nan, False)])
def test_infinite_values_are_refused_and_missing_ones_unless_allowed(wrong, allow_nan):
    X = np.array([[1.0, 1.0], [1.0, wrong], [1.0, 1.0]])
    learner = learner_of(ThresholdMap(2, allow_nan=allow_nan))
    assert learner.learn(X, np.zeros(3)) == ("not finite", 1)
    assert known(learner.row_map) == known(ThresholdMap(2, allow_nan=allow_nan))
    assert [learner.predict(x[None]) is None for x in X] == [False, True, False]
    assert learner.predict(X) is None


def test_missing_values_of_sparse_rows_are_refused():
    X = sparse.csr_array(np.array([[1.0, 0.0], [np.nan, 1.0]]))
    assert learner_of(ThresholdMap(2, allow_nan=True)).learn(X, np.zeros(2)) == ("not finite", 1)


@pytest.mark.parametrize(
    ("name", "wrong"), [("kept", 257), ("kept", -1), ("different", 8), ("different", -1), ("number", 6), ("number", -1)]
)
def test_damaged_states_are_refused(name, wrong):
    threshold_map = ThresholdMap(3)
    learn(threshold_map, stream(40)[:, :3].copy())
    state = threshold_map.bins.get_state()
    assert [part.tobytes() for part in Bins(3, state).get_state().values()] == known(threshold_map)
    state[name].reshape(3, -1)[1, 0] = wrong
    with pytest.raises(ValueError, match=f"{name} must be from 0 to [0-9]+, or less; got"):
        Bins(3, state)
    state[name] = state[name][:2]
    with pytest.raises(ValueError, match=f"{name} must be of shape"):
        Bins(3, state)


def test_maps_have_the_same_images_if_their_keys_are_equal():
    first, same = ThresholdMap(20, [(0, 1), (2, 3)]), ThresholdMap(20, np.array([[0, 1], [2, 3]]))
    assert first.key() == same.key()
    for other in (
        ((21, [(0, 1), (2, 3)])),
        (20, [(0, 1)]),
        (20, [(0, 1), (2, 3)], False),
        (20, first.pairs, True, True),
    ):
        assert first.key() != ThresholdMap(*other).key()
