"""What a kind of input answers, and the samples that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from diagatt.kinds.columns import Columns

if TYPE_CHECKING:
    from diagatt.kinds.answers import Answers
    from diagatt.kinds.tables import Table

__all__ = ["KINDS", "Columns", "Inputs", "Kind", "Option", "diagonal"]

#: Every kind by its name, in the order in which they were defined.
KINDS: dict[str, Kind] = {}


@dataclass(frozen=True)
class Option:
    """An option ``--name`` that a kind adds to the commands."""

    name: str
    help: str
    type: Any = str | None
    default: Any = None
    min: float | None = None
    makes_rows: bool = False  # whether `diagatt store write` takes it, too
    changes: bool = False  # whether `diagatt predict` takes it, too, and may get another value
    value: str = "NAME"  # placeholder of its value in help texts


@dataclass(frozen=True)
class Inputs:
    """Samples of a file."""

    kind: Kind
    X: Any  # RaggedRows, list of str, list of paths, RowStore, …
    y: np.ndarray | None  # (n,), or (n, q) of several outcomes
    covariates: np.ndarray | None  # (n, q)
    ids: Sequence[Any]  # names of the samples
    columns: Columns = field(default_factory=Columns)  # completed by what was learned while reading
    groups: np.ndarray | None = None  # (n,), samples of one group are held out together
    covariate_names: tuple[str, ...] = ()  # q names, including columns that were made of words
    known: Mapping[str, np.ndarray] = field(default_factory=dict)  # exposure and offset, (n,)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def named_covariates(self) -> Any:
        """The covariates, as a table if the columns have names; None if there are none."""
        names = self.covariate_names or self.columns.covariates
        if self.covariates is None or not names:
            return self.covariates
        import pyarrow as pa

        return pa.table(dict(zip(names, self.covariates.T, strict=True)))

    @property
    def named_y(self) -> Any:
        """The responses; several outcomes as a table with their names."""
        if self.y is None or self.y.ndim == 1:
            return self.y
        import pyarrow as pa

        return pa.table(dict(zip(self.columns.targets, self.y.T, strict=True)))

    def take(self, samples: np.ndarray) -> Inputs:
        """Return these samples, in this order."""
        X = [self.X[i] for i in samples] if isinstance(self.X, list) else self.X[samples]
        arrays = (self.y, self.covariates, self.groups)
        y, Z, groups = (None if a is None else a[samples] for a in arrays)
        ids, more = [self.ids[i] for i in samples], (groups, self.covariate_names)
        known = {name: numbers[samples] for name, numbers in self.known.items()}
        return Inputs(self.kind, X, y, Z, ids, self.columns, *more, known)


class Kind:
    """One kind of input; a subclass registers itself in `KINDS` and overrides what differs."""

    name: ClassVar[str]
    # Options that name the column of a table which holds the samples.
    columns: ClassVar[tuple[Option, ...]] = ()
    # Options that say how a file or folder is read; model files keep them with the columns.
    reading: ClassVar[tuple[Option, ...]] = ()
    # Options of `diagatt fit` for `model`, and of `diagatt store write` for `transformer`.
    settings: ClassVar[tuple[Option, ...]] = ()
    # Module and names of the classes of saved models that only this kind knows.
    home: ClassVar[str] = ""
    models: ClassVar[tuple[str, ...]] = ()
    # Name under which a store keeps the inputs.
    payload: ClassVar[str | None] = None
    # What the responses are called if no column is.
    target: ClassVar[str] = "y"
    # Options about columns that a path of this kind takes; for the others it would be a table.
    takes: ClassVar[tuple[str, ...]] = ()
    # Whether the memory that rows take can be limited.
    bounded: ClassVar[bool] = False
    # Whether samples lie on disk in parts, which several processes may share.
    in_passes: ClassVar[bool] = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        KINDS[cls.name] = cls()

    def opens(self, path: Path) -> bool:
        """Return whether this kind reads the path if no option is given."""
        return False

    def reads(self, path: Path, columns: Columns) -> bool:
        """Return whether this kind reads the path with these options."""
        return self.opens(path)

    def open(self, path: Path, columns: Columns, memory: float) -> Inputs:
        """Read a path that `reads` accepts; `memory` limits MiB of rows where that is possible.

        A kind that is one column of a table has no paths of its own: it defines `samples` instead.
        """
        raise NotImplementedError(f"the kind {self.name} reads columns of tables, not paths.")

    def guess(self, table: Table) -> dict[str, str]:
        """Return the option and column to take if a table comes without any; empty if unclear."""
        return {}

    def samples(self, table: Table, column: str) -> tuple[Any, Sequence[Any]]:
        """Return the samples that a column holds, one per line, and their names.

        A kind that lies in files of its own has no column: it defines `open` instead.
        """
        raise NotImplementedError(f"the kind {self.name} reads paths, not columns of tables.")

    def read(self, table: Table, columns: Columns) -> Inputs:
        """Read the samples of a table."""
        (column,) = columns.asked.values()
        X, ids = self.samples(table, column)
        if columns.id is not None:
            ids = table.strings(columns.id)
        from diagatt.kinds.categories import covariates, learned
        from diagatt.kinds.columns import offsets, responses

        columns = learned(table, columns)
        y, (Z, names) = responses(table, columns), covariates(table, columns)
        more = (table.groups(columns.groups), names, offsets(table, columns))
        return Inputs(self, X, y, Z, ids, columns, *more)

    def split(self, inputs: Inputs, share: float, seed: int) -> tuple[Inputs, Inputs | None]:
        """Hold out a random share of the samples; samples of one group stay together."""
        order = np.random.default_rng(seed).permutation(len(inputs))
        count = round(share * len(inputs))
        if not share:
            return inputs, None
        if not count:
            raise ValueError(f"--split {share:g} of {len(inputs)} samples holds out none.")
        if inputs.groups is not None:
            order, count = _by_group(inputs.groups, order, count)
        return inputs.take(np.sort(order[count:])), inputs.take(np.sort(order[:count]))

    def hints(self, inputs: Inputs, **settings: Any) -> list[str]:
        """Return sentences about inputs that do not suit the settings or the method."""
        return []

    def in_memory(self, inputs: Inputs) -> Inputs:
        """Return the same samples in memory."""
        return inputs

    def transformer(self, X: Any, **settings: Any) -> Any:
        """Return a fitted transformer to RaggedRows; None if the inputs are rows already."""
        return None

    def model(
        self, classifies: bool, n_samples: int, asked: dict[str, Any], seed: int, **settings: Any
    ) -> Any:
        """Return the unfitted model; `asked` are parameters of its diagonalized attention."""
        return diagonal(classifies)(**asked, random_state=seed, verbose=True)

    def fit(self, model: Any, inputs: Inputs, class_weight: str | None = None) -> None:
        """Fit a model to samples with responses; "balanced" gives all classes the same weight."""
        known = {"covariates": inputs.named_covariates, "groups": inputs.groups, **inputs.known}
        if class_weight is not None:
            from diagatt.coerce import class_weights

            weights = class_weights(class_weight, inputs.y, None, len(inputs))
            known |= {"sample_weight": weights}
        model.fit(inputs.X, inputs.named_y, **{k: v for k, v in known.items() if v is not None})

    def places(self, answers: Answers, head: int) -> dict[str, Any]:
        """Return the columns that say where a head looked, each of n entries."""
        found: dict[str, Any] = {"row": answers.located[:, head]}
        ids = getattr(answers.rows, "row_ids", None)
        if ids is not None:
            starts = answers.rows.offsets[:-1]
            pairs = zip(starts, found["row"], strict=True)
            found["row_id"] = [None if row < 0 else ids[start + row] for start, row in pairs]
        if answers.located_weights is not None:
            found["weight"] = answers.located_weights[:, head]
        strongest = answers.strongest(head)
        return found if strongest is None else {**found, "features": strongest}

    def drawing(self, prepared: Any) -> dict[str, Any]:
        """Return what `report.write_page` draws rows on: texts and spans, images and boxes."""
        return {}


def _by_group(groups: np.ndarray, order: np.ndarray, count: int) -> tuple[np.ndarray, int]:
    """Return an order in which groups stay together, and the end of a group near `count`."""
    _, first, code = np.unique(groups[order], return_index=True, return_inverse=True)
    if len(first) < 2:
        raise ValueError("all samples belong to one group, so no group can be held out.")
    together = np.argsort(first[code], kind="stable")
    ends = np.flatnonzero(np.diff(first[code][together])) + 1  # where a group ends, but the last
    return order[together], int(ends[np.argmin(np.abs(ends - count))])


def survival(kind: Kind, asked: dict[str, Any], seed: int) -> Any:
    """Return the unfitted model of times to an event."""
    from diagatt.estimators import DiagAttSurvival

    if kind.models:
        raise ValueError(
            f"--time is for rows: times to an event are not fitted to {kind.name}s; make rows from "
            "them with `diagatt store write`, and fit to the store."
        )
    return DiagAttSurvival(**asked, random_state=seed, verbose=True)


def diagonal(classifies: bool) -> Any:
    """Return `DiagAttClassifier` or `DiagAttRegressor`."""
    from diagatt.estimators import DiagAttClassifier, DiagAttRegressor

    return DiagAttClassifier if classifies else DiagAttRegressor
