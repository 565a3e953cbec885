"""Options that several commands share, and those that the kinds of input add."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diagatt.kinds import KINDS, Columns, Kind, Option

if TYPE_CHECKING:
    from diagatt.distributed import Job

Data = Annotated[
    Path, typer.Argument(help="Samples: CSV, TSV, JSONL, Parquet, Feather, NPZ, or a store.")
]
Memory = Annotated[
    float, typer.Option(min=1, help="MiB that the rows of a store may take in memory.")
]
Model = Annotated[Path, typer.Argument(help="A model that `diagatt fit` wrote.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")]
Target = Annotated[str | None, typer.Option(help="Column of responses.", metavar="COLUMN")]
Covariates = Annotated[
    str, typer.Option(help="Columns of covariates, separated by commas.", metavar="A,B")
]
Features = Annotated[
    str,
    typer.Option(
        help="Columns of features in a table with one line per row; default: all that remain.",
        metavar="A,B",
    ),
]
Drop = Annotated[
    str, typer.Option(help="Columns that are not used, separated by commas.", metavar="A,B")
]
Id = Annotated[
    str | None,
    typer.Option(
        help="Column that names the lines: rows if --sample names the samples, else samples.",
        metavar="COLUMN",
    ),
]


class WithKinds:
    """A command whose ``**asked`` are the options of all kinds that are registered when it runs.

    With `makes_rows`, settings that have nothing to do with making rows are left out; with
    `fitted`, everything that the model knows from its fit.
    """

    def __init__(self, command: Callable, makes_rows: bool = False, fitted: bool = False) -> None:
        update_wrapper(self, command)
        self.command, self.makes_rows, self.fitted = command, makes_rows, fitted

    def __call__(self, **arguments: Any) -> None:
        """Run the command."""
        self.command(**arguments)

    @property
    def __signature__(self) -> inspect.Signature:
        (first, *others, _) = inspect.signature(self.command, eval_str=True).parameters.values()
        keyword = inspect.Parameter.KEYWORD_ONLY
        if self.fitted:
            again = [o for k in KINDS.values() for o in k.reading if o.changes]
            asked = [first, *others, *(_parameter(o) for o in again)]
            return inspect.Signature([p.replace(kind=keyword) for p in asked])
        columns = [_parameter(o, metavar="COLUMN") for k in KINDS.values() for o in k.columns]
        columns += [_parameter(o) for k in KINDS.values() for o in k.reading]
        settings = [o for k in KINDS.values() for o in k.settings]
        chosen = [_parameter(o) for o in settings if o.makes_rows or not self.makes_rows]
        parameters = [first, *columns, *others, *chosen]
        return inspect.Signature([p.replace(kind=keyword) for p in parameters])


def _parameter(option: Option, metavar: str | None = None) -> inspect.Parameter:
    info = typer.Option(help=option.help, min=option.min, metavar=metavar)
    annotation: Any = Annotated[option.type, info]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.name, keyword, default=option.default, annotation=annotation)


def restartable_job() -> Job | None:
    """Return the job of ``torchrun``; None without it, so that torch is not imported for it."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    from diagatt.distributed import Job

    return Job()


def is_stored(data: Path) -> bool:
    """Return whether data are read in passes, which `fit` and `predict` can continue."""
    return any(kind.in_passes and kind.opens(data) for kind in KINDS.values())


def columns(
    asked: dict[str, Any],
    target: str | None,
    covariates: str = "",
    features: str = "",
    drop: str = "",
    id: str | None = None,
) -> Columns:
    """Return the columns that were named; several are separated by commas."""
    known = [o.name for kind in KINDS.values() for o in (*kind.columns, *kind.reading)]
    named = {name: asked[name] for name in known if asked.get(name)}
    if features and "sample" not in named:
        raise ValueError("--features are columns of a table with one line per row: give --sample.")
    shared, own, unused = (_listed(words) for words in (covariates, features, drop))
    return Columns(named, target, shared, own, unused, id)


def without(columns: Columns, drop: str, asked: dict[str, Any] | None = None) -> Columns:
    """Return the columns of a model for a table that has others, which are dropped.

    `asked` are options of kinds that are given again: new samples may lie elsewhere.
    """
    again = {name: value for name, value in (asked or {}).items() if value is not None}
    drops = tuple(dict.fromkeys((*columns.drop, *_listed(drop))))
    return replace(columns, drop=drops, asked={**columns.asked, **again})


def _listed(words: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in words.split(",") if name.strip())


def settings(asked: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Return the settings of a kind; refuse those of other kinds unless they are defaults."""
    for other in KINDS.values():
        for option in other.settings:
            value = asked.get(option.name, option.default)
            if other is not kind and value != option.default:
                raise ValueError(
                    f"--{option.name} {value} is for {other.name}s: name their column with "
                    f"--{other.columns[0].name}."
                )
    return {o.name: asked[o.name] for o in kind.settings if o.name in asked}
