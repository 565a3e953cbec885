"""A store of samples on disk, read shard by shard."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from pathlib import Path

import numpy as np

from diagatt.stores.access import ShardFiles
from diagatt.stores.building import MEMORY
from diagatt.stores.layout import KNOWN, RESPONSE, WEIGHT
from diagatt.stores.manifest import ShardInfo, StoreError, read_manifest
from diagatt.stores.parts import StoredPart, part_of, read_ahead
from diagatt.stores.samples import StoredSamples
from diagatt.stores.tables import TableBuilders


class RowStore(StoredSamples, TableBuilders):
    """Samples in a folder of memory-mapped shards; only those in use are in memory.

    Opening checks the manifest and the sizes of all shards. When a shard is first read, its
    checksum and its columns are verified.

    Parameters
    ----------
    path : path-like
        A folder that `RowStoreWriter`, one of the builders or `index` made.
    memory : float
        MiB that those who read the store may use; two shards must fit.

    Attributes
    ----------
    n_samples, n_rows, n_features, n_covariates : int
    dtype : dtype
        Of the rows.
    has_response, has_weights : bool
    response_type : {"float64", "int64", "bool", "string"} or None
    payload_names : tuple of str
    shards : tuple of ShardInfo
    starts : array of shape (n_shards,)
        Number of the first sample of each shard.
    digest : str
        Identifies the data and how they are cut into shards.

    See Also
    --------
    RowStore.write, RowStore.from_rows, RowStore.from_frame, RowStore.from_arrow,
    RowStore.from_transformer, RowStore.index

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from diagatt.stores import RowStore
    >>> path = tempfile.mkdtemp() + "/store"
    >>> store = RowStore.write(path, ((np.full((p, 2), p), float(p)) for p in (1, 2, 3)))
    >>> store
    RowStore(n_samples=3, n_rows=6, n_features=2, dtype=float32, n_shards=1)
    >>> store[[2, 0]].lengths
    array([3, 1])
    >>> sum(float(part.X.values.sum()) for part in store.parts())
    28.0
    """

    def __init__(self, path: str | os.PathLike, *, memory: float = MEMORY) -> None:
        folder = Path(path)
        manifest = read_manifest(folder)
        files = ShardFiles(folder, manifest, {})
        files.check_sizes()
        largest = max(info.bytes for info in manifest.shards) / 2**20
        if 2 * largest > memory:
            raise StoreError(
                f"memory={memory:g} MiB is too little: the largest shard of {folder} has "
                f"{largest:.1f} MiB and two must fit. Allow {ceil(2 * largest)} MiB or more, or "
                "write the store again with a smaller shard_mib."
            )
        self._open(files, memory)

    def _open(self, files: ShardFiles, memory: float) -> None:
        self.path = files.folder
        self.memory = memory
        self._files = files
        layout = files.manifest.layout
        self.n_features = layout.n_features
        self.dtype = np.dtype(layout.dtype)
        self.n_covariates = layout.n_covariates
        self.response_type = layout.columns.get(RESPONSE)
        self.has_response = RESPONSE in layout.columns
        self.has_weights = WEIGHT in layout.columns
        self.payload_names = tuple(name for name in layout.columns if name not in KNOWN)
        self.shards: tuple[ShardInfo, ...] = files.manifest.shards
        counts = [info.n_samples for info in self.shards]
        self.n_samples = sum(counts)
        self.n_rows = sum(info.n_rows for info in self.shards)
        self.starts = np.concatenate([[0], np.cumsum(counts[:-1], dtype=np.int64)])

    # ------------------------------------------------------------------ facts

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest, which holds those of all shards."""
        return self._files.manifest.digest

    @property
    def nbytes(self) -> int:
        """Bytes of all shards."""
        return sum(info.bytes for info in self.shards)

    def __repr__(self) -> str:
        return (
            f"RowStore(n_samples={self.n_samples}, n_rows={self.n_rows}, "
            f"n_features={self.n_features}, dtype={self.dtype}, n_shards={len(self.shards)})"
        )

    def shortest(self) -> tuple[int, int]:
        """Number and length of the first sample with the fewest rows."""
        k = min(range(len(self.shards)), key=lambda k: self.shards[k].shortest)
        return int(self.starts[k]) + self.shards[k].shortest_sample, self.shards[k].shortest

    # ------------------------------------------------------------------ shards

    def select(self, shards: Sequence[int]) -> RowStore:
        """Return a view on some shards, their samples counted anew."""
        chosen = self._shard_numbers(shards)
        if not chosen:
            raise StoreError("no shard is selected: a store holds at least one.")
        view = RowStore.__new__(RowStore)
        view._open(self._files.select(chosen), self.memory)
        return view

    def part(self, k: int) -> StoredPart:
        """Return the samples of shard k on the mapped file; nothing is copied."""
        (k,) = self._shard_numbers([k])
        return part_of(self._files.mapped(k, rows=True), k, int(self.starts[k]))

    def parts(self, order: Sequence[int] | None = None, ahead: int = 1) -> Iterator[StoredPart]:
        """Iterate over shards, reading the next ones in the background.

        Memory of a part is given back when nothing refers to it any more.

        Parameters
        ----------
        order : sequence of int, optional
            Shards to read, all in their order by default.
        ahead : int
            Shards that are read ahead; with the one in use they must fit into `memory`.
        """
        chosen = self._shard_numbers(range(len(self.shards)) if order is None else order)
        needed = (ahead + 1) * max((self.shards[k].bytes for k in chosen), default=0) / 2**20
        if ahead < 0 or (ahead > 1 and needed > self.memory):
            raise StoreError(
                f"ahead={ahead} is negative or too much: {needed:.0f} MiB for {self.memory:g}."
            )
        return read_ahead(self._loaded, chosen, ahead)

    def verify(self) -> None:
        """Compare every byte of every shard with its checksum again."""
        for k in range(len(self.shards)):
            self._files.verify(k)

    def _loaded(self, k: int) -> StoredPart:
        mapping = self._files.mapped(k, rows=True)
        mapping.read_ahead()
        return part_of(mapping, k, int(self.starts[k]))

    def _shard_numbers(self, shards: Iterable[int]) -> list[int]:
        chosen, count = [int(k) for k in shards], len(self.shards)
        for k in chosen:
            if not -count <= k < count:
                raise IndexError(f"shard {k} does not exist: there are {count} shards.")
        return [k % count for k in chosen]

    def __reduce__(self) -> tuple:
        files = [info.file for info in self.shards]
        return _reopened, (str(self.path.absolute()), self.memory, files, self.digest)


def _reopened(path: str, memory: float, files: list[str], digest: str) -> RowStore:
    store = RowStore(path, memory=memory)
    number = {info.file: k for k, info in enumerate(store.shards)}
    if store.digest != digest and all(file in number for file in files):
        store = store.select([number[file] for file in files])
    if store.digest != digest:
        raise StoreError(f"{path} was written again since it was sent here: open it anew.")
    return store
