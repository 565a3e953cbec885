"""What packed rows and their weights must satisfy; every error names the sample and the row."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.arrays import InputError, float_array

WEIGHTS = (1e-30, 1e30)  # smallest and largest positive weight: float32 holds both
SEARCHED_ROWS = 65536  # rows that are searched for NaN in one go


def row_weights(row_weight: Any, offsets: np.ndarray) -> np.ndarray:
    """Return the weights of rows, (N,) float64, which are positive numbers.

    Examples
    --------
    >>> row_weights([1.0, 0.0], np.array([0, 2]))
    Traceback (most recent call last):
    diagatt.arrays.InputError: sample 0, row 1 has the weight 0: weights are positive; drop the row.
    """
    given = float_array(row_weight, "row_weight", lambda at: f"row_weight[{at[0]}]")
    given = given.astype(np.float64, copy=False)
    if given.shape != (int(offsets[-1]),):
        raise InputError(
            f"row_weight must be one number per row, {int(offsets[-1])} of them, got shape "
            f"{given.shape}."
        )
    low, high = WEIGHTS
    wrong = np.flatnonzero(~((given >= low) & (given <= high)))  # NaN, too
    if len(wrong):
        i = int(wrong[0])
        advice = "drop the row" if given[i] == 0 else f"they lie between {low:g} and {high:g}"
        raise InputError(
            f"{row_name(offsets, i)} has the weight {given[i]:g}: weights are positive; {advice}."
        )
    return given


def refuse_unusable(
    rows: Any, allow_missing: bool = False, advice: str = "drop the row or impute it"
) -> None:
    """Refuse NaN, infinity and entries whose squares overflow, naming the sample and the row.

    With `allow_missing`, NaN is a missing entry and allowed.
    """
    if rows.is_sparse:
        _refuse_unusable_entries(rows)
        return
    flat = rows.values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.dot(flat, flat)):  # one pass, no temporary
            return
    limit = _largest_usable(rows.dtype)
    for start in range(0, len(rows.values), SEARCHED_ROWS):
        block = rows.values[start : start + SEARCHED_ROWS]
        bad = np.abs(block) > limit if allow_missing else ~(np.abs(block) <= limit)
        wrong = np.flatnonzero(bad.any(axis=1))
        if len(wrong):
            first = int(wrong[0])
            entry = block[first][bad[first]][0]
            raise _unusable(rows, start + first, entry, advice)


def _refuse_unusable_entries(rows: Any) -> None:
    """Do the same with sparse rows, of which only stored entries are looked at."""
    entries = rows.values.data
    wrong = np.flatnonzero(~(np.abs(entries) <= _largest_usable(rows.dtype)))
    if len(wrong):
        row = int(np.searchsorted(rows.values.indptr, wrong[0], side="right")) - 1
        raise _unusable(rows, row, entries[wrong[0]], "drop the row or impute it")


def _largest_usable(dtype: Any) -> float:
    """Return the largest number whose square has this type."""
    return float(np.sqrt(np.finfo(dtype).max))


def _unusable(rows: Any, row: int, entry: float, advice: str) -> InputError:
    """Return the error about an entry of a packed row."""
    where = row_name(rows.offsets, row)
    if np.isnan(entry):
        return InputError(f"{where} contains NaN: {advice}.")
    if np.isinf(entry):
        return InputError(f"{where} contains infinity: drop the row or impute it.")
    return InputError(
        f"{where} holds {abs(entry):.3g}, which is too large: its square is beyond "
        f"{np.dtype(rows.dtype)}. Standardize the rows, or drop this one."
    )


def refuse_overflow(rows: Any) -> None:
    """Refuse `RaggedRows` whose scores or predictions are not numbers, naming the row."""
    at = int(np.abs(rows.values).max(axis=1).argmax())
    largest = np.abs(rows.values[at]).max()
    raise InputError(
        f"{row_name(rows.offsets, at)} holds an entry of size {largest:.3g}, which is too large "
        f"for this model: its score or prediction is beyond {rows.dtype}. Drop or scale the row."
    )


def row_name(offsets: np.ndarray, packed: int) -> str:
    """Name the sample and the row that stand at a place of the packed rows.

    Examples
    --------
    >>> row_name(np.array([0, 2, 5]), 3)
    'sample 1, row 1'
    """
    sample = int(np.searchsorted(offsets, packed, side="right")) - 1
    return f"sample {sample}, row {packed - int(offsets[sample])}"
