"""A rich progress bar when it is asked for, nothing otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress_bar(title: str, total: int | None, shown: bool) -> Iterator[Callable[..., None]]:
    """Yield ``advance(note="", steps=1)``; the bar appears only if `shown`."""
    if not shown:
        yield lambda note="", steps=1: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda note="", steps=1: bar.update(task, advance=steps, note=note)
