"""One shard: an Arrow file of one record batch, mapped into memory and verified.

Rows are a ``large_list<fixed_size_list<float, d>>``. Its int64 offsets and its flat values are
exactly the two arrays of `RaggedRows`, so that reading copies no rows.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from diagatt.names import checked
from diagatt.ragged import RaggedRows
from diagatt.stores.row_types import disk_dtype, memory_dtype, widened

TYPES = {"float64": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(), "string": pa.string()}
# Columns that belong to single rows: ids and weights.
TYPES["strings"] = pa.list_(pa.field("item", pa.string(), nullable=False))
TYPES["floats"] = pa.list_(pa.field("item", pa.float64(), nullable=False))
ROWS, RESPONSE, WEIGHT, COVARIATES = "rows", "y", "weight", "covariates"
SAMPLE_IDS, ROW_IDS, ROW_WEIGHT = "sample_ids", "row_ids", "row_weight"
CARRIED = {SAMPLE_IDS: "string", ROW_IDS: "strings", ROW_WEIGHT: "floats"}  # by `RaggedRows`
STANDARD = (ROWS, RESPONSE, WEIGHT, COVARIATES, *CARRIED)  # all other columns are payload
_LISTS = "fixed_size_list"
_FLOATS = {pa.float16(): "float16", pa.float32(): "float32", pa.float64(): "float64"}
_BITS, _BFLOAT16 = pa.uint16(), {"row_type": "bfloat16"}  # a type that Arrow does not have
_NAMES = ("feature_names", "covariate_names", "response_names")  # keys of the schema's metadata
_PAGE = 4096
_REMEDY = "restore it, or write the store again."


class StoreError(ValueError):
    """A row store cannot be written or read; the message names the sample or the shard."""


@dataclass(frozen=True)
class ShardInfo:
    """What the manifest says about a shard.

    Attributes
    ----------
    file, bytes
        Name and size of the file.
    sha256, columns_sha256
        Checksums of the whole file and of the file without its row values, so that responses can
        be verified without reading rows.
    values
        Where the row values begin and end in the file.
    n_samples, n_rows, shortest, shortest_sample, longest
        Counts; fewest rows per sample, index in the shard of the first such sample; most rows.
    weight_sum, y_min, y_max, y_sum, y_squares
        Statistics of weights and of numeric responses.
    """

    file: str
    bytes: int
    sha256: str
    columns_sha256: str
    values: tuple[int, int]
    n_samples: int
    n_rows: int
    shortest: int
    shortest_sample: int
    longest: int
    weight_sum: float | None = None
    y_min: float | None = None
    y_max: float | None = None
    y_sum: float | None = None
    y_squares: float | None = None


@dataclass(frozen=True)
class Layout:
    """What all shards of a store have in common; `columns` maps names to keys of `TYPES`.

    Responses of several numbers have `response_names`.
    """

    n_features: int
    dtype: str
    columns: dict[str, str]
    n_covariates: int
    feature_names: tuple[str, ...] | None = None
    covariate_names: tuple[str, ...] | None = None
    response_names: tuple[str, ...] | None = None

    def __str__(self) -> str:
        columns = ", ".join(f"{name} ({kind})" for name, kind in self.columns.items())
        return f"{self.dtype} rows, {self.n_covariates} covariates and columns [{columns}]"

    @property
    def row_bytes(self) -> int:
        """Bytes per row."""
        return self.n_features * disk_dtype(self.dtype).itemsize

    @property
    def widening(self) -> int:
        """How many times as large rows are in memory as on disk: 2 for half precision."""
        return memory_dtype(self.dtype).itemsize // disk_dtype(self.dtype).itemsize

    @property
    def widths(self) -> dict[str, int]:
        """How many numbers the columns hold that have several per sample."""
        widths = {COVARIATES: self.n_covariates} if COVARIATES in self.columns else {}
        return widths | ({} if self.response_names is None else {RESPONSE: self.n_responses})

    @property
    def n_responses(self) -> int:
        """Numbers per response."""
        return 1 if self.response_names is None else len(self.response_names)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of a shard; rows come last, so that the small columns are adjacent."""
        types = {name: TYPES[kind] for name, kind in self.columns.items()}
        for name, width in self.widths.items():
            types[name] = _lists(types[name], width)
        values = pa.from_numpy_dtype(disk_dtype(self.dtype))
        types[ROWS] = pa.large_list(_lists(values, self.n_features))
        fields = [pa.field(name, kind, nullable=False) for name, kind in types.items()]
        named = {key: getattr(self, key) for key in _NAMES if getattr(self, key) is not None}
        said = {key: json.dumps(names) for key, names in named.items()}
        return pa.schema(fields, said | (_BFLOAT16 if self.dtype == "bfloat16" else {}) or None)

    @classmethod
    def from_schema(cls, schema: pa.Schema) -> Layout:
        """Read a schema back; raise StoreError if it is not the schema of a shard."""
        names = schema.names
        if ROWS not in names or len(set(names)) < len(names):
            raise StoreError(f"its columns are {names}, among them must be {ROWS!r} once")
        types = dict(zip(names, schema.types, strict=True))
        rows = types.pop(ROWS)
        if not pa.types.is_large_list(rows) or not _is_matrix(rows.value_type, *_FLOATS, _BITS):
            raise StoreError(f"its column {ROWS!r} is {rows}, not large_list<{_LISTS}<float, d>>")
        columns, widths = {}, {COVARIATES: 0, RESPONSE: 1}
        several = {COVARIATES} | ({RESPONSE} if _names(schema, _NAMES[2]) is not None else set())
        for name, found in types.items():
            if name in several:
                if not _is_matrix(found):
                    raise StoreError(f"its column {name!r} is {found}, not {_LISTS}<double, q>")
                found, widths[name] = found.value_type, found.list_size
            kind = next((kind for kind, arrow in TYPES.items() if arrow == found), None)
            expected = "float64" if name in {WEIGHT, *several} else CARRIED.get(name)
            wrong = kind != expected if expected else kind in ("strings", "floats")
            if kind is None or wrong:
                raise StoreError(f"its column {name!r} has type {found}, which no store holds")
            columns[name] = kind
        inner = rows.value_type
        kind, named = _row_kind(schema, inner.value_type), (_names(schema, key) for key in _NAMES)
        layout = cls(inner.list_size, kind, columns, widths[COVARIATES], *named)
        if layout.n_responses != widths[RESPONSE] or several - {COVARIATES} - set(columns):
            raise StoreError(f"its responses are not the {layout.n_responses} that it names")
        return layout

    def batch(self, values: np.ndarray, offsets: np.ndarray, columns: dict) -> pa.RecordBatch:
        """Return one record batch; row values are not copied, several numbers are flat."""
        schema = self.schema
        arrays = {name: pa.array(columns[name], TYPES[k]) for name, k in self.columns.items()}
        for name in self.widths:
            kind = schema.field(name).type
            arrays[name] = pa.FixedSizeListArray.from_arrays(arrays[name], type=kind)
        kind = schema.field(ROWS).type
        rows = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), type=kind.value_type)
        arrays[ROWS] = pa.LargeListArray.from_arrays(offsets, rows, type=kind)
        return pa.RecordBatch.from_arrays(list(arrays.values()), schema=schema)


class Shard:
    """A shard's file mapped into memory; it is unmapped with the last array that uses it.

    Its `stamp`, which is inode, time of change and size, shows whether it is the file that was
    verified.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                if status.st_size == 0:
                    raise StoreError(f"{self} is an empty file: {_REMEDY}")
                self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise StoreError(f"shard {path.name} is missing in {path.parent}: {_REMEDY}") from None
        self.stamp = (status.st_ino, status.st_mtime_ns, status.st_size)

    def __str__(self) -> str:
        return f"shard {self.path.name} in {self.path.parent}"

    # ------------------------------------------------------------------ content

    @cached_property
    def batch(self) -> pa.RecordBatch:
        """The record batch, on the mapped memory."""
        try:
            reader = pa.ipc.open_file(pa.py_buffer(self.memory))
            count = reader.num_record_batches
            batch = reader.get_batch(0) if count == 1 else None
        except (pa.ArrowException, OSError) as error:
            what = "is not a readable Arrow file, but truncated, damaged or foreign"
            raise StoreError(f"{self} {what}: {_REMEDY}") from error
        if batch is None:
            raise StoreError(f"{self} has {count} record batches, a shard has one: {_REMEDY}")
        return batch

    @property
    def flat(self) -> pa.Array:
        """The values of all rows, flat."""
        return self.batch.column(ROWS).values.values

    def offsets(self) -> np.ndarray:
        """Return where samples begin and end, on the mapped memory."""
        return self.batch.column(ROWS).offsets.to_numpy(zero_copy_only=True)

    def rows(self) -> RaggedRows:
        """Return the samples with their names, on the mapped memory; half precision is widened."""
        width = self.batch.column(ROWS).type.value_type.list_size
        stored = self.flat.to_numpy(zero_copy_only=True)
        values = widened(stored)
        if values is not stored and hasattr(mmap, "MADV_DONTNEED"):
            self.memory.madvise(mmap.MADV_DONTNEED)  # rows were copied: their pages may go
        schema = self.batch.schema
        row_ids = self.batch.column(ROW_IDS).flatten() if ROW_IDS in schema.names else None
        names, ids = _names(schema, _NAMES[0]), self.column(SAMPLE_IDS)
        given = (names, ids, row_ids, self.row_weight())
        return RaggedRows(values.reshape(-1, width), self.offsets(), *given)

    def row_weight(self) -> np.ndarray | None:
        """Return the weights of all rows, (n_rows,), or None if they have none."""
        if ROW_WEIGHT not in self.batch.schema.names:
            return None
        return self.batch.column(ROW_WEIGHT).flatten().to_numpy(zero_copy_only=True)

    def column(self, name: str) -> np.ndarray | None:
        """Return one value or one vector per sample, or None if there are none."""
        if name not in self.batch.schema.names:
            return None
        column = self.batch.column(name)
        if pa.types.is_fixed_size_list(column.type):
            return column.values.to_numpy(zero_copy_only=True).reshape(len(column), -1)
        if pa.types.is_string(column.type):
            return np.array(column.to_pylist(), dtype=str)
        return column.to_numpy(zero_copy_only=False)

    def read_ahead(self) -> None:
        """Bring all pages into memory."""
        if hasattr(mmap, "MADV_WILLNEED"):
            self.memory.madvise(mmap.MADV_WILLNEED)
        # Touching one byte per page waits for the disk here, outside the interpreter's lock, and
        # not in the thread that computes.
        np.frombuffer(self.memory, np.uint8)[::_PAGE].max()

    # ------------------------------------------------------------------ verification

    def sha256(self, without: tuple[int, int] | None = None) -> str:
        """Return the checksum of all bytes, or of all bytes outside an interval."""
        if without is None:
            return hashlib.sha256(self.memory).hexdigest()
        content = memoryview(self.memory)
        digest = hashlib.sha256(content[: without[0]])
        digest.update(content[without[1] :])
        return digest.hexdigest()

    def verify(self, info: ShardInfo, layout: Layout, *, rows: bool) -> None:
        """Check size, checksum and layout; without `rows`, the row values are not read."""
        self.check_size(info, layout)
        found = self.sha256() if rows else self.sha256(without=info.values)
        self.check_layout(layout)  # first: a shard of another store is called foreign
        if found != (info.sha256 if rows else info.columns_sha256):
            raise StoreError(f"{self} is damaged: its checksum does not match; {_REMEDY}")

    def check_size(self, info: ShardInfo, layout: Layout) -> None:
        """Refuse a truncated or exchanged file by its size."""
        found = len(self.memory)
        if found == info.bytes:
            return
        begins, ends = self.memory[:6] == b"ARROW1", self.memory[-6:] == b"ARROW1"
        if found < info.bytes and begins and not ends:
            raise StoreError(
                f"{self} is truncated: it has {found} of {info.bytes} bytes; {_REMEDY}"
            )
        self.check_layout(layout)
        raise StoreError(f"{self} was exchanged: {found} bytes instead of {info.bytes}; {_REMEDY}")

    def check_layout(self, layout: Layout | None) -> Layout:
        """Return the layout; refuse a shard without samples or with another layout than this."""
        try:
            found = Layout.from_schema(self.batch.schema)
        except StoreError as error:
            raise StoreError(f"{self} is foreign: {error}.") from None
        if layout is not None and found.n_features != layout.n_features:
            raise StoreError(
                f"{self} has {found.n_features} features, the store has {layout.n_features}: all "
                "shards need the same number of features."
            )
        if layout not in (None, found):
            raise StoreError(f"{self} is foreign: it holds {found}, the store {layout}.")
        if len(self.batch) == 0:
            raise StoreError(f"{self} holds no sample: delete it, or write the store again.")
        return found


def _is_matrix(kind: pa.DataType, *allowed: pa.DataType) -> bool:
    entries = allowed or tuple(_FLOATS)
    return pa.types.is_fixed_size_list(kind) and kind.value_type in entries and kind.list_size > 0


def _row_kind(schema: pa.Schema, values: pa.DataType) -> str:
    """Return the type of rows; 16 bits are numbers only if the shard says which."""
    if values != _BITS:
        return _FLOATS[values]
    ((key, name),) = _BFLOAT16.items()
    if (schema.metadata or {}).get(key.encode()) != name.encode():
        raise StoreError(f"its column {ROWS!r} holds {values}, which are not said to be {name}")
    return name


def _names(schema: pa.Schema, key: str) -> tuple[str, ...] | None:
    """Return names of features or covariates; None if the shard has none."""
    stored = (schema.metadata or {}).get(key.encode())
    if stored is None:
        return None
    try:
        return checked(json.loads(stored), key)
    except ValueError as error:
        raise StoreError(f"its {key} cannot be read ({error})") from None


def _lists(kind: pa.DataType, width: int) -> pa.DataType:
    return pa.list_(pa.field("item", kind, nullable=False), width)
