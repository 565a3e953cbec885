"""``diagatt study``: the paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diagatt.commands import options, outputs
from diagatt.commands.help_text import Helped, HelpedGroup

app = typer.Typer(cls=HelpedGroup, no_args_is_help=True, help="Run the paper's tables and figures.")

Name = Annotated[str, typer.Argument(help="A study, or 'all'; see `diagatt study list`.")]
Folder = Annotated[Path, typer.Option("--store", "-s", help="Folder of results.", metavar="FOLDER")]
Scale = Annotated[
    float, typer.Option(help="Share of the sample size, 0.1 for a quick look.", metavar="PART")
]
REPORTS = ("md", "csv", "html", "png", "svg")  # endings of what is written for a study


@app.command(cls=Helped, name="list")
def list_studies() -> None:
    """List the studies with their scenarios and methods."""
    from rich.console import Console
    from rich.table import Table

    from diagatt.studies import STUDIES

    table = Table("study", "what", "scenarios", "methods")
    for study in STUDIES.values():
        table.add_row(study.name, study.title, str(len(study.scenarios)), ", ".join(study.methods))
    Console().print(table)


@app.command(cls=Helped)
def run(
    name: Name,
    reps: Annotated[
        int, typer.Option(min=1, help="Number of replications per cell.", metavar="N")
    ] = 1,
    methods: Annotated[
        str, typer.Option(help="Methods to use, separated by commas.", metavar="A,B")
    ] = "",
    scale: Scale = 1.0,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes.", metavar="N")] = 1,
    cluster: Annotated[
        str, typer.Option(help="Address of a dask scheduler.", metavar="ADDRESS")
    ] = "",
    store: Folder = Path("results"),
    overwrite: options.Overwrite = False,
) -> None:
    """Run what is missing of a study, then write its comparison with the paper.

    If it is killed at any moment, the same command continues where it was.

    Examples: `diagatt study run table1 --scale 0.1 --jobs 2`, or
    `diagatt study run all --reps 3 --methods diagatt,oracle`.
    """
    with outputs.writing(store, {}, option="--store", folder=True, resumes=True):
        from diagatt.studies import ResultStore, run_tasks

        results = ResultStore(store)
        studies = _studies(name)
        _check_reports(studies, results, store, overwrite)
        asked = [m.strip() for m in methods.split(",") if m.strip()]
        tasks = []
        for study in studies:
            # With "all", a study runs those of the asked methods that it has.
            chosen = [m for m in asked if m in study.methods] if name == "all" else asked
            tasks += study.tasks(reps, chosen if asked else None, scale)
        tasks.sort(key=lambda task: task.replication)
        count = run_tasks(tasks, results, jobs=jobs, cluster=cluster or None, progress=True)
        typer.echo(f"{count} tasks run, {len(tasks) - count} were stored.")
        _write(studies, results, store, scale)


@app.command(cls=Helped)
def report(
    name: Name = "all",
    scale: Scale = 1.0,
    store: Folder = Path("results"),
    overwrite: options.Overwrite = False,
) -> None:
    """Write the comparison of what is stored: Markdown, CSV, HTML and figures."""
    with outputs.writing(store, {}, option="--store", folder=True, resumes=True):
        from diagatt.studies import ResultStore

        results = ResultStore(store)
        studies = _studies(name)
        _check_reports(studies, results, store, overwrite)
        _write(studies, results, store, scale)


def _studies(name: str) -> list:
    from diagatt.studies import STUDIES, get_study

    return list(STUDIES.values()) if name == "all" else [get_study(name)]


def _check_reports(studies: list, results, store: Path, overwrite: bool) -> None:
    """Refuse to replace files of others: reports are ours in a folder that holds results."""
    if overwrite or not store.exists() or results.keys():
        return
    names = {"README.md", *(f"{s.name}.{k}" for s in studies for k in REPORTS)}
    found = sorted(names & {path.name for path in store.iterdir()})
    if found:
        raise FileExistsError(
            f"{store / found[0]} exists, and {store} holds no results of a study: pass --overwrite "
            "to replace it, or name another folder with --store."
        )


def _write(studies: list, results, store: Path, scale: float) -> None:
    from diagatt.studies import write_index, write_report

    for study in studies:
        for path in write_report(study, results, store, scale):
            typer.echo(f"wrote {path}")
    typer.echo(f"wrote {write_index(results, store)}")
