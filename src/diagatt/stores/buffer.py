"""The shard that is being filled, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from diagatt.coerce import offsets_from
from diagatt.stores.layout import as_batch
from diagatt.stores.manifest import Layout


class ShardBuffer:
    """Samples up to a number of bytes; one larger sample may stand alone.

    Parameters
    ----------
    layout : Layout
    limit : int
        Bytes of a shard.
    """

    def __init__(self, layout: Layout, limit: int) -> None:
        self.layout = layout
        self.limit = limit
        capacity = limit // (layout.n_features * np.dtype(layout.dtype).itemsize)
        self._values = np.empty((capacity, layout.n_features), layout.dtype)  # touched as filled
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        self._filled = self._values[:0]
        self._lengths: list[int] = []
        self._columns: dict[str, list] = {name: [] for name in self.layout.columns}
        self._bytes = 0

    def room(self, ends: np.ndarray, start: int) -> int:
        """How many samples still fit that end at these bytes, the first beginning at `start`."""
        free = self.limit - self._bytes
        fitting = int(np.searchsorted(ends, start + free, side="right"))
        return max(fitting, 0 if self._lengths else 1)

    def put(
        self, values: np.ndarray, lengths: Sequence[int], columns: Mapping[str, Any], size: int
    ) -> None:
        """Take samples in for which there is room."""
        start = len(self._filled)
        if start + len(values) > len(self._values):  # one large sample, alone
            self._filled = values.copy()  # the caller may change its own
        else:
            self._values[start : start + len(values)] = values
            self._filled = self._values[: start + len(values)]
        self._lengths.extend(lengths)
        for name, items in columns.items():
            self._columns[name].extend(items)
        self._bytes += size

    def batch(self) -> pa.RecordBatch:
        """The samples as one record batch, on the memory of this buffer."""
        offsets = offsets_from(self._lengths)
        return as_batch(self.layout, self._filled, offsets, self._columns)


def sample_sizes(layout: Layout, lengths: np.ndarray, columns: Mapping[str, Any]) -> np.ndarray:
    """Bytes that each sample takes in a shard."""
    row = layout.n_features * np.dtype(layout.dtype).itemsize
    fixed = sum(8 for kind in layout.columns.values() if kind != "string")
    sizes = lengths * row + 8 + fixed + 8 * layout.n_covariates
    for name, kind in layout.columns.items():
        if kind == "string":
            sizes = sizes + [4 + len(text.encode()) for text in columns[name]]
    return sizes
