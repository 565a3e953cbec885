"""Parts of a store: samples with what belongs to them, and reading the next parts ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from diagatt.ragged import RaggedRows
from diagatt.stores.shard import COVARIATES, RESPONSE, SAMPLE_IDS, WEIGHT

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class StoredPart:
    """The samples of one shard, on the mapped file, or copies of samples of several shards.

    Attributes
    ----------
    shard : int
        Index of the shard, -1 for copied samples.
    start : int
        Index of its first sample in the store.
    X : RaggedRows
    y : array of shape (n,), or None
        Several outcomes have shape (n, q); times to an event are a structured array.
    weights : array of shape (n,), or None
    covariates : array of shape (n, q), or None
    columns : mapping
        Payload by name.
    covariate_names, response_names : tuple of str, or None
    """

    shard: int
    start: int
    X: RaggedRows
    y: np.ndarray | None
    weights: np.ndarray | None
    covariates: np.ndarray | None
    columns: Mapping[str, Any] = field(repr=False)
    covariate_names: tuple[str, ...] | None = None
    response_names: tuple[str, ...] | None = None

    @property
    def named_y(self) -> Any:
        """Responses; several outcomes as a table with their names."""
        if self.y is None or self.y.ndim == 1 or self.response_names is None:
            return self.y
        return pa.table(dict(zip(self.response_names, self.y.T, strict=True)))

    @property
    def named_covariates(self) -> Any:
        """Covariates as a table with names if the store has any; else as they are."""
        if self.covariates is None or self.covariate_names is None:
            return self.covariates
        return pa.table(dict(zip(self.covariate_names, self.covariates.T, strict=True)))

    def __len__(self) -> int:
        return len(self.X)

    def payload(self, name: str) -> list:
        """Return what was kept with the samples under this name."""
        if name not in self.columns:
            raise KeyError(f"no payload {name!r} in this store; it has {list(self.columns)}.")
        column = self.columns[name]
        return column.to_pylist() if hasattr(column, "to_pylist") else list(column)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything that samples have besides their rows, by the names of the columns."""
        columns = {RESPONSE: self.y, WEIGHT: self.weights, COVARIATES: self.covariates}
        columns[SAMPLE_IDS] = self.X.sample_ids
        columns |= {name: np.array(self.payload(name), dtype=object) for name in self.columns}
        return {name: column for name, column in columns.items() if column is not None}


def read_ahead(load: Callable[[int], T], order: Sequence[int], ahead: int) -> Iterator[T]:
    """Yield ``load(k)`` for k in order, while a thread loads the next `ahead` of them.

    Nothing that was yielded is kept. An error of the thread is raised here. Closing the generator
    ends the thread.
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
