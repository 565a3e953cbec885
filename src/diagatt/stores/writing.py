"""Writing a store by streaming: bounded memory, whole or not there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from diagatt.files import sync_folder
from diagatt.ragged import RaggedRows
from diagatt.stores.blocks import checked_block
from diagatt.stores.buffer import ShardBuffer, sample_sizes
from diagatt.stores.columns import checked_rows
from diagatt.stores.facts import shard_info
from diagatt.stores.folders import begin_folder, not_written, place_folder
from diagatt.stores.layout import COVARIATES, RESPONSE, WEIGHT
from diagatt.stores.manifest import MANIFEST, Layout, Manifest, ShardInfo, StoreError
from diagatt.stores.shards import batch_of, map_file


class RowStoreWriter:
    """Write samples to a new store, shard by shard.

    All files are made in a hidden folder beside `path`, which is renamed when it is whole. If
    anything fails, it is removed; if the process is killed, the next writer removes it.

    Parameters
    ----------
    path : path-like
        Folder to make.
    shard_mib : float
        Size of a shard in MiB, at most 1024; writing takes the memory of about three. A sample
        that is larger has a shard of its own.
    dtype : {"float32", "float64"}
        Type in which rows are kept.
    overwrite : bool
        Whether a store that is there is replaced, once the new one is whole.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from diagatt.stores import RowStore, RowStoreWriter
    >>> path = tempfile.mkdtemp() + "/store"
    >>> with RowStoreWriter(path) as writer:
    ...     for p in (2, 3):
    ...         writer.add(np.ones((p, 4)), y=float(p), name=f"sample of {p}")
    >>> RowStore(path).responses()
    array([2., 3.])
    """

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        shard_mib: float = 64,
        dtype: Any = "float32",
        overwrite: bool = False,
    ) -> None:
        self.path = Path(os.path.realpath(path))
        if not 0 < shard_mib <= 1024:
            raise ValueError(f"shard_mib must be above 0 and at most 1024, got {shard_mib}.")
        if str(np.dtype(dtype)) not in ("float32", "float64"):
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
        self.dtype = np.dtype(dtype)
        self.overwrite = overwrite
        self._limit = int(shard_mib * 2**20)
        self._shards: list[ShardInfo] = []
        self._buffer: ShardBuffer | None = None
        self._folder: Path | None = None
        self._failed = False
        self.n_samples = 0

    def __enter__(self) -> Self:
        self._folder = begin_folder(self.path, self.overwrite)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        assert self._folder is not None
        try:
            if kind is None:
                self._finish(self._folder)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def add(
        self, X: Any, y: Any = None, weight: Any = None, covariates: Any = None, **payload: Any
    ) -> None:
        """Add one sample.

        Parameters
        ----------
        X : array of shape (p, d)
        y : number, truth value or string, optional
        weight : float, optional
        covariates : array of shape (q,), optional
        **payload : numbers or strings
            Anything to keep with the sample, such as ``text=`` or ``path=``.
        """
        name = f"sample {self.n_samples}"
        try:
            rows = RaggedRows(X, [0, len(X)])
        except TypeError as error:
            raise StoreError(f"{name} is not a matrix of numbers: {error}.") from None
        except ValueError as error:  # RaggedRows calls its one sample so
            said = str(error).replace("values", name, 1).replace("sample 0", name, 1)
            raise StoreError(said) from None
        given = {RESPONSE: y, WEIGHT: weight, COVARIATES: covariates, **payload}
        self._put(rows, {key: [value] for key, value in given.items() if value is not None})

    def extend(
        self, rows: Any, y: Any = None, weights: Any = None, covariates: Any = None, **payload: Any
    ) -> None:
        """Add many samples.

        If one of them is refused nothing is written, unlike with `add`, after which one may go on.

        Parameters
        ----------
        rows : RaggedRows, or anything that packs into it
        y, weights : array-like of shape (n,), optional
        covariates : array of shape (n, q), optional
        **payload : array-likes of shape (n,)
        """
        given = {RESPONSE: y, WEIGHT: weights, COVARIATES: covariates, **payload}
        columns = {key: value for key, value in given.items() if value is not None}
        try:
            self._put(RaggedRows.coerce(rows), columns)
        except BaseException:
            self._failed = True
            raise

    # ------------------------------------------------------------------ inside

    def _put(self, rows: RaggedRows, given: Mapping[str, Any]) -> None:
        if self._folder is None:
            raise StoreError("use the writer in a with block: with RowStoreWriter(path) as writer.")
        if self._failed:
            raise StoreError("an earlier block or shard failed: begin a new store.")
        known = None if self._buffer is None else self._buffer.layout
        layout, columns = checked_block(rows, given, self.n_samples, known, self.dtype)
        self._spread(layout, rows, columns)

    def _spread(self, layout: Layout, rows: RaggedRows, columns: Mapping[str, Any]) -> None:
        """Cut a block of samples over shards."""
        ends = np.cumsum(sample_sizes(layout, rows.lengths, columns))  # in bytes
        buffer = ShardBuffer(layout, self._limit) if self._buffer is None else self._buffer
        start, written, cuts = 0, 0, rows.offsets
        while start < len(rows):
            stop = start + buffer.room(ends[start:], written)
            if start == stop:
                self._flush()
                continue
            local = cuts[start : stop + 1] - cuts[start]
            values = rows.values[cuts[start] : cuts[stop]]
            kept = checked_rows(values, local, self.dtype, self.n_samples)
            part = {name: items[start:stop] for name, items in columns.items()}
            buffer.put(kept, np.diff(local).tolist(), part, int(ends[stop - 1]) - written)
            self._buffer = buffer  # only now: a first sample that is refused decides nothing
            self.n_samples += stop - start
            start, written = stop, int(ends[stop - 1])

    def _flush(self) -> None:
        assert self._buffer is not None
        assert self._folder is not None
        path = self._folder / f"shard-{len(self._shards):05d}.arrow"
        self._failed = True  # until the shard is on the disk
        batch = self._buffer.batch()
        try:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as file:
                file.write_batch(batch)
            with open(path, "rb+") as written:
                os.fsync(written.fileno())
        except OSError as error:
            raise not_written(f"shard {path.name}", self.path.parent, error) from error
        mapping = map_file(path)
        self._shards.append(shard_info(mapping, batch_of(mapping)))
        self._buffer.clear()
        self._failed = False

    def _finish(self, folder: Path) -> None:
        if self._failed:
            raise StoreError("a block or shard failed, so that no store is written.")
        if self._buffer is None:
            raise StoreError("no sample was added: a store holds at least one.")
        self._flush()
        try:
            Manifest(self._buffer.layout, tuple(self._shards)).write(folder)
            sync_folder(folder)
        except OSError as error:
            raise not_written(MANIFEST, self.path.parent, error) from error
        place_folder(folder, self.path, self.overwrite)
