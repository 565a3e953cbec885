"""Measurement of time and memory for all benchmarks."""

import time
from collections.abc import Callable
from pathlib import Path


def best_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Return the time of the fastest of several runs, which was disturbed the least."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


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
