"""How well a model predicts new samples, next to methods that know nothing of single rows."""

from diagatt.validation.baselines import BASELINES, Part, Task, bag_statistics, baselines_of
from diagatt.validation.cross import OURS, Validation, cross_validate

__all__ = [
    "BASELINES",
    "OURS",
    "Part",
    "Task",
    "Validation",
    "bag_statistics",
    "baselines_of",
    "cross_validate",
]
