"""Columns of categories as numbers: every container, values that are missing, new categories, errors."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from onlinebregman import ParameterFreeRegressor
from onlinebregman._online.categories import LARGEST, Categories, find_categorical

try:
    import polars
except ImportError:  # also an optional dependency of scikit-learn's tests
    polars = None

COLOURS = ["red", "blue", None, "red", "green", "blue"]
EXPECTED = [0.0, 1.0, np.nan, 0.0, 2.0, 1.0]
COLUMNS = {
    "object": lambda values: pd.Series(values, dtype=object),
    "category": lambda values: pd.Series(values, dtype="category"),
    "category in another order": lambda values: pd.Series(
        pd.Categorical(values, ["nothing", "green", "blue", "red"], ordered=True)
    ),
    "str": lambda values: pd.Series(values, dtype="str"),
    "string": lambda values: pd.Series(values, dtype="string"),
    "string of pyarrow": lambda values: pd.Series(values, dtype="string[pyarrow]"),
    "polars": lambda values: polars.Series(values),  # skipped without polars
    "polars, Categorical": lambda values: polars.Series(values, dtype=polars.Categorical),
    "polars, Enum": lambda values: polars.Series(values, dtype=polars.Enum(["nothing", "green", "red", "blue"])),
}


def frame_of(column):
    """A data frame of a column of numbers and this one."""
    numbers = [0.5, 1.5, np.nan, 3.0, 4.0, -1.0][: len(column)]
    if not isinstance(column, pd.Series):
        return polars.DataFrame({"size": numbers, "colour": column})
    return pd.DataFrame({"size": numbers, "colour": column})


def begun(X, categorical_features="from_dtype"):
    return Categories(find_categorical(X, categorical_features))


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_dtype_of_categories_gives_the_same_numbers(kind):
    if kind.startswith("polars"):
        pytest.importorskip("polars")
    X = frame_of(COLUMNS[kind](COLOURS))
    encoded, categories = begun(X).encode(X)
    assert type(encoded) is type(X) and list(encoded.columns) == ["size", "colour"]
    assert_array_equal(encoded.to_numpy(), np.c_[X["size"].to_numpy(), EXPECTED])
    assert categories.listed() == [None, ["red", "blue", "green"]]


def test_arrays_of_objects_and_lists_of_rows():
    for missing in (None, np.nan, pd.NA, pd.NaT):
        X = np.array([[1, "a"], [missing, "b"], [2.5, missing], [True, "a"]], dtype=object)
        expected = [[1.0, 0.0], [np.nan, 1.0], [2.5, np.nan], [1.0, 0.0]]
        assert_array_equal(begun(X).encode(X)[0], expected)
        assert_array_equal(begun(X.tolist(), [1]).encode(X.tolist())[0], expected)


def test_numbers_and_booleans_may_be_categories():
    X = np.array([[7.0, 1.0], [3.0, 2.0], [7.0, np.nan]])
    assert find_categorical(X, "from_dtype") is None
    assert_array_equal(begun(X, [True, False]).encode(X)[0], [[0.0, 1.0], [1.0, 2.0], [0.0, np.nan]])
    for dtype in (bool, "boolean"):
        X = pd.DataFrame({"a": pd.Series([True, False, True], dtype=dtype)})
        encoded, categories = begun(X).encode(X)
        assert_array_equal(encoded["a"], [0.0, 1.0, 0.0])
        assert categories.listed() == [[True, False]]


def test_numbers_do_not_depend_on_how_the_stream_is_cut():
    values = np.random.default_rng(0).choice(list("abcdefghij"), size=(60, 2)).astype(object)
    whole, categories = begun(values).encode(values)
    growing, parts = begun(values), []
    for start in range(0, 60, 7):
        part, growing = growing.encode(values[start : start + 7])
        parts.append(part)
    assert_array_equal(np.vstack(parts), whole)
    assert growing.listed() == categories.listed()


def test_new_categories_are_learned_at_any_time_and_the_old_object_stays():
    first, later = (pd.DataFrame({"a": list(values)}) for values in ("xyx", "zyz"))
    _, known = begun(first).encode(first)
    before = known.listed()
    assert_array_equal(known.encode(later)[0]["a"], [2.0, 1.0, 2.0])
    assert known.listed() == before == [["x", "y"]]
    both = pd.DataFrame({"a": list("wzx")})
    assert_array_equal(known.encode(both, False)[0]["a"], [2.0, 2.0, 0.0])  # each as if it came next
    encoded, grown = known.encode(both, np.array([False, True, True]))
    assert_array_equal(encoded["a"][1:], [2.0, 0.0])
    assert grown.listed() == [["x", "y", "z"]]


def test_the_number_of_categories_is_bounded():
    X = np.arange(LARGEST + 100.0)[:, np.newaxis]
    encoded, categories = begun(X, [0]).encode(X)
    assert_array_equal(encoded, np.minimum(X, LARGEST))
    assert len(categories.listed()[0]) == LARGEST
    assert_array_equal(categories.encode(X)[0], encoded)


@pytest.mark.parametrize(
    "given",
    [
        *([1], [False, True], np.array([1]), ["colour"], np.array(["colour"], dtype=object)),
        *(np.array([False, True], dtype=object), pd.Series([False, True], dtype=object), [np.False_, np.True_]),
        *(np.array([1], dtype=object), np.array([np.int64(1)], dtype=object)),
    ],
)
def test_columns_can_be_named(given):
    X = frame_of(pd.Series(EXPECTED))
    assert find_categorical(X, "from_dtype") is None
    assert find_categorical(X, given).tolist() == [False, True]
    assert find_categorical(X, []) is find_categorical(X, [False, False]) is find_categorical(X, None) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([2], r"must be in \[0, n_features - 1\] = \[0, 1\]; got 2"),
        ([-1], "got -1"),
        ([True], r"must have shape \(2,\), one entry for each feature; got shape \(1,\)"),
        (["weight"], "item value 'weight' which is not a valid feature name"),
        ([0.5], "must be an array-like of bool, int or str"),
        ([True, 1], r"bool of all or none; got \[True, 1\]"),
        (np.array([1, np.False_], dtype=object), "bool of all or none"),
        (np.array([], dtype=bool), r"got shape \(0,\)"),
    ],
)
def test_wrong_columns_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        find_categorical(frame_of(pd.Series(EXPECTED)), given)
    with pytest.raises(ValueError, match="no feature names; give numbers"):
        find_categorical(np.ones((2, 2)), ["colour"])
    with pytest.raises(ValueError, match=r"X\['colour'\] must be numeric; got dtype datetime64"):
        find_categorical(frame_of(pd.Series([None, datetime.date(2024, 1, 1)])), "from_dtype")
    with pytest.raises(ValueError, match=r"got dicts. Give pandas.DataFrame\(X\)"):
        ParameterFreeRegressor(categorical_features=[0]).fit([["red"], ["blue"]], [0, 1]).predict([{"colour": "red"}])


def test_a_mask_is_copied():
    X, mask = np.ones((2, 2)), np.array([False, True])
    chosen = find_categorical(X, mask)
    mask[0] = True
    assert chosen.tolist() == [False, True]


def test_objects_that_are_all_numbers_are_no_categories():
    """As databases give them, and rows in lists; integers beyond the largest float are infinite."""
    X = frame_of(pd.Series(list("abba"))).assign(size=np.array([Decimal("1.5"), None, np.float32(2), 10**400]))
    assert_array_equal(begun(X).encode(X)[0]["size"], [1.5, np.nan, 2.0, np.inf])
    with pytest.raises(ValueError, match=r"Input X contains infinity \(row 3, column 0\)"):
        ParameterFreeRegressor().fit(X, X.index)
    of_others = (pd.Series(other, dtype=object) for other in ([None] * 4, [1, "a", 2, 3], [None, True, 1, 2]))
    assert all(find_categorical(X.assign(size=each), "from_dtype").all() for each in of_others)


def test_text_in_a_column_of_numbers_is_named_with_its_row():
    X = frame_of(pd.Series(COLOURS))
    known = begun(X)
    with pytest.raises(ValueError, match="Column 'size' must hold numbers; got 'large' in row 1"):
        known.encode(pd.DataFrame({"size": [1.0, "large"], "colour": ["red", "red"]}))
    with pytest.raises(ValueError, match=r"Categories must be text, numbers .* got \[1\] in row 1, column 'colour'"):
        known.encode(pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", [1]]}))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        ParameterFreeRegressor().fit(pd.Series(["a text", "another"]), [0.0, 1.0])
