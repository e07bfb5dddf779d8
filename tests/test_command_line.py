"""The commands `learn`, `predict` and `test` give the same results as the library, or say what is wrong in a line."""

import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer

from onlinebregman import ForwardClassifier, ForwardRegressor, MirrorDescentClassifier, ParameterFreeClassifier
from onlinebregman.__main__ import main
from onlinebregman.persistence import load_model, save_model

X, y = load_breast_cancer(return_X_y=True)
X, y = pd.DataFrame(X[:300, :10], columns=[f"x{i}" for i in range(10)]), y[:300]
NAMES = np.array(["malignant", "benign"])


def text(targets, rows=X):
    return rows.assign(y=targets).to_csv(index=False)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells.csv").write_text(text(NAMES[y]))
    return tmp_path


def probabilities(file="p.csv"):
    return np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)


def learned(model, targets=None, rows=X):
    targets = NAMES[y] if targets is None else targets
    return model.partial_fit(rows, targets, classes=np.unique(targets))


def test_the_default_has_nothing_to_set(capsys):
    assert main(["learn", "cells.csv", "-m", "model.zip"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "target 'y': categories, labels benign, malignant"
    assert said[1] == "10 columns of numbers: x0, x1, x2, x3, x4, x5, x6, x7 ..."
    assert said[2].split() == ["rows", "log_loss", "seconds"] and said[4:] == ["300 rows learned -> model.zip"]
    model = learned(ParameterFreeClassifier())
    assert float(said[-2].split()[1]) == pytest.approx(model.cumulative_loss_ / 300, rel=1e-5)
    assert np.array_equal(load_model("model.zip").predict_proba(X), model.predict_proba(X))
    assert main(["predict", "cells.csv", "-m", "model.zip"]) == 0
    assert capsys.readouterr().out.split() == model.predict(X).tolist()
    assert main(["predict", "cells.csv", "-m", "model.zip", "--proba", "-o", "p.csv"]) == 0
    assert np.array_equal(probabilities(), model.predict_proba(X))
    assert pd.read_csv("p.csv").columns.tolist() == ["benign", "malignant"]
    assert main(["test", "cells.csv", "-m", "model.zip"]) == 0
    said = dict(line.split() for line in capsys.readouterr().out.splitlines())
    wrong = (model.predict(X) != NAMES[y]).mean()
    assert said["rows"] == "300" and float(said["error"]) == pytest.approx(wrong, abs=1e-6)
    of_label = model.predict_proba(X)[np.arange(300), 1 - y]
    assert float(said["log_loss"]) == pytest.approx(-np.log(of_label).mean(), rel=1e-5)


def test_estimators_and_their_parameters(capsys):
    command = ["learn", "cells.csv", "-m", "m.zip", "-e", "MirrorDescentClassifier", "--quiet", "--set", "penalty=l1"]
    assert main([*command, "alpha=1e-3", "divergence=squared_euclidean", "--set", "standardize=True"]) == 0
    settings = {"penalty": "l1", "alpha": 1e-3, "divergence": "squared_euclidean", "standardize": True}
    assert np.array_equal(load_model("m.zip").coef_, learned(MirrorDescentClassifier(**settings)).coef_)
    assert main(["learn", "cells.csv", "-m", "m.zip", "--set", "share=0.1"]) == 1
    assert "give another file, or resume=False to start over (--restart on the command line)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "labels",
    [("0", "1"), ("01", "02"), ("1.0", "2.50"), ("1000000000001", "7"), ("9007199254740993", "9007199254740992"),
     ("True", "False"), ("a,b", 'c"d'), ("1", "1e400"), ("+", "-"), ("99999999999999999999", "1")],
)  # fmt: skip
def test_labels_come_back_as_they_were_written(labels, folder, capsys):
    rows = X.assign(y=np.array(labels)[y])
    rows.to_csv("labels.csv", index=False)
    assert main(["learn", "labels.csv", "-m", "m.zip", "-e", "ForwardClassifier", "--quiet"]) == 0
    assert main(["predict", "labels.csv", "-m", "m.zip"]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out), dtype=str, header=None, keep_default_na=False)[0]
    assert np.mean(found != rows["y"]) < 0.2 and set(found) == set(labels)
    model = load_model("m.zip")  # as pandas reads them, if they are whole numbers
    assert set(model.classes_) == set(pd.read_csv("labels.csv")["y"] if labels == ("0", "1") else model.classes_)
    assert main(["test", "labels.csv", "-m", "m.zip"]) == 0
    assert "error 0.0" in capsys.readouterr().out


def test_many_different_numbers_need_no_name_of_a_regressor_and_learning_says_what_testing_says(capsys):
    assert main(["learn", "cells.csv", "-m", "m.zip", "-t", "x0", "--columns", "x1", "x2"]) == 0
    said, model = capsys.readouterr().err.splitlines(), load_model("m.zip")
    assert (
        said[:2] == ["target 'x0': numbers", "2 columns of numbers: x1, x2"] and said[2].split()[1] == "squared_error"
    )
    assert float(said[-2].split()[1]) == pytest.approx(2 * model.cumulative_loss_ / 300, rel=1e-5)


def test_numbers_are_labels_only_if_that_is_said_and_texts_among_them_if_they_are_named(folder, capsys):
    rows = X[["x1"]].assign(y=np.arange(300) % 5)
    rows.to_csv("ages.csv", index=False)
    assert main(["learn", "ages.csv", "-m", "m.zip"]) == 0
    said = "labels 0, 1, 2, 3, 4 (5 numbers as labels; for numbers --estimator ParameterFreeRegressor)"
    assert said in capsys.readouterr().err
    rows.assign(y=X["x0"]).to_csv("comma.csv", index=False, sep=";", decimal=",")
    assert main(["learn", "comma.csv", "-m", "n.zip", "--sep", ";", "--decimal", ","]) == 0
    assert "target 'y': numbers" in capsys.readouterr().err
    (folder / "ages.csv").write_text(rows.assign(y=[*rows["y"][1:], "old"]).to_csv(index=False))
    for given in (["--classes", "0,1,2,3,4,old"], ["--categories", "y"]):
        assert main(["learn", "ages.csv", "-m", "o.zip", "--restart", "-e", "ForwardClassifier", *given]) == 0
        assert load_model("o.zip").classes_.tolist() == ["0", "1", "2", "3", "4", "old"]


def test_standard_input_and_numbers(monkeypatch, capsys):
    threads, numbers = set(), X.assign(y=X["x0"] / 10).drop(columns="x0").to_csv(index=False)

    def lines():
        for line in numbers.splitlines(keepends=True):
            threads.add(threading.current_thread())
            yield line

    monkeypatch.setattr(sys, "stdin", lines())
    assert main(["learn", "-", "-m", "m.zip", "-e", "ForwardRegressor", "--quiet"]) == 0
    assert threads == {threading.current_thread()}  # where it can be interrupted
    rows = X.drop(columns="x0")
    model = ForwardRegressor().partial_fit(rows, X["x0"] / 10)
    assert np.array_equal(load_model("m.zip").coef_, model.coef_)
    monkeypatch.setattr(sys, "stdin", io.StringIO(numbers))
    assert main(["test", "-", "-m", "m.zip"]) == 0
    error = ((model.predict(rows) - X["x0"] / 10) ** 2).mean()
    assert float(capsys.readouterr().out.split()[-1]) == pytest.approx(error, rel=1e-5)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(numbers.splitlines()[:5])))
    assert main(["learn", "-", "-m", "m.zip"]) == 1
    assert "The stream has only 4 rows, and cannot be read from row 300 on" in capsys.readouterr().err


def test_labels_that_are_added_need_no_first_pass(monkeypatch):
    command = ["-m", "m.zip", "-e", "ForwardClassifier", "--set", "handle_unknown=add", "--quiet"]
    monkeypatch.setattr(sys, "stdin", io.StringIO(text(NAMES[y])))
    assert main(["learn", "-", *command]) == 0
    model = ForwardClassifier(handle_unknown="add").partial_fit(X, NAMES[y])
    assert np.array_equal(load_model("m.zip").predict_proba(X), model.predict_proba(X))


def test_the_same_file_is_resumed_and_another_one_continued(folder, capsys):
    (folder / "part.csv").write_text(text(NAMES[y[:120]], X[:120]))
    (folder / "day2.csv").write_text(text(NAMES[y[120:240]], X[120:240]))
    (folder / "long.csv").write_text(text(NAMES[y[120:]], X[120:]))
    learn = ["-m", "m.zip", "--quiet", "--classes", "malignant,benign"]
    assert main(["learn", "part.csv", *learn]) == 0
    (folder / "m.zip.0123.part").touch()  # left by a run that was killed
    for other in ("day2.csv", "long.csv"):  # of equal length, and longer
        for how in ([], ["--resume"]):
            assert main(["learn", other, *learn, *how]) == 1
            assert (
                "other rows than those that m.zip has learned" in (said := capsys.readouterr().err)
                and "--continue" in said
            )
    assert main(["learn", "cells.csv", "-m", "m.zip"]) == 0  # the file has grown
    assert capsys.readouterr().err.splitlines()[-1] == "300 rows learned, 120 of them before -> m.zip"
    whole = learned(ParameterFreeClassifier())
    assert np.array_equal(load_model("m.zip").predict_proba(X), whole.predict_proba(X))
    assert (
        main(["learn", "part.csv", *learn, "--restart"])
        == main(["learn", "long.csv", "-m", "m.zip", "--continue"])
        == 0
    )
    assert np.array_equal(load_model("m.zip").predict_proba(X), whole.predict_proba(X))
    assert main(["learn", "long.csv", "-m", "m.zip"]) == 0  # nothing left to learn
    assert load_model("m.zip").t_ == 300
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".part") == []


def test_rows_whose_labels_come_together(folder):
    assert main(["learn", "cells.csv", "-m", "m.zip", "--delay", "7", "--quiet"]) == 0
    expected = ParameterFreeClassifier(delayed=True)
    for first in range(0, 300, 7):
        expected.partial_fit(X[first : first + 7], NAMES[y[first : first + 7]], classes=sorted(NAMES))
    assert load_model("m.zip").cumulative_loss_ == expected.cumulative_loss_
    for again in ([], ["--delay", "7", "-e", "ParameterFreeClassifier"]):  # nothing left to learn
        assert main(["learn", "cells.csv", "-m", "m.zip", *again]) == 0 and load_model("m.zip").t_ == 300
    assert main(["learn", "cells.csv", "-m", "n.zip", "--delay", "7", "-e", "ForwardClassifier"]) == 1


def test_columns_are_found_by_their_names(folder, capsys):
    table = X.assign(y=NAMES[y])
    other = table[["y", *table.columns[:-1][::-1]]].assign(more="text")  # another order, and one column more
    other.to_csv("other.csv", index=False)
    other.drop(columns="y").to_csv("rows.csv", index=False)
    table.to_parquet("table.parquet")
    other.to_json("other.jsonl", orient="records", lines=True, double_precision=15)
    expected = learned(ForwardClassifier())
    for known, rows, tested in [("cells.csv", "rows.csv", "other.jsonl"), ("table.parquet", "other.csv", "other.csv")]:
        assert main(["learn", known, "-m", f"{known}.zip", "-e", "ForwardClassifier", "--quiet"]) == 0
        assert np.array_equal(load_model(f"{known}.zip").predict_proba(X), expected.predict_proba(X))
        assert main(["predict", rows, "-m", f"{known}.zip", "--proba", "-o", "p.csv"]) == 0
        assert np.array_equal(probabilities(), expected.predict_proba(X))
        assert main(["test", tested, "-m", f"{known}.zip"]) == 0
        assert f"error {(expected.predict(X) != NAMES[y]).mean():.6g}" in capsys.readouterr().out
    save_model(expected, "python.zip")  # knows no target
    assert main(["test", "other.csv", "-m", "python.zip", "-t", "y"]) == 0
    assert main(["test", "other.csv", "-m", "python.zip"]) == 0  # the error is that of labels "text"
    table.drop(columns="x7").to_csv("less.csv", index=False)
    assert main(["predict", "less.csv", "-m", "python.zip"]) == 1
    assert "less.csv must have a column 'x7'; got x0, x1" in capsys.readouterr().err
    assert main(["learn", "cells.csv", "-m", "n.zip", "--columns", "x3", "1", "--quiet"]) == 0
    assert load_model("n.zip").feature_names_in_.tolist() == ["x3", "x1"]


def test_files_without_names_are_read_by_places(folder, capsys):
    for name, targets in (("bare.csv", True), ("rows.csv", False)):
        X.assign(**{"y": NAMES[y]} if targets else {}).to_csv(name, index=False, header=False)
    assert main(["learn", "bare.csv", "-m", "m.zip", "--no-header", "-e", "ForwardClassifier", "--quiet"]) == 0
    expected = learned(ForwardClassifier(), rows=X.to_numpy())
    for name in ("bare.csv", "rows.csv"):
        assert main(["predict", name, "-m", "m.zip", "--proba", "-o", "p.csv"]) == 0
        assert np.array_equal(probabilities(), expected.predict_proba(X.to_numpy()))


@pytest.mark.parametrize(
    "options", ["-t 0", "-t -5 --columns -1 3", "-t 0 --drop 1 4", "-t none -e DensityOutlierDetector"]
)
@pytest.mark.parametrize("texts", [["c"], []])
def test_places_are_those_of_the_file_that_was_learned(options, texts, folder, capsys):
    """Also if targets before or after them are not there, and whatever the targets are."""
    rows = ROWS[["y", "a", "b", "d", "c"]].assign(y=np.arange(120.0), d=range(120), a=ROWS["b"] / 9)
    rows = rows if texts and "none" not in options else rows.drop(columns="c").assign(e=1.0)
    for name, columns in (("all.csv", rows), ("rows.csv", rows.iloc[:, 1:]), ("odd.csv", rows.iloc[:, 2:])):
        columns.to_csv(name, index=False, header=False)
    given = [] if "none" in options else ["-e", "ParameterFreeRegressor", *FAST]
    assert main(["learn", "all.csv", "-m", "m.zip", "--no-header", "--quiet", *options.split(), *given]) == 0
    assert main(["predict", "odd.csv", "-m", "m.zip"]) == 1
    check_refusal(capsys, "3 values, but the model has learned 5 columns by their places")
    assert main(["predict", "all.csv", "-m", "m.zip", "-o", "all.txt"]) == 0
    assert main(["predict", "rows.csv", "-m", "m.zip", "-o", "rows.txt"]) == ("none" in options)
    assert "none" in options or (folder / "rows.txt").read_text() == (folder / "all.txt").read_text()


def test_svmlight(folder, capsys):
    rows = X.to_numpy()
    dump_svmlight_file(rows, y, "cells.svm")
    dump_svmlight_file(rows, y, "from1.svm", zero_based=False)
    (folder / "row.svm").write_text("1 2:0.5\n")  # does not tell
    for first, file in enumerate(["cells.svm", "from1.svm"]):
        assert main(["learn", file, "--quiet", "-m", f"{first}.zip", "--n-features", "10"]) == 0
        assert np.array_equal(load_model(f"{first}.zip").predict_proba(rows), load_model("0.zip").predict_proba(rows))
        assert main(["predict", "row.svm", "--proba", "-o", f"{first}.csv", "-m", f"{first}.zip"]) == 0
        row = 0.5 * np.eye(10)[[2 - first]]
        assert np.array_equal(probabilities(f"{first}.csv"), load_model("0.zip").predict_proba(row))
        assert main(["test", file, "-m", f"{first}.zip"]) == 0


def test_a_reader_that_has_enough_is_no_error(folder):
    save_model(learned(ForwardClassifier()), "m.zip")
    (folder / "cells.csv").write_text(text(np.resize(NAMES, 30_000), X.iloc[np.resize(np.arange(300), 30_000)]))
    command = [sys.executable, "-m", "onlinebregman", "predict", "cells.csv", "-m", "m.zip"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"malignant\n"
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="it is there on Linux")
@pytest.mark.parametrize("to, said", [("> /dev/full", "No space left on device"), (">&-", "give --output")])
@pytest.mark.parametrize("command", ["predict", "test"])
def test_an_output_that_takes_nothing_is_an_error(folder, command, to, said):
    save_model(learned(ForwardClassifier()), "m.zip")
    command = f"{sys.executable} -m onlinebregman {command} cells.csv -m m.zip {to}"
    found = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True)
    assert found.returncode == 1 and said in found.stderr and found.stderr.count("\n") == 1


def test_a_run_that_is_ended_leaves_nothing_half_written(folder):
    save_model(learned(ForwardClassifier()), "m.zip")
    command = [sys.executable, "-m", "onlinebregman", "predict", "-", "-m", "m.zip", "-o", "out.csv"]
    command = ["sh", "-c", 'trap "" INT; exec "$0" "$@"', *command]  # as in the background, where Ctrl-C is ignored
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not (folder / "out.csv.part").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 130
    assert not list(folder.glob("out.csv*"))


def test_a_bar_moves_on_a_terminal(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    (folder / "cells.csv").write_text(text(np.resize(NAMES, 12_000), X.iloc[np.resize(np.arange(300), 12_000)]))
    assert main(["learn", "cells.csv", "-m", "m.zip", "-e", "ForwardClassifier", "--classes", "benign,malignant"]) == 0
    bar = capsys.readouterr().err.splitlines()[3]
    assert bar.lstrip().startswith("10000 ") and "[=" in bar and "%" in bar


def test_a_test_counts_labels_that_are_unknown_and_says_what_is_wrong(folder, capsys):
    save_model(learned(ForwardClassifier()), "m.zip")
    labels = np.resize(NAMES[y], 10_300).astype("<U9")
    labels[-1] = "unknown"  # in the second batch
    (folder / "cells.csv").write_text(text(labels, X.iloc[np.resize(np.arange(300), 10_300)]))
    assert main(["test", "cells.csv", "-m", "m.zip"]) == 0
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()] == ["rows", "error"] and "learned unknown" in said.err
    save_model(ForwardRegressor().partial_fit(X, y), "m.zip")
    for target in ("y", "none"):
        assert main(["test", "cells.csv", "-t", target, "-m", "m.zip"]) == 1
    captured = capsys.readouterr()
    assert "line 2: column 'y' has 'malignant', which is no number" in captured.err and captured.out == ""
    assert "need a column of targets; got --target none" in captured.err


def test_what_is_read_is_not_overwritten(folder, capsys):
    save_model(learned(ForwardClassifier()), "m.zip")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for command in (
        ["learn", "cells.csv", "--restart", "-m", "./cells.csv"],
        ["predict", "cells.csv", "-m", "m.zip", "-o", "cells.csv"],
        ["predict", "cells.csv", "-m", "m.zip", "-o", "./m.zip"],
    ):
        assert main(command) == 1
        assert "would be overwritten while it is read" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# --- odd files --------------------------------------------------------------------------------------------------------


def table(n=120):
    rng = np.random.default_rng(0)
    a = np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n).round(3))
    rows = pd.DataFrame(
        {"a": a, "b": (1000 * rng.normal(size=n)).round(), "c": rng.choice(["red", "7", None, "8", "x", "green"], n)}
    )
    rows["d"] = rng.choice([True, False], n)
    return rows.assign(y=np.where((rows["c"] == "red") ^ rows["d"], "yes", "no"))


ROWS = table()
CSV = ROWS.to_csv(index=False)
FAST = ["--quiet", "--set", "random_features=4", "random_state=0"]


def cell(row, column, value, csv=CSV):
    """The text with another value in a column of a line."""
    lines = [line.split(",") for line in csv.split("\n")]
    lines[row - 1][column] = value
    return "\n".join(",".join(line) for line in lines)


def column(name, write):
    return ROWS.assign(**{name: [write(value) for value in ROWS[name]]}).to_csv(index=False)


def test_a_model_of_the_command_line_predicts_the_same_in_python_on_the_frame_that_pandas_reads(folder, capsys):
    (folder / "table.csv").write_text(CSV)
    frame = pd.read_csv("table.csv")
    frame, labels = frame.drop(columns="y"), frame["y"]
    assert main(["learn", "table.csv", "-m", "m.zip", *FAST[1:]]) == 0
    assert "1 column of categories: c (5)\n1 column of booleans: d (2)" in capsys.readouterr().err
    expected = learned(ParameterFreeClassifier(random_features=4, random_state=0), labels, frame)
    model = load_model("m.zip")
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"] and model.categories_ == expected.categories_
    assert np.array_equal(model.predict_proba(frame), expected.predict_proba(frame))
    digits = frame["c"].isin(["7", "8"])  # pandas reads them as numbers
    frame[digits].to_csv("digits.csv", index=False)
    for rows in (frame[digits], pd.read_csv("digits.csv")):
        assert np.array_equal(model.predict_proba(rows), expected.predict_proba(frame[digits]))
    assert main(["predict", "digits.csv", "-m", "m.zip", "--proba", "-o", "p.csv"]) == 0
    assert np.array_equal(probabilities(), expected.predict_proba(frame[digits]))


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("bom.csv", "\ufeff" + CSV, ""),
        ("returns.csv", CSV.replace("\n", "\r"), ""),
        ("utf16.csv", CSV.encode("utf-16"), "--encoding utf-16"),
        ("table.tsv", CSV.replace(",", "\t"), ""),
        ("table.jsonl", ROWS.to_json(orient="records", lines=True), ""),
        ("decimal.csv", ROWS.to_csv(index=False, sep=";", decimal=","), "--sep ; --decimal ,"),
        ("thousands.csv", column("b", lambda v: f"{v:,.0f}"), "--thousands ,"),
        ("quoted.csv", ROWS.to_csv(index=False, quoting=1), ""),
        ("first.csv", ROWS[["y", "a", "b", "c", "d"]].to_csv(index=False), "-t 0"),
        ("numbers.csv", CSV.replace("a,b,c,d,y", "1,2,0,3,4", 1), "--header -t 4"),
        ("marks.csv", column("a", lambda v: r"\N" if np.isnan(v) else v), r"--missing \N ?"),
    ],
)
def test_what_is_written_in_another_way_is_the_same_model(name, content, options, folder):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    command = [name, "-m", "m.zip", *(r"\N" if part == r"\N" else part for part in options.split())]
    assert main(["learn", *command, *FAST]) == 0
    names = ROWS.columns[:-1] if name != "numbers.csv" else list("1203")
    frame = pd.read_csv(io.StringIO(CSV)).drop(columns="y").set_axis(names, axis=1)
    expected = learned(ParameterFreeClassifier(random_features=4, random_state=0), ROWS["y"], frame)
    assert np.array_equal(load_model("m.zip").predict_proba(frame), expected.predict_proba(frame))
    assert main(["predict", name, "-m", "m.zip", "--proba", "-o", "p.csv"]) == 0  # as it was learned
    assert np.array_equal(probabilities(), expected.predict_proba(frame))


RANDOM, ENDS = pd.Series(np.random.default_rng(1).uniform(size=120)).astype(str), CSV.replace("\n", ",\n")
MARKERS = [
    "-", ".", "#NULL!", r"\N", "NaT", "[null]", "?", "none", "$5", "45%", "1_000", "2024-01-01", "'5'", "0x1F", "1,5"
]  # fmt: skip
POINTS = ROWS[["b"]].assign(y=ROWS["b"] / 8).to_csv(index=False)
REFUSED = {
    **{mark: (cell(17, 0, f'"{mark}"'), f"line 17: column 'a' has {mark!r}, which is no number") for mark in MARKERS},
    "decimal commas": (ROWS.to_csv(index=False, sep="\t", decimal=","), "'a' has .* set missing .*--decimal"),
    "currency": (column("b", lambda v: f"${v}"), r"line 2: column 'b' has '\$.*no number"),
    "dates": (column("c", lambda v: "2024-02-01"), "line 2: column 'c' has '2024-02-01', which is a date.*--dates"),
    "free text": (ROWS.assign(c=RANDOM + " said").to_csv(index=False), "different texts.*--categories.*--drop"),
    "no header": (CSV.split("\n", 1)[1], "line 1: .* is a number. Set header .--header, --no-header"),
    "JSON lines": (ROWS.to_json(orient="records", lines=True), "line 1: this looks like JSON lines. Set format"),
    "twice": (CSV.replace("a,b", "y,b", 1), "line 1: two columns 'y'. Rename one"),
    "quote": (cell(30, 2, '"red'), "line 30: unexpected end of data. Close its quotes"),
    "two quotes": (cell(60, 2, '"red', cell(30, 2, '"red')), "line 30: .* Close its quotes"),
    "short": (CSV.replace(",", "", 1), "line 2: 5 values, but 4 in the first line. Set sep"),
    "separators at ends": (ENDS, "line 1: the target 'Unnamed: 5' .* remove separators at the ends"),
    "separators at ends of rows": (ENDS.replace(",\n", "\n", 1), "line 2: 6 values.* at ends of lines"),
    "comment": ("# by hand\n" + CSV, "line 2: 5 values, but 1 in the first line"),
    "another separator": (CSV.replace(",", ";"), "line 1: the target 'a;b;c;d;y' must have .*--sep"),
    "latin-1": (cell(17, 2, "grün").encode("latin-1"), "line 17: byte 0xfc is not utf-8. Set encoding .*latin-1"),
    "UTF-16": (CSV.encode("utf-16"), "line 1: byte 0xff is not utf-8. Set encoding .* utf-16"),
    "NUL": (cell(17, 2, "re\0d"), "line 17: a NUL byte"),
    "infinity": (cell(17, 0, "-inf"), "infinity .*Row 15 is line 17"),
    "long number": (cell(17, 0, "1" * 400), "infinity .*Row 15 is line 17"),
    "label ?": (cell(17, 4, "?"), r"line 17: column 'y' has '\?' for a label"),
    "no label": (cell(17, 4, ""), "line 17: column 'y' has no value for a target, .*Remove the row, or write another"),
    "no number": (cell(17, 1, "n/k", POINTS), "line 17: column 'y' has 'n/k', which is no number.*--classes"),
    "no whole number": ("a,y\n" + "1,7\n" * 15 + "1,n/k\n", "line 17: column 'y' has 'n/k', which is no number"),
    "decimal targets": (ROWS[["b"]].assign(y="1,5").to_csv(index=False), "line 2: column 'y' has '1,5', .*--decimal"),
    "line break": (cell(17, 4, '"y\nes"'), r"line 17: column 'y' has 'y\\nes' for a label"),
    "minus signs": (column("b", lambda v: f"{v}".replace("-", "\u2212")), "line 2: column 'b' has .* is no number"),
    "months first": (column("c", lambda v: "Feb 1, 2024"), "line 2: column 'c' has 'Feb 1, 2024', which is a date"),
    "nothing": ("", "odd.csv has no rows: it is empty"),
    "header only": ("a,b,y\n", "odd.csv has no rows: it is empty, or has nothing but names"),
    "one label": ("a,y\n1,0\n2,0\n", r"rows of two labels at least; got \['0'\]. Give all labels \(--classes\)"),
    "too long": (cell(17, 2, '"' + "u" * 200_000 + '"'), "line 17: field larger than field limit"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_odd_files_are_refused_in_a_line_and_nothing_is_lost(name, folder, capsys):
    content, message = REFUSED[name]
    path = "odd.tsv" if name == "decimal commas" else "odd.csv"
    (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = sorted(folder.iterdir())
    assert main(["learn", path, "-m", "m.zip", *FAST]) == 1
    check_refusal(capsys, message, escaped=name in MARKERS)
    assert sorted(folder.iterdir()) == before
    (folder / "table.csv").write_text(CSV)
    if name in ("-", "$5", "quote", "NUL", "infinity", "latin-1"):  # what predict sees, too
        assert main(["learn", "table.csv", "-m", "m.zip", *FAST]) == 0
        assert main(["predict", path, "-m", "m.zip", "-o", "out.csv"]) == 1
        check_refusal(capsys, message, escaped=name in MARKERS)
        assert not list(folder.glob("out*"))


def check_refusal(capsys, message, *, escaped=False):
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and captured.err.startswith("python -m onlinebregman ")
    assert re.search(re.escape(message) if escaped else message, captured.err), captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nowhere.csv", "nowhere.csv"),
        ("cells.csv -e os", "There is no estimator 'os'"),
        ("cells.csv --set share", "--set must be followed by NAME=VALUE; got 'share'"),
        ("cells.csv --set share__x=1", "--set share__x=1: .*numbers add --estimator ParameterFreeRegressor"),
        ("cells.csv -t z", "must have a column 'z'; got"),
        ("points.csv -t y", r"must have a column 'y'; got a;y\. .* separated by ';': set sep \(--sep\)"),
        ("cells.csv -t x0 -e ForwardClassifier", "more than 20 labels.*-e ParameterFreeRegressor"),
        ("cells.csv -t x0 --categories x0", "more than 20 labels.*-e ParameterFreeRegressor"),
        ("cells.csv --continue", "m.zip"),
        ("cells.csv --sep ab", "sep one character; got None, 'ab'"),
        ("- --quiet", "give --classes"),
        ("- --format svmlight --n-features 3", "svmlight needs a file, as standard input is text"),
        ("cells.svm", "and --n-features, which no file tells"),
        ("far.svm --n-features 3", "far.svm, line 1: .*with n_features=3 "),
        ("book.xlsx", "a spreadsheet: save it as CSV"),
        ("data.arrows", "an Arrow stream: give pyarrow.ipc.open_stream"),
        ("data.arff", "ARFF: give the frame of scipy.io.arff.loadarff"),
        ("data.vw", "Vowpal Wabbit's: write it as svmlight"),
        ("two.zip", "Multiple files found in ZIP file.*Unpack it"),
        ("packed.csv.gz", "packed.csv.gz cannot be read, or is damaged"),
        ("empty", "empty is a folder without parquet files"),
        ("bad.jsonl", "bad.jsonl, line 2: this is no JSON"),
        ("list.jsonl", "list.jsonl, line 1: no object"),
        ("nul.jsonl", r"the name of column 'a.x00b' has a NUL byte\. Rename it"),
        ("nested.jsonl", "line 1: column 'a' has {'b': 1}, which is neither a number nor text"),
        ("when.parquet", "row 0: column 'when' has Timestamp.*which is a date.*--dates"),
        ("bad.parquet", "bad.parquet cannot be read"),
        ("cells.csv --encoding hex", "not a text encoding.*Set its format, packing or encoding"),
        ("cells.csv --delay 0", "--delay must be 1 row or more; got 0"),
        ("cells.csv --every 0", "--every must be 1 row or more; got 0"),
        ("parts", "parts/1.parquet and parts/0.parquet must both have a column 'x3', or neither"),
        ("more", "more/1.parquet and more/0.parquet must both have a column 'x4', or neither"),
        ("cells.csv --thousands .", "decimal and thousands must be two characters"),
        ("cells.csv --categories q", "must have a column 'q'; got"),
        ("points.csv --sep ; --decimal ,", "column 'a' has '1.234', which is no number.*--thousands"),
        ("none.zip", "Zero files found in ZIP file. Unpack it"),
        ("half.jsonl", "half.jsonl, line 1: half of a character"),
        ("pipe", "pipe can only be read once, .*give --classes"),
        ("- --format parquet", "Standard input must be open, and have CSV or JSON lines. Give a file"),
        ("cells.csv -e ForwardClassifier --columns y --drop y -t x0 --classes 1,2", "a column besides the target"),
        ("when.csv", "line 1: .* byte.* Set encoding .* the name's end"),
        ("when.parquet --drop when --dates hours", "row 0: column 'hours' has Timedelta.*no date of ISO 8601"),
        ("gap.svm -e ForwardRegressor --n-features 3", "row 1, column 2.* Row 1 is line 4 of the file"),
        ("gap.parquet -e ForwardRegressor", "row 2, column 0.* Row 2 is row 2 of the file"),
        ("wide.svm -e ForwardClassifier --n-features 900000 --first-column 1", "needs at least .*GiB"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(arguments, message, folder, capsys):
    for name, content in {
        "far.svm": "1 1:1 99999999999999:1\n", "book.xlsx": "PK", "data.arff": "@relation", "data.vw": "1 | a:1\n",
        "packed.csv.gz": "a,b\n", "bad.jsonl": '{"a": 1, "y": 0}\n{"a"\n', "list.jsonl": "[1, 2]\n",
        "bad.parquet": "PAR1", "data.arrows": "?", "nul.jsonl": r'{"a\u0000b": 1, "y": 0}',
        "nested.jsonl": '{"a": {"b": 1}, "y": 0}\n{"y": 1}',
        "half.jsonl": r'{"a": "\ud800", "y": 0}', "points.csv": "a;y\n1.234;0\n2,5;1\n", "wide.svm": "0 1:1\n1 2:1",
        "gap.svm": "# of 2024\n1 1:1\n\n2 3:nan\n",
    }.items():  # fmt: skip
        (folder / name).write_text(content)
    with zipfile.ZipFile("two.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    zipfile.ZipFile("none.zip", "w").close()
    os.mkfifo("pipe")
    for name, widths in {"empty": (), "parts": (5, 3), "more": (4, 5)}.items():
        (folder / name).mkdir()
        for number, width in enumerate(widths):
            X.iloc[:, :width].assign(y=y).to_parquet(f"{name}/{number}.parquet")
    pd.DataFrame({"when": [pd.Timestamp(0)] * 4, "hours": pd.Timedelta(1), "y": [0, 1] * 2}).to_parquet("when.parquet")
    pd.DataFrame({"a": [1.0, 2.0, None], "y": range(3)}).to_parquet("gap.parquet")
    (folder / "when.csv").write_bytes((folder / "when.parquet").read_bytes())
    assert main(["learn", *arguments.split(), "--quiet", "-m", "m.zip"]) == 1
    check_refusal(capsys, message)


def test_links_are_followed_and_pipes_are_no_models(folder, capsys):
    for link, file in {"l.zip": "m.zip", "l.csv": "p.csv"}.items():
        (folder / link).symlink_to(folder / file)
    assert main(["learn", "cells.csv", "-m", "l.zip", "-e", "ForwardClassifier", "--quiet"]) == 0
    assert main(["predict", "cells.csv", "-m", "m.zip", "-o", "l.csv"]) == 0
    assert (folder / "l.csv").is_symlink() and len((folder / "p.csv").read_text().split()) == 300
    os.mkfifo("pipe")
    assert main(["learn", "cells.csv", "-m", "pipe"]) == 1
    check_refusal(capsys, "pipe is a folder, a pipe or a device. Give a file for the model")


def test_rows_of_svmlight_have_no_names_and_labels_that_are_missing_are_none(folder, capsys):
    save_model(learned(ForwardClassifier()), "m.zip")
    (folder / "cells.svm").write_text("nan 1:1\n1 3:2\n")
    assert main(["predict", "cells.svm", "-m", "m.zip"]) == 1
    check_refusal(capsys, "cells.svm has no names of columns, by which the model has learned")
    assert main(["learn", "cells.svm", "-m", "n.zip", "--n-features", "3"]) == 1
    check_refusal(capsys, "cells.svm, line 1 has no value for a target")
    expected = learned(ForwardClassifier(), rows=X.to_numpy())  # a model of places reads by places, without a warning
    save_model(expected, "m.zip")
    assert main(["predict", "cells.csv", "-m", "m.zip", "--proba", "-o", "p.csv"]) == 0
    assert np.array_equal(probabilities(), expected.predict_proba(X.to_numpy())) and capsys.readouterr().err == ""


def test_labels_that_standard_output_cannot_write_are_refused_with_the_remedy(folder, monkeypatch, capsys):
    save_model(learned(ForwardClassifier(), np.array(["böse", "gut"])[y]), "m.zip")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True))
        assert main(["predict", "cells.csv", "-m", "m.zip"]) == 1
    check_refusal(capsys, "'ascii' codec can't encode .* Give --output, a file of UTF-8")


def test_text_that_an_estimator_does_not_take_is_named_with_its_line(folder, capsys):
    (folder / "table.csv").write_text(CSV)
    assert main(["learn", "table.csv", "-m", "m.zip", "-e", "ForwardClassifier", "--quiet", "--drop", "a", "d"]) == 1
    row = next(i for i, value in enumerate(ROWS["c"]) if value in ("red", "x", "green"))
    check_refusal(capsys, rf"Column 'c' must hold numbers; got .* Row {row} is line {row + 2} of the file")


def test_dates_durations_and_nested_values_may_be_categories(folder):
    hours, parts = pd.to_timedelta(range(4), unit="h"), [[0], [1], None, [0]]
    rows = {"when": hours + pd.Timestamp("2024-01-01"), "parts": parts, "hours": hours, "y": list("abab")}
    pd.DataFrame(rows).to_parquet("when.parquet")
    assert main(["learn", "when.parquet", "-m", "m.zip", *FAST, "--categories", "when", "hours", "parts"]) == 0
    assert [v[1] for v in load_model("m.zip").categories_] == ["2024-01-01 01:00:00", "[1]", "0 days 01:00:00"]


def test_a_run_that_fails_after_a_checkpoint_says_how_it_goes_on(folder, capsys):
    command = ["-m", "m.zip", "--delay", "100", "--every", "100", *FAST]
    assert main(["learn", "cells.csv", *command]) == 0
    (folder / "day2.csv").write_text(text(np.where(np.arange(300) == 250, "maybe", NAMES[y])))
    assert main(["learn", "day2.csv", "-m", "m.zip", "--continue", "--quiet", "--every", "100"]) == 1
    check_refusal(capsys, "m.zip has learned 200 rows; go on with .*--resume")
    (folder / "day2.csv").write_text(text(NAMES[y]))
    assert main(["learn", "day2.csv", *command[:-4], "--quiet", "--resume"]) == 0
    assert load_model("m.zip").t_ == 600


def test_days_and_codes_are_what_they_are_said_to_be(folder):
    rows = ROWS.assign(a=[f"2024-01-{1 + i % 28:02d}" for i in range(120)], b=[f"{i % 3:02d}" for i in range(120)])
    rows.to_csv("days.csv", index=False)
    assert main(["learn", "days.csv", "-m", "m.zip", *FAST, "--dates", "a", "--categories", "b"]) == 0
    model = load_model("m.zip")
    assert model.categories_[:2] == [None, ["00", "01", "02"]]
    frame = rows.drop(columns="y").assign(a=19723.0 + np.arange(120) % 28)
    assert main(["predict", "days.csv", "-m", "m.zip", "--proba", "-o", "p.csv"]) == 0
    assert np.array_equal(probabilities(), model.predict_proba(frame))
