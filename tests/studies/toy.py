"""A scenario whose result is known in closed form and costs nothing."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Toy:
    number: int
    seconds: float = 0.0

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
