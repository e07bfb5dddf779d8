"""Frames of files, by pandas and pyarrow, whose columns are of the same types from the first row to the last."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import sys
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn

from sklearn.utils import check_scalar

from .._online.containers import doubled, frame_of_arrow, needed
from ._batches import damage

TYPED = 10_000  # rows that tell the types of columns
NUMBERS, BOOLEANS, CATEGORIES, DATES = "numbers", "booleans", "categories", "dates"
TYPES = {float: NUMBERS, str: CATEGORIES, "date": DATES}
_FORMATS = {
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "feather"),
}
_REFUSED = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "a spreadsheet: save it as CSV, or give the frame of pandas.read_excel"),
    **dict.fromkeys((".svm", ".libsvm"), "svmlight's: give SVMLightBatches, with the number of features"),
    ".arrows": "an Arrow stream: give pyarrow.ipc.open_stream of it to fit_stream",
    ".arff": "ARFF: give the frame of scipy.io.arff.loadarff, or save that as CSV",
    ".vw": "Vowpal Wabbit's: write it as svmlight (.svm), or as CSV",
}
_PACKED = (".gz", ".bz2", ".zip", ".xz", ".zst", ".tar")
# What people write for numbers but pandas does not read as such, and what they write for days.
WRITTEN = re.compile(
    r"\s*['\"(]?[-+\u2212$€£¥\s]*(\d[\d.,_'\s]*([dDeE][-+\u2212]?\d+)?|0[xX][\da-fA-F]+)\s*[%$€£¥]?[)'\"]?\s*"
)
_DAY = re.compile(
    r"\s*(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4}|[A-Za-z]{3,9}\.? \d{1,2},? \d{4})"
    r"([ T]\d{1,2}:\d\d.*)?\s*"
)
_BOOLEANS = {text: value for value in (True, False) for text in (str(value), f"{value}".lower(), f"{value}".upper())}
_UNDECODED = re.compile("[\udc80-\udcff]")
_HALF = re.compile("[\ud800-\udfff]")  # of a character of two parts, which JSON may write by itself


def place(column: Any, names: Sequence[Any], where: str) -> int:
    """The number of a column that is given by its name or, if none has that name, by its number."""
    listed = list(names)
    for name in (column, str(column)):
        if name in listed:
            return listed.index(name)
    stripped = [str(name).strip() for name in listed]
    if str(column).strip() in stripped:
        return stripped.index(str(column).strip())
    if isinstance(column, Integral) and -len(listed) <= int(column) < len(listed):
        return int(column) % len(listed)
    seps = [sep for sep in ";\t|," if len(listed) == 1 and sep in str(listed[0])]
    remedy = f" Its columns seem to be separated by {seps[0]!r}: set sep (--sep)." if seps else ""
    raise ValueError(f"{where} must have a column {column!r}; got {', '.join(map(str, listed))}.{remedy}")


class FileFrames:
    """Frames of a file: CSV, TSV and JSON lines by pandas, Parquet and Arrow (Feather) by pyarrow.

    Numbers, texts, booleans and missing values are those of `pandas.read_csv`, to the last digit. The first 10,000 rows
    tell the types of columns, which later rows must not contradict. Nothing is guessed: where at least half of the
    values of a column are numbers and some are not, or are written in another way, are dates, or are texts that mostly
    differ, an error names the first. The index of frames has the numbers of lines, `kinds_` the kinds of columns, and
    `n_categories_` the numbers of categories in the first rows.

    Parameters
    ----------
    path : str, path or "-"
        The file, or a folder of Parquet files; "-" is standard input, which can only be read once. Files are unpacked
        as by pandas if their names end in .gz, .bz2, .zip, .xz, .zst or .tar.
    format : {"csv", "jsonl", "parquet", "feather"}, default=None
        None: by the name of the file.
    sep, decimal, thousands, encoding : str, default=None, ".", None and "utf-8"
        How CSV files are written, as for pandas. The separator is one character; None: a comma, in .tsv files a tab.
    header : bool, default=None
        Whether the first line of a CSV file has the names of the columns. None: it has, but a number among the names is
        an error.
    missing : sequence of str, default=()
        What stands for a missing value in CSV files, besides what pandas takes for it.
    columns, drop : sequences of str or int, default=None and ()
        Names or numbers of the columns to read, in this order, None for all of them; and of those to leave out.
    types : dict, default=None
        Types of columns by names or numbers: `float`, `str` for categories, as they are written, or "date", in ISO
        8601, which becomes the number of days since 1970-01-01.
    batch_size : int, default=10_000
        Rows of a frame.

    Examples
    --------
    >>> from pathlib import Path
    >>> from onlinebregman.streams import FileFrames
    >>> _ = Path("scales.csv").write_text("left;right;side\\n1,5;2;R\\n3;-;L\\n")
    >>> frames = FileFrames("scales.csv", sep=";", decimal=",", missing=["-"])
    >>> next(iter(frames)).values.tolist()
    [[1.5, 2.0, 'R'], [3.0, nan, 'L']]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        sep: str | None = None,
        decimal: str = ".",
        thousands: str | None = None,
        encoding: str = "utf-8",
        header: bool | None = None,
        missing: Sequence[str] = (),
        columns: Sequence[str | int] | None = None,
        drop: Sequence[str | int] = (),
        types: Mapping[Any, Any] | None = None,
        batch_size: int = 10_000,
    ) -> None:
        check_scalar(batch_size, "batch_size", Integral, min_val=1)
        ending = _ending(path)
        self.path, self.batch_size = path, batch_size
        self.format = format or ("parquet" if os.path.isdir(path) else _FORMATS.get(ending, "csv"))
        if format is None and ending in _REFUSED:
            raise ValueError(f"{path} is {_REFUSED[ending]}.")
        if path == "-" and (self.format in ("parquet", "feather") or sys.stdin is None):
            raise ValueError("Standard input must be open, and have CSV or JSON lines. Give a file.")
        self.sep = sep or ("\t" if ending in (".tsv", ".tab") else ",")
        if self.format not in ("csv", *_FORMATS.values()) or len(self.sep) != 1:
            said = "format must be csv, jsonl, parquet or feather, sep one character"
            raise ValueError(f"{said}; got {format!r}, {sep!r}.")
        if len(decimal) != 1 or len(thousands or "'") != 1 or decimal == thousands:
            raise ValueError(f"decimal and thousands must be two characters; got {decimal!r} and {thousands!r}.")
        self.decimal, self.thousands, self.encoding, self.header = decimal, thousands, encoding, header
        self.missing, self.columns, self.drop, self.types = missing, columns, drop, dict(types or {})
        self.kinds_: dict[Any, str] = {}
        self.n_categories_: dict[Any, int] = {}
        self.fraction: float | None = None  # of the file that was read

    def __iter__(self) -> Iterator[Any]:
        needed("pandas")
        if self.format in ("parquet", "feather"):
            tables, head = self._tables(), list[Any]()
            while sum(map(len, head)) < TYPED and (frame := next(tables, None)) is not None:
                head.append(frame)
            if head:
                self._find_kinds(needed("pandas").concat(head))
            yield from map(self._typed, itertools.chain(head, tables))
            return
        with closing(self._lines()) as lines:
            records = self._rows(lines) if self.format == "csv" else lines
            head = list(itertools.islice(records, TYPED))
            if head:
                self._find_kinds(self._parsed(head))
            records = itertools.chain(head, records)
            while group := list(itertools.islice(records, self.batch_size)):
                yield self._typed(self._parsed(group))

    def _lines(self) -> Generator[tuple[int, str], None, None]:
        """The lines of a text file, with their numbers."""
        with ExitStack() as stack:
            settings, file = {"encoding": self.encoding, "errors": "surrogateescape"}, None
            stack.enter_context(damage(self.path))
            if self.path == "-":
                text: Any = sys.stdin
                if hasattr(text, "reconfigure"):
                    text.reconfigure(**settings, newline="")
            else:
                file, common = stack.enter_context(open(self.path, "rb")), needed("pandas.io.common")
                settings["compression"] = common.infer_compression(os.fspath(self.path), "infer")
                text = stack.enter_context(common.get_handle(file, "r", **settings)).handle
            for number, line in enumerate(text, 1):
                if number == 1:
                    line = line.removeprefix("\ufeff")
                    if line.lstrip().startswith("{") and self.format == "csv" and self.header is None:
                        self._refuse(number, "this looks like JSON lines. Set format (--format) to jsonl")
                if not line.isascii() and (found := _UNDECODED.search(line)):
                    byte = f"byte {ord(found[0]) - 0xDC00:#x} is not {self.encoding}. Set encoding (--encoding)"
                    self._refuse(number, f"{byte}, such as latin-1 or utf-16, or the name's end (.gz)")
                if "\0" in line:
                    self._refuse(number, "a NUL byte. Set encoding (--encoding), as to utf-16, or the name's end (.gz)")
                if file is not None and number % 1000 == 0:
                    self.fraction = file.tell() / os.fstat(file.fileno()).st_size
                if line.strip(" \r\n") or self.format == "csv":  # in which it may be part of a quoted value
                    yield number, line

    def _rows(self, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """The rows of a CSV file after its header: the numbers of their first lines, and their text."""
        records = self._records(lines)
        number, text, width = next(records, (0, "", 0))
        if not width:
            return
        quoted = '"' in text  # which `csv` has read before
        names: list[Any] = (
            next(csv.reader([text], delimiter=self.sep)) if quoted else text.rstrip("\r\n").split(self.sep)
        )
        if self.header is False:
            records, names = itertools.chain([(number, text, width)], records), self._places(number, width)
        else:
            names = [name or f"Unnamed: {i}" for i, name in enumerate(names)]  # as pandas names them
            numbers = [name for name in names if self._number(name) is not None]
            if self.header is None and numbers:
                said = f"{numbers[0]!r} among the names of columns is a number"
                self._refuse(number, f"{said}. Set header (--header, --no-header): whether these are names")
            if twice := doubled(names):
                self._refuse(number, f"two columns {twice[0]!r}. Rename one, or set header=False (--no-header)")
        self._choose(names)
        for number, text, width in records:
            if width != len(names):
                said = f"{width} values, but {len(names)} in the first line. Set sep (--sep, now {self.sep!r})"
                self._refuse(
                    number, f"{said}, close quotes, or remove what is too much, as remarks, separators at ends of lines"
                )
            yield number, text

    def _records(self, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, int]]:
        """Lines that are not empty, joined where a quoted value has line breaks, with their numbers of values."""
        for number, text in lines:
            if '"' in text:
                read = {number: text}
                rest = (read.setdefault(*line) for line in lines)
                try:
                    width = len(next(csv.reader(itertools.chain([text], rest), delimiter=self.sep, strict=True)))
                except csv.Error as error:
                    self._refuse(number, f"{error}. Close its quotes, and double those inside of values")
                text = "".join(read.values())
            else:
                width = text.count(self.sep) + 1
            if text.strip(" \r\n"):
                yield number, text, width

    def _places(self, number: int, width: int) -> list[Any]:
        """The names of the columns of a file without names, whose first row has this number and so many values."""
        return list(range(width))

    def _tables(self) -> Iterator[Any]:
        pandas, pyarrow, dataset, n_read = needed("pandas"), needed("pyarrow"), needed("pyarrow.dataset"), 0
        with damage(self.path):
            source = dataset.dataset(self.path, format=self.format, partitioning="hive")
            if not source.files:
                raise ValueError(f"{self.path} is a folder without {self.format} files. Give a file.")
            index = (source.schema.pandas_metadata or {}).get("index_columns", ())  # which are no columns for pandas
            self._choose([name for name in source.schema.names if name not in index])
            for part in source.get_fragments():  # of which pyarrow would fill what one lacks, and pass over what is new
                in_path = dataset.get_partition_keys(part.partition_expression)
                has, read = {name for name in part.physical_schema.names if name not in index}, set(self.names_)
                has.update(in_path)
                if odd := read - has if self.columns is not None else has ^ set(self.all_names_):
                    said = f"{part.path} and {source.files[0]} must both have a column {min(odd)!r}, or neither"
                    raise ValueError(f"{said}. Write it to both, or choose other columns (--columns).")
                schemas = [source.schema if name in in_path else part.physical_schema for name in self.names_]
                types = pyarrow.schema([schema.field(name) for schema, name in zip(schemas, self.names_, strict=True)])
                batches = part.to_batches(schema=types, columns=self.names_, batch_size=self.batch_size)
                for frame in map(frame_of_arrow, batches):
                    frame.index = pandas.RangeIndex(n_read, n_read + len(frame), name="row")
                    n_read += len(frame)
                    yield frame

    def _choose(self, names: Sequence[Any]) -> None:
        where = str(self.path)
        dropped = {place(column, names, where) for column in self.drop}
        wanted = range(len(names)) if self.columns is None else [place(each, names, where) for each in self.columns]
        chosen = [number for number in wanted if number not in dropped]
        if twice := doubled(names[number] for number in chosen):
            raise ValueError(f"{where}: column {twice[0]!r} is given twice, perhaps as the target. Set --target.")
        if odd := [name for name in names if "\0" in str(name)]:
            raise ValueError(f"{where}: the name of column {odd[0]!r} has a NUL byte. Rename it.")
        if self.columns is None and 0 in chosen and names[0] == "Unnamed: 0":
            warnings.warn(f"{where}: column 0 is an index that pandas saved. Set drop (--drop 0).", stacklevel=2)
        self.all_names_, self.names_ = list(names), [names[number] for number in chosen]
        self._given = {names[place(column, names, where)]: TYPES.get(kind, kind) for column, kind in self.types.items()}
        self.kinds_ = {}

    def _parsed(self, records: list[tuple[int, str]]) -> Any:
        """Rows as a frame, texts of categories and dates as they are written."""
        pandas = needed("pandas")
        index = pandas.Index([number for number, _ in records], name="line")
        if self.format == "jsonl":
            rows = [self._object(*record) for record in records]
            if not self.kinds_:
                self._choose(list(dict.fromkeys(itertools.chain.from_iterable(rows))))
            first = set(self.all_names_)
            for number, row in zip(index, rows, strict=True):
                if new := [name for name in row if name not in first]:
                    self._refuse(number, f"the first rows have no {new[0]!r}. Give it there, or remove it")
            return pandas.DataFrame.from_records(rows, index, columns=self.names_)
        # the default is exact from pandas 3.1 on
        exact = {} if pandas.__version__ >= "3.1" else {"float_precision": "round_trip"}
        written = {str(name) for name, kind in (self.kinds_ or self._given).items() if kind in (CATEGORIES, DATES)}
        names = list(map(str, self.names_))  # numbers would be places
        frame = pandas.read_csv(
            io.StringIO("".join(text if text[-1] in "\r\n" else text + "\n" for _, text in records), newline=""),
            sep=self.sep, decimal=self.decimal, thousands=self.thousands, na_values=list(self.missing),
            names=list(map(str, self.all_names_)), header=None, index_col=False, usecols=names, skip_blank_lines=False,
            dtype=dict.fromkeys(written, str), low_memory=False, **exact,
        )  # fmt: skip
        if len(frame) != len(records):
            self._refuse(
                records[0][0], f"pandas finds {len(frame)} rows from here on, not {len(records)}. Check quotes"
            )
        return frame.set_index(index)[names].set_axis(self.names_, axis=1)

    def _object(self, number: int, text: str) -> dict[str, Any]:
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            self._refuse(number, f"this is no JSON ({getattr(error, 'msg', error)}). Write one object in each line")
        if "\\u" in text and _HALF.search(json.dumps(row, ensure_ascii=False)):
            self._refuse(number, r"half of a character, as \ud800 is. Remove it, or write both halves")
        if not isinstance(row, dict):
            self._refuse(number, 'no object. Write {"name": value, ...} in each line, as to_json(lines=True) of pandas')
        return row

    def _find_kinds(self, frame: Any) -> None:
        """Kinds of columns and numbers of categories."""
        self.kinds_ = {name: self._given.get(name) or self._kind(frame[name]) for name in self.names_}
        self._write_out(frame)
        kept = [name for name, kind in self.kinds_.items() if kind in (BOOLEANS, CATEGORIES)]
        self.n_categories_ = {name: frame[name].nunique() for name in kept}

    def _kind(self, column: Any) -> str:
        kind = getattr(column.dtype, "kind", "O")
        if kind in "iufb":
            return BOOLEANS if kind == "b" else NUMBERS
        known = column.dropna()
        values = known.astype(object).tolist()
        if not values or all(self._number(value) is not None for value in values):
            return NUMBERS
        if all(isinstance(value, bool) for value in values):
            return BOOLEANS
        for row, value in enumerate(values):
            if not isinstance(value, str | bool | Real):
                self._refuse_value(known, row, "a date" if hasattr(value, "year") else "neither a number nor text")
        texts = [str(value) for value in values]
        plain = [self._number(value) is not None for value in values]
        n_numbers = sum(number or bool(WRITTEN.fullmatch(t)) for number, t in zip(plain, texts, strict=True))
        if 2 * n_numbers >= len(texts):
            self._refuse_value(known, plain.index(False), "no number, as most others are")
        if 2 * sum(bool(_DAY.fullmatch(text)) for text in texts) > len(texts):
            self._refuse_value(known, 0, "a date")
        if len(texts) >= 100 and 2 * len(set(texts)) > len(texts) and column.dtype != "category":
            self._refuse_value(known, 0, f"one of {len(set(texts))} different texts in {len(texts)} rows")
        return CATEGORIES

    def _write_out(self, frame: Any) -> None:
        """Make texts of what categories are that are neither texts nor numbers: dates, durations, nested values."""
        for name, kind in self.kinds_.items():
            if kind == CATEGORIES and (frame[name].dtype == object or frame[name].dtype.kind in "mM"):
                known = frame[name].astype(object)
                frame[name] = known.map(lambda v: v if isinstance(v, str | bool | Real) else str(v), na_action="ignore")

    def _refuse_value(self, column: Any, row: int, what: str) -> NoReturn:
        (value, name), remedy = (column.tolist()[row], str(column.name)), ""
        if what.startswith("no date"):
            remedy = "write it as 2024-02-01; "
        elif what == "a date" or (isinstance(value, str) and _DAY.fullmatch(value)):
            remedy = "set types to 'date' (--dates) for days since 1970, by ISO 8601; "
        elif what.startswith("no number"):
            remedy = "set missing (--missing) if it means none, decimal or thousands (--decimal, --thousands); "
        raise ValueError(
            f"{self.path}, {column.index.name} {column.index[row]}: column {name!r} has {value!r:.80}, which is "
            f"{what}. Change it; {remedy}types to str (--categories) for categories; or leave the column out (--drop)."
        )

    def _typed(self, frame: Any) -> Any:
        """The frame with columns of their kinds; a ValueError names the first value that contradicts them."""
        pandas = needed("pandas")
        self._write_out(frame)
        for name, kind in self.kinds_.items():
            column = frame[name]
            read = {NUMBERS: "iuf", BOOLEANS: "b"}.get(kind, "")
            if kind == CATEGORIES or getattr(column.dtype, "kind", "O") in read:
                continue
            if kind == DATES:
                written = column if column.dtype.kind == "M" else column.astype(str).where(column.notna())
                times = pandas.to_datetime(written, format="ISO8601", utc=True, errors="coerce").dt.tz_convert(None)
                values = times.astype("datetime64[us]").astype("int64") / 86_400e6
                values = values.where(times.notna())
            elif kind == NUMBERS:
                values = column.astype(object).map(self._number).astype(float)
            else:
                values = column.astype(object).map(lambda value: _BOOLEANS.get(str(value)))
            wrong = (values.isna() & column.notna()).to_numpy()
            if wrong.any():
                what = {DATES: "no date of ISO 8601", NUMBERS: "no number, as the first ones are"}
                self._refuse_value(column, int(wrong.argmax()), what.get(kind, "neither True nor False"))
            frame[name] = values
        return frame

    def _number(self, value: Any) -> float | None:
        """A value as a number; None if it is none."""
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            return None
        if isinstance(value, str):
            value = value.replace(self.thousands or "_", "")
            if self.decimal != "." and "." in value:
                return None
            value = value.replace(self.decimal, ".")
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):  # the last of a whole number of 309 digits
            return None

    def _refuse(self, line: int, what: str) -> NoReturn:
        raise ValueError(f"{self.path}, line {line}: {what}.")


def _ending(path: str | os.PathLike[str]) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
