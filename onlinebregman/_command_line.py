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
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor

import onlinebregman

from ._online.categories import is_number
from .persistence import load_model
from .pipeline import adds_classes
from .streams import FileFrames, SVMLightBatches, fit_stream
from .streams._fit import where
from .streams._frames import place

# How files are read, which is kept with the model.
_READING: dict[str, dict[str, Any]] = {
    "--format": {"help": "csv, jsonl, parquet, feather or svmlight (default: by the name of the file)"},
    "--sep": {"help": r"separator of values in CSV files, \t for a tab (default: a comma, in .tsv files a tab)"},
    "--decimal": {"help": "the decimal point in CSV files"},
    "--thousands": {"help": "the separator of thousands in CSV files"},
    "--encoding": {"help": "encoding of text files (default: utf-8)"},
    "--header": {"action": argparse.BooleanOptionalAction, "help": "whether the first line of CSV files has names"},
    "--target": {"help": "name or number of the column of targets (default: the last column); 'none' for no targets"},
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
_SHORT = {"--target": ["-t"], "--sep": ["--delimiter"]}


def add_commands(commands: Any) -> None:
    """Add `learn`, `predict` and `test` to the subparsers of the command line."""

    def add(run: Any, name: str, help: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=run.__doc__)
        command.set_defaults(run=run)
        command.add_argument("data", metavar="DATA", help="a file, or - for CSV or JSON lines on standard input")
        command.add_argument("-m", "--model", required=True, type=Path, metavar="FILE", help="the model file")
        for option, given in _READING.items():
            command.add_argument(option, *_SHORT.get(option, ()), **given)
        for option, said in _SEVERAL.items():
            command.add_argument(option, nargs="+", action="extend", help=said)
        return command

    learn = add(learn_file, "learn", "learn a file or standard input in one pass, resumably").add_argument
    learn("-e", "--estimator", help="default: ParameterFreeClassifier")
    said = "parameters of the estimator, as Python literals; may be given more than once"
    learn("--set", nargs="*", action="extend", default=[], metavar="NAME=VALUE", help=said)
    said = "all labels, separated by commas; by default they are found by a first pass over the file, or with --set "
    learn("--classes", help=said + "handle_unknown=add when they come")
    learn("--every", type=int, default=1_000_000, help="rows between checkpoints (default: %(default)s)")
    said = "labels come together, those of so many rows, which are predicted before any of them is learned"
    learn("--delay", type=int, metavar="ROWS", help=said)
    said = "go on where learning of the same file was interrupted (default, if the model file exists)"
    learn("--resume", dest="how", action="store_const", const="resume", help=said)
    said = "learn all rows of another file with the model of the model file"
    learn("--continue", dest="how", action="store_const", const="continue", help=said)
    said = "start over even if the model file exists"
    learn("--restart", dest="how", action="store_const", const="restart", help=said)
    learn("--quiet", action="store_true", help="print no progress")
    predict = add(predict_file, "predict", "predict the rows of a file").add_argument
    said = "output file, one prediction per line (default: standard output)"
    predict("-o", "--output", default="-", metavar="FILE", help=said)
    predict("--proba", action="store_true", help="probabilities of the classes, separated by commas")
    add(test_file, "test", "score a model on a file")


def learn_file(options: argparse.Namespace) -> None:
    """Learn the rows of a file, each predicted before it is learned.

    What columns are, and progress (rows, mean loss, seconds) is written to standard error. If the file of the model
    exists, learning resumes from it.
    """
    _check_kept(options.model, options.data)
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
    if options.delay is not None and model is None:
        if "delayed" not in estimator.get_params():
            raise ValueError(f"--delay is for estimators with the parameter `delayed`; {estimator!r} has none.")
        estimator.set_params(delayed=True)
    rows = _Rows(options, settings, estimator if model is None else model)
    if is_classifier(estimator) and rows.classes is None:
        if options.classes is not None:
            rows.classes = _as_classes([label.strip() for label in options.classes.split(",")])
        elif not adds_classes(estimator):
            rows.classes = rows.found_classes()
    rows.announced = not options.quiet
    before = 0 if model is None or options.how == "continue" else settings["n_rows"]
    result = fit_stream(
        estimator,
        rows,
        classes=rows.classes if is_classifier(estimator) else None,
        checkpoint=options.model,
        checkpoint_every=options.every,
        resume=options.how not in ("restart", "continue"),
        warm_start=options.how == "continue",
        verbose=not options.quiet,
    )
    if not options.quiet:
        of = f", {before} of them before" if before else ""
        print(f"{result.n_rows} rows learned{of} -> {options.model}", file=sys.stderr)


def predict_file(options: argparse.Namespace) -> None:
    """Predict the rows of a file, one line each. A column of targets is ignored.

    If the file that was learned had names of columns, as this one has, columns are found by them, in any order.
    """
    _check_kept(options.output, options.data, options.model)
    model, settings = _loaded(options)
    method = "predict_proba" if options.proba else "predict"
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} has no {method}.")
    with _output(options.output) as out:
        write = csv.writer(out, lineterminator="\n").writerow
        first = 0
        for X, _ in _Rows(options, settings, model, has_targets=False):
            for row in np.asarray(_asked(getattr(model, method), X, first)).tolist():
                write(row if isinstance(row, list) else [row])
            first += X.shape[0]


def test_file(options: argparse.Namespace) -> None:
    """Print the mean squared error of a regressor, or the error rate and the log loss of a classifier, on a file."""
    model, settings = _loaded(options)
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"{type(model).__name__} is neither a classifier nor a regressor.")
    rows, sums, counts = 0, defaultdict[str, float](float), Counter[str]()
    for X, y in _Rows(options, settings, model):
        for name, losses in _losses(model, X, y, rows):
            sums[name] += float(losses.sum())
            counts[name] += len(y)
        rows += len(y)
    if not rows:
        raise ValueError("The data must have at least one row; got none.")
    print(f"rows {rows}")
    for name, total in sums.items():
        if counts[name] == rows:  # no mean of only some of the rows: there is no log loss if a label is unknown
            print(f"{name} {total / rows:.6g}")


def _losses(model: Any, X: Any, y: Any, first: int) -> Iterator[tuple[str, np.ndarray]]:
    if is_regressor(model):
        yield "squared_error", (_asked(model.predict, X, first) - np.asarray(y, dtype=np.float64)) ** 2
        return
    yield "error", _asked(model.predict, X, first) != y
    if hasattr(model, "predict_proba") and np.isin(y, model.classes_).all():
        of_label = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        with np.errstate(divide="ignore"):
            yield "log_loss", -np.log(of_label)


def _asked(method: Any, X: Any, first: int) -> Any:
    try:
        return method(X)
    except ValueError as error:
        error.add_note(where(error, X, first))
        raise


class _Rows:
    """The rows of a file as (X, y), with the columns and labels that a model knows; it can be iterated repeatedly.

    Labels are whole numbers, if all of them are written as these are printed, and otherwise texts.
    """

    def __init__(
        self, options: argparse.Namespace, kept: dict[str, Any], model: Any, *, has_targets: bool = True
    ) -> None:
        self.path, self.has_targets, self.is_number = options.data, has_targets, is_regressor(model)
        self.classes, self.width = getattr(model, "classes_", None), getattr(model, "n_features_in_", None)
        self.batch_size, self.announced = getattr(options, "delay", None) or 10_000, False
        given = {name: getattr(options, name) for name in (n[2:].replace("-", "_") for n in (*_READING, *_SEVERAL))}
        own = {name: value for name, value in given.items() if value is not None}
        self.settings = {"target": "-1"} | {n: v for n, v in kept.items() if n not in ("n_rows", "format")} | own
        self.target: Any = _place(self.settings["target"])
        if self.target == "none":
            if has_targets and (is_classifier(model) or self.is_number):
                raise ValueError("Learning and testing need a column of targets; got --target none.")
            self.target = None
        named = self.settings.get("header") is not False
        self.names = model.feature_names_in_.tolist() if named and hasattr(model, "feature_names_in_") else None
        known = getattr(model, "categories_", None) or [None] * len(self.names or ())
        self.types = {
            name: float if values is None else str
            for name, values in zip(self.names or (), known, strict=True)
            if values is None or any(isinstance(value, str) for value in values)
        }
        ending = Path(re.sub(r"\.(gz|bz2|xz)$", "", str(self.path).lower())).suffix
        self.is_svmlight = self.settings.get("format", ending) in ("svmlight", ".svm", ".svmlight", ".libsvm")
        self.frames: Any = self._svmlight() if self.is_svmlight else self._frames()

    @property
    def fraction(self) -> float | None:
        return getattr(self.frames, "fraction", None)

    def _svmlight(self) -> SVMLightBatches:
        if self.path == "-":
            raise ValueError("Standard input must be CSV or JSON lines; got svmlight. Give a file.")
        n_features, first = self.settings.get("n_features") or self.width, self.settings.get("first_column")
        if n_features is None:
            raise ValueError("svmlight files do not contain the number of features; give --n-features.")
        return SVMLightBatches(self.path, n_features, zero_based="auto" if first is None else first == 0)

    def _frames(self, only_targets: bool = False) -> FileFrames:
        given = self.settings.get
        columns, drop = self.names or [_place(name) for name in given("columns", ())], given("drop", ())
        if self.target is not None and (only_targets or (columns and self.has_targets)):
            columns = [self.target] if only_targets else [*columns, self.target]
        types: dict[Any, Any] = self.types | dict.fromkeys(given("categories", ()), str)
        types |= dict.fromkeys(given("dates", ()), "date")
        if self.target is not None:
            types |= {self.target: float if self.is_number else str}
        return FileFrames(
            self.path,
            **{name: given(name) for name in ("format", "thousands", "header") if given(name) is not None},
            sep="\t" if given("sep") == r"\t" else given("sep"),
            decimal=given("decimal", "."),
            encoding=given("encoding", "utf-8"),
            missing=given("missing", ()),
            columns=columns or None,
            drop=() if columns else [_place(name) for name in drop],
            types=types,
            batch_size=self.batch_size,
        )

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.frames:
            X, y = batch if isinstance(batch, tuple) else self._split(batch)
            if y is not None and self.has_targets and not self.is_number:
                y = self._labels(y)
            if self.is_svmlight:
                self.settings["first_column"] = 1 - int(self.frames.zero_based_)
            if self.announced:
                self._announce(list(getattr(X, "columns", ())))
            self.announced = False
            yield X, y

    def _split(self, frame: Any) -> tuple[Any, Any]:
        if self.target is None or (not self.has_targets and (self.names or frame.shape[1] == self.width)):
            return frame, None
        target = self._target(self.frames)
        if self.frames.header is not False:
            self.settings["target"] = target
        return frame.drop(columns=target, errors="ignore"), frame.get(target)

    def _target(self, frames: FileFrames) -> Any:
        names = frames.all_names_
        target = names[place(self.target, names, str(self.path))]
        if len(names) == 1 or target not in frames.names_ or str(target) == f"Unnamed: {len(names) - 1}":
            raise ValueError(
                f"{self.path}, line 1: the target {target!r} must have a name and columns besides; got "
                f"{_listed(names)}. Set --target or --sep, or remove separators at the ends of lines."
            )
        return target

    def _announce(self, columns: list[Any]) -> None:
        if self.target is not None:
            labels = "" if self.classes is None else f", labels {_listed(self.classes.tolist())}"
            print(
                f"target {self.settings['target']!r}: {'numbers' if self.is_number else 'categories'}{labels}",
                file=sys.stderr,
            )
        kinds, counts = getattr(self.frames, "kinds_", {}), getattr(self.frames, "n_categories_", {})
        for kind in dict.fromkeys(kinds[name] for name in columns):
            names = [f"{n} ({counts[n]})" if n in counts else n for n in columns if kinds[n] == kind]
            print(f"{len(names)} columns of {kind}: {_listed(names)}", file=sys.stderr)

    def _labels(self, y: Any) -> np.ndarray:
        """Labels as they are written, in the type of the classes."""
        texts = self._texts(y)
        if self.classes is None:
            self.classes = np.unique(_as_classes(texts))
        whole, types = _as_classes(texts), {"b": lambda text: text == "True", "f": float}
        if self.classes.dtype.kind in "iu":
            if whole.dtype.kind != "i":
                row = next(row for row, text in enumerate(texts) if not _WHOLE.fullmatch(text))
                self._refuse(y, row, "a label after whole numbers. Give all labels by --classes")
            return whole
        return np.array([types.get(self.classes.dtype.kind, str)(text) for text in texts])

    def _texts(self, y: Any) -> list[str]:
        missing = y.isna().tolist() if hasattr(y, "isna") else [False] * len(y)
        texts = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v).strip() for v in y.tolist()]
        given = () if self.classes is None else list(map(str, self.classes.tolist()))
        for row, text in enumerate(texts):
            if missing[row] or "\n" in text or "\r" in text or (text in ("", "?") and text not in given):
                self._refuse(y, row, "a label. Remove the row, or name all labels by --classes if it is one")
        return texts

    def _refuse(self, y: Any, row: int, what: str) -> NoReturn:
        at, name = (f", {y.index.name} {y.index[row]}", y.name) if hasattr(y, "iloc") else ("", "target")
        raise ValueError(f"{self.path}{at}: column {name!r} has {y.tolist()[row]!r} for {what}.")

    def found_classes(self) -> np.ndarray:
        """All labels of the file, by a pass over it; a ValueError if there are so many that targets are numbers."""
        if self.path == "-":
            raise ValueError(
                "Standard input can only be read once, and a classifier needs all labels in advance; give --classes, "
                "or --set handle_unknown=add."
            )
        found: set[str] = set()
        frames: Any = self.frames if self.is_svmlight else self._frames(only_targets=True)
        for batch in frames:
            found.update(self._texts(batch[1] if self.is_svmlight else batch[self._target(frames)]))
            most = 100 if all(map(_WHOLE.fullmatch, found)) else 20 if all(map(is_number, found)) else 1000
            if len(found) > most:
                raise ValueError(
                    f"{self.path} has more than {most} labels, as {_listed(sorted(found)[:3])}. Set a regressor for "
                    "numbers (-e ParameterFreeRegressor), --target for another column, or --classes for these labels."
                )
        if not found:
            raise ValueError(f"{self.path} must have at least one row; got none.")
        return np.unique(_as_classes(sorted(found)))


_WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")


def _as_classes(labels: list[str]) -> np.ndarray:
    whole = all(map(_WHOLE.fullmatch, labels))
    return np.array([int(label) for label in labels], dtype=np.int64) if whole else np.array(labels)


def _place(name: str) -> str | int:
    return int(name) if re.fullmatch("-?[0-9]+", name) else name


def _listed(items: list[Any]) -> str:
    return ", ".join(map(str, items[:8])) + (" ..." if len(items) > 8 else "")


def _estimator(options: argparse.Namespace) -> BaseEstimator:
    name = options.estimator or "ParameterFreeClassifier"
    found = getattr(onlinebregman, name, None) if name in onlinebregman.__all__ else None
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise ValueError(f"There is no estimator {name!r}; see the table in the documentation, Choosing.")
    try:
        return found().set_params(**dict(map(_setting, options.set)))
    except AttributeError as error:  # of a part that is no estimator
        raise ValueError(f"--set {' '.join(options.set)}: {error}.") from error


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
        yield sys.stdout
    elif os.path.exists(path) and not os.path.isfile(path):  # such as a pipe
        with open(path, "w", encoding="utf-8", newline="") as out:
            yield out
    else:
        part = f"{path}.part"
        try:
            with open(part, "w", encoding="utf-8", newline="") as out:
                yield out
            os.replace(part, path)
        finally:
            Path(part).unlink(missing_ok=True)


def _loaded(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """A model, and how the file that it has learned was read, with the number of rows."""
    model, extra = load_model(options.model, return_extra=True)
    kept = extra if isinstance(extra, dict) else {}
    return model, {**kept.get("settings", {}), "n_rows": kept.get("n_rows", 0)}
