"""Data sets: the lever rule, the papers' streams, CSV files from a folder."""

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from onlinebregman.datasets import (
    list_datasets,
    load_balance_scale,
    load_dataset,
    make_positive_sphere,
    make_scaled_regression,
)
from onlinebregman.datasets._files import DATA_HOME_VARIABLE

DATA = os.environ.get(DATA_HOME_VARIABLE)
needs_data = pytest.mark.skipif(not DATA, reason=f"{DATA_HOME_VARIABLE} names no folder")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mixed.csv").write_text("size,colour,note,target\n1,red,,yes\n,blue,a,no\n3.5,,b,yes\n")
    (tmp_path / "numbers.csv").write_text("a,b,target\n1,2,3\n4,,6\n")
    (tmp_path / "floats.csv").write_text("a,target\n1,3.0\n4,6.5\n")
    with gzip.open(tmp_path / "packed.csv.gz", "wt", encoding="utf-8") as file:
        file.write('a,b\n1,"x, ""y"""\n2,ö\n')
    return tmp_path


# ------------------------------------------------------------------------------------------------ balance scale


def test_balance_scale_follows_the_lever_rule():
    scale = load_balance_scale()
    assert scale.data.shape == (625, 4)
    assert len(np.unique(scale.data, axis=0)) == 625
    assert scale.data.min() == 1 and scale.data.max() == 5
    assert scale.target.dtype == np.int64
    for (w, d, v, e), label in zip(scale.data, scale.target_names[scale.target], strict=True):
        assert label == ("B" if w * d == v * e else "L" if w * d > v * e else "R")
    assert np.bincount(scale.target).tolist() == [49, 288, 288]
    assert scale.frame is None
    assert "625 rows" in scale.DESCR


def test_balance_scale_return_X_y_and_frame():
    X, y = load_balance_scale(return_X_y=True)
    assert_array_equal(X, load_balance_scale().data)
    frame = load_balance_scale(as_frame=True)
    assert frame.data.columns.tolist() == frame.feature_names
    assert frame.frame.columns.tolist() == [*frame.feature_names, "target"]
    X_frame, y_frame = load_balance_scale(return_X_y=True, as_frame=True)
    assert_array_equal(X_frame.to_numpy(), X)
    assert_array_equal(y_frame.to_numpy(), y)


@needs_data
def test_balance_scale_is_the_published_data_set():
    scale, published = load_balance_scale(), load_dataset("balance_scale")
    ours = {(*row, label) for row, label in zip(scale.data.tolist(), scale.target_names[scale.target], strict=True)}
    theirs = {(*row, label) for row, label in zip(published.data.tolist(), published.target, strict=True)}
    assert len(published.data) == len(theirs) == 625
    assert ours == theirs


def test_as_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert load_balance_scale().data.shape == (625, 4)
    with pytest.raises(ImportError, match="as_frame=True requires pandas"):
        load_balance_scale(as_frame=True)


# ------------------------------------------------------------------------------------------------ streams


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_positive_sphere(noise):
    X, y, u = make_positive_sphere(2000, 30, noise=noise, coef=True, random_state=3)
    assert X.shape == (2000, 30) and y.shape == (2000,) and u.shape == (30,)
    assert (X >= 0).all() and (u >= 0).all()
    assert_allclose(np.linalg.norm(X, axis=1), 1)
    assert_allclose(np.linalg.norm(u), 1)
    ratio = y / (X @ u) - 1
    assert abs(ratio).max() <= noise / 2 + 1e-12
    assert abs(ratio.mean()) < 0.02
    assert_allclose(ratio.std(), noise / np.sqrt(12), rtol=0.05, atol=1e-12)
    # directions are uniform: the squared coordinates have the mean 1/n
    assert_allclose((X**2).mean(axis=0), 1 / 30, rtol=0.2)


def test_positive_sphere_defaults_are_those_of_the_paper():
    X, y = make_positive_sphere(random_state=0)
    assert X.shape == (10_000, 100)
    assert len(y) == 10_000


def test_scaled_regression():
    X, y, w = make_scaled_regression(5000, 10, scale=2.0, coef=True, random_state=1)
    assert (w >= 0).all() and (w <= 1).all()
    assert abs(X).max() <= 1.0 and abs(X).max() > 0.99
    assert_allclose((y - X @ w).std(), 0.2, rtol=0.05)
    X_1, y_1, w_1 = make_scaled_regression(5000, 10, coef=True, random_state=1)
    assert_array_equal(w, w_1)
    assert_allclose(X, 2 * X_1)
    assert_allclose(y, 2 * y_1)


def test_scaled_regression_without_noise_and_with_a_total():
    X, y, w = make_scaled_regression(50, noise=0.0, total=1.0, coef=True, random_state=1)
    assert_allclose(y, X @ w)
    assert_allclose(w.sum(), 1.0)
    assert X.shape == (50, 20)


@pytest.mark.parametrize("make", [make_positive_sphere, make_scaled_regression])
def test_streams_are_determined_by_their_seed(make):
    for first, second in zip(make(20, 5, random_state=4), make(20, 5, random_state=4), strict=True):
        assert_array_equal(first, second)
    assert not np.array_equal(make(20, 5, random_state=4)[0], make(20, 5, random_state=5)[0])
    assert len(make(20, 5, random_state=np.random.RandomState(1))) == 2


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (make_positive_sphere, {"n_samples": 0}, "n_samples must be .*; got 0"),
        (make_positive_sphere, {"n_features": 2.5}, "n_features must be .*; got 2.5"),
        (make_positive_sphere, {"noise": -0.1}, "noise must be .*; got -0.1"),
        (make_scaled_regression, {"n_samples": True}, "n_samples must be .*; got True"),
        (make_scaled_regression, {"scale": 0.0}, "scale must be .*; got 0.0"),
        (make_scaled_regression, {"noise": float("nan")}, "noise must be .*; got nan"),
        (make_scaled_regression, {"total": 0}, "total must be .*; got 0"),
    ],
)
def test_streams_refuse_bad_arguments(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


# ------------------------------------------------------------------------------------------------ files


def test_load_dataset_with_categorical_columns_and_missing_values(folder):
    data = load_dataset("mixed", data_home=folder)
    assert data.feature_names == ["size", "colour", "note"]
    assert data.categorical_features == [1, 2]
    assert data.data.dtype == object
    assert data.data[0, :2].tolist() == [1.0, "red"] and np.isnan(data.data[0, 2])
    assert np.isnan(data.data[1, 0]) and np.isnan(data.data[2, 1])
    assert data.target.tolist() == ["yes", "no", "yes"]
    assert data.filename == str(folder / "mixed.csv")
    encoded = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()).fit_transform(data.data[:, 1:])
    assert encoded.shape == (3, 4)


def test_load_dataset_with_numbers(folder):
    data = load_dataset("numbers", data_home=str(folder))
    assert data.data.dtype == np.float64
    assert_array_equal(data.data, [[1, 2], [4, np.nan]])
    assert data.categorical_features == []
    assert data.target.dtype == np.int64
    X, y = load_dataset("floats", data_home=folder, return_X_y=True)
    assert X.shape == (2, 1)
    assert y.dtype == np.float64
    assert y.tolist() == [3.0, 6.5]


def test_load_dataset_compressed_and_without_target(folder):
    data = load_dataset("packed", data_home=folder)
    assert data.target is None
    assert data.data[:, 1].tolist() == ['x, "y"', "ö"]
    assert load_dataset("packed", data_home=folder, as_frame=True).target is None


def test_load_dataset_as_frame(folder):
    data = load_dataset("mixed", data_home=folder, as_frame=True)
    assert data.frame.shape == (3, 4)
    assert data.data["size"].dtype == np.float64
    assert data.data["colour"].dtype == "category"
    assert data.data["colour"].isna().tolist() == [False, False, True]
    assert data.target.dtype == "category"
    assert load_dataset("numbers", data_home=folder, as_frame=True).target.dtype == np.int64


def test_words_that_python_reads_as_numbers_stay_words(tmp_path):
    (tmp_path / "words.csv").write_text("a,b,c,target\n1_0,nan,inf,1\n2,3,4,2\n")
    assert load_dataset("words", data_home=tmp_path).categorical_features == [0, 1, 2]


@pytest.mark.parametrize(
    ("numbers", "dtype"), [([9007199254740993, 9007199254740992], np.int64), ([10**20, 3], np.float64)]
)
def test_large_targets_keep_their_digits_or_are_floats(numbers, dtype, tmp_path):
    (tmp_path / "x.csv").write_text("a,target\n" + "".join(f"1,{number}\n" for number in numbers))
    target = load_dataset("x", data_home=tmp_path).target
    assert target.dtype == dtype and target.tolist() == numbers


def test_the_mark_that_excel_writes_is_not_part_of_a_name(tmp_path):
    (tmp_path / "x.csv").write_text("a,target\n1,2\n", encoding="utf-8-sig")
    assert load_dataset("x", data_home=tmp_path).feature_names == ["a"]


def test_list_datasets(folder, monkeypatch):
    assert list_datasets(folder) == ["floats", "mixed", "numbers", "packed"]
    monkeypatch.setenv(DATA_HOME_VARIABLE, str(folder))
    assert list_datasets() == list_datasets(folder)
    assert load_dataset("numbers").data.shape == (2, 2)


def test_no_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(DATA_HOME_VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError, match=DATA_HOME_VARIABLE):
        load_dataset("iris")
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        list_datasets(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["missing", "../numbers", "numbers.csv", ""])
def test_unknown_names_list_the_known_ones(folder, name):
    with pytest.raises(FileNotFoundError, match="floats, mixed, numbers, packed"):
        load_dataset(name, data_home=folder)


def test_empty_folder(tmp_path):
    assert list_datasets(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="no CSV files"):
        load_dataset("iris", data_home=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 must name the columns"),
        ("target\n1\n", "line 1 must name the columns"),
        ("a,b,a,target\n1,2,3,4\n", "line 1 names two columns 'a'"),
        ("a,target\n", "has a header and no rows"),
        ("a,target\n1,2\n1\n", "line 3 has 1 fields, the header has 2"),
        ("a,target\n1,2\n1,\n", "row 2 of the data has no target"),
    ],
)
def test_bad_files(tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_dataset("bad", data_home=tmp_path)


@needs_data
def test_every_file_of_the_data_folder_loads():
    shapes = {}
    for name in list_datasets():
        data = load_dataset(name)
        shapes[name] = (*data.data.shape, data.data.dtype == object)
        assert Path(data.filename).is_file()
    assert shapes["iris"] == (150, 4, False)
    assert shapes["car"] == (1728, 6, True)
    assert shapes["mushroom"] == (8124, 22, True)
    assert shapes["samson_scene_mean"] == (156, 105, False)
