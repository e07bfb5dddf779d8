"""The commands `learn`, `predict` and `test` give the same results as the library."""

import io
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer

from onlinebregman import ForwardClassifier, ForwardRegressor, MirrorDescentClassifier, ParameterFreeClassifier
from onlinebregman.__main__ import main
from onlinebregman.persistence import load_model, save_model
from onlinebregman.streams import CSVBatches

X, y = load_breast_cancer(return_X_y=True)
X, y = X[:300], y[:300]
NAMES = np.array(["malignant", "benign"])


def text(targets, rows=X):
    lines = (",".join([*map(repr, x), str(t)]) for x, t in zip(rows.tolist(), targets, strict=True))
    return "\n".join([",".join([*(f"x{i}" for i in range(rows.shape[1])), "y"]), *lines]) + "\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells.csv").write_text(text(NAMES[y]))
    return tmp_path


def test_the_default_has_nothing_to_set(capsys):
    assert main(["learn", "cells.csv", "-m", "model.zip"]) == 0
    progress = capsys.readouterr().err.splitlines()
    assert (
        progress[0].split() == ["rows", "mean", "score", "seconds"] and progress[-1] == "300 rows learned -> model.zip"
    )
    model = ParameterFreeClassifier().partial_fit(X, NAMES[y], classes=sorted(NAMES))
    assert np.array_equal(load_model("model.zip").predict_proba(X), model.predict_proba(X))
    assert main(["predict", "cells.csv", "-m", "model.zip"]) == 0
    assert capsys.readouterr().out.split() == model.predict(X).tolist()
    assert main(["predict", "cells.csv", "-m", "model.zip", "--proba", "-o", "p.csv"]) == 0
    assert np.array_equal(np.loadtxt("p.csv", delimiter=","), model.predict_proba(X))
    assert main(["test", "cells.csv", "-m", "model.zip"]) == 0
    said = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert said["rows"] == "300" and float(said["error"]) == pytest.approx(
        (model.predict(X) != NAMES[y]).mean(), abs=1e-6
    )
    of_label = model.predict_proba(X)[np.arange(300), 1 - y]
    assert float(said["log_loss"]) == pytest.approx(-np.log(of_label).mean(), rel=1e-5)


def test_estimators_and_their_parameters(folder):
    command = ["learn", "cells.csv", "-m", "m.zip", "-e", "MirrorDescentClassifier", "--quiet", "--set"]
    assert main([*command, "penalty=l1", "alpha=1e-3", "divergence=squared_euclidean", "standardize=True"]) == 0
    settings = {"penalty": "l1", "alpha": 1e-3, "divergence": "squared_euclidean", "standardize": True}
    model = MirrorDescentClassifier(**settings).partial_fit(X, NAMES[y], classes=sorted(NAMES))
    assert np.array_equal(load_model("m.zip").coef_, model.coef_)


@pytest.mark.parametrize(("labels", "written"), [((0, 1), {"0", "1"}), ((0.5, 1), {"0.5", "1.0"})])
def test_labels_that_are_numbers_are_written_as_they_were_read(folder, labels, written, capsys):
    (folder / "numbers.csv").write_text(text(np.array(labels)[y]))
    assert main(["learn", "numbers.csv", "-m", "m.zip", "--quiet"]) == 0
    assert main(["predict", "numbers.csv", "-m", "m.zip"]) == 0
    assert set(capsys.readouterr().out.split()) == written


def test_standard_input_and_numbers(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text(X[:, 0] / 10, X[:, 1:])))
    assert main(["learn", "-", "-m", "m.zip", "-e", "ForwardRegressor", "--quiet"]) == 0
    model = ForwardRegressor().partial_fit(X[:, 1:], X[:, 0] / 10)
    assert np.array_equal(load_model("m.zip").coef_, model.coef_)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text(X[:, 0] / 10, X[:, 1:])))
    assert main(["test", "-", "-m", "m.zip"]) == 0
    error = ((model.predict(X[:, 1:]) - X[:, 0] / 10) ** 2).mean()
    assert float(capsys.readouterr().out.split()[-1]) == pytest.approx(error, rel=1e-5)


def test_labels_that_are_added_need_no_first_pass(folder, monkeypatch):
    command = ["-m", "m.zip", "-e", "ForwardClassifier", "--set", "handle_unknown=add", "--quiet"]
    monkeypatch.setattr(sys, "stdin", io.StringIO(text(NAMES[y])))
    assert main(["learn", "-", *command]) == 0
    model = ForwardClassifier(handle_unknown="add").partial_fit(X, NAMES[y])
    assert np.array_equal(load_model("m.zip").predict_proba(X), model.predict_proba(X))
    assert main(["test", "cells.csv", "-m", "m.zip"]) == 0


def test_standard_input_is_read_where_it_can_be_interrupted(monkeypatch, tmp_path):
    threads = set()

    def lines():
        for line in text(X[:, 0], X[:, 1:]).splitlines(keepends=True):
            threads.add(threading.current_thread())
            yield line

    monkeypatch.setattr(sys, "stdin", lines())
    assert main(["learn", "-", "-m", str(tmp_path / "m.zip"), "-e", "ForwardRegressor", "--quiet"]) == 0
    assert threads == {threading.current_thread()}


def test_it_continues_where_it_stopped(folder, capsys):
    (folder / "part.csv").write_text(text(NAMES[y[:120]], X[:120]))
    classes = ["--classes", "malignant,benign", "--quiet"]
    assert main(["learn", "part.csv", "-m", "m.zip", *classes]) == 0
    assert main(["learn", "cells.csv", "-m", "m.zip", *classes]) == 0  # the file has grown
    assert main(["learn", "cells.csv", "-m", "whole.zip", *classes]) == 0
    models = [load_model(name) for name in ("m.zip", "whole.zip")]
    assert np.array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


def test_standard_input_that_ends_before_the_checkpoint_is_refused(monkeypatch, capsys):
    command = ["learn", "-", "-m", "m.zip", "-e", "ForwardRegressor", "--quiet"]
    for n, status in ((10, 0), (4, 1)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text(X[:n, 0], X[:n, 1:])))
        assert main(command) == status
    assert "The stream has only 4 rows, and cannot be read from row 10 on" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "n_rows"), [([], 320), (["--restart"], 20)])
def test_it_starts_over_on_request(folder, option, n_rows):
    assert main(["learn", "cells.csv", "-m", "m.zip", "--quiet"]) == 0
    header, *lines = (folder / "cells.csv").read_text().splitlines(keepends=True)
    (folder / "cells.csv").write_text("".join([header, *(lines if option == [] else []), *lines[-20:]]))
    assert main(["learn", "cells.csv", "-m", "m.zip", "--classes", "malignant,benign", "--quiet", *option]) == 0
    assert load_model("m.zip").t_ == n_rows


def test_columns_are_found_by_their_names(folder, capsys):
    names = [*(f"x{i}" for i in range(30)), "y"]
    table = pd.DataFrame(np.column_stack([X.astype(object), NAMES[y]]), columns=names)
    other = table[["x3", "y", *names[:3], *names[4:-1]]].assign(more="text")  # another order, and one column more
    other[:200].to_csv("other_part.csv", index=False)
    other.to_csv("other.csv", index=False)
    other.drop(columns="y").to_csv("rows.csv", index=False)
    table.to_parquet("table.parquet")
    other.to_parquet("other.parquet")
    for learned, part, rows in [
        ("cells.csv", "other_part.csv", "rows.csv"),
        ("table.parquet",) + ("other.parquet",) * 2,
    ]:
        command = ["-m", f"{learned}.zip", "-e", "ForwardClassifier", "--classes", "benign,malignant", "--quiet"]
        assert main(["learn", learned, *command]) == 0
        model = load_model(f"{learned}.zip")
        expected = ForwardClassifier().partial_fit(X, NAMES[y], classes=sorted(NAMES))
        assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))
        assert main(["predict", rows, "-m", f"{learned}.zip", "--proba", "-o", "p.csv"]) == 0
        assert np.array_equal(np.loadtxt("p.csv", delimiter=","), model.predict_proba(X))
        capsys.readouterr()
        assert main(["test", part, "-m", f"{learned}.zip", "-t", "y"]) == 0
        n = 200 if part == "other_part.csv" else 300
        assert f"error {(model.predict(X) != NAMES[y])[:n].mean():.6g}" in capsys.readouterr().out
    command = ["-m", "m.zip", "-e", "ForwardClassifier", "--classes", "benign,malignant", "--quiet"]
    assert main(["learn", "other_part.csv", "-t", "y", *command]) == 1  # text that is no target
    cells = pd.read_csv("cells.csv")
    cells[:200].to_csv("part.csv", index=False)
    assert main(["learn", "part.csv", *command]) == 0
    assert main(["learn", "other.csv", "-t", "y", *command]) == 0  # goes on after 200 rows
    assert np.array_equal(load_model("m.zip").predict_proba(X), expected.predict_proba(X))


def test_columns_that_are_not_those_learned_are_refused(folder, capsys):
    command = ["-m", "m.zip", "-e", "ForwardClassifier", "--quiet"]
    assert main(["learn", "cells.csv", *command]) == 0
    table = pd.read_csv("cells.csv")
    table.drop(columns="x7").to_csv("less.csv", index=False)
    table[["y", *table.columns[:-1]]].to_csv("first.csv", index=False)
    assert main(["predict", "less.csv", "-m", "m.zip"]) == 1
    assert main(["test", "first.csv", "-m", "m.zip"]) == 1  # the last column is x29
    captured = capsys.readouterr().err
    assert "less.csv must have a column 'x7'; got x0, x1" in captured
    assert "must have a target that is not one of the columns of X; got 'x29'. Set target to" in captured
    assert main(["test", "first.csv", "-m", "m.zip", "-t", "y"]) == 0
    (folder / "bare.csv").write_text("".join((folder / "cells.csv").read_text().splitlines(keepends=True)[1:]))
    capsys.readouterr()
    assert main(["test", "bare.csv", "-m", "m.zip", "--no-header"]) == 0  # by their places
    error = (load_model("m.zip").predict(X) != NAMES[y]).mean()
    assert f"error {error:.6g}" in capsys.readouterr().out


def test_svmlight(folder):
    dump_svmlight_file(X, y, "cells.svm")
    assert main(["learn", "cells.svm", "-m", "m.zip", "--n-features", "30", "--quiet"]) == 0
    assert load_model("m.zip").n_features_in_ == 30
    dump_svmlight_file(X, y, "from1.svm", zero_based=False)
    (folder / "row.svm").write_text("1 2:0.5\n")  # does not tell
    for first, file in enumerate(["cells.svm", "from1.svm"]):
        command = ["-m", f"{first}.zip", "--n-features", "30"]
        assert main(["learn", file, "--quiet", *command]) == 0
        assert np.array_equal(load_model(f"{first}.zip").predict_proba(X), load_model("m.zip").predict_proba(X))
        assert main(["predict", "row.svm", "-o", f"{first}.csv", *command]) == 1
        assert (
            main(["predict", "row.svm", "--proba", "-o", f"{first}.csv", "--first-column", str(first), *command]) == 0
        )
        row = 0.5 * np.eye(30)[[2 - first]]
        assert np.array_equal([np.loadtxt(f"{first}.csv", delimiter=",")], load_model("m.zip").predict_proba(row))


def test_tabs_and_the_mark_that_excel_writes(folder):
    (folder / "cells.tsv").write_text(text(NAMES[y]).replace(",", "\t"), encoding="utf-8-sig")
    columns = CSVBatches("cells.tsv", columns=["x0"], delimiter="\t")
    assert np.array_equal(np.concatenate([rows for rows, _ in columns]), X[:, :1])
    assert main(["learn", "cells.tsv", "-m", "m.zip", "-e", "ForwardClassifier", "--delimiter", r"\t", "--quiet"]) == 0
    model = ForwardClassifier().partial_fit(X, NAMES[y], classes=sorted(NAMES))
    assert np.array_equal(load_model("m.zip").predict_proba(X), model.predict_proba(X))


def test_a_reader_that_has_enough_is_no_error(folder):
    save_model(ForwardClassifier().partial_fit(X, NAMES[y], classes=sorted(NAMES)), "m.zip")
    (folder / "cells.csv").write_text(text(np.resize(NAMES, 30_000), np.resize(X, (30_000, 30))))
    command = [sys.executable, "-m", "onlinebregman", "predict", "cells.csv", "-m", "m.zip"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"malignant\n"
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_test_needs_targets(folder, capsys):
    save_model(ForwardRegressor().partial_fit(X, y), "m.zip")
    assert main(["test", "cells.csv", "-t", "y", "-m", "m.zip"]) == 1  # of text
    (folder / "numbers.csv").write_text(text(y))
    assert main(["test", "numbers.csv", "-t", "none", "-m", "m.zip"]) == 1
    captured = capsys.readouterr().err
    assert "Column 'y' must hold numbers; got 'malignant' in row 0." in captured
    assert "test needs a column of targets; got --target none" in captured


def test_labels_are_text_if_one_of_the_classes_is(folder, capsys):
    labels = np.array(["1", "2", "other"])[np.resize([0, 1, 2], 300)]
    (folder / "labels.csv").write_text(text(labels))
    (folder / "numbers.csv").write_text(text(labels[labels != "other"], X[labels != "other"]))
    learn = ["-m", "m.zip", "-e", "ForwardClassifier", "--quiet"]
    assert main(["learn", "labels.csv", *learn]) == 0
    assert main(["test", "numbers.csv", "-m", "m.zip"]) == 0
    model = ForwardClassifier().partial_fit(X, labels, classes=np.unique(labels))
    error = (model.predict(X) != labels)[labels != "other"].mean()
    assert f"error {error:.6g}" in capsys.readouterr().out
    assert main(["learn", "numbers.csv", *learn, "--restart", "--classes", "1,2,other"]) == 0
    assert load_model("m.zip").classes_.tolist() == ["1", "2", "other"]


def test_labels_that_are_unknown_are_errors_and_leave_no_log_loss(folder, capsys):
    save_model(ForwardClassifier().partial_fit(X, NAMES[y], classes=sorted(NAMES)), "m.zip")
    labels = np.resize(NAMES[y], 10_300).astype("<U9")
    labels[-1] = "unknown"  # in the second batch
    (folder / "cells.csv").write_text(text(labels, np.resize(X, (10_300, 30))))
    assert main(["test", "cells.csv", "-m", "m.zip"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["rows", "error"]


def test_what_is_read_is_not_overwritten(folder, capsys):
    save_model(ForwardClassifier().partial_fit(X, NAMES[y], classes=sorted(NAMES)), "m.zip")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for command in (
        ["learn", "cells.csv", "--restart", "-m", "./cells.csv"],
        ["predict", "cells.csv", "-m", "m.zip", "-o", "cells.csv"],
        ["predict", "cells.csv", "-m", "m.zip", "-o", "./m.zip"],
    ):
        assert main(command) == 1
        assert "would be overwritten while it is read" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_spaces_years_and_parameters_one_by_one(folder, capsys):
    (folder / "spaces.csv").write_text("1999, 2000, 2001\n1, 2, x\n3, 4, z \n")
    command = ["learn", "spaces.csv", "-m", "m.zip", "-t", "2001", "--classes", "x, z"]
    assert main([*command, "-e", "ForwardClassifier", "--set", "alpha=2", "--set", "fit_intercept=False"]) == 0
    model = load_model("m.zip")
    assert model.classes_.tolist() == ["x", "z"] and (model.alpha, model.fit_intercept) == (2, False)
    capsys.readouterr()
    assert main(command) == 1
    assert "give another file, or resume=False to start over (--restart on the command line)" in capsys.readouterr().err


def test_quoted_values_that_are_too_long_are_refused(folder, capsys):
    (folder / "long.csv").write_text(f'a,b,y\n1,"{"u" * 200_000}",x\n')
    assert main(["learn", "long.csv", "-m", "m.zip"]) == 1
    assert "field larger than field limit" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["learn", "nowhere.csv"], "nowhere.csv"),
        (["learn", "cells.csv", "-e", "os"], "There is no estimator 'os'"),
        (["learn", "cells.csv", "--set", "share"], "--set must be followed by NAME=VALUE; got 'share'"),
        (["learn", "cells.csv", "-t", "z"], "must have a column 'z'; got"),
        (["learn", "cells.csv", "-t", "²"], "must have a column '²'; got"),
        (["learn", "cells.csv", "--set", "share__x=1"], "--set share__x=1: "),
        (["learn", "-"], "give --classes"),
        (["learn", "-", "--format", "svmlight", "--n-features", "3"], "Standard input must be CSV"),
        (["learn", "cells.svm"], "give --n-features"),
        (["learn", "cells.csv", "--delimiter", "ab"], "delimiter must be one character; got 'ab'"),
        (["learn", "cells.csv", "--delimiter", ";"], "a column of X in addition to the target; got ['x0,x1"),
        (["predict", "cells.csv"], "m.zip"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(arguments, message, capsys):
    assert main([*arguments, "-m", "m.zip"]) == 1
    captured = capsys.readouterr().err
    assert message in captured and captured.startswith("python -m onlinebregman ") and "Traceback" not in captured


def test_missing_targets_are_refused_in_a_line(capsys):
    for name, missing, said in [
        ("ForwardClassifier", ["lo", None, "hi"], "Input y contains a missing label, None (row 1). Remove such rows."),
        ("ForwardClassifier", [True, None, False], "Input y contains a missing label, None (row 1). Remove such rows."),
        ("ForwardClassifier", [1, None, 0], "Input y contains NaN (row 1)"),
        ("ForwardRegressor", [1.0, None, 0.5], "Input y contains NaN (row 1)"),
    ]:
        pd.DataFrame({"a": [1.0, 2.0], "y": [missing[0], missing[2]]}).to_parquet("known.parquet")
        pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": missing}).to_parquet("missing.parquet")
        assert main(["learn", "known.parquet", "-m", "m.zip", "-e", name, "--quiet", "--restart"]) == 0
        for command in (["test", "-m", "m.zip"], ["learn", "-m", "new.zip", "-e", name, "--quiet"]):
            assert main([*command, "missing.parquet"]) == 1
            captured = capsys.readouterr()
            assert said in captured.err and "This was at rows 0 to 2 of the stream." in captured.err
            assert captured.out == ""
    assert main(["learn", "known.parquet", "-m", "m.zip", "-t", "none", "--quiet", "--restart"]) == 1
    assert "learn needs a column of targets; got --target none" in capsys.readouterr().err


def test_dates_are_refused_in_a_line(capsys):
    pd.DataFrame({"when": pd.date_range("2024-01-01", periods=4), "y": [0, 1, 0, 1]}).to_parquet("dates.parquet")
    assert main(["learn", "dates.parquet", "-m", "m.zip", "--quiet"]) == 1
    assert "Column 'when' must hold numbers or text; got np.datetime64('2024-01-01" in capsys.readouterr().err


# --- categories and missing values ------------------------------------------------------------------------------------


def mixed(n=120):
    """Lines of a file, their rows as an array of objects, and labels: numbers, and two columns of categories."""
    rng = np.random.default_rng(0)
    size = np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n).round(3))
    colour, code = rng.choice(["red", "green", ""], size=n), rng.choice(["7", "8", "x"], size=n)
    label = np.where((colour == "red") | (np.nan_to_num(size) > 1), "yes", "no")
    lines = [
        f"{'' if np.isnan(a) else a},{b},{c},{d}" for a, b, c, d in zip(size.tolist(), colour, code, label, strict=True)
    ]
    rows = np.array([size, [each or None for each in colour], code.tolist()], dtype=object).T
    return ["size,colour,code,y", *lines], rows, label


def test_columns_of_text_are_categories_and_values_may_be_missing(folder, capsys):
    lines, rows, label = mixed()
    (folder / "mixed.csv").write_text("\n".join(lines) + "\n")
    assert main(["learn", "mixed.csv", "-m", "model.zip", "--quiet", "--set", "random_features=8"]) == 0
    model = ParameterFreeClassifier(random_features=8).partial_fit(rows, label, classes=["no", "yes"])
    found = load_model("model.zip")
    assert found.is_categorical_.tolist() == [False, True, True] and found.categories_ == model.categories_
    assert np.array_equal(found.predict_proba(rows), model.predict_proba(rows))
    sevens = rows[:, 2] == "7"  # without text in the column
    (folder / "sevens.csv").write_text("\n".join([lines[0], *np.array(lines[1:])[sevens]]) + "\n")
    assert main(["predict", "sevens.csv", "-m", "model.zip", "--proba", "-o", "p.csv"]) == 0
    assert np.array_equal(np.loadtxt("p.csv", delimiter=","), model.predict_proba(rows[sevens]))
    assert main(["test", "sevens.csv", "-m", "model.zip"]) == 0
    assert f"rows {sevens.sum()}" in capsys.readouterr().out


def test_numbers_that_are_categories_are_read_as_numbers(folder, capsys):
    lines, _, _ = mixed()
    lines = [",".join(str(len(value)) for value in line.split(",")) for line in lines[1:]]
    (folder / "codes.csv").write_text("\n".join(["size,colour,code,y", *lines]) + "\n")
    command = ["codes.csv", "-m", "model.zip"]
    assert main(["learn", *command, "--quiet", "--set", "categorical_features=[1, 2]"]) == 0
    rows, targets = next(iter(CSVBatches("codes.csv")))
    expected = load_model("model.zip").predict_proba(rows)
    assert main(["predict", *command, "--proba", "-o", "p.csv"]) == 0
    assert np.array_equal(np.loadtxt("p.csv", delimiter=","), expected)
    assert main(["test", *command]) == 0
    log_loss = -np.log(expected[np.arange(120), (targets == 3).astype(int)]).mean()
    assert f"log_loss {log_loss:.6g}" in capsys.readouterr().out


def test_a_run_over_categories_continues_where_it_stopped(folder):
    lines, rows, label = mixed()
    (folder / "mixed.csv").write_text("\n".join(lines) + "\n")
    (folder / "half.csv").write_text("\n".join(lines[:61]) + "\n")
    command = ["-m", "model.zip", "--quiet", "--classes", "no,yes", "--set", "random_features=8"]
    assert main(["learn", "half.csv", *command]) == main(["learn", "mixed.csv", *command]) == 0
    model = ParameterFreeClassifier(random_features=8).partial_fit(rows, label, classes=["no", "yes"])
    found = load_model("model.zip")
    assert found.t_ == 120 and np.array_equal(found.predict_proba(rows), model.predict_proba(rows))
