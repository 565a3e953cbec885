"""Samples that are matrices of rows already: NPZ files, list columns, long tables."""

from __future__ import annotations

import re
import shlex
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.kinds.base import Columns, Inputs, Kind, Option

if TYPE_CHECKING:
    from diagatt.kinds.tables import Table


#: What pandas calls a column that had no name.
UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")


class Rows(Kind):
    """Matrices of rows."""

    name = "rows"
    columns = (
        Option("rows", "Column that holds a list of rows."),
        Option("sample", "Column of sample ids in a table with one line per row."),
    )

    takes = ("target", "groups")

    def opens(self, path: Path) -> bool:
        """Return whether the path is an NPZ file."""
        return path.suffix == ".npz"

    def open(self, path: Path, columns: Columns, memory: float) -> Inputs:
        """Read arrays: ``X``, or ``values`` and ``offsets``; responses are ``y`` by default.

        ``covariates``, ``ids``, ``row_ids``, ``row_weight`` and ``feature_names`` are read if they
        are there.
        """
        from diagatt.ragged import RaggedRows

        found = _arrays(path)
        if "X" in found and "offsets" in found:
            raise ValueError(f"{path} has X and offsets: call packed rows values, not X.")
        if "X" in found:
            X = RaggedRows.coerce(found["X"])
        elif {"values", "offsets"} <= set(found):
            given = {name: found.get(name) for name in ("row_ids", "row_weight")}
            X = RaggedRows(found["values"], found["offsets"], **given)
        else:
            raise ValueError(
                f"{path} needs an array X, or values and offsets; it has {list(found)}."
            )
        X = X.with_names(found.get("feature_names"))
        _refuse_other_counts(path, found, columns, len(X))
        ids = [str(i) for i in found.get("ids", range(len(X)))]
        y, Z = found.get(columns.target or "y"), found.get("covariates")
        y = y[:, 0] if y is not None and y.ndim == 2 else y
        groups = found.get(columns.groups or "groups")
        if columns.groups is not None and groups is None and not columns.of_a_model:
            raise ValueError(f"{path} has no array {columns.groups!r} for --groups.")
        return Inputs(self, X, y, Z, ids, columns, groups)

    def guess(self, table: Table) -> dict[str, str]:
        """Take the only column of lists."""
        nested = [f.name for f in table.data.schema if hasattr(f.type, "value_type")]
        return {"rows": nested[0]} if len(nested) == 1 else {}

    def samples(self, table: Table, column: str) -> tuple[Any, Sequence[Any]]:
        """Return the matrices of a list column."""
        from diagatt.ragged import RaggedRows

        return RaggedRows.from_arrow(table.column(column)), [str(i) for i in range(len(table))]

    def read(self, table: Table, columns: Columns) -> Inputs:
        """Read a list column, or a long table: one line per row, in any order."""
        sample = columns.asked.get("sample")
        if sample is None:
            return super().read(table, columns)
        from diagatt.kinds.categories import covariates, learned, with_category_columns
        from diagatt.kinds.columns import offsets, responses
        from diagatt.ragged import RaggedRows

        own = table.labels(sample)
        columns = learned(table, _with_features(table, columns))
        data, features = with_category_columns(table, columns)
        named = {"row": columns.id, "row_weight": columns.row_weight}
        X, ids = RaggedRows.from_frame(data, sample, features, **named)
        _, first, inverse = np.unique(own, return_index=True, return_inverse=True)

        def per_sample(values: np.ndarray, name: str) -> np.ndarray:
            expected = values[first[inverse]]
            wrong = np.flatnonzero(values != expected)
            if len(wrong):
                i = int(wrong[0])
                here, before = ("empty" if v != v else v for v in (values[i], expected[i]))
                raise ValueError(
                    f"{table.name}, line {i + 2}: {name} is {here}, but sample {own[i]} has "
                    f"{before} before: it must be the same in all its lines, because it belongs "
                    "to the whole sample. What differs from line to line can be a feature, or be "
                    "summed up first, such as by its mean or its last value."
                )
            return values[np.sort(first)]  # in order of first appearance, as X

        y, (Z, names) = responses(table, columns, per_sample), covariates(table, columns)
        if Z is not None:
            pairs = zip(Z.T, names, strict=True)
            Z = np.column_stack([per_sample(values, name) for values, name in pairs])
        groups = table.groups(columns.groups)
        groups = None if groups is None else per_sample(groups, str(columns.groups))
        more = (groups, names, offsets(table, columns, per_sample))
        return Inputs(self, X, y, Z, [str(i) for i in ids], columns, *more)

    def hints(self, inputs: Inputs, **settings: Any) -> list[str]:
        """Name features of a long table that describe samples, and rows that were added later."""
        if inputs.columns.asked.get("sample") is None:
            return []
        from diagatt.kinds.hints import rows_of_follow_up, same_within_samples
        from diagatt.names import listed

        hints = []
        if same := same_within_samples(inputs.X):
            one = len(same) == 1
            hints.append(
                f"{listed(same)} {'is' if one else 'are'} the same in all rows of each sample and "
                f"{'describes' if one else 'describe'} no single row: name what is known of new "
                "samples as --covariates, and leave outcomes out with --drop."
            )
        correlation = None if inputs.y is None else rows_of_follow_up(inputs.X.lengths, inputs.y)
        if correlation is not None:
            hints.append(
                "samples that were observed for longer have more rows (rank correlation "
                f"{correlation:.2f}). Rows from after time 0 tell how long a sample survived, and "
                "scores come out too high: keep the rows up to a fixed day and the samples "
                "observed beyond it, and count times from that day."
            )
        return hints


def _arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of an NPZ file; it may hold no objects, which could run code."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (
        ValueError,
        EOFError,
        TypeError,
        AttributeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(
            f"{path} cannot be read: it is not an NPZ file, is damaged, or holds objects instead "
            "of numbers; write it with numpy.savez."
        ) from error


def _refuse_other_counts(path: Path, found: dict[str, Any], columns: Columns, count: int) -> None:
    """Refuse arrays about samples that have another shape than one entry or line per sample."""
    target = columns.target or "y"
    y = found.get(target)
    if y is not None and y.ndim == 2 and y.shape[1] == 1:
        found = {**found, target: y[:, 0]}
    for name in (target, columns.groups or "groups", "ids", "covariates"):
        array, wanted = found.get(name), 2 if name == "covariates" else 1
        if array is None or (array.ndim == wanted and len(array) == count):
            continue
        one = "one line per sample, (n, q)" if wanted == 2 else "one entry per sample"
        raise ValueError(
            f"{path}: the array {name} must have {one}, for {count} samples; its shape is "
            f"{array.shape}."
        )
    if "ids" in found:
        from diagatt.arrays import refuse_missing

        refuse_missing(
            found["ids"], "ids", lambda i: f"{path}: ids[{i}] is missing: name every sample."
        )


def _with_features(table: Table, columns: Columns) -> Columns:
    """Return the columns with all features, and with the names of columns that are not used.

    A fit that names its features does not use the others; a later file may lack those, but a
    column that the fit did not know is refused.
    """
    single = (*columns.targets, columns.target, columns.id, columns.groups, columns.row_weight)
    used = {*columns.asked.values(), *single, *columns.covariates, *columns.drop}
    used |= set(columns.known.values())
    others = [name for name in table.names if name not in used]
    if not columns.features:
        if "" in others:  # where pandas writes the numbers of the lines
            raise _nameless(table)
        for name in others:
            if UNNAMED.fullmatch(name):
                raise ValueError(
                    f"{table.name}: column {name!r} had no name when pandas read it: leave it out "
                    f"if it counts the lines (--drop {name!r}), or else name it."
                )
        return replace(columns, features=tuple(others))
    known = set(columns.features)
    more = tuple(name for name in others if name not in known)
    if more and columns.of_a_model:
        from diagatt.names import listed

        if "" in more:
            raise _nameless(table)
        raise ValueError(
            f"{table.name} has the column {listed(more)}, which the model does not know: if it is "
            f"not needed, pass --drop {shlex.quote(','.join(more))}."
        )
    return replace(columns, drop=(*columns.drop, *more))


def _nameless(table: Table) -> ValueError:
    return ValueError(
        f"column {table.names.index('') + 1} of {table.name} has no name: if it counts the "
        "lines, write the table without it (index=False in pandas), or else name it."
    )
