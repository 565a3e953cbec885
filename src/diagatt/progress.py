"""A progress bar that appears only on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(title: str, total: int | None, shown: bool) -> Iterator[Callable[..., None]]:
    """Yield ``advance(note=None, steps=1, restart=False)``; the bar appears only if `shown`.

    Without a note the last one stays; `restart` sets the bar back to zero.
    """
    if not shown:
        yield lambda note=None, steps=1, restart=False: None
        return
    from rich.progress import (  # here, because it takes 0.1 s and few ask for a bar
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

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

        def advance(note: str | None = None, steps: int = 1, restart: bool = False) -> None:
            if restart:
                bar.reset(task)
            bar.update(task, advance=steps)
            if note is not None:
                bar.update(task, note=note)

        yield advance
