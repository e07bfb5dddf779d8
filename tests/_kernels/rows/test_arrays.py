"""Rows that are stored by columns: learned and predicted in blocks, bit for bit as rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from onlinebregman._kernels.rows.arrays import Columns
from raw import MirrorDescentClassifier

from onlinebregman import ImplicitGDRegressor
from onlinebregman._online.containers import columns_of_numbers

N, D = 9000, 120  # large enough that the columns of data frames are read in place
NAMES = [f"x{j}" for j in range(D)]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    return X, X[:, 0] - X[:, 1] + rng.normal(size=N)


def spread_out(X):
    wide = np.full((2 * len(X), 2 * X.shape[1]), np.nan, X.dtype)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def separate(X):
    return pd.DataFrame({name: X[:, j].copy() for j, name in enumerate(NAMES)}, copy=False)


CONTAINERS = {
    "fortran": np.asfortranarray,
    "part of wider rows": lambda X: np.hstack([X, X])[:, 5 : 5 + D],
    "spread out": spread_out,
    "reversed": lambda X: X[::-1].copy(order="F")[::-1],
    "pandas": separate,
    "pandas, every second row": lambda X: separate(np.repeat(X, 2, axis=0))[::2],
    "polars": lambda X: pl.DataFrame(np.asfortranarray(X), schema=NAMES),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", CONTAINERS)
def test_the_numbers_are_those_of_rows(container, dtype, rows):
    X, y = rows[0].astype(dtype), rows[1]
    X = np.roll(X, 5, axis=1) if container == "part of wider rows" else X
    kept = CONTAINERS[container](X)
    if container == "part of wider rows":
        X = np.ascontiguousarray(kept)
    for estimator in (ImplicitGDRegressor(max_iter=2, tol=None), MirrorDescentClassifier(max_iter=1, tol=None)):
        targets = y if isinstance(estimator, ImplicitGDRegressor) else y > 0
        estimator.set_params(shuffle=False)
        expected = estimator.fit(X, targets).coef_, estimator.predict(X)
        np.testing.assert_array_equal(estimator.fit(kept, targets).coef_, expected[0])
        np.testing.assert_array_equal(estimator.predict(kept), expected[1])


def test_columns_are_read_in_any_order(rows):
    X, y = rows
    shuffled, kept = (
        ImplicitGDRegressor(max_iter=2, tol=None, random_state=0).fit(container, y)
        for container in (X, np.asfortranarray(X))
    )
    np.testing.assert_array_equal(kept.coef_, shuffled.coef_)


def test_columns_of_every_kind():
    values = np.arange(300) % 100
    dtypes = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
    columns = Columns([np.roll(values, k).astype(dtype) for k, dtype in enumerate(dtypes)])
    expected = np.column_stack([column.astype(float) for column in columns.columns])
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_array_equal(columns[[3, 1]], expected[[3, 1]])
    model = ImplicitGDRegressor().partial_fit(expected, values)
    np.testing.assert_array_equal(model._learner.predict(columns), model.predict(expected))
    np.testing.assert_array_equal(model._learner.predict(columns[7:290]), model.predict(expected)[7:290])
    for wrong in (np.zeros(299), np.zeros(300, complex), np.zeros(300, np.float16)):
        with pytest.raises(TypeError, match="must be of 300 numbers"):
            model._learner.predict(Columns([*columns.columns[1:], wrong]))


def test_which_frames_are_read_in_place(rows):
    frame = separate(rows[0])
    assert columns_of_numbers(frame).shape == (N, D)
    assert np.shares_memory(columns_of_numbers(frame).columns[3], frame["x3"].to_numpy())
    as_rows = pd.DataFrame(rows[0], copy=False)  # which NumPy reads in place
    missing = pl.DataFrame(rows[0], schema=NAMES).with_columns(pl.lit(None, pl.Float64).alias("x4"))
    for other in (frame[:100], frame.astype({"x3": object}), frame.astype({"x3": "Float64"}), as_rows, missing):
        assert columns_of_numbers(other) is None


@pytest.mark.parametrize("container", ["fortran", "pandas", "polars"])
def test_errors_are_those_of_rows(container, rows):
    X, y = rows[0].copy(), rows[1]
    model = ImplicitGDRegressor().partial_fit(CONTAINERS[container](X), y)
    coef = model.coef_
    X[N - 3, 7] = np.nan
    X[N - 2, 2] = np.inf
    bad = CONTAINERS[container](X)
    for call in (model.partial_fit, ImplicitGDRegressor().fit):
        with pytest.raises(ValueError, match=rf"Input X contains NaN \(row {N - 3}, column 7\)"):
            call(bad, y)
        with pytest.raises(ValueError, match=rf"Input X contains NaN \(row {N - 3}, column 7\)"):
            call(bad, y, sample_weight=np.ones(N))
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            call(bad, y[1:])
        with pytest.raises(ValueError, match="requires y to be passed"):
            call(bad, None)
    with pytest.raises(ValueError, match=rf"Input X contains NaN \(row {N - 3}, column 7\)"):
        model.predict(bad)
    np.testing.assert_array_equal(model.coef_, coef)
    if container == "pandas" or hasattr(model, "feature_names_in_"):  # scikit-learn 1.6 reads none of polars
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(bad[NAMES[::-1]])
        with pytest.raises(ValueError, match="feature names should match"):
            model.partial_fit(bad[NAMES[1:]], y)
