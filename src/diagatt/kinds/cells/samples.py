"""Cells to samples: which cells belong together, and what is known about each sample."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt.coerce import offsets_from
from diagatt.kinds.cells.table import CellTable

PART = 2**26  # bytes of rows that are held while a store is written


@dataclass(frozen=True)
class CellSamples:
    """A `CellTable` whose cells are grouped into samples, in the order of first appearance.

    Attributes
    ----------
    table : CellTable
    cells : array of shape (n_cells,)
        Places of the cells in the table, sample after sample.
    offsets : array of shape (n_samples + 1,)
    ids : list of str
    y, weights : array of shape (n_samples,), or None
    covariates : pyarrow Table of n_samples lines, or None
    groups : array of shape (n_samples,), or None
    """

    table: CellTable
    cells: np.ndarray
    offsets: np.ndarray
    ids: list[str]
    y: np.ndarray | None = None
    weights: np.ndarray | None = None
    covariates: Any = None
    groups: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        table: CellTable,
        sample_key: str,
        *,
        target: str | None = None,
        covariates: Sequence[str] = (),
        groups: str | None = None,
        sample_weight: str | None = None,
    ) -> CellSamples:
        """Group cells by an annotation; others must be constant within each sample."""
        import pandas as pd

        if isinstance(covariates, str):
            covariates = [covariates]
        codes, found = pd.factorize(table.column(sample_key), use_na_sentinel=True)
        if len(codes) == 0:
            raise ValueError(f"{table.name} holds no cells.")
        if (codes < 0).any():
            cell = str(table.cells[int(np.argmax(codes < 0))])
            raise ValueError(
                f"cell {cell!r} of {table.name} has no {sample_key!r}: drop it or name its sample."
            )
        cells = np.argsort(codes, kind="stable")
        offsets = offsets_from(np.bincount(codes))
        made = cls(table, cells, offsets, [str(one) for one in found])

        def known(name: str | None) -> np.ndarray | None:
            return None if name is None else made._constant(name)

        Z = None
        if len(covariates):
            import pyarrow as pa

            Z = pa.table({name: made._numbers(name) for name in covariates})
        y, w, g = known(target), known(sample_weight), known(groups)
        return cls(table, cells, offsets, made.ids, y, w, Z, g)

    def __len__(self) -> int:
        return len(self.ids)

    def _constant(self, name: str) -> np.ndarray:
        """Return an annotation that all cells of a sample share, (n_samples,)."""
        column = self.table.column(name)
        values, first = np.asarray(column)[self.cells], self.offsets[:-1]
        missing = np.asarray(column.isna())[self.cells]
        if missing.any():
            i = self._sample_at(int(np.argmax(missing)))
            raise ValueError(
                f"sample {self.ids[i]!r} has cells without {name!r}: drop the cells or fill it in."
            )
        own = values[np.repeat(first, np.diff(self.offsets))]
        wrong = values != own
        if wrong.any():
            at = int(np.argmax(wrong))
            cell = str(self.table.cells[int(self.cells[at])])
            raise ValueError(
                f"sample {self.ids[self._sample_at(at)]!r} has several values of {name!r}: "
                f"{own[at]} first, and {values[at]} for cell {cell!r}. It must be the same for all "
                "cells of a sample."
            )
        found = values[first]
        return found.astype(str) if found.dtype == object else found

    def _numbers(self, name: str) -> np.ndarray:
        values = self._constant(name)
        if values.dtype.kind not in "iufb":
            raise ValueError(
                f"covariate {name!r} holds words such as {str(values[0])!r}: give numbers, for "
                "example one column of 0 and 1 per category."
            )
        return values.astype(np.float64)

    def _sample_at(self, place: int) -> int:
        return int(np.searchsorted(self.offsets, place, side="right")) - 1

    def rows(self, sparse: bool = False) -> Any:
        """Return the samples in memory, as RaggedRows with all names; sparse ones if asked."""
        return self._part(0, len(self), sparse)

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Yield samples in order, as many at a time as fit into `PART` bytes."""
        per_row = self.table.shape[1] * self.table.dtype.itemsize
        start = 0
        while start < len(self):
            last = self.offsets[start] + PART // per_row
            stop = max(start + 1, int(np.searchsorted(self.offsets, last, side="right")) - 1)
            yield slice(start, stop), self._part(start, stop)
            start = stop

    def _part(self, start: int, stop: int, sparse: bool = False) -> Any:
        from diagatt.ragged import RaggedRows

        cuts = self.offsets[start : stop + 1]
        cells = self.cells[cuts[0] : cuts[-1]]
        own = self.table.cells
        names = own.take(cells) if hasattr(own, "to_pylist") else own[cells]
        values: Any = self.table.sparse_rows(cells) if sparse else self.table.rows(cells)
        ids = self.ids[start:stop]
        return RaggedRows(values, cuts - cuts[0], self.table.feature_names, ids, names)

    def to_store(self, path: str | os.PathLike, memory: float = 1024, **options: Any) -> Any:
        """Write the samples to a `RowStore`, a part at a time, and open it.

        Parameters
        ----------
        path : path-like
        memory : float
            MiB that readers of the store may use.
        **options : see `RowStoreWriter`
        """
        from diagatt.stores import RowStore, RowStoreWriter

        columns = {"y": self.y, "weights": self.weights}
        with RowStoreWriter(path, **{"dtype": self.table.dtype, **options}) as writer:
            for chosen, rows in self.parts():
                own = {k: v[chosen] for k, v in columns.items() if v is not None}
                if self.covariates is not None:
                    count = chosen.stop - chosen.start
                    own["covariates"] = self.covariates.slice(chosen.start, count)
                writer.extend(rows, **own)
                # Otherwise two parts would be in memory while the next one is read.
                del rows, own
        return RowStore(path, memory=memory)
