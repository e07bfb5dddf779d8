"""The loop over rows: calls learn all rows or none, in any order, with the settings of their call, also together."""

import contextlib
import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.geometries.adaptive import AdaGradGeometry
from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.geometries.pnorm import PNormGeometry
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.learners.multi_learner import MultiLearner
from onlinebregman._kernels.losses.loss import HingeLoss, LogisticLoss, SquaredLoss
from scipy import sparse
from sparse_rows import csr

from onlinebregman._kernels.geometries import entropy as entropies
from onlinebregman.schedules import Constant

GEOMETRIES = {
    "euclidean": lambda d: EuclideanGeometry(np.zeros(d)),
    "euclidean, signed": lambda d: EuclideanGeometry(np.full(2 * d, 0.5), True),
    "euclidean, clipped": lambda d: EuclideanGeometry(np.zeros(d), upper=0.05),
    "euclidean, ball": lambda d: EuclideanGeometry(np.zeros(d), radius=0.1),
    "relative entropy": lambda d: entropies.EntropyGeometry(np.full(d, 1.0 / d)),
    "simplex": lambda d: entropies.SimplexGeometry(np.full(d, 1.0 / d)),
    "simplex, signed": lambda d: entropies.SimplexGeometry(np.full(2 * d, 0.5 / d), True),
    "burg": lambda d: entropies.BurgGeometry(np.full(d, 1.0 / d)),
    "binary entropy": lambda d: entropies.BinaryEntropyGeometry(np.full(d, 0.5)),
    "p-norm": lambda d: PNormGeometry(np.zeros(d), 3.0),
}
D = 60


def learner_of(geometry, loss=None, *, d=D, eta0=0.1, update="implicit", **settings):
    learner = Learner(GEOMETRIES[geometry](d) if isinstance(geometry, str) else geometry, loss or SquaredLoss())
    learner.configure(update=update, schedule=Constant(eta0), **settings)
    return learner


def stream(seed, rows, d=D, density=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d)) * (rng.uniform(size=(rows, d)) < density)
    return X, rng.normal(size=rows)


def same(one, other):
    assert_array_equal(one.coef, other.coef)
    assert one.intercept == other.intercept
    assert (one.t, one.run["moves"], one.cumulative_loss) == (other.t, other.run["moves"], other.cumulative_loss)


# --- all or nothing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("rows", [4, 30])  # of six values each: fewer than weights, or more
@pytest.mark.parametrize("fault", ["target", "value"])
def test_an_error_at_the_last_row_undoes_the_call(geometry, average, rows, fault):
    learner = learner_of(geometry, average=average, fit_intercept=True, track_regret=True)
    X, y = stream(0, 50)
    assert learner.learn(csr(X), y) is None
    before, again = pickle.dumps(learner), pickle.loads(pickle.dumps(learner))
    X, y = stream(1, rows)
    if fault == "target":
        y[-1] = np.nan
    else:
        X[-1, D - 1] = np.inf
    for layout in (csr(X), csr(X, np.int64), csr(X, values=np.float32), X):
        refused = learner.learn(layout, y)
        assert refused == ({"target": "bad target", "value": "not finite"}[fault], rows - 1)
        assert pickle.dumps(learner) == before
    # in a given order, with repeated rows
    order = np.r_[np.random.default_rng(2).integers(rows - 1, size=rows - 1), rows - 1]
    assert learner.learn(csr(X), y, np.ones(rows), order)[1] == rows - 1
    assert pickle.dumps(learner) == before
    # and continues as if the failed call had not happened
    for one in (learner, again):
        assert one.learn(csr(X[:-1]), y[:-1]) is None
    same(learner, again)


@pytest.mark.parametrize("average", [False, True])
def test_rows_that_move_all_weights_start_again_from_a_copy(average):
    """The total of the unnormalised weights leaves its range within a block, so that all weights are rescaled."""
    settings = {"update": "explicit", "eta0": 1.0, "average": average}
    x = np.zeros((4, D))
    x[:, 3], x[2, 4] = 1.0, -1.0
    y = np.array([8.0, 8.0, 8.0, 0.5])
    block, cut, dense = (learner_of("simplex", **settings) for _ in range(3))
    assert block.learn(csr(x), y) is None
    for i in range(4):
        assert cut.learn(csr(x[i : i + 1]), y[i : i + 1]) is None
    assert dense.learn(x, y) is None
    same(block, cut)
    assert block.geometry.get_state()["total"] < 1e4 < np.exp(7) ** 2 / D
    assert_allclose(block.coef, dense.coef, rtol=1e-12)
    before = pickle.dumps(block)
    assert block.learn(csr(x), np.r_[y[:3] + 8.0, np.nan]) == ("bad target", 3)
    assert pickle.dumps(block) == before


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("layout", [csr, np.ascontiguousarray])
def test_blocks_in_an_order_are_the_rows_in_that_order(geometry, average, layout):
    X, y = stream(3, 12)
    order = np.random.default_rng(0).permutation(12)
    weights = np.random.default_rng(1).integers(0, 3, size=12).astype(float)
    block, cut = (learner_of(geometry, average=average, fit_intercept=True) for _ in range(2))
    scores, seen = np.zeros(12), np.zeros(1)
    assert block.learn(layout(X), y, weights, order, scores) is None
    for i in order:
        row = layout(X[i : i + 1])
        if weights[i] > 0:  # where weights are averaged, by the average
            assert_allclose(cut.predict(row, linked=False), scores[i], rtol=1e-12, atol=1e-15)
        assert cut.learn(row, y[i : i + 1], weights[i : i + 1], None, seen) is None
        assert_array_equal(seen[0], scores[i])
    assert_array_equal(np.isnan(scores), weights == 0)
    same(block, cut)


# --- how rows are read ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("columns", [[-1, 2, 3], [1, 2, D], [0, 5, D + 9], [7, 1, -1], [D, 1, 1]])
@pytest.mark.parametrize("row", [0, 2])
def test_columns_out_of_range_are_not_read(columns, row, index):
    X = csr(np.ones((3, D)), index)
    X.data, X.indptr = np.ones(9), np.array([0, 3, 6, 9], dtype=index)
    X.indices = np.tile(np.array([2, 4, 6], dtype=index), 3)
    learner = learner_of("euclidean")
    assert learner.learn(X, np.ones(3)) is None
    X.indices[3 * row : 3 * row + 3] = columns
    before = pickle.dumps(learner)
    with pytest.raises(TypeError, match="column indices in range"):
        learner.learn(X, np.ones(3))
    assert pickle.dumps(learner) == before


# --- the fast path ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["implicit", "explicit"])
@pytest.mark.parametrize("radius", [np.inf, 1e300])
@pytest.mark.parametrize("fault", ["target", "row", "step"])
def test_both_ways_refuse_alike(update, radius, fault):
    learner = learner_of(EuclideanGeometry(np.ones(3), radius=radius), update=update)
    X, y = np.ones((2, 3)), np.ones(2)
    expected = {"target": "bad target", "row": "not finite", "step": "overflowed"}[fault]
    if fault == "target":
        y[1] = np.nan
    elif fault == "row":
        X[1, 1] = -np.inf
    else:
        X[1], y[1] = 1e-10, -1.7e308
        learner.configure(update=update, schedule=Constant(1e10))
    before = pickle.dumps(learner)
    assert learner.learn(X, y) == (expected, 1)
    assert pickle.dumps(learner) == before


def test_predictions_after_a_rollback_are_of_the_rows_learned_since():
    """As many as were undone, so that the number of rows is that of a prediction before."""
    X, y = stream(7, 30, 4, density=1.0)
    learner, other = (learner_of("euclidean", d=4, average=True) for _ in range(2))
    savepoint = learner.savepoint()
    learner.learn(X[:10], y[:10])
    undone = [learner.predict(X) for _ in range(2)]  # the second one by a model with the averaged weights
    learner.rollback(savepoint)
    learner.commit()
    for each in (learner, other):
        each.learn(X[10:20], y[10:20])
    assert learner.t == other.t == 10
    for before in undone:
        assert_array_equal(learner.predict(X), other.predict(X))
        assert np.abs(learner.predict(X) - before).max() > 1e-3


@pytest.mark.parametrize("geometry", [EuclideanGeometry(np.zeros(4)), AdaGradGeometry(np.zeros(4))])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("end", ["rolled back", "refused", "schedule"])
def test_settings_are_those_of_their_call_and_undone_with_it(geometry, together, end, state):
    def refuse(*_):
        raise ArithmeticError("no rates")

    broken = SimpleNamespace(sees_norm=False, offset=0, sees_loss=False, is_power_law=False, rates=refuse)
    X, y = np.abs(stream(9, 20, 4, density=1.0)[0]), np.ones((20, 2) if together else 20)
    learners = [learner_of(copy.copy(geometry), d=4, average=3, track_regret=True) for _ in range(2)]
    learner = MultiLearner(learners) if together else learners[0]
    assert learner.learn(X[:10], y[:10]) is None
    before, savepoint = state(learner), learner.savepoint()
    learner.configure(update="explicit", schedule=broken if end == "schedule" else Constant(0.001), fit_intercept=True)
    assert state(learner) == before
    y[-1] = np.nan if end == "refused" else 1.0
    with contextlib.suppress(ArithmeticError):
        assert learner.learn(X[10:], y[10:]) == (("bad target", 9) if end == "refused" else None)
    assert (state(learner) == before) == (end != "rolled back")
    learner.rollback(savepoint)
    assert state(learner) == before


def test_rates_that_are_tracked_again_are_those_since_then():
    X, y = stream(8, 4, 4, density=1.0)
    learner = learner_of("euclidean", d=4, eta0=0.1, track_regret=True)
    for eta0, tracked in ((0.1, (0.1, 0.1, False)), (0.3, (0.1, 0.3, True)), (0.2, (0.1, 0.2, True))):
        learner.configure(update="implicit", schedule=Constant(eta0), track_regret=True)
        learner.learn(X, y)
        assert learner.tracked_rates == tracked
    for track_regret in (False, True):
        learner.configure(update="implicit", schedule=Constant(0.2), track_regret=track_regret)
        assert learner.tracked_rates == (0.0, 0.0, False)
    learner.learn(X, y)
    assert learner.tracked_rates == (0.2, 0.2, False)


@pytest.mark.parametrize(
    "order", [np.arange(3.0), np.arange(3, dtype=np.int32), np.arange(6)[::2], np.zeros((3, 1), int)]
)
def test_an_order_that_cannot_be_read_as_it_lies_is_refused(order):
    learner = Learner(EuclideanGeometry(np.zeros(2)), SquaredLoss())
    with pytest.raises(TypeError, match="the order of rows must be"):
        learner.learn(np.ones((3, 2)), np.ones(3), order=order)
    assert learner.t == 0


def test_an_order_may_repeat_rows_and_must_be_of_their_numbers():
    """All values are saved of rows that are learned more often than they are stored."""
    X = np.zeros((3, D))
    X[0, :5], X[1, 0], X[2, 0] = 1.0, 1.0, np.inf
    learner, rows = learner_of("euclidean"), sparse.csr_array(X)
    assert learner.learn(rows[:2], np.ones(2)) is None
    before = pickle.dumps(learner)
    assert learner.learn(rows, np.ones(3), None, np.array([0] * 8 + [1, 2])) == ("not finite", 2)
    assert pickle.dumps(learner) == before
    with pytest.raises(ValueError, match="numbers of 3 rows; got 3"):
        learner.learn(rows, np.ones(3), None, np.array([0, 3]))


# --- learners that learn together are bit for bit the same as alone ---------------------------------------------------


def members(kinds, d, losses=None, **settings):
    """Learners of these geometries, with different rates."""
    learners = []
    for k, kind in enumerate(kinds):
        learner = Learner(GEOMETRIES[kind](d), losses[k] if losses else SquaredLoss())
        options = {"update": "implicit", "fit_intercept": True, **settings}
        learner.configure(schedule=Constant(0.3 * 0.7**k), **options)
        learners.append(learner)
    return learners


@settings(max_examples=80)
@given(
    seed=st.integers(0, 2**32 - 1),
    kinds=st.one_of(
        st.integers(1, 11).map(lambda k: ["euclidean"] * k),
        st.lists(st.sampled_from(list(GEOMETRIES)), min_size=1, max_size=6),
    ),
    d=st.integers(1, 40),
    layout=st.sampled_from([np.ascontiguousarray, sparse.csr_array, np.float32]),
    update=st.sampled_from(["implicit", "explicit"]),
    options=st.fixed_dictionaries(
        {
            "average": st.sampled_from([False, False, True]),
            "track_regret": st.booleans(),
            "fit_intercept": st.booleans(),
        }
    ),
    weighted=st.booleans(),
    ordered=st.booleans(),
    own_targets=st.booleans(),
)
def test_it_is_its_learners_trained_apart(seed, kinds, d, layout, update, options, weighted, ordered, own_targets):
    rng = np.random.default_rng(seed)
    X, y = stream(seed, 15, d, density=rng.choice([0.2, 1.0]))
    X *= 0.1
    n = len(kinds)
    targets = 0.1 * rng.normal(size=(15, n)) if own_targets and n > 1 else 0.1 * y[:, None]
    weights = rng.choice([0.0, 0.5, 2.0], size=15) if weighted else None
    order = rng.permutation(15) if ordered else None
    options |= {"update": update}
    together, apart = MultiLearner(members(kinds, d, **options)), members(kinds, d, **options)
    scores, alone = np.zeros((15, n)), np.zeros((n, 15))
    rows = layout(X)
    assert together.learn(rows, targets, weights, order, scores) is None
    for k, learner in enumerate(apart):
        y_k = np.ascontiguousarray(targets[:, k if targets.shape[1] > 1 else 0])
        assert learner.learn(rows, y_k, weights, order, alone[k]) is None
        assert pickle.dumps(together.learners[k]) == pickle.dumps(learner)
    assert_array_equal(scores.T, alone)
    assert_array_equal(together.coef, [learner.coef for learner in apart])
    assert_array_equal(together.predict(rows).T, [learner.predict(rows) for learner in apart])
    assert together.cumulative_loss == together.cumulative_losses.sum()


@pytest.mark.parametrize("layout", [np.ascontiguousarray, sparse.csr_array])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("rows", [2, 30])  # of half of twenty values: fewer than weights, or more
@pytest.mark.parametrize("refusing", range(6))
def test_all_or_none(layout, average, rows, refusing):
    """The last row has a target that one of the learners does not admit; those before it have learned it already."""
    losses = [LogisticLoss() if k == refusing else HingeLoss() if k % 2 else SquaredLoss() for k in range(6)]
    kinds = ["euclidean", "simplex, signed", "burg"] * 2
    together = MultiLearner(members(kinds, 20, losses, average=average, track_regret=True))
    X, _ = stream(0, rows, 20, density=0.3)
    y = np.ones((rows, 6))
    assert together.learn(layout(X), y) is None
    before = pickle.dumps(together)
    y[-1, refusing] = -1.0
    assert together.learn(layout(X), y) == ("bad target", rows - 1)
    assert pickle.dumps(together) == before


@pytest.mark.parametrize("average", [False, True])
def test_a_learner_that_has_to_move_all_weights_restarts_the_call(average):
    """One total leaves its range within a block, of which only the weights of sparse rows are backed up."""
    options = {"update": "explicit", "average": average, "fit_intercept": False}
    kinds = ["euclidean", "simplex", "burg", "simplex"]
    x = np.zeros((4, 60))
    x[:, 3], x[2, 4] = 1.0, -1.0
    targets = np.tile(np.array([8.0, 8.0, 8.0, 0.5])[:, None], 4)
    targets[:, 0] = targets[:, 2] = 0.1
    together, apart = (members(kinds, 60, **options) for _ in range(2))
    for learners in (together, apart):
        learners[3].configure(schedule=Constant(1.0), **options)
    together = MultiLearner(together)
    assert together.learn(sparse.csr_array(x), targets) is None
    for k, learner in enumerate(apart):
        for i in range(4):
            assert learner.learn(sparse.csr_array(x[i : i + 1]), targets[i : i + 1, k].copy()) is None
        assert_array_equal(together.learners[k].coef, learner.coef)
    assert together.learners[3].geometry.get_state()["total"] < 1e4 < np.exp(7) ** 2 / 60  # it was rescaled
    before = pickle.dumps(together)
    targets[:3, 3] += 8.0
    targets[3, 2] = np.nan
    assert together.learn(sparse.csr_array(x), targets) == ("bad target", 3)
    assert pickle.dumps(together) == before
