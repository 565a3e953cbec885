"""A function in a process of its own, with limits of time and memory.

The child is a fork, so it starts at once with all data in memory; the system stops it when it has
used its seconds, whichever library it is in. What a method imports when it first fits is imported
in the parent (`warm_up`): otherwise every child would import the same libraries again, and its
seconds and memory would include the imports.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.bench.methods import get_method
from diagatt.ragged import RaggedRows

STUCK = 300  # seconds on the clock without any CPU time, after which a process counts as stuck


@dataclass(frozen=True)
class Limits:
    """What one fit with its predictions may use.

    Attributes
    ----------
    seconds : float
        Limit of CPU time, which does not depend on what else the machine does.
    gigabytes : float
        Limit of memory in addition to what the parent holds.
    """

    seconds: float = 60.0
    gigabytes: float = 6.0


def run_confined(function: Callable[[], dict[str, Any]], limits: Limits) -> dict[str, Any]:
    """Return what the function returns, or ``{"failed": reason}``.

    Examples
    --------
    >>> run_confined(lambda: {"answer": 42}, Limits())
    {'answer': 42}
    >>> run_confined(lambda: {"answer": 1 // 0}, Limits())["failed"]
    'ZeroDivisionError: integer division or modulo by zero'
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(function, limits, sender), daemon=False)
    with warnings.catch_warnings():  # forking is safe: the parent runs one thread and no autograd
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    sender.close()
    try:
        used, since = -1.0, 0
        while not receiver.poll(1):
            now, is_paused = _cpu_seconds(child.pid)
            since = since + 1 if now == used and not is_paused else 0
            used = now
            if since >= STUCK:
                return {"failed": f"stuck: it used no CPU time for {STUCK} s"}
        return receiver.recv()
    except EOFError:  # the child ended without a result
        child.join()
        return {"failed": _reason_of_end(child.exitcode, limits)}
    finally:
        child.kill()  # its result has arrived
        child.join()
        receiver.close()


def _cpu_seconds(process: int | None) -> tuple[float, bool]:
    """Return the CPU time that a process has used, and whether it is paused."""
    try:
        content = Path(f"/proc/{process}/stat").read_text()
    except OSError:  # it has ended already
        return -1.0, False
    state, *others = content.rpartition(")")[2].split()
    user, system = others[10:12]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"), state == "T"


def _reason_of_end(exitcode: int | None, limits: Limits) -> str:
    if exitcode == -signal.SIGXCPU:
        return f"took more than {limits.seconds:g} s of CPU time"
    if exitcode == -signal.SIGKILL:
        return f"took more than {limits.gigabytes:g} GB of memory, or was killed"
    return f"the process ended with code {exitcode}"


def _child(function: Callable[[], dict[str, Any]], limits: Limits, sender: Any) -> None:
    silence = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  open until the end
    sys.stdout = sys.stderr = silence  # rivals print, and so do the libraries below them
    for stream in (1, 2):
        os.dup2(silence.fileno(), stream)
    _limit(limits)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = function()
    except MemoryError:
        found = {"failed": f"took more than {limits.gigabytes:g} GB of memory"}
    except Exception as error:  # whatever a rival raises is a result, with its reason
        text = " ".join(str(error).split())[:200]
        found = {"failed": f"{type(error).__name__}: {text}"}
    with contextlib.suppress(BrokenPipeError):
        sender.send(found)
    sender.close()
    os._exit(0)  # exit handlers belong to the parent


def _limit(limits: Limits) -> None:
    seconds = int(-(-limits.seconds // 1))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    with open("/proc/self/statm") as statm:
        held = int(statm.read().split()[0]) * resource.getpagesize()
    size = held + int(limits.gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def measured(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a call returns, its CPU seconds, and by how many MB the memory grew at its peak.

    Memory is read from Linux's ``/proc``.

    Examples
    --------
    >>> result, seconds, megabytes = measured(lambda: sum(range(10)))
    >>> result, seconds < 1, megabytes < 100
    (45, True, True)
    """
    Path("/proc/self/clear_refs").write_text("5")  # forget earlier peaks
    before, start = _status("VmRSS"), time.process_time()
    result = function()
    seconds = time.process_time() - start
    return result, seconds, max(_status("VmHWM") - before, 0) / 1024


def _status(name: str) -> int:
    """Return a quantity of this process, in kB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise KeyError(name)


@cache
def warm_up(method: str, task: str) -> None:
    """Import here what a fit imports, which a fit to toy data in a child process shows.

    The fit itself must not happen here: a process that has run autograd cannot be forked safely.
    """
    before = set(sys.modules)

    def modules_of_a_fit() -> dict[str, Any]:
        X, y = _toy(task)
        with suppress(Exception):  # an error here occurs again where it is recorded
            model = get_method(method).make(task, "auto", seed=0)
            model.fit(X, y)
            (model.predict if task == "regression" else model.predict_proba)(X)
        return {"modules": [name for name in sys.modules if name not in before]}

    for name in run_confined(modules_of_a_fit, Limits(seconds=60)).get("modules", []):
        with suppress(Exception):  # some modules cannot be imported by their name
            import_module(name)


def _toy(task: str) -> tuple[RaggedRows, np.ndarray]:
    rng = np.random.default_rng(0)
    X = RaggedRows(rng.normal(size=(120, 3)), np.arange(0, 121, 3))
    if task == "regression":
        return X, rng.normal(size=40)
    return X, np.arange(40) % (2 if task == "binary" else 3)
