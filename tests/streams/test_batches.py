"""Batches of arrays and of svmlight files contain all rows, and can be iterated repeatedly."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from onlinebregman.streams import ArrayBatches, SVMLightBatches

rng = np.random.default_rng(0)
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
