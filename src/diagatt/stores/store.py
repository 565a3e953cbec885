"""A store of samples on disk, read shard by shard."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.coerce import offsets_from
from diagatt.lifetimes import are_times
from diagatt.ragged import RaggedRows
from diagatt.stores import build
from diagatt.stores.manifest import Manifest, read_manifest
from diagatt.stores.part import StoredPart, read_ahead
from diagatt.stores.responses import as_given
from diagatt.stores.row_types import memory_dtype
from diagatt.stores.shard import (
    COVARIATES,
    RESPONSE,
    ROW_IDS,
    ROW_WEIGHT,
    SAMPLE_IDS,
    STANDARD,
    WEIGHT,
    Shard,
    StoreError,
)

if TYPE_CHECKING:  # mypy cannot infer what a generic function returns as a class method
    Builder = classmethod[Any, ..., "RowStore"]


class RowStore:
    """Samples in a folder of memory-mapped shards; only those in use are in memory.

    Opening checks the manifest and the sizes of all shards. When a shard is first read, its
    checksum and its columns are verified.

    Parameters
    ----------
    path : path-like
        A folder that `RowStoreWriter`, one of the builders or `index` made.
    memory : float
        Memory in MiB that readers of the store may use; two shards must fit.

    Attributes
    ----------
    n_samples, n_rows, n_features, n_covariates : int
    dtype : dtype
        Type of the rows when they are read: float32 if they are stored in half precision.
    feature_names, covariate_names : tuple of str, or None
    response_names : tuple of str, or None
        Names of several outcomes, or of the columns of times to an event (`has_times`).
    has_response, has_weights : bool
    response_type : {"float64", "int64", "bool", "string"} or None
    payload_names : tuple of str
    shards : tuple of ShardInfo
    starts : array of shape (n_shards,)
        Index of the first sample of each shard.
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

    write: Builder = classmethod(build.write)
    from_rows: Builder = classmethod(build.from_rows)
    from_frame: Builder = classmethod(build.from_frame)
    from_arrow: Builder = classmethod(build.from_arrow)
    from_transformer: Builder = classmethod(build.from_transformer)
    index: Builder = classmethod(build.index)

    def __init__(self, path: str | os.PathLike, *, memory: float = build.MEMORY) -> None:
        folder = Path(path)
        manifest = read_manifest(folder)
        for info in manifest.shards:
            file = folder / info.file
            if not file.is_file() or file.stat().st_size != info.bytes:
                Shard(file).check_size(info, manifest.layout)
        largest = manifest.layout.widening * max(info.bytes for info in manifest.shards) / 2**20
        if 2 * largest > memory:
            raise StoreError(
                f"memory={memory:g} MiB is too little: the largest shard of {folder} has "
                f"{largest:.1f} MiB and two must fit. Allow {ceil(2 * largest)} MiB or more, or "
                "write the store again with a smaller shard_mib."
            )
        # Stamps of verified files, by their name and by whether their rows were verified.
        self._verified: dict[tuple[str, bool], tuple[int, int, int]] = {}
        self._open(folder, manifest, memory)

    def _open(self, folder: Path, manifest: Manifest, memory: float) -> None:
        self.path = folder
        self.memory = memory
        self._manifest = manifest
        layout = manifest.layout
        self.n_features = layout.n_features
        self.dtype = memory_dtype(layout.dtype)
        self.feature_names = layout.feature_names
        self.covariate_names = layout.covariate_names
        self.response_names = layout.response_names
        self.n_covariates = layout.n_covariates
        self.response_type = layout.columns.get(RESPONSE)
        self.has_response = RESPONSE in layout.columns
        self.has_weights = WEIGHT in layout.columns
        self.payload_names = tuple(name for name in layout.columns if name not in STANDARD)
        self.shards = manifest.shards
        counts = [info.n_samples for info in self.shards]
        self.n_samples = sum(counts)
        self.n_rows = sum(info.n_rows for info in self.shards)
        self.starts = offsets_from(counts)[:-1]

    def __repr__(self) -> str:
        return (
            f"RowStore(n_samples={self.n_samples}, n_rows={self.n_rows}, "
            f"n_features={self.n_features}, dtype={self.dtype}, n_shards={len(self.shards)})"
        )

    def __len__(self) -> int:
        return self.n_samples

    @property
    def shape(self) -> tuple[int]:
        """(n_samples,), as for RaggedRows."""
        return (self.n_samples,)

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest, which holds those of all shards."""
        return self._manifest.digest

    @property
    def nbytes(self) -> int:
        """Bytes of all shards."""
        return sum(info.bytes for info in self.shards)

    @property
    def largest_part(self) -> int:
        """Bytes that the largest shard takes in memory."""
        return self._manifest.layout.widening * max(info.bytes for info in self.shards)

    @property
    def memory_per_sample(self) -> float:
        """Bytes that a sample takes in memory, on average."""
        return self._manifest.layout.widening * self.nbytes / self.n_samples

    def shortest(self) -> tuple[int, int]:
        """Return the index and the length of the first sample with the fewest rows."""
        k = min(range(len(self.shards)), key=lambda k: self.shards[k].shortest)
        return int(self.starts[k]) + self.shards[k].shortest_sample, self.shards[k].shortest

    # ------------------------------------------------------------------ shards

    def select(self, shards: Sequence[int]) -> RowStore:
        """Return a view of some shards, whose sample indices begin at 0 again."""
        chosen = self._shard_indices(shards)
        if not chosen:
            raise StoreError("no shard is selected: a store holds at least one.")
        view = RowStore.__new__(RowStore)
        view._verified = self._verified
        view._open(self.path, self._manifest.select(chosen), self.memory)
        return view

    def part(self, k: int) -> StoredPart:
        """Return the samples of shard k on the mapped file; nothing is copied."""
        (k,) = self._shard_indices([k])
        return self._loaded(k, ahead=False)

    def parts(self, order: Sequence[int] | None = None, ahead: int = 1) -> Iterator[StoredPart]:
        """Iterate over shards, reading the next ones in the background.

        The memory of a part is given back when nothing refers to it any more.

        Parameters
        ----------
        order : sequence of int, optional
            Shards to read; by default all in their order.
        ahead : int
            Shards that are read ahead; with the one in use they must fit into `memory`.
        """
        chosen = self._shard_indices(range(len(self.shards)) if order is None else order)
        largest = max((self.shards[k].bytes for k in chosen), default=0)
        needed = (ahead + 1) * self._manifest.layout.widening * largest / 2**20
        if ahead < 0 or (ahead > 1 and needed > self.memory):
            what = f"it needs {needed:.0f} MiB of {self.memory:g}"
            raise StoreError(f"ahead={ahead} is negative or too large: {what}.")
        return read_ahead(self._loaded, chosen, ahead)

    def verify(self) -> None:
        """Compare every byte of every shard with its checksum, even if it was verified before."""
        for info in self.shards:
            Shard(self.path / info.file).verify(info, self._manifest.layout, rows=True)

    def _shard(self, k: int, *, rows: bool) -> Shard:
        """Map shard k and verify once what will be read: all of it, or all but the row values."""
        info = self.shards[k]
        shard = Shard(self.path / info.file)
        seen = [self._verified.get((info.file, True)), self._verified.get((info.file, rows))]
        if shard.stamp not in seen:  # a file that was replaced has another stamp
            shard.verify(info, self._manifest.layout, rows=rows)
            self._verified[info.file, rows] = shard.stamp
        return shard

    def _loaded(self, k: int, *, ahead: bool = True) -> StoredPart:
        shard = self._shard(k, rows=True)
        if ahead:
            shard.read_ahead()
        y, weights, Z = (shard.column(name) for name in (RESPONSE, WEIGHT, COVARIATES))
        if y is not None and self.response_names is not None:
            y = as_given(y, self.response_names)
        payload = {name: shard.batch.column(name) for name in self.payload_names}
        named = (shard.rows(), y, weights, Z, payload, self.covariate_names, self.response_names)
        return StoredPart(k, int(self.starts[k]), *named)

    def _shard_indices(self, shards: Iterable[int]) -> list[int]:
        chosen, count = [int(k) for k in shards], len(self.shards)
        for k in chosen:
            if not -count <= k < count:
                raise IndexError(f"shard {k} does not exist: there are {count} shards.")
        return [k % count for k in chosen]

    # ------------------------------------------------------------------ samples

    def responses(self) -> np.ndarray | None:
        """Return all responses, read without the rows, or None if there are none.

        Several outcomes have shape (n, q); times to an event are a structured array.
        """
        found = self._column(RESPONSE)
        if found is None or self.response_names is None:
            return found
        return as_given(found, self.response_names)

    @property
    def has_times(self) -> bool:
        """Whether responses are times to an event."""
        return self.response_names is not None and are_times(self.response_names)

    def weights(self) -> np.ndarray | None:
        """Return all weights, read without the rows, or None if there are none."""
        return self._column(WEIGHT)

    def covariates(self) -> np.ndarray | None:
        """Return all covariates (n, q), read without the rows, or None if there are none."""
        return self._column(COVARIATES)

    def sample_ids(self) -> np.ndarray | None:
        """Return the ids of all samples, read without the rows, or None if there are none."""
        found = self._column(SAMPLE_IDS)
        return None if found is None else found.astype(object)

    @property
    def has_row_weights(self) -> bool:
        """Whether rows have weights."""
        return ROW_WEIGHT in self._manifest.layout.columns

    @property
    def has_row_ids(self) -> bool:
        """Whether rows have ids."""
        return ROW_IDS in self._manifest.layout.columns

    def smallest_row_weight(self) -> float:
        """Return the smallest weight of a row, 1 if rows have none; other columns are not read."""
        if not self.has_row_weights:
            return 1.0
        shards = (self._shard(k, rows=False) for k in range(len(self.shards)))
        found = (shard.row_weight() for shard in shards)
        return min(float(weights.min()) for weights in found if weights is not None)

    def lengths(self) -> np.ndarray:
        """Return the count of rows of every sample, read without the rows."""
        return np.concatenate([self._lengths(k) for k in range(len(self.shards))])

    def take(self, samples: Any) -> StoredPart:
        """Copy samples into memory, in any order, from the shards that hold them."""
        indices = _sample_indices(samples, self.n_samples)
        shard = np.searchsorted(self.starts, indices, side="right") - 1
        local = indices - self.starts[shard]
        places = {int(k): np.flatnonzero(shard == k) for k in np.unique(shard)}
        lengths = np.empty(len(indices), np.int64)
        for k, own in places.items():  # lengths first: every row is copied once, to where it stays
            lengths[own] = self._lengths(k)[local[own]]
        offsets = offsets_from(lengths)
        values = np.empty((offsets[-1], self.n_features), self.dtype)
        row_ids = np.empty(offsets[-1], object) if self.has_row_ids else None
        weight = np.empty(offsets[-1]) if self.has_row_weights else None
        pieces: dict[str, list[np.ndarray]] = {}
        for k, own in places.items():
            part = self.part(k)
            rows = _row_indices(part.X.offsets[local[own]], lengths[own])
            whither = _row_indices(offsets[own], lengths[own])
            values[whither] = part.X.values[rows]
            if row_ids is not None and part.X.row_ids is not None:
                row_ids[whither] = part.X.row_ids[rows]
            if weight is not None and part.X.row_weight is not None:
                weight[whither] = part.X.row_weight[rows]
            for name, column in part.arrays().items():
                pieces.setdefault(name, []).append(column[local[own]])
        order = np.argsort(np.concatenate(list(places.values())))  # from by shard to as asked
        columns = {name: np.concatenate(found)[order] for name, found in pieces.items()}
        y, weights, Z = (columns.pop(name, None) for name in (RESPONSE, WEIGHT, COVARIATES))
        ids = columns.pop(SAMPLE_IDS, None)
        X = RaggedRows(values, offsets, self.feature_names, ids, row_ids, weight)
        both = (self.covariate_names, self.response_names)
        return StoredPart(-1, 0, X, y, weights, Z, columns, *both)

    def to_rows(self) -> RaggedRows:
        """Return all rows, in memory."""
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
        for part in self.parts():
            for sample in part.X:
                yield np.array(sample)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("RowStore is not one array: use .parts(), or .to_rows() if memory allows.")

    def __reduce__(self) -> tuple:
        files = [info.file for info in self.shards]
        return _reopened, (str(self.path.absolute()), self.memory, files, self.digest)

    def _lengths(self, k: int) -> np.ndarray:
        return np.diff(self._shard(k, rows=False).offsets())

    def _column(self, name: str) -> np.ndarray | None:
        if name not in self._manifest.layout.columns:
            return None
        shards = (self._shard(k, rows=False) for k in range(len(self.shards)))
        # Copied shard by shard, so that no shard stays mapped
        return np.concatenate([np.array(shard.column(name)) for shard in shards])


def _reopened(path: str, memory: float, files: list[str], digest: str) -> RowStore:
    """Open a store that was pickled as its path."""
    store = RowStore(path, memory=memory)
    index = {info.file: k for k, info in enumerate(store.shards)}
    if store.digest != digest and all(file in index for file in files):
        store = store.select([index[file] for file in files])
    if store.digest != digest:
        raise StoreError(f"{path} was written again since it was sent here: open it anew.")
    return store


def _sample_indices(key: Any, count: int) -> np.ndarray:
    """Return the sample indices of a slice, an index array or a mask."""
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


def _row_indices(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the packed positions of the rows of samples that begin at `starts`."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])
