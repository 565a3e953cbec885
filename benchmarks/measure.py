"""Time and memory, measured the same way everywhere."""

import time
from collections.abc import Callable
from pathlib import Path


def best_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Shortest of several runs: the one least disturbed."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_extra_bytes(function: Callable[[], object]) -> int:
    """Growth of the process's resident memory above what it had before, at its highest (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest mark so far
    before = _status("VmRSS")
    function()
    return max(_status("VmHWM") - before, 0)


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)
