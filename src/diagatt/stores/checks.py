"""Checks of what is written to a store; every error names the sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from diagatt.arrays import float_array
from diagatt.stores.row_types import rounded
from diagatt.stores.shard import COVARIATES, RESPONSE, STANDARD, WEIGHT, StoreError

RESERVED = (*STANDARD, "X", "weights")  # names that payload cannot have
_KINDS = {bool: "bool", int: "int64", float: "float64", str: "string"}  # bool first: it is an int


def check_payload(names: Iterable[str]) -> None:
    """Refuse names of payload that mean something else to the writer."""
    for name in names:
        if name in RESERVED:
            raise StoreError(f"payload cannot be called {name!r}: choose another name.")


def checked_rows(values: np.ndarray, offsets: np.ndarray, dtype: str, first: int) -> np.ndarray:
    """Return rows in the store's type, all finite; sample 0 is the store's sample `first`."""
    with np.errstate(over="ignore", invalid="ignore"):
        kept, numbers = rounded(values, dtype)
        if np.isfinite(numbers.sum()):  # then all terms are, and no mask is needed
            return kept
    wrong = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(wrong) == 0:
        return kept
    sample = int(np.searchsorted(offsets, wrong[0], side="right")) - 1
    where = f"sample {first + sample}, row {wrong[0] - offsets[sample]} contains"
    row = values[wrong[0]]
    if np.isfinite(row).all():
        larger = "float32" if dtype == "float16" else "float64"
        raise StoreError(f'{where} a number too large for {dtype}: write with dtype="{larger}".')
    what = "NaN" if np.isnan(row).any() else "infinity"
    raise StoreError(f"{where} {what}: drop the row or impute it.")


def checked_column(
    name: str, values: Any, count: int, first: int, kind: str | None
) -> tuple[list, str]:
    """Return a list of `count` Python values of one kind, and the kind.

    `kind` is that of the samples before `first`; if there are none, the first value decides.
    Whole numbers may stand among floats, but not floats among whole numbers. Values are looked at
    one by one only to name the sample that is refused.
    """
    items = _as_list(values)
    if len(items) != count:
        raise StoreError(f"{name} has {len(items)} values for {count} samples.")
    kinds = {found: _kind(found) for found in set(map(type, items))}
    kind = kind or kinds[type(items[0])]
    allowed = {kind, "int64"} if kind == "float64" else {kind}
    if kind is None or not allowed.issuperset(kinds.values()):
        wrong = [kinds[type(item)] is None or kinds[type(item)] not in allowed for item in items]
        i = wrong.index(True)
        what = f"but those before are {kind}: give all in one type"
        if kinds[type(items[i])] is None:
            what = "not a number, a truth value or a string"
        raise StoreError(f"sample {first + i}: {name} is {items[i]!r}, {what}.")
    if kind == "float64":
        items = list(map(float, items))
    rule = _RULES.get((name, kind)) or _RULES.get(kind)
    if rule and not rule[0](items):
        i = [rule[0]([item]) for item in items].index(False)
        raise StoreError(f"sample {first + i}: {name} is {items[i]!r}, {rule[1]}.")
    return items, kind


def checked_covariates(values: Any, count: int, first: int, width: int | None) -> np.ndarray:
    """Return covariates as a matrix (count, q) of finite numbers."""
    try:
        if not isinstance(values, np.ndarray | list | tuple):  # a frame, whose names are kept
            values = float_array(values, COVARIATES, lambda at: f"sample {first + at[0]}")
        matrix = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StoreError(f"sample {first}: covariates are not numbers ({error}).") from None
    if matrix.ndim != 2 or len(matrix) != count or matrix.shape[1] == 0:
        raise StoreError(
            f"sample {first}: covariates have shape {matrix.shape} for {count} samples; give at "
            "least one number per sample."
        )
    q = matrix.shape[1]
    if width not in (None, q):
        raise StoreError(f"sample {first} has {q} covariates, those before have {width}.")
    wrong = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(wrong):
        raise StoreError(f"sample {first + wrong[0]}: covariates contain NaN or infinity.")
    return matrix


def _is_text(items: list[str]) -> bool:
    try:
        return b"\0" not in "".join(items).encode()
    except UnicodeEncodeError:
        return False


def _fits_64_bits(items: list[int]) -> bool:
    return min(items) >= -(2**63) and max(items) < 2**63


def _is_finite(items: list[float]) -> bool:
    return all(map(isfinite, items))


def _is_weight(items: list[float]) -> bool:
    return _is_finite(items) and min(items) >= 0


# What values must satisfy, by kind or by name and kind: a test of all of them, and its demand.
_RULES: dict[Any, tuple[Callable[[list], bool], str]] = {
    "string": (_is_text, "which holds a NUL or half of a surrogate pair: decode the text again"),
    "int64": (_fits_64_bits, "beyond 64 bits: give floats"),
    (RESPONSE, "float64"): (_is_finite, "it must be finite"),
    (WEIGHT, "float64"): (_is_weight, "it must be finite and not negative"),
}


def _as_list(values: Any) -> list:
    if hasattr(values, "to_pylist"):
        return values.to_pylist()
    if isinstance(values, np.ndarray) or not isinstance(values, Sequence) or len(values) == 0:
        values = np.asarray(values)
        return values.tolist() if values.ndim == 1 else list(values)
    return list(values) if set(map(type, values)) <= _KINDS.keys() else list(map(_item, values))


def _item(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value


def _kind(found: type) -> str | None:
    return next((kind for known, kind in _KINDS.items() if issubclass(found, known)), None)
