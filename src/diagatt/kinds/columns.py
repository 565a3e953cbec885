"""The meaning of a table's columns, and exposures, offsets and times to an event in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from diagatt.parameters import shown

if TYPE_CHECKING:
    from diagatt.kinds.tables import Table

# Columns of which there may be several.
LISTS = ("covariates", "features", "drop")
# Numbers about samples: known parts of the predictor, and what times to an event are made of.
OFFSETS, TIMES = ("exposure", "offset"), ("time", "event", "start")
KNOWN = (*OFFSETS, *TIMES)
#: Turns one number per line into one per sample, and refuses samples whose lines differ.
PerSample = Callable[[np.ndarray, str], np.ndarray]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table mean what; model files keep this, so users name them once."""

    asked: Mapping[str, str] = field(default_factory=dict)  # by option: {"text": "review"}
    target: str | None = None
    covariates: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()  # columns that are not used
    id: str | None = None  # names the lines: rows of a long table, samples of any other
    groups: str | None = None  # samples that are held out together: patients, sites
    row_weight: str | None = None  # weights of rows, in a table with one line per row
    # Words of covariates and features that are not numbers; () until they are learned.
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Numbers about samples by their meaning: exposure and offset; time, event and start.
    known: Mapping[str, str] = field(default_factory=dict)
    # Whether they come from a model file: a table may then have no other columns.
    of_a_model: bool = field(default=False, compare=False)
    # Whether features may have empty cells, which are missing entries.
    takes_empty: bool = field(default=False, compare=False)
    # Options that are given again with a model, with what they name.
    again: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        roles: dict[str, str] = {}
        for role, columns in self.roles.items():
            for column in columns:
                if column in roles and len(self.asked) < 2:
                    twice = "twice" if roles[column] == role else f"and as --{roles[column]}"
                    raise ValueError(
                        f"column {column!r} is given as --{role.replace('_', '-')} "
                        f"{twice.replace('_', '-')}: a column has one meaning."
                    )
                roles[column] = role

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """Options that have columns, with these; the words of categories have another role, too."""
        named: dict[str, Any] = {option: (name,) for option, name in self.asked.items()}
        named |= {name: getattr(self, name) for name in LISTS}
        single = {name: getattr(self, name) for name in ("id", "groups", "row_weight")}
        named |= {name: () if column is None else (column,) for name, column in single.items()}
        named["target"] = self.targets
        named |= {role: (column,) for role, column in self.known.items()}
        return {role: columns for role, columns in named.items() if columns}

    @property
    def given(self) -> Mapping[str, tuple[str, ...]]:
        """Options that the command was given, with what they name: none of them may be ignored."""
        if self.of_a_model:
            return self.again
        words = {"categories": tuple(self.categories)} if self.categories else {}
        return {**self.roles, **words}

    @property
    def targets(self) -> tuple[str, ...]:
        """Columns of responses; several outcomes are separated by commas."""
        return tuple(name.strip() for name in (self.target or "").split(",") if name.strip())

    @property
    def as_text(self) -> list[str]:
        """Columns of ids, paths and a model's texts, which stay as written: 007 is not 7."""
        texts = self.asked.get("text") if self.of_a_model else None
        own = (self.asked.get("sample"), self.id, self.groups, self.asked.get("image"), texts)
        return [name for name in own if name]

    def to_json(self) -> dict[str, Any]:
        """Return a flat dictionary that JSON can hold."""
        flat = asdict(self).items()
        passing = ("asked", "of_a_model", "takes_empty", "again")
        others = {name: value for name, value in flat if name not in passing}
        return {**self.asked, **others}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Columns:
        """Return the columns that `to_json` wrote; anything else is a ValueError."""
        if not isinstance(stored, Mapping):
            raise ValueError(f"the columns are {shown(stored)}")
        stored = dict(stored)
        categories = _categories(stored.pop("categories", None) or {})
        known = stored.pop("known", None) or {}
        if not isinstance(known, Mapping) or not all(
            role in KNOWN and isinstance(column, str) for role, column in known.items()
        ):
            raise ValueError(f"the columns of known numbers are {shown(known)}")
        for name, value in stored.items():
            several = name in LISTS
            words = value if several and isinstance(value, list | tuple) else [value]
            fits = all(isinstance(word, str) for word in words) and (words is value) == several
            if value is not None and not fits:
                raise ValueError(f"the columns of {name} are {shown(value)}")
        named = {name: value for name, value in stored.items() if value is not None}
        lists: dict[str, Any] = {name: tuple(named.pop(name, ())) for name in LISTS}
        single = {name: named.pop(name, None) for name in ("target", "id", "groups", "row_weight")}
        return cls(named, **lists, **single, categories=categories, known=dict(known))


def _categories(stored: Any) -> dict[str, tuple[str, ...]]:
    """Return the words of categories that `to_json` wrote."""
    fits = isinstance(stored, Mapping) and all(
        isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
        for words in stored.values()
    )
    if not fits:
        raise ValueError(f"the columns of categories are {shown(stored)}")
    return {name: tuple(words) for name, words in stored.items()}


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

    words = {
        "time": "the times",
        "event": "the events (1 where the event has happened, 0 elsewhere)",
        "start": "the times of entry",
    }
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
