"""One shard: an Arrow IPC file of one record batch, memory-mapped and verified."""

from __future__ import annotations

import hashlib
import mmap
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from diagatt.stores.layout import layout_of
from diagatt.stores.manifest import Layout, ShardInfo, StoreError

_PAGE = 4096
_REMEDY = "restore it, or write the store again."


@dataclass(frozen=True)
class FileMapping:
    """A file in the address space; unmapped with the last array that stands on it.

    The stamp (inode, time of change, size) tells whether a file is the one that was verified.
    """

    path: Path
    memory: mmap.mmap
    stamp: tuple[int, int, int]

    def __str__(self) -> str:
        return f"shard {self.path.name} in {self.path.parent}"

    def sha256(self, without: tuple[int, int] | None = None) -> str:
        """Checksum of all bytes, or of all but some."""
        if without is None:
            return hashlib.sha256(self.memory).hexdigest()
        content = memoryview(self.memory)
        digest = hashlib.sha256(content[: without[0]])
        digest.update(content[without[1] :])
        return digest.hexdigest()

    def read_ahead(self) -> None:
        """Bring all pages into memory."""
        if hasattr(mmap, "MADV_WILLNEED"):
            self.memory.madvise(mmap.MADV_WILLNEED)
        # Touching a byte a page waits for the disk here, outside the interpreter's lock, and not
        # in the thread that computes.
        np.frombuffer(self.memory, np.uint8)[::_PAGE].max()


def map_file(path: Path) -> FileMapping:
    """Map a shard's file."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size == 0:
                raise StoreError(f"shard {path.name} in {path.parent} is an empty file: {_REMEDY}")
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise StoreError(f"shard {path.name} is missing in {path.parent}: {_REMEDY}") from None
    return FileMapping(path, memory, (status.st_ino, status.st_mtime_ns, status.st_size))


def check_size(path: Path, info: ShardInfo, layout: Layout) -> None:
    """Refuse a missing, truncated or exchanged shard by its size alone."""
    if not path.is_file() or path.stat().st_size != info.bytes:
        _check_size(map_file(path), info, layout)


def verify(mapping: FileMapping, info: ShardInfo, layout: Layout, *, rows: bool) -> None:
    """Compare size and checksum: of all bytes, or of all but the row values."""
    _check_size(mapping, info, layout)
    found = mapping.sha256() if rows else mapping.sha256(without=info.values)
    if found != (info.sha256 if rows else info.columns_sha256):
        _check_layout_of(mapping, layout)  # a shard of another store is called that
        raise StoreError(f"{mapping} is damaged: its checksum does not match; {_REMEDY}")


def batch_of(mapping: FileMapping) -> pa.RecordBatch:
    """The record batch of a shard, on the mapped memory."""
    try:
        reader = pa.ipc.open_file(pa.py_buffer(mapping.memory))
        count = reader.num_record_batches
        batch = reader.get_batch(0) if count == 1 else None
    except (pa.ArrowException, OSError) as error:
        raise StoreError(
            f"{mapping} is not a readable Arrow file, but truncated, damaged or foreign: {_REMEDY}"
        ) from error
    if batch is None:
        raise StoreError(f"{mapping} has {count} record batches, a shard has one: {_REMEDY}")
    return batch


def check_layout(mapping: FileMapping, batch: pa.RecordBatch, layout: Layout | None) -> Layout:
    """Refuse a batch that has no samples, or not those of this store."""
    try:
        found = layout_of(batch.schema)
    except StoreError as error:
        raise StoreError(f"{mapping} is foreign: {error}.") from None
    if layout is not None and found.n_features != layout.n_features:
        raise StoreError(
            f"{mapping} has {found.n_features} features, the store has {layout.n_features}: all "
            "shards need the same number of features."
        )
    if layout not in (None, found):
        raise StoreError(
            f"{mapping} is foreign: it holds {_said(found)}, the store {_said(layout)}."
        )
    if len(batch) == 0:
        raise StoreError(f"{mapping} holds no sample: delete it, or write the store again.")
    return found


def _check_layout_of(mapping: FileMapping, layout: Layout) -> None:
    check_layout(mapping, batch_of(mapping), layout)


def _check_size(mapping: FileMapping, info: ShardInfo, layout: Layout) -> None:
    found = len(mapping.memory)
    if found == info.bytes:
        return
    if mapping.memory[:6] == b"ARROW1" and found < info.bytes and mapping.memory[-6:] != b"ARROW1":
        raise StoreError(f"{mapping} is truncated: it has {found} of {info.bytes} bytes; {_REMEDY}")
    _check_layout_of(mapping, layout)
    raise StoreError(f"{mapping} was exchanged: {found} bytes instead of {info.bytes}; {_REMEDY}")


def _said(layout: Layout) -> str:
    columns = ", ".join(f"{name} ({kind})" for name, kind in layout.columns.items())
    return f"{layout.dtype} rows, {layout.n_covariates} covariates and columns [{columns}]"
