"""What a store says about itself: ``store.json``, checked by its own digest.

Its keys are ``digest``, the SHA-256 of everything else, which identifies the data; ``format``, the
version, which must not be newer than this library; the fields of `Layout`; and ``shards``, a list
of `ShardInfo` in the order of the samples.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from diagatt.files import write_atomically
from diagatt.names import checked
from diagatt.stores.checks import checked_column, checked_covariates, checked_rows
from diagatt.stores.responses import checked_responses
from diagatt.stores.shard import (
    COVARIATES,
    RESPONSE,
    ROW_IDS,
    ROW_WEIGHT,
    SAMPLE_IDS,
    WEIGHT,
    Layout,
    Shard,
    ShardInfo,
    StoreError,
)

# Format 1 had neither names nor ids nor float16, format 2 had no weights of rows, format 3 had one
# number per response, and format 4 had no bfloat16. A store is written in the oldest format that
# can hold it.
FORMAT = 5
MANIFEST = "store.json"


@dataclass(frozen=True)
class Manifest:
    """The layout and the shards."""

    layout: Layout
    shards: tuple[ShardInfo, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the content: the same data in the same shards have the same digest."""
        text = json.dumps(self._content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def select(self, shards: list[int]) -> Manifest:
        """Return the manifest of some of the shards."""
        return replace(self, shards=tuple(self.shards[k] for k in shards))

    def write(self, folder: Path) -> None:
        """Write ``store.json`` into the folder."""
        document = {"digest": self.digest, **self._content()}
        write_atomically(folder / MANIFEST, json.dumps(document, indent=1).encode())

    def _content(self) -> dict[str, Any]:
        shards = [asdict(shard) for shard in self.shards]
        layout = {key: value for key, value in asdict(self.layout).items() if value is not None}
        return {"format": _format(self.layout), **layout, "shards": shards}


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
        if version > FORMAT:
            raise StoreError(
                f"{path} was written by a newer version of diagatt (format {version}, this one "
                f"reads {FORMAT}): upgrade diagatt."
            )
        layout = _layout(document)
        manifest = Manifest(layout, tuple(_shard_info(shard) for shard in document["shards"]))
        written = (_format(layout), manifest.digest)
        intact = manifest.shards and (version, document["digest"]) == written
    except StoreError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged or foreign ({error}): restore a copy.") from error
    if not intact:
        raise StoreError(f"{path} is damaged: its digest does not match; restore a copy.")
    return manifest


def _format(layout: Layout) -> int:
    """Return the oldest format that can hold what the layout says."""
    if layout.dtype == "bfloat16":
        return 5
    if layout.response_names is not None:
        return 4
    if ROW_WEIGHT in layout.columns:
        return 3
    named = layout.feature_names is not None or layout.covariate_names is not None
    ids = {SAMPLE_IDS, ROW_IDS} & layout.columns.keys()
    return 2 if named or layout.dtype == "float16" or ids else 1


def _layout(document: dict[str, Any]) -> Layout:
    found = {f.name: document[f.name] for f in fields(Layout) if f.default is MISSING}
    counts = {"feature_names": found["n_features"], "covariate_names": found["n_covariates"]}
    counts["response_names"] = None
    for key, count in counts.items():
        if document.get(key) is not None:
            found[key] = checked(document[key], key, count)
    return Layout(**found)


def _shard_info(stored: dict[str, Any]) -> ShardInfo:
    info = ShardInfo(**{**stored, "values": tuple(stored["values"])})
    if Path(info.file).name != info.file:  # a shard lies in the store, nowhere else
        raise ValueError(f"shard {info.file!r} is not the name of a file in the store")
    return info


# ---------------------------------------------------------------------- statistics


def measure(shard: Shard) -> ShardInfo:
    """Compute checksums and statistics of a shard whose layout is checked."""
    start = shard.flat.buffers()[1].address - pa.py_buffer(shard.memory).address
    values = (start, start + shard.flat.nbytes)
    if start < 0 or values[1] > len(shard.memory):
        raise StoreError(
            f"{shard} is compressed: write it without compression, so that its rows can be used "
            "in place."
        )
    lengths = shard.rows().lengths
    weights = shard.column(WEIGHT)
    return ShardInfo(
        file=shard.path.name,
        bytes=len(shard.memory),
        sha256=shard.sha256(),
        columns_sha256=shard.sha256(without=values),
        values=values,
        n_samples=len(lengths),
        n_rows=int(lengths.sum()),
        shortest=int(lengths.min()),
        shortest_sample=int(lengths.argmin()),
        longest=int(lengths.max()),
        weight_sum=None if weights is None else _finite(weights.sum()),
        **_response_statistics(shard.column(RESPONSE)),
    )


def _response_statistics(y: np.ndarray | None) -> dict[str, float | None]:
    if y is None or y.ndim > 1 or y.dtype.kind not in "if":
        return {}
    numbers = y.astype(np.float64)
    with np.errstate(over="ignore"):
        total, squares = _finite(numbers.sum()), _finite(np.square(numbers).sum())
    low, high = float(numbers.min()), float(numbers.max())
    return {"y_min": low, "y_max": high, "y_sum": total, "y_squares": squares}


def _finite(number: np.floating) -> float | None:
    return float(number) if np.isfinite(number) else None  # JSON has no infinity


# ---------------------------------------------------------------------- indexing


def index_folder(folder: Path) -> None:
    """Check all shards of a folder, in the order of their names, and write its manifest."""
    if not folder.is_dir():
        raise StoreError(f"{folder} is not a folder of shards.")
    if (folder / MANIFEST).exists():
        raise StoreError(f"{folder} has a {MANIFEST}: delete it to make a new one.")
    layout, shards = None, []
    for path in sorted(folder.glob("*.arrow")):
        shard = Shard(path)
        layout = shard.check_layout(layout)
        try:
            shard.batch.validate(full=True)
            _check_content(shard, layout)
        except ValueError as error:  # pyarrow's errors are ValueErrors too
            raise StoreError(f"{shard}: {error}") from None
        shards.append(measure(shard))
    if layout is None:
        raise StoreError(f"{folder} holds no shard: there is no file *.arrow.")
    Manifest(layout, tuple(shards)).write(folder)


def _check_content(shard: Shard, layout: Layout) -> None:
    """Apply the checks of the writer."""
    for name, column in zip(shard.batch.schema.names, shard.batch.columns, strict=True):
        while column.null_count == 0 and hasattr(column, "values"):
            column = column.values
        if column.null_count:
            raise StoreError(f"column {name!r} has missing values: drop or fill them.")
    rows = shard.rows()
    checked_rows(rows.values, rows.offsets, str(rows.dtype), 0)
    if layout.response_names is not None:
        named = dict(zip(layout.response_names, shard.column(RESPONSE).T, strict=True))  # type: ignore[union-attr]
        checked_responses(named, len(rows), 0, layout.response_names)
    for name in (RESPONSE, WEIGHT):
        if name in layout.columns.keys() - layout.widths.keys():
            checked_column(name, shard.column(name), len(rows), 0, layout.columns[name])
    if COVARIATES in layout.columns:
        checked_covariates(shard.column(COVARIATES), len(rows), 0, layout.n_covariates)
