"""A store as a sequence of samples: columns, indexing, copies out of several shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from diagatt.coerce import offsets_from
from diagatt.ragged import RaggedRows
from diagatt.stores.access import ShardFiles
from diagatt.stores.layout import COVARIATES, RESPONSE, WEIGHT, column_of, offsets_of
from diagatt.stores.parts import StoredPart
from diagatt.stores.shards import batch_of

if TYPE_CHECKING:
    from diagatt.stores.reading import RowStore


class StoredSamples:
    """Methods of `RowStore` for samples, whatever shard they are in."""

    n_samples: int
    shards: tuple
    _files: ShardFiles

    @property
    def shape(self) -> tuple[int]:
        """(n_samples,), as of RaggedRows."""
        return (self.n_samples,)

    def __len__(self) -> int:
        return self.n_samples

    def responses(self) -> np.ndarray | None:
        """All responses, read without the rows; None if there are none."""
        return self._column(RESPONSE)

    def weights(self) -> np.ndarray | None:
        """All weights, read without the rows; None if there are none."""
        return self._column(WEIGHT)

    def covariates(self) -> np.ndarray | None:
        """All covariates (n, q), read without the rows; None if there are none."""
        return self._column(COVARIATES)

    def lengths(self) -> np.ndarray:
        """Number of rows of every sample, read without the rows."""
        return np.concatenate([np.diff(offsets_of(batch)) for batch in self._batches()])

    def take(self, samples: Any) -> StoredPart:
        """Copy samples into memory, in any order, from the shards that hold them."""
        return take_samples(cast("RowStore", self), sample_numbers(samples, self.n_samples))

    def to_rows(self) -> RaggedRows:
        """All rows, in memory."""
        return self.take(slice(None)).X

    def __getitem__(self, key: Any) -> Any:
        """Return one sample for an int, RaggedRows in memory for a slice, index array or mask."""
        if isinstance(key, tuple):  # scikit-learn indexes samples as X[key, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("RowStore has one axis, its samples: use store[i] or store[i][j].")
            key = key[0]
        if isinstance(key, int | np.integer):
            return self.take([key]).X[0]
        return self.take(key).X

    def __iter__(self) -> Iterator[np.ndarray]:
        for part in cast("RowStore", self).parts():
            for sample in part.X:
                yield np.array(sample)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("RowStore is not one array: use .parts(), or .to_rows() if memory allows.")

    def _column(self, name: str) -> np.ndarray | None:
        if name not in self._files.manifest.layout.columns:
            return None
        # copied shard by shard, so that no shard stays mapped
        return np.concatenate([np.array(column_of(batch, name)) for batch in self._batches()])

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """All shards, for their columns and not for their rows."""
        for k in range(len(self.shards)):
            yield batch_of(self._files.mapped(k, rows=False))


def sample_numbers(key: Any, count: int) -> np.ndarray:
    """Sample numbers of a slice, an index array or a mask."""
    if not isinstance(key, slice):
        key = np.asarray(key)
        if key.dtype.kind not in "iub" or (key.dtype == bool and key.shape != (count,)):
            raise IndexError(f"samples must be whole numbers or a mask of length {count}.")
        if key.dtype != bool and key.size and not (-count <= key.min() and key.max() < count):
            wrong = key.min() if key.min() < -count else key.max()
            raise IndexError(f"sample {wrong} does not exist: there are {count} samples.")
    chosen = np.arange(count)[key]
    if chosen.ndim != 1 or len(chosen) == 0:
        raise IndexError("the index holds no sample, or is not one-dimensional.")
    return chosen


def take_samples(store: RowStore, samples: np.ndarray) -> StoredPart:
    """Copy these samples in this order."""
    shard = np.searchsorted(store.starts, samples, side="right") - 1
    needed = np.unique(shard).tolist()
    local = samples - store.starts[shard]
    lengths = np.empty(len(samples), np.int64)
    for k in needed:  # lengths first, so that every row is copied once, to where it stays
        lengths[shard == k] = store.select([k]).lengths()[local[shard == k]]
    offsets = offsets_from(lengths)
    values = np.empty((offsets[-1], store.n_features), store.dtype)
    pieces: dict[str, list[np.ndarray]] = {}
    for k in needed:
        part, places = store.part(k), np.flatnonzero(shard == k)
        chosen = local[places]
        to = _positions(offsets[places], lengths[places])
        values[to] = part.X.values[_positions(part.X.offsets[chosen], lengths[places])]
        for name, column in _columns(part).items():
            pieces.setdefault(name, []).append(column[chosen])
    order = np.argsort(np.argsort(shard, kind="stable"))  # from shard by shard to as asked
    columns = {name: np.concatenate(found)[order] for name, found in pieces.items()}
    return StoredPart(
        shard=-1,
        start=0,
        X=RaggedRows(values, offsets),
        y=columns.pop(RESPONSE, None),
        weights=columns.pop(WEIGHT, None),
        covariates=columns.pop(COVARIATES, None),
        columns=columns,
    )


def _columns(part: StoredPart) -> dict[str, np.ndarray]:
    known = {RESPONSE: part.y, WEIGHT: part.weights, COVARIATES: part.covariates}
    payload = {name: np.array(part.payload(name), dtype=object) for name in part.columns}
    return {**{name: column for name, column in known.items() if column is not None}, **payload}


def _positions(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Packed positions of the rows of samples that begin at `starts`."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])
