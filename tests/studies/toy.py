"""A scenario whose result is known in closed form and costs nothing, and a line of a store."""

import time
from dataclasses import dataclass

from diagatt.studies import Task


@dataclass(frozen=True)
class Toy:
    number: int
    seconds: float = 0.0
    revision: int = 1

    @property
    def name(self):
        return f"toy-{self.number}"

    def reason_to_skip(self):
        return None

    def parameters(self, method, scale):
        return {"number": self.number}

    def run(self, method, replication, scale):
        time.sleep(self.seconds)
        return {"rmse": self.number + replication / 10, "seconds": 1.0, "details": {"m": method}}


def line(scenario, method, replication=0, scale=1.0, **metrics):
    return {
        "key": f"{scenario}{method}{replication}{scale}",
        "scenario": scenario,
        "method": method,
        "replication": replication,
        "scale": scale,
        "metrics": metrics,
        "seconds": 1.0,
        "details": "{}",
        "date": "2026-01-01",
        "machine": '{"cores": 2}',
    }


def toy_tasks(n=4, reps=2, seconds=0.0):
    return [Task(Toy(i, seconds), "m", k) for k in range(reps) for i in range(n)]
