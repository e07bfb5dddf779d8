"""`python -m onlinebregman learn|predict|test`: learn, predict and test models on files from the command line."""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor

import onlinebregman

from ._online.validation import check_targets_readable
from .persistence import load_model
from .pipeline import adds_classes
from .streams import Batches, CSVBatches, ParquetBatches, SVMLightBatches, fit_stream


def add_commands(commands: Any) -> None:
    """Add `learn`, `predict` and `test` to the subparsers of the command line."""
    learn = commands.add_parser(
        "learn", help="learn a file or standard input in one pass, resumably", description=learn_file.__doc__
    )
    learn.add_argument("-e", "--estimator", default="ParameterFreeClassifier", help="default: %(default)s")
    learn.add_argument(
        "--set",
        nargs="*",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="parameters of the estimator, as Python literals; may be given more than once",
    )
    learn.add_argument(
        "--classes",
        help="all labels, separated by commas; by default they are found by a first pass over the file, or with --set "
        "handle_unknown=add when they come",
    )
    learn.add_argument("--every", type=int, default=1_000_000, help="rows between checkpoints (default: %(default)s)")
    learn.add_argument("--restart", action="store_true", help="start over even if the model file exists")
    learn.add_argument("--quiet", action="store_true", help="print no progress")
    learn.set_defaults(run=learn_file)
    predict = commands.add_parser("predict", help="predict the rows of a file", description=predict_file.__doc__)
    predict.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="output file, one prediction per line (default: standard output)",
    )
    predict.add_argument("--proba", action="store_true", help="probabilities of the classes, separated by commas")
    predict.set_defaults(run=predict_file)
    test = commands.add_parser("test", help="score a model on a file", description=test_file.__doc__)
    test.set_defaults(run=test_file)
    for command in (learn, predict, test):
        command.add_argument("data", metavar="DATA", help="a file, or - for CSV on standard input")
        command.add_argument("-m", "--model", required=True, type=Path, metavar="FILE", help="the model file")
        command.add_argument(
            "-t",
            "--target",
            default="-1",
            help="name or number of the column of targets (default: the last column); 'none' for no targets",
        )
        command.add_argument(
            "--format", choices=("csv", "svmlight", "parquet"), help="default: determined by the file name"
        )
        command.add_argument(
            "--delimiter", default=",", help=r"delimiter of CSV files, \t for a tab (default: a comma)"
        )
        command.add_argument("--no-header", action="store_true", help="CSV files have no header line")
        command.add_argument("--n-features", type=int, help="number of features of svmlight files")
        command.add_argument(
            "--first-column",
            type=int,
            choices=(0, 1),
            help="number of the first column of svmlight files (default: 0 if the file has a column 0)",
        )


def learn_file(options: argparse.Namespace) -> None:
    """Learn the rows of a file, each predicted before it is learned.

    Progress is written to standard error: rows, mean score (the loss of the estimator), seconds. If the file of the
    model exists, learning resumes from it.
    """
    _check_kept(options.model, options.data)
    estimator = _estimator(options)
    classes = _given_classes(options) if is_classifier(estimator) else None
    resumed = options.model.exists() and not options.restart
    columns = _loaded(options)[1] if resumed else None
    batches = _batches(options, _has_text_targets(estimator, classes), columns=columns)
    if is_classifier(estimator) and classes is None and not adds_classes(estimator):
        classes = _found_classes(options, batches)
    result = fit_stream(
        estimator,
        batches,
        classes=classes,
        checkpoint=options.model,
        checkpoint_every=options.every,
        resume=not options.restart,
        verbose=not options.quiet,
    )
    if not options.quiet:
        print(f"{result.n_rows} rows learned -> {options.model}", file=sys.stderr)


def predict_file(options: argparse.Namespace) -> None:
    """Predict the rows of a file, one line each. A column of targets is ignored (--target).

    If the file that was learned had names of columns, as this one has, columns are found by them, in any order.
    """
    _check_kept(options.output, options.data, options.model)
    model, columns = _loaded(options)
    method = "predict_proba" if options.proba else "predict"
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} has no {method}.")
    # targets of files are read as floats, so labels 0 and 1 are 0.0 and 1.0 to the model
    whole = method == "predict" and is_classifier(model) and _are_whole(model.classes_)
    with nullcontext(sys.stdout) if options.output == "-" else open(options.output, "w", encoding="utf-8") as out:
        if columns is not None:
            options.target = "none"
        for X, _ in _batches(options, text_columns=_text_columns(model), columns=columns):
            predicted = np.asarray(getattr(model, method)(X))
            for row in (predicted.astype(int) if whole else predicted).tolist():
                print(",".join(map(str, row)) if isinstance(row, list) else row, file=out)


def _are_whole(labels: np.ndarray) -> bool:
    """Whether labels are floats, and whole numbers of at most ten digits."""
    return labels.dtype.kind == "f" and all(label.is_integer() and abs(label) <= 1e9 for label in labels.tolist())


def test_file(options: argparse.Namespace) -> None:
    """Print the mean squared error of a regressor, or the error rate and the log loss of a classifier, on a file."""
    model, columns = _loaded(options)
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"{type(model).__name__} is neither a classifier nor a regressor.")
    batches = _batches(
        options, _has_text_targets(model, getattr(model, "classes_", None)), _text_columns(model), columns
    )
    for name, value in _scores(model, batches).items():
        print(f"{name} {value:.6g}" if name != "rows" else f"{name} {value}")


def _scores(model: BaseEstimator, batches: Iterable[tuple[Any, Any]]) -> dict[str, float]:
    rows, sums, counts = 0, defaultdict[str, float](float), Counter[str]()
    for X, y in _with_targets("test", batches, labels=is_classifier(model)):
        rows += len(y)
        for name, losses in _losses(model, X, y):
            sums[name] += float(losses.sum())
            counts[name] += len(y)
    if not rows:
        raise ValueError("The data must have at least one row; got none.")
    # no mean of only some of the rows: there is no log loss if a label is unknown
    return {"rows": rows} | {name: total / rows for name, total in sums.items() if counts[name] == rows}


def _with_targets(
    command: str, batches: Iterable[tuple[Any, Any]], *, labels: bool
) -> Iterator[tuple[Any, np.ndarray]]:
    """Batches, of which each row has a target; a ValueError names the first without."""
    n_read = 0
    for X, y in batches:
        if y is None:
            raise ValueError(f"{command} needs a column of targets; got --target none.")
        try:
            y = check_targets_readable(y, labels=labels)
        except ValueError as error:
            error.add_note(f"This was at rows {n_read} to {n_read + len(y) - 1} of the stream.")
            raise
        n_read += len(y)
        yield X, y


def _losses(model: Any, X: Any, y: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    if is_regressor(model):
        yield "squared_error", (model.predict(X) - y.astype(np.float64)) ** 2
        return
    yield "error", model.predict(X) != y
    if hasattr(model, "predict_proba") and np.isin(y, model.classes_).all():
        of_label = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        with np.errstate(divide="ignore"):
            yield "log_loss", -np.log(of_label)


def _estimator(options: argparse.Namespace) -> BaseEstimator:
    found = getattr(onlinebregman, options.estimator, None) if options.estimator in onlinebregman.__all__ else None
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise ValueError(f"There is no estimator {options.estimator!r}; see the table in the documentation, Choosing.")
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


def _loaded(options: argparse.Namespace) -> tuple[Any, list[str] | None]:
    """A model, and the names of the columns that it has learned if they and the columns of the file have names."""
    model, extra = load_model(options.model, return_extra=True)
    return model, None if options.no_header or not isinstance(extra, dict) else extra.get("feature_names")


def _batches(
    options: argparse.Namespace,
    text_target: bool | None = None,
    text_columns: list[bool] | None = None,
    columns: list[str] | None = None,
) -> Batches:
    """The batches of a file: whether targets are text, which columns are, and the columns if they are found by name."""
    name = options.data.lower().removesuffix(".gz").removesuffix(".bz2").removesuffix(".xz")
    kinds = {".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".parquet": "parquet"}
    kind = options.format or kinds.get(Path(name).suffix, "csv")
    if options.data == "-" and kind != "csv":
        raise ValueError(f"Standard input must be CSV; got --format {kind}. Give a file.")
    if kind == "svmlight":
        if options.n_features is None:
            raise ValueError("svmlight files do not contain the number of features; give --n-features.")
        zero_based = "auto" if options.first_column is None else options.first_column == 0
        return SVMLightBatches(options.data, options.n_features, zero_based=zero_based)
    target: Any = None if options.target == "none" else options.target
    if isinstance(target, str) and re.fullmatch("-?[0-9]+", target):
        target = int(target)
    if kind == "parquet":
        return ParquetBatches(options.data, target, columns=columns)
    delimiter = "\t" if options.delimiter == r"\t" else options.delimiter
    return CSVBatches(
        options.data,
        target,
        columns=columns,
        delimiter=delimiter,
        header=not options.no_header,
        text_target=text_target,
        text_columns=text_columns,
    )


def _text_columns(model: Any) -> list[bool] | None:
    """Which columns a model has learned as text; None if it has no categories, and text is an error.

    Numbers that `categorical_features` makes categories are read as numbers, as they were learned.
    """
    categories = getattr(model, "categories_", None)
    return None if categories is None else [any(isinstance(value, str) for value in each or ()) for each in categories]


def _has_text_targets(model: Any, classes: np.ndarray | None) -> bool | None:
    """Whether targets are text; None if the file has to tell."""
    if classes is None:
        return False if is_regressor(model) else None
    return classes.dtype.kind in "UO"


def _given_classes(options: argparse.Namespace) -> np.ndarray | None:
    if options.classes is None:
        return None
    given = np.array([label.strip() for label in options.classes.split(",")])
    try:
        return given.astype(np.float64)  # targets of files are also read as float64
    except ValueError:
        return given


def _found_classes(options: argparse.Namespace, batches: Batches) -> np.ndarray:
    if options.data == "-":
        raise ValueError(
            "Standard input can only be read once, and a classifier needs all labels in advance; give --classes, or "
            "--set handle_unknown=add."
        )
    labels = [np.unique(y) for _, y in _with_targets("learn", batches, labels=True)]
    if not labels:
        raise ValueError(f"{options.data} must have at least one row; got none.")
    return np.unique(np.concatenate(labels))
