"""Kill a small study 200 times at random moments: its tables must equal those of a quiet run.

Run ``python -m benchmarks.study_kills`` (takes minutes). A forked process runs the study and is
killed with SIGKILL after a random time; the next one continues with its store. When a study is
complete, its tables are compared with the undisturbed ones, and a new store is started.
"""

import argparse
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from diagatt.studies import ResultStore, Task, compare, get_study, run_tasks
from diagatt.studies.report import cells_csv


def small_study() -> list[Task]:
    """Return a study of forty tasks that take a fraction of a second each."""
    methods = ["oracle", "pooled"]
    return get_study("table1").tasks(4, methods, 0.02) + get_study("overlap").tasks(
        1, ["shared", "class-specific"]
    )


def tables(store: ResultStore) -> str:
    """Return all cells of the study in full precision."""
    lines = store.lines()
    studies = [(get_study("table1"), 0.02), (get_study("overlap"), 1.0)]
    return "\n".join(cells_csv(compare(study, lines, scale)) for study, scale in studies)


def run_and_kill(tasks: list[Task], folder: Path, seconds: float) -> bool:
    """Run in a forked process, kill it after so many seconds, return whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            run_tasks(tasks, ResultStore(folder))
        finally:
            os._exit(0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def disturbed_runs(tasks: list[Task], kills: int, seed: int, longest: float) -> tuple[int, int]:
    """Kill this often; return how many studies were completed and how many tables differed."""
    with tempfile.TemporaryDirectory() as folder:
        quiet = ResultStore(folder)
        run_tasks(tasks, quiet)
        expected, keys = tables(quiet), quiet.keys()
    rng = np.random.default_rng(seed)
    killed = completed = wrong = 0
    while killed < kills or completed == 0:
        folder = Path(tempfile.mkdtemp())
        while ResultStore(folder).keys() != keys:
            patience = rng.uniform(0, longest) if killed < kills else np.inf
            killed += run_and_kill(tasks, folder, patience)
        store = ResultStore(folder)
        store.pack()
        completed += 1
        wrong += tables(store) != expected or len(store.lines()) != len(keys)
        shutil.rmtree(folder)
    return completed, wrong


def main() -> None:
    """Kill, complete, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    kills = parser.parse_args().kills
    completed, wrong = disturbed_runs(small_study(), kills, seed=0, longest=1.0)
    print(f"{kills} kills, {completed} studies completed, {wrong} with other tables.")


if __name__ == "__main__":
    main()
