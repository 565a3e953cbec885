"""Blocks of samples from a transformer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from diagatt.ragged import RaggedRows
from diagatt.stores.layout import RESERVED
from diagatt.stores.manifest import StoreError

Block = dict[str, Any]  # arguments of RowStoreWriter.extend


def transformed_blocks(
    transformer: Any,
    inputs: Iterable[Any],
    columns: dict[str, Any],
    chunk: int,
    payload: str | None,
) -> Iterator[Block]:
    """Inputs through a transformer, `chunk` of them at a time, with the columns beside them."""
    check_payload([payload] if payload else [])
    inputs, beside = iter(inputs), {name: iter(values) for name, values in columns.items()}
    start = 0
    while part := list(islice(inputs, chunk)):
        found = {name: list(islice(values, len(part))) for name, values in beside.items()}
        for name, values in found.items():
            if len(values) < len(part):
                raise StoreError(
                    f"{name} ends after {start + len(values)} values, but there are more inputs."
                )
        try:
            rows = RaggedRows.coerce(transformer.transform(part))
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"inputs {start} to {start + len(part) - 1}, counted from {start}: {error}"
            ) from error
        if len(rows) != len(part):
            raise StoreError(f"the transformer made {len(rows)} samples of {len(part)} inputs.")
        yield {"rows": rows, **found, **({payload: part} if payload else {})}
        start += len(part)
    for name, values in beside.items():
        if list(islice(values, 1)):
            raise StoreError(f"{name} has more than {start} values, but there are {start} inputs.")


def check_payload(names: Sequence[str]) -> None:
    """Refuse names that stand for something else where blocks are taken in."""
    for name in names:
        if name in RESERVED:
            raise StoreError(f"payload cannot be called {name!r}: choose another name.")
