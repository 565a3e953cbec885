"""Numbers about samples in a table: exposures and offsets, and times to an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from diagatt.kinds.columns import OFFSETS, TIMES, Columns

if TYPE_CHECKING:
    from diagatt.kinds.tables import Table

#: Turns one number per line into one per sample, and refuses samples whose lines differ.
PerSample = Callable[[np.ndarray, str], np.ndarray]


def as_they_are(values: np.ndarray, name: str) -> np.ndarray:
    """Return the numbers of a table that has one line per sample."""
    return values


def offsets(
    table: Table, columns: Columns, per_sample: PerSample = as_they_are
) -> dict[str, np.ndarray]:
    """Return exposure and offset, (n,) each, if their columns are named.

    New samples may lack an exposure: their predictions are then per unit of exposure.
    """
    found = {}
    for role in OFFSETS:
        column = columns.known.get(role)
        if column is None or (
            role == "exposure" and columns.of_a_model and column not in table.names
        ):
            continue
        found[role] = per_sample(_numbers(table, column, f"the {role}"), column)
    return found


def responses(
    table: Table, columns: Columns, per_sample: PerSample = as_they_are
) -> np.ndarray | None:
    """Return the responses, (n,): a column, or events and times; None if the table has none.

    Several outcomes have a column each, (n, q).
    """
    if "time" not in columns.known:
        if len(columns.targets) > 1 and columns.target not in table.names:
            return _outcomes(table, columns.targets, per_sample)
        y = table.responses(columns.target)
        return None if y is None else per_sample(y, str(columns.target))
    named = {role: columns.known[role] for role in TIMES if role in columns.known}
    if any(column not in table.names for column in named.values()):
        return None
    from diagatt.lifetimes import make_times

    words = {"time": "the times", "event": "the events", "start": "the times of entry"}
    found = {
        role: per_sample(_numbers(table, column, words[role]), column)
        for role, column in named.items()
    }
    event = found.get("event", np.ones(len(found["time"])))
    if not np.isin(event, (0, 1)).all():
        raise ValueError(
            f"{table.name}: the events {named['event']!r} must be 1 or true where the event has "
            "happened, and 0 or false elsewhere."
        )
    return make_times(event == 1, found["time"], start=found.get("start"))


def _outcomes(table: Table, names: tuple[str, ...], per_sample: PerSample) -> np.ndarray | None:
    """Return several outcomes, (n, q): numbers, or labels that are 0 or 1."""
    if any(name not in table.names for name in names):
        return None
    found = []
    for name in names:
        y = table.responses(name)
        assert y is not None
        if y.dtype.kind not in "iufb":
            raise ValueError(
                f"{table.name}: {name!r} holds words, such as {y[0]!s}; several targets are "
                "numbers each, or 0 and 1: name one target, or encode it."
            )
        found.append(per_sample(y, name))
    table_of = np.column_stack(found)
    return table_of.astype(int) if table_of.dtype == bool else table_of


def _numbers(table: Table, column: str, what: str) -> np.ndarray:
    table.values(column)  # refuses empty cells, by their line
    numbers = table.numbers([column], what)
    assert numbers is not None
    return numbers[:, 0]
