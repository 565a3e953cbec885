"""A manifest for shards that are there already."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from diagatt.stores.columns import checked_column, checked_covariates, checked_rows
from diagatt.stores.facts import shard_info
from diagatt.stores.layout import COVARIATES, RESPONSE, WEIGHT, column_of, rows_of
from diagatt.stores.manifest import MANIFEST, Layout, Manifest, ShardInfo, StoreError
from diagatt.stores.shards import FileMapping, batch_of, check_layout, map_file


def index_folder(folder: Path) -> None:
    """Check all shards of a folder, in the order of their names, and write its manifest."""
    if not folder.is_dir():
        raise StoreError(f"{folder} is not a folder of shards.")
    if (folder / MANIFEST).exists():
        raise StoreError(f"{folder} has a {MANIFEST}: delete it to make a new one.")
    paths = sorted(folder.glob("*.arrow"))
    if not paths:
        raise StoreError(f"{folder} holds no shard: there is no file *.arrow.")
    layout, shards = None, []
    for path in paths:
        layout, info = _indexed(map_file(path), layout)
        shards.append(info)
    assert layout is not None
    Manifest(layout, tuple(shards)).write(folder)


def _indexed(mapping: FileMapping, layout: Layout | None) -> tuple[Layout, ShardInfo]:
    batch = batch_of(mapping)
    layout = check_layout(mapping, batch, layout)
    try:
        batch.validate(full=True)
        _check_content(batch, layout)
    except ValueError as error:
        raise StoreError(f"{mapping}: {error}") from None
    return layout, shard_info(mapping, batch)


def _check_content(batch: pa.RecordBatch, layout: Layout) -> None:
    """The checks of the writer; pyarrow's errors are ValueErrors too."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        while True:
            if column.null_count:
                raise StoreError(f"column {name!r} has missing values: drop or fill them.")
            if not hasattr(column, "values"):
                break
            column = column.values
    rows = rows_of(batch)
    checked_rows(rows.values, rows.offsets, rows.dtype, 0)
    for name in (RESPONSE, WEIGHT):
        if name in layout.columns:
            checked_column(name, column_of(batch, name), len(rows), 0, layout.columns[name])
    if COVARIATES in layout.columns:
        checked_covariates(column_of(batch, COVARIATES), len(rows), 0, layout.n_covariates)
