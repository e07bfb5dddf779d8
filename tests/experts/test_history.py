"""The history of the weights of a mixture: it costs one row each, and is never overwritten."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from onlinebregman import ExpertMixtureRegressor
from onlinebregman.experts._weights import History


@given(
    calls=st.lists(
        st.tuples(
            st.integers(1, 9), st.integers(1, 7), st.sampled_from(["go on", "go on", "refused", "pickled", "copied"])
        ),
        max_size=40,
    )
)
def test_the_last_rows_are_kept_and_earlier_tables_stay_what_they_are(calls):
    history, expected, earlier = History(np.empty((0, 2))), np.empty((0, 2)), []
    for number, (n_rows, size, how) in enumerate(calls):
        rows = [np.array([number, k], dtype=float) for k in range(n_rows)]
        if how == "refused":
            history.extended(rows, size)
            continue
        if how == "pickled":
            history = pickle.loads(pickle.dumps(history))
        if how == "copied":
            history = copy.deepcopy(history)
        history, expected = history.extended(rows, size), np.concatenate([expected, rows])[-size:]
        earlier.append((history, expected))
    for table, rows in earlier:
        assert_array_equal(table.rows, rows)


def test_a_row_is_written_once_and_moved_a_few_times(monkeypatch):
    """Rows one by one into a history of 1000: the values copied grow linearly with the rows."""
    moved = []
    empty = np.empty

    def counted(shape, *args, **kwargs):
        moved.append(shape[0])
        return empty(shape, *args, **kwargs)

    history = History(np.empty((0, 2)))
    monkeypatch.setattr(np, "empty", counted)
    for k in range(5000):
        history = history.extended([np.full(2, float(k))], 1000)
    assert sum(moved) < 6 * 5000
    assert_array_equal(history.rows[:, 0], np.arange(4000.0, 5000.0))


def test_the_history_cannot_be_written_to_and_belongs_to_one_model():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = ExpertMixtureRegressor(history=50, learning_rate=0.1).partial_fit(X[:10], y[:10])
    other = copy.copy(model)  # shares the learned state
    known = model.weights_history_
    before = known.copy()
    model.partial_fit(X[10:20], y[10:20])
    other.partial_fit(X[20:], y[20:])
    fresh = ExpertMixtureRegressor(history=50, learning_rate=0.1).fit(X[:20], y[:20])
    assert_array_equal(model.weights_history_, fresh.weights_history_)
    assert_array_equal(known, before)
    assert_array_equal(other.weights_history_[:10], before)
    assert not np.array_equal(other.weights_history_, model.weights_history_)
    with pytest.raises(ValueError, match="read-only"):
        known[0] = 0.0
    with pytest.raises(ValueError, match="row 1"):
        model.partial_fit([[1.0, 1.0, 1.0], [np.nan, 1.0, 1.0]], [0.0, 0.0])
    assert_array_equal(model.weights_history_, fresh.weights_history_)
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
