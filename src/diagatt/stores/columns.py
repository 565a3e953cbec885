"""Checks of what is written: every error names the sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from diagatt.stores.layout import RESPONSE, WEIGHT
from diagatt.stores.manifest import StoreError

_BLOCK = 1 << 20  # numbers looked at in one go


def checked_rows(
    values: np.ndarray, offsets: np.ndarray, dtype: np.dtype, first: int
) -> np.ndarray:
    """Rows in the store's type, all finite; sample 0 is the store's sample `first`."""
    with np.errstate(over="ignore"):
        kept = np.ascontiguousarray(values, dtype=dtype)
    row = _first_not_finite(kept)
    if row is None:
        return kept
    sample = int(np.searchsorted(offsets, row, side="right")) - 1
    where = f"sample {first + sample}, row {row - offsets[sample]} contains"
    if np.isfinite(values[row]).all():
        raise StoreError(f'{where} a number too large for {dtype}: write with dtype="float64".')
    what = "NaN" if np.isnan(values[row]).any() else "infinity"
    raise StoreError(f"{where} {what}: drop the row or impute it.")


def checked_column(
    name: str, values: Any, count: int, first: int, kind: str | None
) -> tuple[list, str]:
    """A list of Python values of one kind, and the kind.

    Parameters
    ----------
    name : str
    values : array-like of shape (count,)
    count : int
    first : int
        Number of the first sample.
    kind : str or None
        Kind of the column so far; the first value decides it.
    """
    items = _items(values)
    if len(items) != count:
        raise StoreError(f"{name} has {len(items)} values for {count} samples.")
    for i, item in enumerate(items):
        found = _kind(item)
        if found is None:
            raise StoreError(
                f"sample {first + i}: {name} is {item!r}, not a number, a truth value or a string."
            )
        kind = found if kind is None else kind
        if found != kind and (found, kind) != ("int64", "float64"):
            raise StoreError(
                f"sample {first + i}: {name} is {item!r}, but those before are {kind}: give all "
                "in one type."
            )
    assert kind is not None  # there is at least one sample
    _CHECKS[kind](name, items, first)
    return [float(item) for item in items] if kind == "float64" else items, kind


def checked_covariates(values: Any, count: int, first: int, width: int | None) -> np.ndarray:
    """Covariates (count, q), finite."""
    try:
        matrix = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StoreError(f"sample {first}: covariates are not numbers ({error}).") from None
    if matrix.ndim != 2 or len(matrix) != count or matrix.shape[1] == 0:
        raise StoreError(
            f"sample {first}: covariates have shape {matrix.shape} for {count} samples; give at "
            "least one number a sample."
        )
    if width is not None and matrix.shape[1] != width:
        raise StoreError(
            f"sample {first} has {matrix.shape[1]} covariates, those before have {width}."
        )
    wrong = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(wrong):
        raise StoreError(f"sample {first + wrong[0]}: covariates contain NaN or infinity.")
    return matrix


def _check_floats(name: str, items: list, first: int) -> None:
    if name not in (RESPONSE, WEIGHT):
        return
    numbers = np.asarray(items, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers) | ((numbers < 0) & (name == WEIGHT)))
    if len(wrong):
        asked = "finite and not negative" if name == WEIGHT else "finite"
        raise StoreError(
            f"sample {first + wrong[0]}: {name} is {numbers[wrong[0]]}, it must be {asked}."
        )


def _check_integers(name: str, items: list, first: int) -> None:
    for i, item in enumerate(items):
        if not -(2**63) <= item < 2**63:
            raise StoreError(f"sample {first + i}: {name} is {item}, beyond 64 bits: give floats.")


def _check_strings(name: str, items: list, first: int) -> None:
    for i, item in enumerate(items):
        if item.isascii() and "\0" not in item:
            continue
        if any("\ud800" <= c <= "\udfff" for c in item) or "\0" in item:
            raise StoreError(
                f"sample {first + i}: {name} is {item!r}, which holds a NUL or half of a surrogate "
                "pair: decode the text again."
            )


_CHECKS: dict[str, Callable[[str, list, int], None]] = {
    "float64": _check_floats,
    "int64": _check_integers,
    "bool": lambda name, items, first: None,
    "string": _check_strings,
}


def _items(values: Any) -> list:
    if hasattr(values, "to_pylist"):
        return values.to_pylist()
    if isinstance(values, np.ndarray) or not isinstance(values, Sequence) or len(values) == 0:
        values = np.asarray(values)
        return values.tolist() if values.ndim == 1 else list(values)
    return [_item(value) for value in values]


def _item(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value


def _kind(item: Any) -> str | None:
    for kind, types in (("bool", bool), ("int64", int), ("float64", float), ("string", str)):
        if isinstance(item, types):
            return kind
    return None


def _first_not_finite(values: np.ndarray) -> int | None:
    """First row with NaN or infinity; a sum is finite only if all its terms are."""
    step = max(1, _BLOCK // values.shape[1])
    for start in range(0, len(values), step):
        block = values[start : start + step]
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum()):
                continue
        wrong = np.flatnonzero(~np.isfinite(block).all(axis=1))
        if len(wrong):
            return start + int(wrong[0])
    return None
