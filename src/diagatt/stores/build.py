"""Stores from anything that holds samples, streamed: the class methods of `RowStore`.

Their first argument is the class that opens what was written. ``**options`` are those of
`RowStoreWriter`: ``shard_mib``, ``dtype`` and ``overwrite``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from diagatt.names import names_of
from diagatt.ragged import RaggedRows
from diagatt.stores.checks import RESERVED, check_payload
from diagatt.stores.manifest import index_folder, read_manifest
from diagatt.stores.responses import response_columns
from diagatt.stores.shard import COVARIATES, StoreError
from diagatt.stores.writer import RowStoreWriter

Location = str | os.PathLike
Name = str | None
Names = Sequence[str]
Response = str | Sequence[str] | Mapping[str, str] | None
Store = TypeVar("Store")
MEMORY = 1024  # MiB


def write(cls: type[Store], path: Location, samples: Iterable[Any], **options: Any) -> Store:
    """Write samples that come one after the other.

    Parameters
    ----------
    path : path-like
    samples : iterable
        Each a (p, d) array, a tuple (X, y), or a mapping with the key X and, if wanted, y,
        weight, covariates and payload.
    **options : see `RowStoreWriter`

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from diagatt.stores import RowStore
    >>> lines = ({"X": np.ones((p, 2)), "y": p % 2 == 0, "name": str(p)} for p in (1, 2))
    >>> RowStore.write(tempfile.mkdtemp() + "/store", lines).part(0).payload("name")
    ['1', '2']
    """
    with RowStoreWriter(path, **options) as writer:
        for sample in samples:
            if isinstance(sample, Mapping):
                writer.add(**sample)
            elif isinstance(sample, tuple):
                writer.add(*sample)
            else:
                writer.add(sample)
    return _opened(cls, path)


def from_rows(
    cls: type[Store],
    path: Location,
    rows: Any,
    y: Any = None,
    weights: Any = None,
    covariates: Any = None,
    *,
    shard_mib: float = 64,
    dtype: Any = "float32",
    overwrite: bool = False,
    **payload: Any,
) -> Store:
    """Write samples that are in memory.

    Parameters
    ----------
    path : path-like
    rows : RaggedRows, or anything that packs into it
    y : array-like of shape (n,), or (n, q) for several outcomes, optional
        A frame names its outcomes. Times to an event are what `DiagAttSurvival.fit` takes.
    weights : array-like of shape (n,), optional
    covariates : array of shape (n, q), optional
    shard_mib, dtype, overwrite : see `RowStoreWriter`
    **payload : array-likes of shape (n,)

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from diagatt.stores import RowStore
    >>> X, y = np.ones((5, 3, 2)), ["a", "b", "a", "a", "b"]
    >>> RowStore.from_rows(tempfile.mkdtemp() + "/store", X, y).response_type
    'string'
    >>> times = {"time": [3.0, 1.5, 2.0, 4.0, 0.5], "event": [True, False, True, True, False]}
    >>> RowStore.from_rows(tempfile.mkdtemp() + "/store", X, times).has_times
    True
    """
    with RowStoreWriter(path, shard_mib=shard_mib, dtype=dtype, overwrite=overwrite) as writer:
        writer.extend(rows, y, weights, covariates, **payload)
    return _opened(cls, path)


def from_frame(
    cls: type[Store],
    path: Location,
    frame: Any,
    sample: str,
    *,
    y: Response = None,
    weight: Name = None,
    covariates: Names = (),
    payload: Names = (),
    features: Names | None = None,
    row: Name = None,
    **options: Any,
) -> Store:
    """Write a long table: one line per row, and a column that names the sample of each line.

    Parameters
    ----------
    path : path-like
    frame : DataFrame of pandas, polars or another library, pyarrow Table, or mapping of columns
    sample : str
        Column of sample ids, kept as payload. Samples keep the order of first appearance.
    y : str, sequence of str, or mapping, optional
        Column of the responses; columns of several outcomes; or, for times to an event, a mapping
        from meanings to columns: ``{"time": "days", "event": "died"}``.
    weight, covariates, payload : str, sequence of str, sequence of str
        Columns whose values, like those of `y`, are the same in all lines of a sample.
    features : sequence of str, optional
        Columns of the rows; by default all columns that have no other meaning.
    row : str, optional
        Column of row ids.
    **options : see `RowStoreWriter`

    Examples
    --------
    >>> import tempfile
    >>> from diagatt.stores import RowStore
    >>> visits = {"who": ["a", "b", "a"], "pulse": [60, 70, 62], "ill": [True, False, True]}
    >>> store = RowStore.from_frame(tempfile.mkdtemp() + "/store", visits, "who", y="ill")
    >>> store.lengths(), store.responses()
    (array([2, 1]), array([ True, False]))
    """
    if not isinstance(frame, Mapping):
        import narwhals as nw  # here, because it takes 0.1 s

        frame = nw.from_native(frame, eager_only=True).to_dict(as_series=True)
    named = _named_columns(frame, y, weight, covariates, payload)
    chosen = features or [name for name in frame if name not in (sample, row, *named)]
    rows, ids = RaggedRows.from_frame(frame, sample, chosen, row=row)
    lines = np.asarray(frame[sample])
    _, first, inverse = np.unique(lines, return_index=True, return_inverse=True)

    def per_sample(name: str) -> np.ndarray:
        values = np.asarray(frame[name])
        wrong = np.flatnonzero(values != values[first[inverse]])
        if len(wrong):
            i = int(wrong[0])
            raise StoreError(
                f"line {i}: {name} is {values[i]!r}, but {values[first[inverse[i]]]!r} before for "
                f"sample {lines[i]!r}: it must be the same in all its lines."
            )
        return values[np.sort(first)]

    kept = ids.tolist()
    if not isinstance(kept[0], str | int | float):
        kept = [str(value) for value in kept]
    block = {"sample" if sample in RESERVED else sample: kept}
    block |= _block(rows, per_sample, y, weight, covariates, payload)
    with RowStoreWriter(path, **options) as writer:
        writer.extend(**block)
    return _opened(cls, path)


def from_arrow(
    cls: type[Store],
    path: Location,
    data: Any,
    rows: str,
    *,
    y: Response = None,
    weight: Name = None,
    covariates: Names = (),
    payload: Names = (),
    **options: Any,
) -> Store:
    """Write a table with a column of lists of rows, batch by batch.

    Parameters
    ----------
    path : path-like
    data : pyarrow Table, RecordBatchReader, Dataset, ParquetFile, or iterable of batches
    rows : str
        Column of lists of lists of numbers.
    y : str, sequence of str, or mapping, optional
        As in `from_frame`.
    weight, covariates, payload : str, sequence of str, sequence of str
        Other columns.
    **options : see `RowStoreWriter`

    Examples
    --------
    >>> import tempfile, pyarrow as pa
    >>> from diagatt.stores import RowStore
    >>> table = pa.table({"cells": [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], "age": [31, 47]})
    >>> store = RowStore.from_arrow(tempfile.mkdtemp() + "/store", table, "cells", y="age")
    >>> store[1]
    array([[3., 4.],
           [5., 6.]], dtype=float32)
    """
    for name in ("to_batches", "iter_batches"):
        if hasattr(data, name):
            data = getattr(data, name)()
            break
    with RowStoreWriter(path, **options) as writer:
        for k, batch in enumerate([data] if hasattr(data, "num_rows") else data):
            _named_columns(batch.schema.names, y, weight, [rows, *covariates], payload)
            if batch.num_rows == 0:
                continue
            try:
                packed = RaggedRows.from_arrow(batch.column(rows))
            except (TypeError, ValueError) as error:
                raise StoreError(f"batch {k}, its samples counted from 0: {error}") from error
            writer.extend(**_block(packed, batch.column, y, weight, covariates, payload))
    return _opened(cls, path)


def from_transformer(
    cls: type[Store],
    path: Location,
    transformer: Any,
    inputs: Iterable[Any],
    y: Iterable[Any] | None = None,
    weights: Iterable[Any] | None = None,
    covariates: Iterable[Any] | None = None,
    *,
    chunk: int = 1024,
    payload: Name = None,
    **options: Any,
) -> Store:
    """Send inputs through a transformer and write its rows, chunk by chunk.

    Parameters
    ----------
    path : path-like
    transformer : fitted transformer
        Its ``transform`` takes a list of inputs and returns RaggedRows: `TextRows`, `PatchRows`,
        or a pipeline that ends in one.
    inputs : iterable
        Texts, images or paths; read once and never held all together.
    y, weights, covariates : iterables, optional
        One item per input.
    chunk : int
        Inputs that are transformed together.
    payload : str, optional
        Name under which the inputs, strings or paths, are kept: "text", "path".
    **options : see `RowStoreWriter`

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from diagatt.images import PatchRows
    >>> from diagatt.stores import RowStore
    >>> images = np.ones((9, 8, 8))
    >>> patches = PatchRows(4).fit(images)
    >>> RowStore.from_transformer(tempfile.mkdtemp() + "/store", patches, images, chunk=5)
    RowStore(n_samples=9, n_rows=36, n_features=16, dtype=float32, n_shards=1)
    """
    check_payload([payload] if payload else [])
    given = {"y": _one_by_one(y), "weights": weights, COVARIATES: covariates}
    columns = {name: iter(values) for name, values in given.items() if values is not None}
    inputs, start = iter(inputs), 0
    with RowStoreWriter(path, **options) as writer:
        while part := list(islice(inputs, chunk)):
            own = {name: list(islice(values, len(part))) for name, values in columns.items()}
            for name, values in own.items():
                if len(values) < len(part):
                    count = start + len(values)
                    raise StoreError(
                        f"{name} ends after {count} values, but there are more inputs."
                    )
            try:
                rows = RaggedRows.coerce(transformer.transform(part))
            except (TypeError, ValueError) as error:
                last = start + len(part) - 1
                raise StoreError(
                    f"inputs {start} to {last}, counted from {start}: {error}"
                ) from error
            if len(rows) != len(part):
                raise StoreError(f"the transformer made {len(rows)} samples of {len(part)} inputs.")
            writer.extend(rows, **own, **({payload: part} if payload else {}))
            start += len(part)
        for name, rest in columns.items():
            if list(islice(rest, 1)):
                raise StoreError(f"{name} has more than {start} values, one per input.")
    return _opened(cls, path)


def _one_by_one(y: Any) -> Any:
    """Return responses that can be iterated over: a frame has an entry per sample, too."""
    named = names_of(y, "y")
    if named is None and not isinstance(y, Mapping):
        return y
    columns = response_columns(y) or {}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def index(cls: type[Store], folder: Location) -> Store:
    """Make the manifest of a folder of shards that several writers made, and open it.

    Every shard is read and checked: columns, features, at least one sample, finite numbers.
    Shards stand in the order of their names.

    Parameters
    ----------
    folder : path-like
        Contains files ``*.arrow``, from stores with the same columns, and no manifest.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from diagatt.stores import RowStore
    >>> store = RowStore.write(tempfile.mkdtemp() + "/store", [np.ones((3, 2))])
    >>> (store.path / "store.json").unlink()
    >>> RowStore.index(store.path).digest == store.digest
    True
    """
    index_folder(Path(folder))
    return _opened(cls, folder)


def _opened(cls: Any, path: Location) -> Any:
    """Open what was written, with memory for two shards if they are large."""
    largest = max(info.bytes for info in read_manifest(Path(path)).shards)
    return cls(path, memory=max(MEMORY, 2 * largest / 2**20))


def _named_columns(
    present: Collection[str], y: Response, weight: Name, covariates: Names, payload: Names
) -> list[str]:
    """Return the columns that were given by name; refuse those that are not in the table."""
    check_payload(payload)
    named = [name for name in (*_meanings(y).values(), weight, *covariates, *payload) if name]
    for name in named:
        if name not in present:
            raise StoreError(f"column {name!r} is not in the table; it has {list(present)}.")
    return named


def _meanings(y: Response) -> dict[str, str]:
    """Return columns of responses by what they mean."""
    if y is None:
        return {}
    if isinstance(y, Mapping):
        return dict(y)
    return {y: y} if isinstance(y, str) else {name: name for name in y}


def _block(
    rows: RaggedRows,
    column: Callable[[str], Any],
    y: Response,
    weight: Name,
    covariates: Names,
    payload: Names,
) -> dict[str, Any]:
    """Return arguments of `RowStoreWriter.extend`; `column` gives one value per sample."""
    named = {"weights": weight, **{name: name for name in payload}}
    block = {key: column(name) for key, name in named.items() if name}
    if isinstance(y, str):
        block["y"] = column(y)
    elif y is not None:
        block["y"] = {key: np.asarray(column(name)) for key, name in _meanings(y).items()}
    if covariates:
        block[COVARIATES] = np.column_stack([np.asarray(column(name)) for name in covariates])
    return {"rows": rows, **block}
