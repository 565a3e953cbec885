"""What families of times to an event share."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from diagatt.families.base import Family


class Times(Family):
    """Times to an event: y = (entry, lower, upper), in which the event lies.

    Lower and upper are equal for an exact time; upper is infinite if the event had not happened by
    then (right censoring). Samples are observed from their entry on, 0 if from the beginning.
    """

    response_width = 3
    estimates_shape = True

    @property
    def log_hazard_per_unit(self) -> float | None:
        """What one unit of z adds to the log hazard at all times; None if hazards cross."""
        return None

    def with_ties(self, ties: str) -> Times:
        """Return the family with this way to count events at one time, where it counts any."""
        return self

    @staticmethod
    def is_event(y: Tensor) -> Tensor:
        """Return which times are exact, (n,) bool."""
        return y[:, 1] == y[:, 2]

    def observed(self, y):
        """Return the ends of observation, (n,)."""
        return y[:, 1]

    def is_valid(self, y):
        entry, lower, upper = y.unbind(dim=1)
        finite = torch.isfinite(entry) & torch.isfinite(lower) & ~torch.isnan(upper)
        return finite & (entry >= 0) & (lower >= entry) & (upper >= lower) & (upper > entry)

    @abstractmethod
    def log_survival(self, times: Tensor, z: Tensor) -> Tensor:
        """Return log P(T > t) for times and predictors of shapes that broadcast."""
