"""The files of a store: mapped when asked for, verified when first read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from diagatt.stores.manifest import Manifest
from diagatt.stores.shards import (
    FileMapping,
    batch_of,
    check_layout,
    check_size,
    map_file,
    verify,
)


@dataclass(frozen=True)
class ShardFiles:
    """Shards of a manifest in a folder.

    Attributes
    ----------
    verified : dict
        Stamp of the file that was verified, by its name and whether its rows were verified too.
        A file that is replaced later has another stamp and is verified again.
    """

    folder: Path
    manifest: Manifest
    verified: dict[tuple[str, bool], tuple[int, int, int]]

    def select(self, shards: list[int]) -> ShardFiles:
        """Some of the shards; what was verified stays so."""
        return replace(self, manifest=self.manifest.select(shards))

    def check_sizes(self) -> None:
        """Refuse missing and truncated shards."""
        for info in self.manifest.shards:
            check_size(self.folder / info.file, info, self.manifest.layout)

    def mapped(self, k: int, *, rows: bool) -> FileMapping:
        """Map shard k; what of it will be read, rows or only columns, is verified once."""
        file = self.manifest.shards[k].file
        mapping = map_file(self.folder / file)
        known = [self.verified.get((file, True)), self.verified.get((file, rows))]
        if mapping.stamp not in known:
            self._verify(mapping, k, rows=rows)
            self.verified[file, rows] = mapping.stamp
        return mapping

    def verify(self, k: int) -> None:
        """Verify shard k, even if it was before."""
        self._verify(map_file(self.folder / self.manifest.shards[k].file), k, rows=True)

    def _verify(self, mapping: FileMapping, k: int, *, rows: bool) -> None:
        verify(mapping, self.manifest.shards[k], self.manifest.layout, rows=rows)
        check_layout(mapping, batch_of(mapping), self.manifest.layout)
