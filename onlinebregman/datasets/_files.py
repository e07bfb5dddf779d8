"""CSV files from a folder, as scikit-learn's loaders would return them."""

from __future__ import annotations

import csv
import gzip
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._online.containers import doubled
from ._frames import add_frames

DATA_HOME_VARIABLE = "ONLINEBREGMAN_DATA"
_SUFFIXES = (".csv", ".csv.gz")


def _resolve_data_home(data_home: str | os.PathLike[str] | None) -> Path:
    data_home = data_home or os.environ.get(DATA_HOME_VARIABLE)
    if not data_home:
        raise FileNotFoundError(
            f"There is no folder to read data sets from: set the environment variable {DATA_HOME_VARIABLE} to a folder "
            "of CSV files, or pass data_home."
        )
    folder = Path(data_home).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} is not a folder; {DATA_HOME_VARIABLE} or data_home must name one of CSV files."
        )
    return folder


def _files(folder: Path) -> dict[str, Path]:
    return {path.name.removesuffix(s): path for s in reversed(_SUFFIXES) for path in sorted(folder.glob(f"*{s}"))}


def list_datasets(data_home: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the names that `load_dataset` knows.

    Parameters
    ----------
    data_home : path-like or None, default=None
        A folder of CSV files; None means the folder named by the environment variable ONLINEBREGMAN_DATA.

    Returns
    -------
    names : list of str
        The files' names without .csv or .csv.gz, in alphabetical order.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from onlinebregman.datasets import list_datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in "tea.csv", "coffee.csv.gz", "notes.txt":
    ...         Path(folder, name).touch()
    ...     list_datasets(folder)
    ['coffee', 'tea']
    """
    return sorted(_files(_resolve_data_home(data_home)))


def load_dataset(
    name: str, *, data_home: str | os.PathLike[str] | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Bunch | tuple[Any, Any]:
    """Load a data set from a folder of CSV files.

    A file has a header row, commas, UTF-8, an empty field where a value is missing, and its target in the last column,
    called `target`; a file without such a column has no target. It may be compressed with gzip.

    Parameters
    ----------
    name : str
        Name of the file, without .csv or .csv.gz.
    data_home : path-like or None, default=None
        The folder; None means the folder named by the environment variable ONLINEBREGMAN_DATA.
    return_X_y : bool, default=False
        Return `(data, target)` instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects, categorical columns as categories; needs pandas.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With `data` of shape (n_samples, n_features), float64 if every column is numeric and otherwise object, its
        missing values NaN; `target` of shape (n_samples,), integers, floats or text, or None; `feature_names`;
        `categorical_features`, the indices of the columns of text; `frame` (with `as_frame=True`, else None);
        `filename`.
    (data, target) : tuple, if `return_X_y`
        The two alone.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or no such file in it; the message lists the names that there are.
    ValueError
        If the file is not of this form; the message names the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from onlinebregman.datasets import load_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "fruit.csv").write_text("weight,colour,target\\n150,red,apple\\n,green,pear\\n")
    ...     fruit = load_dataset("fruit", data_home=folder)
    >>> fruit.data
    array([[150.0, 'red'],
           [nan, 'green']], dtype=object)
    >>> fruit.target, fruit.categorical_features
    (array(['apple', 'pear'], dtype='<U5'), [1])
    """
    folder = _resolve_data_home(data_home)
    files = _files(folder)
    if name not in files:
        known = f"There are {', '.join(sorted(files))}." if files else "There are no CSV files in it."
        raise FileNotFoundError(f"There is no data set {name!r} in {folder}. {known}")
    names, columns = _read_columns(files[name])
    target = None
    if names[-1] == "target":
        names, (*columns, last) = names[:-1], columns
        target = _target(last, files[name])
    parsed = [_numbers(column) for column in columns]
    categorical = [i for i, numbers in enumerate(parsed) if numbers is None]
    data = np.empty((len(columns[0]), len(columns)), dtype=object if categorical else np.float64)
    for i, (numbers, column) in enumerate(zip(parsed, columns, strict=True)):
        data[:, i] = numbers if numbers is not None else [field or np.nan for field in column]
    bunch = Bunch(
        data=data,
        target=target,
        feature_names=names,
        categorical_features=categorical,
        frame=None,
        filename=str(files[name]),
    )
    if as_frame:
        add_frames(bunch)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _read_columns(path: Path) -> tuple[list[str], list[tuple[str, ...]]]:
    """The header and the columns of a file, as text."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:  # Excel writes a BOM
        reader = csv.reader(file)
        names = next(reader, [])
        if not names or names == ["target"]:
            raise ValueError(f"{path}: line 1 must name the columns, at least one of them a feature.")
        if twice := doubled(names):
            raise ValueError(f"{path}: line 1 names two columns {twice[0]!r}.")
        rows = []
        for row in reader:
            if len(row) != len(names):
                raise ValueError(f"{path}: line {reader.line_num} has {len(row)} fields, the header has {len(names)}.")
            rows.append(row)
    if not rows:
        raise ValueError(f"{path} has a header and no rows.")
    return names, list(zip(*rows, strict=True))


def _numbers(column: tuple[str, ...]) -> list[float] | None:
    """The column as numbers, NaN for an empty field; None if it has text, such as 1_000, nan or inf."""
    try:
        numbers = [float(field or "nan") for field in column]
    except ValueError:
        return None
    found = zip(column, numbers, strict=True)
    return None if any("_" in field or (field and not math.isfinite(number)) for field, number in found) else numbers


def _target(column: tuple[str, ...], path: Path) -> np.ndarray:
    if "" in column:
        raise ValueError(f"{path}: row {column.index('') + 1} of the data has no target.")
    numbers = _numbers(column)
    if numbers is None:
        return np.array(column)
    if any(set(field) & set(".eE") for field in column):
        return np.array(numbers)
    try:
        return np.array([int(field) for field in column], dtype=np.int64)  # floats would round large ones
    except OverflowError:
        return np.array(numbers)
