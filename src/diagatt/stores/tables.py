"""Stores from tables: one line a row, or a column of lists of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from diagatt.ragged import RaggedRows
from diagatt.stores.building import Location, StoreBuilders
from diagatt.stores.layout import COVARIATES, RESERVED, RESPONSE
from diagatt.stores.manifest import StoreError
from diagatt.stores.sources import Block, check_payload


class TableBuilders(StoreBuilders):
    """Class methods of `RowStore` for tables."""

    @classmethod
    def from_frame(
        cls,
        path: Location,
        frame: Any,
        sample: str,
        *,
        y: str | None = None,
        weight: str | None = None,
        covariates: Sequence[str] = (),
        payload: Sequence[str] = (),
        features: Sequence[str] | None = None,
        **options: Any,
    ) -> Self:
        """Write a long table: one line a row, a column that says which sample it belongs to.

        Parameters
        ----------
        path : path-like
        frame : pandas or polars DataFrame, pyarrow Table, or mapping of columns
        sample : str
            Column of sample ids, kept as payload. Samples keep the order of first appearance.
        y, weight : str, optional
            Columns of responses and weights, the same in all lines of a sample.
        covariates, payload : sequences of str
            Columns that are the same in all lines of a sample.
        features : sequence of str, optional
            Columns of the rows; all that are not named otherwise by default.
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
        block = _frame_block(frame, sample, _named(y, weight), covariates, payload, features)
        return cls._from_blocks(path, [block], options)

    @classmethod
    def from_arrow(
        cls,
        path: Location,
        data: Any,
        rows: str,
        *,
        y: str | None = None,
        weight: str | None = None,
        covariates: Sequence[str] = (),
        payload: Sequence[str] = (),
        **options: Any,
    ) -> Self:
        """Write a table with a column of lists of rows, batch by batch.

        Parameters
        ----------
        path : path-like
        data : pyarrow Table, RecordBatchReader, Dataset, ParquetFile, or iterable of batches
        rows : str
            Column of lists of lists of numbers.
        y, weight : str, optional
        covariates, payload : sequences of str
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
        blocks = _arrow_blocks(data, rows, _named(y, weight), covariates, payload)
        return cls._from_blocks(path, blocks, options)


def _named(y: str | None, weight: str | None) -> dict[str, str | None]:
    return {RESPONSE: y, "weights": weight}


def _frame_block(
    frame: Any,
    sample: str,
    named: dict[str, str | None],
    covariates: Sequence[str],
    payload: Sequence[str],
    features: Sequence[str] | None,
) -> Block:
    """All samples of a long table; what is said of a sample must be the same in all its lines."""
    check_payload(payload)
    asked = [name for name in [*named.values(), *covariates, *payload] if name]
    columns = list(getattr(frame, "column_names", None) or getattr(frame, "columns", frame))
    chosen = features or [name for name in columns if name not in (sample, *asked)]
    for name in asked:
        if name not in columns:
            raise StoreError(f"column {name!r} is not in the table; it has {columns}.")
    rows, ids = RaggedRows.from_frame(frame, sample, chosen)
    own = np.asarray(frame[sample])
    _, first, inverse = np.unique(own, return_index=True, return_inverse=True)

    def once(name: str) -> np.ndarray:
        values = np.asarray(frame[name])
        wrong = np.flatnonzero(values != values[first[inverse]])
        if len(wrong):
            i = int(wrong[0])
            raise StoreError(
                f"line {i}: {name} is {values[i]!r}, but {values[first[inverse[i]]]!r} before for "
                f"sample {own[i]!r}: it must be the same in all its lines."
            )
        return values[np.sort(first)]

    block: Block = {key: once(name) for key, name in named.items() if name}
    if covariates:
        block[COVARIATES] = np.column_stack([once(name) for name in covariates])
    known = ids.tolist()
    kept = known if isinstance(known[0], str | int | float) else [str(value) for value in known]
    own_name = "sample" if sample in RESERVED else sample
    return {"rows": rows, **block, own_name: kept, **{name: once(name) for name in payload}}


def _arrow_blocks(
    data: Any,
    rows: str,
    named: dict[str, str | None],
    covariates: Sequence[str],
    payload: Sequence[str],
) -> Iterator[Block]:
    """Samples of a table, a reader, a dataset or an iterable of record batches, by batch."""
    check_payload(payload)
    for name in ("to_batches", "iter_batches"):
        if hasattr(data, name):
            data = getattr(data, name)()
            break
    for number, batch in enumerate([data] if hasattr(data, "num_rows") else data):
        names = [name for name in [rows, *named.values(), *covariates, *payload] if name]
        for name in names:
            if name not in batch.schema.names:
                raise StoreError(f"there is no column {name!r}; there are {batch.schema.names}.")
        if batch.num_rows == 0:
            continue
        try:
            packed = RaggedRows.from_arrow(batch.column(rows))
        except (TypeError, ValueError) as error:
            raise StoreError(f"batch {number}, counted from its own first: {error}") from error
        block: Block = {key: batch.column(name) for key, name in named.items() if name}
        if covariates:
            found = [batch.column(name).to_numpy(zero_copy_only=False) for name in covariates]
            block[COVARIATES] = np.column_stack(found)
        yield {"rows": packed, **block, **{name: batch.column(name) for name in payload}}
