"""The comparison on bags: every method on every set, with fixed splits, stored and resumable.

>>> from diagatt.bench import SETS, add_own_methods
>>> "musk1" in SETS, "diagatt" in add_own_methods()
(True, True)
"""

from diagatt.bench.confined import Limits
from diagatt.bench.methods import (
    DEFAULT,
    METHODS,
    Method,
    add_own_methods,
    get_method,
    load_methods,
)
from diagatt.bench.report import write_report
from diagatt.bench.run import Plan, run_bench
from diagatt.bench.sets import ASSUMPTIONS, SETS, BagSet, get_set, load_set, read_bags

__all__ = [
    "ASSUMPTIONS",
    "DEFAULT",
    "METHODS",
    "SETS",
    "BagSet",
    "Limits",
    "Method",
    "Plan",
    "add_own_methods",
    "get_method",
    "get_set",
    "load_methods",
    "load_set",
    "read_bags",
    "run_bench",
    "write_report",
]
