"""Annotations of cells in an ``.h5ad`` file, of which single columns are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

__all__ = ["StoredObs"]

BLOCK = 2**17  # names that are Python objects at the same time


class StoredObs:
    """Columns of the group ``obs``; a file of millions of cells has more than a fit needs."""

    def __init__(self, group: Any, read: Callable[[Any], Any]) -> None:
        self._group, self._read = group, read
        self._index = group.attrs.get("_index", "_index")

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._group if name not in (self._index, "__categories"))

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __getitem__(self, name: str) -> Any:
        import pandas as pd

        return pd.Series(self._read(self._group[name]))

    def cells(self) -> pa.Array:
        """Return the names of all cells, a block of them as Python objects at a time."""
        names = self._group[self._index]
        if not hasattr(names, "shape"):  # an encoding of its own
            return pa.array([str(name) for name in self._read(names)])
        starts = range(0, names.shape[0], BLOCK)
        texts = names.asstr() if names.dtype.kind in "OS" else names
        blocks = (map(str, texts[i : i + BLOCK].tolist()) for i in starts)
        arrays = [pa.array(list(block), pa.string()) for block in blocks]
        return pa.concat_arrays(arrays) if arrays else pa.array([], pa.string())
