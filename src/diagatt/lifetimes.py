"""Times to an event: the forms in which users pass them, and the one in which they are kept.

Inside, a time is three numbers: when observation began, and the two times between which the event
lies. They are equal for an exact time; the second is infinite where the event was not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import narwhals as nw
import numpy as np

from diagatt.arrays import InputError, float_array

#: Names of the columns that times to an event may have.
COLUMNS = (
    {"time", "event"},
    {"start", "stop", "event"},
    {"lower", "upper"},
    {"start", "lower", "upper"},
)
ACCEPTED = (
    "a structured array of event and time, as scikit-survival's Surv.from_arrays makes it, or "
    "columns named time and event; start, stop and event; or lower and upper"
)


def are_times(names: Collection[str]) -> bool:
    """Return whether columns of these names are times to an event.

    Examples
    --------
    >>> are_times(("event", "time")), are_times(("weight", "height"))
    (True, False)
    """
    return set(names) in COLUMNS


def read_times(y: Any, n_samples: int) -> np.ndarray:
    """Return times to an event as entry, lower and upper, (n, 3) float64.

    Parameters
    ----------
    y : structured array, frame or mapping
        Two fields, of which the first is boolean: event and time, as in scikit-survival. Otherwise
        columns by name: ``time, event``; ``start, stop, event`` (samples that enter late);
        ``lower, upper`` (the event lies between, ``upper`` is infinite if it was not seen), with
        ``start`` if samples enter late.
    n_samples : int

    Examples
    --------
    >>> read_times({"time": [2.0, 5.0], "event": [True, False]}, 2)
    array([[ 0.,  2.,  2.],
           [ 0.,  5., inf]])
    """
    columns = _columns(y)
    found = {name: _numbers(name, column, n_samples) for name, column in columns.items()}
    names = set(found)
    start = found.get("start", np.zeros(n_samples))
    if names in ({"time", "event"}, {"start", "stop", "event"}):
        lower = found["time" if "time" in names else "stop"]
        upper = np.where(_events(found["event"]), lower, np.inf)
    elif names in ({"lower", "upper"}, {"start", "lower", "upper"}):
        lower, upper = found["lower"], found["upper"]
    else:
        raise InputError(
            f"y has the columns {', '.join(columns)}: times to an event are {ACCEPTED}."
        )
    ends = "time" if "time" in names else "stop" if "stop" in names else "upper"
    _refuse(start < 0, lambda i: f"start[{i}] = {start[i]:g} is negative: times begin at 0.")
    last = upper if ends == "upper" else lower
    _refuse(
        last <= 0,
        lambda i: (
            f"{ends}[{i}] = {last[i]:g} is not positive: times are counted from 0; drop the "
            "sample or correct it."
        ),
    )
    _refuse(lower < 0, lambda i: f"lower[{i}] = {lower[i]:g} is negative: times begin at 0.")
    _refuse(
        upper < lower, lambda i: f"upper[{i}] = {upper[i]:g} lies before lower[{i}] = {lower[i]:g}."
    )
    _refuse(
        (last <= start) | (lower < start),
        lambda i: (
            f"{ends}[{i}]: sample {i} ends at {lower[i]:g}, not after it enters at {start[i]:g}: "
            "drop it."
        ),
    )
    return np.column_stack([start, lower, upper])


def make_times(
    event: Any, time: Any, *, start: Any = None, names: tuple[str, str] = ("event", "time")
) -> np.ndarray:
    """Return a structured array of events and times, as scikit-survival uses it.

    Examples
    --------
    >>> make_times([True, False], [2.0, 5.0])["time"]
    array([2., 5.])
    >>> make_times([2.0, 5.0], [1, 0])
    Traceback (most recent call last):
    diagatt.arrays.InputError: event[0] = 2: an event has happened (1 or True) or not (0 or False).
    """
    count = np.size(time)
    happened, times = _events(_numbers("event", event, count)), _numbers("time", time, count)
    kinds = [(names[0], bool), (names[1], np.float64)]
    if start is not None:
        kinds = [("start", np.float64), ("stop", np.float64), ("event", bool)]
    made = np.empty(len(times), dtype=kinds)
    for name, column in zip(made.dtype.names or (), (happened, times), strict=False):
        made[name] = column
    if start is not None:
        made["start"], made["stop"], made["event"] = start, times, happened
    return made


def _columns(y: Any) -> dict[str, Any]:
    """Return the columns of y by name; those of scikit-survival by their order."""
    if y is None:
        raise InputError("fitting requires y to be passed, but the target y is None.")
    if isinstance(y, np.ndarray) and y.dtype.names is not None:
        first, *others = y.dtype.names
        if len(others) == 1 and y.dtype[0] == np.bool_:
            return {"event": y[first], "time": y[others[0]]}
        return {name: y[name] for name in y.dtype.names}
    if isinstance(y, Mapping):
        return dict(y)
    frame = nw.from_native(y, pass_through=True, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        return {name: frame[name].to_numpy() for name in frame.columns}
    raise InputError(f"y is {type(y).__name__}: times to an event are {ACCEPTED}.")


def _numbers(name: str, column: Any, n_samples: int) -> np.ndarray:
    numbers = float_array(column, name, lambda at: f"{name}[{at[0]}]").astype(np.float64)
    if numbers.shape != (n_samples,):
        raise InputError(f"{name} has shape {numbers.shape}, but there are {n_samples} samples.")
    unknown = np.isnan(numbers) if name == "upper" else ~np.isfinite(numbers)
    _refuse(unknown, lambda i: f"{name}[{i}] is {numbers[i]:g}: drop the sample or correct it.")
    return numbers


def _events(event: np.ndarray) -> np.ndarray:
    wrong = (event != 0) & (event != 1)
    _refuse(
        wrong,
        lambda i: (
            f"event[{i}] = {event[i]:g}: an event has happened (1 or True) or not (0 or False)."
        ),
    )
    return event == 1


def _refuse(wrong: np.ndarray, words: Callable[[int], str]) -> None:
    if wrong.any():
        raise InputError(words(int(np.argmax(wrong))))
