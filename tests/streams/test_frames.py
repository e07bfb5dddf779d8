"""Frames of files have the numbers, categories and missing values of pandas, and types that stay the same."""

import bz2
import gzip
import io
import json
import lzma
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from onlinebregman import ParameterFreeClassifier, ParameterFreeRegressor
from onlinebregman.streams import ArrayBatches, FileFrames, SVMLightBatches, _frames, fit_stream

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "a": rng.normal(size=50) * 10.0 ** rng.integers(-300, 300, 50),
        "n": rng.integers(-(2**62), 2**62, 50),
        "c": rng.choice(["red", "green", "01"], 50),
        "b": rng.choice([True, False], 50),
        "y": rng.normal(size=50),
    }
)
FRAME.loc[3, ["a", "c"]] = [np.nan, None]
TEXT = FRAME.to_csv(index=False)


def read(path, **settings):
    return pd.concat(list(FileFrames(path, **settings)))


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
@pytest.mark.parametrize(
    "name",
    ["rows.csv", "rows.tsv", "rows.csv.gz", "rows.BZ2", "rows.csv.xz", "rows.zip", "rows.jsonl", "rows.parquet", "-"]
)  # fmt: skip
def test_every_number_category_and_missing_value_is_that_of_pandas(name, batch_size, tmp_path, monkeypatch):
    file, settings = tmp_path / name, {"batch_size": batch_size}
    match name.rpartition(".")[2]:
        case "csv":
            file.write_text("\ufeff" + TEXT.replace("\n", "\r\n\r\n"))  # as Excel writes it, with empty lines
        case "tsv":
            FRAME.to_csv(file, index=False, sep="\t")
        case "gz":
            file.write_bytes(gzip.compress(TEXT[:99].encode()) + gzip.compress(TEXT[99:].encode()))
        case "BZ2":
            file.write_bytes(bz2.compress(TEXT.encode()))
        case "xz":
            file.write_bytes(lzma.compress(TEXT.encode()))
        case "zip":
            FRAME.to_csv(file, index=False)
        case "jsonl":
            rows = [
                json.dumps({k: None if pd.isna(v) else v for k, v in row.items()}) for row in FRAME.to_dict("records")
            ]
            file.write_text("\n\n".join(rows))
        case "parquet":
            FRAME.to_parquet(file, row_group_size=11)
        case _:
            monkeypatch.setattr(sys, "stdin", io.StringIO(TEXT))
            file = name
    found = read(file, **settings)
    pd.testing.assert_frame_equal(found.reset_index(drop=True), FRAME, check_dtype=False, check_exact=True)
    if name == "rows.csv":
        assert found.index.tolist() == list(range(3, 103, 2))


def test_how_files_are_written(tmp_path):
    FRAME.to_csv(tmp_path / "rows.csv")
    with pytest.warns(UserWarning, match=r"rows.csv: column 0 is an index that pandas saved. Set drop \(--drop 0\)"):
        read(tmp_path / "rows.csv")
    file = tmp_path / "rows.txt"
    file.write_bytes("größe;x;zip;when\n1.234,5;-;01;2024-02-01\n2,5;1;02;0001-02-01T12:00\n;?;2;\n".encode("latin-1"))
    settings = {"sep": ";", "decimal": ",", "thousands": ".", "encoding": "latin-1", "missing": ["-", "?"]}
    found = read(file, **settings, types={"zip": str, -1: "date"})
    expected = {"größe": [1234.5, 2.5, np.nan], "x": [np.nan, 1, np.nan], "zip": ["01", "02", "2"]}
    expected["when"] = [19754, -719130.5, np.nan]
    assert found.to_dict("list").keys() == expected.keys()
    np.testing.assert_equal(found.to_dict("list"), expected)
    found = read(file, **settings, columns=["zip", 1], types={"zip": str})
    assert found.columns.tolist() == ["zip", "x"]
    assert read(file, **settings, drop=["when", 0]).columns.tolist() == ["x", "zip"]
    file.write_text("1,a\n2,b\n")
    assert read(file, header=False).to_dict("list") == {0: [1, 2], 1: ["a", "b"]}
    assert read(file, header=True).to_dict("list") == {"1": [2], "a": ["b"]}


@pytest.mark.parametrize("batch_size", [1, 3, 100])
@pytest.mark.parametrize(
    ("column", "late", "message"),
    [
        ("number", "abc", r"rows.csv, line 12: column 'number' has 'abc', which is no number"),
        ("number", "True", r"line 12: column 'number' has '?True'?, which is no number"),
        ("boolean", "maybe", r"line 12: column 'boolean' has 'maybe', which is neither True nor False"),
        ("day", "soon", r"line 12: column 'day' has 'soon', which is no date of ISO 8601"),
    ],
)
def test_later_rows_that_contradict_the_first_are_named(column, late, message, batch_size, tmp_path, monkeypatch):
    monkeypatch.setattr(_frames, "TYPED", 5)
    row = {"number": "1", "text": "u\nv", "boolean": "True", "day": "2024-01-01"}
    rows = pd.DataFrame([row] * 8)
    rows.loc[5:6, "text"] = "7"  # remains text
    rows.loc[3, column] = None
    (tmp_path / "rows.csv").write_text(rows.to_csv(index=False))
    found = read(tmp_path / "rows.csv", types={"day": "date"}, batch_size=batch_size)
    assert found["text"].tolist() == ["u\nv"] * 5 + ["7"] * 2 + ["u\nv"] and found.index[-1] == 14
    rows.loc[5, column] = late
    (tmp_path / "rows.csv").write_text(rows.to_csv(index=False))
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "rows.csv", types={"day": "date"}, batch_size=batch_size)


def test_values_of_arrow(tmp_path):
    file = tmp_path / "rows.feather"
    columns = {"decimal": [Decimal("1.5"), None], "word": pa.array(["u", "v"]).dictionary_encode(), "y": [1, 2]}
    pa.feather.write_feather(pa.table({**columns, "day": pa.array([0, 1], pa.date32())}), file)
    found = read(file, types={"day": "date"})
    assert found["decimal"].tolist()[0] == 1.5 and found["word"].dtype == "category" and found["day"].tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"rows.feather, row 0: column 'day' has Timestamp.*, which is a date"):
        read(file)
    assert len(read(file, drop=["day"])) == 2


def test_a_folder_of_tables_has_the_columns_of_pandas_and_the_types_of_each_part(tmp_path):
    """Partitions are columns, indexes are none; the first groups of rows may have missing values alone."""
    rows = FRAME.assign(c=[None] * 20 + ["u", "v"] * 15).set_index("a")
    rows.to_parquet(tmp_path / "parts", partition_cols=["b"], row_group_size=5)
    found = read(tmp_path / "parts", batch_size=3)
    assert found["c"].dropna().tolist() == ["u", "v"] * 15 or set(found["c"].dropna()) == {"u", "v"}
    expected = pd.read_parquet(tmp_path / "parts")
    assert found.columns.tolist() == expected.columns.tolist() == ["n", "c", "y", "b"]
    assert found["y"].tolist() == expected["y"].tolist() and found["b"].astype(str).tolist() == expected["b"].tolist()
    (tmp_path / "two").mkdir()
    for number, column in enumerate([[1, 2], [0.5, 1.5], ["x", "y"]]):
        pd.DataFrame({"n": column}).to_parquet(tmp_path / "two" / f"{number}.parquet")
        if number == 1:
            assert read(tmp_path / "two")["n"].tolist() == [1, 2, 0.5, 1.5]
    with pytest.raises(ValueError, match=r"two, row 4: column 'n' has 'x', which is no number"):
        read(tmp_path / "two")


def test_files_without_their_packages_name_the_extra(monkeypatch, tmp_path):
    (tmp_path / "rows.csv").write_text(TEXT)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ImportError, match=r"requires pandas, which is not installed: `python -m pip install 'onlinebregman\[files\]'`"
    ):
        fit_stream(ParameterFreeRegressor(), tmp_path / "rows.csv", target="y")


def test_types_do_not_depend_on_how_a_file_is_cut(tmp_path):
    rows = FRAME.assign(c=["7"] * 40 + ["x"] * 10, a=rng.normal(size=50), n=1.0)
    rows.loc[:20, "c"] = "u"
    rows = rows.round(3)  # older readers of pandas round the last digits of longer numbers
    rows.to_csv(tmp_path / "rows.csv", index=False)
    learn = ParameterFreeRegressor(random_features=4, random_state=0)
    models = [
        fit_stream(learn, FileFrames(tmp_path / "rows.csv", batch_size=size), target="y").estimator
        for size in (1, 13, 50)
    ]
    frame = pd.read_csv(tmp_path / "rows.csv")
    expected = ParameterFreeRegressor(random_features=4, random_state=0).partial_fit(
        frame.drop(columns="y"), frame["y"]
    )
    settings = {"target": "y", "checkpoint": tmp_path / "model.zip"}  # of chunks, one of which has numbers for texts
    fit_stream(learn, list(pd.read_csv(tmp_path / "rows.csv", chunksize=10))[:4], **settings)
    models.append(fit_stream(learn, tmp_path / "rows.csv", **settings).estimator)
    for model in models:
        assert model.categories_ == expected.categories_ and model.cumulative_loss_ == expected.cumulative_loss_


def test_a_number_or_boolean_and_its_text_are_one_category():
    """As a part of a file without other values is read by pandas."""
    rows = pd.DataFrame({"code": rng.choice(["7", "8", "2.5", "x"], 200), "flag": rng.choice(["True", "False"], 200)})
    y = (rows["code"] == "7") ^ (rows["flag"] == "True")
    model = ParameterFreeClassifier(random_features=4, random_state=0).partial_fit(rows, y, classes=[False, True])
    part = rows[rows["code"].isin(["7", "8"])]
    read = part.assign(code=part["code"].astype(int), flag=part["flag"] == "True")
    for other in (read, read.astype({"code": float}), read.astype(object)):
        assert np.array_equal(model.predict_proba(part), model.predict_proba(other))
    before = model.categories_
    assert model.partial_fit(read, y[part.index]).categories_ == before


# --- batches of arrays and of svmlight files --------------------------------------------------------------------------


X, y = rng.normal(size=(53, 3)).round(6), rng.normal(size=53).round(6)


def arrays(folder):
    return ArrayBatches(X, y, batch_size=10)


def memory_maps(folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return ArrayBatches(folder / "X.npy", folder / "y.npy", batch_size=10)


def sparse_rows(folder):
    return ArrayBatches(sparse.csc_array(X), y, batch_size=10)


def svmlight(folder):
    dump_svmlight_file(X, y, str(folder / "rows.txt"), zero_based=False)
    return SVMLightBatches(folder / "rows.txt", 3, batch_bytes=500, zero_based=False)


def joined(batches):
    batches = list(batches)
    rows = [part.toarray() if sparse.issparse(part) else part for part, _ in batches]
    return np.concatenate(rows or [np.empty((0, 3))]), np.concatenate([t for _, t in batches] or [np.empty(0)])


@pytest.mark.parametrize("source", [arrays, memory_maps, sparse_rows, svmlight])
def test_batches_contain_all_rows(source, tmp_path):
    batches = source(tmp_path)
    for _ in range(2):  # again
        rows, targets = joined(batches)
        assert np.array_equal(rows, X) and np.array_equal(targets, y)
    assert len(list(batches)) > 3


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_columns_are_counted_from_0_or_1(first, tmp_path):
    # the first batches do not tell, and there is a byte order mark
    (tmp_path / "rows.txt").write_text("\ufeff" + f"1 {first + 1}:2\n" * 20 + f"0 {first * 3}:4 # the end\n", "utf-8")
    batches = SVMLightBatches(tmp_path / "rows.txt", 3, batch_bytes=30)
    rows, _ = joined(batches)
    assert rows[:-1].tolist() == [[0.0, 2.0, 0.0]] * 20 and batches.zero_based_ == (first == 0)
    assert rows[-1].tolist() == [[4.0, 0.0, 0.0], [0.0, 0.0, 4.0]][first]


def test_svmlight_columns_that_do_not_tell_are_refused(tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("1 1:2\n")
    with pytest.raises(ValueError, match="must have a column 0 or a column 3"):
        list(SVMLightBatches(file, 3))
    file.write_text("1 0:2 3:4\n")
    with pytest.raises(ValueError, match="input file contains 4 features"):
        list(SVMLightBatches(file, 3))
    file.write_text("# no row\n")
    assert list(SVMLightBatches(file, 3)) == []


@pytest.mark.parametrize(("package", "ending"), [(bz2, "bz2"), (gzip, "gz"), (lzma, "xz")])
def test_packed_svmlight_files_are_read_to_their_end(package, ending, tmp_path):
    file = tmp_path / f"rows.svm.{ending.upper()}"
    with package.open(file, "wt") as packed:
        packed.writelines(f"{i} 0:{i}\n" for i in range(5000))
    _, targets = joined(SVMLightBatches(file, 1, batch_bytes=1000))
    assert np.array_equal(targets, np.arange(5000))


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="batch_size == 0"):
        ArrayBatches(X, y, batch_size=0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ArrayBatches(X, y[1:])


@pytest.mark.parametrize("wrong", ["1 1:a\n", "1 nine:2\n", "1 7:2\n", "1 99999999999999:2\n"])
def test_svmlight_lines_that_are_none_are_named(wrong, tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("1 1:1\n" * 7 + wrong + "0 2:1\n" * 3)
    with pytest.raises(ValueError, match=rf"rows.txt, line 8: got '{wrong.strip()}' \(.*n_features=3"):
        list(SVMLightBatches(file, 3, batch_bytes=20, zero_based=False))


@pytest.mark.parametrize(("package", "ending"), [(bz2, "bz2"), (gzip, "gz"), (lzma, "xz")])
def test_damaged_files_are_named(package, ending, tmp_path):
    file = tmp_path / f"rows.svm.{ending}"
    for content in (package.compress(b"1 1:2\n" * 99)[:-20], b"1 1:2\n" * 99):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"rows\.svm\..* is damaged"):
            list(SVMLightBatches(file, 3, zero_based=False))
