"""Cells as AnnData stores them: a table of cells, and one of its matrices, which may be on disk.

Matrices and columns of ``.h5ad`` files are read in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_matrix

from diagatt.kinds.hdf5 import open_hdf5

BLOCK = 2**24  # bytes of a matrix on disk that are read in one go
NAMES_AT_ONCE = 2**17  # names that are Python objects at the same time


@dataclass(frozen=True)
class CellTable:
    """Cells with their annotations and one matrix of features.

    Attributes
    ----------
    obs : mapping of columns: pandas DataFrame, or `StoredObs`
        One line per cell.
    cells : pandas Index, or pyarrow array of strings
        Names of the cells.
    matrix : array, sparse matrix, or either of them on disk; shape (n_cells, n_features)
    feature_names : tuple of str
    name : str
        Its name in error messages.
    """

    obs: Any
    cells: Any
    matrix: Any
    feature_names: tuple[str, ...]
    name: str = "adata"

    @classmethod
    def of(cls, adata: Any, layer: str | None = None, obsm: str | None = None) -> CellTable:
        """Take ``X``, a layer or an entry of obsm; that of a backed object stays on disk."""
        _one_of(layer, obsm)
        if not hasattr(adata, "obs_names"):
            raise TypeError(
                f"adata is a {type(adata).__name__}, {adata!r:.60}: pass an AnnData object, such "
                "as anndata.read_h5ad(path) returns."
            )
        if obsm is not None:
            matrix = _entry(adata.obsm, obsm, "obsm")
            return cls(adata.obs, adata.obs_names, *_named(matrix, obsm))
        matrix = adata.X if layer is None else _entry(adata.layers, layer, "layers")
        if matrix is None:
            raise ValueError("adata has no X: name a layer= or an obsm=.")
        if hasattr(matrix, "group"):  # a backed sparse matrix
            matrix = StoredCsr(matrix.group)
        return cls(adata.obs, adata.obs_names, matrix, tuple(map(str, adata.var_names)))

    @classmethod
    @contextmanager
    def opened(
        cls, path: Path, layer: str | None = None, obsm: str | None = None
    ) -> Iterator[CellTable]:
        """Open an ``.h5ad`` file; names of cells are read, matrix and annotations when needed."""
        _readers()  # anndata brings h5py: say so before h5py is missed
        _one_of(layer, obsm)
        with open_hdf5(path, "cells") as file:
            try:
                table = cls._of_file(file, path, layer, obsm)
            except (LookupError, TypeError, AttributeError, RuntimeError) as error:
                raise ValueError(
                    f"{path} is damaged, or not written by anndata: restore a copy of it."
                ) from error
            yield table

    @classmethod
    def _of_file(cls, file: Any, path: Path, layer: str | None, obsm: str | None) -> CellTable:
        h5py, read_elem = _readers()
        if "obs" not in file or not isinstance(file["obs"], h5py.Group):
            raise ValueError(
                f"{path} is not an h5ad file of anndata 0.7 or later: read it with "
                "anndata.read_h5ad and write it again."
            )
        key = "X" if layer is None and obsm is None else f"layers/{layer}" if layer else ""
        key = key or f"obsm/{obsm}"
        if key not in file:
            folder = key.split("/")[0]
            there = ", ".join(file[folder]) if "/" in key and folder in file else "none"
            raise ValueError(f"{path} has no {key}; there are: {there}.")
        found = file[key]
        obs = StoredObs(file["obs"], read_elem)
        if obsm is not None:
            values = read_elem(found) if isinstance(found, h5py.Group) else found
            return cls(obs, obs.cells(), *_named(values, obsm), str(path))
        matrix = StoredCsr(found) if isinstance(found, h5py.Group) else found
        names = tuple(map(str, read_elem(file["var"]).index))
        return cls(obs, obs.cells(), matrix, names, str(path))

    @property
    def shape(self) -> tuple[int, int]:
        """Count of cells and of features."""
        return len(self.cells), len(self.feature_names)

    @cached_property
    def is_on_disk(self) -> bool:
        """Whether the matrix is read in blocks."""
        home = type(self.matrix).__module__.split(".")[0]
        return home in ("h5py", "zarr") or isinstance(self.matrix, StoredCsr)

    @cached_property
    def dtype(self) -> np.dtype:
        """float64 if the matrix is of that type, else float32."""
        return np.dtype("float64" if self.matrix.dtype == np.float64 else "float32")

    @property
    def nbytes(self) -> int:
        """Bytes of all rows as a dense matrix."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @cached_property
    def entries(self) -> int | None:
        """Bytes of the stored entries of a sparse matrix; None if the matrix is dense."""
        if isinstance(self.matrix, StoredCsr):
            return self.matrix.nbytes
        return 8 * self.matrix.nnz if hasattr(self.matrix, "tocsr") else None

    def sparse_rows(self, cells: np.ndarray) -> Any:
        """Return the features of some cells as a CSR matrix."""
        return self.matrix.tocsr()[cells].astype(self.dtype, copy=False)

    def rows(self, cells: np.ndarray) -> np.ndarray:
        """Return the features of some cells, dense, (len(cells), n_features).

        What lies on disk is read in blocks, in the order of the file, between the first and the
        last of these cells.
        """
        if not self.is_on_disk:
            return _dense(_by_rows(self.matrix)[cells], self.dtype)
        found = np.empty((len(cells), self.shape[1]), self.dtype)
        order = np.argsort(cells, kind="stable")
        ascending = cells[order]
        step = max(1, BLOCK // (self.shape[1] * self.dtype.itemsize))
        start = 0
        while start < len(cells):
            first = int(ascending[start])
            stop = int(np.searchsorted(ascending, first + step))
            block = _dense(self.matrix[first : int(ascending[stop - 1]) + 1], self.dtype)
            found[order[start:stop]] = block[ascending[start:stop] - first]
            start = stop
        return found

    def column(self, name: str) -> Any:
        """Return an annotation of all cells, a pandas Series."""
        if name not in self.obs:
            raise ValueError(
                f"{self.name} has no obs column {name!r}; it has {', '.join(map(str, self.obs))}."
            )
        return self.obs[name]


def _one_of(layer: str | None, obsm: str | None) -> None:
    if layer is not None and obsm is not None:
        raise ValueError("give layer or obsm, not both: a row has one set of features.")


def _entry(mapping: Any, key: str, what: str) -> Any:
    if key not in mapping:
        raise ValueError(f"adata.{what} has no {key!r}; it has {', '.join(mapping) or 'none'}.")
    return mapping[key]


def _named(matrix: Any, key: str) -> tuple[Any, tuple[str, ...]]:
    """Return an entry of obsm and the names of its columns, as scanpy calls them: X_pca-0."""
    if hasattr(matrix, "columns"):
        return matrix.to_numpy(), tuple(map(str, matrix.columns))
    return matrix, tuple(f"{key}-{j}" for j in range(matrix.shape[1]))


def _by_rows(matrix: Any) -> Any:
    """Return a sparse matrix whose rows can be taken quickly; arrays as they are."""
    return matrix.tocsr() if hasattr(matrix, "tocsr") else np.asarray(matrix)


def _dense(block: Any, dtype: np.dtype) -> np.ndarray:
    block = block.toarray() if hasattr(block, "toarray") else block
    return np.asarray(block, dtype=dtype)


def _readers() -> Any:
    try:
        import h5py
        from anndata.io import read_elem
    except ImportError as error:
        raise ImportError(
            "reading .h5ad files needs anndata: pip install 'diagatt[cells]'."
        ) from error
    return h5py, read_elem


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
        if len(self._cuts) != self.shape[0] + 1:
            raise self._damaged()

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
        self._refuse_wrong_places(cuts, parts[1])
        return csr_matrix(parts, shape=(len(cuts) - 1, self.shape[1]))

    def _refuse_wrong_places(self, cuts: np.ndarray, columns: np.ndarray) -> None:
        """Refuse entries outside of the matrix: scipy would write them beyond its memory."""
        inside = len(columns) == 0 or (columns.min() >= 0 and columns.max() < self.shape[1])
        if not (inside and (np.diff(cuts) >= 0).all() and len(columns) == cuts[-1] - cuts[0]):
            raise self._damaged()

    def _damaged(self) -> ValueError:
        return ValueError(
            f"{self.group.file.filename} is damaged: entries of {self.group.name} lie outside of "
            "the matrix. Restore a copy of it."
        )

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
        starts = range(0, names.shape[0], NAMES_AT_ONCE)
        texts = names.asstr() if names.dtype.kind in "OS" else names
        blocks = (map(str, texts[i : i + NAMES_AT_ONCE].tolist()) for i in starts)
        arrays = [pa.array(list(block), pa.string()) for block in blocks]
        return pa.concat_arrays(arrays) if arrays else pa.array([], pa.string())
