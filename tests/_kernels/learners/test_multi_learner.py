"""Learners that learn the same rows together: each is bit for bit the same as if it had learned alone."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from onlinebregman._kernels.geometries.entropy import BurgGeometry, SimplexGeometry
from onlinebregman._kernels.geometries.euclidean import EuclideanGeometry
from onlinebregman._kernels.learners.learner import Learner
from onlinebregman._kernels.learners.multi_learner import MultiLearner
from onlinebregman._kernels.losses.loss import HingeLoss, LogisticLoss, SquaredLoss
from scipy import sparse

from onlinebregman.schedules import Constant

GEOMETRIES = {
    "euclidean": lambda d: EuclideanGeometry(np.zeros(d)),
    "euclidean, ball": lambda d: EuclideanGeometry(np.zeros(d), radius=1.0),
    "signed": lambda d: SimplexGeometry(np.full(2 * d, 0.5 / d), True),
    "simplex": lambda d: SimplexGeometry(np.full(d, 1.0 / d)),
    "burg": lambda d: BurgGeometry(np.full(d, 1.0 / d)),
}


def members(kinds, d, losses=None, **settings):
    """Learners of these geometries, with different rates."""
    learners = []
    for k, kind in enumerate(kinds):
        learner = Learner(GEOMETRIES[kind](d), losses[k] if losses else SquaredLoss())
        options = {"update": "implicit", "fit_intercept": True, **settings}
        learner.configure(schedule=Constant(0.3 * 0.7**k), **options)
        learners.append(learner)
    return learners


def stream(seed, rows, d, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d)) * (rng.uniform(size=(rows, d)) < density)
    return X, rng.normal(size=rows)


def same(one, other):
    assert pickle.dumps(one) == pickle.dumps(other)


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
        same(together.learners[k], learner)
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
    kinds = ["euclidean", "signed", "burg"] * 2
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
