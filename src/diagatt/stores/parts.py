"""Samples of a store in memory, and shards read ahead of their use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from diagatt.ragged import RaggedRows
from diagatt.stores.layout import COVARIATES, KNOWN, RESPONSE, WEIGHT, column_of, rows_of
from diagatt.stores.shards import FileMapping, batch_of

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class StoredPart:
    """Samples of one shard, on the mapped file, or samples that were copied out of several.

    Attributes
    ----------
    shard : int
        Number of the shard, -1 for samples from several.
    start : int
        Number of its first sample in the store.
    X : RaggedRows
    y, weights : array of shape (n,), or None
    covariates : array of shape (n, q), or None
    """

    shard: int
    start: int
    X: RaggedRows
    y: np.ndarray | None
    weights: np.ndarray | None
    covariates: np.ndarray | None
    columns: Mapping[str, Any] = field(repr=False)

    def __len__(self) -> int:
        return len(self.X)

    def payload(self, name: str) -> list:
        """What was kept with the samples under this name."""
        if name not in self.columns:
            raise KeyError(f"no payload {name!r} in this store; it has {list(self.columns)}.")
        column = self.columns[name]
        return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def part_of(mapping: FileMapping, shard: int, start: int) -> StoredPart:
    """Samples of a verified shard; nothing is copied."""
    batch = batch_of(mapping)
    return StoredPart(
        shard=shard,
        start=start,
        X=rows_of(batch),
        y=column_of(batch, RESPONSE),
        weights=column_of(batch, WEIGHT),
        covariates=column_of(batch, COVARIATES),
        columns={name: batch.column(name) for name in batch.schema.names if name not in KNOWN},
    )


def read_ahead(load: Callable[[int], T], order: Sequence[int], ahead: int) -> Iterator[T]:
    """Yield ``load(k)`` for k in order, `ahead` of them under way in a thread meanwhile.

    Nothing is kept of what was yielded; an error of the thread is raised here; closing the
    generator ends the thread.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="diagatt-read-ahead")
    waiting: deque[Future[T]] = deque()
    try:
        for k in order:
            waiting.append(pool.submit(load, k))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
