"""Groups of an ``.h5ad`` file that are read in parts: blocks of a matrix, columns of obs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_matrix

BLOCK = 2**17  # names that are Python objects at the same time


class StoredCsr:
    """Compressed rows in a group of an HDF5 file: ``data``, ``indices`` and ``indptr``."""

    def __init__(self, group: Any) -> None:
        kind = group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "csr_matrix"))
        if not str(kind).startswith("csr"):
            raise ValueError(
                f"{group.file.filename}: {group.name} is stored by columns ({kind}), so that cells "
                "cannot be read in blocks: write it by rows, adata.X = adata.X.tocsr()."
            )
        shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
        self.shape = int(shape[0]), int(shape[1])
        self.group, self.dtype = group, group["data"].dtype
        self._cuts = group["indptr"][:]

    @property
    def nbytes(self) -> int:
        """Bytes that the stored entries take in memory."""
        return sum(self.group[name].nbytes for name in ("data", "indices", "indptr"))

    def tocsr(self) -> csr_matrix:
        """Read the whole matrix."""
        return self[0 : self.shape[0]]

    def __getitem__(self, rows: slice) -> csr_matrix:
        cuts = self._cuts[rows.start : rows.stop + 1]
        place = slice(int(cuts[0]), int(cuts[-1]))
        parts = self.group["data"][place], self.group["indices"][place], cuts - cuts[0]
        return csr_matrix(parts, shape=(len(cuts) - 1, self.shape[1]))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("a matrix on disk is read in blocks of rows.")


class StoredObs:
    """Columns of the group ``obs``, which holds more of them than a fit needs."""

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
