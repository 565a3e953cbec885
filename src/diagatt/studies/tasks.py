"""One task: one scenario, one method, one replication. Run what is not yet stored.

Tasks run here, in several processes, or on a dask cluster.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

from diagatt.progress import progress_bar
from diagatt.studies.results import ResultStore
from diagatt.studies.scenarios import Scenario

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """The unit that is run, stored and counted."""

    scenario: Scenario
    method: str
    replication: int  #: Index of the replication, and the seed of everything random in the task.
    scale: float = 1.0  #: Share of the paper's sample size.

    @property
    def key(self) -> str:
        """SHA-256 of what the result depends on.

        It contains the scenario with its parameters and revision, the method with its settings and
        revision (`Method.described`, through `Scenario.parameters`), the replication and the scale.
        It contains no version, no class name and no constructor parameter of an estimator: code may
        be rebuilt and released while stored results remain valid. A change of code that changes
        results must raise the `revision` of the methods or scenarios concerned, by hand.
        """
        content = {
            "scenario": self.scenario.name,
            "revision": self.scenario.revision,
            "method": self.method,
            "parameters": self.scenario.parameters(self.method, self.scale),
            "replication": self.replication,
            "scale": self.scale,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def run_task(task: Task) -> dict[str, Any]:
    """Run a task in one thread and return a line of the result store."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = task.scenario.run(task.method, task.replication, task.scale)
    finally:
        torch.set_num_threads(threads)
    seconds, details = found.pop("seconds", None), found.pop("details", {})
    return {
        "key": task.key,
        "scenario": task.scenario.name,
        "method": task.method,
        "replication": task.replication,
        "scale": task.scale,
        "metrics": {name: float(value) for name, value in found.items()},
        "seconds": seconds,
        "details": json.dumps(details, sort_keys=True, default=str),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": json.dumps(_machine(), sort_keys=True),
    }


def run_tasks(
    tasks: Sequence[Task],
    store: ResultStore,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: bool = False,
) -> int:
    """Run the tasks whose results are not in the store, store each result, and return the count.

    If the call is interrupted, even by ``kill -9``, the same call continues with the missing tasks;
    the final store is the same as after an undisturbed run.

    Parameters
    ----------
    tasks : sequence of Task
    store : ResultStore
    jobs : int
        Count of processes on this machine.
    cluster : str, optional
        Address of a dask scheduler, ``tcp://host:8786``; tasks then run on its workers, and those
        of a worker that dies run again on another.
    progress : bool
        Show a bar with the remaining time.
    """
    skipped = {t.scenario.name: r for t in tasks if (r := t.scenario.reason_to_skip())}
    for name, reason in skipped.items():
        log.warning("%s is skipped: %s", name, reason)
    done = store.keys()
    possible = [task for task in dict.fromkeys(tasks) if task.scenario.name not in skipped]
    missing = [task for task in possible if task.key not in done]
    stored = len(possible) - len(missing)
    log.info("%d of %d tasks are stored, %d to run", stored, len(possible), len(missing))
    with ExitStack() as stack:
        stack.enter_context(_backend(jobs, cluster))
        advance = stack.enter_context(progress_bar("tasks", len(missing), progress))
        parallel = Parallel(batch_size=1, return_as="generator_unordered")
        for line in parallel(delayed(run_task)(task) for task in missing):
            store.add(line)
            advance(f"{line['scenario']} {line['method']}")
    store.pack()
    return len(missing)


@contextmanager
def _backend(jobs: int, cluster: str | None) -> Iterator[None]:
    """Tell joblib where to run tasks."""
    if cluster is None:
        with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
        return
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ImportError(
            'a cluster needs dask: pip install "diagatt[cluster]" here and on every worker.'
        ) from error
    with Client(cluster), parallel_config("dask", n_jobs=-1):
        yield


def _machine() -> dict[str, Any]:
    """Return the hardware and the versions that a result comes from."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("diagatt", "torch", "numpy", "scikit-learn")},
    }


def _processor() -> str:
    """Return the name of the processor as Linux reports it, else the architecture."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
