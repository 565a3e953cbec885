"""What the manifest says of a shard: checksums and statistics."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from diagatt.stores.layout import RESPONSE, WEIGHT, column_of, row_values, rows_of
from diagatt.stores.manifest import ShardInfo, StoreError
from diagatt.stores.shards import FileMapping


def shard_info(mapping: FileMapping, batch: pa.RecordBatch) -> ShardInfo:
    """Measure a shard whose layout is checked."""
    flat = row_values(batch)
    start = flat.buffers()[1].address - pa.py_buffer(mapping.memory).address
    values = (start, start + flat.nbytes)
    if start < 0 or values[1] > len(mapping.memory):
        raise StoreError(
            f"{mapping} is compressed: write it without compression, so that its rows can be used "
            "where they stand."
        )
    lengths = rows_of(batch).lengths
    weights = column_of(batch, WEIGHT)
    return ShardInfo(
        file=mapping.path.name,
        bytes=len(mapping.memory),
        sha256=mapping.sha256(),
        columns_sha256=mapping.sha256(without=values),
        values=values,
        n_samples=len(lengths),
        n_rows=int(lengths.sum()),
        shortest=int(lengths.min()),
        shortest_sample=int(lengths.argmin()),
        longest=int(lengths.max()),
        weight_sum=None if weights is None else _finite(weights.sum()),
        **_response_facts(column_of(batch, RESPONSE)),
    )


def _response_facts(y: np.ndarray | None) -> dict[str, float | None]:
    if y is None or y.dtype.kind not in "if":
        return {}
    numbers = y.astype(np.float64)
    with np.errstate(over="ignore"):
        total, squares = numbers.sum(), np.square(numbers).sum()
    return {
        "y_min": float(numbers.min()),
        "y_max": float(numbers.max()),
        "y_sum": _finite(total),
        "y_squares": _finite(squares),
    }


def _finite(number: np.floating) -> float | None:
    return float(number) if np.isfinite(number) else None  # JSON has no infinity
