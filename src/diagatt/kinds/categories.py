"""Words as numbers: a column of words becomes columns of zeros and ones, one per word.

Which words there are is learned in `fit` and kept in the model file, so that a new table has the
same columns whatever words it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute

from diagatt.kinds.number_words import advice, is_number
from diagatt.names import listed

if TYPE_CHECKING:
    from diagatt.kinds.columns import Columns
    from diagatt.kinds.tables import Table

# More different words than this are ids or free text.
MOST_LEVELS = 50


def learned(table: Table, columns: Columns) -> Columns:
    """Return the columns with the words of every category, as far as they are not known yet."""
    known = dict(columns.categories)
    if columns.of_a_model:
        return columns
    words = [name for name in columns.covariates if is_text(table, name)]
    for name in dict.fromkeys([*known, *words]):
        if known.get(name):
            continue
        if name not in (*columns.covariates, *columns.features):
            raise ValueError(
                f"--categories {name}: a category is a covariate or, with --sample, a feature."
            )
        levels = tuple(sorted(set(table.strings(name))))
        if len(levels) > MOST_LEVELS:
            raise ValueError(
                f"{table.name}: column {name!r} has {len(levels)} different words, too many for "
                f"a category (at most {MOST_LEVELS}); leave it out with --drop {name}."
            )
        if len(levels) < 2:
            raise ValueError(
                f"{table.name}: column {name!r} is {levels[0]!r} in every line, which says "
                f"nothing: leave it out with --drop {name}."
            )
        known[name] = levels
    return replace(columns, categories=known)


def covariates(table: Table, columns: Columns) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return covariates of the lines, (n, q), and their names.

    A category of k words becomes k − 1 columns such as ``sex=m``; the intercept contains the effect
    of the first word.
    """
    found: dict[str, np.ndarray] = {}
    for name in columns.covariates:
        levels = columns.categories.get(name)
        if levels is None:
            numbers = table.numbers([name])
            assert numbers is not None
            found[name] = numbers[:, 0]
        else:
            found |= _indicators(table, name, levels, levels[1:])
    return (np.column_stack(list(found.values())) if found else None), tuple(found)


def with_category_columns(table: Table, columns: Columns) -> tuple[pa.Table, list[str]]:
    """Return the table with one column per word of each category of the features, and all names."""
    data, names = table.data, []
    for name in columns.features:
        levels = columns.categories.get(name)
        if levels is None:
            later = columns.features[columns.features.index(name) + 1 :]
            others = [other for other in later if other not in columns.categories]
            refuse_words(table, name, others, known=columns.of_a_model)
            if not columns.takes_empty:
                refuse_empty(table, name, known=columns.of_a_model)
            names.append(name)
            continue
        for made, values in _indicators(table, name, levels, levels).items():
            data = data.append_column(made, pa.array(values))
            names.append(made)
    return data, names


def refuse_words(table: Table, name: str, others: Sequence[str] = (), known: bool = False) -> None:
    """Refuse a feature that holds words or dates, say what can be done, and name others like it.

    A model needs every feature that is `known` to it, so that none can be left out.
    """
    also = [other for other in others if is_text(table, other) or is_temporal(table, other)]
    more = f" Not numbers, either: {listed(also)}." if also else ""
    drop = "" if known else f", or leave the column out (--drop {name})"
    if is_temporal(table, name):
        ways = (
            ""
            if known
            else f", leave it out (--drop {name}), or let it name the rows (--id {name})"
        )
        raise ValueError(
            f"{table.name}: column {name!r} holds dates or durations, and features are numbers: "
            f"write numbers, such as days since the first{ways}.{more}"
        )
    if pa.types.is_nested(table.column(name).type):
        raise ValueError(
            f"{table.name}: column {name!r} holds lists or objects, and features are numbers: make "
            f"a column of each of their numbers{drop}.{more}"
        )
    if not is_text(table, name):
        return
    values = table.column(name).to_pylist()
    words = [i for i, value in enumerate(values) if value is not None and not is_number(value)]
    if not words:
        raise ValueError(
            f"{table.name}: the numbers of column {name!r} are stored as text: convert it to "
            f"numbers{drop}."
        )
    line, way = words[0], advice([values[i] for i in words])
    place = f"{table.name}, line {line + 2}: {name!r} is {values[line]!r}"
    if way:
        empty = way.startswith("leave") and not known
        way += " and pass --missing marginalize" if empty else ""
        raise ValueError(
            f"{place}, not a number, as in {_lines(len(words))} of this column: {way}{drop}."
        )
    if known or len(words) < len(values) / 2:
        most = ", and most of this column are numbers" if len(words) < len(values) / 2 else ""
        raise ValueError(
            f"{place}{most or ', not a number'}: correct or drop the {_lines(len(words))} with "
            f"words{drop}.{more if known else ''}"
        )
    raise ValueError(
        f"{table.name}, line {line + 2}: column {name!r} holds {values[line]!r}, and features are "
        f"numbers: leave it out (--drop {name}), turn its words into columns (--categories "
        f"{name}), or say what it is (--id, --groups, --covariates, --target).{more}"
    )


def is_temporal(table: Table, name: str) -> bool:
    """Return whether a column holds dates, times or durations."""
    return pa.types.is_temporal(table.column(name).type)


def is_text(table: Table, name: str) -> bool:
    """Return whether a column holds words."""
    kind = table.column(name).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def refuse_empty(table: Table, name: str, known: bool = False) -> None:
    """Refuse a feature with empty cells, naming the line; see `refuse_words` for `known`."""
    missing = table.column(name).is_null(nan_is_null=True)
    count = pa.compute.sum(missing).as_py() or 0
    if count:
        line = missing.to_pylist().index(True) + 2  # the header is line 1
        ways = "fill the cells or drop the lines"
        if not known:
            ways = f"fill the cells, drop the lines, or pass --drop {name} or --missing marginalize"
        raise ValueError(
            f"{table.name}, line {line}: {name!r} is empty or not a number, as in {_lines(count)} "
            f"of this column: {ways}."
        )


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _indicators(
    table: Table, name: str, levels: Sequence[str], kept: Sequence[str]
) -> Mapping[str, np.ndarray]:
    values = table.labels(name)
    unknown = np.flatnonzero(~np.isin(values, levels))
    if len(unknown):
        i = int(unknown[0])
        raise ValueError(
            f"{table.name}, line {i + 2}: {name} is {values[i]!s}, which the model does not know; "
            f"it knows {', '.join(levels)}."
        )
    return {f"{name}={level}": (values == level).astype(np.float64) for level in kept}
