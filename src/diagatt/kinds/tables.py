"""The one reader of tables: files through pyarrow, and frames of pandas, polars or pyarrow."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from diagatt.kinds.number_words import is_number, refuse_broken_numbers
from diagatt.spelling import nearly

TEXT = (".csv", ".tsv", ".jsonl", ".ndjson")
ENDINGS = (*TEXT, ".parquet", ".feather", ".arrow")
#: What to do with files of other programs, by their endings.
ADVICE = {
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst"), "unpack it"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as CSV"),
    ".json": "write one object per line, and call it .jsonl",
    ".txt": "call it .csv if commas separate its columns, .tsv if tabs do",
}
#: How compressed files begin: gzip, zip (workbooks, too), bzip2, xz and zstandard.
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
WORKBOOK = b"\xd0\xcf\x11\xe0"  # how workbooks of older programs begin
LONGEST_REASON = 200  # characters of what a reader says
MOST_NAMES = 20  # columns that a message lists before it counts the rest


class Table:
    """A table whose errors name the file, the line and the column.

    Parameters
    ----------
    data : pyarrow Table, pandas or polars DataFrame, or mapping of columns
    name : str
        Its name in error messages.

    Examples
    --------
    >>> Table({"age": [31, None]}).numbers(["size"])
    Traceback (most recent call last):
    ValueError: the table has no column 'size'; it has age.
    """

    def __init__(self, data: Any, name: str = "the table") -> None:
        self.data, self.name = pa.table(data), name
        #: Names of the columns.
        self.names: list[str] = self.data.column_names
        self._places = {own: i for i, own in enumerate(self.names)}
        if len(self._places) < len(self.names):
            twice = next(own for i, own in enumerate(self.names) if self._places[own] > i)
            raise ValueError(f"{name} has two columns {twice!r}: give each its own name.")

    @classmethod
    def read(cls, path: Path, text: Collection[str] = ()) -> Table:
        """Read a file; its ending says what it is. Columns of `text` stay as they are written."""
        try:
            return cls(_decoded(_read(path, text), _ending(path)), str(path))
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is not written in UTF-8 ({error}): save it as UTF-8, or convert it with "
                "iconv."
            ) from error
        except pa.ArrowInvalid as error:
            if foreign := _foreign(path):  # what the reader says of it helps nobody
                raise ValueError(f"{path} cannot be read: {foreign}") from error
            raise ValueError(f"{path} cannot be read: {_reason(path, str(error))}") from error

    def __len__(self) -> int:
        return self.data.num_rows

    @property
    def listed(self) -> str:
        """The first names of columns, for messages, and how many more there are."""
        if not self.names:
            return "none"
        more = len(self.names) - MOST_NAMES
        words = ", ".join(
            name if name == name.strip(" \t'\"") != "" else repr(name)
            for name in self.names[:MOST_NAMES]
        )
        return words if more <= 0 else f"{words} and {more} others"

    def hint(self, name: str) -> str:
        """Say why a column may not be found: the file, its first line, or how a name is written."""
        if found := separator_hint(Path(self.name)):
            return found
        is_text = _ending(Path(self.name)) in (".csv", ".tsv")
        if is_text and any(is_number(own) for own in self.names):
            return " The first line must hold the names of the columns."
        return nearly([name], self.names)

    def column(self, name: str) -> Any:
        """Return a column as pyarrow holds it."""
        if name not in self._places:
            raise ValueError(
                f"{self.name} has no column {name!r}; it has {self.listed}.{self.hint(name)}"
            )
        return self.data.column(self._places[name])

    def kind_of(self, name: str) -> str:
        """Say in plain words what a column holds."""
        kind = self.column(name).type
        for holds, words in (
            (pa.types.is_boolean, "truth values"),
            (pa.types.is_temporal, "dates or durations"),
            (pa.types.is_nested, "lists or objects"),
            (pa.types.is_null, "empty cells"),
            (pa.types.is_integer, "numbers"),
            (pa.types.is_floating, "numbers"),
            (pa.types.is_decimal, "numbers"),
        ):
            if holds(kind):
                return words
        return str(kind)

    def values(self, name: str) -> list[Any]:
        """Return the cells of a column, none of which may be empty or NaN."""
        column = self.column(name)
        values, empty = column.to_pylist(), column.is_null(nan_is_null=True)
        if pa.compute.any(empty).as_py():
            line = empty.to_pylist().index(True) + 2  # the header is line 1
            what = "empty" if values[line - 2] is None else "not a number"
            raise ValueError(
                f"{self.name}, line {line}: {name!r} is {what}: drop the line or fill it."
            )
        return values

    def strings(self, name: str) -> list[str]:
        """Return the cells of a column as text."""
        return [str(value) for value in self.values(name)]

    def responses(self, name: str | None) -> np.ndarray | None:
        """Return the responses, (n,); None if the column is not named or not there."""
        if name is None or name not in self.names:
            return None
        if pa.types.is_temporal(self.column(name).type):
            raise ValueError(
                f"{self.name}: the responses {name!r} are dates or durations; write numbers, such "
                "as days since the first, or classes."
            )
        values = self.values(name)
        refuse_broken_numbers(values, name, self.name)
        return np.asarray(values)

    def groups(self, name: str | None) -> np.ndarray | None:
        """Return the groups of the lines, (n,) of str; None if they are not named or not there."""
        return None if name is None or name not in self._places else self.labels(name)

    def labels(self, name: str) -> np.ndarray:
        """Return names as an array of str, which one long cell does not widen; none is blank."""
        if pa.types.is_floating(self.column(name).type):
            from diagatt.arrays import refuse_lookalikes  # which imports torch

            refuse_lookalikes(np.asarray(self.values(name)), f"ids in column {name!r}")
        words = self.strings(name)
        for i, word in enumerate(words):
            if not word or word.isspace():
                raise ValueError(
                    f"{self.name}, line {i + 2}: {name!r} is blank: drop the line or fill it."
                )
        return np.array(words, dtype=object)

    def numbers(self, names: Sequence[str], what: str = "covariate") -> np.ndarray | None:
        """Return columns of numbers, (n, q); None without names. Errors call them `what`."""
        found = []
        for name in names:
            column = self.column(name)
            if pa.types.is_temporal(column.type):
                raise ValueError(
                    f"{self.name}: {what} {name!r} holds dates or durations: write numbers, such "
                    "as days since the first."
                )
            values = column.to_pylist()
            try:
                found.append(np.asarray(values, dtype=np.float64))
            except (TypeError, ValueError) as error:
                i = next(i for i, value in enumerate(values) if not _reads(value))
                raise ValueError(
                    f"{self.name}, line {i + 2}: {what} {name!r} must be numbers, and this is "
                    f"{values[i]!r}."
                ) from error
        return np.column_stack(found) if found else None


def _reads(value: Any) -> bool:
    """Return whether a cell is a number, or empty."""
    try:
        np.asarray([value], dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, list)


def _reason(path: Path, said: str) -> str:
    """Say why a file cannot be read, in our words or else in those of the reader."""
    if hint := separator_hint(path):
        return hint.strip()
    if "Empty CSV file" in said or "Empty JSON file" in said:
        return "It is empty, or its only line names the columns."
    if "invalid UTF8" in said:
        return "It is not written in UTF-8: save it as UTF-8, or convert it with iconv."
    reason = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    reason = reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…"
    if re.search(r"Expected \d+ columns?, got", reason):
        reason += ". Every line needs as many cells as the first, which names the columns"
    return reason if reason.endswith((".", "…")) else f"{reason}."


def _decoded(table: pa.Table, ending: str) -> pa.Table:
    """Return the table with bytes as words; in text files all must be UTF-8."""
    for i, column in enumerate(table.columns):
        if not pa.types.is_binary(column.type) and not pa.types.is_large_binary(column.type):
            continue
        try:
            words = [None if word is None else str(word, "utf-8") for word in column.to_pylist()]
        except UnicodeDecodeError:
            if ending in TEXT:
                raise
            continue  # pictures, for example, which may not be needed
        table = table.set_column(i, table.column_names[i], pa.array(words, pa.string()))
    return table


def separator_hint(path: Path) -> str:
    """Return a hint if the first line of a table is not text, or separated otherwise."""
    if _ending(path) not in (".csv", ".tsv") or not path.is_file():
        return ""
    if foreign := _foreign(path):
        return f" {foreign}"
    head = _head(path)
    own, wanted = (b"\t", "tabs") if _ending(path) == ".tsv" else (b",", "commas")
    if head.startswith(b"sep="):  # which spreadsheets write and read
        return f" Its first line is {head.decode(errors='replace').strip()!r}: drop this line."
    for mark, name in ((b";", "semicolons"), (b"\t", "tabs"), (b"|", "bars"), (b",", "commas")):
        if mark in head and own not in head:
            other = ", or call it .csv" if name == "commas" else ""
            return f" Its columns are separated by {name}: separate them by {wanted}{other}."
    return ""


def _foreign(path: Path) -> str:
    """Say what a file of text is that is compressed, a page, or written in another code."""
    head = _head(path) if _ending(path) in TEXT else b""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "The file is UTF-16: save it as UTF-8."
    if head.startswith(WORKBOOK):
        return "The file is a workbook: save the sheet as CSV."
    if head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "The file is a page of HTML or XML, not a table: export the table as CSV."
    if head.startswith(COMPRESSED):
        return "The file is compressed, or a workbook: unpack it, or save the sheet as CSV."
    return ""


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(10_000)


def _ending(path: Path) -> str:
    """Return the ending of a file's name, which may be written in capitals."""
    return path.suffix.lower()


def _whole(path: Path) -> int:
    """Return the bytes to read at once so that no line is longer, which readers refuse."""
    return min(max(path.stat().st_size + 1, 2**20), 2**31 - 1)


def _read(path: Path, text: Collection[str]) -> pa.Table:
    from pyarrow import csv, feather, json, parquet

    ending = _ending(path)
    if ending in (".csv", ".tsv"):
        delimiter = "\t" if ending == ".tsv" else ","
        # Only an empty unquoted cell is missing: "NA" and "null" are words.
        convert = csv.ConvertOptions(
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            column_types=dict.fromkeys(text, pa.string()),  # 007 is not 7
        )
        parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        given = {"parse_options": parse, "convert_options": convert}
        try:
            return csv.read_csv(path, **given)
        except pa.ArrowInvalid:
            # Several threads name the wrong line, and a cell may be longer than a block.
            once = csv.ReadOptions(use_threads=False, block_size=_whole(path))
            return csv.read_csv(path, once, **given)
    if ending in (".jsonl", ".ndjson"):
        try:
            table = json.read_json(path)
        except pa.ArrowInvalid:  # a line may be longer than a block
            table = json.read_json(path, json.ReadOptions(block_size=_whole(path)))
        dates = [f for f in table.schema if f.name in text and pa.types.is_temporal(f.type)]
        if not dates:
            return table
        own = pa.schema([(field.name, pa.string()) for field in dates])  # 2020-01-01 is no time
        at_once = json.ReadOptions(block_size=_whole(path))
        return json.read_json(path, at_once, json.ParseOptions(own))
    if ending == ".parquet":
        return parquet.read_table(path)
    if ending in (".feather", ".arrow"):
        return feather.read_table(path)
    known = ", ".join([*ENDINGS, ".npz"])
    advice = f": {ADVICE[ending]}" if ending in ADVICE else ""
    raise ValueError(f"{path}: unknown kind of file{advice}; give one of {known}.")
