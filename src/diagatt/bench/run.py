"""Run what is missing, smallest sets first, the first split of everything before the rest."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from diagatt.bench.cells import OnBags
from diagatt.bench.confined import Limits
from diagatt.bench.methods import get_method
from diagatt.bench.sets import BagSet, load_set, n_splits
from diagatt.studies.results import ResultStore
from diagatt.studies.tasks import Task, run_tasks

log = logging.getLogger(__name__)


class Plan:
    """The tasks of a run: sets × methods × splits, and why some cannot be run here.

    Parameters
    ----------
    sets : iterable of BagSet
    methods : iterable of str
        In the order in which they are to run.
    limits : Limits
    shuffled : bool
        Permute responses within training parts and within test parts: the leak test.
    splits : int, optional
        Largest count of splits per set; with `shuffled`, the count of permutations.
    """

    def __init__(
        self,
        sets: Iterable[BagSet],
        methods: Iterable[str],
        limits: Limits | None = None,
        shuffled: bool = False,
        splits: int | None = None,
    ) -> None:
        limits = limits or Limits()
        places = [OnBags(chosen, limits, shuffled) for chosen in sets]
        #: Reasons by (set, method); the method is "" if the set cannot be loaded.
        self.skipped: dict[tuple[str, str], str] = {}
        self.sets: list[OnBags] = []
        self.methods = list(methods)
        sizes = {}
        for place in places:
            if reason := place.reason_to_skip():
                self.skipped[place.name, ""] = reason
                log.warning("%s is skipped: %s", place.name, reason)
                continue
            bags = load_set(place.chosen)
            sizes[place] = len(bags) * bags.X.n_rows * bags.X.n_features
            for method in self.methods:
                if reason := get_method(method).reason_to_skip(bags.task, bags.X.n_rows):
                    self.skipped[place.name, method] = reason
            self.sets.append(place)
        self.sets.sort(key=sizes.__getitem__)
        self._splits = splits

    def tasks(self) -> list[Task]:
        """Return all tasks: split by split, set by set, method by method."""
        counts = {place: n_splits(place.chosen) for place in self.sets}
        if self._splits is not None:
            largest = self._splits
            counts = {p: largest if p.shuffled else min(n, largest) for p, n in counts.items()}
        return [
            Task(place, method, number)
            for number in range(max(counts.values(), default=0))
            for place in self.sets
            for method in self.methods
            if number < counts[place] and (place.name, method) not in self.skipped
        ]


def run_bench(
    plan: Plan, store: ResultStore, *, jobs: int = 1, progress: bool = False
) -> dict[str, int]:
    """Run the tasks of a plan that are not stored; return how many ran, by round.

    The first split of every set and method comes first. A method that fails on the first split of
    a set (it exceeds its time or raises an error) is not tried on the others: the stored reason
    stands for all. Fits that ran out of time are run again if the limit was raised. If the call is
    killed, the same call continues with the missing tasks.
    """
    tasks = plan.tasks()
    _forget_raised_limits(tasks, store)
    first = [task for task in tasks if task.replication == 0]
    ran = {"first splits": run_tasks(first, store, jobs=jobs, progress=progress)}
    hopeless = {
        (task.scenario.name, task.method)
        for task, line in zip(first, _lines(first, store), strict=True)
        if line is not None and failure(line)
    }
    rest = [t for t in tasks if t.replication and (t.scenario.name, t.method) not in hopeless]
    return ran | {"other splits": run_tasks(rest, store, jobs=jobs, progress=progress)}


def failure(line: dict[str, Any]) -> str | None:
    """Return why a stored task has failed, or None if it has a result."""
    return json.loads(line["details"]).get("failed")


def _lines(tasks: Sequence[Task], store: ResultStore) -> list[dict[str, Any] | None]:
    stored = {line["key"]: line for line in store.lines()}
    return [stored.get(task.key) for task in tasks]


def _forget_raised_limits(tasks: Sequence[Task], store: ResultStore) -> None:
    again = set()
    for task, line in zip(tasks, _lines(tasks, store), strict=True):
        if line is not None and (reason := failure(line)) and "CPU time" in reason:
            allowed = json.loads(line["details"])["seconds_allowed"]
            if task.scenario.limits.seconds > allowed:  # type: ignore[attr-defined]
                again.add(task.key)
    if again:
        log.info("%d results that ran out of time are run again", len(again))
        store.remove(again)
