"""One task: one scenario, one method, one replication; known by what its result depends on."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from diagatt.studies.scenarios import Scenario

__all__ = ["Task", "run_task"]


@dataclass(frozen=True)
class Task:
    """The unit that is run, cached and counted.

    Attributes
    ----------
    scenario : Scenario
    method : str
    replication : int
        Also the seed of everything random in the task.
    scale : float
        Part of the sample size.
    """

    scenario: Scenario
    method: str
    replication: int
    scale: float = 1.0

    @property
    def key(self) -> str:
        """SHA-256 of the parameters and the library version: same key, same result."""
        from diagatt import __version__

        content = {
            "scenario": self.scenario.name,
            "method": self.method,
            "parameters": self.scenario.parameters(self.method, self.scale),
            "replication": self.replication,
            "diagatt": __version__,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def run_task(task: Task) -> dict[str, Any]:
    """Run a task in one thread, so that its result does not depend on how many run beside it.

    Returns
    -------
    dict
        One line of the result store.
    """
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
        "machine": json.dumps(machine(), sort_keys=True),
    }


def machine() -> dict[str, Any]:
    """Hardware and versions a result comes from."""
    import os

    import numpy
    import sklearn
    import torch

    from diagatt import __version__

    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "system": platform.system(),
        "python": platform.python_version(),
        "diagatt": __version__,
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _processor() -> str:
    """Name of the processor where Linux says it, else the architecture."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    return names[0] if names else platform.machine()
