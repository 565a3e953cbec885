"""Responses of several numbers per sample: several outcomes, and times to an event.

A store keeps them as one matrix of float64 with a name for every column. Times to an event are
recognized by their names: ``event, time``; ``start, stop, event``; or ``lower, upper``, with or
without ``start``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from diagatt.arrays import InputError, float_array
from diagatt.lifetimes import are_times, read_times
from diagatt.names import Names, checked, listed
from diagatt.stores.shard import StoreError


def response_columns(y: Any) -> dict[str, Any] | None:
    """Return the columns of responses by their names; None if there is one response per sample.

    Parameters
    ----------
    y : array, frame, mapping, or list with an entry per sample
        Columns of an array are called y0, y1, ….

    Examples
    --------
    >>> response_columns([[1, 2], [3, 4]])
    {'y0': array([1, 3]), 'y1': array([2, 4])}
    >>> response_columns([1, 3]) is None
    True
    """
    if isinstance(y, list | tuple) and len(y) and isinstance(y[0], Mapping | np.void):
        y = _of_entries(y)
    elif isinstance(y, list | tuple) and len(y) and _is_vector(y[0]):
        y = _matrix(y)
    if isinstance(y, Mapping):
        return dict(y)
    if isinstance(y, np.ndarray) and y.dtype.names is not None:
        first, *others = y.dtype.names
        if len(others) == 1 and y.dtype[0] == np.bool_:  # as in scikit-survival
            return {"event": y[first], "time": y[others[0]]}
        return {name: y[name] for name in y.dtype.names}
    frame = nw.from_native(y, pass_through=True, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        return {str(name): frame[name].to_numpy() for name in frame.columns}
    if getattr(y, "ndim", 1) == 2:
        return {f"y{k}": column for k, column in enumerate(np.asarray(y).T)}
    return None


def checked_responses(
    columns: Mapping[str, Any], count: int, first: int, before: Names | None
) -> tuple[np.ndarray, Names]:
    """Return responses as a matrix (count, q) in the order of the samples before, and their names.

    Sample 0 is the store's sample `first`.
    """
    names = checked(list(columns), "y")
    if before is not None and set(names) != set(before):
        raise StoreError(
            f"sample {first} has the responses {listed(names)}, those before have "
            f"{listed(before)}: give the same for all samples."
        )
    names = before or names
    try:
        found = [_numbers(name, columns[name], first) for name in names]
        if any(column.shape != (count,) for column in found):
            raise StoreError(f"y has {len(found[0])} lines for {count} samples.")
        if are_times(names):
            read_times(dict(zip(names, found, strict=True)), count)
    except InputError as error:
        where = f"sample {first}: " if count == 1 else f"samples from {first} on: " if first else ""
        raise StoreError(f"{where}{error}") from None
    return np.column_stack(found), names


def as_given(matrix: np.ndarray, names: Names) -> np.ndarray:
    """Return stored responses: times to an event as a structured array, outcomes as they are.

    Examples
    --------
    >>> as_given(np.array([[1.0, 2.5]]), ("event", "time"))
    array([( True, 2.5)], dtype=[('event', '?'), ('time', '<f8')])
    """
    if not are_times(names):
        return matrix
    kinds = [(name, bool if name == "event" else np.float64) for name in names]
    made = np.empty(len(matrix), dtype=kinds)
    for name, column in zip(names, matrix.T, strict=True):
        made[name] = column
    return made


def _numbers(name: str, column: Any, first: int) -> np.ndarray:
    """Return a column of finite numbers; only the upper end of a time may be infinite."""
    numbers = float_array(column, name, lambda at: f"{name}[{at[0]}]").astype(np.float64)
    known = ~np.isnan(numbers) if name == "upper" else np.isfinite(numbers)
    if not known.all():
        i = int(np.argmin(known))
        raise StoreError(f"sample {first + i}: {name} is {numbers[i]:g}, it must be finite.")
    return numbers


def _of_entries(entries: Sequence[Any]) -> Any:
    """Return responses that come one by one, each with its names, as columns."""
    if isinstance(entries[0], np.void):
        return np.array(entries, dtype=entries[0].dtype)
    names = list(entries[0])
    for i, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or set(entry) != set(names):
            raise StoreError(f"y[{i}] is {entry!r}, but y[0] has {listed(names)}.")
    return {name: [entry[name] for entry in entries] for name in names}


def _is_vector(entry: Any) -> bool:
    return isinstance(entry, list | tuple | np.ndarray) and np.size(entry) > 1


def _matrix(entries: Sequence[Any]) -> np.ndarray:
    widths = {np.shape(entry) for entry in entries}
    if len(widths) > 1 or len(next(iter(widths))) != 1:
        raise StoreError(
            f"responses have the shapes {', '.join(map(str, sorted(widths)))}: give the same count "
            "of numbers for every sample."
        )
    return np.asarray(entries)
