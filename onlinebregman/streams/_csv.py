"""Batches of files of separated values."""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._batches import Batch, Table, as_rows, check_start, opened

# What stands for a missing value, besides nothing.
_MISSING = {"", "?", "na", "n/a", "nan", "null", "none"}


class CSVBatches(Table):
    """Batches of a file of separated values: numbers, and columns of text, which are categories to a learner.

    X is an array of numbers, or of objects if there are columns of text. A missing value is NaN among numbers, None
    among texts; it is an empty field, or ?, NA, N/A, NaN, null or None in any case of letters.

    Parameters
    ----------
    path : str, path or "-"
        The file; "-" is standard input, which can only be read once. Files ending in .gz, .bz2 or .xz are decompressed.
    target : str, int or None, default=-1
        Name or number of the column of targets, which may be text; negative numbers count from the last column. None:
        no target.
    columns : sequence of str or int, default=None
        The columns of X. None: all except the target.
    delimiter : str, default=","
        Separator of values, one character.
    header : bool, default=True
        Whether the first line holds the names of the columns; otherwise columns have numbers only.
    text_target : bool, default=None
        Whether targets are text. None: if a target in the first batch is no number.
    text_columns : sequence of bool, str or int, default=None
        The columns of X that are text: a mask of the columns of X, or names or numbers of columns of the file. None:
        those with a value in the first batch that is neither a number nor missing; text in another column is an error.
    {batch_size}

    Examples
    --------
    >>> from pathlib import Path
    >>> from onlinebregman.streams import CSVBatches
    >>> _ = Path("scales.csv").write_text("left,right,side\\n1.0,2.0,R\\n3.0,1.0,L\\n")
    >>> list(CSVBatches("scales.csv", target="side"))
    [(array([[1., 2.],
           [3., 1.]]), array(['R', 'L'], dtype='<U1'))]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: str | int | None = -1,
        *,
        columns: Sequence[str | int] | None = None,
        delimiter: str = ",",
        header: bool = True,
        text_target: bool | None = None,
        text_columns: ArrayLike | None = None,
        batch_size: int = 10_000,
    ) -> None:
        super().__init__(target, columns, batch_size)
        if not (isinstance(delimiter, str) and len(delimiter) == 1):
            raise ValueError(f"delimiter must be one character; got {delimiter!r}.")
        self.path, self.delimiter, self.header, self.text_target = path, delimiter, header, text_target
        self.text_columns = text_columns

    def _resume(self, start: int, texts: tuple[list[bool], bool | None] | None) -> Iterator[Batch]:
        return self._read(start, texts)

    def _read(self, start: int, known: tuple[list[bool], bool | None] | None = None) -> Iterator[Batch]:
        with opened(self.path) as file:
            lines = (line for line in _whole_rows(file, self.delimiter) if line.strip(" \r\n"))
            first = next(lines, None)
            if first is None:
                check_start(start, 0)
                return
            fields = [field.strip() for field in _split(first, self.delimiter)]
            names: list[Any] = fields if self.header else list(range(len(fields)))
            places, target = self._places(names, str(self.path))
            if not places:
                raise ValueError(
                    f"{self.path} must have a column of X in addition to the target; got {fields} with delimiter="
                    f"{self.delimiter!r}, which may be wrong."
                )
            rows = lines if self.header else itertools.chain([first], lines)
            text = self.text_target  # None: as is known, or else by the first batch of the file
            texts = self._text_places(names, places)  # likewise
            if known is not None:
                text = known[1] if text is None else text
                if texts is None:  # the learner refuses another number of columns
                    texts = {place for place, is_text in zip(places, known[0], strict=False) if is_text}
            head = list(itertools.islice(rows, min(start, self.batch_size)))
            if text is None and head and target is not None:
                text = _is_text(self._parsed(head, [target], str))
            if texts is None and head:
                texts = self._found_texts(head, places)
            n_read = len(head) + sum(1 for _ in itertools.islice(rows, start - len(head)))
            check_start(start, n_read)
            for batch in _grouped(rows, self.batch_size):
                try:
                    self._check_width(batch, names, places if target is None else [*places, target], n_read)
                    texts = self._found_texts(batch, places) if texts is None else texts
                    X = self._rows(batch, places, texts, names, n_read)
                    y = None
                    if target is not None:
                        y = np.char.strip(self._parsed(batch, [target], str)[:, 0])
                        text = _is_text(y) if text is None else text
                        if (y == "").any():
                            raise ValueError(
                                f"Targets must not be empty; got none in row {n_read + np.argmax(y == '')}."
                            )
                        y = y if text else self._as_numbers(y[:, None], [target], names, n_read)[:, 0]
                except ValueError as error:
                    error.add_note(f"This was in {self.path}, rows {n_read} to {n_read + len(batch) - 1}.")
                    raise
                n_read += len(batch)
                self._texts = [place in texts for place in places], text
                yield X, y

    def _text_places(self, names: list[Any], places: list[int]) -> set[int] | None:
        """Numbers of the columns of text; None if the first batch has to tell."""
        if self.text_columns is None:
            return None
        given: np.ndarray = np.asarray(self.text_columns)
        if given.dtype != bool:
            return {self._place(name, names, str(self.path)) for name in np.asarray(self.text_columns, dtype=object)}
        if given.shape != (len(places),):
            raise ValueError(
                f"text_columns as a mask must have one entry for each of the {len(places)} columns of X; got shape "
                f"{given.shape}."
            )
        return {place for place, is_text in zip(places, given, strict=True) if is_text}

    def _found_texts(self, lines: list[str], places: list[int]) -> set[int]:
        """The columns with a value that is neither a number nor missing."""
        try:
            self._parsed(lines, places, np.float64)
        except ValueError:
            columns = self._parsed(lines, places, str).T
            return {place for place, column in zip(places, columns, strict=True) if _first_text(column) is not None}
        return set()

    def _rows(
        self, lines: list[str], places: list[int], texts: Collection[int], names: list[Any], n_read: int
    ) -> np.ndarray:
        """Rows of numbers, or of objects if there are columns of text."""
        numeric = [place for place in places if place not in texts]
        numbers = self._numbers(lines, numeric, names, n_read) if numeric else np.empty((len(lines), 0))
        if len(numeric) == len(places):
            return numbers
        columns = dict(zip(numeric, numbers.T, strict=True))
        for place in texts:
            column = [value.strip() for value in self._parsed(lines, [place], str)[:, 0].tolist()]
            columns[place] = np.array([None if value.lower() in _MISSING else value for value in column], dtype=object)
        return as_rows([columns[place] for place in places])

    def _numbers(self, lines: list[str], places: list[int], names: list[Any], n_read: int) -> np.ndarray:
        try:
            return self._parsed(lines, places, np.float64)
        except ValueError:
            return self._as_numbers(self._parsed(lines, places, str), places, names, n_read)

    def _as_numbers(self, texts: np.ndarray, places: list[int], names: list[Any], n_read: int) -> np.ndarray:
        """Fields as numbers, NaN where a value is missing."""
        try:
            return texts.astype(np.float64)
        except ValueError:
            pass
        for place, column in zip(places, texts.T, strict=True):
            row = _first_text(column)
            if row is not None:
                raise ValueError(
                    f"Column {names[place]!r} must hold numbers; got {str(column[row])!r} in row {n_read + row}. If it "
                    "is text, which the first batch does not tell, set text_columns, or text_target for targets."
                )
        missing = np.isin(np.char.lower(np.char.strip(texts)), list(_MISSING))
        return np.where(missing, "nan", texts).astype(np.float64)

    def _check_width(self, lines: list[str], names: list[Any], places: list[int], n_read: int) -> None:
        """Raise a ValueError for a row without a value of some place, or with more values than names, not all empty."""
        width, last = len(names), max(places)
        for row, line in enumerate(lines, n_read):
            if '"' in line or line.count(self.delimiter) != width - 1:
                values = _split(line, self.delimiter)
                if len(values) <= last or "".join(values[width:]).strip():
                    raise ValueError(
                        f"Rows must have {width} values, as the first line; got {len(values)} in row {row}."
                    )

    def _parsed(self, lines: list[str], columns: list[int], dtype: type) -> np.ndarray:
        return np.loadtxt(
            lines, dtype, delimiter=self.delimiter, usecols=columns, ndmin=2, comments=None, quotechar='"'
        )


def _whole_rows(lines: Iterator[str], delimiter: str) -> Iterator[str]:
    """The lines of a file, joined where a quoted value has line breaks, without the BOM that Excel writes."""
    lines = iter(lines)
    begin = [line.removeprefix("\ufeff") for line in itertools.islice(lines, 1)]
    for line in itertools.chain(begin, lines):
        if '"' in line and line.count('"') % 2 and _ends_in_quotes(line, delimiter):
            row = [line]
            for more in lines:
                row.append(more)
                if more.count('"') % 2:
                    break
            else:
                raise ValueError(f"Quotes must be closed; got {line.strip()[:50]!r} and no end of the quoted value.")
            line = "".join(row)
        yield line


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter))
    except csv.Error as error:  # such as a quoted value that is too long
        raise ValueError(f"Python's csv module cannot read {line[:50]!r}: {error}.") from error


def _ends_in_quotes(line: str, delimiter: str) -> bool:
    try:
        list(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False


def _first_text(column: np.ndarray) -> int | None:
    """The first row with a value that is neither a number nor missing."""
    for row, value in enumerate(column.tolist()):
        if value.strip().lower() not in _MISSING:
            try:
                float(value)
            except ValueError:
                return row
    return None


def _is_text(y: np.ndarray) -> bool:
    try:
        y.astype(np.float64)
    except ValueError:
        return True
    return False


def _grouped(items: Iterator[str], size: int) -> Iterator[list[str]]:
    while group := list(itertools.islice(items, size)):
        yield group
