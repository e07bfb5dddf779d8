"""The fast path for arrays, lists and CSR: the result is the same as for validated input."""

import copy
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from onlinebregman._kernels.rows.arrays import all_finite
from onlinebregman._kernels.rows.rows import in_order
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from onlinebregman import (
    ImplicitGDRegressor,
    MEGKernelLearner,
    ParameterFreeRegressor,
)

WITH_VARIANTS = False


def some_rows(n=30):
    X = np.abs(np.random.default_rng(0).normal(size=(n, 4))).round(1)
    return X, X.sum(axis=1).round(1)


WEIGHTS = {
    "array": lambda n: np.linspace(0.5, 2.0, n),
    "list": lambda n: [1.0, 2] * (n // 2),
    "float32": lambda n: np.linspace(0.5, 2.0, n, dtype=np.float32),
    "int": lambda n: np.arange(n) % 3 + 1,
    "zeros": lambda n: np.arange(n) % 2,
    "ones": np.ones,
    "a number": lambda n: 2.0,
}


@pytest.mark.only(where=lambda e: has_fit_parameter(e, "sample_weight") and not hasattr(e, "memory_size"))  # of rows
@pytest.mark.parametrize("form", WEIGHTS)
def test_weights_are_learned_and_remembered_alike(estimator, rows, learn, form, learned):
    X, y = rows
    weights = WEIGHTS[form](len(X))
    fast, slow = (learn(clone(estimator), X, y) for _ in range(2))
    fast.partial_fit(X, y, sample_weight=weights)
    slow.partial_fit(X.tolist(), y, sample_weight=weights)
    assert learned(fast) == learned(slow)
    largest = max(1.0, np.max(weights))
    ones = set(np.ravel(weights)) <= {0, 1}
    for part in [fast, *getattr(fast, "estimators_", [])]:
        learner = getattr(part, "_learner", None)
        assert getattr(learner, "largest_weight", largest) == largest
        assert getattr(learner, "all_weight_one", ones) == ones


@pytest.mark.parametrize("kind", [ImplicitGDRegressor, MEGKernelLearner])
def test_a_dictionary_that_changes_in_place_is_a_changed_parameter(kind, learned):
    """Otherwise the model would learn by its old contents, and a copy of it by the new ones."""
    X, y = some_rows()
    model = kind(learning_rate="theory", data_bounds={"x": 3.0, "u": 1.0}).partial_fit(X, y)
    same, other = copy.deepcopy(model), copy.deepcopy(model)
    model.data_bounds["x"] = 30.0
    same.set_params(data_bounds={"x": 30.0, "u": 1.0})
    states = [learned(each.partial_fit(X, y)) for each in (model, same, other)]
    assert states[0] == states[1] and states[0] != states[2]


# --- sparse rows whose columns come in any order ----------------------------------------------------------------------


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_columns", [1, 2, 50, 64, 65, 5000, 2**20, 2**31 - 1])
def test_columns_are_put_in_order_and_equal_ones_are_summed(n_columns, index):
    rng = np.random.default_rng(n_columns)
    lengths = rng.integers(0, 200, size=20)
    indptr = np.r_[0, np.cumsum(lengths)].astype(index)
    columns = rng.integers(n_columns, size=indptr[-1]).astype(index)
    X = sparse.csr_array((np.arange(indptr[-1], dtype=np.float32), columns, indptr), shape=(20, n_columns))
    ordered = in_order(X)
    assert type(ordered) is type(X) and ordered.data.dtype == np.float32
    for given, (start, end) in zip(pairwise(indptr), pairwise(ordered.indptr), strict=True):
        known, places = np.unique(columns[slice(*given)], return_inverse=True)
        assert_array_equal(ordered.indices[start:end], known)
        assert_array_equal(ordered.data[start:end], np.bincount(places, X.data[slice(*given)]))
    assert_array_equal(X.indices, columns)


@pytest.mark.parametrize("categories", [None, [0]])
def test_rows_of_named_columns_and_of_known_categories_need_no_validation(categories, monkeypatch):
    X, y = some_rows(60)
    X[:, 0] = X[:, 0].round()
    given = pd.DataFrame(X, columns=list("abcd")) if categories is None else X
    fast, slow = (ParameterFreeRegressor(categorical_features=categories).fit(rows[:40], y[:40]) for rows in (given, X))
    expected = slow.partial_fit(X[40:].tolist(), y[40:]).predict(X.tolist())
    monkeypatch.setattr(ParameterFreeRegressor, "_validate_and_learn", None)
    monkeypatch.setattr(ParameterFreeRegressor, "_query", None)
    for i in range(40, 60):
        fast.partial_fit(given[i : i + 1], y[i : i + 1])
    assert_array_equal([fast.predict(given[i : i + 1]).item() for i in range(60)], expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_columns", [1, 3, 63, 64, 65, 300, 100_000])
def test_rows_are_sorted_as_they_are_read(n_columns, index, dtype):
    """Without validation, with the same result as for rows with sorted columns and summed duplicates."""
    rng = np.random.default_rng(n_columns)
    indptr = np.r_[0, np.cumsum(rng.integers(0, 150, size=20))].astype(index)
    columns = rng.integers(n_columns, size=indptr[-1]).astype(index)
    values = (0.1 * rng.normal(size=indptr[-1])).astype(dtype)
    X, y = sparse.csr_array((values, columns, indptr), shape=(20, n_columns)), rng.normal(size=20)
    canonical = in_order(X)
    fast, slow = (ImplicitGDRegressor().partial_fit(canonical, y) for _ in range(2))
    assert fast._learner.learn_fast(vars(fast), X, y)
    assert_array_equal(X.indices, columns)
    slow.partial_fit(canonical, y)
    assert_array_equal(fast.coef_, slow.coef_)
    assert_array_equal(fast.predict(X), slow.predict(canonical))


def test_no_rows_and_no_entries_are_in_order():
    for X in (sparse.csr_array((0, 5)), sparse.csr_matrix((3, 5))):
        assert in_order(X).nnz == 0 and type(in_order(X)) is type(X)


# --- looks and sums ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 40])
def test_one_look_finds_every_number_that_is_not_finite(n, dtype):
    values = np.full((2, n), np.finfo(dtype).max, dtype=dtype)
    assert all_finite(values) and all_finite(values[0]) and all_finite(-values)
    for place in np.ndindex(values.shape):
        for bad in (np.nan, np.inf, -np.inf):
            spoiled = values.copy()
            spoiled[place] = bad
            assert not all_finite(spoiled)


def test_one_look_is_not_certain_of_other_things():
    for values in (np.ones((3, 4))[:, ::2], np.ones(3, dtype=int), [1.0], np.ma.array([1.0]), np.ones(2, dtype=">f8")):
        assert not all_finite(values)
