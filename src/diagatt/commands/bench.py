"""``diagatt bench``: methods compared on bags of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diagatt.commands import options, outputs
from diagatt.commands.help_text import Helped, HelpedGroup

if TYPE_CHECKING:
    from diagatt.bench import Plan

app = typer.Typer(
    cls=HelpedGroup, no_args_is_help=True, help="Compare methods on real and drawn bags."
)

Sets = Annotated[
    str,
    typer.Option(
        help="Sets to use, separated by commas: names, or your npz or parquet files.",
        metavar="A,B",
    ),
]
Methods = Annotated[str, typer.Option(help="Methods to use, separated by commas.", metavar="A,B")]
Rivals = Annotated[
    str,
    typer.Option(
        help="Python files, or folders of them, with classes that fit and predict.", metavar="PLACE"
    ),
]
Folder = Annotated[Path, typer.Option("--store", "-s", help="Folder of results.", metavar="FOLDER")]
Splits = Annotated[
    int | None, typer.Option(min=1, help="Largest number of splits per set.", metavar="N")
]
Shuffled = Annotated[bool, typer.Option("--shuffled", help="Permute labels to find leaks.")]
RIVALS = "benchmarks/rivals"


@app.command(cls=Helped, name="list")
def list_all(rivals: Rivals = RIVALS) -> None:
    """List sets and methods."""
    from rich.console import Console
    from rich.table import Table

    from diagatt.bench import METHODS, SETS

    _add_methods(rivals)
    sets = Table("set", "from", "options")
    for chosen in SETS.values():
        sets.add_row(chosen.name, chosen.source, ", ".join(f"{k} = {v}" for k, v in chosen.options))
    methods = Table("method", "what", "tasks")
    for method in METHODS.values():
        methods.add_row(method.name, method.description, ", ".join(method.tasks))
    Console().print(sets)
    Console().print(methods)


@app.command(cls=Helped)
def run(
    sets: Sets = "",
    methods: Methods = "",
    rivals: Rivals = RIVALS,
    limit: Annotated[
        float, typer.Option(min=1, help="Limit of CPU seconds per fit.", metavar="SECONDS")
    ] = 60,
    splits: Splits = None,
    shuffled: Shuffled = False,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes.", metavar="N")] = 1,
    store: Folder = Path("results/bags"),
) -> None:
    """Run what is missing: every method on every set and split, one line of results each.

    If it is killed at any moment, the same command continues where it was. A fit that takes longer
    than --limit is recorded as such.

    Examples: `diagatt bench run --sets musk1 --methods trees,diagatt`, or
    `diagatt bench run --sets mine.npz --rivals my_model.py`.
    """
    with outputs.writing(store, {}, option="--store", folder=True, resumes=True):
        from diagatt.bench import ASSUMPTIONS, Limits, Plan, run_bench
        from diagatt.studies import ResultStore

        plan = _plan(sets, methods, rivals, limit, splits, shuffled)
        plans = [plan]
        if not sets and not shuffled:
            plans.append(Plan(ASSUMPTIONS.values(), plan.methods, Limits(seconds=limit)))
        for part in plans:
            count = run_bench(part, ResultStore(store), jobs=jobs, progress=True)
            typer.echo(f"{sum(count.values())} fits run, {len(part.tasks())} in all.")


@app.command(cls=Helped)
def report(
    sets: Sets = "",
    methods: Methods = "",
    rivals: Rivals = RIVALS,
    splits: Splits = None,
    store: Folder = Path("results/bags"),
    output: options.Output = Path("results/bags.md"),
    overwrite: options.Overwrite = False,
) -> None:
    """Write tables, ranks and pictures of what is stored, as Markdown and SVG."""
    with outputs.writing(output, {}, overwrite=overwrite):
        from diagatt.bench import write_report
        from diagatt.studies import ResultStore

        results = ResultStore(store)
        results.pack()
        plan = _plan(sets, methods, rivals, 60, splits, False)
        for path in write_report(plan, results, output):
            typer.echo(f"wrote {path}")


def _plan(
    sets: str, methods: str, rivals: str, limit: float, splits: int | None, shuffled: bool
) -> Plan:
    from diagatt.bench import METHODS, SETS, Limits, Plan, get_method, get_set

    _add_methods(rivals)
    chosen = [get_set(name) for name in _listed(sets)] or list(SETS.values())
    named = [get_method(name).name for name in _listed(methods)] or list(METHODS)
    return Plan(chosen, named, Limits(seconds=limit), shuffled, splits)


def _add_methods(rivals: str) -> None:
    """Register rivals, then our own methods; the default comes last."""
    from diagatt.bench import add_own_methods, load_methods

    for place in _listed(rivals):
        if place != RIVALS or Path(place).is_dir():  # the default is a folder of the repository
            load_methods(place)
    add_own_methods()


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
