"""What a store says about itself: ``store.json``, checked by its own digest.

=================  ==============================================================
key                meaning
=================  ==============================================================
``digest``         SHA-256 of everything below: identifies the data
``format``         1; a newer one is refused
``n_features``     features of a row, d
``dtype``          type of the rows, float32 or float64
``columns``        kind of every other column: y, weight, covariates, payload
``n_covariates``   covariates of a sample, q
``shards``         `ShardInfo` of every shard, in the order of its samples
=================  ==============================================================
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from diagatt.files import write_atomically

FORMAT = 1
MANIFEST = "store.json"


class StoreError(ValueError):
    """A row store cannot be written or read; the message names the shard."""


@dataclass(frozen=True)
class ShardInfo:
    """What is known of a shard without opening it.

    Attributes
    ----------
    file : str
    bytes : int
    sha256, columns_sha256 : str
        Of the whole file, and of all of it but the row values, so that responses are verified
        without reading rows.
    values : (int, int)
        Where the row values begin and end in the file.
    n_samples, n_rows : int
    shortest, shortest_sample, longest : int
        Fewest rows of a sample, the number in the shard of the first such sample, most rows.
    weight_sum : float or None
    y_min, y_max, y_sum, y_squares : float or None
        Smallest, largest, sum and sum of squares of responses that are numbers.
    """

    file: str
    bytes: int
    sha256: str
    columns_sha256: str
    values: tuple[int, int]
    n_samples: int
    n_rows: int
    shortest: int
    shortest_sample: int
    longest: int
    weight_sum: float | None = None
    y_min: float | None = None
    y_max: float | None = None
    y_sum: float | None = None
    y_squares: float | None = None


@dataclass(frozen=True)
class Layout:
    """What all shards of a store have in common."""

    n_features: int
    dtype: str
    columns: dict[str, str]
    n_covariates: int


@dataclass(frozen=True)
class Manifest:
    """The layout and the shards."""

    layout: Layout
    shards: tuple[ShardInfo, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the content: the same data cut alike have the same digest."""
        text = json.dumps(self._content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def select(self, shards: list[int]) -> Manifest:
        """Some of the shards."""
        return replace(self, shards=tuple(self.shards[k] for k in shards))

    def write(self, folder: Path) -> None:
        """Write ``store.json`` into the folder."""
        document = {"digest": self.digest, **self._content()}
        write_atomically(folder / MANIFEST, json.dumps(document, indent=1).encode())

    def _content(self) -> dict[str, Any]:
        shards = [asdict(shard) for shard in self.shards]
        return {"format": FORMAT, **asdict(self.layout), "shards": shards}


def read_manifest(folder: Path) -> Manifest:
    """Read and verify the manifest of a store."""
    path = folder / MANIFEST
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise StoreError(f"{folder} {what}: a row store is a folder that RowStore.write made.")
    if not path.exists():
        raise StoreError(
            f"{folder} is not a row store: it has no {MANIFEST}. For a folder of shards call "
            "RowStore.index(folder)."
        )
    try:
        document = json.loads(path.read_bytes())
        version = int(document["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged or foreign ({error}): restore a copy.") from error
    if version > FORMAT:
        raise StoreError(
            f"{path} was written by a newer version of diagatt (format {version}, this one reads "
            f"{FORMAT}): upgrade diagatt."
        )
    try:
        layout = Layout(**{f.name: document[f.name] for f in fields(Layout)})
        manifest = Manifest(layout, tuple(_shard_info(shard) for shard in document["shards"]))
        intact = manifest.shards and (version, manifest.digest) == (FORMAT, document["digest"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged or foreign ({error}): restore a copy.") from error
    if not intact:
        raise StoreError(f"{path} is damaged: its digest does not match; restore a copy.")
    return manifest


def _shard_info(stored: dict[str, Any]) -> ShardInfo:
    info = ShardInfo(**{**stored, "values": tuple(stored["values"])})
    if Path(info.file).name != info.file:  # a shard lies in the store, nowhere else
        raise ValueError(f"shard {info.file!r} is not the name of a file in the store")
    return info
