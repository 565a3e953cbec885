"""Results on disk: one Parquet file per task; no result is lost, and none counts twice.

A task's file is written under a temporary name and renamed, so it is complete or absent; its name
is the task's key, so a task that ran twice counts once. `pack` moves the small files into
``results.parquet``; if it is killed, every result is in one of the two places or in both.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from diagatt.files import write_atomically

SCHEMA = pa.schema(
    {
        "key": pa.string(),
        "scenario": pa.string(),
        "method": pa.string(),
        "replication": pa.int32(),
        "scale": pa.float64(),
        "metrics": pa.map_(pa.string(), pa.float64()),
        "seconds": pa.float64(),
        "details": pa.string(),
        "date": pa.string(),
        "machine": pa.string(),
    }
)


class ResultStore:
    """A folder of results, made when the first one is added.

    Examples
    --------
    >>> import tempfile
    >>> store = ResultStore(tempfile.mkdtemp())
    >>> store.keys()
    set()
    """

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)
        self._parts = self.folder / "parts"
        self._packed = self.folder / "results.parquet"

    def add(self, line: dict[str, Any]) -> None:
        """Write one task's result, atomically."""
        self._parts.mkdir(parents=True, exist_ok=True)
        _write(self._parts / f"{line['key']}.parquet", [line])

    def lines(self) -> list[dict[str, Any]]:
        """Return all results, one per key, in the order of scenario, method and replication."""
        found: dict[str, dict[str, Any]] = {}
        # Parts first: one that `pack` moves meanwhile is found in the packed file afterwards.
        for path in [*sorted(self._parts.glob("*.parquet")), self._packed]:
            try:
                found |= {line["key"]: line for line in _read(path)}
            except FileNotFoundError:
                continue
        order = ("scenario", "method", "scale", "replication")
        return sorted(found.values(), key=lambda line: [line[name] for name in order])

    def keys(self) -> set[str]:
        """Return the keys of all results."""
        return {line["key"] for line in self.lines()}

    def remove(self, keys: Collection[str]) -> None:
        """Forget results, so that they are run again."""
        with FileLock(str(self.folder / ".pack.lock")):
            if self._packed.exists():
                kept = [line for line in _read(self._packed) if line["key"] not in keys]
                _write(self._packed, kept)
            for key in keys:
                (self._parts / f"{key}.parquet").unlink(missing_ok=True)

    def pack(self) -> None:
        """Move all results into one file."""
        parts = sorted(self._parts.glob("*.parquet")) if self._parts.exists() else []
        if not parts:
            return
        with FileLock(str(self.folder / ".pack.lock")):
            _write(self._packed, self.lines())
            for part in parts:  # those written meanwhile stay for the next time
                part.unlink(missing_ok=True)


def _read(path: Path) -> list[dict[str, Any]]:
    lines = pq.ParquetFile(path).read().to_pylist()
    return [{**line, "metrics": dict(line["metrics"])} for line in lines]


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    rows = [{**line, "metrics": list(line["metrics"].items())} for line in lines]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), sink, compression="zstd")
    write_atomically(path, sink.getvalue().to_pybytes())
