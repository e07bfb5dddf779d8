"""Batches of files and data bases contain all rows, starting at any row, and can be iterated repeatedly."""

import bz2
import gzip
import io
import lzma
import sqlite3
import sys
from contextlib import closing
from datetime import date

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from onlinebregman.streams import ArrayBatches, CSVBatches, ParquetBatches, SQLBatches, SVMLightBatches

rng = np.random.default_rng(0)
X, y = rng.normal(size=(53, 3)).round(6), rng.normal(size=53).round(6)
NAMES = ("a", "b", "c", "y")


def lines(targets=y, delimiter=","):
    rows = (delimiter.join([*map(repr, map(float, x)), str(t)]) for x, t in zip(X, targets, strict=True))
    return "\n".join([delimiter.join(NAMES), *rows]) + "\n"


def arrays(folder):
    return ArrayBatches(X, y, batch_size=10)


def memory_maps(folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return ArrayBatches(folder / "X.npy", folder / "y.npy", batch_size=10)


def sparse_rows(folder):
    return ArrayBatches(sparse.csc_array(X), y, batch_size=10)


def csv_file(folder):
    (folder / "rows.csv").write_text(lines())
    return CSVBatches(folder / "rows.csv", target="y", batch_size=10)


def packed_csv(folder):
    with gzip.open(folder / "rows.csv.gz", "wt") as file:
        file.write(lines(delimiter=";"))
    return CSVBatches(folder / "rows.csv.gz", delimiter=";", batch_size=10)


def svmlight(folder):
    dump_svmlight_file(X, y, str(folder / "rows.txt"), zero_based=False)
    return SVMLightBatches(folder / "rows.txt", 3, batch_bytes=500, zero_based=False)


def parquet(folder):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table(dict(zip(NAMES, [*X.T, y], strict=True)))
    (folder / "rows").mkdir(exist_ok=True)
    parquet.write_table(table.slice(0, 30), folder / "rows" / "1.parquet", row_group_size=7)
    parquet.write_table(table.slice(30), folder / "rows" / "2.parquet")
    return ParquetBatches(folder / "rows", target="y", batch_size=10)


def sqlite(folder):
    with closing(sqlite3.connect(folder / "rows.db", isolation_level=None)) as base:
        base.execute("CREATE TABLE IF NOT EXISTS measured (a REAL, b REAL, c REAL, y REAL)")
        if not base.execute("SELECT count(*) FROM measured").fetchone()[0]:
            base.executemany("INSERT INTO measured VALUES (?, ?, ?, ?)", np.c_[X, y].tolist())
    query = "SELECT * FROM measured ORDER BY rowid"
    return SQLBatches(lambda: sqlite3.connect(folder / "rows.db"), query, batch_size=10)


def joined(batches):
    batches = list(batches)
    rows = [part.toarray() if sparse.issparse(part) else part for part, _ in batches]
    return np.concatenate(rows or [np.empty((0, 3))]), np.concatenate([t for _, t in batches] or [np.empty(0)])


SOURCES = [arrays, memory_maps, sparse_rows, csv_file, packed_csv, svmlight, parquet, sqlite]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("start", [0, 1, 10, 37, 53])
def test_batches_contain_all_rows(source, start, tmp_path):
    batches = source(tmp_path)
    for _ in range(2):  # again
        rows, targets = joined(batches.read(start))
        assert np.array_equal(rows, X[start:]) and np.array_equal(targets, y[start:])
    assert len(list(batches)) > 3


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("start", [54, 100])
def test_a_start_beyond_the_last_row_is_refused(source, start, tmp_path):
    with pytest.raises(ValueError, match=f"has only 53 rows, and cannot be read from row {start} on"):
        next(source(tmp_path).read(start))


@pytest.mark.parametrize("source", [csv_file, parquet, sqlite])
def test_only_requested_columns_are_read(source, tmp_path):
    batches = source(tmp_path)
    batches.columns, batches.target = ["c", 0], None
    rows = np.concatenate([rows for rows, targets in batches if targets is None])
    assert np.array_equal(rows, X[:, [2, 0]])
    batches.columns = ["d"]
    with pytest.raises(ValueError, match="must have a column 'd'; got a, b, c, y"):
        list(batches)


def test_targets_of_text_stay_text_however_they_look_later(tmp_path):
    labels = np.where(y > 0, "yes", "no")
    labels[20:] = "1"
    (tmp_path / "rows.csv").write_text(lines(labels))
    batches = CSVBatches(tmp_path / "rows.csv", batch_size=10)
    assert np.array_equal(joined(batches)[1], labels)
    for start in (5, 10, 25):  # as after a checkpoint
        assert np.array_equal(np.concatenate([targets for _, targets in batches.read(start)]), labels[start:])


@pytest.mark.parametrize("standard_input", [False, True])
def test_a_byte_order_mark_before_quotes(standard_input, tmp_path, monkeypatch):
    text = '\ufeff"size\n(cm)",y\n1,2\n3,4\n'
    file = tmp_path / "rows.csv"
    for header, expected in ((True, [[[1.0], [3.0]], [2.0, 4.0]]), (False, [[["size\n(cm)"], ["1"], ["3"]], None])):
        file.write_text(text, encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        batches = CSVBatches("-" if standard_input else file, "y" if header else None, header=header)
        batches.columns = None if header else [0]
        ((rows, targets),) = batches
        assert [rows.tolist(), None if targets is None else targets.tolist()] == expected
        assert batches.feature_names_ == (["size\n(cm)"] if header else None)


def test_quoted_fields_and_files_without_a_header(tmp_path):
    with bz2.open(tmp_path / "rows.csv.bz2", "wt") as file:
        file.write('1.5,"a, b",2\n\n2.5,c,3\n')
    ((rows, targets),) = CSVBatches(tmp_path / "rows.csv.bz2", target=1, header=False)
    assert rows.tolist() == [[1.5, 2.0], [2.5, 3.0]] and targets.tolist() == ["a, b", "c"]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeff" + lines()))  # with a BOM
    assert list(CSVBatches("-", target="y", columns=["a"]))
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines()))
    assert np.array_equal(joined(CSVBatches("-"))[0], X)
    for text, n_rows in ((lines(), 53), ("a,y\n", 0), ("", 0)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        with pytest.raises(ValueError, match=f"has only {n_rows} rows, and cannot be read from row 60 on"):
            list(CSVBatches("-").read(60))


def test_an_empty_file_has_no_batches(tmp_path):
    (tmp_path / "rows.csv").write_text("")
    assert list(CSVBatches(tmp_path / "rows.csv")) == []


def test_what_is_no_number_is_refused_with_its_place(tmp_path):
    (tmp_path / "rows.csv").write_text(lines().replace(repr(float(X[25, 1])), "blue"))
    with pytest.raises(ValueError, match="blue") as caught:
        list(CSVBatches(tmp_path / "rows.csv", batch_size=10))
    assert "rows 20 to 29" in caught.value.__notes__[0]


def test_targets_of_text_after_numbers_are_refused_with_their_place(tmp_path):
    file = tmp_path / "late.csv"
    file.write_text("x,y\n1,1\n2,0\n3,u\n")
    with pytest.raises(ValueError, match="Column 'y' must hold numbers; got 'u' in row 2") as raised:
        list(CSVBatches(file, batch_size=2))
    assert raised.value.__notes__ == [f"This was in {file}, rows 2 to 2."]


@pytest.mark.parametrize("batch_size", [1, 2, 10])
def test_quoted_values_may_have_line_breaks(batch_size, tmp_path):
    file = tmp_path / "notes.csv"
    file.write_text('"no\nte",x,y\nshort,1,a\n"of\n\n2,2,two ""lines""\n",3,"b\nc"\n5" pipe,4,d\n')
    batches = CSVBatches(file, columns=["x"], batch_size=batch_size)
    for start in range(4):  # rows are counted, not lines
        rows, targets = joined(batches.read(start)) if start < 3 else (np.empty((0, 1)), np.empty(0))
        assert rows[:, 0].tolist() == [1.0, 3.0, 4.0][start:] and targets.tolist() == ["a", "b\nc", "d"][start:]
    file.write_text('x,y\n1,a\n2,"b\n3,c\n')
    with pytest.raises(ValueError, match="Quotes must be closed; got '2,\"b'"):
        list(CSVBatches(file, batch_size=batch_size))


@pytest.mark.parametrize("batch_size", [1, 2, 10])
@pytest.mark.parametrize("last", ["2,", '2,""'])
def test_empty_targets_are_refused_in_whatever_batch_they_are(batch_size, last, tmp_path):
    (tmp_path / "rows.csv").write_text(f"x,y\n1,0\n1,1\n{last}\n3,1\n")
    with pytest.raises(ValueError, match="Targets must not be empty; got none in row 2"):
        list(CSVBatches(tmp_path / "rows.csv", batch_size=batch_size))


@pytest.mark.parametrize("batch_size", [1, 10])
@pytest.mark.parametrize("header", ["x,y\n", ""])
def test_rows_of_another_number_of_values_than_the_first_line_are_refused(header, batch_size, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(header + '1,"a, b"\n2,c,\n')  # an empty value at the end is none
    batches = CSVBatches(file, header=bool(header), batch_size=batch_size)
    assert joined(batches)[1].tolist() == ["a, b", "c"]
    file.write_text(header + "1,a\n2,b, c\n")
    with pytest.raises(ValueError, match="must have 2 values, as the first line; got 3 in row 1"):
        list(batches)
    file.write_text(header + '1,a\n"2, 3"\n')
    with pytest.raises(ValueError, match="must have 2 values, as the first line; got 1 in row 1"):
        list(batches)
    ((X, _),) = CSVBatches(file, None, columns=[0], header=bool(header), text_columns=[0])  # all the values it reads
    assert X.tolist() == [["1"], ["2, 3"]]


def test_a_row_without_any_value_is_no_empty_line(tmp_path):
    (tmp_path / "rows.tsv").write_text("a\tb\n1\t2\n\t\n \n")
    with pytest.raises(ValueError, match="Targets must not be empty; got none in row 1"):
        list(CSVBatches(tmp_path / "rows.tsv", delimiter="\t"))


# --- missing values and text ------------------------------------------------------------------------------------------

MIXED = "size,colour,shape,y\n1,red,round,0\n?,NA,,1\nnan, blue,7,0\nN/A,8,square,1\n2.5,red,None,0\n"
ROWS = [
    [1.0, "red", "round"],
    [np.nan, None, None],
    [np.nan, "blue", "7"],
    [np.nan, "8", "square"],
    [2.5, "red", None],
]


@pytest.mark.parametrize("start", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [2, 3, 10])
def test_columns_of_text_and_missing_values(start, batch_size, tmp_path):
    file = tmp_path / "mixed.csv"
    file.write_text(MIXED)
    found = CSVBatches(file, batch_size=batch_size)
    for batches in (
        found,
        CSVBatches(file, text_columns=["shape", 1]),
        CSVBatches(file, text_columns=[False, True, True]),
    ):
        rows, targets = joined(batches.read(start))
        assert rows.dtype == object and targets.tolist() == [0, 1, 0, 1, 0][start:]
        np.testing.assert_equal(rows.tolist(), ROWS[start:])
    rows, _ = joined(CSVBatches(file, columns=["size"], batch_size=batch_size).read(start))
    assert rows.dtype == np.float64
    np.testing.assert_equal(rows[:, 0].tolist(), [row[0] for row in ROWS[start:]])


def test_text_in_a_column_of_numbers_is_named(tmp_path):
    file = tmp_path / "mixed.csv"
    file.write_text("x,y\n1,0\n2,1\nred,0\n")
    with pytest.raises(ValueError, match="Column 'x' must hold numbers; got 'red' in row 2"):
        list(CSVBatches(file, batch_size=2))
    with pytest.raises(ValueError, match="must have one entry for each of the 1 columns of X"):
        list(CSVBatches(file, text_columns=[True, False]))
    with pytest.raises(ValueError, match="must have a column 'z'"):
        list(CSVBatches(file, text_columns=["z"]))


def test_text_and_missing_values_of_tables_and_queries(tmp_path):
    import pyarrow
    import pyarrow.parquet

    columns = {"size": [1.0, None, 2.5], "count": [1, 2, None], "colour": ["red", None, "blue"], "y": [0, 1, 0]}
    expected = [[1.0, 1.0, "red"], [np.nan, 2.0, None], [2.5, np.nan, "blue"]]
    table = pyarrow.table({**columns, "colour": pyarrow.array(columns["colour"]).dictionary_encode()})
    pyarrow.parquet.write_table(table, tmp_path / "mixed.parquet")
    rows, _ = joined(ParquetBatches(tmp_path / "mixed.parquet", "y"))
    np.testing.assert_equal(rows.tolist(), expected)
    assert joined(ParquetBatches(tmp_path / "mixed.parquet", "y", columns=["size", "count"]))[0].dtype == np.float64

    def connect():
        base = sqlite3.connect(":memory:")
        base.execute("CREATE TABLE mixed (size REAL, count INT, colour TEXT, y INT)")
        base.executemany("INSERT INTO mixed VALUES (?, ?, ?, ?)", list(zip(*columns.values(), strict=True)))
        return base

    rows, _ = joined(SQLBatches(connect, "SELECT * FROM mixed", "y"))
    assert rows.tolist() == [[1.0, 1, "red"], [None, 2, None], [2.5, None, "blue"]]
    rows, _ = joined(SQLBatches(connect, "SELECT size, y FROM mixed", "y"))
    np.testing.assert_equal(rows.tolist(), [[1.0], [np.nan], [2.5]])


DAYS = [date(2024, 1, 1 + day) for day in range(9)]
TIMES = np.array(DAYS, dtype="datetime64[ns]")


@pytest.mark.parametrize(
    "values",
    [TIMES, TIMES.astype("datetime64[us]"), TIMES - TIMES[0], DAYS, [None, *DAYS[1:]], [b"u"] * 9, [[1, 2]] * 9],
    ids=["ns", "us", "differences", "dates", "missing", "bytes", "lists"],
)
@pytest.mark.parametrize("start", [0, 5])
def test_dates_and_other_values_of_tables_are_refused(values, start, tmp_path):
    import pyarrow
    import pyarrow.parquet

    file = tmp_path / "dates.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"when": values, "x": np.arange(9.0), "y": np.arange(9)}), file)
    with pytest.raises(ValueError, match=rf"Column 'when' must hold numbers or text; got .* in row {start}\. Leave"):
        list(ParquetBatches(file, batch_size=4).read(start))
    assert joined(ParquetBatches(file, columns=["x"]).read(start))[0][:, 0].tolist() == list(range(start, 9))


@pytest.mark.parametrize("start", [0, 5])
def test_dates_of_queries_are_refused(start):
    def connect():
        base = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
        base.execute("CREATE TABLE dates (colour TEXT, seen BLOB, y INT)")
        base.executemany("INSERT INTO dates VALUES (?, ?, ?)", [("red", b"u" if i > 6 else i, i) for i in range(9)])
        return base

    for columns in (["seen"], ["colour", "seen"]):
        batches = SQLBatches(connect, "SELECT * FROM dates ORDER BY y", columns=columns, batch_size=2)
        with pytest.raises(ValueError, match="Column 'seen' must hold numbers or text; got b'u' in row 7"):
            list(batches.read(start))


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_columns_are_counted_from_0_or_1(first, tmp_path):
    # the first batches do not tell
    (tmp_path / "rows.txt").write_text("# columns\n" + f"1 {first + 1}:2\n" * 20 + f"0 {first * 3}:4 # the end\n")
    batches = SVMLightBatches(tmp_path / "rows.txt", 3, batch_bytes=30)
    for start in (0, 10):
        rows, _ = joined(batches.read(start))
        assert rows[:-1].tolist() == [[0.0, 2.0, 0.0]] * (20 - start)
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


@pytest.mark.parametrize(("package", "ending"), [(bz2, "bz2"), (gzip, "gz"), (lzma, "xz")])
def test_damaged_files_are_named(package, ending, tmp_path):
    file = tmp_path / f"rows.csv.{ending}"
    file.write_bytes(package.compress(lines().encode())[:-20])
    with pytest.raises(ValueError, match=r"rows\.csv\..* is damaged"):
        list(CSVBatches(file))
    file.write_bytes(package.compress(lines().encode())[:40] + bytes(range(256)))
    with pytest.raises(ValueError, match=r"rows\.csv\..* (is damaged|must be text in UTF-8)"):
        list(CSVBatches(file))
    file.write_text(lines())
    with pytest.raises(ValueError, match=r"rows\.csv\..* is damaged"):
        list(CSVBatches(file))


def test_text_in_another_encoding_names_the_file(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_bytes("a,y\n1,Zürich\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"rows\.csv must be text in UTF-8: .* Convert it"):
        list(CSVBatches(file))


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="batch_size == 0"):
        ArrayBatches(X, y, batch_size=0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ArrayBatches(X, y[1:])


@pytest.mark.parametrize("wrong", ["1 1:a\n", "1 nine:2\n", "1 7:2\n"])
def test_svmlight_lines_that_are_none_are_named(wrong, tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("1 1:1\n" * 7 + wrong + "0 2:1\n" * 3)
    with pytest.raises(ValueError, match=rf"must have lines.*; got '{wrong.strip()}' in line 8 \("):
        list(SVMLightBatches(file, 3, batch_bytes=20, zero_based=False))


def test_names_of_columns(tmp_path):
    file = tmp_path / "named.csv"
    file.write_text("a,b,b,y\n1,2,3,4\n")
    for batches, names in [
        (CSVBatches(file), None),  # two have the same name
        (CSVBatches(file, columns=["a", "b"]), ["a", "b"]),
        (CSVBatches(file, "a", columns=["y"]), ["y"]),
        (CSVBatches(file, header=False, text_columns=[True] * 3), None),
        (ArrayBatches(X, y), None),
    ]:
        assert batches.feature_names_ is None
        assert list(batches) and batches.feature_names_ == names
    with pytest.raises(ValueError, match="must have a target that is not one of the columns of X; got 'b'"):
        list(CSVBatches(file, "b", columns=["a", "b"]))
