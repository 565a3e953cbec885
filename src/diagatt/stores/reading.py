"""Samples in memory and in stores, read alike: memory is a store of one part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from diagatt.ragged import RaggedRows
from diagatt.stores.store import RowStore


def opened(X: Any) -> RaggedRows | RowStore:
    """Return samples in memory as RaggedRows, and those on disk as they are."""
    return X if isinstance(X, RowStore) else RaggedRows.coerce(X)


def row_parts(X: RaggedRows | RowStore) -> Iterator[RaggedRows]:
    """Yield the samples part by part, in order."""
    if isinstance(X, RowStore):
        yield from (part.X for part in X.parts())
    else:
        yield X


def row_lengths(X: RaggedRows | RowStore) -> np.ndarray:
    """Return the count of rows of each sample, (n,)."""
    return X.lengths() if isinstance(X, RowStore) else X.lengths


def row_ids(X: RaggedRows | RowStore) -> np.ndarray | None:
    """Return the ids of all rows, (N,), if rows have any."""
    if not isinstance(X, RowStore):
        return X.row_ids
    return np.concatenate([part.row_ids for part in row_parts(X)]) if X.has_row_ids else None
