"""A sparse matrix of an ``.h5ad`` file, of which blocks of rows are read."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

__all__ = ["StoredCsr"]


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
