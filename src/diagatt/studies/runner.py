"""Run what is not yet in the store: here, in several processes, or on a dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from joblib import Parallel, delayed, parallel_config

from diagatt.progress import progress_bar
from diagatt.studies.store import ResultStore
from diagatt.studies.tasks import Task, run_task

__all__ = ["run_tasks"]

log = logging.getLogger(__name__)


def run_tasks(
    tasks: Sequence[Task],
    store: ResultStore,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: bool = False,
) -> int:
    """Run the tasks whose results are not in the store, and add each as it comes.

    Interrupted at any point, even by ``kill -9``, the same call goes on with what is missing; the
    final store is the same as that of an undisturbed run.

    Parameters
    ----------
    tasks : sequence of Task
    store : ResultStore
    jobs : int
        Processes on this machine.
    cluster : str, optional
        Address of a dask scheduler, ``tcp://host:8786``; tasks then run on its workers, and those
        of a worker that dies run again on another.
    progress : bool
        Show a bar with the remaining time.

    Returns
    -------
    int
        Number of tasks that were run.
    """
    skipped = {t.scenario.name: r for t in tasks if (r := t.scenario.reason_to_skip())}
    for name, reason in skipped.items():
        log.warning("%s is skipped: %s", name, reason)
    done = store.keys()
    possible = [task for task in dict.fromkeys(tasks) if task.scenario.name not in skipped]
    missing = [task for task in possible if task.key not in done]
    log.info(
        "%d of %d tasks are stored, %d to run",
        len(possible) - len(missing),
        len(possible),
        len(missing),
    )
    with ExitStack() as stack:
        stack.enter_context(_backend(jobs, cluster))
        advance = stack.enter_context(progress_bar("tasks", len(missing), progress))
        for line in _results(missing, jobs, cluster):
            store.add(line)
            advance(f"{line['scenario']} {line['method']}")
    store.pack()
    return len(missing)


def _results(tasks: Sequence[Task], jobs: int, cluster: str | None) -> Iterator[dict]:
    if jobs == 1 and cluster is None:
        yield from map(run_task, tasks)
    else:
        parallel = Parallel(batch_size=1, return_as="generator_unordered")
        yield from parallel(delayed(run_task)(task) for task in tasks)


@contextmanager
def _backend(jobs: int, cluster: str | None) -> Iterator[None]:
    """Where joblib runs tasks."""
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
