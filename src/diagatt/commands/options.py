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

# Headings of `--help`, below which options stand; files and checks stand below "Options".
SAMPLES = "What a sample is"
COLUMNS = "Columns of the table"
MODEL = "The model"
KINDS_OWN = "Texts and images"

Data = Annotated[
    Path,
    typer.Argument(
        help="Samples: CSV, TSV, JSONL, Parquet, Feather, NPZ, .h5ad, a folder of images or a "
        "store."
    ),
]
Memory = Annotated[
    float,
    typer.Option(min=1, help="MiB that the rows of a store may take in memory.", metavar="MIB"),
]
Model = Annotated[Path, typer.Argument(help="A model that `diagatt fit` wrote.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.", metavar="FILE")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")]
Target = Annotated[
    str | None,
    typer.Option(
        help="Column of responses; several outcomes are separated by commas.",
        metavar="COLUMN",
        rich_help_panel=COLUMNS,
    ),
]
Covariates = Annotated[
    str,
    typer.Option(
        help="Columns that describe whole samples, such as age,sex, separated by commas.",
        metavar="A,B",
        rich_help_panel=COLUMNS,
    ),
]
Features = Annotated[
    str,
    typer.Option(
        help="Columns of features in a table with one line per row; default: all that remain.",
        metavar="A,B",
        rich_help_panel=COLUMNS,
    ),
]
Drop = Annotated[
    str,
    typer.Option(
        help="Columns that are not used, such as other outcomes, separated by commas.",
        metavar="A,B",
        rich_help_panel=COLUMNS,
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        help="Column that names the lines: rows if --sample names the samples, else samples.",
        metavar="COLUMN",
        rich_help_panel=COLUMNS,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        help="Column of groups, such as sites: samples of one group are held out together.",
        metavar="COLUMN",
        rich_help_panel=COLUMNS,
    ),
]
RowWeight = Annotated[
    str | None,
    typer.Option(
        help="Column of weights of rows, such as counts, in a table with one line per row.",
        metavar="COLUMN",
        rich_help_panel=COLUMNS,
    ),
]
Categories = Annotated[
    str,
    typer.Option(
        help="Columns of words that become columns of zeros and ones, one per word.",
        metavar="A,B",
        rich_help_panel=COLUMNS,
    ),
]
Family = Annotated[
    str,
    typer.Option(
        help="Response distribution: auto, gaussian, poisson, negative_binomial, gamma, tweedie, "
        "huber, quantile(0.9), bernoulli, multinomial, ordinal; for times, cox, weibull, "
        "lognormal or loglogistic.",
        metavar="NAME",
        rich_help_panel=MODEL,
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        help="balanced: rare classes count as much as others.",
        metavar="balanced",
        rich_help_panel=MODEL,
    ),
]
Exposure = Annotated[
    str | None,
    typer.Option(
        help="Column of exposures of counts, such as years.",
        metavar="COLUMN",
        rich_help_panel=COLUMNS,
    ),
]
Offset = Annotated[
    str | None,
    typer.Option(
        help="Column of a part of the linear predictor that is known.",
        metavar="COLUMN",
        rich_help_panel=COLUMNS,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        help="Column of times to an event, for survival.", metavar="COLUMN", rich_help_panel=COLUMNS
    ),
]
Event = Annotated[
    str | None,
    typer.Option(
        help="Column that says whether the event has happened.",
        metavar="COLUMN",
        rich_help_panel=COLUMNS,
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        help="Column of times from which samples are observed.",
        metavar="COLUMN",
        rich_help_panel=COLUMNS,
    ),
]
Heads = Annotated[
    str,
    typer.Option(help="Rows of interest per sample, or auto.", metavar="N", rich_help_panel=MODEL),
]
SolverName = Annotated[
    str,
    typer.Option(
        help="auto, likelihood, mixture or gradient.", metavar="NAME", rich_help_panel=MODEL
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        help="What to do with empty cells in rows: refuse them, or integrate out or impute them.",
        metavar="refuse|marginalize",
        rich_help_panel=MODEL,
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, help="Random seed.", metavar="N", rich_help_panel=MODEL)
]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder that keeps the rows of texts for later commands.",
        metavar="FOLDER",
        rich_help_panel=KINDS_OWN,
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
            asked = [first, *others, *(_parameter(o, SAMPLES) for o in again)]
            return inspect.Signature([p.replace(kind=keyword) for p in asked])
        columns = [_parameter(o, SAMPLES, "COLUMN") for k in KINDS.values() for o in k.columns]
        columns += [_parameter(o, SAMPLES) for k in KINDS.values() for o in k.reading]
        settings = [o for k in KINDS.values() for o in k.settings]
        chosen = [_parameter(o, KINDS_OWN) for o in settings if o.makes_rows or not self.makes_rows]
        parameters = [first, *columns, *others, *chosen]
        return inspect.Signature([p.replace(kind=keyword) for p in parameters])


def _parameter(option: Option, panel: str, metavar: str | None = None) -> inspect.Parameter:
    info = typer.Option(
        help=option.help,
        min=option.min,
        metavar=metavar or option.value,
        rich_help_panel=panel,
    )
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


def of_model(heads: str, family: str, solver: str, missing: str) -> dict[str, Any]:
    """Return the parameters of the model that were asked for and are not its defaults."""
    if missing not in ("refuse", "marginalize"):
        raise ValueError(f"--missing must be refuse or marginalize, got {missing!r}.")
    given = {"n_heads": _heads(heads), "family": family, "solver": solver, "missing": missing}
    defaults = {"n_heads": 1, "family": "auto", "solver": "auto", "missing": "refuse"}
    return {name: value for name, value in given.items() if value != defaults[name]}


def _heads(heads: str) -> int | str:
    if heads == "auto":
        return heads
    if not (heads.isascii() and heads.isdigit()) or int(heads) < 1:
        raise ValueError(f"--heads must be a positive whole number or auto, got {heads!r}.")
    return int(heads)


def with_cache(model: Any, folder: Path | None) -> Any:
    """Let a model of texts show progress, and keep rows in a folder; others have none to keep."""
    if hasattr(model, "text_rows_"):
        model.text_rows_.set_params(verbose=True)
    if folder is not None:
        if not hasattr(model, "text_rows_"):
            raise ValueError(f"--cache {folder} is for models of texts, and this is not one.")
        model.text_rows_.set_params(cache=str(folder))
    return model


def columns(
    asked: dict[str, Any],
    target: str | None,
    covariates: str = "",
    features: str = "",
    drop: str = "",
    id: str | None = None,
    groups: str | None = None,
    categories: str = "",
    known: dict[str, str | None] | None = None,
    row_weight: str | None = None,
) -> Columns:
    """Return the columns that were named; several are separated by commas."""
    option_names = [o.name for kind in KINDS.values() for o in (*kind.columns, *kind.reading)]
    named = {name: asked[name] for name in option_names if asked.get(name)}
    if features and "sample" not in named:
        raise ValueError("--features are columns of a table with one line per row: give --sample.")
    shared, own, unused = (_listed(words) for words in (covariates, features, drop))
    words = dict.fromkeys(_listed(categories), ())
    given = {role: column for role, column in (known or {}).items() if column is not None}
    if "time" in given and target is not None:
        raise ValueError("--time is a response, and so is --target: give one of them.")
    if "time" not in given and {"event", "start"} & set(given):
        raise ValueError("--event and --start go with --time: name the column of times.")
    if row_weight is not None and "sample" not in named:
        raise ValueError(
            "--row-weight is a column of a table with one line per row: give --sample."
        )
    lists = (shared, own, unused)
    return Columns(named, target, *lists, id, groups, row_weight, words, given)


def without(columns: Columns, drop: str, asked: dict[str, Any] | None = None) -> Columns:
    """Return the columns of a model for a table that has others, which are dropped.

    `asked` are options of kinds that are given again: new samples may lie elsewhere.
    """
    again = {name: value for name, value in (asked or {}).items() if value is not None}
    more = _listed(drop)
    given = {name: (value,) for name, value in again.items()} | ({"drop": more} if more else {})
    drops = tuple(dict.fromkeys((*columns.drop, *more)))
    return replace(columns, drop=drops, asked={**columns.asked, **again}, again=given)


def _listed(words: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in words.split(",") if name.strip())
    if words and not names:
        raise ValueError(f"a list of columns holds no name: {words!r}.")
    return names


def settings(asked: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Return the settings of a kind; refuse those of other kinds unless they are defaults."""
    for other in KINDS.values():
        for option in other.settings:
            value = asked.get(option.name, option.default)
            if other is not kind and value != option.default:
                raise ValueError(
                    f"--{option.name.replace('_', '-')} {value} is for {other.name}s: name their "
                    f"column with --{other.columns[0].name}."
                )
    return {o.name: asked[o.name] for o in kind.settings if o.name in asked}
