"""The history of the weights of a mixture: it costs one row each, and is never overwritten."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from onlinebregman._kernels.learners.hedge import Hedge, History
from onlinebregman._kernels.learners.mean_mixer import MeanMixer
from onlinebregman._kernels.losses.loss import SquaredLoss

from onlinebregman import ExpertMixtureRegressor

pytestmark = pytest.mark.usefixtures("in_order")  # compared with loops over rows


@given(
    calls=st.lists(
        st.tuples(
            st.integers(1, 9), st.integers(1, 7), st.sampled_from(["go on", "go on", "refused", "pickled", "copied"])
        ),
        max_size=40,
    ),
    seed=st.integers(0, 10**6),
)
def test_the_last_rows_are_kept(calls, seed):
    rng, expected = np.random.default_rng(seed), np.empty((0, 2))
    model, plain = (
        ExpertMixtureRegressor(strategy="average", learning_rate=0.1),
        ExpertMixtureRegressor(strategy="average", learning_rate=0.1),
    )
    for n_rows, size, how in calls:
        X, y = rng.normal(size=(n_rows, 2)), np.zeros(n_rows)
        model.set_params(history=size)
        if how == "refused":
            with pytest.raises(ValueError, match="must be finite"):
                model.partial_fit(np.append(X, [[1e300, 1e300]], axis=0), np.append(y, 0.0))
            continue
        if how == "pickled":
            model = pickle.loads(pickle.dumps(model))
        if how == "copied":
            model = copy.deepcopy(model)
        model.partial_fit(X, y)
        for i in range(n_rows):
            before = plain.weights_ if len(expected) else np.full(2, 0.5)
            expected = np.append(expected, [before], axis=0)[-size if i == n_rows - 1 else 0 :]
            plain.partial_fit(X[i : i + 1], y[i : i + 1])
        assert_array_equal(model.weights_history_, expected)


@pytest.mark.parametrize("n_rows", [1, 3, 5000])
def test_a_row_is_written_once_and_moved_a_few_times(monkeypatch, n_rows):
    """Blocks of rows into a history of 1000: the values allocated do not grow with the number of rows."""
    allocated = []
    empty = np.empty

    def counted(shape, *args, **kwargs):
        allocated.append(np.prod(shape))
        return empty(shape, *args, **kwargs)

    mixer = MeanMixer(Hedge(2, 1.0, history=History(2, 1000)), SquaredLoss(), False, None, None)
    X = np.random.default_rng(0).normal(size=(5000, 2))
    monkeypatch.setattr(np, "empty", counted)
    for start in range(0, 5000, n_rows):
        mixer.learn(X[start : start + n_rows], np.zeros(len(X[start : start + n_rows])))
    assert sum(allocated) < 6 * 2 * 1000
    assert mixer.hedge.history.weights.shape == (1000, 2)


def test_the_history_belongs_to_one_model():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = ExpertMixtureRegressor(history=50, strategy="average", learning_rate=0.1).partial_fit(X[:10], y[:10])
    other, known = copy.copy(model), model.weights_history_.copy()  # shares the learned state
    model.partial_fit(X[10:20], y[10:20])
    other.partial_fit(X[20:], y[20:])
    assert_array_equal(model.weights_history_[:10], known)
    assert_array_equal(other.weights_history_[:10], known)
    assert not np.array_equal(other.weights_history_, model.weights_history_)
    with pytest.raises(AttributeError, match="history > 0"):
        ExpertMixtureRegressor().fit(X, y).weights_history_  # noqa: B018


@pytest.mark.parametrize("plain", [True, False])
def test_rows_learned_without_a_history_leave_no_gap_in_it(plain):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    every = ExpertMixtureRegressor(history=30).fit(X, y).weights_history_
    model = ExpertMixtureRegressor(history=5).partial_fit(X[:10], y[:10])
    rows = (X[10:20], y[10:20]) if plain else (X[10:20].tolist(), y[10:20].tolist())
    model.set_params(history=0).partial_fit(*rows)
    assert not hasattr(model, "weights_history_")
    model.set_params(history=15).partial_fit(X[20:], y[20:])
    assert_array_equal(model.weights_history_, every[20:])
