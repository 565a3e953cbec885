"""The one reader of tables: files through pyarrow, and frames of pandas, polars or pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from diagatt.kinds.number_words import refuse_broken_numbers

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
            reason = "".join(c if c.isprintable() else " " for c in str(error))
            reason = " ".join(reason.split())
            if len(reason) > LONGEST_REASON:
                reason = f"{reason[:LONGEST_REASON]}…"
            raise ValueError(f"{path} cannot be read: {reason}{separator_hint(path)}") from error

    def __len__(self) -> int:
        return self.data.num_rows

    @property
    def listed(self) -> str:
        """The first names of columns, for messages, and how many more there are."""
        if not self.names:
            return "none"
        more = len(self.names) - MOST_NAMES
        words = ", ".join(
            name if name == name.strip() != "" else repr(name) for name in self.names[:MOST_NAMES]
        )
        return words if more <= 0 else f"{words} and {more} others"

    def column(self, name: str) -> Any:
        """Return a column as pyarrow holds it."""
        if name not in self._places:
            hint = separator_hint(Path(self.name))
            raise ValueError(f"{self.name} has no column {name!r}; it has {self.listed}.{hint}")
        return self.data.column(self._places[name])

    def values(self, name: str) -> list[Any]:
        """Return the cells of a column, none of which may be empty."""
        values = self.column(name).to_pylist()
        if None in values:
            line = values.index(None) + 2  # the header is line 1
            raise ValueError(
                f"{self.name}, line {line}: {name!r} is empty: drop the line or fill it."
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
        """Return the cells of a column as an array of str, which one long cell does not widen."""
        if pa.types.is_floating(self.column(name).type):
            from diagatt.arrays import refuse_lookalikes  # which imports torch

            refuse_lookalikes(np.asarray(self.values(name)), f"ids in column {name!r}")
        return np.array(self.strings(name), dtype=object)

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
    """Return a hint if the first line of a CSV is not text, or not separated by commas."""
    if _ending(path) != ".csv" or not path.is_file():
        return ""
    if foreign := _foreign(path):
        return f" {foreign}"
    head = _head(path)
    for mark, name in ((b";", "semicolons"), (b"\t", "tabs"), (b"|", "bars")):
        if mark in head and b"," not in head:
            return f" Its columns are separated by {name}: separate them by commas."
    return ""


def _foreign(path: Path) -> str:
    """Say what a file of text is that is compressed or written in another code."""
    head = _head(path) if _ending(path) in TEXT else b""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "The file is UTF-16: save it as UTF-8."
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
