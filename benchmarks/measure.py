"""Measurement of time and memory for all benchmarks."""

import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path


def best_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Return the time of the fastest of several runs, which was disturbed the least."""
    return best_in_turn([function], repeats, time.perf_counter)[0]


def best_in_turn(
    functions: Sequence[Callable[[], object]],
    repeats: int = 5,
    clock: Callable[[], float] = time.process_time,
) -> list[float]:
    """Return the times of the fastest runs of functions that take turns.

    What disturbs the machine for a while then disturbs all of them, and ratios stay comparable.
    """
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for own, function in zip(times, functions, strict=True):
            start = clock()
            function()
            own.append(clock() - start)
    return [min(own) for own in times]


def child_seconds(command: Sequence[str], repeats: int = 3, fails: bool = False) -> float:
    """Return the fewest CPU seconds that a command takes in a process of its own.

    With `fails`, the command must end with an error, which is not shown.
    """
    errors = subprocess.DEVNULL if fails else None
    found = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=errors)
        if (done.returncode != 0) != fails:
            raise subprocess.CalledProcessError(done.returncode, command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def peak_extra_bytes(function: Callable[[], object]) -> int:
    """Return the peak growth of the process's resident memory during a call (Linux only)."""
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = _status("VmRSS")
    function()
    return max(_status("VmHWM") - before, 0)


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)
