"""Columns of a shard in Arrow, and back to NumPy without copying rows.

Rows are a ``large_list<fixed_size_list<float, d>>``: its int64 offsets and its flat values are
just the two arrays of `RaggedRows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from diagatt.ragged import RaggedRows
from diagatt.stores.manifest import Layout, StoreError

TYPES = {"float64": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(), "string": pa.string()}
DTYPES = {"float": "float32", "double": "float64"}  # as Arrow and as NumPy call them
ROWS, RESPONSE, WEIGHT, COVARIATES = "rows", "y", "weight", "covariates"
KNOWN = (ROWS, RESPONSE, WEIGHT, COVARIATES)
RESERVED = (*KNOWN, "X", "weights")  # names that payload cannot have


def schema_of(layout: Layout) -> pa.Schema:
    """Arrow schema of a shard; rows stand last, so that the small columns are side by side."""
    fields = [_field(name, _type_of(name, kind, layout)) for name, kind in layout.columns.items()]
    value = pa.float32() if layout.dtype == "float32" else pa.float64()
    return pa.schema([*fields, _field(ROWS, pa.large_list(_lists(value, layout.n_features)))])


def layout_of(schema: pa.Schema) -> Layout:
    """Read a schema back; StoreError if it is not one of a shard."""
    names = schema.names
    if ROWS not in names or len(set(names)) < len(names):
        raise StoreError(f"its columns are {names}, among them must be {ROWS!r} once")
    rows = schema.field(ROWS).type
    if not _holds_rows(rows):
        raise StoreError(
            f"its column {ROWS!r} is {rows}, not large_list<fixed_size_list<float, d>>"
        )
    columns, width = {}, 0
    for name in names:
        kind = schema.field(name).type
        if name == COVARIATES:
            if not pa.types.is_fixed_size_list(kind):
                raise StoreError(f"its column {name!r} is {kind}, not fixed_size_list<double, q>")
            kind, width = kind.value_type, kind.list_size
        if name != ROWS:
            columns[name] = _kind_of(name, kind)
    inner = rows.value_type
    return Layout(inner.list_size, DTYPES[str(inner.value_type)], columns, width)


def as_batch(
    layout: Layout, values: np.ndarray, offsets: np.ndarray, columns: Mapping[str, Any]
) -> pa.RecordBatch:
    """One record batch on these arrays; row values are not copied."""
    schema = schema_of(layout)
    arrays = []
    for name, kind in layout.columns.items():
        if name == COVARIATES:
            flat = np.asarray(columns[name], dtype=np.float64).reshape(-1)
            arrays.append(_fixed(pa.array(flat), schema.field(name).type))
        else:
            arrays.append(pa.array(columns[name], TYPES[kind]))
    rows = schema.field(ROWS).type
    inner = _fixed(pa.array(values.reshape(-1)), rows.value_type)
    packed = pa.Array.from_buffers(
        rows, len(offsets) - 1, [None, pa.py_buffer(offsets)], null_count=0, children=[inner]
    )
    return pa.RecordBatch.from_arrays([*arrays, packed], schema=schema)


def row_values(batch: pa.RecordBatch) -> pa.Array:
    """All numbers of all rows, flat."""
    return batch.column(ROWS).values.values


def rows_of(batch: pa.RecordBatch) -> RaggedRows:
    """Samples of a batch, on its memory."""
    flat = row_values(batch).to_numpy(zero_copy_only=True)
    width = batch.column(ROWS).type.value_type.list_size
    return RaggedRows(flat.reshape(-1, width), offsets_of(batch))


def offsets_of(batch: pa.RecordBatch) -> np.ndarray:
    """Where samples begin and end, on the memory of the batch."""
    return batch.column(ROWS).offsets.to_numpy(zero_copy_only=True)


def column_of(batch: pa.RecordBatch, name: str) -> np.ndarray | None:
    """One value (or one line of covariates) a sample; None if there is no such column."""
    if name not in batch.schema.names:
        return None
    column = batch.column(name)
    if pa.types.is_fixed_size_list(column.type):
        return column.values.to_numpy(zero_copy_only=True).reshape(len(column), -1)
    if pa.types.is_string(column.type):
        return np.array(column.to_pylist(), dtype=str)
    return column.to_numpy(zero_copy_only=False)


def _holds_rows(kind: pa.DataType) -> bool:
    if not pa.types.is_large_list(kind) or not pa.types.is_fixed_size_list(kind.value_type):
        return False
    return str(kind.value_type.value_type) in DTYPES and kind.value_type.list_size > 0


def _type_of(name: str, kind: str, layout: Layout) -> pa.DataType:
    return _lists(TYPES[kind], layout.n_covariates) if name == COVARIATES else TYPES[kind]


def _kind_of(name: str, kind: pa.DataType) -> str:
    for known, arrow in TYPES.items():
        if kind == arrow and (name not in (WEIGHT, COVARIATES) or known == "float64"):
            return known
    raise StoreError(f"its column {name!r} has type {kind}, which a store does not hold")


def _field(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def _lists(kind: pa.DataType, width: int) -> pa.DataType:
    return pa.list_(pa.field("item", kind, nullable=False), width)


def _fixed(flat: pa.Array, kind: pa.DataType) -> pa.Array:
    length = len(flat) // kind.list_size
    return pa.Array.from_buffers(kind, length, [None], null_count=0, children=[flat])
