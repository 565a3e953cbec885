"""Kill fits, predictions, pages, stores and studies at random moments: nothing lost, nothing stray.

Run ``python -m benchmarks.kills`` (takes minutes). A forked process runs a command and is killed
with SIGKILL after a random time. Then every file that it reads must be as it was, and its output
must be the old one or the whole new one. Now and then a command may finish: its output must then be
that of an undisturbed run, and nothing else may lie beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.battery.commands import ROLES, as_csv, lines
from benchmarks.study_kills import small_study, tables
from diagatt.studies import ResultStore, run_tasks

OLD = b"old"
FINISHED = 5  # every so manyth run is left alone


@dataclass
class Activity:
    """A command that is killed again and again, and what is found afterwards."""

    name: str
    run: Callable[[Path], None]
    inputs: tuple[str, ...]
    output: str
    resumes: bool = False  # whether what it leaves is continued rather than replaced
    state: Callable[[Path], object] = field(default=lambda path: path.read_bytes())
    old: Callable[[Path], None] = field(default=lambda path: path.write_bytes(OLD) and None)
    beside: tuple[str, ...] = ()  # what it may leave beside its output when it is killed
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("kills", "old", "new", "finished", "lost", "stray"), 0
        )
    )


def command(*arguments: str) -> Callable[[Path], None]:
    """Return what runs a command in a folder."""

    def run(folder: Path) -> None:
        from diagatt.commands.cli import app

        os.chdir(folder)
        app(list(arguments), standalone_mode=False)

    return run


def folder_state(path: Path) -> dict[str, str]:
    """Return the files of a folder with their contents' digests."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return {str(f.relative_to(path)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def old_store(path: Path) -> None:
    """Write another store, which the new one replaces."""
    from diagatt.stores import RowStore

    RowStore.from_rows(path, np.ones((3, 2, 2)), np.arange(3.0))


def activities() -> list[Activity]:
    """Return fits, predictions, pages and stores of a small table, and a small study."""
    long, kept = ["cells.csv", *ROLES, "--target", "y"], ("--overwrite",)
    store = ["--sample", "who", "--covariates", "sex,dose", "--drop", "cell", "--target", "y"]
    model = ("cells.csv", "model")
    return [
        Activity("fit", command("fit", *long, "-o", "m", *kept), ("cells.csv",), "m"),
        Activity(
            "fit a store",
            command("fit", "store", "--solver", "likelihood", "-o", "m", *kept),
            ("store",),
            "m",
            beside=("m.checkpoint",),
        ),
        Activity(
            "predict",
            command("predict", "model", "cells.csv", "-o", "p.csv", *kept),
            model,
            "p.csv",
        ),
        Activity(
            "predict a store",
            command("predict", "stored", "store", "-o", "parts"),
            ("stored", "store"),
            "parts",
            resumes=True,
            state=folder_state,
        ),
        Activity(
            "explain",
            command("explain", "model", "cells.csv", "-o", "x.html", *kept),
            model,
            "x.html",
        ),
        Activity(
            "store write",
            command("store", "write", "new", "cells.csv", *store, "--shard-mib", "0.002", *kept),
            ("cells.csv",),
            "new",
            state=folder_state,
            old=old_store,
        ),
        Activity(
            "study",
            lambda folder: run_tasks(small_study()[:6], ResultStore(folder / "study")) and None,
            (),
            "study",
            resumes=True,
            state=lambda path: tables(ResultStore(path)),
        ),
    ]


def prepared(folder: Path) -> None:
    """Write the inputs of all activities."""
    (folder / "cells.csv").write_bytes(as_csv(lines("numbers")))
    store = ["--sample", "who", "--covariates", "sex,dose", "--drop", "cell", "--target", "y"]
    for arguments in (
        ["fit", "cells.csv", *ROLES, "--target", "y", "-o", "model"],
        ["store", "write", "store", "cells.csv", *store, "--shard-mib", "0.001"],
        ["fit", "store", "--solver", "likelihood", "-o", "stored"],
    ):
        forked(lambda arguments=arguments: command(*arguments)(folder), None)


def forked(run: Callable[[], None], seconds: float | None) -> bool:
    """Run in a forked process, kill it after so many seconds, return whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            run()
            os._exit(0)
        except BaseException:
            os._exit(1)
    end = np.inf if seconds is None else time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if status:
                raise RuntimeError("an undisturbed command failed")
            return False
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def learn_imports(activity: Activity, source: Path, place: Path) -> None:
    """Import here what the activity imports: the kills are to hit its work, not its imports."""
    first, names = _copy(source, place / "first"), place / "names"
    _age(activity, first)

    def run() -> None:
        activity.run(first)
        names.write_text("\n".join(sys.modules))

    forked(run, None)
    for name in names.read_text().splitlines():
        with contextlib.suppress(Exception):  # some modules are made while others are imported
            importlib.import_module(name)


def disturb(activity: Activity, source: Path, kills: int, rng: np.random.Generator) -> None:
    """Kill one activity this often, and count what was found."""
    counts = activity.counts
    with tempfile.TemporaryDirectory() as place:
        learn_imports(activity, source, Path(place))
        quiet = _copy(source, Path(place) / "quiet")
        _age(activity, quiet)
        start = time.monotonic()
        forked(lambda: activity.run(quiet), None)
        longest = time.monotonic() - start
        expected, listing = activity.state(quiet / activity.output), _listing(quiet)
        folder = _copy(source, Path(place) / "disturbed")
        _age(activity, folder)
        before = _inputs(activity, folder)
        old = None if activity.resumes else activity.state(folder / activity.output)
        while counts["kills"] < kills:
            leave = rng.integers(FINISHED) == 0
            patience = None if leave else rng.uniform(0, 1.1 * longest)
            killed = forked(lambda: activity.run(folder), patience)
            counts["kills"] += killed
            counts["lost"] += _inputs(activity, folder) != before
            if not killed:
                counts["finished"] += 1
                counts["lost"] += activity.state(folder / activity.output) != expected
                counts["stray"] += _listing(folder) != listing
                shutil.rmtree(folder)
                _age(activity, _copy(source, folder))
            elif not activity.resumes:
                found = activity.state(folder / activity.output)
                kind = "old" if found == old else "new" if found == expected else "lost"
                counts[kind] += 1


def _copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


def _age(activity: Activity, folder: Path) -> None:
    if not activity.resumes:
        activity.old(folder / activity.output)


def _inputs(activity: Activity, folder: Path) -> list[object]:
    paths = [folder / name for name in activity.inputs]
    return [folder_state(p) if p.is_dir() else p.read_bytes() for p in paths]


def _listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def table(done: list[Activity]) -> str:
    """Return the counts as Markdown."""
    heads = list(done[0].counts)
    total = [sum(activity.counts[name] for activity in done) for name in heads]
    rows = [[a.name, *(str(n) for n in a.counts.values())] for a in done]
    every = [["", *heads], ["---", *["---:"] * len(heads)], *rows, ["all", *map(str, total)]]
    return "\n".join(f"| {' | '.join(row)} |" for row in every)


def main() -> None:
    """Kill, look, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("-o", "--output", type=Path, help="Markdown file to write.")
    asked, rng, done = parser.parse_args(), np.random.default_rng(0), activities()
    with tempfile.TemporaryDirectory() as place:
        source = Path(place)
        prepared(source)
        for activity in done:
            disturb(activity, source, -(-asked.kills // len(done)), rng)
            print(activity.name, activity.counts, flush=True)
    print(table(done))
    if asked.output:
        head = "# Kills\n\n`python -m benchmarks.kills -o FILE` wrote this table.\n\n"
        asked.output.write_text(f"{head}{table(done)}\n")
    sys.exit(any(a.counts["lost"] or a.counts["stray"] for a in done))


if __name__ == "__main__":
    main()
