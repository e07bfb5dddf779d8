"""`python -m onlinebregman learn|predict|test`: learn, predict and test models on files from the command line."""

from __future__ import annotations

import argparse
import ast
import csv
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor

import onlinebregman

from ._online.containers import is_missing, is_number
from .persistence import load_model
from .pipeline import adds_classes
from .streams import FileFrames, SVMLightBatches, fit_stream
from .streams._fit import where
from .streams._frames import WRITTEN, place

# How files are read, which is kept with the model.
_READING: dict[str, dict[str, Any]] = {
    "--format": {"help": "csv, jsonl, parquet, feather or svmlight (default: by the name of the file)"},
    "--sep --delimiter": {"help": r"separator in CSV files, \t for a tab (default: comma, in .tsv files tab)"},
    "--decimal": {"help": "the decimal point in CSV files"},
    "--thousands": {"help": "the separator of thousands in CSV files"},
    "--encoding": {"help": "encoding of text files (default: utf-8)"},
    "--header": {"action": argparse.BooleanOptionalAction, "help": "whether the first line of CSV files has names"},
    "--target -t": {
        "help": "name or number of the column of targets (default: the last column); 'none' for no targets"
    },
    "--n-features": {"type": int, "help": "number of features of svmlight files, if no model tells"},
    "--first-column": {"type": int, "choices": (0, 1), "help": "number of the first column of svmlight files"},
}
_SEVERAL = {
    "--missing": "what stands for missing values, besides what pandas takes for it",
    "--columns": "names or numbers of the columns to read, besides the target",
    "--drop": "names or numbers of columns to leave out",
    "--categories": "columns whose values are categories, as they are written",
    "--dates": "columns of dates in ISO 8601, which become the number of days since 1970-01-01",
}
_LEARNING: dict[str, dict[str, Any]] = {
    "-e --estimator": {"help": "default: ParameterFreeClassifier, of many different numbers ParameterFreeRegressor"},
    "--set": {"nargs": "*", "action": "extend", "default": [], "metavar": "NAME=VALUE", "help": "its parameters"},
    "--classes": {"help": "all labels, separated by commas (default: those found by a first pass over the file)"},
    "--every": {"type": int, "default": 1_000_000, "help": "rows between checkpoints (default: %(default)s)"},
    "--delay": {"type": int, "metavar": "ROWS", "help": "the labels of so many rows come together, after their rows"},
    "--quiet": {"action": "store_true", "help": "print no progress"},
}
_HOW = {
    "resume": "go on where learning of the same file was interrupted (default, if the model file exists)",
    "continue": "learn all rows of another file with the model of the model file",
    "restart": "start over even if the model file exists",
}


def add_commands(commands: Any) -> None:
    """Add `learn`, `predict` and `test` to the subparsers of the command line."""

    def add(run: Any, name: str, help: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=run.__doc__)
        command.set_defaults(run=run)
        command.add_argument("data", metavar="DATA", help="a file, or - for CSV or JSON lines on standard input")
        command.add_argument("-m", "--model", required=True, type=Path, metavar="FILE", help="the model file")
        for option, given in _READING.items():
            command.add_argument(*option.split(), **given)
        for option, said in _SEVERAL.items():
            command.add_argument(option, nargs="+", action="extend", help=said)
        return command

    learn = add(learn_file, "learn", "learn a file or standard input in one pass, resumably")
    for option, given in _LEARNING.items():
        learn.add_argument(*option.split(), **given)
    how = learn.add_mutually_exclusive_group()
    for name, said in _HOW.items():
        how.add_argument(f"--{name}", dest="how", action="store_const", const=name, help=said)
    predict = add(predict_file, "predict", "predict the rows of a file").add_argument
    predict("-o", "--output", default="-", metavar="FILE", help="file of one prediction per line (default: to screen)")
    predict("--proba", action="store_true", help="probabilities of the classes, below their labels")
    add(test_file, "test", "score a model on a file")


def learn_file(options: argparse.Namespace) -> None:
    """Learn the rows of a file, each predicted before it is learned; from where it was, if the model file exists.

    What columns are, and progress (rows, the mean of a loss, which is named, seconds) is written to standard error.
    """
    _check_kept(options.model, options.data)
    if options.model.exists() and not options.model.is_file():
        raise ValueError(f"{options.model} is a folder, a pipe or a device. Give a file for the model.")
    for name in ("every", "delay"):
        if (rows := getattr(options, name)) is not None and rows < 1:
            raise ValueError(f"--{name} must be 1 row or more; got {rows}.")
    for left in options.model.parent.glob(f"{options.model.name}.*.part"):  # by a run that was killed
        left.unlink(missing_ok=True)
    model, settings = None, dict[str, Any]()
    if options.how != "restart" and (options.how or options.model.exists()):
        model, settings = _loaded(options)
    if model is None or (options.how != "continue" and (options.estimator or options.set)):
        estimator = _estimator(options)
    elif options.estimator or options.set:
        raise ValueError(f"{options.model} is continued with its own parameters; leave out --estimator and --set.")
    else:
        estimator = model if options.how == "continue" else clone(model)
    rows = _Rows(options, settings, estimator if model is None else model)
    if is_classifier(estimator) and rows.classes is None:
        if options.classes is not None:
            rows.classes = _as_classes([label.strip() for label in options.classes.split(",")])
        elif not adds_classes(estimator):
            rows.classes = rows.found_classes(of_numbers=options.estimator is None)
            if rows.classes is None:
                options.estimator = "ParameterFreeRegressor"
                estimator = _estimator(options)
                rows = _Rows(options, settings, estimator)
    rows.announced = not options.quiet
    before = 0 if model is None or options.how == "continue" else settings["n_rows"]
    told: dict[str, Any] = {"classes": rows.classes} if is_classifier(estimator) else {}
    told |= {"resume": options.how in (None, "resume"), "warm_start": options.how == "continue"}
    result = fit_stream(
        estimator, rows, checkpoint=options.model, checkpoint_every=options.every, verbose=not options.quiet, **told
    )
    if not options.quiet:
        of = f", {before} of them before" if before else ""
        print(f"{result.n_rows} rows learned{of} -> {options.model}", file=sys.stderr)


def predict_file(options: argparse.Namespace) -> None:
    """Predict the rows of a file, one line each. Columns are found by their names, and targets are ignored."""
    _check_kept(options.output, options.data, options.model)
    model, settings = _loaded(options)
    method = "predict_proba" if options.proba else "predict"
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} has no {method}.")
    with _output(options.output) as out:
        write = csv.writer(out, lineterminator="\n").writerow
        write(model.classes_) if options.proba else None  # which label is which column
        first = 0
        for X, _ in _Rows(options, settings, model, has_targets=False):
            for row in np.asarray(_asked(getattr(model, method), X, first)).tolist():
                write(row if isinstance(row, list) else [row])
            first += X.shape[0]


def test_file(options: argparse.Namespace) -> None:
    """Print the mean squared error of a regressor, or the error rate and the log loss of a classifier, on a file."""
    model, settings = _loaded(options)
    of_labels = is_classifier(model)
    if not (of_labels or is_regressor(model)):
        raise ValueError(f"{type(model).__name__} is neither a classifier nor a regressor.")
    rows, sums, unknown = 0, defaultdict[str, float](float), set[Any]()
    for X, y in _Rows(options, settings, model):
        predicted = _asked(model.predict, X, rows)
        losses = {"error": predicted != y} if of_labels else {"squared_error": (predicted - y.astype(float)) ** 2}
        unknown |= set(y.tolist()).difference(model.classes_.tolist()) if of_labels else set()
        if hasattr(model, "predict_proba") and not unknown:
            columns = np.searchsorted(model.classes_, y.astype(model.classes_.dtype))
            with np.errstate(divide="ignore"):
                losses["log_loss"] = -np.log(model.predict_proba(X)[np.arange(len(y)), columns])
        for name, values in losses.items():
            sums[name] += float(values.sum())
        rows += len(y)
    if not rows:
        raise ValueError("The data must have at least one row; got none.")
    with _output("-") as out:
        print(f"rows {rows}", file=out)
        if unknown:  # no mean of only some of the rows
            sums.pop("log_loss", None)
            print(f"There is no log_loss, as the model has not learned {_listed(list(unknown))}.", file=sys.stderr)
        for name, total in sums.items():
            print(f"{name} {total / rows:.6g}", file=out)


def _asked(method: Any, X: Any, first: int) -> Any:
    try:
        return method(X)
    except ValueError as error:
        error.add_note(where(error, X, first))
        raise


class _Rows:
    """The rows of a file as (X, y), with the columns and labels that a model knows, as often as needed."""

    def __init__(self, options: Any, kept: dict[str, Any], model: Any, *, has_targets: bool = True) -> None:
        self.path, self.has_targets, self.is_number = options.data, has_targets, is_regressor(model)
        self.classes, self.width = getattr(model, "classes_", None), getattr(model, "n_features_in_", 0)
        names = [option.split()[0][2:].replace("-", "_") for option in (*_READING, *_SEVERAL, "--delay")]
        own = {name: getattr(options, name) for name in names if getattr(options, name, None) is not None}
        self.settings = {"target": "-1"} | {n: v for n, v in kept.items() if n not in ("n_rows", "format")} | own
        self.batch_size, self.announced, self.remark = self.settings.get("delay", 10_000), False, ""
        self.target = None if self.settings["target"] == "none" else _place(self.settings["target"])
        if self.target is None and has_targets and (is_classifier(model) or self.is_number):
            raise ValueError("Learning and testing need a column of targets; got --target none.")
        self.names, self.types = [], dict[Any, Any]()
        if self.settings.get("header") is not False and hasattr(model, "feature_names_in_"):
            self.names = model.feature_names_in_.tolist()
            categories = getattr(model, "categories_", None) or [None] * self.width
            for name, values in zip(self.names, categories, strict=True):
                if values is None or any(isinstance(value, str) for value in values):
                    self.types[name] = float if values is None else str
        ending = Path(re.sub(r"\.(gz|bz2|xz)$", "", str(self.path).lower())).suffix
        self.is_svmlight = self.settings.get("format", ending) in ("svmlight", ".svm", ".svmlight", ".libsvm")
        if self.is_svmlight and self.names:
            raise ValueError(f"{self.path} has no names of columns, by which the model has learned. Write it as CSV.")
        self.fraction = None
        if not self.is_svmlight:
            self.frames: Any = self._frames()
            return
        n_features, first = self.settings.get("n_features") or self.width, self.settings.get("first_column")
        if self.path == "-" or not n_features:
            raise ValueError("svmlight needs a file, as standard input is text, and --n-features, which no file tells.")
        self.frames = SVMLightBatches(self.path, n_features, zero_based="auto" if first is None else first == 0)

    def _frames(self, only_targets: bool = False) -> FileFrames:
        n = self.settings.get("n_columns", 0)
        chosen, drop = ([_place(name, n) for name in self.settings.get(given, ())] for given in ("columns", "drop"))
        columns: list[Any] = [] if only_targets else self.names or chosen
        told = dict.fromkeys(self.settings.get("categories", ()), str)
        told |= dict.fromkeys(self.settings.get("dates", ()), "date")
        types = self.types | {
            _place(name, n): kind for name, kind in told.items() if not self.names or name in self.names
        }
        if self.target is not None and (self.has_targets or not self.names):
            types[self.target] = float if self.is_number else str
            columns = [*columns, self.target] if only_targets or (columns and self.has_targets) else columns
        written = ("format", "sep", "decimal", "thousands", "encoding", "header", "missing")
        given: dict[str, Any] = {name: self.settings[name] for name in written if name in self.settings}
        given |= {"columns": columns or None, "drop": [] if only_targets or self.names else drop}
        given["sep"] = given.get("sep", "").replace(r"\t", "\t")
        if n == 0 and self.width and not (self.has_targets or columns or drop):
            n = self.width + (self.target is not None)
        absent = None if self.has_targets else self.target
        return _LearnedFrames(n, absent, self.path, types=types, batch_size=self.batch_size, **given)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.frames:
            X, y = batch if self.is_svmlight else self._split(batch)
            self.fraction = getattr(self.frames, "fraction", None)
            if self.is_svmlight:
                self.settings["first_column"] = 1 - int(self.frames.zero_based_)
            if y is not None and self.has_targets and not self.is_number:
                y = self._labels(X, y)
            if self.announced:
                self._announce(list(getattr(X, "columns", ())))
            self.announced = False
            if self.width and not self.names and hasattr(X, "columns"):  # a model that knows them by their places
                X.columns = range(X.shape[1])
            yield X, y

    def _split(self, frame: Any) -> tuple[Any, Any]:
        if self.names:  # which may be found without spaces around them
            frame.columns = self.names + list(frame.columns[len(self.names) :])
        if self.target is None or (not self.has_targets and (self.names or frame.shape[1] == self.width)):
            return frame, None
        target = self._target(self.frames)
        if self.frames.header is not False:
            self.settings["target"] = target
        elif self.has_targets:
            self.settings["n_columns"] = len(self.frames.all_names_)
        X = frame.drop(columns=target, errors="ignore")
        if not X.shape[1]:
            raise ValueError(f"{self.path} must have a column besides the target. Set --columns or --drop.")
        return X, frame.get(target)

    def _target(self, frames: FileFrames) -> Any:
        names = frames.all_names_
        target = names[place(self.target, names, str(self.path))]
        if len(names) == 1 or target not in frames.names_ or str(target) == f"Unnamed: {len(names) - 1}":
            said = (
                f"{self.path}, line 1: the target {target!r} must have a name and columns besides; got {_listed(names)}"
            )
            raise ValueError(f"{said}. Set --target or --sep, or remove separators at the ends of lines.")
        return target

    def _announce(self, columns: list[Any]) -> None:
        if self.target is not None:
            labels = "" if self.classes is None else f", labels {_listed(self.classes.tolist())}"
            kind = "numbers" if self.is_number else "categories"
            print(f"target {self.settings['target']!r}: {kind}{labels}{self.remark}", file=sys.stderr)
        kinds, counts = getattr(self.frames, "kinds_", {}), getattr(self.frames, "n_categories_", {})
        for kind in dict.fromkeys(kinds[name] for name in columns):
            names = [f"{n} ({counts[n]})" if n in counts else n for n in columns if kinds[n] == kind]
            print(f"{len(names)} column{'s' * (len(names) > 1)} of {kind}: {_listed(names)}", file=sys.stderr)

    def _labels(self, X: Any, y: Any) -> np.ndarray:
        """Labels as the model has them; new ones are whole numbers if those of the model are, or else texts."""
        texts = self._texts(X, y)
        if self.classes is None:
            self.classes = np.unique(_as_classes(texts))
        known = {_text(label): label for label in self.classes.tolist()}
        whole = self.classes.dtype.kind in "iu"
        labels = [known.get(text, int(text) if whole and _WHOLE.fullmatch(text) else text) for text in texts]
        return np.array(labels, dtype=object if len(set(map(type, labels))) > 1 else None)

    def _texts(self, X: Any, y: Any) -> list[str]:
        texts = list(map(_text, y.tolist()))
        given = () if self.classes is None else set(map(_text, self.classes.tolist()))
        for row, (text, value) in enumerate(zip(texts, y.tolist(), strict=True)):
            if is_missing(value):
                said = f"{self._at(X, y, row)} has no value for a target, or a text that is read as none, as NA is"
                raise ValueError(f"{said}. Remove the row, or write another text.")
            if "\n" in text or "\r" in text or (text in ("", "?") and text not in given):
                said = f"{self._at(X, y, row)} has {value!r} for a label"
                raise ValueError(f"{said}. Remove the row, or name all labels by --classes if it is one.")
        return texts

    def _at(self, X: Any, y: Any, row: int) -> str:
        at = f"line {X.lines[row]}" if self.is_svmlight else f"{y.index.name} {y.index[row]}: column {y.name!r}"
        return f"{self.path}, {at}"

    def found_classes(self, *, of_numbers: bool) -> np.ndarray | None:
        """All labels of the file, by a pass over it; if there are so many that they are none, an error, or None."""
        path = Path(self.path)
        if self.path == "-" or (path.exists() and not (path.is_file() or path.is_dir())):
            said = f"{self.path} can only be read once, and a classifier needs all labels in advance; give --classes"
            raise ValueError(f"{said}, --set handle_unknown=add, or of numbers -e ParameterFreeRegressor.")
        frames: Any = self.frames if self.is_svmlight else self._frames(only_targets=True)
        found, odd, at = Counter[str](), "", ""

        def is_written(text: str) -> bool:  # as a number, with the decimal point of the file
            return is_number(text) if self.is_svmlight else frames._number(text) is not None

        for batch in frames:
            X, y = batch if self.is_svmlight else (batch, batch[self._target(frames)])
            texts = self._texts(X, y)
            found.update(texts)
            if not odd and (odd := next((text for text in found if not is_written(text)), "")):
                at = self._at(X, y, texts.index(odd))
            most = 100 if all(map(_WHOLE.fullmatch, found)) else 1000 if odd else 20
            if len(found) > most:
                break
        if not found:
            raise ValueError(f"{self.path} has no rows: it is empty, or has nothing but names of columns.")
        n_numbers = sum(n for text, n in found.items() if is_written(text) or WRITTEN.fullmatch(text))
        chosen = False  # whether the targets are said to be categories
        if not self.is_svmlight:
            names, given = frames.all_names_, self.settings.get("categories", ())
            chosen = names.index(self._target(frames)) in [place(_place(each), names, str(path)) for each in given]
        if odd and 2 * n_numbers > found.total() and not chosen:
            said = f"{at} has {odd!r:.80}, which is no number, as most others are. Change it, or remove the row; set"
            raise ValueError(f"{said} --decimal or --thousands; or name all labels by --classes if it is one.")
        if len(found) > most:
            if of_numbers and not (odd or chosen):
                return None
            said = f"{self.path} has more than {most} labels, as {_listed(sorted(found)[:3])}. Set a regressor for"
            raise ValueError(
                f"{said} numbers (-e ParameterFreeRegressor), --target for another column, or --classes for these."
            )
        if len(found) < 2:
            said = f"{self.path} must have rows of two labels at least; got {sorted(found)}"
            raise ValueError(f"{said}. Give all labels (--classes), or a regressor for numbers.")
        if of_numbers and not (odd or chosen) and len(found) > 2:
            self.remark = f" ({len(found)} numbers as labels; for numbers --estimator ParameterFreeRegressor)"
        return np.unique(_as_classes(sorted(found)))


class _LearnedFrames(FileFrames):
    """Files without names have the places of columns that a model has learned, if that is known: n in all.

    The targets may be absent, whose place is given.
    """

    def __init__(self, n: int, absent: Any, path: str, **settings: Any) -> None:
        super().__init__(path, **settings)
        self.n, self.absent = n, absent

    def _places(self, number: int, width: int) -> list[Any]:
        places: list[Any] = list(range(self.n or width))
        if width == self.n - 1 and isinstance(self.absent, int):
            del places[self.absent]
            self.types.pop(self.absent, None)
        if width != len(places):
            said = f"{width} values, but the model has learned {self.n} columns by their places"
            self._refuse(number, f"{said}. Give these, with or without the targets, or a file with names")
        return places


_WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")


def _text(label: Any) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label).strip()


def _as_classes(labels: list[str]) -> np.ndarray:
    """Whole numbers, if all labels are written as these are printed, and otherwise texts."""
    whole = all(map(_WHOLE.fullmatch, labels))
    return np.array([int(label) for label in labels], dtype=np.int64) if whole else np.array(labels)


def _place(name: str, n: int = 0) -> str | int:
    """A name or number of one of n columns, if n is known."""
    return int(name) + n * name.startswith("-") if re.fullmatch("-?[0-9]+", name) else name


def _listed(items: list[Any]) -> str:
    return ", ".join(map(str, items[:8])) + (" ..." if len(items) > 8 else "")


def _estimator(options: argparse.Namespace) -> BaseEstimator:
    name = options.estimator or "ParameterFreeClassifier"
    found = getattr(onlinebregman, name, None) if name in onlinebregman.__all__ else None
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise ValueError(f"There is no estimator {name!r}; see the table in the documentation, Choosing.")
    try:
        estimator = found().set_params(**dict(map(_setting, options.set)))
        return estimator if options.delay is None else estimator.set_params(delayed=True)
    except (AttributeError, ValueError) as error:  # of a part that is no estimator, or no parameter
        at = f"--set {' '.join(options.set)}" + " delayed=True, as --delay needs" * (options.delay is not None)
        other = "" if options.estimator else " For targets that are numbers add --estimator ParameterFreeRegressor."
        raise ValueError(f"{at}: {error}{other}") from error


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set must be followed by NAME=VALUE; got {text!r}.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value  # a string without quotes, as shells remove them


def _check_kept(output: str | Path, *inputs: str | Path) -> None:
    for path in inputs:
        if os.path.isfile(output) and os.path.exists(path) and os.path.samefile(output, path):
            raise ValueError(f"{output} would be overwritten while it is read; give another file for what is written.")


@contextmanager
def _output(path: str) -> Iterator[Any]:
    """Standard output, or a file, which is there only once it is complete."""
    if path == "-":
        if sys.stdout is None:
            raise ValueError("Standard output is closed; open it, or give --output.")
        try:
            yield sys.stdout
        except UnicodeEncodeError as error:
            error.add_note("Give --output, a file of UTF-8, or set PYTHONIOENCODING=utf-8.")
            raise
        return
    path = os.path.realpath(path)  # of what a link is to
    part = path if os.path.exists(path) and not os.path.isfile(path) else f"{path}.part"  # such as a pipe
    try:
        with open(part, "w", encoding="utf-8", newline="") as out:
            yield out
        if part != path:
            os.replace(part, path)
    finally:
        if part != path:
            Path(part).unlink(missing_ok=True)


def _loaded(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """A model, and how the file that it has learned was read, with the number of rows."""
    model, extra = load_model(options.model, return_extra=True)
    kept = extra if isinstance(extra, dict) else {}
    return model, {**kept.get("settings", {}), "n_rows": kept.get("n_rows", 0)}
